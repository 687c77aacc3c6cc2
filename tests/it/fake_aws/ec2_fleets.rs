//! EC2 Fleets and spot fleet requests: listed, and deleted with or without their instances.

use super::ec2_reads::tag_set;
use super::paging::{PageFault, cut};
use super::wire::{Answer, Body, Request, element, iso, optional, refuse, wrap};
use super::world::{Fleet, World};

fn is_spot_fleet(fleet: &Fleet) -> bool {
    fleet.id.starts_with("sfr-")
}

pub fn describe_fleets(world: &mut World, request: &Request, fault: &PageFault) -> Answer {
    let size = request
        .number("MaxResults")
        .map_or(world.page_size, |size| world.page_size.min(size as usize));
    let seen = world.seen(|ec2| &ec2.fleets);
    let found: Vec<(String, String)> = seen
        .values()
        .filter(|fleet| !is_spot_fleet(fleet))
        .map(|fleet| {
            let inside = [
                element("fleetId", &fleet.id),
                element("fleetState", &fleet.state),
                element("type", &fleet.kind),
                element("createTime", iso(fleet.created)),
                tag_set(&fleet.tags),
            ];
            (fleet.id.clone(), wrap("item", &inside.concat()))
        })
        .collect();
    let page = cut(found.into_iter(), request.text("NextToken"), size, fault)?;
    Ok(Body::Xml(
        wrap("fleetSet", &page.items.concat()) + &optional("nextToken", page.next_token.as_deref()),
    ))
}

pub fn describe_spot_fleet_requests(
    world: &mut World,
    request: &Request,
    fault: &PageFault,
) -> Answer {
    let size = request
        .number("MaxResults")
        .map_or(world.page_size, |size| world.page_size.min(size as usize));
    let seen = world.seen(|ec2| &ec2.fleets);
    let found: Vec<(String, String)> = seen
        .values()
        .filter(|fleet| is_spot_fleet(fleet))
        .map(|fleet| {
            let specification = wrap(
                "launchSpecifications",
                &wrap("item", &optional("keyName", fleet.key_name.as_deref())),
            );
            let config = specification
                + &element("type", &fleet.kind)
                + &element("iamFleetRole", "arn:aws:iam::123456789012:role/fleet");
            let inside = [
                element("spotFleetRequestId", &fleet.id),
                element("spotFleetRequestState", &fleet.state),
                element("createTime", iso(fleet.created)),
                wrap("spotFleetRequestConfig", &config),
                tag_set(&fleet.tags),
            ];
            (fleet.id.clone(), wrap("item", &inside.concat()))
        })
        .collect();
    let page = cut(found.into_iter(), request.text("NextToken"), size, fault)?;
    Ok(Body::Xml(
        wrap("spotFleetRequestConfigSet", &page.items.concat())
            + &optional("nextToken", page.next_token.as_deref()),
    ))
}

pub fn delete_fleets(world: &mut World, request: &Request) -> Answer {
    end_fleets(
        world,
        request,
        "FleetId",
        (
            "fleetId",
            "successfulFleetDeletionSet",
            "unsuccessfulFleetDeletionSet",
        ),
        "deleted",
    )
}

pub fn cancel_spot_fleet_requests(world: &mut World, request: &Request) -> Answer {
    let sets = (
        "spotFleetRequestId",
        "successfulFleetRequestSet",
        "unsuccessfulFleetRequestSet",
    );
    end_fleets(world, request, "SpotFleetRequestId", sets, "cancelled")
}

/// Both calls answer 200 and name in the reply what didn't work.
fn end_fleets(
    world: &mut World,
    request: &Request,
    list: &str,
    (id_name, good, bad): (&str, &str, &str),
    word: &str,
) -> Answer {
    let ids = request.list(list);
    if ids.is_empty() || request.text("TerminateInstances").is_none() {
        return refuse(
            "MissingParameter",
            format!("The request must contain the parameters {list} and TerminateInstances"),
        );
    }
    let terminate = request.text("TerminateInstances") == Some("true");
    let now = world.now();
    let (mut ended, mut failed) = (String::new(), String::new());
    for id in ids {
        let Some(fleet) = world.ec2.fleets.get_mut(&id) else {
            let error = element(
                "code",
                if word == "deleted" {
                    "fleetIdDoesNotExist"
                } else {
                    "fleetRequestIdDoesNotExist"
                },
            );
            failed += &wrap("item", &(element(id_name, &id) + &wrap("error", &error)));
            continue;
        };
        fleet.state = format!(
            "{word}_{}",
            if terminate { "terminating" } else { "running" }
        );
        ended += &wrap("item", &element(id_name, &id));
        if terminate {
            for instance in fleet.instances.clone() {
                world.end_instance(&instance, now);
            }
        }
    }
    Ok(Body::Xml(wrap(good, &ended) + &wrap(bad, &failed)))
}
