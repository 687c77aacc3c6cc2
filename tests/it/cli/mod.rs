//! The command line, run on the fake AWS as its binary would run it: arguments in, two streams and a status out.

mod leaving;
mod plan;
mod preflight;
mod table;
mod why;

pub use plan::crowd;

use crate::fake_aws::*;
use chrono::TimeDelta;
use clap::Parser;
use lifecycle_reaper::cli::{self, Args, Exit, Terminal};
use std::path::PathBuf;

/// What a command wrote, and how it ended.
pub struct Ran {
    pub exit: Exit,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {}", self.out))
    }

    /// The output in one line, so that a sentence can be looked for wherever it was wrapped.
    pub fn flat(&self) -> String {
        flat(&self.out)
    }
}

pub fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs `lifecycle-reaper <line>` in a terminal of 100 characters.
pub fn run(aws: &FakeAws, line: &str) -> Ran {
    run_in(aws, line, 100)
}

/// Runs it in a terminal of this width.
pub fn run_in(aws: &FakeAws, line: &str, width: usize) -> Ran {
    fastrand::seed(1);
    let words = std::iter::once("lifecycle-reaper").chain(line.split_whitespace());
    let args = Args::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
    let variables = aws.variables.lock().expect("unpoisoned").clone();
    let (mut out, mut err) = (vec![], vec![]);
    let exit = {
        let mut terminal = Terminal {
            out: &mut out,
            err: &mut err,
            width,
        };
        drive(
            &aws.clock,
            cli::run(&args, variables, async || aws.sdk_config(), &mut terminal),
        )
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran {
        exit,
        out: text(out),
        err: text(err),
    }
}

/// A file of this test alone, gone with it.
pub struct TempFile(pub PathBuf);

impl TempFile {
    pub fn named(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("lifecycle-reaper-{}-{name}", std::process::id())))
    }

    pub fn path(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A healthy deployment: one live manager with a worker, both queues well set, and nothing left behind.
pub fn healthy() -> FakeAws {
    let mut world = World::cases();
    {
        let group = world.groups.get_mut(GROUP).expect("the group");
        group.members.remove(M1);
        group.actions.clear();
        group.activities.clear();
        for hook in group.hooks.values_mut() {
            hook.heartbeat_timeout = seconds(3600);
        }
    }
    world.ec2.instances.remove(M1);
    world.ssm.agents.remove(M1);
    world.put_worker(Worker::of(M2, W3).age(minutes(30)));
    let redrive = r#"{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:123456789012:lifecycle-cleanup-dlq","maxReceiveCount":"74"}"#;
    set_queue(
        &mut world,
        WORK_QUEUE,
        &[
            ("VisibilityTimeout", "720"),
            ("MessageRetentionPeriod", "345600"),
            ("RedrivePolicy", redrive),
        ],
    );
    set_queue(
        &mut world,
        DEAD_LETTER_QUEUE,
        &[
            ("VisibilityTimeout", "30"),
            ("MessageRetentionPeriod", "1209600"),
        ],
    );
    let aws = FakeAws::with_variables(world);
    aws.set("MAX_RECEIVE_COUNT", "74");
    aws
}

pub fn set_queue(world: &mut World, url: &str, attributes: &[(&str, &str)]) {
    let queue = world.queues.get_mut(url).expect("the queue");
    queue.attributes.extend(
        attributes
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into())),
    );
}

/// A manager that ended a while ago: EC2 still shows it.
pub fn put_dead_manager(world: &mut World, id: &str, ago: TimeDelta) {
    let now = world.now();
    let tags = [("aws:autoscaling:groupName".to_owned(), GROUP.to_owned())].into();
    let instance = Instance {
        state: InstanceState::Terminated,
        launched: now - TimeDelta::days(1),
        attached: None,
        ended: Some(now - ago),
        tags,
        ..Instance::running(id, now)
    };
    world.ec2.instances.insert(id.into(), instance);
}

/// Worker number `n` of many.
pub fn worker_id(n: usize) -> String {
    format!("i-0c{n:015x}")
}
