//! Shrinking: a script that breaks a promise is cut down, part by part, as long as the same promise breaks.

use super::mishaps::Mishaps;
use super::play::{Play, Report};
use super::script::{ManagerScript, Script};
use std::time::{Duration, Instant};

/// So long at most: a history takes a fraction of a second, a reader's patience is short.
const PATIENCE: Duration = Duration::from_secs(40);

/// The shortest script found that still breaks `promise`, and how it went.
pub fn shrink(script: Script, promise: u8) -> (Script, Report) {
    let mut best = script;
    let mut report = Play::new(best.clone()).play();
    let begun = Instant::now();
    best = with_listed_faults(best, &report);
    loop {
        let mut shorter = false;
        for candidate in candidates(&best) {
            if begun.elapsed() > PATIENCE {
                return (best, report);
            }
            let replayed = Play::new(candidate.clone()).play();
            if replayed
                .violations
                .iter()
                .any(|violation| violation.promise == promise)
            {
                (best, report, shorter) = (candidate, replayed, true);
                break;
            }
        }
        if !shorter {
            report = Play::new(best.clone()).play();
            return (best, report);
        }
    }
}

/// The same script with the faults that were drawn written down one by one.
fn with_listed_faults(script: Script, report: &Report) -> Script {
    let rates = script.mishaps.rates.clone();
    let listed = Script {
        mishaps: Mishaps {
            rates,
            listed: Some(report.hits.clone()),
        },
        ..script.clone()
    };
    let same = Play::new(listed.clone())
        .play()
        .violations
        .iter()
        .map(|violation| violation.promise)
        .eq(report.violations.iter().map(|violation| violation.promise));
    if same { listed } else { script }
}

/// Everything that can be left out or made simpler, the largest parts first.
fn candidates(script: &Script) -> Vec<Script> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Script)| {
        let mut candidate = script.clone();
        change(&mut candidate);
        if format!("{candidate:?}") != format!("{script:?}") {
            all.push(candidate);
        }
    };
    // A manager's number is part of its name: it is emptied, not removed, unless it is the last.
    add(&|script| drop(script.managers.pop()));
    add(&|script| script.strays.clear());
    add(&|script| script.noise.clear());
    add(&|script| script.rarities.fleets.clear());
    add(&|script| script.rarities.worker_group.clear());
    add(&|script| script.rarities.stranger = None);
    add(&|script| script.rarities.by_hand.clear());
    add(&|script| script.rarities.stale_pages = None);
    add(&|script| script.rarities.trouble = None);
    add(&|script| script.rarities.echo = None);
    add(&|script| script.mishaps.rates.kill = 0.0);
    add(&|script| script.mishaps.rates.freeze = 0.0);
    add(&|script| script.mishaps.rates.lag = 0.0);
    add(&|script| script.mishaps.rates.latency_millis = 0);
    add(&|script| script.mishaps.rates.denied = None);
    add(&|script| script.mishaps.rates.outage = None);
    add(&|script| script.mishaps.rates.fault = 0.0);
    for half in 0..2 {
        add(&|script| halve(script, half));
    }
    for index in 0..script.managers.len() {
        manager_candidates(index, &script.managers[index], &mut add);
    }
    for index in 0..script.strays.len() {
        add(&|script| {
            script.strays.remove(index);
        });
    }
    for index in 0..script.noise.len() {
        add(&|script| {
            script.noise.remove(index);
        });
    }
    add(&|script| script.trigger.skew = 0);
    add(&|script| script.trigger.delay = 0);
    add(&|script| script.trigger.batch_size = 1);
    add(&|script| script.trigger.concurrency = 1);
    add(&|script| script.trigger.visibility = 6 * script.trigger.function_timeout);
    add(&|script| script.settings.page_size = 1000);
    add(&|script| script.settings.max_deletions = 100);
    add(&|script| script.settings.max_receive_count = None);
    add(&|script| script.settings.worker_grace = 0);
    add(&|script| {
        script
            .groups
            .iter_mut()
            .for_each(|group| group.other_hook = None)
    });
    for index in 0..listed(script) {
        add(&|script| forget_fault(script, index));
    }
    all
}

fn manager_candidates(
    index: usize,
    manager: &ManagerScript,
    add: &mut dyn FnMut(&dyn Fn(&mut Script)),
) {
    add(&|script| script.managers[index].workers.clear());
    add(&|script| script.managers[index].addresses.clear());
    add(&|script| script.managers[index].stopped = None);
    add(&|script| script.managers[index].old_command = None);
    add(&|script| script.managers[index].end = None);
    add(&|script| script.managers[index].warm = None);
    add(&|script| script.managers[index].clock = 0);
    add(&|script| script.managers[index].owner_tags = false);
    for worker in 0..manager.workers.len() {
        add(&|script| {
            script.managers[index].workers.remove(worker);
        });
        add(&|script| script.managers[index].workers[worker].spot = None);
    }
    if let Some(end) = manager.end {
        let plain = super::script::End {
            duplicates: 0,
            tells_success: false,
            tells_state: false,
            tells_command: false,
            ..end
        };
        add(&|script| script.managers[index].end = Some(plain));
    }
}

fn listed(script: &Script) -> usize {
    script
        .mishaps
        .listed
        .as_ref()
        .map_or(0, std::collections::BTreeMap::len)
}

/// Leaves out one half of the listed faults.
fn halve(script: &mut Script, half: usize) {
    let Some(listed) = &mut script.mishaps.listed else {
        return;
    };
    let middle = listed.len() / 2;
    let keys: Vec<usize> = listed.keys().copied().collect();
    let gone = if half == 0 {
        &keys[..middle]
    } else {
        &keys[middle..]
    };
    gone.iter().for_each(|key| drop(listed.remove(key)));
}

fn forget_fault(script: &mut Script, index: usize) {
    if let Some(listed) = &mut script.mishaps.listed
        && let Some(key) = listed.keys().nth(index).copied()
    {
        listed.remove(&key);
    }
}
