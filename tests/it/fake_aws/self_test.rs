//! The fake, driven by the real SDK clients: what it answers is read by them as AWS's answers are.

use super::*;
use aws_sdk_ec2::error::ProvideErrorMetadata;
use chrono::TimeDelta;

fn ec2(aws: &FakeAws) -> aws_sdk_ec2::Client {
    aws_sdk_ec2::Client::new(&aws.sdk_config())
}

#[test]
fn instances_come_page_by_page_with_their_fields() {
    let aws = FakeAws::cases();
    aws.world().page_size = 2;
    let pages = drive(&aws.clock, async {
        let mut stream = ec2(&aws)
            .describe_instances()
            .max_results(1000)
            .into_paginator()
            .send();
        let mut pages = Vec::new();
        while let Some(page) = stream.next().await {
            pages.push(page.expect("a page"));
        }
        pages
    });
    assert_eq!(pages.len(), 3);
    let instances: Vec<_> = pages
        .iter()
        .flat_map(|page| page.reservations())
        .flat_map(|reservation| reservation.instances())
        .collect();
    assert_eq!(instances.len(), 5);
    let worker = instances
        .iter()
        .find(|instance| instance.instance_id() == Some(W1))
        .expect("W1");
    assert_eq!(
        worker
            .state()
            .and_then(|state| state.name())
            .map(|name| name.as_str()),
        Some("running")
    );
    assert_eq!(worker.tags()[0].value(), Some(M1));
    assert_eq!(
        worker.launch_time().map(|time| time.secs()),
        Some((start() - TimeDelta::hours(1)).timestamp())
    );
    let attached = worker.network_interfaces()[0]
        .attachment()
        .and_then(|attachment| attachment.attach_time());
    assert_eq!(
        attached.map(|time| time.secs()),
        Some((start() - TimeDelta::hours(1)).timestamp())
    );
}

#[test]
fn a_missing_id_fails_the_whole_call_by_its_code() {
    let aws = FakeAws::cases();
    let error = drive(
        &aws.clock,
        ec2(&aws)
            .terminate_instances()
            .instance_ids(W1)
            .instance_ids(W8)
            .send(),
    )
    .expect_err("W8 is not there");
    assert_eq!(error.code(), Some("InvalidInstanceID.NotFound"));
    assert!(error.message().unwrap_or_default().contains(W8));
    assert_eq!(aws.world().instance(W1).state, InstanceState::Running);
    let error = drive(
        &aws.clock,
        ec2(&aws)
            .terminate_instances()
            .instance_ids("i-agent")
            .send(),
    )
    .expect_err("malformed");
    assert_eq!(error.code(), Some("InvalidInstanceID.Malformed"));
}

#[test]
fn termination_runs_its_course_in_virtual_time() {
    let aws = FakeAws::cases();
    drive(
        &aws.clock,
        ec2(&aws).terminate_instances().instance_ids(W1).send(),
    )
    .expect("accepted");
    assert_eq!(aws.world().instance(W1).state, InstanceState::ShuttingDown);
    aws.advance(minutes(1));
    assert_eq!(aws.world().instance(W1).state, InstanceState::Terminated);
    aws.advance(minutes(60));
    assert!(!aws.world().ec2.instances.contains_key(W1));
}

#[test]
fn throttling_is_retried_by_the_sdk_and_seen_in_the_log() {
    let aws = FakeAws::cases();
    aws.inject(Fault::Throttled.on("TerminateInstances").times(2));
    let before = aws.now();
    drive(
        &aws.clock,
        ec2(&aws).terminate_instances().instance_ids(W1).send(),
    )
    .expect("the third attempt works");
    let outcomes: Vec<_> = aws
        .calls("TerminateInstances")
        .into_iter()
        .map(|call| call.outcome)
        .collect();
    let throttled = Outcome::Rejected("RequestLimitExceeded".into());
    assert_eq!(outcomes, [throttled.clone(), throttled, Outcome::Accepted]);
    assert!(aws.now() > before, "the back-off passed in virtual time");
}

