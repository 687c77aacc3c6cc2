//! The work queue with its event source mapping: what the function leaves on it comes again until it is done.

use super::*;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

/// A message that waits.
struct Message {
    body: String,
    sent: DateTime<Utc>,
    visible: DateTime<Utc>,
    receives: u32,
}

/// What happened until the queue was empty.
#[derive(Debug)]
pub struct Course {
    /// Invocations, the first direct one included.
    pub invocations: usize,
    /// Deliveries of the message that was delivered most often.
    pub most_receives: u32,
    /// From the first invocation to the end of the last.
    pub took: TimeDelta,
    /// Calls to AWS.
    pub calls: usize,
}

/// The function's time-out, as infra sets it.
const FUNCTION_SECONDS: i64 = 120;

/// Invokes the function once, and then with what comes of it, until nothing waits any more.
pub fn invoke_until_done(aws: &FakeAws, payload: &str) -> Course {
    let (began, calls) = (aws.now(), aws.all_calls().len());
    let mut queue = Queued::of(aws);
    aws.run_for(payload, FUNCTION_SECONDS).expect("a reply");
    let mut course = queue.work_off();
    course.invocations += 1;
    Course {
        took: aws.now() - began,
        calls: aws.all_calls().len() - calls,
        ..course
    }
}

/// Delivers these messages, until nothing waits any more.
pub fn deliver_until_done(aws: &FakeAws, bodies: Vec<String>) -> Course {
    let (began, calls) = (aws.now(), aws.all_calls().len());
    let mut queue = Queued::of(aws);
    queue.waiting.extend(bodies.into_iter().map(|body| Message {
        body,
        sent: began,
        visible: began,
        receives: 0,
    }));
    let course = queue.work_off();
    Course {
        took: aws.now() - began,
        calls: aws.all_calls().len() - calls,
        ..course
    }
}

struct Queued<'a> {
    aws: &'a FakeAws,
    waiting: Vec<Message>,
    /// How many of the messages that the function sent are in `waiting` already.
    taken: usize,
    most_receives: u32,
}

impl<'a> Queued<'a> {
    fn of(aws: &'a FakeAws) -> Self {
        let taken = aws.world().queues[WORK_QUEUE].sent.len();
        Self {
            aws,
            waiting: vec![],
            taken,
            most_receives: 0,
        }
    }

    fn work_off(&mut self) -> Course {
        let mut invocations = 0;
        self.take_sent();
        while !self.waiting.is_empty() {
            invocations += 1;
            assert!(invocations < 500, "the queue is never empty");
            self.deliver_next();
            self.take_sent();
        }
        Course {
            invocations,
            most_receives: self.most_receives,
            took: TimeDelta::zero(),
            calls: 0,
        }
    }

    fn take_sent(&mut self) {
        let world = self.aws.world();
        for message in &world.queues[WORK_QUEUE].sent[self.taken..] {
            let visible = message.sent + TimeDelta::seconds(message.delay_seconds);
            self.waiting.push(Message {
                body: message.body.clone(),
                sent: message.sent,
                visible,
                receives: 0,
            });
        }
        self.taken = world.queues[WORK_QUEUE].sent.len();
    }

    fn deliver_next(&mut self) {
        self.waiting.sort_by_key(|message| message.visible);
        let mut message = self.waiting.remove(0);
        let now = self.aws.now();
        self.aws
            .advance((message.visible - now).max(TimeDelta::zero()));
        message.receives += 1;
        self.most_receives = self.most_receives.max(message.receives);
        let max: u32 = self.aws.variables.lock().expect("unpoisoned")["MAX_RECEIVE_COUNT"]
            .parse()
            .expect("a number");
        assert!(
            message.receives <= max,
            "it would fall into the dead-letter queue: {}",
            message.body
        );
        let receipt = format!(
            "receipt-{}-{}",
            self.aws.world().next_serial(),
            message.receives
        );
        let reply = self
            .aws
            .run_for(&batch(&message, &receipt), FUNCTION_SECONDS)
            .expect("a reply");
        if reply["batchItemFailures"]
            .as_array()
            .is_some_and(|failures| !failures.is_empty())
        {
            let (seconds, at) = self.aws.world().queues[WORK_QUEUE].visibility[&receipt];
            message.visible = at + TimeDelta::seconds(seconds);
            self.waiting.push(message);
        }
    }
}

fn batch(message: &Message, receipt: &str) -> String {
    let record: Value = json!({
        "messageId": "c0000000-0000-4000-8000-000000000001",
        "receiptHandle": receipt,
        "body": message.body,
        "attributes": {
            "ApproximateReceiveCount": message.receives.to_string(),
            "SentTimestamp": message.sent.timestamp_millis().to_string(),
        },
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:lifecycle-cleanup",
        "awsRegion": "eu-west-1",
    });
    json!({ "Records": [record] }).to_string()
}

/// The message of the hook that one manager waits on.
pub fn hook_message(manager: &str, at: DateTime<Utc>) -> String {
    json!({
        "Origin": "AutoScalingGroup",
        "Destination": "EC2",
        "LifecycleHookName": HOOK,
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "AutoScalingGroupName": GROUP,
        "EC2InstanceId": manager,
        "LifecycleActionToken": "7b1d5c02-3f0e-4a57-9c44-0e6f1c2d3a01",
        "AccountId": "123456789012",
        "Service": "AWS Auto Scaling",
        "Time": at.to_rfc3339(),
    })
    .to_string()
}
