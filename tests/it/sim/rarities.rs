//! What only some deployments have: fleets, a worker group, a warm pool, tokens with a dash, owner tags, a manager that
//! no group of ours has, a person who asks by hand, a trouble that lasts. Drawn after the rest and by a stream of its own.

use super::draw::{HOUR, chance, pick};
use super::script::*;
use fastrand::Rng;

/// A token that docker-machine's names can't be told apart by.
const DASHED: &str = "g-1x";

/// A third of the worlds have one rarity or several.
pub fn add(script: &mut Script) {
    let mut rng = Rng::with_seed(script.seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x7a7e);
    let rng = &mut rng;
    for number in 0..script.managers.len() {
        manager(rng, script, number);
    }
    addresses(rng, script);
    let rarities = Rarities {
        fleets: if chance(rng, 0.14) {
            (0..rng.usize(1..=2))
                .map(|_| fleet(rng, script.managers.len()))
                .collect()
        } else {
            Vec::new()
        },
        worker_group: if chance(rng, 0.07) {
            (0..rng.usize(1..=3))
                .map(|_| (rng.i64(0..6 * HOUR), chance(rng, 0.7)))
                .collect()
        } else {
            Vec::new()
        },
        lists_tokens: chance(rng, 0.5),
        stranger: chance(rng, 0.08).then(|| Stranger {
            age: rng.i64(3 * HOUR..30 * HOUR),
            misspelt: chance(rng, 0.4),
        }),
        by_hand: if chance(rng, 0.15) {
            (0..rng.usize(1..=3))
                .map(|_| {
                    let what = match rng.u8(0..4) {
                        0 => ByHand::Sweep,
                        1..=2 => ByHand::Plan,
                        _ => ByHand::Reap(rng.usize(..script.managers.len())),
                    };
                    (rng.i64(300..2 * HOUR), what)
                })
                .collect()
        } else {
            Vec::new()
        },
        stale_pages: None,
        trouble: None,
        echo: None,
    };
    script.rarities = rarities;
    let often = if script.rarities.stranger.is_some() {
        0.5
    } else {
        0.1
    };
    script.rarities.stale_pages =
        (!script.mishaps.are_none() && chance(rng, often)).then(|| rng.u32(2..8));
    for _ in 0..2 {
        if chance(rng, 0.1) {
            script.strays.push(stray(rng));
        }
    }
    if let Some(denied) = script.mishaps.rates.denied.as_mut().filter(|_| rng.bool()) {
        *denied = pick(
            rng,
            &[
                "DescribeScalingActivities",
                "DescribeLifecycleHooks",
                "DescribeFleets",
                "ListCommands",
                "SendCommand",
                "CreateTags",
                "TerminateInstances",
            ],
        );
    }
    troubles(script);
    // Who may not read the activities can't tell a forged message's time from the termination's, and believes it.
    let is_forged = |noise: &Noise| noise.kind == NoiseKind::ForgedTermination;
    let denied = &mut script.mishaps.rates.denied;
    if *denied == Some("DescribeScalingActivities") && script.noise.iter().any(is_forged) {
        *denied = Some("ListCommands");
    }
}

/// Troubles at an end, by a stream of their own once more.
fn troubles(script: &mut Script) {
    let mut rng = Rng::with_seed(script.seed.wrapping_mul(0x94d0_49bb_1331_11eb) ^ 0x7b0b);
    let rng = &mut rng;
    if chance(rng, 0.08) {
        script.rarities.echo = Some(rng.i64(2..10));
    }
    if script.mishaps.are_none() {
        return;
    }
    if script.mishaps.rates.denied.is_none() && chance(rng, 0.04) {
        script.mishaps.rates.denied = Some(pick(
            rng,
            &["CompleteLifecycleAction", "RecordLifecycleActionHeartbeat"],
        ));
    }
    let ended: Vec<(usize, End)> = script
        .managers
        .iter()
        .enumerate()
        .filter_map(|(number, manager)| Some((number, manager.end?)))
        .filter(|(_, end)| end.how == EndKind::ScaleIn)
        .collect();
    if ended.is_empty() || !chance(rng, 0.15) {
        return;
    }
    let (manager, end) = ended[rng.usize(..ended.len())];
    let kind = match rng.u8(0..4) {
        0 => TroubleKind::QueuesRefuse,
        1..=2 => TroubleKind::AllHangs,
        _ => TroubleKind::Throttled(pick(
            rng,
            &[
                "DescribeScalingActivities",
                "DescribeLifecycleHooks",
                "ListCommands",
                "DescribeSpotInstanceRequests",
            ],
        )),
    };
    if kind == TroubleKind::Throttled("DescribeSpotInstanceRequests") {
        script.strays.push(Stray {
            kind: StrayKind::KeptSpotRequest,
            age: rng.i64(HOUR..48 * HOUR),
        });
    }
    let trouble = Trouble {
        kind,
        manager,
        from: end.at - rng.i64(1..60),
        length: rng.i64(120..1800),
    };
    script.rarities.trouble = Some(trouble);
    let mut noise = |kind, at: i64| {
        script.noise.push(Noise {
            at: at.max(1),
            kind,
        })
    };
    let route = match kind {
        TroubleKind::QueuesRefuse => {
            noise(NoiseKind::BadInstanceId, trouble.from + rng.i64(1..100));
            Route::EventBridgeDirect
        }
        TroubleKind::AllHangs => {
            script.trigger.function_timeout = 60;
            script.trigger.visibility = 360;
            script.trigger.batch_size = 10;
            script.trigger.delay = 0;
            Route::HookToQueue
        }
        // A message that is older than the termination by about the whole time that a drain may take.
        TroubleKind::Throttled(_) => {
            let limit = script.settings.limit();
            noise(
                NoiseKind::ForgedTermination,
                end.at - limit + rng.i64(-300..120),
            );
            Route::HookToQueue
        }
    };
    if let Some(end) = &mut script.managers[manager].end {
        end.route = route;
    }
}