#[test]
fn a_lost_reply_has_its_effect() {
    let aws = FakeAws::cases();
    aws.inject(Fault::LostReply.on("TerminateInstances"));
    let error = drive(
        &aws.clock,
        ec2(&aws).terminate_instances().instance_ids(W1).send(),
    )
    .expect_err("no reply");
    assert_eq!(
        error.raw_response().map(|reply| reply.status().as_u16()),
        Some(500)
    );
    assert_eq!(aws.world().instance(W1).state, InstanceState::ShuttingDown);
    assert!(aws.touched(W1, "TerminateInstances"));
}

#[test]
fn a_garbled_reply_is_an_error_and_a_refused_connection_too() {
    let aws = FakeAws::cases();
    aws.inject(Fault::Garbled.on("DescribeKeyPairs").nth(1));
    assert!(
        drive(&aws.clock, ec2(&aws).describe_key_pairs().send()).is_err(),
        "the SDK doesn't ask again"
    );
    assert_eq!(
        drive(&aws.clock, ec2(&aws).describe_key_pairs().send())
            .expect("whole")
            .key_pairs()
            .len(),
        3
    );
    aws.inject(Fault::Refused.on("DescribeAddresses"));
    assert!(drive(&aws.clock, ec2(&aws).describe_addresses().send()).is_err());
    assert!(
        aws.calls("DescribeAddresses")
            .iter()
            .all(|call| call.outcome == Outcome::NoConnection)
    );
}

#[test]
fn a_hanging_socket_ends_by_the_clients_own_guard_or_with_the_invocation() {
    let aws = FakeAws::cases();
    aws.inject(Fault::Hanging.on("DescribeAddresses"));
    let error = drive(&aws.clock, ec2(&aws).describe_addresses().send())
        .expect_err("the SDK's stalled-stream protection");
    assert!(error.as_service_error().is_none());
    assert!(aws.now() > start());
    let limit = aws.now() + seconds(3);
    assert!(drive_until(&aws.clock, limit, ec2(&aws).describe_addresses().send()).is_none());
    assert_eq!(aws.now(), limit);
}

#[test]
fn an_empty_page_leads_on_and_a_repeated_token_is_one() {
    let aws = FakeAws::cases();
    aws.inject(Fault::EmptyPage.on("DescribeInstances").nth(1));
    let first = drive(
        &aws.clock,
        ec2(&aws).describe_instances().max_results(5).send(),
    )
    .expect("empty");
    assert!(first.reservations().is_empty());
    let token = first.next_token().expect("a token").to_owned();
    let second = drive(
        &aws.clock,
        ec2(&aws)
            .describe_instances()
            .max_results(5)
            .next_token(&token)
            .send(),
    )
    .expect("items");
    assert_eq!(second.reservations().len(), 5);
    aws.inject(Fault::RepeatedToken.on("DescribeInstances"));
    let third = drive(
        &aws.clock,
        ec2(&aws).describe_instances().next_token(&token).send(),
    )
    .expect("items");
    assert_eq!(third.next_token(), Some(token.as_str()));
}

#[test]
fn filters_match_exactly_or_by_wildcards() {
    let aws = FakeAws::cases();
    let filtered = |name: &str, value: &str| {
        let filter = aws_sdk_ec2::types::Filter::builder()
            .name(name)
            .values(value)
            .build();
        let found = drive(
            &aws.clock,
            ec2(&aws).describe_instances().filters(filter).send(),
        )
        .expect("accepted");
        found.reservations().len()
    };
    assert_eq!(filtered("tag:gitlab-runner-parent-id", M1), 2);
    assert_eq!(filtered("tag:gitlab-runner-parent-id", "*"), 3);
    assert_eq!(filtered("tag:gitlab-runner-parent-id", "\\*"), 0);
    assert_eq!(filtered("instance-id", LONG_GONE), 0);
    assert_eq!(filtered("key-name", "runner-aa-?i-linux-*"), 2);
}

