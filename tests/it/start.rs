//! The start of the function itself: the binary that Lambda runs, with the environment that Lambda gives.

use serde_json::Value;
use std::process::Command;

/// The lines that a start writes; nobody listens at the Runtime API's address, so it ends at its first poll.
pub fn lines_of_start(variables: &[(&str, &str)]) -> Vec<Value> {
    let ran = Command::new(env!("CARGO_BIN_EXE_bootstrap"))
        .env_clear()
        .envs([
            ("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1"),
            ("AWS_LAMBDA_FUNCTION_NAME", "lifecycle-reaper"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
            ("AWS_LAMBDA_LOG_STREAM_NAME", "stream"),
            ("AWS_LAMBDA_LOG_GROUP_NAME", "group"),
            ("AWS_REGION", "eu-west-1"),
        ])
        .envs(variables.iter().copied())
        .output()
        .expect("the binary runs");
    let out = String::from_utf8(ran.stdout).expect("UTF-8");
    out.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[test]
fn a_start_tells_its_settings() {
    let settings = [
        ("AUTO_SCALING_GROUPS", "ci-a,ci-b"),
        ("LIFECYCLE_HOOKS", "terminate"),
        ("EXECUTOR_NAME", "ci-linux"),
        ("DRAIN_DOCUMENT", "drain"),
        ("MAX_RECEIVE_COUNT", "300"),
    ];
    let lines = lines_of_start(&settings);
    let started = lines
        .iter()
        .find(|line| line["message"] == "started")
        .unwrap_or_else(|| panic!("no line says it: {lines:?}"));
    for (field, value) in [
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("writes", Value::Bool(false)),
        ("groups", "ci-a,ci-b".into()),
        ("hooks", "terminate".into()),
        ("executor", "ci-linux".into()),
        ("drain_timeout_seconds", 7200.into()),
        ("grace_seconds", 900.into()),
        ("max_deliveries", 300.into()),
    ] {
        assert_eq!(started[field], value, "{field}");
    }
}

#[test]
fn a_configuration_that_cannot_be_used_is_told_variable_by_variable() {
    let lines = lines_of_start(&[("MODE", "delete-everything"), ("DRAIN", "ssm")]);
    let told: Vec<&str> = lines
        .iter()
        .filter(|line| line["level"] == "ERROR")
        .filter_map(|line| line["variable"].as_str())
        .collect();
    for variable in [
        "AUTO_SCALING_GROUPS",
        "LIFECYCLE_HOOKS",
        "MODE",
        "DRAIN_DOCUMENT",
    ] {
        assert!(told.contains(&variable), "{variable} is not in {told:?}");
    }
    assert!(lines.iter().all(|line| line["message"] != "started"));
}
