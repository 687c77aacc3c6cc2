//! EC2's Describe calls.

use super::ec2_filters::passes;
use super::paging::{Page, PageFault, checked_size, cut};
use super::wire::{Answer, Body, Refusal, Request, element, iso, optional, refuse, wrap};
use super::world::{Address, Instance, KeyPair, SpotRequest, Tags, World};
use std::collections::BTreeMap;

pub fn tag_set(tags: &Tags) -> String {
    let items: String = tags
        .iter()
        .map(|(key, value)| wrap("item", &(element("key", key) + &element("value", value))))
        .collect();
    if items.is_empty() {
        String::new()
    } else {
        wrap("tagSet", &items)
    }
}

fn page_body(set: &str, page: Page<String>) -> Body {
    Body::Xml(wrap(set, &page.items.concat()) + &optional("nextToken", page.next_token.as_deref()))
}

/// The ids that a request asks for by name must exist; EC2 names the missing ones.
pub fn all_known<T>(
    known: &BTreeMap<String, T>,
    asked: &[String],
    code: &str,
    what: &str,
) -> Result<(), Refusal> {
    let missing: Vec<&str> = asked
        .iter()
        .filter(|id| !known.contains_key(*id))
        .map(String::as_str)
        .collect();
    match missing.as_slice() {
        [] => Ok(()),
        [one] => refuse(code, format!("The {what} ID '{one}' does not exist")),
        several => refuse(
            code,
            format!("The {what} IDs '{}' do not exist", several.join(", ")),
        ),
    }
}

