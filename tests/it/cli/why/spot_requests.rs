//! Each rule for spot requests.

use super::*;

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
        &["keep-tag"],
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
        &["keep-tag"],
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
