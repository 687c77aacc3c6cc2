//! `plan`: what will be deleted and why must be plain to somebody who never saw it before.

mod reading;
mod size;

pub use size::crowd;

use super::*;
use lifecycle_reaper::document::PlanDocument;
use serde_json::{Value, json};

const YOUNG: &str = "i-0b99bb99bb99bb990";

/// A live manager with its worker, and leftovers of each kind of a manager that is gone and of one that is absent.
pub fn leftovers() -> FakeAws {
    let aws = healthy();
    let mut world = aws.world();
    put_dead_manager(&mut world, M1, minutes(10));
    world.put_worker(Worker::of(M1, W1).age(minutes(90)).spot("sir-worker01"));
    world.put_worker(Worker::of(LONG_GONE, W2).age(minutes(300)));
    world.put_worker(
        Worker::of(M1, W8)
            .age(minutes(200))
            .tag("lifecycle-reaper:keep", "until friday"),
    );
    world.put_machine_key("old", EXECUTOR, TimeDelta::days(60));
    world.put_worker(Worker::of(LONG_GONE, YOUNG).age(minutes(5)).without_key());
    world.put_machine_key("young", EXECUTOR, minutes(5));
    world.put_spot(
        "sir-opened01",
        "open",
        Some(&machine_name("old", EXECUTOR, start() - minutes(120), 7)),
        minutes(120),
    );
    world.put_address("eipalloc-00000000000000001", Some(M1));
    world.put_address("eipalloc-00000000000000002", Some("not-an-instance"));
    drop(world);
    aws
}

fn document(aws: &FakeAws) -> PlanDocument {
    serde_json::from_value(run(aws, "plan --format json").json()).expect("a plan document")
}

fn verdict<'a>(document: &'a PlanDocument, id: &str) -> (&'a str, &'a str) {
    let line = document
        .resources
        .iter()
        .find(|r| r.id == id)
        .unwrap_or_else(|| panic!("{id} is not in the plan"));
    (&line.verdict, &line.rule)
}

#[test]
fn each_resource_is_there_with_its_verdict() {
    let aws = leftovers();
    let document = document(&aws);
    assert_eq!(verdict(&document, W1), ("reap", "parent-gone"));
    assert_eq!(verdict(&document, W2), ("reap", "parent-absent"));
    assert_eq!(verdict(&document, YOUNG), ("defer", "parent-absent"));
    assert_eq!(verdict(&document, W3), ("keep", "parent-lives"));
    assert_eq!(verdict(&document, W8), ("keep", "keep-tag"));
    assert_eq!(verdict(&document, "sir-worker01"), ("reap", "instance"));
    assert_eq!(verdict(&document, "sir-opened01"), ("reap", "key-name"));
    assert_eq!(
        verdict(&document, "eipalloc-00000000000000001"),
        ("reap", "owner-gone")
    );
    assert_eq!(
        verdict(&document, "eipalloc-00000000000000002"),
        ("unknown", "owner-tag")
    );
    assert_eq!(
        document.total("reap"),
        6,
        "and the old key: {:?}",
        document.counts
    );
    let managers: Vec<(&str, &str)> = document
        .managers
        .iter()
        .map(|m| (m.id.as_str(), m.state.as_str()))
        .collect();
    assert_eq!(managers, [(M1, "terminated"), (M2, "running")]);
    assert!(document.unread.is_empty());
}

#[test]
fn a_plan_writes_nothing() {
    let aws = leftovers();
    assert_eq!(run(&aws, "plan").exit, Exit::Good, "orphans are no error");
    let written: Vec<String> = aws
        .writes()
        .iter()
        .filter(|call| call.request.text("DryRun") != Some("true"))
        .map(ToString::to_string)
        .collect();
    assert!(written.is_empty(), "{written:?}");
    assert!(aws.calls("SendMessage").is_empty());
}

