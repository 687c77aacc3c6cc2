//! Configuration: the environment variables of the function, read once, every problem reported at once.

use crate::{names::ExecutorName, reap};
use chrono::TimeDelta;
use std::{collections::BTreeMap, fmt};

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
        let mut vars = Vars {
            map: vars.into_iter().collect(),
            problems: vec![],
        };
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
        if vars.problems.is_empty() {
            Ok(config)
        } else {
            Err(ConfigErrors(vars.problems))
        }
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

/// The variables, and what is wrong with them so far.
struct Vars {
    map: BTreeMap<String, String>,
    problems: Vec<ConfigProblem>,
}

impl Vars {
    /// A variable that is set and not blank, trimmed.
    fn text(&self, variable: &str) -> Option<&str> {
        self.map
            .get(variable)
            .map(|v| v.trim())
            .filter(|v| !v.is_empty())
    }

    fn problem(&mut self, variable: &'static str, wants: impl Into<String>) {
        let holds = self.map.get(variable).map(|v| v.chars().take(80).collect());
        self.problems.push(ConfigProblem {
            variable,
            holds,
            wants: wants.into(),
        });
    }

    fn names(&self, variable: &str) -> Vec<String> {
        let mut names: Vec<String> = vec![];
        for name in self
            .text(variable)
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
        {
            if !name.is_empty() && !names.iter().any(|n| n == name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    fn number(
        &mut self,
        variable: &'static str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Option<i64> {
        let text = self.text(variable)?;
        let number = text.parse().ok().filter(|n| range.contains(n));
        if number.is_none() {
            self.problem(
                variable,
                format!("a whole number from {} to {}", range.start(), range.end()),
            );
        }
        number
    }

    fn seconds(
        &mut self,
        variable: &'static str,
        default: i64,
        range: std::ops::RangeInclusive<i64>,
    ) -> TimeDelta {
        TimeDelta::seconds(self.number(variable, range).unwrap_or(default))
    }

    fn count(
        &mut self,
        variable: &'static str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Option<u32> {
        self.number(variable, range)
            .and_then(|n| u32::try_from(n).ok())
    }

    fn drain(&mut self) -> Drain {
        match self.text("DRAIN").unwrap_or("ssm") {
            "off" => Drain::Off,
            "observe" => Drain::Observe,
            "ssm" => match self.text("DRAIN_DOCUMENT").map(str::to_owned) {
                Some(document) => Drain::Ssm { document },
                None => {
                    self.problem(
                        "DRAIN_DOCUMENT",
                        "the name of the SSM Command document (or set DRAIN to observe or off)",
                    );
                    Drain::Observe
                }
            },
            _ => {
                self.problem("DRAIN", "ssm, observe or off");
                Drain::Observe
            }
        }
    }

    /// The executor name; set but blank is an error, because a blank name is contained in every key's name.
    fn executor(&mut self) -> Option<ExecutorName> {
        let variable = ["EXECUTOR_NAME", "NAME_EXECUTOR_INSTANCE"]
            .into_iter()
            .find(|v| self.map.contains_key(*v))?;
        let tokens = self.names("RUNNER_TOKENS");
        let name = self
            .map
            .get(variable)
            .and_then(|name| ExecutorName::new(name.trim(), tokens));
        if name.is_none() {
            self.problem(variable, "the name part of worker and key names: letters, digits, '-', '_', '.'; not blank, no '*' or '?'");
        }
        name
    }

    fn tag_key(&mut self, variable: &'static str, default: &str) -> String {
        let Some(key) = self.text(variable) else {
            return default.to_owned();
        };
        if is_tag_key(key) {
            return key.to_owned();
        }
        self.problem(
            variable,
            "a tag key of at most 128 characters without '*' or '?', not beginning with 'aws:'",
        );
        default.to_owned()
    }

    fn eip_tag(&mut self) -> Option<(String, String)> {
        let text = self.text("EIP_TAG")?;
        let pair = text.split_once('=').map(|(k, v)| (k.trim(), v.trim()));
        let pair = pair.filter(|(k, v)| is_tag_key(k) && !v.is_empty() && !v.contains(['*', '?']));
        let pair = pair.map(|(k, v)| (k.to_owned(), v.to_owned()));
        if pair.is_none() {
            self.problem("EIP_TAG", "key=value, both given, without '*' or '?'");
        }
        pair
    }

    fn url(&mut self, variable: &'static str) -> Option<String> {
        let url = self.text(variable)?.to_owned();
        if url.starts_with("https://") || url.starts_with("http://") {
            return Some(url);
        }
        self.problem(variable, "the URL of an SQS queue");
        None
    }

    fn kinds(&mut self) -> Vec<&'static str> {
        let known = || reap::REAPERS.iter().map(|r| r.kind());
        let asked = self.names("REAP");
        if asked.iter().any(|word| known().all(|kind| kind != word)) {
            let words = known().collect::<Vec<_>>().join(", ");
            self.problem("REAP", format!("some of {words}, comma separated"));
        }
        let names_groups = self.text("WORKER_GROUPS").is_some();
        let is_on = |reaper: &&&dyn reap::Reaper| match asked.is_empty() {
            _ if names_groups && reaper.kind() == reap::WORKER_GROUPS => true,
            true => reaper.is_on_by_default(),
            false => asked.iter().any(|word| word == reaper.kind()),
        };
        reap::REAPERS
            .iter()
            .filter(is_on)
            .map(|r| r.kind())
            .collect()
    }

    fn worker_groups(&mut self) -> BTreeMap<String, Vec<String>> {
        let mut groups = BTreeMap::<String, Vec<String>>::new();
        for pair in self.names("WORKER_GROUPS") {
            match pair.split_once('=').map(|(m, w)| (m.trim(), w.trim())) {
                Some((manager, worker)) if !manager.is_empty() && !worker.is_empty() => {
                    groups
                        .entry(manager.to_owned())
                        .or_default()
                        .push(worker.to_owned());
                }
                _ => self.problem(
                    "WORKER_GROUPS",
                    "pairs manager-group=worker-group, comma separated",
                ),
            }
        }
        groups
    }
}

fn is_tag_key(key: &str) -> bool {
    let length = key.chars().count();
    (1..=128).contains(&length) && !key.contains(['*', '?']) && !key.starts_with("aws:")
}
