//! A plan for people: what will be deleted comes first, each line with its reason.

use super::{Column, cut, plain, table, table::wrapped};
use crate::{
    document::{Manager, PlanDocument, ResourceLine, VERDICTS},
    preflight::Finding,
    reap::stamp,
};

/// The evidence stands below its line, set in by so much.
const INDENT: usize = 4;

/// The columns of a plan's table.
const COLUMNS: [Column; 5] = [
    Column {
        heading: "KIND",
        shortest: 9,
    },
    Column {
        heading: "ID",
        shortest: 16,
    },
    Column {
        heading: "AGE",
        shortest: 4,
    },
    Column {
        heading: "OWNER",
        shortest: 5,
    },
    Column {
        heading: "OWNER IS",
        shortest: 4,
    },
];

/// What a verdict means, in words that need no manual.
pub(super) fn meaning(verdict: &str) -> &'static str {
    match verdict {
        "reap" => "TO BE DELETED: the owner is proven gone",
        "defer" => "NOT YET DECIDED: too young, or waiting for something; looked at again",
        "unknown" => "KEPT, OWNER UNKNOWN: nothing proves whose it is; never deleted, please look",
        _ => "KEPT: in use, protected, or somebody else's",
    }
}

/// The word of a verdict where one line must do.
pub(super) fn short_meaning(verdict: &str) -> &'static str {
    meaning(verdict)
        .split_once(':')
        .map_or("", |(short, _)| short)
}

/// An age as people say it.
pub(super) fn age(seconds: Option<i64>) -> String {
    match seconds {
        None => "?".into(),
        Some(s) if s < 0 => "new".into(),
        Some(s) if s < 120 => format!("{s} s"),
        Some(s) if s < 7200 => format!("{} min", s / 60),
        Some(s) if s < 172_800 => format!("{} h", s / 3600),
        Some(s) => format!("{} d", s / 86_400),
    }
}

pub(super) fn or_dash(text: Option<&str>) -> String {
    text.filter(|t| !t.is_empty()).unwrap_or("-").to_owned()
}

/// The id, and the name that people know it by: a public IP, a key pair's id.
pub(super) fn named(line: &ResourceLine) -> String {
    match &line.name {
        Some(name) if line.kind == crate::reap::ADDRESSES => format!("{} {name}", line.id),
        _ => line.id.clone(),
    }
}

/// The plan for a terminal of `width` characters.
pub(super) fn terminal(document: &PlanDocument, width: usize) -> Vec<String> {
    let mut lines = summary(document, width);
    lines.extend(findings(&document.findings, width));
    for verdict in VERDICTS {
        let of_verdict: Vec<&ResourceLine> = document
            .resources
            .iter()
            .filter(|r| r.verdict == verdict)
            .collect();
        if !of_verdict.is_empty() {
            lines.push(String::new());
            let heading = format!("{} ({})", meaning(verdict), document.total(verdict));
            lines.extend(wrapped(&heading, width));
            lines.extend(resources(&of_verdict, width));
        }
    }
    if document.truncated > 0 {
        lines.push(format!(
            "… and {} more that were left out",
            document.truncated
        ));
    }
    lines
}

fn resources(resources: &[&ResourceLine], width: usize) -> Vec<String> {
    let rows: Vec<Vec<String>> = resources
        .iter()
        .map(|r| {
            let (owner, state) = (
                or_dash(r.owner.as_deref()),
                or_dash(r.owner_state.as_deref()),
            );
            vec![r.kind.clone(), named(r), age(r.age_seconds), owner, state]
        })
        .collect();
    let mut lines = table(&COLUMNS, &rows, width).into_iter();
    let mut with_evidence: Vec<String> = lines.next().into_iter().collect();
    for (line, resource) in lines.zip(resources) {
        with_evidence.push(line);
        let evidence = format!("{}: {}", resource.rule, resource.evidence);
        with_evidence.extend(set_in(&evidence, width));
    }
    with_evidence
}

/// A text below the line that it belongs to.
fn set_in(text: &str, width: usize) -> Vec<String> {
    let parts = wrapped(text, width.saturating_sub(INDENT));
    parts
        .into_iter()
        .map(|part| format!("{:INDENT$}{part}", ""))
        .collect()
}

