//! A drain of two hours, in virtual time: how often the function runs, what it calls, and how soon after the last job
//! the hook is released. Run with `--nocapture` to see the numbers.

use crate::{cases::event, fake_aws::*};
use chrono::{DateTime, TimeDelta, Utc};
use lifecycle_reaper::handler::Handler;
use serde_json::{Value, json};

/// How a drain is watched.
struct Watch {
    /// Seconds that one run of the drain document waits for the jobs, infra's `WaitSeconds`.
    document_waits: i64,
    /// Whether EventBridge tells us that a command ended.
    ssm_event: bool,
}

/// What it came to.
#[derive(Debug)]
struct Cost {
    invocations: usize,
    calls: usize,
    commands: usize,
    /// Virtual milliseconds of all invocations: latency of calls alone, for computing takes no virtual time.
    busy: i64,
    /// From the end of the last job to the completed hook.
    late: TimeDelta,
}

const JOBS_END_AFTER: TimeDelta = TimeDelta::hours(2);
const LATENCY: TimeDelta = TimeDelta::milliseconds(30);

fn sample(name: &str) -> Value {
    serde_json::from_str(&event(name)).expect("JSON")
}

/// The hook's message, as the queue hands it out for the nth time.
fn hook_message(sent: DateTime<Utc>, receives: u32) -> String {
    let mut batch = sample("sqs-termination-hook");
    batch["Records"][0]["attributes"]["ApproximateReceiveCount"] = json!(receives.to_string());
    batch["Records"][0]["attributes"]["SentTimestamp"] = json!(sent.timestamp_millis().to_string());
    batch.to_string()
}

/// SSM's event about a command that ended.
fn ended(command: &Command, at: DateTime<Utc>) -> String {
    let mut batch = sample("sqs-command-ended");
    let mut event: Value =
        serde_json::from_str(batch["Records"][0]["body"].as_str().expect("a body")).expect("JSON");
    event["time"] = json!(at.format("%Y-%m-%dT%H:%M:%SZ").to_string());
    event["detail"]["command-id"] = json!(command.id);
    event["detail"]["status"] = json!(command.fate.status);
    let record = &mut batch["Records"][0];
    record["body"] = json!(event.to_string());
    record["receiptHandle"] = json!(format!("AQEB{}", command.id));
    record["attributes"]["SentTimestamp"] = json!(at.timestamp_millis().to_string());
    batch.to_string()
}

/// When a command that is sent now would end, and how.
fn fate(now: DateTime<Utc>, jobs_end: DateTime<Utc>, watch: &Watch) -> Fate {
    let (left, wait) = (jobs_end - now, TimeDelta::seconds(watch.document_waits));
    if left <= wait {
        Fate::says("stopped").after(left.max(TimeDelta::seconds(1)))
    } else {
        Fate::says("busy").after(wait)
    }
}

struct Drain {
    aws: FakeAws,
    handler: Handler,
    jobs_end: DateTime<Utc>,
    invocations: usize,
    busy: i64,
}

impl Drain {
    fn invoke(&mut self, payload: &str, watch: &Watch) -> Value {
        let fate = fate(self.aws.now(), self.jobs_end, watch);
        self.aws.world().ssm.usual_fate = Some(fate);
        let began = self.aws.now();
        let reply = self
            .aws
            .run_on(&self.handler, payload, 300)
            .expect("a reply");
        self.invocations += 1;
        self.busy += (self.aws.now() - began).num_milliseconds();
        reply
    }

    fn released(&self) -> Option<DateTime<Utc>> {
        self.aws
            .calls("CompleteLifecycleAction")
            .first()
            .map(|call| call.at)
    }

    /// Commands that have ended by now or will, with the moment that SSM says so.
    fn ends(&self) -> Vec<(DateTime<Utc>, Command)> {
        let world = self.aws.world();
        world
            .ssm
            .commands
            .iter()
            .filter_map(|c| {
                Some((
                    c.sent + c.fate.ends_after? + TimeDelta::seconds(1),
                    c.clone(),
                ))
            })
            .collect()
    }
}

