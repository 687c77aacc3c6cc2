//! What goes wrong on the way: drawn call by call from the seed's rates, or listed call by call when a history is shrunk.

use crate::fake_aws::Fault;
use crate::fake_aws::faults::Mishap;
use chrono::TimeDelta;
use fastrand::Rng;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Rates {
    pub seed: u64,
    /// Of a fault at one call.
    pub fault: f64,
    /// Of being killed, per run.
    pub kill: f64,
    /// Of being frozen, per run.
    pub freeze: f64,
    /// Of one item in one read being old.
    pub lag: f64,
    pub lag_seconds: i64,
    pub latency_millis: i64,
    /// An operation that nobody gets an answer from for a while.
    pub outage: Option<Outage>,
    /// An operation that the role doesn't permit.
    pub denied: Option<&'static str>,
}

/// Every call of one operation fails, from so many seconds after the beginning and for so long.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    pub operation: &'static str,
    pub from: i64,
    pub length: i64,
}

#[derive(Clone, Debug)]
pub struct Mishaps {
    pub rates: Rates,
    /// Instead of drawing: what happens to which call.
    pub listed: Option<BTreeMap<usize, Fault>>,
}

/// How one run is disturbed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disturbance {
    /// Killed after so many calls; the flag says whether the last one took effect.
    pub killed_after: Option<(usize, bool)>,
    /// Frozen after so many calls, for so many seconds.
    pub frozen: Option<(usize, i64)>,
}

impl Mishaps {
    pub fn drawn(rates: Rates) -> Self {
        Self {
            rates,
            listed: None,
        }
    }

    pub fn are_none(&self) -> bool {
        let Rates {
            fault,
            kill,
            freeze,
            lag,
            denied,
            outage,
            ..
        } = &self.rates;
        outage.is_none()
            && *fault == 0.0
            && *kill == 0.0
            && *freeze == 0.0
            && *lag == 0.0
            && denied.is_none()
    }

    fn rng(&self, what: u64, number: u64) -> Rng {
        Rng::with_seed(
            self.rates.seed.wrapping_mul(0x2545_f491_4f6c_dd1d)
                ^ (what << 56)
                ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        )
    }

    /// What happens to the call with this number.
    pub fn at_call(&self, number: usize, operation: &str, elapsed: i64) -> Mishap {
        let rates = &self.rates;
        let mut rng = self.rng(1, number as u64);
        let way = |rng: &mut Rng| {
            TimeDelta::milliseconds(if rates.latency_millis == 0 {
                0
            } else {
                rng.i64(0..=rates.latency_millis)
            })
        };
        let (there, back) = (way(&mut rng), way(&mut rng));
        let fault = match &self.listed {
            _ if rates.denied == Some(operation) => Some(Fault::Denied),
            _ if rates.outage.is_some_and(|outage| {
                outage.operation == operation
                    && (outage.from..outage.from + outage.length).contains(&elapsed)
            }) =>
            {
                Some(Fault::Throttled)
            }
            Some(listed) => listed.get(&number).cloned(),
            None => (rng.f64() < rates.fault).then(|| draw_fault(&mut rng, operation)),
        };
        Mishap { fault, there, back }
    }

    /// How the run with this number is disturbed.
    pub fn at_run(&self, number: u64) -> Disturbance {
        let mut rng = self.rng(2, number);
        let killed_after = (rng.f64() < self.rates.kill).then(|| (rng.usize(1..16), rng.bool()));
        let frozen = (rng.f64() < self.rates.freeze).then(|| (rng.usize(1..12), rng.i64(1..90)));
        Disturbance {
            killed_after,
            frozen,
        }
    }
}

fn draw_fault(rng: &mut Rng, operation: &str) -> Fault {
    let pages = matches!(
        operation,
        "DescribeInstances"
            | "DescribeSpotInstanceRequests"
            | "DescribeAutoScalingInstances"
            | "DescribeAutoScalingGroups"
    );
    match rng.u8(0..20) {
        0..=4 => Fault::Throttled,
        5..=6 => Fault::ServerError,
        7..=9 => Fault::LostReply,
        10 => Fault::Garbled,
        11 => Fault::Halved,
        12 => Fault::Hanging,
        13 => Fault::Refused,
        14 => Fault::Latency(TimeDelta::seconds(rng.i64(1..11))),
        15..=16 if pages => Fault::EmptyPage,
        17 if pages => Fault::RepeatedToken,
        18 if operation == "RecordLifecycleActionHeartbeat"
            || operation == "CompleteLifecycleAction" =>
        {
            Fault::CodeAndMessage(
                "ValidationError",
                "No active Lifecycle Action found with instance ID i-0".into(),
            )
        }
        _ => Fault::Throttled,
    }
}
