//! The checker at every write: it sees each call at the moment when it takes effect, with the world as it truly is.
//! It shares no code with the function, and believes nothing that the function read.
//!
//! What it can't see: whether a *kept* thing was kept for the right reason (only that it may not be left at rest),
//! and what the log says.

use super::life::manager_id;
use super::script::Script;
use super::truth::{Kind, Outgoing, Owner, Thing, Time, Truth, seconds, targets};
use crate::fake_aws::faults::Witness;
use crate::fake_aws::wire::{Answer, Body};
use crate::fake_aws::world::{Instance, InstanceState, World};
use crate::fake_aws::{Request, Service};
use std::sync::{Arc, Mutex, PoisonError};

/// Clocks may differ by so much.
pub const SKEW: i64 = 10;

/// The tag that names an owner.
pub const OWNER_TAG: &str = "lifecycle-reaper:owner";

/// How the function says that its own second look caught a plan: with a sound planner that never happens.
pub const OWN_REFUSAL: &str = "breaks a promise";

pub struct Checker {
    truth: Arc<Mutex<Truth>>,
    pub script: Script,
}

impl Checker {
    pub fn new(truth: Arc<Mutex<Truth>>, script: &Script, _start: Time) -> Self {
        Self {
            truth,
            script: script.clone(),
        }
    }
}

impl Witness for Checker {
    fn before(&mut self, world: &mut World, request: &Request) {
        let truth = self.truth.clone();
        let mut truth = truth.lock().unwrap_or_else(PoisonError::into_inner);
        let is_read = ["Describe", "Get", "List"]
            .iter()
            .any(|verb| request.operation.starts_with(verb));
        if truth.idle_runs.contains(&world.run) && request.service != Service::Sqs {
            let what = format!("only irrelevant messages, and it calls {request}");
            truth.violate(4, world, what);
        }
        if is_read {
            if request.operation == "DescribeInstances" && request.filters().is_empty() {
                let (run, now) = (world.run, world.now());
                truth.read_instances.entry(run).or_insert(now);
            }
            return;
        }
        let is_queue = matches!(
            request.operation.as_str(),
            "SendMessage" | "ChangeMessageVisibility"
        );
        let is_silent = self.script.settings.mode_plan || truth.silent_runs.contains(&world.run);
        if is_silent && !is_queue {
            truth.violate(
                2,
                world,
                format!("a plan was asked for, and it calls {request}"),
            );
        }
        match request.operation.as_str() {
            "TerminateInstances"
            | "CancelSpotInstanceRequests"
            | "DeleteKeyPair"
            | "ReleaseAddress"
            | "DeleteFleets"
            | "CancelSpotFleetRequests" => self.deletion(&mut truth, world, request),
            "CreateTags" | "DeleteTags" => marking(&mut truth, world, request),
            "RecordLifecycleActionHeartbeat" => self.hook_is_ours(&mut truth, world, request),
            "CompleteLifecycleAction" => self.completion(&mut truth, world, request),
            "SendCommand" => self.command(&mut truth, world, request),
            "SendMessage" | "ChangeMessageVisibility" => {}
            other => truth.violate(
                2,
                world,
                format!("a call that the function has no business with: {other}"),
            ),
        }
    }

    fn after(&mut self, world: &mut World, request: &Request, answer: &Answer) {
        let Ok(body) = answer else { return };
        let mut truth = self.truth.lock().unwrap_or_else(PoisonError::into_inner);
        match request.operation.as_str() {
            "SendMessage" => {
                if request.json["MessageAttributes"]
                    .to_string()
                    .contains(OWN_REFUSAL)
                {
                    truth.violate(
                        0,
                        world,
                        "the function refused its own plan, and buried the message",
                    );
                }
                truth.outbox.push(Outgoing {
                    queue: request.text("QueueUrl").unwrap_or_default().into(),
                    body: request.text("MessageBody").unwrap_or_default().into(),
                    delay: request.number("DelaySeconds").unwrap_or(0),
                    run: world.run,
                });
            }
            "ChangeMessageVisibility" => {
                let receipt = request.text("ReceiptHandle").unwrap_or_default().to_owned();
                truth
                    .visibility
                    .push((receipt, request.number("VisibilityTimeout").unwrap_or(0)));
            }
            "SendCommand" => {
                let Body::Json(json) = body else { return };
                let id = json["Command"]["CommandId"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                let command = world.ssm.commands.last().expect("just sent");
                let starts = command.sent + command.fate.starts_after;
                let instance_id = command.instance_id.clone();
                truth.commands.push((id, instance_id, starts));
            }
            _ => {}
        }
    }
}

impl Checker {
    fn deletion(&self, truth: &mut Truth, world: &mut World, request: &Request) {
        if request.text("TerminateInstances") == Some("true") {
            truth.violate(
                2,
                world,
                format!("{request}: the instances are no fleet's to end"),
            );
        }
        for id in targets(world, request) {
            let of_run = truth.deleted.entry(world.run).or_default();
            let ids = of_run.entry(request.operation.clone()).or_default();
            ids.insert(id.clone());
            if truth.manager_named(&id).is_some() {
                truth.violate(
                    2,
                    world,
                    format!("{} on the manager {id}", request.operation),
                );
                continue;
            }
            // A twin of the pass may have been first: what is gone can't be harmed.
            let Some(thing) = truth.thing(world, &id).filter(|_| is_there(world, &id)) else {
                continue;
            };
            if request.operation == "TerminateInstances" && self.will_return(truth, world, &id) {
                truth.violate(5, world, format!("{id} is terminated while its request or its fleet is active: another will start"));
            }
            if let Some((promise, why)) = self.objection(truth, world, &id, &thing) {
                truth.violate(
                    promise,
                    world,
                    format!("{} on {id}: {why}", request.operation),
                );
            }
        }
    }

