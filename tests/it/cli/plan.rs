//! `plan`: what will be deleted and why must be plain to somebody who never saw it before.

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
fn a_healthy_account_has_nothing_to_delete_and_nothing_in_the_way() {
    let ran = run(&healthy(), "plan");
    assert_eq!(ran.exit, Exit::Good, "{}", ran.err);
    assert!(
        ran.flat()
            .contains("0 to be deleted, 0 not yet decided, 0 kept with an unknown owner, 2 kept."),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("BEFORE MODE=enforce"), "{}", ran.out);
    assert!(!ran.out.contains("TO BE DELETED:"), "{}", ran.out);
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
fn orphans_come_first() {
    let document = document(&leftovers());
    let order: Vec<&str> = document
        .resources
        .iter()
        .map(|r| r.verdict.as_str())
        .collect();
    let rank = |verdict: &str| {
        ["reap", "defer", "unknown", "keep"]
            .iter()
            .position(|v| *v == verdict)
    };
    assert!(
        order.windows(2).all(|pair| rank(pair[0]) <= rank(pair[1])),
        "{order:?}"
    );
    let out = run(&leftovers(), "plan").out;
    let at = |heading: &str| {
        out.find(heading)
            .unwrap_or_else(|| panic!("no {heading:?} in {out}"))
    };
    assert!(at("TO BE DELETED: ") < at("NOT YET DECIDED: "));
    assert!(at("NOT YET DECIDED: ") < at("KEPT, OWNER UNKNOWN: "));
    assert!(at("KEPT, OWNER UNKNOWN: ") < at("KEPT: "));
}

/// What stands between two headings.
fn section<'a>(out: &'a str, from: &str, to: &str) -> &'a str {
    let rest = &out[out.find(from).expect("the heading")..];
    &rest[..rest.find(to).expect("the next heading")]
}

#[test]
fn a_reader_who_never_saw_it_can_tell_what_will_be_deleted_and_why() {
    let out = run(&leftovers(), "plan").out;
    let deleted = flat(section(&out, "TO BE DELETED: ", "NOT YET DECIDED: "));
    for (what, why) in [
        (W1, format!("its manager {M1} is terminated")),
        (
            W2,
            format!("its manager {LONG_GONE} is absent, and it is older than the grace period"),
        ),
        (
            "sir-worker01",
            format!("as its instance {W1}: its manager {M1} is terminated"),
        ),
        (
            "eipalloc-00000000000000001",
            format!("its manager {M1} is terminated"),
        ),
        (
            "sir-opened01",
            format!(
                "older than every live manager (the oldest is {M2}, born 2025-03-04 04:06:08Z)"
            ),
        ),
    ] {
        let at = deleted
            .find(what)
            .unwrap_or_else(|| panic!("{what} isn't listed as to be deleted:\n{out}"));
        assert!(deleted[at..].contains(&why), "{what}: {why}\n{out}");
    }
    for kept in [W3, W8, YOUNG, "eipalloc-00000000000000002"] {
        let lines = section(&out, "TO BE DELETED: ", "NOT YET DECIDED: ").lines();
        assert!(
            lines
                .filter(|l| !l.starts_with(' '))
                .all(|l| !l.contains(kept)),
            "{kept} isn't to be deleted:\n{out}"
        );
    }
    let head = flat(&out[..out.find("TO BE DELETED: ").expect("the heading")]);
    for sentence in [
        "Plan of 2025-03-04 05:06:08Z for eu-west-1: groups ci-linux-asg; executor name ci-linux. Nothing was written.",
        "6 to be deleted (1 addresses, 1 key-pairs, 2 spot-requests, 2 workers), 1 not yet decided, 2 kept with an unknown owner,",
        "the oldest live manager is i-0a22aa22aa22aa220, born 2025-03-04 04:06:08Z",
        "The 1 idle address(es) to be released cost $3.65 a month",
    ] {
        assert!(head.contains(sentence), "{sentence}\n{head}");
    }
    let undecided = flat(section(&out, "NOT YET DECIDED: ", "KEPT, OWNER UNKNOWN: "));
    assert!(undecided.contains("parent-absent: its manager i-0dead0dead0dead00 is absent, but it is too young to tell before 2025-03-04 05:16:08Z"), "{out}");
    assert!(
        flat(&out).contains(&format!(
            "{W1} uses it and is running: that worker is to be deleted, and this after it"
        )),
        "{out}"
    );
    assert!(
        flat(&out).contains("KEPT: in use, protected, or somebody else's"),
        "{out}"
    );
    assert!(
        flat(&out).contains("carries the tag lifecycle-reaper:keep"),
        "{out}"
    );
}

