//! `why`: for every rule, the decision, the rules before it in order, and the fact that decided.

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
fn a_worker_of_a_manager_that_is_gone() {
    let ran = why(W1, |_, world| drop(world.put_worker(Worker::of(M1, W1))));
    decides(
        &ran,
        "reap",
        "parent-gone",
        &["keep-tag", "key-name"],
        &format!("its manager {M1} is terminated"),
    );
    assert!(
        ran.flat().contains(&format!(
            "workers {W1}, running, 60 min old: TO BE DELETED Owner: {M1}, which is terminated."
        )),
        "{}",
        ran.out
    );
}

#[test]
fn a_worker_of_a_live_manager() {
    let ran = why(W1, |_, world| drop(world.put_worker(Worker::of(M2, W1))));
    decides(
        &ran,
        "keep",
        "parent-lives",
        &["keep-tag", "key-name"],
        &format!("its manager {M2} is running"),
    );
}

#[test]
fn a_worker_of_an_absent_manager() {
    let ran = why(W1, |_, world| {
        drop(world.put_worker(Worker::of(LONG_GONE, W1)))
    });
    decides(
        &ran,
        "reap",
        "parent-absent",
        &["keep-tag", "key-name"],
        "older than the grace period",
    );
    let ran = why(W1, |_, world| {
        drop(world.put_worker(Worker::of(LONG_GONE, W1).age(minutes(5))))
    });
    decides(
        &ran,
        "defer",
        "parent-absent",
        &["keep-tag", "key-name"],
        "too young to tell before 2025-03-04 05:16:08Z",
    );
}

#[test]
fn a_worker_that_is_protected_or_foreign() {
    let ran = why(W1, |_, world| {
        drop(world.put_worker(Worker::of(M1, W1).tag("lifecycle-reaper:keep", "")))
    });
    decides(
        &ran,
        "keep",
        "keep-tag",
        &[],
        "carries the tag lifecycle-reaper:keep",
    );
    let ran = why(W1, |_, world| {
        world.put_worker(Worker::of(M1, W1));
        world.instance_mut(W1).key_name =
            Some(machine_name("aa", FOREIGN, start() - minutes(60), 1));
    });
    decides(
        &ran,
        "keep",
        "foreign-name",
        &["keep-tag"],
        "another executor's",
    );
}

#[test]
fn a_worker_whose_token_or_tag_proves_nothing() {
    let ran = why(W1, |_, world| {
        drop(world.put_worker(Worker::of(M1, W1).untagged().token("a-b")))
    });
    decides(
        &ran,
        "unknown",
        "token",
        &["keep-tag"],
        "RUNNER_TOKENS can say so",
    );
    let ran = why(W1, |_, world| {
        drop(world.put_worker(Worker::of("somebody", W1)))
    });
    decides(
        &ran,
        "unknown",
        "parent-tag",
        &["keep-tag", "key-name"],
        "not an instance id",
    );
}

#[test]
fn a_worker_whose_manager_could_not_be_looked_for() {
    let ran = why(W1, |_, world| {
        world.put_worker(Worker::of(LONG_GONE, W1));
        world
            .rules
            .push(Fault::Denied.on("DescribeAutoScalingGroups"));
    });
    decides(
        &ran,
        "unknown",
        "parent-unknown",
        &["keep-tag", "key-name"],
        "was not seen in what could be read",
    );
}

#[test]
fn a_worker_that_may_finish_its_jobs() {
    let ran = why(W1, |aws, world| {
        aws.set("WORKER_GRACE_SECONDS", "1800");
        world.put_worker(Worker::of(M1, W1));
        world.instance_mut(M1).end_reason = Some("User initiated (2025-03-04 04:56:08 GMT)".into());
    });
    decides(
        &ran,
        "defer",
        "worker-grace",
        &["keep-tag", "key-name"],
        "its jobs may run until 2025-03-04 05:26:08Z",
    );
}

