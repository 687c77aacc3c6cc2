//! AWS's errors: told apart by their codes, told in the log with all that a person needs.

use super::{CALLS, Case, Reply, case, check};
use crate::fake_aws::*;

#[test]
fn lc_11_codes_are_read_and_told() {
    for (fault, code) in [
        (Fault::Denied, "UnauthorizedOperation"),
        (
            Fault::Code("AnUnknownCodeOfTheFuture"),
            "AnUnknownCodeOfTheFuture",
        ),
    ] {
        check(Case {
            world: &|w| drop(w.put_worker(Worker::of(LONG_GONE, W8).age(minutes(180)))),
            faults: vec![fault.on("TerminateInstances").naming(W8).times(8)],
            log: &[(
                "ERROR",
                &format!(
                    "not deleted W8 \"aws_code\":\"{code}\" f00dfeed-0000-4000-8000-00000000cafe TerminateInstances: {code}:"
                ),
            )],
            did: &["TerminateInstances W1"],
            ..case("sqs-termination-hook")
        });
    }
}

/// EC2's reads by filter don't fail for an unknown id, and no code but "not found" is read as absence.
#[test]
fn lc_11_no_error_but_not_found_means_gone() {
    for code in [
        "UnauthorizedOperation",
        "RequestExpired",
        "InternalError",
        "InvalidInstanceID.Malformed",
        "Unavailable",
    ] {
        check(Case {
            faults: vec![Fault::Code(code).on("DescribeInstances")],
            never: &[
                "TerminateInstances",
                "DeleteKeyPair",
                "ReleaseAddress",
                "CancelSpotInstanceRequests",
            ],
            log: &[(
                "ERROR",
                &format!("DescribeInstances \"aws_code\":\"{code}\""),
            )],
            cut_after: Some(6),
            ..case("sqs-termination-hook")
        });
    }
}

/// EC2 can't be asked: the hook is held and the drain goes on, because nothing says that the manager is gone.
#[test]
fn lc_11_an_unreadable_manager_is_drained_not_released() {
    check(Case {
        world: &|w| w.ssm.usual_fate = Some(Fate::says("busy")),
        faults: vec![Fault::Denied.on("DescribeInstances")],
        did: &["RecordLifecycleActionHeartbeat M1", "SendCommand M1"],
        never: &["CompleteLifecycleAction"],
        cut_after: Some(6),
        ..case("sqs-termination-hook")
    });
}

#[test]
fn lc_33_throttled_everywhere_and_then_it_works() {
    let operations = || CALLS.into_iter().chain(["DeleteKeyPair", "ReleaseAddress"]);
    check(Case {
        world: &|w| {
            super::batch::put_ten_managers(w)
                .iter()
                .enumerate()
                .for_each(|(n, id)| drop(w.put_worker(Worker::of(id, &format!("i-0b{n:015x}")))));
            w.put_address("eipalloc-1", Some(M1));
        },
        faults: operations()
            .map(|o| Fault::Throttled.on(o).times(4))
            .collect(),
        first: Reply::Fail(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        did: &[
            "TerminateInstances i-0b000000000000000",
            "TerminateInstances i-0b000000000000009",
        ],
        ..case("batch-ten-managers")
    });
    // Each alone, to the last attempt that a call has.
    for operation in operations() {
        let story = check(Case {
            world: &|w| {
                w.put_address("eipalloc-1", Some(M1));
            },
            faults: vec![Fault::Throttled.on(operation).times(4)],
            did: &[
                "CompleteLifecycleAction M1",
                "TerminateInstances W1",
                "ReleaseAddress eipalloc-1",
                "DeleteKeyPair runner-aa",
            ],
            no_log: &[("ERROR", "")],
            ..case("sqs-termination-hook")
        });
        let calls = story.aws.calls(operation);
        assert!(
            calls.len() >= 5,
            "{operation} was called {} times",
            calls.len()
        );
        assert!(
            calls[0].at < calls[4].at,
            "{operation}: no pause between attempts"
        );
    }
}

#[test]
fn lc_69_expired_credentials_pass() {
    for operation in [
        "DescribeInstances",
        "SendCommand",
        "CompleteLifecycleAction",
        "DescribeAutoScalingInstances",
        "ListCommands",
    ] {
        for code in [
            "ExpiredToken",
            "ExpiredTokenException",
            "RequestExpired",
            "InvalidClientTokenId",
        ] {
            check(Case {
                faults: vec![Fault::Code(code).on(operation).times(1)],
                did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
                never: &["SendMessage"],
                log: &[("ERROR", &format!("\"aws_code\":\"{code}\" {operation}"))],
                ..case("sqs-termination-hook")
            });
        }
    }
}

/// What is lost on the way back has happened: nothing is done twice that must not be, nothing is called done.
#[test]
fn lc_33_lost_and_garbled_replies() {
    for operation in [
        "SendCommand",
        "RecordLifecycleActionHeartbeat",
        "CompleteLifecycleAction",
        "TerminateInstances",
        "DeleteKeyPair",
        "ReleaseAddress",
        "ChangeMessageVisibility",
    ] {
        for fault in [Fault::LostReply, Fault::Garbled, Fault::Halved] {
            let story = check(Case {
                world: &|w| {
                    w.put_address("eipalloc-1", Some(M1));
                },
                faults: vec![fault.on(operation).nth(1)],
                did: &[
                    "CompleteLifecycleAction M1",
                    "TerminateInstances W1",
                    "ReleaseAddress eipalloc-1",
                    "DeleteKeyPair runner-aa",
                ],
                ..case("sqs-termination-hook")
            });
            // The document is idempotent and locked; a lost reply of SendCommand may still cost a second one, never a third.
            assert!(
                story
                    .aws
                    .calls("SendCommand")
                    .iter()
                    .filter(|c| c.took_effect())
                    .count()
                    <= 2
            );
        }
    }
}
