//! What a case expects, and the one function that checks it.

use super::promises::{hold_always, told};
use super::story::{LogLine, Play, Story, event, play};
use crate::fake_aws::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What an invocation answers.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    /// Everything is acknowledged, or a direct invocation succeeded.
    Ok,
    /// Exactly these records are listed, counted from 1.
    Fail(&'static [usize]),
    /// The invocation fails.
    Err,
    /// A direct invocation succeeded with this outcome.
    Outcome(&'static str),
}

/// A case as data. A call is its operation and words that its request shows; `M1`, `W1`… stand for ids.
pub struct Case<'a> {
    /// What is changed in the world of the cases, where M1 terminates and M2 is healthy.
    pub world: &'a dyn Fn(&mut World),
    /// Variables of the function, beside the usual ones; an empty value unsets one.
    pub config: &'a [(&'a str, &'a str)],
    pub payload: String,
    pub faults: Vec<Rule>,
    /// Seconds that each invocation has.
    pub seconds: i64,
    /// What happens before each delivery.
    pub before: &'a dyn Fn(&FakeAws, usize),
    /// The story is cut after so many deliveries; it must end by itself otherwise.
    pub cut_after: Option<usize>,
    /// The reply to the first delivery, and to the last.
    pub first: Reply,
    pub last: Reply,
    /// Calls that took effect.
    pub did: &'a [&'a str],
    /// Calls that took effect in this order, each for the first time.
    pub in_order: &'a [&'a str],
    /// Calls that were not even tried.
    pub never: &'a [&'a str],
    /// How often an operation was called, failed attempts included.
    pub times: &'a [(&'a str, usize)],
    /// Level and words of a line that is in the log, and of lines that aren't.
    pub log: &'a [(&'a str, &'a str)],
    pub no_log: &'a [(&'a str, &'a str)],
    /// What is left at the end.
    pub end: &'a dyn Fn(&World),
}

/// A payload of `events/` in the world of the cases; it ends well, and its first delivery is not the last.
pub fn case(name: &str) -> Case<'static> {
    Case {
        world: &|_| {},
        config: &[],
        payload: event(name),
        faults: vec![],
        seconds: 300,
        before: &|_, _| {},
        cut_after: None,
        first: Reply::Fail(&[1]),
        last: Reply::Ok,
        did: &[],
        in_order: &[],
        never: &[],
        times: &[],
        log: &[],
        no_log: &[],
        end: &|_| {},
    }
}

/// Plays a case and checks all that it expects, and what holds for every case.
pub fn check(case: Case<'_>) -> Story {
    let aws = FakeAws::cases();
    (case.world)(&mut aws.world());
    for (variable, value) in case.config {
        if value.is_empty() {
            aws.unset(variable)
        } else {
            aws.set(variable, value)
        }
    }
    case.faults.into_iter().for_each(|rule| aws.inject(rule));
    let most = case.cut_after.unwrap_or(60);
    let story = play(
        aws,
        &case.payload,
        &Play {
            seconds: case.seconds,
            before: case.before,
            most,
        },
    );
    let calls = story.aws.all_calls();
    if case.cut_after.is_none() {
        assert!(
            story.deliveries.len() < most,
            "the story doesn't end:\n{}",
            told(&story)
        );
    }
    expect_reply(&story, 0, case.first);
    if case.cut_after.is_none() || story.deliveries.len() < most || !matches!(case.last, Reply::Ok)
    {
        expect_reply(&story, story.deliveries.len() - 1, case.last);
    }
    for pattern in case.did {
        assert!(
            calls.iter().any(|c| c.took_effect() && matches(c, pattern)),
            "not done: {pattern}\n{}",
            told(&story)
        );
    }
    for pattern in case.never {
        assert!(
            !calls.iter().any(|c| matches(c, pattern)),
            "must not be called: {pattern}\n{}",
            told(&story)
        );
    }
    let places: Vec<_> = case
        .in_order
        .iter()
        .map(|p| calls.iter().position(|c| c.took_effect() && matches(c, p)))
        .collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "not in this order: {:?} at {places:?}\n{}",
        case.in_order,
        told(&story)
    );
    for (pattern, times) in case.times {
        let called = calls.iter().filter(|c| matches(c, pattern)).count();
        assert_eq!(called, *times, "how often {pattern}\n{}", told(&story));
    }
    for (level, words) in case.log {
        assert!(
            story.has_line(level, words),
            "not in the log: {level} {words}\n{}",
            told(&story)
        );
    }
    for (level, words) in case.no_log {
        assert!(
            !story.has_line(level, words),
            "must not be in the log: {level} {words}\n{}",
            told(&story)
        );
    }
    (case.end)(&story.aws.world());
    hold_always(&story);
    story
}

