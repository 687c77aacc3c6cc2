//! docker-autoscaler: workers in a group of their own, protected from scale-in, without a tag that names their manager.
//! While a manager lives nothing is said of them; afterwards what is still protected is reported, and never deleted.

use super::{event, story::Lines};
use crate::fake_aws::*;
use chrono::TimeDelta;
use serde_json::Value;

const WORKERS: &str = "ci-linux-workers";
const PROTECTED: &str = "i-0aaaaaaaaaaaaaaa1";
const UNPROTECTED: &str = "i-0aaaaaaaaaaaaaaa2";

/// A worker group with one protected and one unprotected instance, two hours old.
fn autoscaled() -> FakeAws {
    let aws = FakeAws::cases();
    aws.set("WORKER_GROUPS", &format!("{GROUP}={WORKERS}"));
    {
        let mut world = aws.world();
        world.put_group(WORKERS, "workers-terminate");
        for id in [PROTECTED, UNPROTECTED] {
            world.put_manager(WORKERS, id, TimeDelta::hours(2));
        }
        let workers = world.groups.get_mut(WORKERS).expect("put");
        workers
            .members
            .get_mut(PROTECTED)
            .expect("put")
            .protected_from_scale_in = true;
    }
    aws
}

fn end_managers(aws: &FakeAws) {
    let mut world = aws.world();
    for id in [M1, M2] {
        world.instance_mut(id).state = InstanceState::Terminated;
    }
    let group = world.groups.get_mut(GROUP).expect("managed");
    group.members.clear();
    group.actions.clear();
}

/// Verdict and evidence of the protected worker in the function's own plan, and how many of the kind there are.
fn plan(aws: &FakeAws) -> (usize, Value) {
    let reply = aws.run(&event("direct-plan")).expect("a plan");
    let resources = reply["resources"].as_array().expect("resources").clone();
    let of_kind: Vec<_> = resources
        .into_iter()
        .filter(|r| r["kind"] == "worker-groups")
        .collect();
    (of_kind.len(), of_kind.first().cloned().unwrap_or_default())
}

#[test]
fn while_a_manager_lives_its_worker_group_is_kept() {
    let (count, worker) = plan(&autoscaled());
    assert_eq!(
        (count, &worker["verdict"], &worker["id"]),
        (1, &"keep".into(), &PROTECTED.into())
    );
    assert!(
        worker["evidence"]
            .as_str()
            .expect("words")
            .contains("lives"),
        "{worker}"
    );
}

#[test]
fn when_none_lives_what_is_protected_is_reported_and_never_deleted() {
    let aws = autoscaled();
    end_managers(&aws);
    let (count, worker) = plan(&aws);
    assert_eq!((count, &worker["verdict"]), (1, &"unknown".into()));
    assert!(
        worker["evidence"]
            .as_str()
            .expect("words")
            .contains(WORKERS),
        "{worker}"
    );

    let lines = Lines::default();
    tracing::subscriber::with_default(
        lifecycle_reaper::log::subscriber("info", lines.clone()),
        || {
            for _ in 0..5 {
                aws.run(&event("direct-sweep")).expect("safe");
                aws.advance(minutes(2));
            }
        },
    );
    for id in [PROTECTED, UNPROTECTED] {
        assert!(!aws.touched(id, "TerminateInstances"), "{id}");
    }
    let log = lines.text();
    let said = log
        .lines()
        .any(|line| line.contains(PROTECTED) && line.contains("still protects it"));
    assert!(said, "the log says so");
    let counted = log.lines().any(|line| {
        line.contains("_aws")
            && line.contains("worker-groups")
            && line.contains("\"UnprovenKept\":1")
    });
    assert!(counted, "a metric counts it");
}

#[test]
fn a_young_one_is_not_reported_yet() {
    let aws = autoscaled();
    end_managers(&aws);
    aws.world().instance_mut(PROTECTED).launched = start() - minutes(3);
    let (_, worker) = plan(&aws);
    assert_eq!(worker["verdict"], "keep");
    assert!(
        worker["evidence"]
            .as_str()
            .expect("words")
            .contains("too young"),
        "{worker}"
    );
}

#[test]
fn what_could_not_be_read_is_not_called_left_over() {
    let aws = autoscaled();
    end_managers(&aws);
    aws.inject(Fault::Throttled.on("DescribeAutoScalingGroups").times(10));
    let (count, _) = plan(&aws);
    assert_eq!(count, 0, "nothing was seen, and nothing is said");
}
