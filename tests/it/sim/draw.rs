//! Drawing a script from a seed. Worlds are small: one to four managers with up to three workers each show every
//! interleaving that large ones do, and a history takes milliseconds.

use super::mishaps::{Mishaps, Outage, Rates};
use super::script::*;
use fastrand::Rng;

pub const HOUR: i64 = 3600;

pub fn script(seed: u64) -> Script {
    let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(17));
    let rng = &mut rng;
    let settings = settings(rng);
    let groups = (0..rng.usize(1..=2))
        .map(|index| GroupScript {
            name: format!("ci-linux-{index}"),
            other_hook: chance(rng, 0.2).then(|| rng.i64(30..2400)),
        })
        .collect::<Vec<_>>();
    let everything_ends = chance(rng, 0.3);
    let managers: Vec<_> = (0..rng.usize(1..=4))
        .map(|_| manager(rng, groups.len(), &settings, everything_ends))
        .collect();
    let trigger = trigger(rng);
    let last_end = managers
        .iter()
        .filter_map(|manager| manager.end.map(|end| end.at))
        .max()
        .unwrap_or(HOUR);
    let quiet_from = last_end + settings.limit() + 900;
    let rest = 2 * settings.grace + settings.worker_grace + 3 * trigger.sweep_every + 1800;
    let mut script = Script {
        seed,
        strays: (0..rng.usize(0..=6)).map(|_| stray(rng)).collect(),
        noise: (0..rng.usize(0..=3)).map(|_| noise(rng)).collect(),
        mishaps: mishaps(rng, seed, &managers),
        quiet_from,
        end: quiet_from + rest,
        settings,
        groups,
        managers,
        trigger,
        rarities: Rarities::default(),
    };
    super::rarities::add(&mut script);
    script
}

pub fn chance(rng: &mut Rng, probability: f64) -> bool {
    rng.f64() < probability
}

pub fn pick<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())]
}

fn settings(rng: &mut Rng) -> Settings {
    let heartbeat = pick(rng, &[600, 1800, 3600]);
    Settings {
        mode_plan: chance(rng, 0.02),
        drain: pick(
            rng,
            &[
                DrainMode::Ssm,
                DrainMode::Ssm,
                DrainMode::Ssm,
                DrainMode::Ssm,
                DrainMode::Ssm,
                DrainMode::Ssm,
                DrainMode::Observe,
                DrainMode::Off,
            ],
        ),
        drain_timeout: pick(rng, &[600, 1800, 3600]),
        document_waits: pick(rng, &[300, 2400]),
        grace: pick(rng, &[300, 900]),
        worker_grace: pick(rng, &[0, 0, 0, 600]),
        max_deletions: pick(rng, &[1, 3, 100, 100]),
        max_receive_count: pick(rng, &[None, Some(1000), Some(1000), Some(12)]),
        heartbeat,
        // By itself a hundred heartbeats; shown smaller, so that it binds at times.
        global: pick(rng, &[heartbeat * 100, heartbeat * 100, 1200]).min(48 * HOUR),
        eip_tag: chance(rng, 0.4),
        page_size: pick(rng, &[2, 4, 1000, 1000, 1000]),
    }
}

fn manager(
    rng: &mut Rng,
    groups: usize,
    settings: &Settings,
    everything_ends: bool,
) -> ManagerScript {
    let boots = if chance(rng, 0.6) {
        -rng.i64(600..6 * HOUR)
    } else {
        rng.i64(0..HOUR)
    };
    let end = (everything_ends || chance(rng, 0.65)).then(|| end(rng, boots));
    let until = end.map_or(2 * HOUR, |end| end.at);
    let stopped = (settings.drain != DrainMode::Off && chance(rng, 0.12)).then(|| {
        let at = boots.max(0) + rng.i64(300..1200);
        (at, at + rng.i64(300..2400))
    });
    ManagerScript {
        group: rng.usize(..groups),
        boots,
        token: pick(rng, &["aa", "bb", "zxcvbn123", "k9", "abcdefghijklmnop7"]).into(),
        agent: agent(rng),
        workers: (0..rng.usize(0..=3))
            .map(|_| worker(rng, boots, until))
            .collect(),
        addresses: (0..rng.usize(0..=1))
            .map(|_| address(rng, settings))
            .collect(),
        stopped: stopped.filter(|(_, started)| end.is_none_or(|end| end.at > *started + 60)),
        end,
        old_command: chance(rng, 0.1).then(|| rng.i64(120..900)),
        clock: 0,
        owner_tags: false,
        warm: None,
    }
}

