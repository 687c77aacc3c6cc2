//! The environment variables one by one: how each is read, and what is wrong with it.

use super::{ConfigErrors, ConfigProblem, Drain};
use crate::{names::ExecutorName, reap};
use chrono::TimeDelta;
use std::collections::BTreeMap;

/// The variables, and what is wrong with them so far.
pub(super) struct Variables {
    map: BTreeMap<String, String>,
    problems: Vec<ConfigProblem>,
}

impl Variables {
    /// Nothing is wrong with them yet.
    pub(super) fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            map: variables.into_iter().collect(),
            problems: vec![],
        }
    }

    /// # Errors
    /// Every problem that was met.
    pub(super) fn without_problems(self) -> Result<(), ConfigErrors> {
        if self.problems.is_empty() {
            Ok(())
        } else {
            Err(ConfigErrors(self.problems))
        }
    }

    /// A variable that is set and not blank, trimmed.
    pub(super) fn text(&self, variable: &str) -> Option<&str> {
        self.map
            .get(variable)
            .map(|v| v.trim())
            .filter(|v| !v.is_empty())
    }

    pub(super) fn problem(&mut self, variable: &'static str, wants: impl Into<String>) {
        let holds = self.map.get(variable).map(|v| v.chars().take(80).collect());
        self.problems.push(ConfigProblem {
            variable,
            holds,
            wants: wants.into(),
        });
    }

    pub(super) fn names(&self, variable: &str) -> Vec<String> {
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

    pub(super) fn seconds(
        &mut self,
        variable: &'static str,
        default: i64,
        range: std::ops::RangeInclusive<i64>,
    ) -> TimeDelta {
        TimeDelta::seconds(self.number(variable, range).unwrap_or(default))
    }

    pub(super) fn count(
        &mut self,
        variable: &'static str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Option<u32> {
        self.number(variable, range)
            .and_then(|n| u32::try_from(n).ok())
    }

    pub(super) fn drain(&mut self) -> Drain {
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
    pub(super) fn executor(&mut self) -> Option<ExecutorName> {
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

    pub(super) fn tag_key(&mut self, variable: &'static str, default: &str) -> String {
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

    pub(super) fn eip_tag(&mut self) -> Option<(String, String)> {
        let text = self.text("EIP_TAG")?;
        let pair = text.split_once('=').map(|(k, v)| (k.trim(), v.trim()));
        let pair = pair.filter(|(k, v)| is_tag_key(k) && !v.is_empty() && !v.contains(['*', '?']));
        let pair = pair.map(|(k, v)| (k.to_owned(), v.to_owned()));
        if pair.is_none() {
            self.problem("EIP_TAG", "key=value, both given, without '*' or '?'");
        }
        pair
    }

    pub(super) fn url(&mut self, variable: &'static str) -> Option<String> {
        let url = self.text(variable)?.to_owned();
        if url.starts_with("https://") || url.starts_with("http://") {
            return Some(url);
        }
        self.problem(variable, "the URL of an SQS queue");
        None
    }

    pub(super) fn kinds(&mut self) -> Vec<&'static str> {
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

    pub(super) fn worker_groups(&mut self) -> BTreeMap<String, Vec<String>> {
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
