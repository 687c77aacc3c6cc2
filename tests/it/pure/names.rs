//! Names: ours exactly, field by field, and never a neighbour's.

use lifecycle_reaper::names::{ExecutorName, NameOwner};
use std::collections::BTreeSet;

fn whose(executor: &str, tokens: &[&str], proven: &[&str], name: &str) -> &'static str {
    let executor = ExecutorName::new(executor, tokens.iter().map(|t| (*t).to_owned()).collect())
        .expect("a name");
    let proven: BTreeSet<String> = proven.iter().map(|t| (*t).to_owned()).collect();
    match executor.owner_of(name, &proven) {
        NameOwner::Ours(born) => {
            assert_eq!(born.timestamp(), 1_741_064_767);
            "ours"
        }
        NameOwner::OursIfToken(..) => "if",
        NameOwner::Foreign => "foreign",
        NameOwner::Unrelated => "unrelated",
    }
}

const TAIL: &str = "1741064767-0a1b2c3d";

#[test]
fn every_shape_of_a_name() {
    let rows = [
        ("ci", "runner-aa-ci-{}", "ours"),
        ("ci", "runner-a-ci-{}", "ours"),
        ("ci", "runner-123456789-ci-{}", "ours"),
        ("ci", "runner-1234567890-ci-{}", "if"),
        ("ci", "runner-0123456789abcdef-ci-{}", "if"),
        ("ci", "runner-0123456789abcdef0-ci-{}", "ours"),
        ("ci", "runner-0123456789abcdef01-ci-{}", "if"),
        ("ci", "runner-a-b-ci-{}", "if"),
        ("ci", "runner--ci-{}", "foreign"),
        ("ci", "runner-ci-{}", "foreign"),
        ("ci", "runner-aa-ci-gpu-{}", "foreign"),
        ("ci", "runner-aa-gpu-ci-{}", "if"),
        ("ci", "runner-aa-circle-{}", "foreign"),
        ("ci", "runner-aa-xci-{}", "foreign"),
        ("ci", "runner-aa-cix-{}", "foreign"),
        ("ci", "runner-aa-CI-{}", "foreign"),
        ("ci", "runner-AA-ci-{}", "if"),
        ("ci", "runner-aä-ci-{}", "if"),
        ("ci", "Runner-aa-ci-{}", "unrelated"),
        ("ci", "runner_aa-ci-{}", "unrelated"),
        ("ci", "runner-aa-ci-1741064767-0A1B2C3D", "unrelated"),
        ("ci", "runner-aa-ci-1741064767-0a1b2c3", "unrelated"),
        ("ci", "runner-aa-ci-1741064767-0a1b2c3d4", "unrelated"),
        ("ci", "runner-aa-ci-1741064767-0a1b2c3g", "unrelated"),
        ("ci", "runner-aa-ci-174106476-0a1b2c3d", "unrelated"),
        ("ci", "runner-aa-ci-17410647670-0a1b2c3d", "unrelated"),
        ("ci", "runner-aa-ci-0741064767-0a1b2c3d", "unrelated"),
        ("ci", "runner-aa-ci--1741064767-0a1b2c3d", "foreign"),
        ("ci", "runner-aa-ci-1741064767--0a1b2c3d", "unrelated"),
        ("ci", " runner-aa-ci-{}", "unrelated"),
        ("ci", "runner-aa-ci-{} ", "unrelated"),
        ("ci", "runner-aa-ci-{}\n", "unrelated"),
        ("ci", "runner-aa-ci", "unrelated"),
        ("ci", "runner-", "unrelated"),
        ("ci", "", "unrelated"),
        ("ci", "ci", "unrelated"),
        ("ci-linux", "runner-aa-ci-linux-{}", "ours"),
        ("ci-linux", "runner-aa-linux-{}", "foreign"),
        ("linux", "runner-aa-ci-linux-{}", "if"),
        ("runner", "runner-aa-runner-{}", "ours"),
        ("prod", "runner-aa-prod-eu-{}", "foreign"),
        ("prod", "runner-aa-ci-prod-{}", "if"),
        ("prod-eu", "runner-aa-prod-{}", "foreign"),
        (
            "1741064767-0a1b2c3d",
            "runner-aa-1741064767-0a1b2c3d-{}",
            "ours",
        ),
        ("c.i_1", "runner-aa-c.i_1-{}", "ours"),
        ("c.i", "runner-aa-cxi-{}", "foreign"),
    ];
    for (executor, name, expected) in rows {
        let name = name.replace("{}", TAIL);
        assert_eq!(
            whose(executor, &[], &[], &name),
            expected,
            "{executor}: {name:?}"
        );
    }
}

/// A token that contains the separator is ours only if something proves it.
#[test]
fn a_token_with_a_dash_needs_proof() {
    let name = format!("runner-a-b-ci-{TAIL}");
    assert_eq!(whose("ci", &[], &[], &name), "if");
    assert_eq!(whose("ci", &["a-b"], &[], &name), "ours");
    assert_eq!(whose("ci", &[], &["a-b"], &name), "ours");
    for other in ["a", "b", "a-b-c", "A-B", "", "a-b "] {
        assert_eq!(whose("ci", &[other], &[other], &name), "if", "{other:?}");
    }
    // Proof of a token is no proof of a name.
    assert_eq!(whose("gpu", &["a-b"], &["a-b"], &name), "foreign");
}

#[test]
fn what_can_be_an_executor_name() {
    for name in [
        "ci",
        "c",
        "CI",
        "ci-linux",
        "ci_linux",
        "ci.linux",
        "1",
        "-",
        &"x".repeat(200),
    ] {
        assert!(
            ExecutorName::new(name, vec![]).is_some_and(|n| n.as_str() == name),
            "{name:?}"
        );
    }
    for name in [
        "", " ", "*", "?", "c*", "c?", "c i", "c/i", "c\\i", "ç", "c\n", "c:i", "c,i", "\u{0}",
    ] {
        assert!(ExecutorName::new(name, vec![]).is_none(), "{name:?}");
    }
}