#[test]
fn the_table_fits_every_terminal() {
    for width in [60, 80, 100, 132, 200] {
        let aws = leftovers();
        {
            let mut world = aws.world();
            let evil = "i-\u{202e}x\u{4e16}\u{754c}e\u{301}".repeat(20);
            world.put_address("eipalloc-00000000000000003", Some(&evil));
        }
        let out = run_in(&aws, "plan", width).out;
        for line in out.lines() {
            assert!(
                line.chars().count() <= width,
                "{} > {width}: {line}",
                line.chars().count()
            );
            assert!(
                line.chars()
                    .all(|c| c == '…' || c.is_ascii_graphic() || c == ' '),
                "{line:?}"
            );
        }
        assert!(out.contains("eipalloc-"), "{out}");
    }
}

#[test]
fn markdown_is_a_table_whose_cells_break_nothing() {
    let aws = leftovers();
    aws.world()
        .put_address("eipalloc-00000000000000003", Some("a|b`c"));
    let out = run(&aws, "plan --format markdown").out;
    let rows: Vec<&str> = out
        .lines()
        .filter(|l| l.starts_with("| ") && !l.starts_with("| kind") && !l.starts_with("| level"))
        .collect();
    let bars = |row: &str| row.replace("\\|", "").matches('|').count();
    assert!(rows.iter().all(|row| bars(row) == 8), "{out}");
    assert!(rows.iter().any(|row| row.contains("a\\|b\\`c")), "{out}");
    assert!(
        out.contains("### TO BE DELETED: the owner is proven gone (6)"),
        "{out}"
    );
    assert!(rows[0].starts_with("| spot-requests | sir-"), "{out}");
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

#[test]
fn what_could_not_be_read_is_said_twice_and_fails() {
    let aws = leftovers();
    aws.inject(Fault::Denied.on("DescribeKeyPairs"));
    let ran = run(&aws, "plan");
    assert_eq!(ran.exit, Exit::Failed);
    assert!(
        ran.flat().contains(
            "NOT WHOLE, because this could not be read: DescribeKeyPairs: UnauthorizedOperation"
        ),
        "{}",
        ran.out
    );
    assert!(
        ran.err.contains("not everything could be read") && ran.err.contains("DescribeKeyPairs"),
        "{}",
        ran.err
    );
    assert!(ran.out.contains(W1), "the rest is shown all the same");
    assert!(!run(&leftovers(), "plan").err.contains("not everything"));
}

#[test]
fn progress_is_told_on_standard_error_while_it_reads() {
    let aws = leftovers();
    aws.world().latency = seconds(3);
    let ran = run(&aws, "plan");
    assert_eq!(ran.exit, Exit::Good, "{}", ran.err);
    assert!(
        ran.err.starts_with("Reading the account in eu-west-1 …\n"),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .lines()
            .filter(|l| l.starts_with("Reading") && l.contains(" s, "))
            .count()
            >= 3,
        "{}",
        ran.err
    );
    assert!(!ran.out.contains("Reading the account"));
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
        aws.calls("DescribeInstances").len() <= 11,
        "one describe a page, never one a worker"
    );
    assert!(aws.all_calls().len() <= 40, "{}", aws.all_calls().len());
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
