//! The fake's Auto Scaling, Systems Manager and SQS, driven by the real SDK clients.

use super::*;
use aws_sdk_ec2::error::ProvideErrorMetadata;

#[test]
fn a_hook_waits_beats_completes_and_lets_the_instance_go() {
    let aws = FakeAws::cases();
    let client = aws_sdk_autoscaling::Client::new(&aws.sdk_config());
    let hooks = drive(
        &aws.clock,
        client
            .describe_lifecycle_hooks()
            .auto_scaling_group_name(GROUP)
            .send(),
    )
    .expect("read");
    assert_eq!(hooks.lifecycle_hooks()[0].heartbeat_timeout(), Some(3600));
    let beat = client
        .record_lifecycle_action_heartbeat()
        .auto_scaling_group_name(GROUP)
        .lifecycle_hook_name(HOOK)
        .instance_id(M1);
    drive(&aws.clock, beat.send()).expect("it waits");
    let complete = || {
        let call = client
            .complete_lifecycle_action()
            .auto_scaling_group_name(GROUP)
            .lifecycle_hook_name(HOOK);
        call.instance_id(M1)
            .lifecycle_action_result("CONTINUE")
            .send()
    };
    drive(&aws.clock, complete()).expect("it waits");
    let error = drive(&aws.clock, complete()).expect_err("it is over");
    assert_eq!(error.code(), Some("ValidationError"));
    assert!(
        error
            .message()
            .unwrap_or_default()
            .starts_with("No active Lifecycle Action found")
    );
    let state = || {
        let found = drive(
            &aws.clock,
            client
                .describe_auto_scaling_instances()
                .instance_ids(M1)
                .send(),
        )
        .expect("read");
        found
            .auto_scaling_instances()
            .first()
            .and_then(|member| member.lifecycle_state().map(str::to_owned))
    };
    assert_eq!(state().as_deref(), Some("Terminating:Proceed"));
    aws.advance(seconds(3));
    assert_eq!(aws.world().instance(M1).state, InstanceState::ShuttingDown);
    aws.advance(minutes(1));
    assert_eq!(state(), None);
}

#[test]
fn a_hook_without_heartbeats_times_out() {
    let aws = FakeAws::cases();
    aws.advance(minutes(61));
    let world = aws.world();
    let action = &world.groups[GROUP].actions[0];
    let closed = action.closed.as_ref().expect("timed out");
    assert_eq!(
        (closed.at, &closed.how),
        (start() + minutes(60), &Closing::HeartbeatTimeout)
    );
    assert!(world.instance(M1).state.is_ending());
}

#[test]
fn groups_list_their_members_and_unknown_groups_are_absent() {
    let aws = FakeAws::cases();
    let client = aws_sdk_autoscaling::Client::new(&aws.sdk_config());
    let call = client
        .describe_auto_scaling_groups()
        .auto_scaling_group_names(GROUP)
        .auto_scaling_group_names("none")
        .send();
    let groups = drive(&aws.clock, call).expect("read");
    assert_eq!(groups.auto_scaling_groups().len(), 1);
    assert_eq!(groups.auto_scaling_groups()[0].instances().len(), 2);
    aws.inject(Fault::Denied.on("DescribeLifecycleHooks"));
    let error = drive(
        &aws.clock,
        client
            .describe_lifecycle_hooks()
            .auto_scaling_group_name(GROUP)
            .send(),
    )
    .expect_err("denied");
    assert_eq!(error.code(), Some("AccessDenied"));
}