#[test]
fn a_worker_without_a_tag_is_told_by_its_name_and_age() {
    let ran = why(W1, |_, world| {
        drop(world.put_worker(Worker::of(M1, W1).untagged().age(minutes(120))))
    });
    decides(
        &ran,
        "reap",
        "untagged-worker",
        &["keep-tag", "key-name"],
        &format!("older than every live manager (the oldest is {M2}"),
    );
    let ran = why(W1, |_, world| {
        drop(world.put_worker(Worker::of(M1, W1).untagged().age(minutes(30))))
    });
    decides(
        &ran,
        "unknown",
        "untagged-worker",
        &["keep-tag", "key-name"],
        "it may be its own",
    );
}

#[test]
fn a_worker_whose_spot_request_must_go_first() {
    let ran = why(W1, |_, world| {
        world.put_worker(Worker::of(M1, W1).spot(SPOT));
        world
            .rules
            .push(Fault::ServerError.on("DescribeSpotInstanceRequests"));
    });
    decides(
        &ran,
        "defer",
        "spot-request-first",
        &["keep-tag", "key-name"],
        "must be cancelled first",
    );
}

fn why_spot(change: impl FnOnce(&mut World)) -> Ran {
    why(SPOT, |_, world| {
        world.put_spot(SPOT, "open", None, minutes(120));
        change(world);
    })
}

fn spot_owned_by(world: &mut World, owner: &str) {
    let spot = world.ec2.spot_requests.get_mut(SPOT).expect("just put");
    spot.tags
        .insert("lifecycle-reaper:owner".into(), owner.into());
}

#[test]
fn a_spot_request_by_its_instance() {
    let ran = why(SPOT, |_, world| {
        drop(world.put_worker(Worker::of(M1, W1).spot(SPOT)))
    });
    decides(
        &ran,
        "reap",
        "instance",
        &["keep-tag"],
        &format!("as its instance {W1}: its manager {M1} is terminated"),
    );
}

#[test]
fn a_spot_request_by_its_owner() {
    let ran = why_spot(|world| spot_owned_by(world, M1));
    decides(
        &ran,
        "reap",
        "owner-gone",
        &["keep-tag", "instance"],
        &format!("its manager {M1} is terminated"),
    );
    let ran = why_spot(|world| spot_owned_by(world, M2));
    decides(
        &ran,
        "keep",
        "owner-lives",
        &["keep-tag", "instance"],
        &format!("its manager {M2} is running"),
    );
    let ran = why_spot(|world| spot_owned_by(world, LONG_GONE));
    decides(
        &ran,
        "reap",
        "owner-absent",
        &["keep-tag", "instance"],
        &format!("its manager {LONG_GONE} is absent"),
    );
    let ran = why_spot(|world| spot_owned_by(world, "me"));
    decides(
        &ran,
        "unknown",
        "owner-tag",
        &["keep-tag", "instance"],
        "not an instance id",
    );
    let ran = why_spot(|world| {
        spot_owned_by(world, LONG_GONE);
        world
            .rules
            .push(Fault::Denied.on("DescribeAutoScalingGroups"));
    });
    decides(
        &ran,
        "unknown",
        "owner-unknown",
        &["keep-tag", "instance"],
        "was not seen in what could be read",
    );
}

#[test]
fn a_spot_request_by_its_key_name() {
    let named = |token: &'static str| {
        move |world: &mut World| {
            let spot = world.ec2.spot_requests.get_mut(SPOT).expect("just put");
            spot.key_name = Some(machine_name(token, EXECUTOR, start() - minutes(120), 9));
        }
    };
    decides(
        &why_spot(named("aa")),
        "reap",
        "key-name",
        &["keep-tag", "instance"],
        "older than every live manager",
    );
    decides(
        &why_spot(named("a-b")),
        "unknown",
        "token",
        &["keep-tag", "instance"],
        "RUNNER_TOKENS",
    );
}