/// The ids that short names stand for.
const IDS: [(&str, &str); 7] = [
    ("M1", M1),
    ("M2", M2),
    ("W1", W1),
    ("W2", W2),
    ("W3", W3),
    ("W8", W8),
    ("GONE", LONG_GONE),
];

fn spelled(word: &str) -> &str {
    IDS.iter()
        .find(|(name, _)| *name == word)
        .map_or(word, |(_, id)| id)
}

fn matches(call: &Call, pattern: &str) -> bool {
    let mut words = pattern.split_whitespace();
    let operation = words.next().unwrap_or_default();
    let text = call.request.to_string();
    call.operation() == operation && words.all(|word| text.contains(spelled(word)))
}

fn expect_reply(story: &Story, number: usize, expected: Reply) {
    let delivery = &story.deliveries[number];
    let is_batch = !delivery.ids.is_empty();
    let context = || {
        format!(
            "delivery {} answered {:?}, expected {expected:?}\n{}",
            number + 1,
            delivery.reply,
            told(story)
        )
    };
    let reply = match (&delivery.reply, expected) {
        (Err(_), Reply::Err) => return,
        (Ok(reply), _) => reply,
        (Err(_), _) => panic!("{}", context()),
    };
    let is_as_expected = match expected {
        Reply::Ok if is_batch => *reply == json!({ "batchItemFailures": [] }),
        Reply::Ok => {
            reply.is_array()
                || reply
                    .get("batchItemFailures")
                    .is_none_or(|f| *f == json!([]))
        }
        Reply::Fail(numbers) if is_batch => {
            let expected: BTreeSet<_> = numbers
                .iter()
                .map(|n| delivery.ids[n - 1].clone())
                .collect();
            let listed = reply["batchItemFailures"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let ids: BTreeSet<_> = listed
                .iter()
                .filter_map(|f| f["itemIdentifier"].as_str().map(str::to_owned))
                .collect();
            // The keys are Lambda's to the letter, and nothing stands beside them.
            let rebuilt: Vec<Value> = listed
                .iter()
                .map(|f| json!({ "itemIdentifier": f["itemIdentifier"] }))
                .collect();
            ids == expected
                && ids.len() == listed.len()
                && *reply == json!({ "batchItemFailures": rebuilt })
        }
        Reply::Fail(_) | Reply::Err => false,
        Reply::Outcome(word) => reply["outcome"] == json!(word),
    };
    assert!(is_as_expected, "{}", context());
}

impl Story {
    /// Whether a line of this level shows all these words.
    pub fn has_line(&self, level: &str, words: &str) -> bool {
        self.log.iter().any(|line| has(line, level, words))
    }

    pub fn lines(&self, level: &str, words: &str) -> usize {
        self.log
            .iter()
            .filter(|line| has(line, level, words))
            .count()
    }
}

fn has(line: &LogLine, level: &str, words: &str) -> bool {
    (level == "*" || line.level() == level)
        && words
            .split_whitespace()
            .all(|word| line.raw.contains(spelled(word)))
}