    /// Whether a persistent request, which this run could have cancelled before, replaces the instance.
    fn will_return(&self, truth: &Truth, world: &World, id: &str) -> bool {
        let rates = &self.script.mishaps.rates;
        let had_its_chance =
            rates.lag == 0.0 && rates.denied.is_none() && !truth.disturbed.contains(&world.run);
        let request = world
            .ec2
            .instances
            .get(id)
            .and_then(|instance| instance.spot_request_id.as_ref());
        let by_request = request
            .and_then(|request| world.ec2.spot_requests.get(request))
            .is_some_and(|request| request.persistent && request.state == "active");
        let by_fleet = world.ec2.fleets.values().any(|fleet| {
            fleet.kind == "maintain"
                && fleet.state == "active"
                && fleet.instances.iter().any(|instance| instance == id)
                && truth.things.get(&fleet.id).is_some_and(|thing| {
                    let lives =
                        matches!(thing.owner, Owner::Manager(number) if truth.lives(world, number));
                    !thing.kept && !lives
                })
        });
        had_its_chance && (by_request || by_fleet)
    }

    /// Why this thing may not be deleted now.
    fn objection(
        &self,
        truth: &Truth,
        world: &World,
        id: &str,
        thing: &Thing,
    ) -> Option<(u8, String)> {
        let now = world.now();
        match thing.owner {
            Owner::Manager(number)
                if truth.lives(world, number) && !self.is_given_up(truth, world, id, thing) =>
            {
                return Some((
                    1,
                    format!(
                        "it belongs to the live manager {number} = {}",
                        manager_id(number)
                    ),
                ));
            }
            Owner::Foreign => return Some((2, "it is somebody else's".into())),
            Owner::Nobody => return Some((2, "nothing proves whose it is".into())),
            _ => {}
        }
        if thing.kept {
            return Some((2, "it carries the keep tag".into()));
        }
        if let Some(number) = self.undrained_owner(truth, world, id, thing)
            && let Some(ended) = world
                .ec2
                .instances
                .get(&manager_id(number))
                .and_then(told_end)
            && now < ended + seconds(self.script.settings.worker_grace - SKEW)
        {
            return Some((
                2,
                format!("manager {number} died undrained, and the worker grace runs"),
            ));
        }
        let age = now - thing.born;
        if age < seconds(self.script.settings.grace - SKEW)
            && self.rests_on_age(truth, world, id, thing)
        {
            return Some((
                2,
                format!(
                    "it is {} s old: too young to be judged by time or absence",
                    age.num_seconds()
                ),
            ));
        }
        // Where the requests can't be read at all, the key of a dead manager's request is nobody's loss; nor is that of
        // an instance which such a request launched after the run had read the instances, or too lately to show there.
        let blind = self.script.mishaps.rates.denied == Some("DescribeSpotInstanceRequests");
        let read = truth.read_instances.get(&world.run).copied().unwrap_or(now);
        let seen = read - seconds(self.script.mishaps.rates.lag_seconds);
        if thing.kind == Kind::Key
            && if blind {
                used_by_instance(world, id, seen)
            } else {
                used(world, id)
            }
        {
            return Some((
                2,
                "an instance or a spot request still uses this key".into(),
            ));
        }
        None
    }

    /// `EIP_TAG` alone says that an address is ours: free for a grace period, it is nobody's, whoever allocated it.
    fn is_given_up(&self, truth: &Truth, world: &World, id: &str, thing: &Thing) -> bool {
        let grace = seconds(self.script.settings.grace - SKEW);
        let address = world.ec2.addresses.get(id);
        thing.kind == Kind::Address
            && address.is_some_and(|address| !address.tags.contains_key(OWNER_TAG))
            && truth
                .free_since
                .get(id)
                .is_some_and(|since| world.now() - *since >= grace)
    }