fn manager(rng: &mut Rng, script: &mut Script, number: usize) {
    let settings = script.settings.clone();
    let manager = &mut script.managers[number];
    if chance(rng, 0.08) {
        manager.token = DASHED.into();
    }
    if chance(rng, 0.12) {
        manager.clock = rng.i64(-50..=50);
    }
    manager.owner_tags = chance(rng, 0.12);
    for worker in &mut manager.workers {
        worker.launch_fails = chance(rng, 0.08);
    }
    if let Agent::Fails(_, failure) = &mut manager.agent
        && chance(rng, 0.2)
    {
        *failure = Failure::HalfTruth;
    }
    let Some(end) = &mut manager.end else { return };
    if manager.boots > 0 && chance(rng, 0.05) {
        // Terminated while it boots: no command can reach it.
        end.at = manager.boots + rng.i64(3..28);
        end.how = EndKind::ScaleIn;
        manager.stopped = None;
        manager.old_command = None;
        manager.workers.clear();
        return;
    }
    if end.how == EndKind::ScaleIn && chance(rng, 0.07) {
        let limit = settings.limit();
        let then = match rng.u8(0..6) {
            0 => AfterWarm::Stays,
            1..=2 => AfterWarm::Returns(rng.i64(300..HOUR)),
            3..=4 => AfterWarm::ReturnsAndEnds(rng.i64(300..HOUR), rng.i64(120..HOUR)),
            _ => AfterWarm::Ends(rng.i64(300..HOUR)),
        };
        manager.warm = Some(Warm {
            running: chance(rng, 0.3),
            then,
        });
        // Everything has an end, and so has the time until the quiet.
        let longer = 600
            + match then {
                AfterWarm::Stays => 0,
                AfterWarm::Returns(after) => after,
                AfterWarm::ReturnsAndEnds(after, ends) => after + ends + limit,
                AfterWarm::Ends(after) => after + limit,
            };
        let quiet_from = end.at + limit + longer + 900;
        let later = (quiet_from - script.quiet_from).max(0);
        script.quiet_from += later;
        script.end += later;
    }
}

/// An address of the pool that is free for minutes before it is associated, and once more when it is moved: looked at
/// in between, it must not be taken for one that was free all the time.
fn addresses(rng: &mut Rng, script: &mut Script) {
    let all = script
        .managers
        .iter_mut()
        .flat_map(|manager| &mut manager.addresses);
    for address in all.filter(|address| address.pool) {
        address.let_go_after = None;
        if chance(rng, 0.5) {
            address.tag_to_associate = rng.i64(150..280);
            // Later than any second look: two gaps with nobody looking between them are one to whoever looks twice.
            address.let_go_after = Some(rng.i64(3600..9000));
        }
    }
}

fn fleet(rng: &mut Rng, managers: usize) -> FleetScript {
    let owner = match rng.u8(0..8) {
        0..=4 => FleetOwner::Manager(rng.usize(..managers)),
        5..=6 => FleetOwner::LongGone,
        _ => FleetOwner::Foreign,
    };
    let tag = match owner {
        FleetOwner::Foreign => None,
        _ => pick(
            rng,
            &[
                Some("gitlab-runner-parent-id"),
                Some("lifecycle-reaper:owner"),
                None,
                None,
            ],
        ),
    };
    let mixed = tag.is_none() && matches!(owner, FleetOwner::Manager(_)) && chance(rng, 0.3);
    FleetScript {
        owner,
        tag,
        is_spot_fleet: rng.bool(),
        // What it would put in the place of the one that is nobody's, nobody would have tagged.
        maintains: !mixed && chance(rng, 0.6),
        instances: rng.usize(1..=2),
        mixed,
        kept: chance(rng, 0.1),
        at: rng.i64(60..4 * HOUR),
    }
}

fn stray(rng: &mut Rng) -> Stray {
    Stray {
        kind: pick(
            rng,
            &[
                StrayKind::KeptAddress,
                StrayKind::KeptSpotRequest,
                StrayKind::AmbiguousKey,
                StrayKind::AmbiguousWorker,
                StrayKind::AmbiguousSpotRequest,
            ],
        ),
        age: rng.i64(HOUR..48 * HOUR),
    }
}
