//! Leftovers of months: worked off by one sweep that continues by itself, within EC2's rates.

use super::{
    queue::{Course, deliver_until_done, hook_message, invoke_until_done},
    *,
};
use crate::cli::healthy;
use std::collections::BTreeMap;

/// EC2's token buckets: size, and refill in a second ("Request throttling" in the EC2 user guide).
fn bucket(call: &Call) -> (f64, f64) {
    match call.operation() {
        "CreateTags" | "DeleteTags" => (100.0, 10.0),
        // Neither paged nor filtered.
        "DescribeKeyPairs" | "DescribeAddresses" => (50.0, 10.0),
        operation if operation.starts_with("Describe") => (100.0, 20.0),
        _ => (50.0, 5.0),
    }
}

/// Plays the calls against EC2's buckets; returns the emptiest that each became.
fn emptiest(calls: &[Call]) -> BTreeMap<String, f64> {
    let mut buckets = BTreeMap::<String, (f64, chrono::DateTime<chrono::Utc>)>::new();
    let mut emptiest = BTreeMap::<String, f64>::new();
    let mut take =
        |name: String, at: chrono::DateTime<chrono::Utc>, size: f64, refill: f64, count: f64| {
            let (tokens, since) = buckets.entry(name.clone()).or_insert((size, at));
            *tokens = (*tokens + refill * (at - *since).as_seconds_f64()).min(size) - count;
            *since = at;
            let least = emptiest.entry(name).or_insert(size);
            *least = least.min(*tokens);
        };
    for call in calls
        .iter()
        .filter(|call| call.request.service == Service::Ec2)
    {
        let (size, refill) = bucket(call);
        take(call.operation().into(), call.at, size, refill, 1.0);
        if call.operation() == "TerminateInstances" {
            take(
                "TerminateInstances, by instance".into(),
                call.at,
                1000.0,
                20.0,
                call.request.ids().len() as f64,
            );
        }
    }
    emptiest
}

fn assert_within_rates(aws: &FakeAws) {
    for (what, tokens) in emptiest(&aws.all_calls()) {
        println!("  {what}: {tokens:.1} tokens left at the emptiest");
        assert!(tokens >= 0.0, "{what} would be throttled");
    }
}

fn tell(what: &str, aws: &FakeAws, course: &Course) {
    println!(
        "{what}: {} passes in {} min, {} calls",
        course.invocations,
        course.took.num_minutes(),
        course.calls
    );
    let mut by_operation = BTreeMap::<String, usize>::new();
    for call in aws.all_calls() {
        *by_operation.entry(call.operation().into()).or_default() += 1;
    }
    println!("  {by_operation:?}");
}

#[test]
fn the_rates_would_be_noticed() {
    let aws = healthy();
    let keys: Vec<String> = (0..60)
        .map(|_| {
            aws.world()
                .put_machine_key("old", EXECUTOR, TimeDelta::days(9))
        })
        .collect();
    let ec2 = aws_sdk_ec2::Client::new(&aws.sdk_config());
    for key in keys {
        drive(&aws.clock, ec2.delete_key_pair().key_name(key).send()).expect("deleted");
    }
    assert_eq!(emptiest(&aws.all_calls())["DeleteKeyPair"], -10.0);
}

#[test]
fn leftovers_of_months_are_worked_off_through_the_queue_within_ec2s_rates() {
    let aws = healthy();
    let before = alive(&aws);
    put_leftovers(&aws, 1_000, 4_000, 500, 100);
    assert_eq!(alive(&aws).len(), before.len() + 1_000 + 4_000 + 500 + 100);
    let course = invoke_until_done(&aws, SWEEP);
    tell(
        "4,000 keys, 1,000 workers, 500 spot requests, 100 addresses",
        &aws,
        &course,
    );
    assert_eq!(
        alive(&aws),
        before,
        "everything of the live manager is still there, and nothing else"
    );
    assert!(course.invocations <= 45, "{course:?}");
    assert!(course.took <= TimeDelta::minutes(75), "{course:?}");
    let deletions = aws.calls("DeleteKeyPair").len() + aws.calls("ReleaseAddress").len();
    assert_eq!(deletions, 4_100, "each of them once");
    assert!(
        aws.calls("TerminateInstances").len() + aws.calls("CancelSpotInstanceRequests").len() <= 20
    );
    assert!(
        course.calls <= deletions + 20 + course.invocations * 10,
        "{course:?}"
    );
    assert_within_rates(&aws);
}

