//! `why`: for every rule, the decision, the rules before it in order, and the fact that decided.

mod addresses;
mod key_pairs;
mod spot_requests;
mod workers;

use super::*;

const FOREIGN: &str = "prod-eu";
const SPOT: &str = "sir-00000001";
const ADDRESS: &str = "eipalloc-00000000000000001";

/// `why id` in a healthy world that was changed.
fn why(id: &str, change: impl FnOnce(&FakeAws, &mut World)) -> Ran {
    let aws = healthy();
    {
        let mut world = aws.world();
        put_dead_manager(&mut world, M1, minutes(10));
        change(&aws, &mut world);
    }
    run(&aws, &format!("why {id}"))
}

/// The decision and the rules before it, as `why` tells them.
fn decides(ran: &Ran, verdict: &str, rule: &str, before: &[&str], fact: &str) {
    assert_eq!(ran.exit, Exit::Good, "{}{}", ran.out, ran.err);
    let flat = ran.flat();
    let mut at = flat
        .find("Rules, in order:")
        .unwrap_or_else(|| panic!("no rules in {}", ran.out));
    for (number, rule) in before.iter().chain([&rule]).enumerate() {
        let step = format!(" {}. {rule}: ", number + 1);
        at += flat[at..]
            .find(&step)
            .unwrap_or_else(|| panic!("no step {step:?} in {}", ran.out));
    }
    let decision = &flat[at..];
    assert!(
        decision.contains(&format!("-> decides: {verdict}")),
        "{}",
        ran.out
    );
    let fact_at = decision
        .find(fact)
        .unwrap_or_else(|| panic!("no {fact:?} in {}", ran.out));
    assert!(
        fact_at < decision.find("-> decides").expect("a decision"),
        "{}",
        ran.out
    );
}

#[test]
fn a_manager_is_never_deleted() {
    let ran = why(M2, |_, _| {});
    assert_eq!(ran.exit, Exit::Good);
    let flat = ran.flat();
    assert!(
        flat.contains(&format!(
            "{M2} is a manager of group {GROUP}: KEPT Its group says InService, EC2 says running;"
        )),
        "{flat}"
    );
    assert!(flat.contains("A manager is never deleted"), "{flat}");
}

#[test]
fn an_unknown_id_is_told_with_what_was_looked_at() {
    let ran = why("i-00000000000000abc", |_, _| {});
    assert_eq!(ran.exit, Exit::PersonNeeded);
    let flat = ran.flat();
    for part in [
        "i-00000000000000abc: not in the plan",
        "1 group-members, 3 instances, 1 key-pairs",
        "EC2 knows no such instance",
        "Groups: ci-linux-asg; executor name: ci-linux.",
    ] {
        assert!(flat.contains(part), "{part}: {flat}");
    }
}

#[test]
fn an_instance_that_is_nobodys_of_ours() {
    let ran = why(W1, |_, world| {
        world.put_worker(Worker::of(M1, W1).untagged());
        world.instance_mut(W1).key_name =
            Some(machine_name("aa", FOREIGN, start() - minutes(60), 1));
    });
    assert_eq!(ran.exit, Exit::PersonNeeded);
    let flat = ran.flat();
    assert!(
        flat.contains(
            "EC2 says: running, in no Auto Scaling group, no tag gitlab-runner-parent-id."
        ),
        "{flat}"
    );
    assert!(
        flat.contains("docker-machine's, for another executor than ci-linux."),
        "{flat}"
    );
}

#[test]
fn a_saved_plan_that_is_none_is_an_error() {
    let file = TempFile::named("no-plan.json");
    std::fs::write(&file.0, "{\"outcome\":\"Ignored\"}").expect("written");
    let ran = run(&healthy(), &format!("why {W1} --plan {}", file.path()));
    assert_eq!(ran.exit, Exit::Failed);
    assert!(
        ran.err.contains("not a plan of this version"),
        "{}",
        ran.err
    );
    let ran = run(
        &healthy(),
        &format!("why {W1} --plan /nonexistent/plan.json"),
    );
    assert_eq!(ran.exit, Exit::Failed);
}

#[test]
fn the_functions_own_reply_can_be_asked_too() {
    let (aws, file) = (super::plan::leftovers(), TempFile::named("reply.json"));
    let reply = aws.run(r#"{"action":"plan"}"#).expect("a reply");
    std::fs::write(&file.0, reply.to_string()).expect("written");
    decides(
        &run(&aws, &format!("why {W1} --plan {}", file.path())),
        "reap",
        "parent-gone",
        &["keep-tag", "key-name"],
        "is terminated",
    );
    let ran = run(
        &aws,
        &format!("why i-00000000000000abc --plan {}", file.path()),
    );
    assert_eq!(ran.exit, Exit::PersonNeeded);
}

#[test]
fn a_manager_that_is_long_gone_is_known_by_what_it_left() {
    let aws = super::plan::leftovers();
    let flat = run(&aws, &format!("why {LONG_GONE}")).flat();
    let told = format!(
        "{LONG_GONE} is named as owner by what is listed; it is absent. Of that: 1 KEPT, 1 NOT YET DECIDED, 1 TO BE DELETED."
    );
    assert!(flat.contains(&told), "{flat}");
    let flat = run(&aws, &format!("why {M2}")).flat();
    assert!(
        flat.contains("is a manager of group") && flat.contains("it is running. Of that: 2 KEPT."),
        "{flat}"
    );
}
