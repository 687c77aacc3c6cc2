//! Each rule for workers.

use super::*;

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
        "starter-first",
        &["keep-tag", "key-name"],
        "must go first",
    );
}
