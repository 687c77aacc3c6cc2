//! Each rule for key pairs.

use super::*;

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
        "owner-gone",
        &["name", "keep-tag", "in-use"],
        "is terminated",
    );
}