fn agent(rng: &mut Rng) -> Agent {
    let failure = pick(
        rng,
        &[
            Failure::Failed,
            Failure::ExecutionTimedOut,
            Failure::Undeliverable,
            Failure::Cancelled,
            Failure::Silent,
            Failure::Babble,
            Failure::UnknownStatus,
        ],
    );
    match rng.u8(0..20) {
        0..=8 => Agent::Good,
        9..=11 => Agent::Slow(rng.i64(10..200)),
        12 => Agent::Absent,
        13 => Agent::Deaf,
        14..=15 => Agent::Fails(rng.u8(1..4), failure),
        16 => Agent::Fails(255, failure),
        17 => Agent::Hangs,
        18 => Agent::Aborts,
        _ => Agent::Idle,
    }
}

fn end(rng: &mut Rng, boots: i64) -> End {
    End {
        at: boots.max(0) + rng.i64(120..HOUR),
        how: match rng.u8(0..10) {
            0..=5 => EndKind::ScaleIn,
            6..=7 => EndKind::Dies(rng.i64(5..400)),
            8 => EndKind::SpotTakes,
            _ => EndKind::GroupDeleted,
        },
        route: pick(
            rng,
            &[
                Route::HookToQueue,
                Route::HookToQueue,
                Route::HookToQueue,
                Route::EventBridgeToQueue,
                Route::EventBridgeDirect,
                Route::Lost,
            ],
        ),
        duplicates: pick(rng, &[0, 0, 0, 1, 2]),
        tells_success: chance(rng, 0.4),
        tells_state: chance(rng, 0.2),
        tells_command: chance(rng, 0.5),
    }
}

fn worker(rng: &mut Rng, boots: i64, until: i64) -> WorkerScript {
    // Often so late that the manager ends in between.
    let at = if chance(rng, 0.4) {
        until - rng.i64(0..90)
    } else {
        boots + rng.i64(60..(until - boots + 60).max(61))
    };
    let fulfilled_after = match rng.u8(0..5) {
        0 => None,
        1 => Some(rng.i64(120..1200)),
        _ => Some(rng.i64(2..30)),
    };
    WorkerScript {
        at: at.max(boots + 45),
        key_to_launch: rng.i64(1..20),
        launch_to_tag: rng.i64(1..40),
        spot: chance(rng, 0.4).then(|| Spot {
            persistent: rng.u8(0..4) == 0,
            fulfilled_after,
        }),
        job_after: rng.i64(1..120),
        job_for: pick(rng, &[60, 300, 1500, 4000, 9000]) + rng.i64(0..120),
        removed: chance(rng, 0.5),
        keep: chance(rng, 0.06),
        protected: chance(rng, 0.05),
        launch_fails: false,
    }
}

fn address(rng: &mut Rng, settings: &Settings) -> AddressScript {
    AddressScript {
        after: rng.i64(5..120),
        allocate_to_tag: rng.i64(1..10),
        tag_to_associate: rng.i64(1..60),
        pool: settings.eip_tag && chance(rng, 0.6),
        time_tag: chance(rng, 0.5),
        let_go_after: chance(rng, 0.15).then(|| rng.i64(60..1200)),
    }
}

