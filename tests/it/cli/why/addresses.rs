//! Each rule for addresses.

use super::*;

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
