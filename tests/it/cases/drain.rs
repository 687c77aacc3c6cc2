//! The drain: commands, their answers and their silence.

use super::{Case, case, check};
use crate::fake_aws::*;

#[test]
fn lc_05_workers_live_while_the_manager_drains() {
    for fate in [
        Fate::ends("Failed", "Failed"),
        Fate::never_ends(),
        Fate::says("busy"),
        Fate::says("unknown"),
    ] {
        check(Case {
            world: &|w| w.ssm.usual_fate = Some(fate.clone()),
            did: &["RecordLifecycleActionHeartbeat M1", "SendCommand M1"],
            never: &[
                "TerminateInstances",
                "CompleteLifecycleAction",
                "DeleteKeyPair",
            ],
            log: &[("INFO", "planned:"), ("INFO", "\"delivery\":2")],
            cut_after: Some(5),
            ..case("sqs-termination-hook")
        });
    }
}

#[test]
fn lc_10_the_command_is_not_visible_at_once() {
    let story = check(Case {
        world: &|w| {
            w.ssm.usual_fate = Some(
                Fate::says("stopped")
                    .after(minutes(6))
                    .visible_after(seconds(10)),
            )
        },
        faults: vec![
            Fault::Code("InvocationDoesNotExist")
                .on("GetCommandInvocation")
                .times(3),
        ],
        times: &[("SendCommand", 1)],
        did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
        log: &[
            (
                "INFO",
                "the agent has not taken the drain command yet: not visible yet",
            ),
            ("INFO", "drain already running: InProgress"),
        ],
        ..case("sqs-termination-hook")
    });
    let looks: Vec<_> = story
        .aws
        .calls("GetCommandInvocation")
        .iter()
        .map(|c| c.at)
        .collect();
    assert!(
        looks
            .windows(2)
            .all(|pair| pair[1] - pair[0] >= seconds(10)),
        "a busy loop: {looks:?}"
    );
}

#[test]
fn lc_10_the_invocation_never_appears() {
    check(Case {
        faults: vec![Fault::Code("InvocationDoesNotExist").on("GetCommandInvocation")],
        config: &[("DRAIN_TIMEOUT_SECONDS", "900")],
        times: &[("SendCommand", 1)],
        did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
        log: &[("WARN", "released undrained")],
        ..case("sqs-termination-hook")
    });
}

#[test]
fn lc_18_redelivery_finds_the_command_that_runs() {
    for name in ["sqs-termination-hook", "batch-duplicates"] {
        let first = if name == "batch-duplicates" {
            super::Reply::Fail(&[1, 2])
        } else {
            super::Reply::Fail(&[1])
        };
        check(Case {
            world: &|w| w.ssm.usual_fate = Some(Fate::says("stopped").after(minutes(3))),
            first,
            times: &[("SendCommand", 1), ("CompleteLifecycleAction", 1)],
            did: &["TerminateInstances W1"],
            log: &[("INFO", "drain already running")],
            no_log: &[("ERROR", "")],
            ..case(name)
        });
    }
}

/// Yesterday's "stopped" proves nothing, and another instance's command isn't ours.
#[test]
fn lc_18_older_and_foreign_commands_are_no_evidence() {
    check(Case {
        world: &|w| {
            let now = w.now();
            for (age, instance_id, document) in [
                (minutes(61), M1, DOCUMENT),
                (minutes(2), M1, DOCUMENT),
                (seconds(5), M2, DOCUMENT),
                (seconds(5), M1, "another-document"),
            ] {
                let id = format!("{:08x}-0000-4000-8000-00000000001d", w.next_serial());
                w.ssm.commands.push(Command {
                    id,
                    document: document.into(),
                    instance_id: instance_id.into(),
                    sent: now - age,
                    delivery_timeout: 60,
                    comment: None,
                    parameters: serde_json::Value::Null,
                    fate: Fate::says("stopped"),
                });
            }
        },
        in_order: &["SendCommand M1", "CompleteLifecycleAction M1"],
        times: &[("SendCommand", 1)],
        ..case("sqs-termination-hook")
    });
}