#[test]
fn key_pairs_spot_requests_and_addresses_can_be_ended() {
    let aws = FakeAws::bare_cases();
    let (key, name) = {
        let mut world = aws.world();
        let name = world.put_machine_key("aa", EXECUTOR, minutes(60));
        world.put_spot("sir-1", "open", Some(&name), minutes(60));
        world.put_address("eipalloc-1", Some(M1));
        world.put_address("eipalloc-2", Some(M2)).association_id = Some("eipassoc-2".into());
        (world.key_id(&name), name)
    };
    let client = ec2(&aws);
    let spots = drive(
        &aws.clock,
        client
            .describe_spot_instance_requests()
            .max_results(1000)
            .send(),
    )
    .expect("read");
    let specification = spots.spot_instance_requests()[0]
        .launch_specification()
        .expect("a specification");
    assert_eq!(specification.key_name(), Some(name.as_str()));
    drive(
        &aws.clock,
        client.delete_key_pair().key_pair_id(&key).send(),
    )
    .expect("deleted");
    drive(
        &aws.clock,
        client.delete_key_pair().key_pair_id(&key).send(),
    )
    .expect("deleting twice succeeds");
    drive(
        &aws.clock,
        client
            .cancel_spot_instance_requests()
            .spot_instance_request_ids("sir-1")
            .send(),
    )
    .expect("cancelled");
    drive(
        &aws.clock,
        client.release_address().allocation_id("eipalloc-1").send(),
    )
    .expect("released");
    let error = drive(
        &aws.clock,
        client.release_address().allocation_id("eipalloc-2").send(),
    )
    .expect_err("in use");
    assert_eq!(error.code(), Some("InvalidIPAddress.InUse"));
    let world = aws.world();
    assert!(world.ec2.key_pairs.is_empty());
    assert_eq!(world.ec2.spot_requests["sir-1"].state, "cancelled");
    assert_eq!(world.ec2.addresses.len(), 1);
}

#[test]
fn a_persistent_request_launches_again_unless_cancelled_first() {
    for cancel in [false, true] {
        let aws = FakeAws::bare_cases();
        aws.world().put_worker(Worker::of(M1, W1).spot("sir-1"));
        if cancel {
            drive(
                &aws.clock,
                ec2(&aws)
                    .cancel_spot_instance_requests()
                    .spot_instance_request_ids("sir-1")
                    .send(),
            )
            .expect("cancelled");
        }
        drive(
            &aws.clock,
            ec2(&aws).terminate_instances().instance_ids(W1).send(),
        )
        .expect("accepted");
        aws.advance(minutes(2));
        let running = aws
            .world()
            .ec2
            .instances
            .values()
            .filter(|instance| instance.state == InstanceState::Running)
            .count();
        assert_eq!(running, if cancel { 2 } else { 3 });
    }
}

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
fn tags_are_set_and_taken_away() {
    let aws = FakeAws::bare_cases();
    aws.world().put_address("eipalloc-1", None);
    let tag = aws_sdk_ec2::types::Tag::builder()
        .key("mark")
        .value("1")
        .build();
    drive(
        &aws.clock,
        ec2(&aws)
            .create_tags()
            .resources("eipalloc-1")
            .tags(tag.clone())
            .send(),
    )
    .expect("tagged");
    assert_eq!(aws.world().ec2.addresses["eipalloc-1"].tags["mark"], "1");
    drive(
        &aws.clock,
        ec2(&aws)
            .delete_tags()
            .resources("eipalloc-1")
            .tags(tag)
            .send(),
    )
    .expect("untagged");
    assert!(aws.world().ec2.addresses["eipalloc-1"].tags.is_empty());
}

