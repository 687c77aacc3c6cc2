//! A worker of a docker-autoscaler manager lives in an Auto Scaling group of its own, protected from scale-in and
//! without a tag that names its manager. Nothing proves whose it is, so it is never deleted: once no manager of the
//! manager group lives, what is still protected is reported, for a person to look at.

use super::{
    Candidates, Deletions, Evidence, Judgement, Reaper, Trail, Verdict, evidence::stamp,
    rules::unless_kept,
};
use crate::{
    aws::Aws,
    config::Config,
    world::{Listing, Resource, World},
};
use futures_util::{
    FutureExt,
    future::{self, LocalBoxFuture},
};
use std::ops::ControlFlow;

/// Scale-in-protected instances of the groups in `WORKER_GROUPS`.
pub(super) struct WorkerGroups;

impl Reaper for WorkerGroups {
    fn kind(&self) -> &'static str {
        super::WORKER_GROUPS
    }

    fn is_on_by_default(&self) -> bool {
        false
    }

    fn list<'a>(&'a self, _: &'a Aws, _: &'a Config) -> LocalBoxFuture<'a, Listing<Resource>> {
        future::ready(Listing::complete(vec![])).boxed_local()
    }

    fn candidates<'a>(&self, world: &'a World, evidence: &'a Evidence<'_>) -> Candidates<'a> {
        let is_worker_group = |group: &String| {
            let mut worker_groups = evidence.config.worker_groups.values().flatten();
            worker_groups.any(|g| g == group)
        };
        let members = world.members.items.iter();
        let left = members.filter(move |m| m.protected_from_scale_in && is_worker_group(&m.group));
        Box::new(left.map(|member| Resource {
            id: member.id.clone(),
            name: Some(member.group.clone()),
            state: member.lifecycle.clone(),
            created: evidence.instance(&member.id).and_then(|i| i.launched),
            keep: evidence.instance(&member.id).is_some_and(|i| i.keep),
            ..Resource::default()
        }))
    }

    fn judge(&self, worker: &Resource, evidence: &Evidence<'_>) -> Option<Judgement> {
        const RULE: &str = "managers-of-group";
        let trail = Trail::of(worker);
        let group = worker.name.as_ref()?;
        let trail = match unless_kept(trail, evidence) {
            ControlFlow::Continue(trail) => trail,
            ControlFlow::Break(kept) => return Some(kept),
        };
        if !evidence.is_whole() {
            return Some(trail.decide(
                Verdict::Unproven,
                RULE,
                "instances and groups were not read to their end",
            ));
        }
        let managers = evidence
            .config
            .worker_groups
            .iter()
            .filter(|(_, workers)| workers.contains(group));
        if let Some(manager) = managers
            .flat_map(|(managers, _)| evidence.live_managers_of(managers))
            .next()
        {
            return Some(trail.decide(Verdict::Keep, RULE, format!("the manager {manager} lives")));
        }
        match worker.created.and_then(|created| evidence.too_young_until(created)) {
            Some(until) => Some(trail.decide(Verdict::Keep, RULE, format!("no manager lives; too young to report before {}", stamp(until)))),
            None => Some(trail.decide(Verdict::Unproven, RULE, format!("no manager lives, and {group} still protects it from scale-in: a person must look at it"))),
        }
    }

    fn delete<'a>(&'a self, _: &'a Aws, _: &'a [Resource]) -> LocalBoxFuture<'a, Deletions> {
        // No verdict of this kind is an orphan.
        future::ready(vec![]).boxed_local()
    }
}
