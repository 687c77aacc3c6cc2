//! What a person reads of a plan.

use super::*;

#[test]
fn a_healthy_account_has_nothing_to_delete_and_nothing_in_the_way() {
    let ran = run(&healthy(), "plan");
    assert_eq!(ran.exit, Exit::Good, "{}", ran.err);
    assert!(
        ran.flat()
            .contains("0 to be deleted, 0 not yet decided, 0 kept with an unknown owner, 2 kept."),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("BEFORE MODE=enforce"), "{}", ran.out);
    assert!(!ran.out.contains("TO BE DELETED:"), "{}", ran.out);
}

#[test]
fn orphans_come_first() {
    let document = document(&leftovers());
    let order: Vec<&str> = document
        .resources
        .iter()
        .map(|r| r.verdict.as_str())
        .collect();
    let rank = |verdict: &str| {
        ["reap", "defer", "unknown", "keep"]
            .iter()
            .position(|v| *v == verdict)
    };
    assert!(
        order.windows(2).all(|pair| rank(pair[0]) <= rank(pair[1])),
        "{order:?}"
    );
    let out = run(&leftovers(), "plan").out;
    let at = |heading: &str| {
        out.find(heading)
            .unwrap_or_else(|| panic!("no {heading:?} in {out}"))
    };
    assert!(at("TO BE DELETED: ") < at("NOT YET DECIDED: "));
    assert!(at("NOT YET DECIDED: ") < at("KEPT, OWNER UNKNOWN: "));
    assert!(at("KEPT, OWNER UNKNOWN: ") < at("KEPT: "));
}

/// What stands between two headings.
fn section<'a>(out: &'a str, from: &str, to: &str) -> &'a str {
    let rest = &out[out.find(from).expect("the heading")..];
    &rest[..rest.find(to).expect("the next heading")]
}

#[test]
fn a_reader_who_never_saw_it_can_tell_what_will_be_deleted_and_why() {
    let out = run(&leftovers(), "plan").out;
    println!("{out}");
    let deleted = flat(section(&out, "TO BE DELETED: ", "NOT YET DECIDED: "));
    for (what, why) in [
        (W1, format!("its manager {M1} is terminated")),
        (
            W2,
            format!("its manager {LONG_GONE} is absent, and it is older than the grace period"),
        ),
        (
            "sir-worker01",
            format!("as its instance {W1}: its manager {M1} is terminated"),
        ),
        (
            "eipalloc-00000000000000001",
            format!("its manager {M1} is terminated"),
        ),
        (
            "sir-opened01",
            format!(
                "older than every live manager (the oldest is {M2}, born 2025-03-04 04:06:08Z)"
            ),
        ),
    ] {
        let at = deleted
            .find(what)
            .unwrap_or_else(|| panic!("{what} isn't listed as to be deleted:\n{out}"));
        assert!(deleted[at..].contains(&why), "{what}: {why}\n{out}");
    }
    for kept in [W3, W8, YOUNG, "eipalloc-00000000000000002"] {
        let lines = section(&out, "TO BE DELETED: ", "NOT YET DECIDED: ").lines();
        assert!(
            lines
                .filter(|l| !l.starts_with(' '))
                .all(|l| !l.contains(kept)),
            "{kept} isn't to be deleted:\n{out}"
        );
    }
    let head = flat(&out[..out.find("TO BE DELETED: ").expect("the heading")]);
    for sentence in [
        "Plan of 2025-03-04 05:06:08Z for eu-west-1: groups ci-linux-asg; executor name ci-linux. Nothing was written.",
        "6 to be deleted (1 addresses, 1 key-pairs, 2 spot-requests, 2 workers), 1 not yet decided, 2 kept with an unknown owner,",
        "the oldest live manager is i-0a22aa22aa22aa220, born 2025-03-04 04:06:08Z",
        "The 1 idle address(es) to be released cost $3.65 a month",
    ] {
        assert!(head.contains(sentence), "{sentence}\n{head}");
    }
    let undecided = flat(section(&out, "NOT YET DECIDED: ", "KEPT, OWNER UNKNOWN: "));
    assert!(undecided.contains("parent-absent: its manager i-0dead0dead0dead00 is absent, but it is too young to tell before 2025-03-04 05:16:08Z"), "{out}");
    assert!(
        flat(&out).contains(&format!(
            "{W1} uses it and is running: that worker is to be deleted, and this after it"
        )),
        "{out}"
    );
    assert!(
        flat(&out).contains("KEPT: in use, protected, or somebody else's"),
        "{out}"
    );
    assert!(
        flat(&out).contains("carries the tag lifecycle-reaper:keep"),
        "{out}"
    );
}

#[test]
fn the_table_fits_every_terminal() {
    for width in [60, 80, 100, 132, 200] {
        let aws = leftovers();
        {
            let mut world = aws.world();
            let evil = "i-\u{202e}x\u{4e16}\u{754c}e\u{301}".repeat(20);
            world.put_address("eipalloc-00000000000000003", Some(&evil));
        }
        let out = run_in(&aws, "plan", width).out;
        for line in out.lines() {
            assert!(
                line.chars().count() <= width,
                "{} > {width}: {line}",
                line.chars().count()
            );
            assert!(
                line.chars()
                    .all(|c| c == '…' || c.is_ascii_graphic() || c == ' '),
                "{line:?}"
            );
        }
        assert!(out.contains("eipalloc-"), "{out}");
    }
}

#[test]
fn markdown_is_a_table_whose_cells_break_nothing() {
    let aws = leftovers();
    aws.world()
        .put_address("eipalloc-00000000000000003", Some("a|b`c"));
    let out = run(&aws, "plan --format markdown").out;
    let rows: Vec<&str> = out
        .lines()
        .filter(|l| l.starts_with("| ") && !l.starts_with("| kind") && !l.starts_with("| level"))
        .collect();
    let bars = |row: &str| row.replace("\\|", "").matches('|').count();
    assert!(rows.iter().all(|row| bars(row) == 8), "{out}");
    assert!(rows.iter().any(|row| row.contains("a\\|b\\`c")), "{out}");
    assert!(
        out.contains("### TO BE DELETED: the owner is proven gone (6)"),
        "{out}"
    );
    assert!(rows[0].starts_with("| spot-requests | sir-"), "{out}");
}

#[test]
fn what_could_not_be_read_is_said_twice_and_fails() {
    let aws = leftovers();
    aws.inject(Fault::Denied.on("DescribeKeyPairs"));
    let ran = run(&aws, "plan");
    assert_eq!(ran.exit, Exit::Failed);
    assert!(
        ran.flat().contains(
            "NOT WHOLE, because this could not be read: DescribeKeyPairs: UnauthorizedOperation"
        ),
        "{}",
        ran.out
    );
    assert!(
        ran.err.contains("not everything could be read") && ran.err.contains("DescribeKeyPairs"),
        "{}",
        ran.err
    );
    assert!(ran.out.contains(W1), "the rest is shown all the same");
    assert!(!run(&leftovers(), "plan").err.contains("not everything"));
}

#[test]
fn progress_is_told_on_standard_error_while_it_reads() {
    let aws = leftovers();
    aws.world().latency = seconds(3);
    let ran = run(&aws, "plan");
    assert_eq!(ran.exit, Exit::Good, "{}", ran.err);
    assert!(
        ran.err.starts_with("Reading the account in eu-west-1 …\n"),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .lines()
            .filter(|l| l.starts_with("Reading") && l.contains(" s, "))
            .count()
            >= 3,
        "{}",
        ran.err
    );
    assert!(!ran.out.contains("Reading the account"));
}
