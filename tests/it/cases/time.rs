//! Time: slow calls, dead connections, and the function's deadline to the second.

use super::{CALLS, Case, Reply, case, check, event, termination_of};
use crate::fake_aws::*;
use chrono::TimeDelta;

/// After the reply nothing runs on: no timer is left, no call is on its way.
fn nothing_is_left(aws: &FakeAws) {
    assert_eq!(
        aws.clock.next_wake_up(),
        None,
        "a timer outlives the invocation"
    );
}

#[test]
fn lc_31_the_function_stops_in_time_with_slow_calls() {
    for latency in [5, 11, 60] {
        for left in [10, 90, 300] {
            let aws = FakeAws::bare_cases();
            let ids = super::batch::put_ten_managers(&mut aws.world());
            aws.world().latency = seconds(latency);
            let begun = aws.now();
            // `run_for` panics when the function still runs at its deadline.
            let reply = aws
                .run_for(&event("batch-ten-managers"), left)
                .expect("a reply");
            assert_eq!(
                reply["batchItemFailures"].as_array().unwrap().len(),
                ids.len(),
                "nothing can be done, everything is listed"
            );
            assert!(
                aws.now() - begun < seconds(left),
                "{latency} s a call, {left} s in all"
            );
            nothing_is_left(&aws);
        }
    }
}