/// Where the case lets an old instance be released at once, the design waits for the deadline: an agent may come back,
/// and silence is no evidence (AWS gives InvalidInstanceId for "not yet" and "never" alike, API reference SendCommand).
#[test]
fn lc_23_the_agent_is_not_reachable() {
    for age in [seconds(30), minutes(180)] {
        let story = check(Case {
            world: &|w| {
                w.ssm.agents.remove(M1);
                w.instance_mut(M1).launched = w.now() - age;
                w.instance_mut(M1).attached = Some(w.now() - age);
            },
            config: &[("DRAIN_TIMEOUT_SECONDS", "1200")],
            did: &[
                "RecordLifecycleActionHeartbeat M1",
                "CompleteLifecycleAction M1",
                "TerminateInstances W1",
            ],
            log: &[
                ("ERROR", "not done: drain command sent InvalidInstanceId"),
                ("WARN", "released undrained"),
            ],
            ..case("sqs-termination-hook")
        });
        assert!(story.aws.calls("CompleteLifecycleAction")[0].at - start() > seconds(1100));
    }
    // An agent that comes up late is used.
    check(Case {
        world: &|w| {
            w.ssm.agents.remove(M1);
        },
        before: &|aws, number| {
            if number == 3 {
                aws.world().ssm.agents.insert(M1.into());
            }
        },
        did: &["SendCommand M1", "CompleteLifecycleAction M1"],
        no_log: &[("WARN", "released undrained")],
        ..case("sqs-termination-hook")
    });
}

#[test]
fn lc_36_running_and_terminating_are_two_things() {
    const M3: &str = "i-0a33aa33aa33aa330";
    const W5: &str = "i-0b55bb55bb55bb550";
    for state in [
        InstanceState::Stopping,
        InstanceState::Stopped,
        InstanceState::Pending,
        InstanceState::Running,
    ] {
        check(Case {
            world: &|w| {
                w.put_manager(GROUP, M3, minutes(90));
                w.instance_mut(M3).state = state;
                w.put_worker(Worker::of(M3, W5));
            },
            in_order: &[
                "SendCommand M1",
                "CompleteLifecycleAction M1",
                "TerminateInstances W1",
            ],
            never: &[
                "TerminateInstances i-0b55bb55bb55bb550",
                "SendCommand i-0a33aa33aa33aa330",
            ],
            ..case("sqs-termination-hook")
        });
    }
}

/// Every status that SSM knows, and one of the future. In flight: one command, for ever. Ended: another is sent.
#[test]
fn lc_37_every_status_of_a_command() {
    let ended = [
        ("TimedOut", "DeliveryTimedOut"),
        ("TimedOut", "Delivery Timed Out"),
        ("TimedOut", "ExecutionTimedOut"),
        ("TimedOut", "Execution Timed Out"),
        ("Failed", "Undeliverable"),
        ("Failed", "Terminated"),
        ("Failed", "InvalidPlatform"),
        ("Failed", "AccessDenied"),
        ("Failed", "Failed"),
        ("Cancelled", "Cancelled"),
        ("Cancelled", "Terminated"),
        ("AStatusOfTheFuture", "Somehow"),
        ("Success", "Success"),
    ];
    for (status, details) in ended {
        let fate = Fate {
            output: "nothing that the document prints\n".into(),
            ..Fate::ends(status, details)
        };
        let story = check(Case {
            world: &|w| {
                w.ssm.fates.push_back(fate.clone());
            },
            did: &["CompleteLifecycleAction M1"],
            times: &[("SendCommand", 2), ("SendCommand \"TimeoutSeconds\":60", 2)],
            log: &[(
                "INFO",
                &format!("drain command ended without an answer: {status}"),
            )],
            ..case("sqs-termination-hook")
        });
        assert!(story.has_line("INFO", details) || details == status);
    }
    for (status, words) in [
        (
            "Pending",
            "the agent has not taken the drain command yet: Pending",
        ),
        ("InProgress", "drain already running: InProgress"),
        (
            "Delayed",
            "the agent has not taken the drain command yet: Delayed",
        ),
        ("Cancelling", "drain already running: Cancelling"),
    ] {
        let fate = Fate::ends(status, status);
        check(Case {
            world: &|w| {
                w.ssm.fates.push_back(fate.clone());
                w.ssm.usual_fate = Some(Fate::says("stopped"));
            },
            config: &[("DRAIN_TIMEOUT_SECONDS", "900")],
            times: &[("SendCommand", 1)],
            did: &["CompleteLifecycleAction M1"],
            log: &[
                ("INFO", words),
                (
                    "WARN",
                    &format!("released undrained: the drain command is {status}"),
                ),
            ],
            ..case("sqs-termination-hook")
        });
    }
}