pub fn well_formed_instance_id(id: &str) -> bool {
    id.strip_prefix("i-").is_some_and(|hex| {
        matches!(hex.len(), 8 | 17)
            && hex
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

pub fn all_well_formed(ids: &[String]) -> Result<(), Refusal> {
    match ids.iter().find(|id| !well_formed_instance_id(id)) {
        Some(bad) => refuse(
            "InvalidInstanceID.Malformed",
            format!("Invalid id: \"{bad}\""),
        ),
        None => Ok(()),
    }
}

pub fn describe_instances(world: &mut World, request: &Request, fault: &PageFault) -> Answer {
    let asked = request.list("InstanceId");
    if !asked.is_empty() && request.number("MaxResults").is_some() {
        return refuse(
            "InvalidParameterCombination",
            "The parameter instancesSet cannot be used with the parameter maxResults",
        );
    }
    all_well_formed(&asked)?;
    let size = checked_size(request.number("MaxResults"), 5, 1000, world.page_size)?;
    let seen = world.seen(|ec2| &ec2.instances);
    all_known(&seen, &asked, "InvalidInstanceID.NotFound", "instance")?;
    let mut found = Vec::new();
    for instance in seen.values() {
        if (asked.is_empty() || asked.contains(&instance.id))
            && passes(request, &instance.tags, |name| {
                instance_attribute(instance, name)
            })?
        {
            found.push((instance.id.clone(), instance_xml(instance)));
        }
    }
    let page = cut(found.into_iter(), request.text("NextToken"), size, fault)?;
    Ok(page_body("reservationSet", page))
}

fn instance_attribute<'a>(instance: &'a Instance, name: &str) -> Option<Vec<&'a str>> {
    Some(match name {
        "instance-id" => vec![instance.id.as_str()],
        "instance-state-name" => vec![instance.state.wire().1],
        "key-name" => instance.key_name.as_deref().into_iter().collect(),
        "spot-instance-request-id" => instance.spot_request_id.as_deref().into_iter().collect(),
        _ => return None,
    })
}

fn instance_xml(instance: &Instance) -> String {
    let (code, state) = instance.state.wire();
    let attachment = instance
        .attached
        .map(|at| {
            wrap(
                "attachment",
                &(element("attachTime", iso(at))
                    + &element("deviceIndex", 0)
                    + &element("status", "attached")),
            )
        })
        .filter(|_| !instance.state.is_ending());
    let interfaces = attachment
        .map(|attachment| {
            wrap(
                "networkInterfaceSet",
                &wrap(
                    "item",
                    &(element("networkInterfaceId", interface_of(&instance.id)) + &attachment),
                ),
            )
        })
        .unwrap_or_default();
    let inside = [
        element("instanceId", &instance.id),
        wrap(
            "instanceState",
            &(element("code", code) + &element("name", state)),
        ),
        optional("keyName", instance.key_name.as_deref()),
        element("launchTime", iso(instance.launched)),
        wrap("placement", &element("availabilityZone", &instance.zone)),
        optional("reason", instance.end_reason.as_deref()),
        optional("platform", instance.platform.as_deref()),
        optional("spotInstanceRequestId", instance.spot_request_id.as_deref()),
        interfaces,
        tag_set(&instance.tags),
    ];
    let instance = wrap("instancesSet", &wrap("item", &inside.concat()));
    wrap("item", &(element("reservationId", "r-0feed") + &instance))
}

/// The name of an instance's first network interface.
pub fn interface_of(instance_id: &str) -> String {
    instance_id.replacen("i-", "eni-", 1)
}

pub fn describe_key_pairs(world: &mut World, request: &Request, fault: &PageFault) -> Answer {
    let (ids, names) = (request.list("KeyPairId"), request.list("KeyName"));
    let seen = world.seen(|ec2| &ec2.key_pairs);
    all_known(&seen, &ids, "InvalidKeyPair.NotFound", "key pair")?;
    if let Some(missing) = names
        .iter()
        .find(|name| !seen.values().any(|key| key.name == **name))
    {
        return refuse(
            "InvalidKeyPair.NotFound",
            format!("The key pair '{missing}' does not exist"),
        );
    }
    let mut found = String::new();
    for key in seen.values().filter(|key| !fault.omit.contains(&key.id)) {
        let asked = (ids.is_empty() && names.is_empty())
            || ids.contains(&key.id)
            || names.contains(&key.name);
        let attribute = |name: &str| match name {
            "key-name" => Some(vec![key.name.as_str()]),
            "key-pair-id" => Some(vec![key.id.as_str()]),
            _ => None,
        };
        if asked && passes(request, &key.tags, attribute)? {
            found += &key_pair_xml(key);
        }
    }
    Ok(Body::Xml(wrap("keySet", &found)))
}

fn key_pair_xml(key: &KeyPair) -> String {
    let created = key
        .created
        .map(|at| element("createTime", iso(at)))
        .unwrap_or_default();
    wrap(
        "item",
        &[
            element("keyPairId", &key.id),
            element("keyName", &key.name),
            element("keyType", "rsa"),
            created,
            tag_set(&key.tags),
        ]
        .concat(),
    )
}

pub fn describe_spot_instance_requests(
    world: &mut World,
    request: &Request,
    fault: &PageFault,
) -> Answer {
    let asked = request.list("SpotInstanceRequestId");
    let size = checked_size(request.number("MaxResults"), 5, 1000, world.page_size)?;
    let seen = world.seen(|ec2| &ec2.spot_requests);
    all_known(
        &seen,
        &asked,
        "InvalidSpotInstanceRequestID.NotFound",
        "spot instance request",
    )?;
    let mut found = Vec::new();
    for spot in seen.values() {
        let attribute = |name: &str| match name {
            "state" => Some(vec![spot.state.as_str()]),
            "launch.key-name" => Some(spot.key_name.as_deref().into_iter().collect()),
            "instance-id" => Some(spot.instance_id.as_deref().into_iter().collect()),
            "spot-instance-request-id" => Some(vec![spot.id.as_str()]),
            _ => None,
        };
        if (asked.is_empty() || asked.contains(&spot.id)) && passes(request, &spot.tags, attribute)?
        {
            found.push((spot.id.clone(), spot_request_xml(spot)));
        }
    }
    let page = cut(found.into_iter(), request.text("NextToken"), size, fault)?;
    Ok(page_body("spotInstanceRequestSet", page))
}

fn spot_request_xml(spot: &SpotRequest) -> String {
    let inside = [
        element("spotInstanceRequestId", &spot.id),
        element("state", &spot.state),
        element(
            "type",
            if spot.persistent {
                "persistent"
            } else {
                "one-time"
            },
        ),
        spot.created
            .map(|at| element("createTime", iso(at)))
            .unwrap_or_default(),
        optional("instanceId", spot.instance_id.as_deref()),
        wrap(
            "launchSpecification",
            &optional("keyName", spot.key_name.as_deref()),
        ),
        tag_set(&spot.tags),
    ];
    wrap("item", &inside.concat())
}

pub fn describe_addresses(world: &mut World, request: &Request, fault: &PageFault) -> Answer {
    let asked = request.list("AllocationId");
    let seen = world.seen(|ec2| &ec2.addresses);
    all_known(&seen, &asked, "InvalidAllocationID.NotFound", "allocation")?;
    let mut found = String::new();
    for address in seen
        .values()
        .filter(|address| !fault.omit.contains(&address.allocation_id))
    {
        let attribute = |name: &str| match name {
            "allocation-id" => Some(vec![address.allocation_id.as_str()]),
            "instance-id" => Some(address.instance_id.as_deref().into_iter().collect()),
            "public-ip" => Some(vec![address.public_ip.as_str()]),
            _ => None,
        };
        let wanted = asked.is_empty() || asked.contains(&address.allocation_id);
        if wanted && passes(request, &address.tags, attribute)? {
            found += &address_xml(address);
        }
    }
    Ok(Body::Xml(wrap("addressesSet", &found)))
}

/// Addresses of one documentation network stand for those that a customer brought.
fn pool_of(public_ip: &str) -> &'static str {
    if public_ip.starts_with("203.0.113.") {
        "ipv4pool-ec2-0123456789abcdef0"
    } else {
        "amazon"
    }
}

fn address_xml(address: &Address) -> String {
    let inside = [
        element("allocationId", &address.allocation_id),
        element("publicIp", &address.public_ip),
        element("publicIpv4Pool", pool_of(&address.public_ip)),
        element("domain", "vpc"),
        optional("associationId", address.association_id.as_deref()),
        optional("instanceId", address.instance_id.as_deref()),
        optional(
            "networkInterfaceId",
            address.network_interface_id.as_deref(),
        ),
        element("networkBorderGroup", &address.network_border_group),
        optional("serviceManaged", address.service_managed.as_deref()),
        tag_set(&address.tags),
    ];
    wrap("item", &inside.concat())
}
