//! The planner on arbitrary worlds: nothing of a live owner is ever deleted, what is provable goes, and the second look
//! agrees with every plan and catches every planted violation.

use super::{cases, oracle::Oracle, worlds::*};
use lifecycle_reaper::{
    check::check,
    config::Config,
    names::NameOwner,
    plan::{ReapPlan, Step, plan_reap},
    reap::{ADDRESSES, Evidence, KEY_PAIRS, SPOT_REQUESTS, WORKERS},
    task::{InstanceId, Task, ToldBy},
    world::{Instance, Resource, World},
};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn config(max_deletions: &str) -> Config {
    let vars = [
        ("AUTO_SCALING_GROUPS", GROUPS[0]),
        ("DRAIN", "off"),
        ("EXECUTOR_NAME", "ci"),
        ("MODE", "enforce"),
        ("MAX_DELETIONS", max_deletions),
        ("EIP_TAG", "pool=ci"),
    ];
    Config::from_vars(vars.map(|(k, v)| (k.to_owned(), v.to_owned()))).expect("legal")
}

fn task(number: usize) -> Task {
    match InstanceId::parse(&manager_id(number)) {
        Some(manager) if number < 4 => Task::Reap {
            manager,
            told_by: ToldBy::TerminateSuccessful,
        },
        _ => Task::Sweep { writes: true },
    }
}

fn plan(world: &World, task: &Task, config: &Config) -> ReapPlan {
    plan_reap(task, &Evidence::of(world, task, false, config, now()))
}

fn deletions(plan: &ReapPlan) -> Vec<(&'static str, &Resource)> {
    let all = plan
        .steps
        .iter()
        .flat_map(|(kind, steps)| steps.iter().map(move |s| (*kind, s)));
    all.filter_map(|(kind, step)| match step {
        Step::Delete(resource) => Some((kind, resource)),
        _ => None,
    })
    .collect()
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn nothing_of_a_live_owner_is_deleted_and_the_check_agrees(world in world(), number in 0..6_usize, limit in prop::sample::select(vec!["1", "2", "100"])) {
        let (task, config) = (task(number), config(limit));
        let plan = plan(&world, &task, &config);
        let oracle = Oracle::of(&world);
        for (kind, resource) in deletions(&plan) {
            prop_assert_eq!(oracle.may_go(kind, resource), Ok(()), "{} {:?}", kind, resource);
            prop_assert!(kind == WORKERS || world.resources[kind].fault.is_none(), "{} was not read to its end", kind);
        }
        prop_assert_eq!(check(&plan, &world, &config, now()), Ok(()));
        for (kind, steps) in &plan.steps {
            let count = steps.iter().filter(|s| matches!(s, Step::Delete(_))).count();
            prop_assert!(count <= config.max_deletions, "{} of {}", count, kind);
        }
        // A spot request before its worker: the order of the steps is the order of the kinds.
        let kinds: Vec<_> = plan.steps.iter().map(|(k, _)| *k).collect();
        let at = |kind| kinds.iter().position(|k| *k == kind);
        prop_assert!(at(SPOT_REQUESTS).is_none() || at(SPOT_REQUESTS) < at(WORKERS));
    }

    #[test]
    fn what_ec2_itself_proves_goes(world in world(), number in 0..6_usize) {
        let (task, config) = (task(number), config("100"));
        let plan = plan(&world, &task, &config);
        let deleted: BTreeSet<_> = deletions(&plan).into_iter().map(|(_, r)| r.id.clone()).collect();
        let oracle = Oracle::of(&world);
        let requests_read = world.resources[SPOT_REQUESTS].fault.is_none();
        for worker in world.instances.items.iter().filter(|i| !i.state.is_gone() && requests_read) {
            let name = worker.key_name.as_deref().map(|n| oracle.executor.owner_of(n, &BTreeSet::new()));
            let named_clearly = matches!(name, None | Some(NameOwner::Ours(_) | NameOwner::Unrelated));
            if worker.parent.as_deref().is_some_and(|p| oracle.is_ended(p)) && !worker.keep && !oracle.is_manager(&worker.id) && named_clearly {
                prop_assert!(deleted.contains(&worker.id), "{:?} is left", worker);
            }
        }
        for address in world.resources[ADDRESSES].items.iter().filter(|_| world.resources[ADDRESSES].fault.is_none()) {
            if address.owner.as_deref().is_some_and(|o| oracle.is_ended(o)) && !address.keep && address.bound.is_none() {
                prop_assert!(deleted.contains(&address.id), "{:?} is left", address);
            }
        }
    }

    #[test]
    fn the_check_catches_planted_violations(world in world(), number in 0..6_usize, plant in 0..7_usize, pick in 0..8_usize) {
        let (task, config) = (task(number), config("100"));
        let mut plan = plan(&world, &task, &config);
        let oracle = Oracle::of(&world);
        let planted = (0..7).find_map(|n| planted(&oracle, (plant + n) % 7, pick));
        let (kind, resource) = planted.expect("what was not seen can always be planted");
        let mut judgement = plan.judged.first().map(|(_, j)| j.clone());
        if let Some(judgement) = &mut judgement {
            // Even if the judgement were wrong in the same way.
            judgement.resource = resource.clone();
            judgement.verdict = lifecycle_reaper::reap::Verdict::Orphan;
        }
        plan.judged.extend(judgement.map(|j| (kind, j)));
        plan.steps.push((kind, vec![Step::Delete(resource.clone())]));
        prop_assert!(check(&plan, &world, &config, now()).is_err(), "{} {:?}", kind, resource);
    }

    #[test]
    fn the_check_wants_a_judgement_and_a_limit(world in world()) {
        let (task, config) = (task(9), config("100"));
        let plan = plan(&world, &task, &config);
        for (kind, resource) in deletions(&plan) {
            let unjudged = ReapPlan { steps: vec![(kind, vec![Step::Delete(resource.clone())])], ..ReapPlan::default() };
            prop_assert!(check(&unjudged, &world, &config, now()).is_err());
        }
        let count = plan.steps.iter().map(|(_, s)| s.iter().filter(|s| matches!(s, Step::Delete(_))).count()).max().unwrap_or_default();
        if count > 1 {
            let tight = self::config(&(count - 1).to_string());
            prop_assert!(check(&plan, &world, &tight, now()).is_err());
        }
    }
}