/// Statuses of a command that never reached its instance: the list knows it, the invocation isn't there.
#[test]
fn lc_37_a_command_that_was_never_delivered() {
    for status in ["TimedOut", "Failed", "Cancelled"] {
        check(Case {
            world: &|w| w.ssm.fates.push_back(Fate::ends(status, "Undeliverable")),
            faults: vec![
                Fault::Code("InvocationDoesNotExist")
                    .on("GetCommandInvocation")
                    .times(1),
            ],
            times: &[("SendCommand", 2)],
            log: &[(
                "INFO",
                &format!("drain command ended without an answer: {status}, never delivered"),
            )],
            ..case("sqs-termination-hook")
        });
    }
}

#[test]
fn lc_38_an_execution_limit_that_is_shorter_than_the_drain() {
    let story = check(Case {
        world: &|w| {
            w.ssm
                .fates
                .push_back(Fate::ends("TimedOut", "ExecutionTimedOut").after(seconds(3600)));
            w.ssm
                .fates
                .push_back(Fate::says("stopped").after(minutes(30)));
        },
        config: &[("DRAIN_TIMEOUT_SECONDS", "7200")],
        times: &[("SendCommand", 2)],
        in_order: &[
            "SendCommand M1",
            "CompleteLifecycleAction M1",
            "TerminateInstances W1",
        ],
        log: &[(
            "INFO",
            "ended without an answer: TimedOut (ExecutionTimedOut)",
        )],
        ..case("sqs-termination-hook")
    });
    assert!(story.aws.calls("CompleteLifecycleAction")[0].at - start() >= minutes(90));
}

/// The document's words; only three of them end a drain, and only at the end of a command that succeeded.
#[test]
fn lc_37_the_words_of_the_document() {
    for (word, loud) in [
        ("stopped", false),
        ("nothing-to-drain", false),
        ("aborted", true),
    ] {
        let story = check(Case {
            world: &|w| w.ssm.usual_fate = Some(Fate::says(word)),
            times: &[("SendCommand", 1), ("CompleteLifecycleAction", 1)],
            log: &[(
                if loud { "WARN" } else { "INFO" },
                &format!("release: drain document says {word}"),
            )],
            ..case("sqs-termination-hook")
        });
        assert_eq!(story.has_line("WARN", "release:"), loud);
    }
    for output in [
        "lifecycle-reaper: busy jobs=2\n",
        "lifecycle-reaper: unknown\n",
        "lifecycle-reaper: stoppedX\n",
        "lifecycle-reaper:\n",
        "lifecycle-reaper: STOPPED\n",
        "stopped\n",
        "",
    ] {
        check(Case {
            world: &|w| {
                w.ssm.usual_fate = Some(Fate {
                    output: output.into(),
                    ..Fate::says("")
                })
            },
            never: &["CompleteLifecycleAction", "TerminateInstances"],
            cut_after: Some(4),
            ..case("sqs-termination-hook")
        });
    }
    // Half the truth of a command that was cut off.
    for (status, details) in [
        ("Failed", "Failed"),
        ("TimedOut", "ExecutionTimedOut"),
        ("InProgress", "InProgress"),
    ] {
        check(Case {
            world: &|w| {
                w.ssm.usual_fate = Some(Fate {
                    output: "lifecycle-reaper: stopped\n".into(),
                    ..Fate::ends(status, details)
                })
            },
            never: &["CompleteLifecycleAction", "TerminateInstances"],
            cut_after: Some(4),
            ..case("sqs-termination-hook")
        });
    }
    // Lines around the document's own, with Windows' ends; the last one counts.
    for output in [
        "\u{1b}[1mhello\u{1b}[0m\r\n  lifecycle-reaper: stopped unit=gitlab-runner.service\r\nbye\r\n",
        "lifecycle-reaper: busy\nlifecycle-reaper: stopped\n",
    ] {
        check(Case {
            world: &|w| {
                w.ssm.usual_fate = Some(Fate {
                    output: output.into(),
                    ..Fate::says("")
                })
            },
            did: &["CompleteLifecycleAction M1"],
            times: &[("SendCommand", 1)],
            ..case("sqs-termination-hook")
        });
    }
}
