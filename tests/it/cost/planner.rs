//! The pure planner over large worlds: its work grows with the world and not faster.
//!
//! `cargo test --test it -- --ignored --nocapture bench_` prints times; `tests/bench/instructions` counts instructions.

use crate::fake_aws::{EXECUTOR, GROUP, start};
use chrono::TimeDelta;
use lifecycle_reaper::{
    check::check,
    config::Config,
    event::{self, Place},
    plan::{ReapPlan, plan_reap},
    reap::Evidence,
    task::Task,
    world::{Instance, InstanceState, Listing, Member, Resource, Time, World},
};
use std::{collections::BTreeMap, hint::black_box, time::Instant};

const SWEEP: Task = Task::Sweep { writes: true };

fn config() -> Config {
    let variables = [
        ("AUTO_SCALING_GROUPS", GROUP),
        ("DRAIN", "off"),
        ("EXECUTOR_NAME", EXECUTOR),
        ("MAX_DELETIONS", "10000"),
    ];
    Config::from_vars(variables.map(|(name, value)| (name.to_owned(), value.to_owned())))
        .expect("a configuration")
}

/// `size` resources: of 100, 5 managers of which one is gone, 60 workers, 35 keys.
fn world(size: usize, now: Time) -> World {
    let (managers, workers, keys) = (size / 20, size * 60 / 100, size * 35 / 100);
    let id = |kind: char, number: usize| format!("i-0{kind}{number:015x}");
    let born =
        |number: usize| now - TimeDelta::hours(5) + TimeDelta::seconds((number % 3600) as i64);
    let name = |number: usize| {
        format!(
            "runner-abcdefgh-{EXECUTOR}-{}-{number:08x}",
            born(number).timestamp()
        )
    };
    let instance = |id: String, number: usize| Instance {
        id,
        state: InstanceState::Running,
        launched: Some(born(number)),
        born: Some(born(number)),
        died: None,
        parent: None,
        key_name: None,
        spot_request: None,
        fleet: None,
        group: None,
        keep: false,
        windows: false,
    };
    let mut instances: Vec<Instance> = (0..managers)
        .map(|n| Instance {
            state: if n % 5 == 0 {
                InstanceState::Terminated
            } else {
                InstanceState::Running
            },
            group: Some(GROUP.into()),
            ..instance(id('a', n), n)
        })
        .collect();
    instances.extend((0..workers).map(|n| Instance {
        parent: Some(id('a', n % managers.max(1))),
        key_name: Some(name(n)),
        ..instance(id('b', n), n)
    }));
    let members = (0..managers).filter(|n| n % 5 != 0).map(|n| Member {
        id: id('a', n),
        group: GROUP.into(),
        lifecycle: "InService".into(),
        protected_from_scale_in: false,
    });
    let key = |n: usize| Resource {
        id: name(n),
        name: None,
        key_name: Some(name(n)),
        created: Some(born(n)),
        ..Resource::default()
    };
    let resources = [
        ("key-pairs", Listing::complete((0..keys).map(key).collect())),
        ("spot-requests", Listing::complete(vec![])),
        ("addresses", Listing::complete(vec![])),
    ];
    World {
        resources: BTreeMap::from(resources),
        instances: Listing::complete(instances),
        members: Listing::complete(members.collect()),
        missing_groups: vec![],
    }
}

/// Judges, plans, and checks the plan.
#[inline(never)]
fn counted_planner(world: &World, config: &Config, now: Time) -> ReapPlan {
    let plan = plan_reap(&SWEEP, &Evidence::of(world, &SWEEP, false, config, now));
    check(&plan, world, config, now).expect("a plan that keeps the promises");
    plan
}

/// Parses every sample message.
#[inline(never)]
fn counted_events(texts: &[String], config: &Config) -> usize {
    texts
        .iter()
        .filter(|text| {
            matches!(
                event::parse_text(text, &Place::default(), config),
                event::Event::Task(..)
            )
        })
        .count()
}

fn messages() -> Vec<String> {
    let folder = format!("{}/events", env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("events")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let samples = paths.iter().filter(|path| {
        path.extension().is_some_and(|e| e == "json")
            && path
                .file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("direct-"))
    });
    samples
        .map(|path| std::fs::read_to_string(path).expect("a sample"))
        .collect()
}

#[test]
fn the_planner_judges_every_resource_of_a_large_world() {
    let (config, now) = (config(), start());
    let plan = counted_planner(&world(1000, now), &config, now);
    let counts = plan.counts();
    assert_eq!(counts["workers"].values().sum::<usize>(), 600);
    assert_eq!(counts["workers"]["reap"], 120, "{counts:?}");
    assert_eq!(counts["key-pairs"].values().sum::<usize>(), 350);
}

/// Shortest of five: the machine's noise only ever adds.
fn shortest(mut work: impl FnMut()) -> f64 {
    (0..5)
        .map(|_| {
            let began = Instant::now();
            work();
            began.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

#[test]
#[ignore = "a measurement: make bench runs it"]
fn bench_planner_growth() {
    let (config, now) = (config(), start());
    let mut before: Option<f64> = None;
    for size in [1_000, 10_000, 100_000] {
        let world = world(size, now);
        let seconds = shortest(|| drop(black_box(counted_planner(&world, &config, now))));
        let growth = before.map_or(1.0, |b| seconds / b);
        println!(
            "bench planner resources={size} milliseconds={:.2} times_the_size_before={growth:.1}",
            seconds * 1e3
        );
        // Ten times the world: a quadratic planner would take a hundred times as long.
        assert!(
            growth < 25.0,
            "{size} resources take {growth:.0} times as long as a tenth of them"
        );
        before = Some(seconds);
    }
}

/// What `tests/bench/instructions` runs under callgrind, which counts inside the two `counted` functions alone.
fn plan_for_counting(size: usize) {
    let (config, now) = (config(), start());
    let plan = counted_planner(&world(size, now), &config, now);
    assert!(plan.judged.len() > size / 2);
}

#[test]
#[ignore = "for tests/bench/instructions"]
fn bench_instructions_1000() {
    plan_for_counting(1_000);
}

#[test]
#[ignore = "for tests/bench/instructions"]
fn bench_instructions_10000() {
    plan_for_counting(10_000);
}

#[test]
#[ignore = "for tests/bench/instructions"]
fn bench_instructions_100000() {
    plan_for_counting(100_000);
}

#[test]
#[ignore = "for tests/bench/instructions"]
fn bench_instructions_events() {
    assert!(counted_events(&messages(), &config()) > 5);
}
