//! The checker after every pass: what was acknowledged was done, and what was done stayed within bounds.

use super::checker::SKEW;
use super::life::manager_id;
use super::play::{HOOK, MessageKind, Play};
use super::runs::Run;
use super::trigger::Queued;
use super::truth::{Outgoing, Time, Truth, seconds};
use crate::fake_aws::world::World;

impl Play {
    /// A message was acknowledged (or a direct event answered well): it must be done, irrelevant or dead-lettered.
    pub fn check_done(&mut self, kind: &MessageKind, body: &str, run: u64, begun: Time) {
        if self.script.settings.mode_plan {
            return;
        }
        let mut world = self.aws.world();
        let mut truth = self.truth.lock().expect("unpoisoned");
        let buried = truth.buried.contains(body);
        match kind {
            MessageKind::Unreadable if !buried => {
                truth.violate(
                    4,
                    &mut world,
                    format!("run {run} acknowledges an unreadable message that is nowhere"),
                );
            }
            MessageKind::Terminate(number) | MessageKind::Reap(number) => {
                let carried_on = self.queue.iter().any(|message| message.kind == *kind);
                if buried
                    && truth_hook_waits(&world, &truth, *number)
                    && self.script.mishaps.rates.denied.is_none()
                {
                    truth.violate(
                        4,
                        &mut world,
                        format!(
                            "run {run} buries the message of manager {number}, whose hook waits"
                        ),
                    );
                }
                // A person may still put right what is denied, until the deadline.
                let limit = self.script.settings.limit();
                let early = open_since(&world, &truth, *number).is_some_and(|opened| {
                    world.now() < opened + seconds(limit - 60.min(limit / 10) - SKEW)
                });
                if buried && early && self.script.settings.max_receive_count != Some(12) {
                    let what = format!(
                        "run {run} buries the message of manager {number} before the deadline"
                    );
                    truth.violate(4, &mut world, what);
                }
                if !buried && !carried_on {
                    for problem in self.undone(&world, &truth, *number, body, begun) {
                        truth.violate(
                            4,
                            &mut world,
                            format!("run {run} acknowledges {kind:?}, and {problem}"),
                        );
                    }
                }
            }
            _ => {}
        }
    }

    /// What is still to be done for one manager.
    fn undone(
        &self,
        world: &World,
        truth: &Truth,
        number: usize,
        body: &str,
        begun: Time,
    ) -> Vec<String> {
        let id = manager_id(number);
        // What a person asks for is no hook's message.
        let by_hand = body.contains("\"action\"");
        if !by_hand && truth_hook_waits(world, truth, number) {
            return vec!["its hook still waits".into()];
        }
        // What ends in its pool has a message of its own.
        if body.contains("\"Destination\":\"WarmPool\"") {
            return vec![];
        }
        if truth.lives(world, number) {
            return vec![format!("{id} still lives")];
        }
        // What a lagging read hides, or what appears later, is the sweep's; so is a kind that is denied.
        let rates = &self.script.mishaps.rates;
        let is_stale = rates.lag > 0.0 || self.script.rarities.stale_pages.is_some();
        if is_stale || rates.denied.is_some() {
            return vec![];
        }
        // One that EC2 refuses to end may have used up the deletions of a pass; the rest is the sweep's then.
        let crowded_out = world
            .ec2
            .instances
            .values()
            .any(|worker| worker.termination_protection)
            && self.script.settings.max_deletions < 100;
        if crowded_out {
            return vec![];
        }
        let ended = world
            .ec2
            .instances
            .get(&id)
            .and_then(|manager| manager.ended);
        let left = world.ec2.instances.values().filter(|worker| {
            let tagged = worker.tags.get("gitlab-runner-parent-id") == Some(&id);
            let late = ended.is_some_and(|ended| worker.launched + seconds(120) > ended)
                || worker.launched + seconds(120) > world.now();
            tagged
                && !late
                && !worker.state.is_ending()
                && !worker.termination_protection
                && truth
                    .thing(world, &worker.id)
                    .is_some_and(|thing| !thing.kept)
        });
        left.map(|worker| format!("its worker {} still runs", worker.id))
            .chain(self.left_by(world, truth, number, begun))
            .collect()
    }