#[test]
fn a_sweep_that_is_longer_than_the_queue_allows_leaves_the_rest_to_the_next() {
    let aws = healthy();
    let before = alive(&aws);
    aws.set("MAX_RECEIVE_COUNT", "10");
    put_leftovers(&aws, 0, 1_500, 0, 0);
    let course = invoke_until_done(&aws, SWEEP);
    assert!(course.most_receives <= 10, "{course:?}");
    assert!(aws.world().queues[DEAD_LETTER_QUEUE].sent.is_empty());
    let left = alive(&aws).len() - before.len();
    assert!(left > 0 && left < 1_500, "{left}");
    invoke_until_done(&aws, SWEEP);
    assert_eq!(alive(&aws), before);
}

#[test]
fn protected_workers_by_the_hundred_hold_nothing_up_and_stay_within_the_rates() {
    let aws = healthy();
    put_leftovers(&aws, 150, 250, 0, 0);
    for n in 0..120 {
        aws.world()
            .instance_mut(&worker_id(n))
            .termination_protection = true;
    }
    let course = invoke_until_done(&aws, SWEEP);
    tell("150 workers, 120 of them protected", &aws, &course);
    let instances = alive(&aws)
        .into_iter()
        .filter(|id| id.starts_with("i-0c"))
        .count();
    assert_eq!(instances, 120, "EC2 refuses them, and the others are gone");
    assert!(
        course.invocations <= 6,
        "they are reported, not retried for ever: {course:?}"
    );
    assert_eq!(
        aws.world().ec2.key_pairs.len(),
        121,
        "their keys are in use; the others went"
    );
    assert_within_rates(&aws);
}

#[test]
fn leftovers_that_are_denied_by_the_thousand_end_the_sweep_with_a_failure() {
    let aws = healthy();
    put_leftovers(&aws, 0, 1_000, 0, 3);
    aws.inject(Fault::Denied.on("DeleteKeyPair"));
    let course = invoke_until_done(&aws, SWEEP);
    assert!(course.invocations <= 3, "{course:?}");
    assert!(
        aws.world().ec2.addresses.is_empty(),
        "one denied kind doesn't spare the others"
    );
}

#[test]
fn a_world_of_ten_thousand_instances_is_swept() {
    let aws = crate::cli::crowd();
    let before = alive(&aws).len();
    let course = invoke_until_done(&aws, SWEEP);
    tell("10,000 instances, 1,000 of them orphans", &aws, &course);
    let gone = before - alive(&aws).len();
    // 1,000 workers, their keys, 100 requests and 50 addresses.
    assert_eq!(gone, 2_150);
    assert!(course.invocations <= 16, "{course:?}");
    assert_within_rates(&aws);
}

#[test]
fn scaling_to_zero_each_evening_needs_nothing() {
    let aws = healthy();
    aws.world().end_instance(M2, start());
    aws.world()
        .groups
        .get_mut(GROUP)
        .expect("the group")
        .members
        .clear();
    let foreign = aws
        .world()
        .put_machine_key("aa", "another", TimeDelta::days(9));
    invoke_until_done(&aws, SWEEP);
    assert_eq!(alive(&aws), std::slice::from_ref(&foreign));
    for evening in 0..3 {
        let managers: Vec<String> = (0..3).map(|n| format!("i-0e{evening}{n:014x}")).collect();
        {
            let mut world = aws.world();
            for (n, manager) in managers.iter().enumerate() {
                world.put_manager(GROUP, manager, TimeDelta::hours(10));
                for worker in 0..4 {
                    world.put_worker(
                        Worker::of(manager, &worker_id(evening * 100 + n * 10 + worker))
                            .age(minutes(60)),
                    );
                }
                let address =
                    world.put_address(&format!("eipalloc-{evening}{n:016}"), Some(manager));
                address.instance_id = Some(manager.clone());
                address.association_id = Some("eipassoc-1".into());
            }
            for manager in &managers {
                world.open_hook(GROUP, HOOK, manager, TOKEN);
            }
        }
        let course = deliver_until_done(
            &aws,
            managers
                .iter()
                .map(|m| hook_message(m, aws.now()))
                .collect(),
        );
        tell(&format!("evening {evening}"), &aws, &course);
        assert_eq!(
            alive(&aws),
            std::slice::from_ref(&foreign),
            "evening {evening}"
        );
        assert!(aws.world().groups[GROUP].members.is_empty());
        aws.advance(TimeDelta::hours(14));
    }
    let completed = aws
        .calls("CompleteLifecycleAction")
        .iter()
        .filter(|call| call.took_effect())
        .count();
    assert_eq!(completed, 9, "each hook was completed once");
}
