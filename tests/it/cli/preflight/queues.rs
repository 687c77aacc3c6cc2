//! The two queues.

use super::*;

#[test]
fn queues_that_are_missing() {
    one(
        &findings(|aws, _| aws.unset("WORK_QUEUE_URL")),
        Level::Warning,
        "WORK_QUEUE_URL",
        "it is not set",
    );
    one(
        &findings(|aws, _| aws.unset("DEAD_LETTER_QUEUE_URL")),
        Level::Warning,
        "DEAD_LETTER_QUEUE_URL",
        "it is not set",
    );
    one(
        &findings(|_, world| drop(world.queues.remove(DEAD_LETTER_QUEUE))),
        Level::Problem,
        "DEAD_LETTER_QUEUE_URL",
        "doesn't exist",
    );
    one(
        &findings(|_, world| {
            world
                .rules
                .push(Fault::Denied.on("GetQueueAttributes").times(1))
        }),
        Level::Note,
        "WORK_QUEUE_URL",
        "could not be read",
    );
    one(
        &findings(|aws, _| aws.unset("EXECUTOR_NAME")),
        Level::Warning,
        "EXECUTOR_NAME",
        "it is not set",
    );
}

fn with_work_queue(attributes: &'static [(&'static str, &'static str)]) -> Vec<Finding> {
    findings(|_, world| set_queue(world, WORK_QUEUE, attributes))
}

#[test]
fn a_work_queue_that_gives_up_at_another_count() {
    let redrive =
        |count| findings(move |_, world| set_queue(world, WORK_QUEUE, &[("RedrivePolicy", count)]));
    one(
        &redrive(r#"{"maxReceiveCount":50}"#),
        Level::Problem,
        "WORK_QUEUE_URL",
        "its maxReceiveCount is 50, MAX_RECEIVE_COUNT is 74",
    );
    one(
        &redrive(r#"{"maxReceiveCount":"100"}"#),
        Level::Warning,
        "WORK_QUEUE_URL",
        "its maxReceiveCount is 100, MAX_RECEIVE_COUNT is 74",
    );
    one(
        &redrive("{}"),
        Level::Warning,
        "WORK_QUEUE_URL",
        "no redrive policy",
    );
    one(
        &findings(|aws, _| aws.unset("MAX_RECEIVE_COUNT")),
        Level::Warning,
        "WORK_QUEUE_URL",
        "MAX_RECEIVE_COUNT is not set",
    );
}

#[test]
fn a_work_queue_that_forgets_too_soon() {
    one(
        &with_work_queue(&[("MessageRetentionPeriod", "3600")]),
        Level::Problem,
        "WORK_QUEUE_URL",
        "it keeps messages for 3600 s, DRAIN_TIMEOUT_SECONDS is 7200",
    );
    one(
        &with_work_queue(&[("VisibilityTimeout", "10")]),
        Level::Problem,
        "WORK_QUEUE_URL",
        "its visibility timeout is 10 s",
    );
    one(
        &with_work_queue(&[("MessageRetentionPeriod", "1209600")]),
        Level::Warning,
        "DEAD_LETTER_QUEUE_URL",
        "it keeps messages for 1209600 s, the work queue for 1209600 s",
    );
}
