//! Configuration: the environment variables of the function, read once, every problem reported at once.

mod variables;

use crate::names::ExecutorName;
use chrono::TimeDelta;
use std::{collections::BTreeMap, fmt};
use variables::Variables;

/// Whether the function acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Writes nothing and says what it would do.
    Plan,
    /// Acts.
    Enforce,
}

/// How a manager is drained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Through SSM Run Command with this document.
    Ssm {
        /// Name of the SSM Command document.
        document: String,
    },
    /// Something on the instance completes the hook: heartbeat, wait, then reap.
    Observe,
    /// Release at once, then reap.
    Off,
}

/// Everything that an operator can choose; see the table in the README.
#[derive(Clone, Debug)]
pub struct Config {
    /// Exact names of the managed groups.
    pub groups: Vec<String>,
    /// Exact names of our termination hooks.
    pub hooks: Vec<String>,
    /// The name part in worker, key and spot names.
    pub executor: Option<ExecutorName>,
    /// Whether the function acts.
    pub mode: Mode,
    /// How a manager is drained.
    pub drain: Drain,
    /// Longest drain.
    pub drain_timeout: TimeDelta,
    /// Nothing younger is touched where "gone" rests on absence or on time.
    pub grace: TimeDelta,
    /// Workers of a manager that died undrained may finish their jobs so long.
    pub worker_grace: TimeDelta,
    /// Tag on workers that names their manager.
    pub parent_tag: String,
    /// Tag on addresses, keys and spot requests that names their manager.
    pub owner_tag: String,
    /// Addresses with exactly this tag are ours too.
    pub eip_tag: Option<(String, String)>,
    /// Protects whatever carries it.
    pub keep_tag: String,
    /// Deletions per kind and pass.
    pub max_deletions: usize,
    /// The work queue's own `maxReceiveCount`.
    pub max_receive_count: Option<u32>,
    /// Where an unfinished direct invocation goes.
    pub work_queue_url: Option<String>,
    /// Where an unreadable or failed record goes.
    pub dead_letter_queue_url: Option<String>,
    /// Kinds switched on, by the reapers' own words.
    pub kinds: Vec<&'static str>,
    /// Worker groups by manager group (docker-autoscaler): reported, never deleted from.
    pub worker_groups: BTreeMap<String, Vec<String>>,
    /// The Region that the function runs in.
    pub region: Option<String>,
}

/// One problem: the variable, what it holds, and what it may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The environment variable.
    pub variable: &'static str,
    /// What it holds, shortened; `None` when it isn't set.
    pub holds: Option<String>,
    /// What it may hold.
    pub wants: String,
}

/// All problems of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigProblem>);

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.holds {
            Some(value) => write!(f, "{} holds {value:?}", self.variable)?,
            None => write!(f, "{} is not set", self.variable)?,
        }
        write!(f, ", it may hold {}", self.wants)
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration has {} problem(s)", self.0.len())?;
        self.0
            .iter()
            .try_for_each(|problem| write!(f, "; {problem}"))
    }
}

impl std::error::Error for ConfigErrors {}

/// The longest that AWS lets a lifecycle action wait.
const LONGEST_WAIT_SECONDS: i64 = 48 * 3600;
/// EC2 has needed minutes to show a new instance.
const SHORTEST_SAFE_GRACE: TimeDelta = TimeDelta::seconds(300);
/// EC2 shows a terminated instance for about an hour: a longer worker grace could not be kept.
const LONGEST_WORKER_GRACE_SECONDS: i64 = 3600;

