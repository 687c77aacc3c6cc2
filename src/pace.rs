//! When to come again: pure arithmetic over deliveries, deadlines and heartbeats.

use crate::{
    task::{Delivery, Task},
    world::{ManagerView, Stage, Time},
};
use chrono::TimeDelta;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The shortest useful wait: a command or a state needs so long to become visible.
pub const SHORTEST_DELAY: TimeDelta = TimeDelta::seconds(15);
/// The longest wait between two deliveries.
pub const LONGEST_DELAY: TimeDelta = TimeDelta::seconds(900);
/// With so few deliveries left none is spent on looking often.
const SCARCE: u32 = 20;
/// EC2 needs about so long until a deletion shows everywhere.
pub const SETTLE: TimeDelta = TimeDelta::seconds(60);

/// Exponential with jitter drawn from the task itself, so that tasks which failed together don't return together.
pub fn backoff(task: &Task, delivery: &Delivery) -> TimeDelta {
    let doublings = delivery.count.saturating_sub(1).min(10);
    let full = (SHORTEST_DELAY * (1 << doublings)).min(LONGEST_DELAY);
    // Between 80 and 100 per cent: never longer than the bound, never shorter than useful.
    (full - full * i32::from(jitter(task, delivery.count)) / 500).max(SHORTEST_DELAY)
}

/// How long a task has been going on that is delivered for the `count`th time, where nothing else tells.
pub fn elapsed_by(count: u32) -> TimeDelta {
    let steps =
        (1..count.min(1000)).map(|n| (SHORTEST_DELAY * (1 << (n - 1).min(10))).min(LONGEST_DELAY));
    steps.fold(TimeDelta::zero(), |sum, step| sum + step)
}

/// 0 to 99, always the same for the same task and delivery.
fn jitter(task: &Task, count: u32) -> u8 {
    let mut hasher = DefaultHasher::new();
    (task, count).hash(&mut hasher);
    (hasher.finish() % 100) as u8
}

/// A lot drawn for `id`: another one at another time, the same one in a twin of the pass.
pub fn lot(id: &str, now: Time) -> u64 {
    let mut hasher = DefaultHasher::new();
    (id, now.timestamp() / SETTLE.num_seconds()).hash(&mut hasher);
    hasher.finish()
}

/// While a drain goes on: rarely, but with a heartbeat that is never late, and never past the deadline.
///
/// Where the queue allows only a few more deliveries, they are spread over the time that is left.
pub fn while_draining(
    task: &Task,
    delivery: &Delivery,
    heartbeat: Option<TimeDelta>,
    deadline: Time,
    now: Time,
) -> TimeDelta {
    let until_deadline = whole_seconds(deadline - now).max(TimeDelta::seconds(1));
    let heartbeat = heartbeat.unwrap_or(SHORTEST_DELAY * 4);
    let spread = spread(delivery, until_deadline);
    // One heartbeat may be lost without harm, unless deliveries are scarce.
    let comfortable = (heartbeat / 3).min(LONGEST_DELAY);
    let longest = if spread > comfortable {
        spread.min(heartbeat * 4 / 5)
    } else {
        comfortable
    };
    backoff(task, delivery)
        .max(spread)
        .min(longest)
        .min(until_deadline)
}

/// The deliveries that the queue still allows, spread over the time to the deadline.
pub fn spread(delivery: &Delivery, until_deadline: TimeDelta) -> TimeDelta {
    delivery.left().map_or(TimeDelta::zero(), |left| {
        until_deadline.max(TimeDelta::zero()) / (left.max(1) as i32)
    })
}

/// Until an instance is gone that no hook of ours holds: soon where its group lets it go, rarely where another
/// team's hook holds it or where it isn't terminating at all.
pub fn until_gone(task: &Task, delivery: &Delivery, view: &ManagerView) -> TimeDelta {
    // The last deliveries are worth more than haste.
    let has_many_left = delivery.left().is_none_or(|left| left > SCARCE);
    if view.stage() == Stage::Going && has_many_left {
        SHORTEST_DELAY
    } else {
        backoff(task, delivery)
    }
}

/// Rounded up, because a queue counts whole seconds and a pass a moment before its time would do nothing.
pub fn whole_seconds(delta: TimeDelta) -> TimeDelta {
    let seconds = delta.num_seconds();
    TimeDelta::seconds(if TimeDelta::seconds(seconds) < delta {
        seconds + 1
    } else {
        seconds
    })
}
