//! The setting of a play: the world before anything happens, and the function's variables.

use super::neighbours::{MISSPELT, WORKER_GROUP};
use super::play::{HOOK, OTHER_HOOK};
use super::script::{Agent, DrainMode, ManagerScript, Script, Settings};
use super::truth::{Manager, seconds};
use crate::fake_aws::cases::{DEAD_LETTER_QUEUE, DOCUMENT, EXECUTOR, WORK_QUEUE};
use crate::fake_aws::world::{LifecycleHook, World};
use crate::fake_aws::{Clock, FakeAws};
use chrono::TimeDelta;

pub fn managers(script: &Script) -> Vec<Manager> {
    let manager = |(number, manager): (usize, &ManagerScript)| Manager {
        id: super::life::manager_id(number),
        group: script.groups[manager.group].name.clone(),
        born: None,
        closes: None,
        jobs: Vec::new(),
        aborted: manager.agent == Agent::Idle,
        undrained: false,
        ended: None,
        warned_by_spot: false,
        stopped: false,
        was_in_pool: false,
        hasty: 0,
        commands: 0,
        noticed: None,
    };
    script.managers.iter().enumerate().map(manager).collect()
}

pub fn build_world(script: &Script, clock: Clock) -> World {
    let mut world = World::empty(clock);
    let Settings {
        heartbeat,
        global,
        page_size,
        ..
    } = script.settings;
    world.page_size = page_size;
    world.ssm.documents.insert(DOCUMENT.into());
    world.put_queues();
    for group in &script.groups {
        world.put_group(&group.name, HOOK);
        let hooks = &mut world.groups.get_mut(&group.name).expect("just put").hooks;
        let ours = hooks.get_mut(HOOK).expect("just put");
        ours.heartbeat_timeout = seconds(heartbeat);
        ours.global_timeout = seconds(global);
        if group.other_hook.is_some() {
            let theirs = LifecycleHook {
                name: OTHER_HOOK.into(),
                heartbeat_timeout: TimeDelta::hours(2),
                ..ours.clone()
            };
            hooks.insert(OTHER_HOOK.into(), theirs);
        }
    }
    world
}

/// The groups of the configuration: a misspelt one is beside ours.
pub fn configured_groups(script: &Script) -> Vec<String> {
    let ours = script.groups.iter().map(|group| group.name.clone());
    let misspelt = script
        .rarities
        .stranger
        .is_some_and(|stranger| stranger.misspelt);
    ours.chain(misspelt.then(|| MISSPELT.to_owned())).collect()
}

pub fn set_variables(aws: &FakeAws, script: &Script) {
    let settings = &script.settings;
    aws.set("AUTO_SCALING_GROUPS", &configured_groups(script).join(","));
    let (rarities, mut kinds) = (
        &script.rarities,
        vec!["workers", "spot-requests", "key-pairs", "addresses"],
    );
    if !rarities.worker_group.is_empty() {
        let pair = format!("{}={WORKER_GROUP}", script.groups[0].name);
        aws.set("WORKER_GROUPS", &pair);
    }
    if !rarities.fleets.is_empty() {
        kinds.push("fleets");
        aws.set("REAP", &kinds.join(","));
    }
    if rarities.lists_tokens {
        aws.set("RUNNER_TOKENS", "x-9,g-1x");
    }
    aws.set("LIFECYCLE_HOOKS", HOOK);
    aws.set("EXECUTOR_NAME", EXECUTOR);
    aws.set(
        "MODE",
        if settings.mode_plan {
            "plan"
        } else {
            "enforce"
        },
    );
    aws.set("WORK_QUEUE_URL", WORK_QUEUE);
    aws.set("DEAD_LETTER_QUEUE_URL", DEAD_LETTER_QUEUE);
    match settings.drain {
        DrainMode::Ssm => aws.set("DRAIN_DOCUMENT", DOCUMENT),
        DrainMode::Observe => aws.set("DRAIN", "observe"),
        DrainMode::Off => aws.set("DRAIN", "off"),
    }
    aws.set("DRAIN_TIMEOUT_SECONDS", &settings.drain_timeout.to_string());
    aws.set("GRACE_SECONDS", &settings.grace.to_string());
    aws.set("WORKER_GRACE_SECONDS", &settings.worker_grace.to_string());
    aws.set("MAX_DELETIONS", &settings.max_deletions.to_string());
    if let Some(count) = settings.max_receive_count {
        aws.set("MAX_RECEIVE_COUNT", &count.to_string());
    }
    if settings.eip_tag {
        aws.set("EIP_TAG", "pool=ci");
    }
}