#[test]
fn the_command_line_and_the_function_answer_with_the_same_plan() {
    let aws = leftovers();
    let reply = aws.run(r#"{"action":"plan"}"#).expect("a reply");
    let printed = run(&aws, "plan --format json").json();
    for key in printed
        .as_object()
        .expect("an object")
        .keys()
        .filter(|key| *key != "findings")
    {
        assert_eq!(reply[key], printed[key], "{key}");
    }
    let of_function: Vec<Value> = reply["findings"].as_array().expect("findings").clone();
    let of_both = printed["findings"].as_array().expect("findings");
    assert!(
        of_function.iter().all(|finding| of_both.contains(finding)),
        "the command line only knows more"
    );
    assert_eq!(reply["outcome"], "Done");
    assert!(
        aws.writes()
            .iter()
            .all(|call| call.request.text("DryRun") == Some("true"))
    );
}

#[test]
fn mode_enforce_makes_no_difference_to_the_functions_plan() {
    let aws = leftovers();
    aws.set("MODE", "enforce");
    let enforce = aws.run(r#"{"action":"plan"}"#).expect("a reply");
    aws.set("MODE", "plan");
    let plan = aws.run(r#"{"action":"plan"}"#).expect("a reply");
    assert_eq!(enforce["resources"], plan["resources"]);
    assert!(aws.writes().is_empty());
}

#[test]
fn a_plan_is_saved_and_read_back_whole() {
    let (aws, file) = (leftovers(), TempFile::named("saved-plan.json"));
    let ran = run(&aws, &format!("plan --save {}", file.path()));
    assert!(
        ran.err.contains(&format!("Saved in {}", file.path())),
        "{}",
        ran.err
    );
    let saved: PlanDocument =
        serde_json::from_str(&std::fs::read_to_string(file.path()).expect("saved"))
            .expect("a plan");
    assert_eq!(saved, document(&aws));
    let from_account = run(&aws, &format!("why {W1}"));
    let from_file = run(&aws, &format!("why {W1} --plan {}", file.path()));
    assert_eq!(from_file.out, from_account.out);
    assert_eq!(from_file.exit, Exit::Good);
    let calls = aws.all_calls().len();
    run(&aws, &format!("why {W1} --plan {}", file.path()));
    assert_eq!(aws.all_calls().len(), calls, "a saved plan needs no AWS");
}

#[test]
fn a_plan_that_cannot_be_saved_is_an_error() {
    let ran = run(&leftovers(), "plan --save /nonexistent/folder/plan.json");
    assert_eq!(ran.exit, Exit::Failed);
    assert!(
        ran.err
            .contains("could not save the plan in /nonexistent/folder/plan.json"),
        "{}",
        ran.err
    );
}

#[test]
fn only_what_has_a_certain_price_is_counted() {
    let cost = |aws: &FakeAws| document(aws).monthly_cost;
    let aws = healthy();
    {
        let mut world = aws.world();
        put_dead_manager(&mut world, M1, minutes(10));
        for n in 1..=3 {
            world.put_address(&format!("eipalloc-{n:017}"), Some(M1));
        }
        world.put_address("eipalloc-00000000000000004", Some(M2));
        world
            .put_address("eipalloc-00000000000000005", Some(M1))
            .public_ip = "203.0.113.5".into();
        world.put_worker(Worker::of(M1, W1));
    }
    assert_eq!(
        (cost(&aws).idle_addresses, cost(&aws).usd),
        (3, 10.95),
        "neither the kept, nor the brought one, nor a worker"
    );
    aws.world().region = "cn-north-1".into();
    for address in aws.world().ec2.addresses.values_mut() {
        address.network_border_group = "cn-north-1".into();
    }
    assert_eq!(cost(&aws).usd, 0.0);
    assert_eq!(cost(&aws).basis, "no price is certain in this Region");
}

#[test]
fn flags_stand_for_variables_and_come_first() {
    let aws = leftovers();
    let json = run(
        &aws,
        "plan --format json --executor-name other --groups a,b --hooks h",
    )
    .json();
    assert_eq!(json["executor_name"], "other");
    assert_eq!(json["groups"], json!(["a", "b"]));
    for name in [
        "AUTO_SCALING_GROUPS",
        "LIFECYCLE_HOOKS",
        "DRAIN_DOCUMENT",
        "EXECUTOR_NAME",
        "MODE",
    ] {
        aws.unset(name);
    }
    aws.set("NAME_EXECUTOR_INSTANCE", "older");
    let json = run(&aws, &format!("plan --format json --groups {GROUP}")).json();
    assert_eq!(json["executor_name"], "older");
    let json = run(
        &aws,
        &format!("plan --format json --groups {GROUP} --executor-name newer"),
    )
    .json();
    assert_eq!(json["executor_name"], "newer");
}

#[test]
fn unusable_settings_are_named_all_at_once_and_nothing_is_asked() {
    let aws = leftovers();
    aws.unset("AUTO_SCALING_GROUPS");
    aws.set("GRACE_SECONDS", "soon");
    let ran = run(&aws, "plan");
    assert_eq!(ran.exit, Exit::Usage);
    assert!(
        ran.err
            .contains("AUTO_SCALING_GROUPS (--groups) is not set"),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .contains("GRACE_SECONDS (--grace-seconds) holds \"soon\""),
        "{}",
        ran.err
    );
    assert!(aws.all_calls().is_empty() && ran.out.is_empty());
}
