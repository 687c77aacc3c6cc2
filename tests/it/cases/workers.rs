//! Workers: which are terminated, which are not, and that one bad id spares no other.

use super::{Case, Reply, case, check};
use crate::fake_aws::*;

const W5: &str = "i-0b55bb55bb55bb550";

const W6: &str = "i-0b66bb66bb66bb660";

const W7: &str = "i-0b77bb77bb77bb770";

const W9: &str = "i-0b99bb99bb99bb990";

const W10: &str = "i-0ba0bba0bba0bba00";

/// A manager that nothing knows (yet).
const UNSEEN: &str = "i-0e77e77e77e77e770";

fn not_found(ids: &str) -> Fault {
    Fault::CodeAndMessage(
        "InvalidInstanceID.NotFound",
        format!("The instance IDs '{ids}' do not exist"),
    )
}

#[test]
fn lc_06_one_unknown_id_spares_no_other() {
    for unknown in [vec![W9], vec![W9, W10]] {
        let gone: Vec<String> = unknown.iter().map(|id| (*id).to_owned()).collect();
        // The error names only the first of them.
        let faults = unknown
            .iter()
            .map(|id| not_found(id).on("TerminateInstances").naming(id))
            .collect();
        let story = check(Case {
            world: &|w| {
                unknown
                    .iter()
                    .for_each(|id| drop(w.put_worker(Worker::of(M1, id))))
            },
            faults,
            // EC2 stops listing them after a while.
            before: &move |aws, _| {
                if aws.touched(W1, "TerminateInstances") {
                    gone.iter()
                        .for_each(|id| drop(aws.world().ec2.instances.remove(id)));
                }
            },
            did: &["TerminateInstances W1", "TerminateInstances W2"],
            log: &[
                ("WARN", "gone already i-0b99bb99bb99bb990"),
                ("INFO", "deleted W1"),
                ("INFO", "deleted W2"),
            ],
            no_log: &[("INFO", "\"message\":\"deleted\" i-0b99bb99bb99bb990")],
            ..case("sqs-termination-hook")
        });
        assert!(story.aws.calls("TerminateInstances").len() <= 8);
    }
}

/// The whole kind: a bad id anywhere in batches around the size of one call.
#[test]
fn lc_06_wherever_the_bad_id_stands() {
    for (workers, bad) in [
        (1, 0),
        (2, 0),
        (2, 1),
        (3, 1),
        (99, 98),
        (100, 0),
        (101, 100),
        (101, 50),
    ] {
        let id = |n: usize| format!("i-0b{n:015x}");
        let aws = FakeAws::bare_cases();
        aws.set("MAX_DELETIONS", "500");
        {
            let mut world = aws.world();
            (0..workers)
                .for_each(|n| drop(world.put_worker(Worker::of(LONG_GONE, &id(n)).without_key())));
        }
        aws.inject(
            not_found(&id(bad))
                .on("TerminateInstances")
                .naming(&id(bad)),
        );
        aws.run(&super::event("direct-sweep")).expect("safe");
        let terminated = aws.ids_of("TerminateInstances");
        assert_eq!(
            terminated.len(),
            workers - 1,
            "{workers} workers, the {bad}th unknown"
        );
        assert!(!terminated.contains(&id(bad)));
        assert!(
            aws.calls("TerminateInstances").len() <= 2 * 8 + 2,
            "halves, not one by one"
        );
    }
}