#[test]
fn lc_31_records_that_were_not_begun_are_listed() {
    let ids: Vec<String> = (0..25).map(|n| format!("i-0d{n:015x}")).collect();
    let aws = FakeAws::bare_cases();
    for id in &ids {
        aws.world().put_manager(GROUP, id, minutes(200));
        aws.world().open_hook(GROUP, HOOK, id, TOKEN);
    }
    aws.inject(Fault::Hanging.on("DescribeAutoScalingInstances"));
    let payload = termination_of(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    let story = super::play(
        aws,
        &payload,
        &super::story::Play {
            seconds: 30,
            before: &|_, _| {},
            most: 1,
        },
    );
    let reply = story.deliveries[0].reply.as_ref().expect("a reply");
    assert_eq!(reply["batchItemFailures"].as_array().unwrap().len(), 25);
    assert!(story.has_line("WARN", "out of time: not begun"));
    assert!(story.aws.writes().is_empty(), "nothing is half done");
    // What was not begun comes again soon, what was cut off a little later.
    let again: Vec<i64> = story.aws.world().queues[WORK_QUEUE]
        .visibility
        .values()
        .map(|(s, _)| *s)
        .collect();
    assert!(
        again.len() == 25 && again.iter().all(|s| (1..=60).contains(s)),
        "{again:?}"
    );
    nothing_is_left(&story.aws);
}

/// Too little time to begin anything: every record is listed, no AWS call but the queue's is made.
#[test]
fn lc_31_with_hardly_any_time() {
    for milliseconds in [0, 1, 500, 900] {
        let aws = FakeAws::bare_cases();
        super::batch::put_ten_managers(&mut aws.world());
        let handler = aws.handler();
        let deadline = aws.now() + TimeDelta::milliseconds(milliseconds);
        let invocation = lifecycle_reaper::handler::Invocation {
            request_id: "r".into(),
            function_arn: crate::fake_aws::function::FUNCTION_ARN.into(),
            deadline,
            trace_id: None,
        };
        let reply = drive(
            &aws.clock,
            handler.handle(&event("batch-ten-managers"), &invocation),
        )
        .expect("a reply");
        assert_eq!(reply["batchItemFailures"].as_array().unwrap().len(), 10);
    }
}

#[test]
fn lc_32_a_connection_that_hangs_or_is_refused() {
    for operation in CALLS {
        for (fault, word) in [
            (Fault::Hanging, "timeout"),
            (Fault::Refused, "connection refused"),
        ] {
            let story = check(Case {
                world: &|w| w.ssm.usual_fate = Some(Fate::says("stopped").after(seconds(20))),
                faults: vec![fault.on(operation).times(5)],
                did: &[
                    "CompleteLifecycleAction M1",
                    "TerminateInstances W1",
                    "TerminateInstances W2",
                ],
                log: &[(
                    if operation == "ChangeMessageVisibility" {
                        "WARN"
                    } else {
                        "ERROR"
                    },
                    operation,
                )],
                ..case("sqs-termination-hook")
            });
            let line = story
                .log
                .iter()
                .find(|l| l.raw.contains(&format!("{operation}: ")))
                .expect("a line that names it");
            assert!(line.raw.contains(word), "{operation}: {}", line.raw);
            assert!(
                story.deliveries.iter().all(|d| d.took < seconds(299)),
                "{operation}"
            );
            let longest = story.deliveries.iter().map(|d| d.took).max().unwrap();
            assert!(
                longest <= seconds(90),
                "{operation} held an invocation for {longest}"
            );
            nothing_is_left(&story.aws);
        }
    }
}

#[test]
fn lc_32_nothing_answers_at_all() {
    for fault in [Fault::Hanging, Fault::Refused] {
        for name in ["sqs-termination-hook", "batch-ten-managers"] {
            let aws = FakeAws::cases();
            super::batch::put_ten_managers(&mut aws.world());
            aws.inject(fault.clone().everywhere());
            let begun = aws.now();
            let reply = aws.run_for(&event(name), 60).expect("a reply");
            assert!(!reply["batchItemFailures"].as_array().unwrap().is_empty());
            assert!(aws.now() - begun < seconds(60));
            nothing_is_left(&aws);
        }
        // Not a record: the invocation must fail, because nothing of it is safe.
        for name in [
            "direct-termination",
            "direct-terminate-successful",
            "poison-string",
            "direct-plan",
        ] {
            let aws = FakeAws::cases();
            aws.inject(fault.clone().everywhere());
            let reply = aws.run_for(&event(name), 60);
            assert!(
                reply.is_err() || reply.as_ref().is_ok_and(|r| r["faults"][0].is_string()),
                "{name}: {reply:?}"
            );
            nothing_is_left(&aws);
        }
    }
}

/// Cut off after any call: what comes next finds the world as it is and ends well.
#[test]
fn lc_31_cut_off_after_any_call() {
    for operation in CALLS {
        for fault in [Fault::Hanging, Fault::EffectThenSilence] {
            check(Case {
                faults: vec![fault.on(operation).times(1)],
                seconds: 12,
                did: &[
                    "CompleteLifecycleAction M1",
                    "TerminateInstances W1",
                    "TerminateInstances W2",
                ],
                ..case("sqs-termination-hook")
            });
        }
    }
}

#[test]
fn lc_70_everything_is_joined_before_the_reply() {
    for name in [
        "sqs-termination-hook",
        "batch-ten-managers",
        "batch-mixed",
        "direct-sweep",
        "direct-terminate-successful",
        "poison-body-not-json",
    ] {
        let aws = FakeAws::cases();
        super::batch::put_ten_managers(&mut aws.world());
        aws.world().latency = TimeDelta::milliseconds(700);
        aws.run(&event(name)).expect("a reply");
        nothing_is_left(&aws);
        let pending: Vec<_> = aws
            .all_calls()
            .into_iter()
            .filter(|c| c.outcome == Outcome::Pending)
            .collect();
        assert!(pending.is_empty(), "{name}: {pending:?}");
    }
}

/// A pass claims its message for as long as it may run, so that a killed one is taken up again soon.
#[test]
fn lc_31_a_pass_claims_its_message_for_its_own_time() {
    for left in [60, 300, 900] {
        let story = check(Case {
            seconds: left,
            ..case("sqs-termination-hook")
        });
        let claim = story.aws.calls("ChangeMessageVisibility")[0]
            .request
            .number("VisibilityTimeout");
        assert_eq!(claim, Some(left + 15));
    }
    // A plan writes nothing, and a message's visibility is something.
    check(Case {
        config: &[("MODE", "plan")],
        first: Reply::Ok,
        never: &["ChangeMessageVisibility", "SendMessage"],
        ..case("sqs-termination-hook")
    });
}
