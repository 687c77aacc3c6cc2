//! Plans of large worlds.

use super::*;

#[test]
fn more_orphans_than_a_pass_deletes_are_all_to_be_deleted() {
    let aws = healthy();
    for _ in 0..250 {
        aws.world()
            .put_machine_key("old", EXECUTOR, TimeDelta::days(60));
    }
    let ran = run(&aws, "plan");
    assert!(
        ran.flat().contains("250 to be deleted (250 key-pairs)"),
        "{}",
        &ran.out[..600]
    );
    assert!(ran.flat().contains("At most 100 of a kind are deleted in one pass: this takes 3 passes, about a minute each."), "{}", &ran.out[..900]);
}

/// 10,000 instances: eight live managers with their workers, foreign ones, and leftovers of all kinds.
pub fn crowd() -> FakeAws {
    let aws = healthy();
    let mut world = aws.world();
    put_dead_manager(&mut world, M1, minutes(10));
    let managers: Vec<String> = (0..8).map(|n| format!("i-0d{n:015x}")).collect();
    for manager in &managers {
        world.put_manager(GROUP, manager, TimeDelta::hours(3));
    }
    for n in 0..9_988 {
        let owner = match n % 20 {
            0 => M1,
            1 => LONG_GONE,
            _ => &managers[n % managers.len()],
        };
        let worker = Worker::of(owner, &worker_id(n)).age(minutes(100));
        world.put_worker(if n % 20 == 2 {
            worker.tag("team", "x").untagged().without_key()
        } else {
            worker
        });
    }
    for n in 0..100 {
        world.put_address(
            &format!("eipalloc-{n:017}"),
            Some(if n % 2 == 0 { M1 } else { &managers[0] }),
        );
        world.put_spot(
            &format!("sir-{n:08}"),
            "open",
            Some(&machine_name(
                "old",
                EXECUTOR,
                start() - TimeDelta::days(3),
                n,
            )),
            TimeDelta::days(3),
        );
    }
    drop(world);
    aws
}

#[test]
fn ten_thousand_instances_are_planned_in_a_few_calls() {
    let aws = crowd();
    assert!(aws.world().ec2.instances.len() >= 9_990);
    let began = std::time::Instant::now();
    let document = document(&aws);
    println!(
        "planned {} resources in {:?}, {} calls",
        document.resources.len(),
        began.elapsed(),
        aws.all_calls().len()
    );
    assert_eq!(document.counts["workers"]["reap"], 1_000);
    assert_eq!(document.counts["addresses"]["reap"], 50);
    assert_eq!(document.counts["spot-requests"]["reap"], 100);
    assert_eq!(document.truncated, 0);
    assert_eq!(
        document
            .resources
            .iter()
            .filter(|r| r.verdict == "reap")
            .count(),
        document.total("reap")
    );
    assert!(
        aws.calls("DescribeInstances").len() <= 22,
        "one describe a page, and one each for what seems absent and for managers elsewhere, never one a worker"
    );
    assert!(aws.all_calls().len() <= 50, "{}", aws.all_calls().len());
}

#[test]
fn a_reply_stays_below_lambdas_limit_and_says_what_it_left_out() {
    let reply = crowd().run(r#"{"action":"plan"}"#).expect("a reply");
    let bytes = reply.to_string().len();
    assert!(bytes <= 5_100_000, "{bytes}");
    let document: PlanDocument = serde_json::from_value(reply).expect("a plan document");
    assert!(document.truncated > 0);
    assert_eq!(
        document.resources.len() + document.truncated,
        document.totals.values().sum::<usize>()
    );
    let orphans = document
        .resources
        .iter()
        .filter(|r| r.verdict == "reap")
        .count();
    assert_eq!(
        orphans,
        document.total("reap"),
        "orphans come first, so they are all in it"
    );
}
