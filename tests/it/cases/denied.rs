//! What is denied, protected or marked to be kept: it is left and told, and holds nothing else up.

use super::{Case, case, check};
use crate::fake_aws::*;

const W9: &str = "i-0b99bb99bb99bb990";

#[test]
fn lc_53_termination_denied_for_one_id() {
    check(Case {
        faults: vec![Fault::Denied.on("TerminateInstances").naming(W1)],
        did: &["CompleteLifecycleAction M1", "TerminateInstances W2"],
        log: &[
            (
                "ERROR",
                "not deleted W1 TerminateInstances: UnauthorizedOperation",
            ),
            ("INFO", "deleted W2"),
        ],
        // Not retried for itself: at the end a person is told through the dead-letter queue.
        end: &|w| {
            assert_eq!(w.queues[DEAD_LETTER_QUEUE].sent.len(), 1);
            assert_eq!(
                w.queues[DEAD_LETTER_QUEUE].sent[0].attributes["OriginalMessageId"],
                "00000000-0000-4000-8000-000000000001"
            );
        },
        ..case("sqs-termination-hook")
    });
}

#[test]
fn lc_53_one_kind_denied_spares_the_others() {
    let kinds = [
        (
            "DescribeSpotInstanceRequests",
            [
                "TerminateInstances W1",
                "DeleteKeyPair runner-aa",
                "ReleaseAddress eipalloc-1",
            ]
            .as_slice(),
        ),
        (
            "CancelSpotInstanceRequests",
            &[
                "TerminateInstances W1",
                "DeleteKeyPair runner-aa",
                "ReleaseAddress eipalloc-1",
            ],
        ),
        (
            "DescribeKeyPairs",
            &[
                "TerminateInstances W1",
                "CancelSpotInstanceRequests sir-1",
                "ReleaseAddress eipalloc-1",
            ],
        ),
        (
            "DeleteKeyPair",
            &[
                "TerminateInstances W1",
                "CancelSpotInstanceRequests sir-1",
                "ReleaseAddress eipalloc-1",
            ],
        ),
        (
            "DescribeAddresses",
            &[
                "TerminateInstances W1",
                "CancelSpotInstanceRequests sir-1",
                "DeleteKeyPair runner-aa",
            ],
        ),
        (
            "ReleaseAddress",
            &[
                "TerminateInstances W1",
                "CancelSpotInstanceRequests sir-1",
                "DeleteKeyPair runner-aa",
            ],
        ),
        (
            "TerminateInstances",
            &[
                "CancelSpotInstanceRequests sir-1",
                "ReleaseAddress eipalloc-1",
            ],
        ),
        (
            "DescribeAutoScalingGroups",
            &[
                "TerminateInstances W1",
                "CancelSpotInstanceRequests sir-1",
                "ReleaseAddress eipalloc-1",
            ],
        ),
    ];
    for (denied, others) in kinds {
        check(Case {
            world: &|w| {
                w.put_spot("sir-1", "active", None, minutes(60));
                w.ec2.spot_requests.get_mut("sir-1").unwrap().instance_id = Some(W1.into());
                w.instance_mut(W1).spot_request_id = Some("sir-1".into());
                w.put_address("eipalloc-1", Some(M1));
            },
            faults: vec![Fault::Denied.on(denied)],
            did: others,
            log: &[(
                "ERROR",
                &format!("{denied}: UnauthorizedOperation").replace(
                    "DescribeAutoScalingGroups: UnauthorizedOperation",
                    "DescribeAutoScalingGroups: AccessDenied",
                ),
            )],
            end: &|w| assert!(!w.queues[DEAD_LETTER_QUEUE].sent.is_empty()),
            ..case("sqs-termination-hook")
        });
    }
}

/// A worker that EC2 protects holds nothing else up and is not retried for ever.
#[test]
fn lc_53_termination_protection_holds_nothing_up() {
    check(Case {
        world: &|w| drop(w.put_worker(Worker::of(M1, W4).protected())),
        did: &["TerminateInstances W1", "TerminateInstances W2"],
        log: &[(
            "WARN",
            "EC2 refuses to delete it; kept and reported i-0b44bb44bb44bb440 OperationNotPermitted",
        )],
        end: &|w| assert_eq!(w.instance(W4).state, InstanceState::Running),
        ..case("sqs-termination-hook")
    });
}

#[test]
fn lc_64_the_keep_tag_protects_on_every_path() {
    for value in ["true", "false", ""] {
        check(Case {
            world: &|w| {
                w.put_worker(
                    Worker::of(M1, W4)
                        .tag("lifecycle-reaper:keep", value)
                        .spot("sir-4"),
                );
                w.put_worker(
                    Worker::of(LONG_GONE, W8)
                        .tag("lifecycle-reaper:keep", value)
                        .age(minutes(180)),
                );
                w.put_worker(
                    Worker::of(M1, W9)
                        .untagged()
                        .tag("lifecycle-reaper:keep", value)
                        .age(minutes(180)),
                );
            },
            did: &["TerminateInstances W1"],
            never: &[
                "TerminateInstances i-0b44bb44bb44bb440",
                "TerminateInstances W8",
                "TerminateInstances i-0b99bb99bb99bb990",
                "CancelSpotInstanceRequests sir-4",
            ],
            log: &[("INFO", "W8 carries the tag lifecycle-reaper:keep")],
            ..case("sqs-termination-hook")
        });
    }
}

#[test]
fn lc_64_the_keep_tag_protects_every_kind() {
    check(Case {
        world: &|w| {
            let name = w.put_machine_key("cc", EXECUTOR, minutes(3000));
            let id = w.key_id(&name);
            let kept: Tags = [("lifecycle-reaper:keep".to_owned(), "yes".to_owned())].into();
            w.ec2.key_pairs.get_mut(&id).unwrap().tags = kept.clone();
            w.put_spot(
                "sir-1",
                "open",
                Some(&machine_name("cc", EXECUTOR, start() - minutes(300), 1)),
                minutes(300),
            );
            w.ec2.spot_requests.get_mut("sir-1").unwrap().tags = kept.clone();
            w.put_address("eipalloc-1", Some(M1)).tags.extend(kept);
        },
        did: &["TerminateInstances W1"],
        never: &[
            "DeleteKeyPair runner-cc",
            "CancelSpotInstanceRequests",
            "ReleaseAddress",
        ],
        ..case("sqs-termination-hook")
    });
}
