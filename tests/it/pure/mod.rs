//! What decides, as plain functions: tables that are enumerated to the end.

mod config;
mod deliveries;
mod dispositions;
mod drain_rules;
mod drain_table;
mod excerpt;
mod names;
mod pace;
mod requests;
mod seen;

use chrono::{DateTime, TimeDelta, Utc};
use lifecycle_reaper::{
    config::Config,
    task::{InstanceId, Task},
};

pub fn now() -> DateTime<Utc> {
    crate::fake_aws::start()
}

pub fn manager() -> InstanceId {
    InstanceId::parse(crate::fake_aws::M1).expect("an id")
}

pub fn terminate() -> Task {
    Task::Terminate {
        manager: manager(),
        group: "ci-linux-asg".into(),
        hook: "ci-linux-terminate".into(),
        to_warm_pool: false,
    }
}

/// A configuration from these variables, beside the required ones.
pub fn config(vars: &[(&str, &str)]) -> Config {
    let required = [
        ("AUTO_SCALING_GROUPS", "ci-linux-asg"),
        ("LIFECYCLE_HOOKS", "ci-linux-terminate,another-of-ours"),
        ("DRAIN_DOCUMENT", "lifecycle-reaper-drain"),
        ("EXECUTOR_NAME", "ci-linux"),
    ];
    let all = required.iter().chain(vars);
    Config::from_vars(all.map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))).expect("legal")
}

pub fn seconds(n: i64) -> TimeDelta {
    TimeDelta::seconds(n)
}
