//! Log lines: each pass says once what it plans, once how it ended, and once of each write what became of it.

use super::capture::{Line, Scene, everything};
use std::collections::BTreeMap;

const LEVELS: [&str; 4] = ["ERROR", "WARN", "INFO", "DEBUG"];

/// What tells one pass from the others of its invocation: the span of its record or event.
fn pass_of(line: &Line) -> [String; 3] {
    let of = |field| [line.in_span("record", field), line.in_span("event", field)].concat();
    [of("message_id"), of("task"), of("instance_id")]
}

#[test]
fn every_line_can_be_read_alone_and_found_by_its_request_and_trace() {
    for scene in everything() {
        assert!(scene.log().count() > 0, "{} says nothing", scene.name);
        for line in scene.log() {
            let context = || format!("{}: {}", scene.name, line.raw);
            assert!(LEVELS.contains(&line.level()), "level of {}", context());
            assert!(line.message().len() > 4, "message of {}", context());
            assert!(
                line.text("timestamp").ends_with('Z'),
                "timestamp of {}",
                context()
            );
            assert!(
                !line.in_span("invocation", "request_id").is_empty(),
                "request id of {}",
                context()
            );
            assert!(
                line.in_span("invocation", "trace_id")
                    .starts_with("Root=1-"),
                "trace id of {}",
                context()
            );
            assert!(
                line.raw.len() <= 2048 && line.raw.is_ascii(),
                "{}",
                context()
            );
        }
    }
}

/// `planned` opens a pass and `outcome` closes it. A pass that was cut off may not have come to its plan.
#[test]
fn each_pass_plans_once_and_ends_once() {
    let mut passes = 0;
    for scene in everything() {
        let mut planned = BTreeMap::<[String; 3], usize>::new();
        for line in scene.log().filter(|line| !pass_of(line)[1].is_empty()) {
            let pass = pass_of(line);
            // A wake inside a sweep is a pass of its own, and `found waiting` is its outcome.
            if line.message().starts_with("planned: ")
                && line.json.get("instance_id").is_none_or(|id| pass[2] == *id)
            {
                *planned.entry(pass).or_default() += 1;
            } else if line.message().starts_with("outcome: ") {
                let count = planned.remove(&pass).unwrap_or_default();
                let is_cut_off = line.text("outcome") == "CutOff";
                assert!(
                    count == 1 || (is_cut_off && count == 0),
                    "{}: planned {count} times before {}",
                    scene.name,
                    line.raw
                );
                passes += 1;
            }
        }
        assert!(
            planned.is_empty(),
            "{}: no outcome for {planned:?}",
            scene.name
        );
        let counted: f64 = scene
            .metrics()
            .filter_map(|line| line.json["Passes"].as_f64())
            .sum();
        let outcomes = scene
            .log()
            .filter(|line| line.message().starts_with("outcome: "))
            .count();
        assert_eq!(
            counted, outcomes as f64,
            "{}: passes in the metrics and in the log",
            scene.name
        );
    }
    assert!(passes > 20, "only {passes} passes were looked at");
}

#[test]
fn the_level_chooses_lines_and_only_lines() {
    for scene in everything() {
        let raw = |scene: &Scene| {
            scene
                .log()
                .map(|l| (l.level().to_owned(), l.message().to_owned()))
                .collect::<Vec<_>>()
        };
        let all = raw(&scene);
        for (level, shown) in [
            ("error", &LEVELS[..1]),
            ("WARN", &LEVELS[..2]),
            ("info", &LEVELS[..3]),
            ("nonsense", &LEVELS[..3]),
        ] {
            let expected: Vec<_> = all
                .iter()
                .filter(|(l, _)| shown.contains(&l.as_str()))
                .cloned()
                .collect();
            assert_eq!(
                raw(&scene.again(level)),
                expected,
                "{} at {level}",
                scene.name
            );
        }
    }
}

/// The levels as the documentation gives them: by what a person has to do.
#[test]
fn an_error_is_what_failed_and_a_warning_is_what_a_person_should_know() {
    let scenes = everything();
    let lines = |name: &str| {
        scenes
            .iter()
            .find(|s| s.name == name)
            .unwrap_or_else(|| panic!("no scene {name}"))
            .log()
            .collect::<Vec<_>>()
    };
    let has = |name: &str, level: &str, words: &str| {
        assert!(
            lines(name)
                .iter()
                .any(|l| l.level() == level && l.message().contains(words)),
            "{name}: no {level} {words:?}"
        );
    };
    for quiet in [
        "a manager is drained, released and cleaned up after",
        "a sweep finds a manager waiting",
        "not ours",
    ] {
        assert!(
            lines(quiet).iter().all(|l| l.level() == "INFO"),
            "{quiet} isn't quiet: {:?}",
            lines(quiet).iter().find(|l| l.level() != "INFO")
        );
    }
    has("deletions fail", "ERROR", "not deleted");
    has("deletions fail", "WARN", "EC2 refuses to delete it");
    has("deletions fail", "WARN", "gone already");
    has("reads fail", "ERROR", "not read to its end");
    has(
        "a hook is released at its deadline",
        "WARN",
        "planned: release: released undrained",
    );
    has(
        "a manager waits in a hook that is not ours",
        "WARN",
        "planned: nothing: it waits in a hook",
    );
    let agentless = "no agent takes the drain command";
    has(
        agentless,
        "INFO",
        "the agent has not taken the drain command yet: Pending",
    );
    has(
        agentless,
        "WARN",
        "ended without an answer: TimedOut (DeliveryTimedOut)",
    );
    has(agentless, "WARN", "; the drain command is Pending");
    has("unreadable", "WARN", "on the dead-letter queue");
    has("no document", "ERROR", "not done: drain command sent");
    has(
        "the queue is denied",
        "WARN",
        "its visibility could not be changed",
    );
    has(
        "the queue is denied",
        "ERROR",
        "not on the dead-letter queue",
    );
    has("a hook waits in plan mode", "WARN", "MODE=plan");
    has("unreadable", "ERROR", "unreadable: ");
    has(
        "a manager that lives is said to be gone",
        "WARN",
        "manager alive",
    );
    has("a call panics", "ERROR", "panic: ");
}

/// Whatever is a number and no count bears its unit in its name.
#[test]
fn numbers_bear_their_units() {
    const COUNTS: [&str; 10] = [
        "api_calls",
        "deleted",
        "delivery",
        "max_deliveries",
        "not_shown",
        "over_limit",
        "records",
        "throttles",
        "truncated",
        "unfinished",
    ];
    for scene in everything() {
        for line in scene.log() {
            for (name, _) in line
                .json
                .as_object()
                .expect("an object")
                .iter()
                .filter(|(_, value)| value.is_number())
            {
                let has_unit = ["_seconds", "_bytes"]
                    .iter()
                    .any(|unit| name.contains(unit));
                assert!(
                    has_unit || COUNTS.contains(&name.as_str()),
                    "{}: {name} in {}",
                    scene.name,
                    line.raw
                );
            }
        }
    }
}