/// Plays the drain until the hook is released.
fn play(watch: &Watch) -> Cost {
    let aws = FakeAws::cases();
    aws.set("DRAIN_TIMEOUT_SECONDS", "14400");
    aws.world().latency = LATENCY;
    let sent = aws.now();
    let mut drain = Drain {
        handler: aws.handler(),
        jobs_end: sent + JOBS_END_AFTER,
        aws,
        invocations: 0,
        busy: 0,
    };
    let (mut receives, mut visible) = (0, sent);
    let mut told = 0;
    while drain.released().is_none() {
        assert!(drain.invocations < 1000, "the drain doesn't end");
        let event = drain
            .ends()
            .into_iter()
            .nth(told)
            .filter(|_| watch.ssm_event);
        match event.filter(|(at, _)| *at < visible) {
            Some((at, command)) => {
                told += 1;
                drain
                    .aws
                    .advance((at - drain.aws.now()).max(TimeDelta::zero()));
                let reply = drain.invoke(&ended(&command, at), watch);
                assert_eq!(
                    reply,
                    json!({ "batchItemFailures": [] }),
                    "a wake never comes again by itself"
                );
            }
            None => {
                receives += 1;
                drain
                    .aws
                    .advance((visible - drain.aws.now()).max(TimeDelta::zero()));
                drain.invoke(&hook_message(sent, receives), watch);
                let world = drain.aws.world();
                let set = world.queues[WORK_QUEUE]
                    .visibility
                    .get("AQEBinvented0001==");
                let (seconds, at) = set
                    .copied()
                    .expect("a pass sets when its message comes again");
                visible = at + TimeDelta::seconds(seconds);
            }
        }
    }
    let late = drain.released().expect("released") - drain.jobs_end;
    Cost {
        invocations: drain.invocations,
        calls: drain.aws.all_calls().len(),
        commands: drain.aws.calls("SendCommand").len(),
        busy: drain.busy,
        late,
    }
}

/// What a function would do that looks every 30 s and beats the heart each time: the hook, the instance, the command, the heartbeat.
fn polling() -> (usize, usize) {
    let looks = (JOBS_END_AFTER.num_seconds() / 30) as usize;
    (looks, looks * 4)
}

/// GB-seconds at a memory size: waiting for AWS, and computing, which takes longer the less of a CPU there is.
fn gb_seconds(invocations: usize, waiting: i64, megabytes: f64) -> f64 {
    let computing = invocations as f64 * CPU * WHOLE_CPU / megabytes;
    (waiting as f64 + computing) / 1000.0 * megabytes / 1024.0
}

/// Milliseconds of CPU that a warm invocation about a drain takes, as `make bench` measures it (rounded up).
const CPU: f64 = 1.5;
/// Lambda gives a function with so many megabytes one whole CPU.
const WHOLE_CPU: f64 = 1769.0;

#[test]
fn two_hours_cost_a_handful_of_invocations_and_the_hook_is_released_at_once() {
    let (polls, poll_calls) = polling();
    println!(
        "| two-hour drain | invocations | API calls | commands | GB-s at 128 MB | GB-s at 256 MB | jobs done to hook released |"
    );
    println!("|---|---|---|---|---|---|---|");
    let waiting = polls as i64 * 4 * LATENCY.num_milliseconds();
    println!(
        "| polling every 30 s (arithmetic) | {polls} | {poll_calls} | 1 | {:.3} | {:.3} | 15 s on average |",
        gb_seconds(polls, waiting, 128.0),
        gb_seconds(polls, waiting, 256.0)
    );
    let mut costs = vec![];
    for document_waits in [240, 2400] {
        for ssm_event in [true, false] {
            let cost = play(&Watch {
                document_waits,
                ssm_event,
            });
            let words = if ssm_event { "with" } else { "without" };
            println!(
                "| ours, document waits {document_waits} s, {words} SSM's event | {} | {} | {} | {:.3} | {:.3} | {} s |",
                cost.invocations,
                cost.calls,
                cost.commands,
                gb_seconds(cost.invocations, cost.busy, 128.0),
                gb_seconds(cost.invocations, cost.busy, 256.0),
                cost.late.num_seconds(),
            );
            costs.push(cost);
        }
    }
    let [short_event, short_silent, long_event, long_silent] =
        <[Cost; 4]>::try_from(costs).expect("four");
    for told in [&short_event, &long_event] {
        assert!(told.late <= TimeDelta::seconds(5), "{told:?}");
    }
    for silent in [&short_silent, &long_silent] {
        assert!(
            silent.late <= TimeDelta::seconds(900 + 5),
            "one redelivery late at the most: {silent:?}"
        );
    }
    assert!(
        long_event.invocations <= 20 && long_event.invocations * 10 <= polls,
        "{long_event:?}"
    );
    assert!(short_event.invocations <= 50, "{short_event:?}");
    assert!(long_event.calls * 4 <= poll_calls, "{long_event:?}");
}
