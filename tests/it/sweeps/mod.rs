//! Sweeps from the first invocation to the last: through the queue, twice at once, killed, evening after evening.

mod addresses;
mod long;
mod queue;
mod twice;

use crate::cli::{put_dead_manager, worker_id};
use crate::fake_aws::*;
use chrono::TimeDelta;

/// What a person or the schedule invokes the function with.
pub const SWEEP: &str = r#"{"action":"sweep"}"#;

/// What is alive in the account, and so can be left behind: instances, requests, keys, addresses.
pub fn alive(aws: &FakeAws) -> Vec<String> {
    let world = aws.world();
    let instances = world
        .ec2
        .instances
        .values()
        .filter(|i| !i.state.is_ending())
        .map(|i| i.id.clone());
    let requests = world
        .ec2
        .spot_requests
        .values()
        .filter(|r| matches!(r.state.as_str(), "open" | "active"))
        .map(|r| r.id.clone());
    let keys = world.ec2.key_pairs.values().map(|k| k.name.clone());
    let mut all: Vec<String> = instances
        .chain(requests)
        .chain(keys)
        .chain(world.ec2.addresses.keys().cloned())
        .collect();
    all.sort();
    all
}

/// Leftovers of a manager that ended, besides the live manager M2 with its worker, and the foreign and protected.
pub fn put_leftovers(
    aws: &FakeAws,
    workers: usize,
    keys: usize,
    requests: usize,
    addresses: usize,
) {
    let mut world = aws.world();
    put_dead_manager(&mut world, M1, minutes(10));
    for n in 0..workers {
        let worker = Worker::of(M1, &worker_id(n)).age(minutes(200));
        let worker = if n < requests {
            worker.spot(&format!("sir-{n:08}"))
        } else {
            worker
        };
        world.put_worker(worker);
    }
    for _ in workers..keys {
        world.put_machine_key("old", EXECUTOR, TimeDelta::days(60));
    }
    for n in 0..addresses {
        world.put_address(&format!("eipalloc-{n:017}"), Some(M1));
    }
}
