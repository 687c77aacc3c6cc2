//! A plan as Markdown, for a ticket or a pull request.

use super::{
    plain,
    show::{age, meaning, named, or_dash, sentences},
};
use crate::{
    document::{PlanDocument, ResourceLine, VERDICTS},
    preflight::Finding,
};

/// The plan as Markdown.
pub(super) fn plan(document: &PlanDocument) -> Vec<String> {
    let mut lines: Vec<String> = sentences(document)
        .iter()
        .map(|sentence| format!("- {}", cell(sentence)))
        .collect();
    lines.extend(findings(&document.findings));
    for verdict in VERDICTS {
        let of_verdict: Vec<&ResourceLine> = document
            .resources
            .iter()
            .filter(|r| r.verdict == verdict)
            .collect();
        if of_verdict.is_empty() {
            continue;
        }
        lines.extend([
            String::new(),
            format!("### {} ({})", meaning(verdict), document.total(verdict)),
            String::new(),
        ]);
        lines.push("| kind | id | age | owner | owner is | rule | evidence |".into());
        lines.push("|---|---|---|---|---|---|---|".into());
        lines.extend(of_verdict.iter().map(|r| {
            let cells = [
                r.kind.clone(),
                named(r),
                age(r.age_seconds),
                or_dash(r.owner.as_deref()),
                or_dash(r.owner_state.as_deref()),
                r.rule.clone(),
                r.evidence.clone(),
            ];
            format!("| {} |", cells.map(|text| cell(&text)).join(" | "))
        }));
    }
    lines
}

/// The findings as Markdown.
pub(super) fn findings(findings: &[Finding]) -> Vec<String> {
    if findings.is_empty() {
        return vec![];
    }
    let mut lines = vec![
        String::new(),
        "### Before MODE=enforce".into(),
        String::new(),
    ];
    lines.push("| level | about | what | why it matters | what to do |".into());
    lines.push("|---|---|---|---|---|".into());
    lines.extend(findings.iter().map(|f| {
        let cells = [
            f.level.to_string(),
            f.about.clone(),
            f.what.clone(),
            f.why.clone(),
            f.action.clone(),
        ];
        format!("| {} |", cells.map(|text| cell(&text)).join(" | "))
    }));
    lines
}

/// A cell of a Markdown table.
fn cell(text: &str) -> String {
    let escape = |c: char| match c {
        '|' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '\\' => format!("\\{c}"),
        _ => c.to_string(),
    };
    plain(text).chars().map(escape).collect()
}