#[test]
fn lc_12_a_parent_that_could_not_be_looked_up() {
    let listing = |r: &Request| r.operation == "DescribeInstances" && r.filters().is_empty();
    let second_page =
        |r: &Request| r.operation == "DescribeInstances" && r.text("NextToken").is_some();
    for fault in [
        Fault::Throttled,
        Fault::Refused,
        Fault::ServerError,
        Fault::Garbled,
        Fault::Halved,
        Fault::Code("SomethingNew"),
    ] {
        check(Case {
            faults: vec![fault.everywhere().when(listing).times(5)],
            did: &["TerminateInstances W1", "TerminateInstances W2"],
            never: &["TerminateInstances W3", "DeleteKeyPair runner-bb"],
            log: &[(
                "ERROR",
                "not read to its end: what hangs on it is not judged DescribeInstances",
            )],
            ..case("sqs-termination-hook")
        });
    }
    // Page 2 is missing: M1 is on page 1, M2 is not.
    check(Case {
        world: &|w| w.page_size = 1,
        faults: vec![Fault::Throttled.everywhere().when(second_page).times(5)],
        did: &["TerminateInstances W1", "TerminateInstances W2"],
        never: &["TerminateInstances W3", "DeleteKeyPair runner-bb"],
        log: &[("ERROR", "not read to its end DescribeInstances")],
        ..case("sqs-termination-hook")
    });
    // A page that leads back to itself is not the end of the list.
    for fault in [Fault::RepeatedToken, Fault::EmptyPage] {
        check(Case {
            world: &|w| w.page_size = 2,
            faults: vec![fault.everywhere().when(listing).times(1)],
            did: &["TerminateInstances W1"],
            never: &["TerminateInstances W3", "DeleteKeyPair runner-bb"],
            ..case("sqs-termination-hook")
        });
    }
}

/// Denied: it won't get better by itself. Reported, and at the end in the dead-letter queue with the reason.
#[test]
fn lc_12_a_listing_that_is_denied() {
    check(Case {
        faults: vec![
            Fault::Denied
                .on("DescribeInstances")
                .when(|r| r.filters().is_empty()),
        ],
        never: &["TerminateInstances", "DeleteKeyPair"],
        log: &[(
            "ERROR",
            "outcome: failed, a person must act DescribeInstances UnauthorizedOperation",
        )],
        end: &|w| {
            let sent = &w.queues[DEAD_LETTER_QUEUE].sent;
            assert_eq!(sent.len(), 1);
            assert!(
                sent[0].attributes["Reason"].contains("DescribeInstances: UnauthorizedOperation")
            );
        },
        ..case("sqs-termination-hook")
    });
}

#[test]
fn lc_13_a_fresh_manager_is_not_visible_yet() {
    check(Case {
        world: &|w| {
            w.put_worker(
                Worker::of(UNSEEN, W7)
                    .state(InstanceState::Pending)
                    .age(seconds(15)),
            );
            w.put_worker(Worker::of(LONG_GONE, W8).age(minutes(120)));
        },
        did: &["TerminateInstances W8"],
        never: &["TerminateInstances i-0b77bb77bb77bb770"],
        log: &[("INFO", "i-0b77bb77bb77bb770 too young to tell")],
        ..case("sqs-termination-hook")
    });
}

/// The grace period to the second, and in a sweep, which waits for it.
#[test]
fn lc_13_the_grace_period_to_the_second() {
    for (age, terminated) in [(899, false), (900, true), (901, true)] {
        let aws = FakeAws::bare_cases();
        aws.world()
            .put_worker(Worker::of(UNSEEN, W7).age(seconds(age)).without_key());
        let reply = aws.run(&super::event("direct-sweep")).expect("safe");
        assert_eq!(
            aws.touched(W7, "TerminateInstances"),
            terminated,
            "{age} s old"
        );
        assert_eq!(reply["outcome"], "Again");
    }
}

#[test]
fn lc_19_a_failed_deletion_is_never_called_done() {
    let story = check(Case {
        faults: vec![Fault::Throttled.on("TerminateInstances").times(5)],
        did: &["TerminateInstances W1", "TerminateInstances W2"],
        log: &[
            ("ERROR", "not deleted W1 RequestLimitExceeded"),
            ("INFO", "deleted W1"),
        ],
        ..case("sqs-termination-hook")
    });
    let failed = story
        .log
        .iter()
        .position(|l| l.raw.contains("not deleted") && l.raw.contains(W1))
        .unwrap();
    let done = story
        .log
        .iter()
        .position(|l| l.raw.contains("\"message\":\"deleted\"") && l.raw.contains(W1))
        .unwrap();
    assert!(failed < done);
    assert_eq!(
        story.lines("INFO", &format!("\"message\":\"deleted\" {W1}")),
        1
    );
    // The addresses, which don't hang on the workers, were not held up: the pass that failed listed and judged them.
    let pass = story.aws.calls("TerminateInstances")[0].run;
    assert!(
        story
            .aws
            .calls("DescribeAddresses")
            .iter()
            .any(|c| c.run == pass)
    );
    assert!(
        matches!(&story.deliveries[pass as usize - 1].reply, Ok(r) if r["batchItemFailures"][0].is_object())
    );
}