    /// The manager that died before the jobs of this worker had ended. A worker without a tag has no job yet.
    fn undrained_owner(
        &self,
        truth: &Truth,
        world: &World,
        id: &str,
        thing: &Thing,
    ) -> Option<usize> {
        let tagged = world
            .ec2
            .instances
            .get(id)?
            .tags
            .contains_key("gitlab-runner-parent-id");
        if thing.kind != Kind::Worker || !tagged {
            return None;
        }
        match thing.owner {
            Owner::Manager(number) if truth.managers[number].undrained => Some(number),
            _ => None,
        }
    }

    /// Whether only time or absence can prove this orphan: no tag names a manager whose end EC2 shows.
    fn rests_on_age(&self, truth: &Truth, world: &World, id: &str, thing: &Thing) -> bool {
        let names_the_dead = |tag: Option<&String>| {
            tag.and_then(|named| truth.manager_named(named))
                .is_some_and(|number| truth.end_is_visible(world, number))
        };
        let parent = |instance: &str| {
            world
                .ec2
                .instances
                .get(instance)
                .and_then(|worker| worker.tags.get("gitlab-runner-parent-id"))
                .cloned()
        };
        match thing.kind {
            // The key of a worker whose manager's end EC2 shows needs no grace either.
            Kind::Key => {
                let key = world.ec2.key_pairs.get(id);
                let name = key.map(|key| &key.name);
                !names_the_dead(key.and_then(|key| key.tags.get(OWNER_TAG)))
                    && !world.ec2.instances.values().any(|worker| {
                        worker.key_name.as_ref() == name
                            && names_the_dead(worker.tags.get("gitlab-runner-parent-id"))
                    })
            }
            Kind::Worker => !names_the_dead(parent(id).as_ref()),
            Kind::Spot => {
                let request = world.ec2.spot_requests.get(id);
                let instance = request.and_then(|request| request.instance_id.clone());
                !names_the_dead(request.and_then(|request| request.tags.get(OWNER_TAG)))
                    && !names_the_dead(instance.and_then(|instance| parent(&instance)).as_ref())
            }
            Kind::Fleet => {
                let fleet = world.ec2.fleets.get(id);
                ![OWNER_TAG, "gitlab-runner-parent-id"]
                    .iter()
                    .any(|tag| names_the_dead(fleet.and_then(|fleet| fleet.tags.get(*tag))))
            }
            Kind::Address => !names_the_dead(
                world
                    .ec2
                    .addresses
                    .get(id)
                    .and_then(|address| address.tags.get(OWNER_TAG)),
            ),
        }
    }
}

/// Whether a deletion of this id would change anything.
fn is_there(world: &World, id: &str) -> bool {
    let ec2 = &world.ec2;
    ec2.instances
        .get(id)
        .is_some_and(|instance| !instance.state.is_ending())
        || ec2.key_pairs.contains_key(id)
        || ec2
            .spot_requests
            .get(id)
            .is_some_and(|request| matches!(request.state.as_str(), "open" | "active"))
        || ec2.addresses.contains_key(id)
        || ec2
            .fleets
            .get(id)
            .is_some_and(|fleet| fleet.state == "active")
}

/// When an instance ended, as far as EC2 tells: while it shuts down everybody can see that it has just ended.
fn told_end(instance: &Instance) -> Option<Time> {
    let told = instance.end_reason.is_some() || instance.state == InstanceState::ShuttingDown;
    instance.ended.filter(|_| told)
}

/// Whether an instance that isn't terminated, or an open spot request, uses the key with this id.
pub fn used(world: &World, key_id: &str) -> bool {
    let Some(key) = world.ec2.key_pairs.get(key_id) else {
        return false;
    };
    let by_request = world
        .ec2
        .spot_requests
        .values()
        .any(|request| request.state == "open" && request.key_name.as_ref() == Some(&key.name));
    by_request || used_by_instance(world, key_id, world.now())
}

/// By an instance that was launched until then.
fn used_by_instance(world: &World, key_id: &str, until: Time) -> bool {
    let Some(key) = world.ec2.key_pairs.get(key_id) else {
        return false;
    };
    world.ec2.instances.values().any(|instance| {
        instance.key_name.as_ref() == Some(&key.name)
            && instance.state != InstanceState::Terminated
            && instance.launched <= until
    })
}

/// The function may mark addresses of ours with its own tag, and nothing else.
fn marking(truth: &mut Truth, world: &mut World, request: &Request) {
    let ours = request.text("Tag.1.Key") == Some("lifecycle-reaper:unassociated-since")
        && request.text("Tag.2.Key").is_none();
    for id in request.ids() {
        let foreign = truth.thing(world, &id).is_none_or(|thing| {
            thing.kind != Kind::Address || matches!(thing.owner, Owner::Foreign)
        });
        if !ours || foreign {
            truth.violate(2, world, format!("{request}: not ours to tag"));
        }
    }
}