impl Config {
    /// Reads a configuration from variables; total on any input.
    pub fn from_vars(
        vars: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigErrors> {
        let mut vars = Variables::new(vars);
        let groups = vars.names("AUTO_SCALING_GROUPS");
        if groups.is_empty() {
            vars.problem(
                "AUTO_SCALING_GROUPS",
                "the exact names of the managed groups, comma separated",
            );
        }
        let drain = vars.drain();
        let hooks = vars.names("LIFECYCLE_HOOKS");
        if hooks.is_empty() && drain != Drain::Off {
            vars.problem(
                "LIFECYCLE_HOOKS",
                "the exact names of our termination hooks, comma separated (or set DRAIN=off)",
            );
        }
        let mode = match vars.text("MODE") {
            None | Some("plan") => Mode::Plan,
            Some("enforce") => Mode::Enforce,
            Some(_) => {
                vars.problem("MODE", "plan or enforce");
                Mode::Plan
            }
        };
        let config = Self {
            groups,
            hooks,
            executor: vars.executor(),
            mode,
            drain,
            drain_timeout: vars.seconds("DRAIN_TIMEOUT_SECONDS", 7200, 1..=LONGEST_WAIT_SECONDS),
            grace: vars.seconds("GRACE_SECONDS", 900, 0..=7 * 24 * 3600),
            worker_grace: vars.seconds("WORKER_GRACE_SECONDS", 0, 0..=LONGEST_WORKER_GRACE_SECONDS),
            parent_tag: vars.tag_key("PARENT_TAG", "gitlab-runner-parent-id"),
            owner_tag: vars.tag_key("OWNER_TAG", "lifecycle-reaper:owner"),
            eip_tag: vars.eip_tag(),
            keep_tag: vars.tag_key("KEEP_TAG", "lifecycle-reaper:keep"),
            max_deletions: vars
                .count("MAX_DELETIONS", 1..=10_000)
                .map_or(100, |n| n as usize),
            max_receive_count: vars.count("MAX_RECEIVE_COUNT", 1..=1000),
            work_queue_url: vars.url("WORK_QUEUE_URL"),
            dead_letter_queue_url: vars.url("DEAD_LETTER_QUEUE_URL"),
            kinds: vars.kinds(),
            worker_groups: vars.worker_groups(),
            region: vars.text("AWS_REGION").map(str::to_owned),
        };
        if config.work_queue_url.is_some() && config.work_queue_url == config.dead_letter_queue_url
        {
            vars.problem(
                "DEAD_LETTER_QUEUE_URL",
                "another queue than WORK_QUEUE_URL: what is unreadable would come back for ever",
            );
        }
        vars.without_problems().map(|()| config)
    }

    /// What is legal and still unlikely to be meant; logged at start.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = vec![];
        if self.work_queue_url.is_none() {
            warnings.push("WORK_QUEUE_URL is not set: an unfinished direct invocation returns an error and relies on Lambda's own retries".into());
        }
        if self.dead_letter_queue_url.is_none() {
            warnings.push("DEAD_LETTER_QUEUE_URL is not set: unreadable records stay on their queue until it gives up on them".into());
        }
        if self.executor.is_none() {
            warnings.push("EXECUTOR_NAME is not set: key pairs, spot requests and untagged workers are judged by tags and instances alone".into());
        }
        if [&self.parent_tag, &self.owner_tag].contains(&&self.keep_tag) {
            warnings.push(format!(
                "KEEP_TAG={} is also the tag that names a manager: whatever has an owner is kept for ever",
                self.keep_tag
            ));
        }
        if self.grace < SHORTEST_SAFE_GRACE {
            warnings.push(format!(
                "GRACE_SECONDS={}: EC2 may show a new instance later than that, and what it owns would look orphaned",
                self.grace.num_seconds()
            ));
        }
        if let Some(max) = self.max_receive_count {
            let reach = i64::from(max) * crate::pace::LONGEST_DELAY.num_seconds();
            if reach < self.drain_timeout.num_seconds() {
                warnings.push(format!(
                    "MAX_RECEIVE_COUNT={max} can't cover DRAIN_TIMEOUT_SECONDS={}: at most {} s apart, the last delivery comes after {reach} s and ends the drain",
                    self.drain_timeout.num_seconds(),
                    crate::pace::LONGEST_DELAY.num_seconds(),
                ));
            }
        }
        warnings
    }
}