/// `why` of a key pair that `put` names.
fn why_key(put: impl FnOnce(&mut World) -> String) -> Ran {
    let aws = healthy();
    let name = {
        let mut world = aws.world();
        put_dead_manager(&mut world, M1, minutes(10));
        put(&mut world)
    };
    run(&aws, &format!("why {name}"))
}

#[test]
fn a_key_pair() {
    let ran = why_key(|world| world.put_machine_key("aa", EXECUTOR, minutes(120)));
    decides(
        &ran,
        "reap",
        "unused",
        &["name", "keep-tag", "in-use"],
        "older than every live manager",
    );
    let ran = why_key(|world| world.put_machine_key("aa", EXECUTOR, minutes(30)));
    decides(
        &ran,
        "unknown",
        "age",
        &["name", "keep-tag", "in-use"],
        "it may be its own",
    );
    let ran = why_key(|world| world.put_worker(Worker::of(M2, W1)));
    decides(
        &ran,
        "keep",
        "in-use",
        &["name", "keep-tag"],
        &format!("{W1} uses it and is running"),
    );
    let ran =
        why_key(|world| world.put_worker(Worker::of(M1, W1).state(InstanceState::ShuttingDown)));
    decides(
        &ran,
        "defer",
        "in-use",
        &["name", "keep-tag"],
        "is shutting down",
    );
    let ran = why_key(|world| world.put_machine_key("a-b", EXECUTOR, minutes(120)));
    decides(&ran, "unknown", "token", &[], "RUNNER_TOKENS");
    let ran = why_key(|world| {
        world.ec2.instances.remove(M2);
        world
            .groups
            .get_mut(GROUP)
            .expect("the group")
            .members
            .clear();
        world.put_machine_key("aa", EXECUTOR, minutes(5))
    });
    decides(
        &ran,
        "defer",
        "grace",
        &["name", "keep-tag", "in-use", "owner"],
        "too young to tell before",
    );
    let ran = why_key(|world| {
        world.rules.push(Fault::Denied.on("DescribeInstances"));
        world.put_machine_key("aa", EXECUTOR, minutes(120))
    });
    decides(
        &ran,
        "unknown",
        "users-unknown",
        &["name", "keep-tag"],
        "not read to their end",
    );
}

fn key_tagged(key: &'static str, value: &'static str) -> impl FnOnce(&mut World) -> String {
    move |world| {
        let name = world.put_machine_key("aa", EXECUTOR, minutes(120));
        let id = world.key_id(&name);
        world
            .ec2
            .key_pairs
            .get_mut(&id)
            .expect("just put")
            .tags
            .insert(key.into(), value.into());
        name
    }
}

#[test]
fn a_key_pair_with_tags() {
    decides(
        &why_key(key_tagged("lifecycle-reaper:keep", "x")),
        "keep",
        "keep-tag",
        &["name"],
        "carries the tag",
    );
    decides(
        &why_key(key_tagged("lifecycle-reaper:owner", M2)),
        "keep",
        "owner-lives",
        &["name", "keep-tag", "in-use"],
        "is running",
    );
    decides(
        &why_key(key_tagged("lifecycle-reaper:owner", M1)),
        "reap",
        "unused",
        &["name", "keep-tag", "in-use"],
        "is terminated",
    );
}

fn why_address(owner: Option<&str>, change: impl FnOnce(&FakeAws, &mut Address)) -> Ran {
    why(ADDRESS, |aws, world| {
        change(aws, world.put_address(ADDRESS, owner))
    })
}

fn claimed(aws: &FakeAws, address: &mut Address) {
    aws.set("EIP_TAG", "pool=ci");
    address.tags.insert("pool".into(), "ci".into());
}

fn marked(address: &mut Address, ago: TimeDelta) {
    let at = (start() - ago).timestamp().to_string();
    address
        .tags
        .insert("lifecycle-reaper:unassociated-since".into(), at);
}

