//! The steps about what a manager left.

use super::{Outcome, Pass, Report};
use crate::{
    act::{self, Results},
    check::check,
    config::Config,
    fault::{Disposition, Fault},
    pace,
    plan::{ReapPlan, plan_reap},
    reap::{Evidence, Judgement, OwnerState, Verdict},
    world::{Time, World},
};

impl Pass<'_> {
    /// Plans, checks and carries out; `drained` = the task's manager ended its jobs before it went.
    pub(super) async fn reap(&self, world: &World, drained: bool) -> Report {
        let (config, now) = (self.config, self.aws.now());
        let plan = plan_reap(
            self.task,
            &Evidence::of(world, self.task, drained, config, now),
        );
        log_plan(&plan, world, config, now);
        if let Err(violation) = check(&plan, world, config, now) {
            tracing::error!(%violation, "nothing is deleted");
            let fault = Fault::stop("check", violation.to_string());
            return Report {
                plan,
                ..Report::new(Outcome::Failed(fault), violation.to_string())
            };
        }
        if !self.writes() {
            let reason = format!("nothing is written: {} would be deleted", plan.deletions());
            let results = Results {
                faults: unread(world, config),
                ..Results::default()
            };
            return Report {
                plan,
                results,
                ..Report::new(Outcome::Done, reason)
            };
        }
        let mut results = act::reap(self.aws, &plan).await;
        results.faults.extend(unread(world, config));
        let (outcome, reason) = self.outcome(&plan, &results, now);
        Report {
            plan,
            results,
            ..Report::new(outcome, reason)
        }
    }

    /// What comes after a reaping pass, given what failed.
    fn outcome(&self, plan: &ReapPlan, results: &Results, now: Time) -> (Outcome, String) {
        let (task, delivery, config) = (self.task, self.delivery, self.config);
        if let Some(fault) = results
            .faults
            .iter()
            .find(|f| f.disposition == Disposition::Retry)
        {
            return (
                Outcome::Again(pace::backoff(task, delivery)),
                format!("not all could be read or deleted: {fault}"),
            );
        }
        let deleted: usize = results.deleted.values().sum();
        if plan.over_limit > 0 && results.effective() == 0 {
            // All that this pass tried is refused or denied. Each pass draws others, so it comes again until each of
            // them had its chance; for hours it would only try the same, and a denial is the same for all.
            let denied = results.faults.first().cloned();
            let draws = 2 * (1 + plan.over_limit.div_ceil(config.max_deletions));
            let drawn_until = pace::SETTLE * i32::try_from(draws).unwrap_or(i32::MAX);
            if denied.is_none() && delivery.age(now) < drawn_until {
                let reason = format!(
                    "EC2 refuses all that was tried, {} wait for the next pass",
                    plan.over_limit
                );
                return (Outcome::Again(pace::SETTLE), reason);
            }
            let reason = format!(
                "nothing that was tried can be deleted; {} left to the next sweep",
                plan.over_limit
            );
            return (denied.map_or(Outcome::Done, Outcome::Failed), reason);
        }
        if results.effective() > 0 {
            let failed = match results.faults.len() {
                0 => String::new(),
                failed => format!("{failed} failed, "),
            };
            let reason = format!(
                "{deleted} deleted, {failed}{} wait for the next pass: another look must find nothing",
                plan.over_limit
            );
            return (Outcome::Again(pace::SETTLE), reason);
        }
        if let Some(look) = plan.next_look {
            let delay =
                pace::whole_seconds(look - now).clamp(pace::SHORTEST_DELAY, pace::LONGEST_DELAY);
            return (
                Outcome::Again(delay),
                "something can't be judged yet".into(),
            );
        }
        match results.faults.first() {
            Some(fault) => (Outcome::Failed(fault.clone()), fault.to_string()),
            None => (Outcome::Done, "nothing is left".into()),
        }
    }
}

/// What could not be read to its end, of all that is judged or protects.
fn unread(world: &World, config: &Config) -> Vec<Fault> {
    let kinds = world
        .resources
        .iter()
        .filter(|(kind, _)| config.kinds.contains(kind))
        .filter_map(|(_, l)| l.fault.clone());
    kinds
        .chain(world.instances.fault.clone())
        .chain(world.members.fault.clone())
        .collect()
}

/// Of what is kept so many lines a pass are logged at INFO: in a large account the rest would cost more than it tells.
const KEPT_LINES: usize = 200;

fn log_plan(plan: &ReapPlan, world: &World, config: &Config, now: Time) {
    let mut kept = 0;
    for (kind, judgement) in &plan.judged {
        kept += usize::from(judgement.verdict.word() == Verdict::Keep.word());
        if judgement.verdict.word() != Verdict::Keep.word() || kept <= KEPT_LINES {
            log_judgement(kind, judgement, now);
        }
        let managed_by = judgement.resource.managed_by.as_deref();
        if let Some(tool) = managed_by.filter(|_| judgement.resource.claimed) {
            tracing::warn!(
                kind,
                id = judgement.resource.id,
                tool,
                "carries EIP_TAG and looks managed by {tool}: EIP_TAG is for addresses that nobody manages"
            );
        }
    }
    if kept > KEPT_LINES {
        tracing::info!(
            not_shown = kept - KEPT_LINES,
            "more is kept; `plan` shows all of it"
        );
    }
    for group in &world.missing_groups {
        tracing::warn!(
            group,
            "there is no such Auto Scaling group: deleted, or misspelt in the configuration"
        );
    }
    for fault in unread(world, config) {
        tracing::error!(aws_code = fault.code, %fault, "not read to its end: what hangs on it is not judged");
    }
    tracing::info!(counts = %serde_json::json!(plan.counts()), over_limit = plan.over_limit, "planned: {} to delete", plan.deletions());
}

fn log_judgement(kind: &str, judgement: &Judgement, now: Time) {
    tracing::info!(
        kind,
        id = judgement.resource.id,
        age_seconds = judgement.born.map(|born| (now - born).num_seconds()),
        owner = judgement.owner,
        owner_state = judgement.owner_state.map(OwnerState::word),
        rule = judgement.rule,
        verdict = judgement.verdict.word(),
        "{}",
        judgement.evidence,
    );
}