/// What the plan comes to.
fn summary(document: &PlanDocument, width: usize) -> Vec<String> {
    sentences(document)
        .iter()
        .flat_map(|sentence| wrapped(sentence, width))
        .collect()
}

/// The plan in a few sentences.
pub(super) fn sentences(document: &PlanDocument) -> Vec<String> {
    let region = document.region.as_deref().unwrap_or("an unknown Region");
    let executor = match &document.executor_name {
        Some(name) => format!("executor name {name}"),
        None => "no executor name".into(),
    };
    let mut sentences = vec![
        format!(
            "Plan of {} for {region}: groups {}; {executor}. Nothing was written.",
            stamp(document.made_at),
            document.groups.join(", ")
        ),
        totals(document),
        format!(
            "Managers: {}; {}.",
            managers(&document.managers),
            document.liveness
        ),
        format!(
            "Read: {}.",
            counted(
                document
                    .looked_at
                    .iter()
                    .map(|(what, count)| (what.as_str(), *count))
            )
        ),
    ];
    if document.monthly_cost.idle_addresses > 0 {
        let cost = &document.monthly_cost;
        sentences.push(format!(
            "The {} idle address(es) to be released cost ${:.2} a month ({}).",
            cost.idle_addresses, cost.usd, cost.basis
        ));
    }
    let passes = document
        .counts
        .values()
        .filter_map(|by_verdict| by_verdict.get("reap"))
        .max()
        .map_or(0, |n| n.div_ceil(document.max_deletions.max(1)));
    if passes > 1 {
        sentences.push(format!("At most {} of a kind are deleted in one pass: this takes {passes} passes, about a minute each.", document.max_deletions));
    }
    if !document.unread.is_empty() {
        sentences.push(format!(
            "NOT WHOLE, because this could not be read: {}",
            document.unread.join("; ")
        ));
    }
    sentences
}

fn totals(document: &PlanDocument) -> String {
    let [reap, defer, unknown, keep] = VERDICTS.map(|verdict| document.total(verdict));
    let by_kind = document
        .counts
        .iter()
        .filter_map(|(kind, by_verdict)| Some((kind.as_str(), *by_verdict.get("reap")?)));
    let of_these = if reap == 0 {
        String::new()
    } else {
        format!(" ({})", counted(by_kind))
    };
    format!(
        "{reap} to be deleted{of_these}, {defer} not yet decided, {unknown} kept with an unknown owner, {keep} kept."
    )
}

fn counted<'a>(counts: impl Iterator<Item = (&'a str, usize)>) -> String {
    let words: Vec<String> = counts
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    words.join(", ")
}

fn managers(managers: &[Manager]) -> String {
    if managers.is_empty() {
        return "none".into();
    }
    const SHOWN: usize = 8;
    let one = |m: &Manager| {
        format!(
            "{} ({}, {}, {} workers)",
            m.id,
            m.lifecycle.as_deref().unwrap_or("not listed"),
            m.state,
            m.workers
        )
    };
    let mut words: Vec<String> = managers.iter().take(SHOWN).map(one).collect();
    if managers.len() > SHOWN {
        words.push(format!("and {} more", managers.len() - SHOWN));
    }
    words.join(", ")
}

/// The findings of the preflight.
pub(super) fn findings(findings: &[Finding], width: usize) -> Vec<String> {
    if findings.is_empty() {
        return vec![];
    }
    let mut lines = vec![
        String::new(),
        format!("BEFORE MODE=enforce ({})", findings.len()),
    ];
    for finding in findings {
        let head = format!("{}: {}: {}", finding.level, finding.about, finding.what);
        lines.extend(wrapped(&head, width));
        for (word, text) in [("why", &finding.why), ("do", &finding.action)] {
            lines.extend(set_in(&format!("{word}: {text}"), width));
        }
    }
    lines
}

/// The lines for a list of what is left.
pub(super) fn leftover(line: &ResourceLine, width: usize) -> Vec<String> {
    let head = format!(
        "  {} {}: {}",
        line.kind,
        named(line),
        short_meaning(&line.verdict)
    );
    let evidence = format!("{}: {}", line.rule, line.evidence);
    std::iter::once(cut(&plain(&head), width))
        .chain(set_in(&evidence, width))
        .collect()
}
