//! The two queues: whether work that waits for its next pass stays there as long as it must.

use super::{Finding, Level};
use crate::{config::Config, fault::Fault};
use chrono::TimeDelta;

/// A queue that the configuration names.
#[derive(Clone, Debug)]
pub struct QueueFacts {
    /// The variable that names it.
    pub variable: &'static str,
    /// Its URL.
    pub url: String,
    /// What it is set to.
    pub attributes: Result<QueueAttributes, Fault>,
}

/// What a queue is set to, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueAttributes {
    /// `VisibilityTimeout`.
    pub visibility: Option<TimeDelta>,
    /// `MessageRetentionPeriod`.
    pub retention: Option<TimeDelta>,
    /// `maxReceiveCount` of its redrive policy.
    pub max_receive_count: Option<u32>,
    /// The dead-letter queue of its redrive policy.
    pub dead_letter_arn: Option<String>,
}

/// Lambda takes no function for a queue whose visibility timeout is shorter than the function's own, and no pass
/// over an account is sure to end sooner.
const SHORTEST_VISIBILITY: TimeDelta = TimeDelta::seconds(30);

/// The variables that name a queue, with its URL.
pub fn queues_of(config: &Config) -> Vec<(&'static str, String)> {
    let queues = [
        ("WORK_QUEUE_URL", &config.work_queue_url),
        ("DEAD_LETTER_QUEUE_URL", &config.dead_letter_queue_url),
    ];
    queues
        .into_iter()
        .filter_map(|(variable, url)| Some((variable, url.clone()?)))
        .collect()
}

/// What is to be said of the queues that are configured; that one isn't is said elsewhere.
pub fn of_queues(queues: &[QueueFacts], config: &Config) -> Vec<Finding> {
    let mut findings: Vec<Finding> = queues.iter().filter_map(unreadable).collect();
    let attributes = |variable| {
        let queue = queues.iter().find(|q| q.variable == variable)?;
        queue.attributes.as_ref().ok()
    };
    let (work, dead) = (
        attributes("WORK_QUEUE_URL"),
        attributes("DEAD_LETTER_QUEUE_URL"),
    );
    if let Some(work) = work {
        findings.extend(of_work_queue(work, config));
    }
    if let (Some(work), Some(dead)) = (
        work.and_then(|q| q.retention),
        dead.and_then(|q| q.retention),
    ) && dead <= work
    {
        findings.push(Finding::new(
            Level::Warning,
            "DEAD_LETTER_QUEUE_URL",
            format!(
                "it keeps messages for {} s, the work queue for {} s",
                dead.num_seconds(),
                work.num_seconds()
            ),
            "a message keeps its age when it moves there, and may be gone before a person looks",
            "set its MessageRetentionPeriod to 14 days",
        ));
    }
    findings
}

fn unreadable(queue: &QueueFacts) -> Option<Finding> {
    let fault = queue.attributes.as_ref().err()?;
    if fault.is_no_such_queue() {
        return Some(Finding::new(
            Level::Problem,
            queue.variable,
            format!("the queue {} doesn't exist", queue.url),
            "what has to wait there is lost or fails",
            format!("create it, or correct {}", queue.variable),
        ));
    }
    let what = format!("the queue {} could not be read ({fault})", queue.url);
    Some(Finding::not_told(
        queue.variable,
        what,
        "sqs:GetQueueAttributes",
    ))
}

fn of_work_queue(queue: &QueueAttributes, config: &Config) -> Vec<Finding> {
    const ABOUT: &str = "WORK_QUEUE_URL";
    let mut findings = vec![];
    let mut add = |level, what: String, why: &str, action: &str| {
        findings.push(Finding::new(level, ABOUT, what, why, action));
    };
    match (queue.max_receive_count, config.max_receive_count) {
        (None, _) => add(
            Level::Warning,
            "it has no redrive policy".into(),
            "a message that always fails comes again until it expires, and nobody sees it",
            "give it a redrive policy with the dead-letter queue",
        ),
        (Some(queue), None) => add(
            Level::Warning,
            format!("its maxReceiveCount is {queue}, MAX_RECEIVE_COUNT is not set"),
            "the function can't know its last deliveries, and a message may be given up while a hook waits",
            "set MAX_RECEIVE_COUNT to the queue's maxReceiveCount",
        ),
        (Some(queue), Some(ours)) if ours > queue => add(
            Level::Problem,
            format!("its maxReceiveCount is {queue}, MAX_RECEIVE_COUNT is {ours}"),
            "the queue gives up on a message while the function still counts on more deliveries: a hook waits until it times out",
            "set both to the same number",
        ),
        (Some(queue), Some(ours)) if ours < queue => add(
            Level::Warning,
            format!("its maxReceiveCount is {queue}, MAX_RECEIVE_COUNT is {ours}"),
            "drains end after fewer deliveries than the queue would allow",
            "set both to the same number",
        ),
        (Some(_), Some(_)) => {}
    }
    if let Some(visibility) = queue.visibility.filter(|v| *v < SHORTEST_VISIBILITY) {
        add(
            Level::Problem,
            format!("its visibility timeout is {} s", visibility.num_seconds()),
            "it must be at least the function's timeout, or a message comes a second time while its first pass runs",
            "set it to six times the function's timeout",
        );
    }
    if let Some(retention) = queue.retention.filter(|r| *r <= config.drain_timeout) {
        add(
            Level::Problem,
            format!(
                "it keeps messages for {} s, DRAIN_TIMEOUT_SECONDS is {}",
                retention.num_seconds(),
                config.drain_timeout.num_seconds()
            ),
            "a message expires before its drain ends, and the hook waits until it times out",
            "set its MessageRetentionPeriod to 4 days",
        );
    }
    findings
}