#[test]
fn lc_30_hundreds_of_workers_and_no_look_up_each() {
    let story = check(Case {
        world: &|w| {
            for n in 0..600_u64 {
                w.put_worker(
                    Worker::of(&format!("i-0dead{:012x}", n % 40), &format!("i-0b{n:015x}"))
                        .without_key(),
                );
            }
            w.latency = chrono::TimeDelta::milliseconds(150);
        },
        config: &[("MAX_DELETIONS", "1000")],
        payload: super::event("direct-sweep"),
        first: Reply::Outcome("Again"),
        ..case("direct-sweep")
    });
    assert_eq!(story.aws.ids_of("TerminateInstances").len(), 600);
    let first: Vec<_> = story
        .aws
        .all_calls()
        .into_iter()
        .filter(|c| c.run == 1)
        .collect();
    let of = |name: &str| first.iter().filter(|c| c.operation() == name).count();
    assert_eq!(
        (of("TerminateInstances"), of("DescribeAutoScalingGroups")),
        (6, 1)
    );
    assert!(
        of("DescribeInstances") <= 4,
        "two pages, one second look at all absent managers, one look at the one that waits"
    );
    assert!(first.len() <= 25, "{} calls", first.len());
    assert!(story.deliveries.iter().all(|d| d.took < seconds(30)));
}

#[test]
fn lc_34_every_state_of_a_worker() {
    check(Case {
        world: &|w| {
            w.instance_mut(W1).state = InstanceState::Stopped;
            w.instance_mut(W2).state = InstanceState::Stopping;
            w.put_worker(Worker::of(M1, W4).state(InstanceState::Pending));
            w.put_worker(Worker::of(M1, W7));
            w.put_worker(Worker::of(M1, W5).state(InstanceState::ShuttingDown));
            w.put_worker(Worker::of(M1, W6).state(InstanceState::Terminated));
        },
        did: &[
            "TerminateInstances W1",
            "TerminateInstances W2",
            "TerminateInstances i-0b44bb44bb44bb440",
            "TerminateInstances i-0b77bb77bb77bb770",
        ],
        never: &[
            "TerminateInstances i-0b55bb55bb55bb550",
            "TerminateInstances i-0b66bb66bb66bb660",
        ],
        times: &[("TerminateInstances", 1)],
        log: &[("INFO", "planned: 4 to delete")],
        ..case("sqs-termination-hook")
    });
}

#[test]
fn lc_52_parent_tags_that_are_no_ids() {
    for odd in [
        "",
        "unknown",
        " ",
        "i-",
        "i-*",
        "*",
        "I-0A11AA11AA11AA110",
        "i-0a11aa11aa11aa110 ",
        "i-0a11aa11aa11aa11g",
        "ïnstance",
    ] {
        check(Case {
            world: &|w| {
                w.put_worker(Worker::of(odd, W5).age(minutes(120)));
                w.put_worker(Worker::of(LONG_GONE, W7).age(minutes(120)));
            },
            did: &[
                "TerminateInstances i-0b77bb77bb77bb770",
                "TerminateInstances W1",
            ],
            never: &["TerminateInstances i-0b55bb55bb55bb550"],
            log: &[(
                "INFO",
                "i-0b55bb55bb55bb550 its parent tag is not an instance id",
            )],
            ..case("sqs-termination-hook")
        });
    }
}
