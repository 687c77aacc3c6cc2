//! Turns: EC2's rate limits, kept from our side.
//!
//! EC2 gives every account and Region one bucket of tokens for each call that writes: 50, refilled by 5 a second
//! (EC2 user guide, "Request throttling"). Others share it, so a sweep spends half of the bucket at once and then no
//! more than the refill. Passes of one process take their turns together.

use crate::world::Time;
use chrono::TimeDelta;
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// Calls that may follow one another at once.
const BURST: i32 = 25;
/// One call so often beyond that.
const INTERVAL: TimeDelta = TimeDelta::milliseconds(200);

/// When each operation's bucket is full again.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<BTreeMap<&'static str, Time>>);

impl Turns {
    /// Takes the next turn of `operation`; returns how long to wait for it.
    pub(super) fn take(&self, operation: &'static str, now: Time) -> TimeDelta {
        let mut full_at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let full = full_at.entry(operation).or_insert(now);
        *full = (*full).max(now) + INTERVAL;
        (*full - INTERVAL * BURST - now).max(TimeDelta::zero())
    }
}