#[test]
fn commands_are_sent_listed_and_asked_for() {
    let aws = FakeAws::cases();
    aws.world().ssm.fates.push_back(
        Fate::says("busy")
            .after(minutes(1))
            .visible_after(seconds(5)),
    );
    let client = aws_sdk_ssm::Client::new(&aws.sdk_config());
    let send = client
        .send_command()
        .document_name(DOCUMENT)
        .instance_ids(M1)
        .timeout_seconds(60)
        .parameters("WaitSeconds", vec!["120".into()]);
    let sent = drive(&aws.clock, send.send()).expect("sent");
    let id = sent
        .command()
        .and_then(|command| command.command_id())
        .expect("an id")
        .to_owned();
    let ask = || {
        drive(
            &aws.clock,
            client
                .get_command_invocation()
                .command_id(&id)
                .instance_id(M1)
                .send(),
        )
    };
    let error = ask().expect_err("not visible yet");
    assert_eq!(error.code(), Some("InvocationDoesNotExist"));
    aws.advance(seconds(10));
    assert_eq!(
        ask()
            .expect("visible")
            .status()
            .map(|status| status.as_str()),
        Some("InProgress")
    );
    aws.advance(minutes(1));
    let ended = ask().expect("ended");
    assert!(
        ended
            .standard_output_content()
            .unwrap_or_default()
            .starts_with("lifecycle-reaper: busy")
    );
    let filter = |key: &str, value: &str| {
        aws_sdk_ssm::types::CommandFilter::builder()
            .key(key.into())
            .value(value)
            .build()
            .expect("a filter")
    };
    let listed = |after: &str| {
        let call = client
            .list_commands()
            .filters(filter("DocumentName", DOCUMENT))
            .filters(filter("InvokedAfter", after));
        drive(&aws.clock, call.send())
            .expect("listed")
            .commands()
            .len()
    };
    assert_eq!(listed("2025-03-04T05:00:00Z"), 1);
    assert_eq!(listed("2025-03-04T05:06:30Z"), 0);
    let error = drive(
        &aws.clock,
        client
            .send_command()
            .document_name(DOCUMENT)
            .instance_ids(LONG_GONE)
            .send(),
    )
    .expect_err("unknown");
    assert_eq!(error.code(), Some("InvalidInstanceId"));
    let error = drive(
        &aws.clock,
        client
            .send_command()
            .document_name("none")
            .instance_ids(M1)
            .send(),
    )
    .expect_err("unknown");
    assert_eq!(error.code(), Some("InvalidDocument"));
}

#[test]
fn queues_take_messages_and_visibility() {
    let aws = FakeAws::cases();
    let client = aws_sdk_sqs::Client::new(&aws.sdk_config());
    let attribute = aws_sdk_sqs::types::MessageAttributeValue::builder()
        .data_type("String")
        .string_value("why")
        .build()
        .expect("whole");
    let send = client
        .send_message()
        .queue_url(DEAD_LETTER_QUEUE)
        .message_body("{\"a\":\"ü\"}")
        .message_attributes("reason", attribute);
    drive(&aws.clock, send.send()).expect("sent");
    let change = client
        .change_message_visibility()
        .queue_url(WORK_QUEUE)
        .receipt_handle("r1")
        .visibility_timeout(30);
    drive(&aws.clock, change.send()).expect("changed");
    let error = drive(
        &aws.clock,
        client
            .send_message()
            .queue_url("https://none/none")
            .message_body("x")
            .send(),
    )
    .expect_err("no queue");
    assert_eq!(
        error.code(),
        Some("AWS.SimpleQueueService.NonExistentQueue")
    );
    let url = drive(
        &aws.clock,
        client
            .get_queue_url()
            .queue_name("lifecycle-cleanup")
            .send(),
    )
    .expect("found");
    assert_eq!(url.queue_url(), Some(WORK_QUEUE));
    let world = aws.world();
    assert_eq!(
        world.queues[DEAD_LETTER_QUEUE].sent[0].attributes["reason"],
        "why"
    );
    assert_eq!(world.queues[WORK_QUEUE].visibility["r1"].0, 30);
}

#[test]
fn a_group_tells_when_a_termination_began() {
    let aws = FakeAws::cases();
    let client = aws_sdk_autoscaling::Client::new(&aws.sdk_config());
    let read = drive(
        &aws.clock,
        client
            .describe_scaling_activities()
            .auto_scaling_group_name(GROUP)
            .send(),
    )
    .expect("read");
    let activity = &read.activities()[0];
    assert_eq!(
        activity.description(),
        Some(format!("Terminating EC2 instance: {M1}").as_str())
    );
    assert_eq!(
        activity.start_time().map(|time| time.secs()),
        Some(start().timestamp())
    );
}