fn stray(rng: &mut Rng) -> Stray {
    let kind = match rng.u8(0..24) {
        0..=1 => StrayKind::WorkerOfLongGone,
        2 => StrayKind::StoppedWorkerOfLongGone,
        3 => StrayKind::KeptWorkerOfLongGone,
        4 => StrayKind::ProtectedWorkerOfLongGone,
        5 => StrayKind::WorkerOfNobody,
        6 => StrayKind::ForeignWorker,
        7 => StrayKind::UntaggedWorker,
        8..=10 => StrayKind::OldKey,
        11 => StrayKind::KeptKey,
        12..=15 => StrayKind::NeighbourKey(rng.u8(0..6)),
        16 => StrayKind::OpenSpotRequest,
        17 => StrayKind::NeighbourSpotRequest,
        18 => StrayKind::AddressOfLongGone,
        19 => StrayKind::AddressOfLongGoneTimed,
        20..=21 => StrayKind::ForeignAddress,
        22 => StrayKind::ServiceAddress,
        _ => StrayKind::PoolAddress,
    };
    Stray {
        kind,
        age: if chance(rng, 0.3) {
            rng.i64(0..1200)
        } else {
            rng.i64(HOUR..48 * HOUR)
        },
    }
}

fn noise(rng: &mut Rng) -> Noise {
    let kind = pick(
        rng,
        &[
            NoiseKind::TestNotification,
            NoiseKind::LaunchTransition,
            NoiseKind::OtherGroup,
            NoiseKind::OtherHook,
            NoiseKind::NotJson,
            NoiseKind::BadInstanceId,
            NoiseKind::RebalanceRecommendation,
            NoiseKind::FalseSuccess,
            NoiseKind::Unsuccessful,
            NoiseKind::FalseState,
            NoiseKind::ForgedTermination,
        ],
    );
    Noise {
        at: rng.i64(0..HOUR),
        kind,
    }
}

fn trigger(rng: &mut Rng) -> TriggerScript {
    let function_timeout = pick(rng, &[60, 120, 300]);
    TriggerScript {
        batch_size: pick(rng, &[1, 3, 10]),
        concurrency: pick(rng, &[1, 2, 4]),
        function_timeout,
        // Some queues are set up too short: two passes at once on one task.
        visibility: pick(
            rng,
            &[
                6 * function_timeout,
                6 * function_timeout,
                function_timeout,
                20,
            ],
        ),
        delay: pick(rng, &[0, 5, 120, 600]),
        sweep_every: pick(rng, &[900, 900, 1500]),
        skew: rng.i64(-5..=5),
    }
}

fn mishaps(rng: &mut Rng, seed: u64, managers: &[ManagerScript]) -> Mishaps {
    let calm = chance(rng, 0.25);
    let rate = if calm {
        0.0
    } else {
        pick(rng, &[0.01, 0.05, 0.15])
    };
    let some = |rng: &mut Rng, probability: f64, value: f64| {
        if !calm && chance(rng, probability) {
            value
        } else {
            0.0
        }
    };
    let outage = if calm || chance(rng, 0.6) {
        None
    } else {
        managers
            .iter()
            .find_map(|manager| manager.end)
            .map(|end| outage(rng, end.at))
    };
    Mishaps::drawn(Rates {
        outage,
        seed,
        fault: rate,
        kill: some(rng, 0.4, 0.12),
        freeze: some(rng, 0.15, 0.05),
        lag: some(rng, 0.4, 0.1),
        lag_seconds: pick(rng, &[5, 20, 60]),
        latency_millis: pick(rng, &[0, 20, 150, 1500]),
        denied: if !calm && chance(rng, 0.08) {
            Some(pick(
                rng,
                &[
                    "DescribeSpotInstanceRequests",
                    "DescribeAddresses",
                    "DeleteKeyPair",
                    "ReleaseAddress",
                    "CancelSpotInstanceRequests",
                    "DescribeKeyPairs",
                ],
            ))
        } else {
            None
        },
    })
}

/// Around a manager's end, when it hurts most.
fn outage(rng: &mut Rng, end: i64) -> Outage {
    const OPERATIONS: [&str; 8] = [
        "DescribeInstances",
        "DescribeAutoScalingGroups",
        "DescribeAutoScalingInstances",
        "DescribeSpotInstanceRequests",
        "DescribeKeyPairs",
        "TerminateInstances",
        "CompleteLifecycleAction",
        "GetCommandInvocation",
    ];
    Outage {
        operation: pick(rng, &OPERATIONS),
        from: end + rng.i64(-120..600),
        length: rng.i64(60..600),
    }
}