    /// The function put a message on the dead-letter queue: it must be one that nobody can read, or one that a person
    /// must look at.
    pub fn check_burial(&mut self, message: &Outgoing) {
        let queued = self.queue.iter().find(|queued| queued.body == message.body);
        let kind = queued.map(|queued| &queued.kind);
        let kind = kind.or_else(|| self.asked.get(&message.body)).cloned();
        let no_group_is_missing = {
            let world = self.aws.world();
            let mut groups = self.script.groups.iter();
            groups.all(|group| world.groups.contains_key(&group.name))
        };
        let needs_nobody = self.script.mishaps.rates.denied.is_none() && no_group_is_missing;
        if needs_nobody
            && kind
                .as_ref()
                .is_some_and(|kind| *kind != MessageKind::Unreadable)
        {
            let what = format!(
                "run {} buries {kind:?}, and no person is needed",
                message.run
            );
            self.violate(4, what);
        }
    }

    /// The queue gave up on a message.
    pub fn check_given_up(&mut self, message: &Queued) {
        let MessageKind::Terminate(number) = message.kind else {
            return;
        };
        let mut world = self.aws.world();
        let mut truth = self.truth.lock().expect("unpoisoned");
        // A run that was killed or hit had no chance to settle it.
        let fair = self.script.mishaps.are_none()
            && self.script.trigger.visibility > self.script.trigger.function_timeout;
        if fair && !self.script.settings.mode_plan && truth_hook_waits(&world, &truth, number) {
            truth.violate(4, &mut world, format!("the message of manager {number} falls into the dead-letter queue while its hook waits"));
        }
    }

    /// One describe per page and pass, never one per worker.
    pub fn check_bounds(&mut self, run: &Run) {
        let mut world = self.aws.world();
        let mut truth = self.truth.lock().expect("unpoisoned");
        let Some(calls) = truth.calls.remove(&run.number) else {
            return;
        };
        if truth.disturbed.contains(&run.number) {
            return;
        }
        let most = run.records.len().max(1) * self.script.settings.max_deletions;
        for (operation, ids) in truth.deleted.remove(&run.number).unwrap_or_default() {
            if ids.len() > most {
                let count = ids.len();
                let what = format!(
                    "run {} deletes {count} by {operation}; {most} are the bound",
                    run.number
                );
                truth.violate(6, &mut world, what);
            }
        }
        let members = world.groups.values().map(|group| group.members.len()).sum();
        let tasks = run.records.len().max(1) + run.members.max(members);
        let page_size = world.page_size;
        let pages = |items: usize| items.div_ceil(page_size).max(1);
        for (operation, count) in calls {
            let bound = match operation.as_str() {
                // Twice the whole world (the second look before the writes), and one look a manager.
                "DescribeInstances" => {
                    run.records.len().max(1) * (3 * pages(world.ec2.instances.len() + 4))
                        + 2 * tasks
                }
                "DescribeSpotInstanceRequests" => {
                    run.records.len().max(1) * 3 * pages(world.ec2.spot_requests.len() + 4)
                }
                "DescribeKeyPairs" | "DescribeAddresses" => 3 * run.records.len().max(1),
                "DescribeAutoScalingGroups" => {
                    4 * run.records.len().max(1) * pages(world.groups.len())
                }
                // SSM lists fifty at the most.
                "ListCommands" => {
                    tasks * world.ssm.commands.len().div_ceil(page_size.min(50)).max(1)
                }
                "GetCommandInvocation" => tasks,
                "DescribeAutoScalingInstances" => tasks,
                // A plan by hand looks at the hooks of each group.
                "DescribeLifecycleHooks" => tasks + truth.configured.len(),
                "DescribeScalingActivities" => {
                    let longest = world
                        .groups
                        .values()
                        .map(|group| group.activities.len())
                        .max();
                    2 * tasks * pages(longest.unwrap_or(0))
                }
                "DescribeFleets" | "DescribeSpotFleetRequests" => {
                    run.records.len().max(1) * pages(world.ec2.fleets.len())
                }
                "SendCommand" | "RecordLifecycleActionHeartbeat" => tasks,
                "CompleteLifecycleAction" => 2 * tasks,
                _ => continue,
            };
            if count > bound {
                truth.violate(
                    6,
                    &mut world,
                    format!(
                        "run {} makes {count} calls of {operation}; {bound} are the bound",
                        run.number
                    ),
                );
            }
        }
    }
}

fn truth_hook_waits(world: &World, truth: &Truth, number: usize) -> bool {
    open_since(world, truth, number).is_some()
}

/// Since when the hook waits, if it does.
fn open_since(world: &World, truth: &Truth, number: usize) -> Option<Time> {
    let manager = &truth.managers[number];
    let group = world.groups.get(&manager.group)?;
    let action = group.open_action(HOOK, &manager.id)?;
    Some(action.opened)
}
