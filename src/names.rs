//! Names as docker-machine makes them: `runner-<token>-<EXECUTOR_NAME>-<unix seconds>-<8 hex digits>`.
//!
//! A name is *ours exactly* when it parses field by field with our executor name. A substring is never enough:
//! `prod` must match neither `prod-eu` nor `ci-prod`. Field borders are `-`, which tokens and executor names may
//! contain too: `runner-a-b-ci-…` is executor `ci` with token `a-b`, or executor `b-ci` with token `a`.
//! Such a name is ours only if something else proves the token.

use chrono::{DateTime, Utc};
use std::collections::BTreeSet;

/// Our executor name, and the runner tokens that are known to be ours though they contain a `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorName {
    name: String,
    tokens: Vec<String>,
}

/// Whose a name is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameOwner<'a> {
    /// Ours exactly, born at the second that the name bears.
    Ours(DateTime<Utc>),
    /// Ours if this token is ours; the name of a neighbour otherwise.
    OursIfToken(&'a str, DateTime<Utc>),
    /// Made by docker-machine for another executor.
    Foreign,
    /// Not a name that docker-machine makes for a runner.
    Unrelated,
}

impl ExecutorName {
    /// The name, if it can be one; `tokens` are the operator's `RUNNER_TOKENS`.
    pub fn new(name: &str, tokens: Vec<String>) -> Option<Self> {
        let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        (!name.is_empty() && name.bytes().all(is_part)).then(|| Self {
            name: name.to_owned(),
            tokens,
        })
    }

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Whose `name` is; `proven` are tokens that tagged workers of managed managers bear.
    pub fn owner_of<'a>(&self, name: &'a str, proven: &BTreeSet<String>) -> NameOwner<'a> {
        let Some(fields) = Fields::of(name) else {
            return NameOwner::Unrelated;
        };
        let Some(token) = fields
            .head
            .strip_suffix(self.name.as_str())
            .and_then(|t| t.strip_suffix('-'))
        else {
            return NameOwner::Foreign;
        };
        if is_plain_token(token) || self.tokens.iter().any(|t| t == token) || proven.contains(token)
        {
            return NameOwner::Ours(fields.born);
        }

        if token.is_empty() {
            NameOwner::Foreign
        } else {
            NameOwner::OursIfToken(token, fields.born)
        }
    }
}

/// The fields of a docker-machine name that need no configuration to be found.
struct Fields<'a> {
    /// `<token>-<executor name>`
    head: &'a str,
    born: DateTime<Utc>,
}

impl<'a> Fields<'a> {
    fn of(name: &'a str) -> Option<Self> {
        let (rest, hash) = name.strip_prefix("runner-")?.rsplit_once('-')?;
        let (head, seconds) = rest.rsplit_once('-')?;
        let is_hash = hash.len() == 8
            && hash
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        // Ten digits: the years 2001 to 2286. A shorter number is somebody's counter, not a time.
        let is_time = seconds.len() == 10
            && seconds.bytes().all(|b| b.is_ascii_digit())
            && !seconds.starts_with('0');
        if !is_hash || !is_time || head.is_empty() {
            return None;
        }
        let born = DateTime::from_timestamp(seconds.parse().ok()?, 0)?;
        Some(Self { head, born })
    }
}

/// GitLab shortens a token to 8 or 9 characters; older versions left 17.
fn is_plain_token(token: &str) -> bool {
    let is_plain = token
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    is_plain && (matches!(token.len(), 1..=9) || token.len() == 17)
}
