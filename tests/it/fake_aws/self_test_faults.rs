//! What the fake does wrong when it is told to, as the real SDK clients see it.

use super::self_test::ec2;
use super::*;

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

/// Why the function looks at answers before the SDK does.
#[test]
fn half_a_reply_is_a_whole_one_for_the_sdk() {
    let aws = FakeAws::cases();
    aws.inject(Fault::Halved.on("DescribeInstances").nth(1));
    let shown = |answer: aws_sdk_ec2::operation::describe_instances::DescribeInstancesOutput| {
        answer.reservations().len()
    };
    let list = || drive(&aws.clock, ec2(&aws).describe_instances().send()).expect("an answer");
    let (half, whole) = (shown(list()), shown(list()));
    assert!(0 < half && half < whole, "{half} of {whole}");
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