#[test]
fn a_lagging_read_shows_the_past_and_no_more() {
    let aws = FakeAws::cases();
    aws.world().staleness = Some(views::Staleness::new(seconds(30), || seconds(20)));
    drive(
        &aws.clock,
        ec2(&aws).terminate_instances().instance_ids(W1).send(),
    )
    .expect("accepted");
    let state = || {
        let found = drive(
            &aws.clock,
            ec2(&aws).describe_instances().instance_ids(W1).send(),
        )
        .expect("read");
        let instance = &found.reservations()[0].instances()[0];
        instance
            .state()
            .and_then(|state| state.name())
            .map(|name| name.as_str().to_owned())
    };
    aws.advance(seconds(10));
    assert_eq!(state().as_deref(), Some("running"));
    aws.advance(seconds(15));
    assert_eq!(state().as_deref(), Some("shutting-down"));
}

#[test]
fn fleets_end_with_or_without_their_instances() {
    let aws = FakeAws::cases();
    let fleet = |id: &str| Fleet {
        id: id.into(),
        state: "active".into(),
        kind: "maintain".into(),
        created: start(),
        key_name: Some("runner-aa-ci-linux-1741060000-00000001".into()),
        instances: vec![W1.into()],
        tags: Tags::new(),
    };
    for id in ["fleet-1", "sfr-1"] {
        aws.world().ec2.fleets.insert(id.into(), fleet(id));
    }
    let client = ec2(&aws);
    let fleets = drive(&aws.clock, client.describe_fleets().send()).expect("read");
    assert_eq!(fleets.fleets()[0].fleet_id(), Some("fleet-1"));
    let requests = drive(&aws.clock, client.describe_spot_fleet_requests().send()).expect("read");
    let config = requests.spot_fleet_request_configs()[0]
        .spot_fleet_request_config()
        .expect("a config");
    assert_eq!(
        config.launch_specifications()[0].key_name(),
        fleet("x").key_name.as_deref()
    );
    let deleted = drive(
        &aws.clock,
        client
            .delete_fleets()
            .fleet_ids("fleet-1")
            .fleet_ids("fleet-9")
            .terminate_instances(false)
            .send(),
    )
    .expect("200");
    assert_eq!(deleted.unsuccessful_fleet_deletions().len(), 1);
    assert_eq!(aws.world().instance(W1).state, InstanceState::Running);
    let cancel = client
        .cancel_spot_fleet_requests()
        .spot_fleet_request_ids("sfr-1")
        .terminate_instances(true)
        .send();
    assert_eq!(
        drive(&aws.clock, cancel)
            .expect("200")
            .successful_fleet_requests()
            .len(),
        1
    );
    assert!(aws.world().instance(W1).state.is_ending());
}

/// `cargo test --test it cost_of_a_call -- --ignored --nocapture`: what bounds the simulation's speed.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_call() {
    let aws = FakeAws::cases();
    let clients = (ec2(&aws), aws_sdk_ssm::Client::new(&aws.sdk_config()));
    let measure = |what: &str, call: &dyn Fn()| {
        call();
        let begun = std::time::Instant::now();
        (0..500).for_each(|_| call());
        println!("{what}: {:?} a call", begun.elapsed() / 500);
    };
    measure("a client", &|| drop(ec2(&aws)));
    measure("DescribeInstances, 5 instances", &|| {
        drop(
            drive(
                &aws.clock,
                clients.0.describe_instances().max_results(1000).send(),
            )
            .expect("read"),
        )
    });
    measure("DescribeKeyPairs, 3 keys", &|| {
        drop(drive(&aws.clock, clients.0.describe_key_pairs().send()).expect("read"))
    });
    measure("TerminateInstances", &|| {
        drop(
            drive(
                &aws.clock,
                clients.0.terminate_instances().instance_ids(W1).send(),
            )
            .expect("accepted"),
        )
    });
    measure("ListCommands", &|| {
        drop(drive(&aws.clock, clients.1.list_commands().send()).expect("read"))
    });
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
