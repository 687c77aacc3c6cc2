//! Scenes that together make the function say all that it can say, and what it said.

use crate::{
    cases::{event, story::Lines},
    fake_aws::*,
};
use chrono::TimeDelta;
use lifecycle_reaper::{handler::Handler, log};
use serde_json::{Value, json};

/// One line that was written.
#[derive(Clone, Debug)]
pub struct Line {
    pub raw: String,
    pub json: Value,
}

impl Line {
    pub fn level(&self) -> &str {
        self.text("level")
    }

    pub fn message(&self) -> &str {
        self.text("message")
    }

    pub fn text(&self, field: &str) -> &str {
        self.json[field].as_str().unwrap_or_default()
    }

    /// A field of the line, or of the span of this name around it.
    pub fn in_span(&self, span: &str, field: &str) -> &str {
        let spans = self.json["spans"].as_array().into_iter().flatten();
        spans
            .filter(|s| s["name"] == span)
            .find_map(|s| s[field].as_str())
            .unwrap_or_default()
    }
}

type Prepare = fn(&FakeAws);

/// A world, and payloads with the minutes that pass after each.
pub struct Scene {
    pub name: &'static str,
    prepare: Prepare,
    steps: Vec<(String, i64)>,
    pub aws: FakeAws,
    pub lines: Vec<Line>,
}

impl Scene {
    fn play(name: &'static str, prepare: Prepare, steps: Vec<(String, i64)>, level: &str) -> Self {
        let aws = FakeAws::cases();
        prepare(&aws);
        let written = Lines::default();
        tracing::subscriber::with_default(log::subscriber(level, written.clone()), || {
            let handler: Handler = aws.handler();
            for (payload, minutes) in &steps {
                // An invocation that fails says so in the log like any other.
                let _ = aws.run_on(&handler, payload, 300);
                aws.advance(TimeDelta::minutes(*minutes));
            }
        });
        Self {
            name,
            prepare,
            steps,
            aws,
            lines: read(&written.text()),
        }
    }

    /// The same scene, logged at another level.
    pub fn again(&self, level: &str) -> Self {
        Self::play(self.name, self.prepare, self.steps.clone(), level)
    }

    /// What a person reads.
    pub fn log(&self) -> impl Iterator<Item = &Line> {
        self.lines
            .iter()
            .filter(|line| line.json.get("_aws").is_none())
    }

    /// What CloudWatch counts.
    pub fn metrics(&self) -> impl Iterator<Item = &Line> {
        self.lines
            .iter()
            .filter(|line| line.json.get("_aws").is_some())
    }
}

fn read(text: &str) -> Vec<Line> {
    let line = |raw: &str| Line {
        raw: raw.to_owned(),
        json: serde_json::from_str(raw).unwrap_or_else(|e| panic!("{e} in {raw}")),
    };
    text.lines().map(line).collect()
}

/// The hook's message, as delivered for the nth time.
fn hook_message(delivery: usize) -> String {
    let mut batch: Value = serde_json::from_str(&event("sqs-termination-hook")).expect("JSON");
    batch["Records"][0]["attributes"]["ApproximateReceiveCount"] = json!(delivery.to_string());
    batch.to_string()
}

/// The payload with message ids that no other scene has: SQS gives each message its own.
fn of_scene(payload: &str, number: usize) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(payload) else {
        return payload.to_owned();
    };
    let records = value["Records"].as_array_mut();
    let mut is_changed = false;
    for id in records.into_iter().flatten().map(|r| &mut r["messageId"]) {
        if let Some((_, rest)) = id.as_str().and_then(|id| id.split_once('-')) {
            *id = json!(format!("{number:08x}-{rest}"));
            is_changed = true;
        }
    }
    if is_changed {
        value.to_string()
    } else {
        payload.to_owned()
    }
}

fn nothing(_: &FakeAws) {}

/// Something of every kind, left by a manager that is gone.
fn leftovers(aws: &FakeAws) {
    let mut world = aws.world();
    let now = world.now();
    world.end_instance(M1, now - TimeDelta::minutes(5));
    world
        .groups
        .get_mut(GROUP)
        .expect("the group")
        .members
        .remove(M1);
    world.put_worker(Worker::of(M1, W8).spot("sir-left0001"));
    world.put_machine_key("aa", EXECUTOR, TimeDelta::days(3));
    world.put_address("eipalloc-0aaaaaaaaaaaaaaaa", Some(M1));
    world.put_address("eipalloc-0bbbbbbbbbbbbbbbb", Some(M2));
    world
        .put_address("eipalloc-0cccccccccccccccc", None)
        .tags
        .insert("pool".into(), "ci".into());
    world.put_worker(Worker::of("not-an-instance", "i-0b99bb99bb99bb990"));
    drop(world);
    aws.set("EIP_TAG", "pool=ci");
}