#[test]
fn an_address_by_its_owner() {
    decides(
        &why_address(Some(M1), |_, _| {}),
        "reap",
        "owner-gone",
        &["keep-tag", "in-use"],
        &format!("its manager {M1} is terminated"),
    );
    decides(
        &why_address(Some(M2), |_, _| {}),
        "keep",
        "owner-lives",
        &["keep-tag", "in-use"],
        &format!("its manager {M2} is running"),
    );
    decides(
        &why_address(Some("me"), |_, _| {}),
        "unknown",
        "owner-tag",
        &["keep-tag", "in-use"],
        "not an instance id",
    );
    let allocated = |_: &FakeAws, address: &mut Address| {
        let at = (start() - minutes(120)).timestamp().to_string();
        address
            .tags
            .insert("lifecycle-reaper:allocated-at".into(), at);
    };
    decides(
        &why_address(Some(LONG_GONE), allocated),
        "reap",
        "owner-absent",
        &["keep-tag", "in-use"],
        "older than the grace period",
    );
    decides(
        &why_address(Some(LONG_GONE), |_, _| {}),
        "defer",
        "two-looks",
        &["keep-tag", "in-use", "owner-absent"],
        "at the first look",
    );
    let ran = why(ADDRESS, |_, world| {
        world.put_address(ADDRESS, Some(LONG_GONE));
        world
            .rules
            .push(Fault::Denied.on("DescribeAutoScalingGroups"));
    });
    decides(
        &ran,
        "unknown",
        "owner-unknown",
        &["keep-tag", "in-use"],
        "was not seen",
    );
}

#[test]
fn an_address_that_is_bound_or_protected() {
    let associated =
        |_: &FakeAws, address: &mut Address| address.association_id = Some("eipassoc-1".into());
    decides(
        &why_address(Some(M1), associated),
        "keep",
        "in-use",
        &["keep-tag"],
        "associated",
    );
    let managed = |_: &FakeAws, address: &mut Address| address.service_managed = Some("alb".into());
    decides(
        &why_address(Some(M1), managed),
        "keep",
        "in-use",
        &["keep-tag"],
        "a service manages it",
    );
    let kept = |_: &FakeAws, address: &mut Address| {
        drop(
            address
                .tags
                .insert("lifecycle-reaper:keep".into(), "x".into()),
        )
    };
    decides(
        &why_address(Some(M1), kept),
        "keep",
        "keep-tag",
        &[],
        "carries the tag",
    );
}

#[test]
fn an_address_in_two_looks() {
    decides(
        &why_address(None, claimed),
        "defer",
        "two-looks",
        &["keep-tag", "in-use"],
        "at the first look",
    );
    let again = |ago| {
        move |aws: &FakeAws, address: &mut Address| {
            claimed(aws, address);
            marked(address, ago);
        }
    };
    decides(
        &why_address(None, again(minutes(5))),
        "defer",
        "two-looks",
        &["keep-tag", "in-use"],
        "the second look comes at 2025-03-04 05:16:08Z",
    );
    decides(
        &why_address(None, again(minutes(20))),
        "reap",
        "two-looks",
        &["keep-tag", "in-use"],
        "unassociated in two looks, the first at 2025-03-04 04:46:08Z",
    );
}

#[test]
fn an_address_is_found_by_its_ip_and_a_key_pair_by_its_id() {
    let aws = healthy();
    let (ip, key) = {
        let mut world = aws.world();
        put_dead_manager(&mut world, M1, minutes(10));
        let name = world.put_machine_key("aa", EXECUTOR, minutes(120));
        (
            world.put_address(ADDRESS, Some(M1)).public_ip.clone(),
            world.key_id(&name),
        )
    };
    assert!(
        run(&aws, &format!("why {ip}"))
            .flat()
            .contains(&format!("addresses {ADDRESS} ({ip}), not associated"))
    );
    assert!(
        run(&aws, &format!("why {key}"))
            .flat()
            .contains(&format!("({key})"))
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