/// Something that must not be deleted, of one kind of violation, if the world has it.
fn planted(oracle: &Oracle<'_>, plant: usize, pick: usize) -> Option<(&'static str, Resource)> {
    let world = oracle.world;
    let of_instance = |i: &Instance| Resource {
        id: i.id.clone(),
        owner: i.parent.clone(),
        key_name: i.key_name.clone(),
        created: i.launched,
        keep: i.keep,
        ..Resource::default()
    };
    let nth = |all: Vec<Resource>| (!all.is_empty()).then(|| all[pick % all.len()].clone());
    let instances = |which: &dyn Fn(&&Instance) -> bool| {
        world
            .instances
            .items
            .iter()
            .filter(which)
            .map(of_instance)
            .collect::<Vec<_>>()
    };
    let listed = |kind, which: &dyn Fn(&&Resource) -> bool| {
        world.resources[kind]
            .items
            .iter()
            .filter(which)
            .cloned()
            .collect::<Vec<_>>()
    };
    let is_live = |owner: &str| oracle.instance(owner).is_some_and(|i| !i.state.is_gone());
    match plant {
        0 => nth(instances(&|i| i.parent.as_deref().is_some_and(is_live))).map(|r| (WORKERS, r)),
        1 => nth(instances(&|i| {
            oracle.is_manager(&i.id) && !i.state.is_gone()
        }))
        .map(|r| (WORKERS, r)),
        2 => nth(instances(&|i| i.keep)).map(|r| (WORKERS, r)),
        3 => Some((
            WORKERS,
            Resource {
                id: format!("i-0f{pick:015x}"),
                ..Resource::default()
            },
        )),
        4 => {
            let used = |k: &&Resource| {
                world
                    .instances
                    .items
                    .iter()
                    .any(|i| !i.state.is_gone() && i.key_name.as_deref() == Some(&k.id))
            };
            nth(listed(KEY_PAIRS, &used)).map(|r| (KEY_PAIRS, r))
        }
        5 => nth(listed(ADDRESSES, &|a| {
            a.bound.is_some() || a.keep || a.owner.as_deref().is_some_and(is_live)
        }))
        .map(|r| (ADDRESSES, r)),
        _ => nth(listed(SPOT_REQUESTS, &|r| {
            r.keep || r.owner.as_deref().is_some_and(is_live)
        }))
        .map(|r| (SPOT_REQUESTS, r)),
    }
}
