//! EC2's writes: terminate, cancel, delete, release, tag.

use super::ec2_reads::{all_known, all_well_formed};
use super::wire::{Answer, Body, Request, element, refuse, wrap};
use super::world::{Tags, World};

pub fn terminate_instances(world: &mut World, request: &Request) -> Answer {
    let ids = request.list("InstanceId");
    if ids.is_empty() {
        return refuse(
            "MissingParameter",
            "The request must contain the parameter InstanceId",
        );
    }
    all_well_formed(&ids)?;
    all_known(
        &world.ec2.instances,
        &ids,
        "InvalidInstanceID.NotFound",
        "instance",
    )?;
    let protected: Vec<String> = ids
        .iter()
        .filter(|id| world.instance(id).termination_protection)
        .cloned()
        .collect();
    let guarded_zones: Vec<String> = protected
        .iter()
        .map(|id| world.instance(id).zone.clone())
        .collect();
    let now = world.now();
    let mut changes = String::new();
    for id in &ids {
        if guarded_zones.contains(&world.instance(id).zone) {
            continue;
        }
        let (before_code, before) = world.instance(id).state.wire();
        world.end_instance(id, now);
        let (code, after) = world.instance(id).state.wire();
        let state = |code: u8, name: &str| element("code", code) + &element("name", name);
        let change = element("instanceId", id)
            + &wrap("currentState", &state(code, after))
            + &wrap("previousState", &state(before_code, before));
        changes += &wrap("item", &change);
    }
    match protected.first() {
        None => Ok(Body::Xml(wrap("instancesSet", &changes))),
        Some(id) => refuse(
            "OperationNotPermitted",
            format!(
                "The instance '{id}' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again."
            ),
        ),
    }
}

pub fn cancel_spot_instance_requests(world: &mut World, request: &Request) -> Answer {
    let ids = request.list("SpotInstanceRequestId");
    if ids.is_empty() {
        return refuse(
            "MissingParameter",
            "The request must contain the parameter SpotInstanceRequestId",
        );
    }
    all_known(
        &world.ec2.spot_requests,
        &ids,
        "InvalidSpotInstanceRequestID.NotFound",
        "spot instance request",
    )?;
    let mut cancelled = String::new();
    for id in &ids {
        let spot = world.ec2.spot_requests.get_mut(id).expect("known");
        if matches!(spot.state.as_str(), "open" | "active" | "disabled") {
            spot.state = "cancelled".into();
        }
        cancelled += &wrap(
            "item",
            &(element("spotInstanceRequestId", id) + &element("state", &spot.state)),
        );
    }
    Ok(Body::Xml(wrap("spotInstanceRequestSet", &cancelled)))
}

pub fn delete_key_pair(world: &mut World, request: &Request) -> Answer {
    let id = match (request.text("KeyPairId"), request.text("KeyName")) {
        (Some(id), _) => Some(id.to_owned()),
        (None, Some(name)) => world
            .ec2
            .key_pairs
            .values()
            .find(|key| key.name == name)
            .map(|key| key.id.clone()),
        (None, None) => {
            return refuse(
                "MissingParameter",
                "The request must contain the parameter KeyName or KeyPairId",
            );
        }
    };
    // Deleting a key that is not there succeeds.
    if let Some(id) = &id {
        world.ec2.key_pairs.remove(id);
    }
    Ok(Body::Xml(
        element("return", true) + &element("keyPairId", id.unwrap_or_default()),
    ))
}

pub fn release_address(world: &mut World, request: &Request) -> Answer {
    let Some(id) = request.text("AllocationId") else {
        return refuse(
            "InvalidParameterCombination",
            "You must specify an allocation id when releasing a VPC elastic IP address",
        );
    };
    let Some(address) = world.ec2.addresses.get(id) else {
        return refuse(
            "InvalidAllocationID.NotFound",
            format!("The allocation ID '{id}' does not exist"),
        );
    };
    let border_group = request.text("NetworkBorderGroup").unwrap_or(&world.region);
    if address.network_border_group != border_group {
        return refuse(
            "InvalidAddress.NotFound",
            format!("The address was not found in network border group {border_group}"),
        );
    }
    if address.association_id.is_some() {
        return refuse(
            "InvalidIPAddress.InUse",
            format!("Address {} is in use.", address.public_ip),
        );
    }
    if address.service_managed.is_some() {
        return refuse(
            "OperationNotPermitted",
            "The address is managed by a service",
        );
    }
    world.ec2.addresses.remove(id);
    Ok(Body::Xml(element("return", true)))
}

pub fn create_tags(world: &mut World, request: &Request) -> Answer {
    change_tags(world, request, |tags, key, value| {
        tags.insert(key.into(), value.unwrap_or_default().into());
    })
}

pub fn delete_tags(world: &mut World, request: &Request) -> Answer {
    change_tags(world, request, |tags, key, value| {
        // With a value given, only a tag of exactly this value goes.
        if value.is_none_or(|value| tags.get(key).is_some_and(|held| held == value)) {
            tags.remove(key);
        }
    })
}

fn change_tags(
    world: &mut World,
    request: &Request,
    change: impl Fn(&mut Tags, &str, Option<&str>),
) -> Answer {
    let resources = request.list("ResourceId");
    let tags: Vec<(String, Option<String>)> = (1..)
        .map_while(|index| {
            let key = request.text(&format!("Tag.{index}.Key"))?.to_owned();
            Some((
                key,
                request.text(&format!("Tag.{index}.Value")).map(Into::into),
            ))
        })
        .collect();
    if resources.is_empty() || tags.is_empty() {
        return refuse(
            "MissingParameter",
            "The request must contain the parameters ResourceId and Tag",
        );
    }
    if let Some(missing) = resources.iter().find(|id| tags_of(world, id).is_none()) {
        return refuse(
            not_found_code(missing),
            format!("The ID '{missing}' does not exist"),
        );
    }
    for id in &resources {
        let held = tags_of(world, id).expect("known");
        for (key, value) in &tags {
            change(held, key, value.as_deref());
        }
        if held.len() > 50 {
            return refuse("TagLimitExceeded", "More than 50 tags");
        }
    }
    Ok(Body::Xml(element("return", true)))
}

fn tags_of<'a>(world: &'a mut World, id: &str) -> Option<&'a mut Tags> {
    let ec2 = &mut world.ec2;
    match id.split_once('-')?.0 {
        "i" => ec2.instances.get_mut(id).map(|instance| &mut instance.tags),
        "eipalloc" => ec2.addresses.get_mut(id).map(|address| &mut address.tags),
        "key" => ec2.key_pairs.get_mut(id).map(|key| &mut key.tags),
        "sir" => ec2.spot_requests.get_mut(id).map(|spot| &mut spot.tags),
        _ => None,
    }
}

fn not_found_code(id: &str) -> &'static str {
    match id.split_once('-').map(|(prefix, _)| prefix) {
        Some("i") => "InvalidInstanceID.NotFound",
        Some("eipalloc") => "InvalidAllocationID.NotFound",
        Some("key") => "InvalidKeyPair.NotFound",
        Some("sir") => "InvalidSpotInstanceRequestID.NotFound",
        _ => "InvalidID",
    }
}