/// Every scene, at the level that is the default.
pub fn everything() -> Vec<Scene> {
    let sweep = || event("direct-sweep");
    let drained: Vec<_> = (1..=8)
        .map(|delivery| (hook_message(delivery), 1))
        .collect();
    let scenes: Vec<(&'static str, Prepare, Vec<(String, i64)>)> = vec![
        (
            "a manager is drained, released and cleaned up after",
            |aws| aws.set("MAX_RECEIVE_COUNT", "74"),
            drained,
        ),
        (
            "a sweep meets something of every kind",
            leftovers,
            vec![(sweep(), 20), (sweep(), 1)],
        ),
        (
            "a sweep finds a manager waiting",
            nothing,
            vec![(sweep(), 1)],
        ),
        (
            "deletions fail",
            |aws| {
                leftovers(aws);
                aws.inject(Fault::Denied.on("DeleteKeyPair"));
                aws.inject(Fault::Code("OperationNotPermitted").on("TerminateInstances"));
                aws.inject(Fault::Code("InvalidAllocationID.NotFound").on("ReleaseAddress"));
                aws.inject(Fault::Denied.on("CreateTags"));
            },
            vec![(sweep(), 1)],
        ),
        (
            "reads fail",
            |aws| aws.inject(Fault::Denied.on("DescribeKeyPairs")),
            vec![(sweep(), 1)],
        ),
        (
            "EC2 throttles",
            |aws| aws.inject(Fault::Throttled.on("DescribeInstances").times(2)),
            vec![(sweep(), 1)],
        ),
        (
            "EC2 throttles for good",
            |aws| aws.inject(Fault::Throttled.on("DescribeInstances")),
            vec![(sweep(), 1), (hook_message(1), 1)],
        ),
        (
            "a hook is released at its deadline",
            |aws| {
                aws.world().ssm.usual_fate = Some(Fate::never_ends());
                aws.set("DRAIN_TIMEOUT_SECONDS", "600");
            },
            vec![(hook_message(1), 11), (hook_message(2), 1)],
        ),
        (
            "no agent takes the drain command",
            |aws| {
                aws.world().ssm.usual_fate = Some(Fate {
                    starts_after: TimeDelta::hours(1),
                    ..Fate::ends("TimedOut", "DeliveryTimedOut").after(TimeDelta::minutes(3))
                });
                aws.set("DRAIN_TIMEOUT_SECONDS", "600");
                aws.set("MAX_RECEIVE_COUNT", "52");
            },
            vec![
                (hook_message(1), 1),
                (hook_message(2), 7),
                (hook_message(3), 2),
                (hook_message(4), 1),
            ],
        ),
        (
            "a manager waits in a hook that is not ours",
            |aws| aws.set("LIFECYCLE_HOOKS", "misspelt-terminate"),
            vec![(hook_message(1), 1), (sweep(), 1)],
        ),
        (
            "no document",
            |aws| aws.inject(Fault::Code("InvalidDocument").on("SendCommand")),
            vec![(hook_message(1), 1)],
        ),
        (
            "Auto Scaling denies the completion",
            |aws| aws.inject(Fault::Denied.on("CompleteLifecycleAction")),
            vec![(hook_message(1), 1), (hook_message(2), 1)],
        ),
        (
            "the queue is denied",
            |aws| {
                aws.inject(Fault::Denied.on("ChangeMessageVisibility"));
                aws.inject(Fault::Denied.on("SendMessage"));
            },
            vec![(hook_message(1), 1), (event("poison-body-not-json"), 1)],
        ),
        (
            "nothing is written in plan mode",
            |aws| {
                leftovers(aws);
                aws.set("MODE", "plan");
            },
            vec![(sweep(), 1)],
        ),
        (
            "a hook waits in plan mode",
            |aws| aws.set("MODE", "plan"),
            vec![(hook_message(1), 1)],
        ),
        ("mixed records", nothing, vec![(event("batch-mixed"), 1)]),
        (
            "unreadable",
            nothing,
            vec![
                (event("poison-body-not-json"), 1),
                (event("poison-null"), 1),
            ],
        ),
        (
            "not ours",
            nothing,
            vec![
                (event("sqs-test-notification"), 1),
                (event("sqs-other-group"), 1),
                (event("s3-object-created"), 1),
            ],
        ),
        (
            "a manager that lives is said to be gone",
            nothing,
            vec![(event("direct-terminate-successful"), 1)],
        ),
        (
            "a call panics",
            |aws| aws.inject(Fault::Panics.on("DescribeInstances")),
            vec![(sweep(), 1)],
        ),
        (
            "a call hangs",
            |aws| aws.inject(Fault::Hanging.on("DescribeAutoScalingGroups")),
            vec![(sweep(), 1)],
        ),
    ];
    scenes
        .into_iter()
        .enumerate()
        .map(|(number, (name, prepare, steps))| {
            let steps = steps
                .into_iter()
                .map(|(payload, minutes)| (of_scene(&payload, number), minutes))
                .collect();
            Scene::play(name, prepare, steps, "info")
        })
        .collect()
}
