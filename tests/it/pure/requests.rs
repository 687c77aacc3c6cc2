//! The requests as they go out: what they carry, and what they don't.

use crate::fake_aws::*;

/// All calls of a manager's whole end, and of its leftovers of every kind.
fn calls() -> Vec<Call> {
    let aws = FakeAws::cases();
    {
        let mut world = aws.world();
        world.put_spot(
            "sir-1",
            "open",
            Some(&machine_name("aa", EXECUTOR, start() - minutes(200), 1)),
            minutes(200),
        );
        world.put_address("eipalloc-1", Some(M1));
        world
            .put_address("eipalloc-2", Some(M1))
            .network_border_group = "eu-west-1-lhr-1".into();
    }
    let payload = std::fs::read_to_string(format!(
        "{}/events/sqs-termination-hook.json",
        env!("CARGO_MANIFEST_DIR")
    ))
    .expect("a file");
    for _ in 0..6 {
        aws.run(&payload).expect("a reply");
        aws.advance(seconds(61));
    }
    aws.all_calls()
}

/// Every parameter of every call, sorted, the numbers of lists left out.
fn shapes() -> Vec<String> {
    let shape = |call: &Call| {
        let mut names: Vec<String> = call
            .request
            .form
            .keys()
            .filter(|k| *k != "Action" && *k != "Version")
            .map(|k| {
                k.split('.')
                    .filter(|p| p.parse::<u32>().is_err())
                    .collect::<Vec<_>>()
                    .join(".")
            })
            .collect();
        names.extend(
            call.request
                .json
                .as_object()
                .into_iter()
                .flatten()
                .map(|(k, _)| k.clone()),
        );
        names.sort();
        names.dedup();
        format!("{} {}", call.operation(), names.join(" "))
    };
    let mut shapes: Vec<String> = calls().iter().map(shape).collect();
    shapes.sort();
    shapes.dedup();
    shapes
}

#[test]
fn every_call_carries_just_this() {
    assert_eq!(
        shapes(),
        [
            "CancelSpotInstanceRequests SpotInstanceRequestId",
            "ChangeMessageVisibility QueueUrl ReceiptHandle VisibilityTimeout",
            "CompleteLifecycleAction AutoScalingGroupName InstanceId LifecycleActionResult LifecycleHookName",
            "DeleteKeyPair KeyName",
            "DescribeAddresses ",
            "DescribeAutoScalingGroups AutoScalingGroupNames.member",
            "DescribeAutoScalingInstances InstanceIds.member",
            "DescribeInstances Filter.Name Filter.Value",
            "DescribeInstances MaxResults",
            "DescribeKeyPairs ",
            "DescribeLifecycleHooks AutoScalingGroupName",
            "DescribeScalingActivities AutoScalingGroupName",
            "DescribeSpotInstanceRequests Filter.Name Filter.Value MaxResults",
            "GetCommandInvocation CommandId InstanceId",
            "ListCommands Filters",
            "RecordLifecycleActionHeartbeat AutoScalingGroupName InstanceId LifecycleHookName",
            "ReleaseAddress AllocationId",
            "ReleaseAddress AllocationId NetworkBorderGroup",
            "SendCommand Comment DocumentName InstanceIds TimeoutSeconds",
            "TerminateInstances InstanceId",
        ]
    );
}

#[test]
fn the_values_that_matter() {
    let calls = calls();
    let of = |operation: &str| {
        calls
            .iter()
            .filter(|c| c.operation() == operation)
            .map(|c| c.request.clone())
            .collect::<Vec<_>>()
    };
    for request in of("SendCommand") {
        assert_eq!(request.list("InstanceIds"), [M1]);
        assert_eq!(
            (
                request.text("DocumentName"),
                request.number("TimeoutSeconds")
            ),
            (Some(DOCUMENT), Some(60))
        );
        assert!(request.text("Comment").is_some_and(|c| c.len() <= 100));
    }
    for request in of("ListCommands") {
        let filters = request.json["Filters"].as_array().expect("filters");
        let keys: Vec<_> = filters
            .iter()
            .map(|f| f["key"].as_str().expect("a key"))
            .collect();
        assert_eq!(keys, ["DocumentName", "InvokedAfter"]);
        assert_eq!(filters[0]["value"], DOCUMENT);
    }
    for request in of("DescribeInstances") {
        match request.filters().as_slice() {
            [] => assert_eq!(request.number("MaxResults"), Some(500)),
            [(name, values)] => assert_eq!(
                (name.as_str(), values.as_slice()),
                ("instance-id", [M1.to_owned()].as_slice())
            ),
            more => panic!("{more:?}"),
        }
        assert!(
            request.list("InstanceId").is_empty(),
            "an unknown id given as an id fails the call"
        );
    }
    for request in of("DescribeSpotInstanceRequests") {
        assert_eq!(request.number("MaxResults"), Some(1000));
        assert_eq!(
            request.filters(),
            [(
                "state".to_owned(),
                vec![
                    "open".to_owned(),
                    "active".to_owned(),
                    "disabled".to_owned()
                ]
            )]
        );
    }
    for request in of("CompleteLifecycleAction") {
        assert_eq!(request.text("LifecycleActionResult"), Some("CONTINUE"));
        assert_eq!(request.text("LifecycleActionToken"), None);
    }
    for request in of("ReleaseAddress") {
        let border = request.text("NetworkBorderGroup");
        assert_eq!(
            border,
            (request.text("AllocationId") == Some("eipalloc-2")).then_some("eu-west-1-lhr-1")
        );
    }
    for request in of("ChangeMessageVisibility") {
        assert_eq!(request.text("QueueUrl"), Some(WORK_QUEUE));
    }
}

/// The reads come before the writes of a pass, and what may be deleted before what protects it.
#[test]
fn what_may_be_deleted_is_read_before_what_protects_it() {
    let calls = calls();
    let first = |operation: &str, filtered: bool| {
        calls
            .iter()
            .position(|c| c.operation() == operation && c.request.filters().is_empty() != filtered)
            .expect("called")
    };
    let order = [
        first("DescribeSpotInstanceRequests", true),
        first("DescribeInstances", false),
        first("DescribeAutoScalingGroups", false),
        first("TerminateInstances", false),
    ];
    assert!(order.is_sorted(), "{order:?}");
    assert!(first("DescribeKeyPairs", false) < first("DescribeInstances", false));
    assert!(first("DescribeAddresses", false) < first("DescribeInstances", false));
    assert!(first("CancelSpotInstanceRequests", false) < first("TerminateInstances", false));
}

/// More than one call can name: chunks, each full but the last.
#[test]
fn chunks_at_the_limit_and_one_past_it() {
    for (workers, chunks) in [
        (99, vec![99]),
        (100, vec![100]),
        (101, vec![100, 1]),
        (250, vec![100, 100, 50]),
    ] {
        let aws = FakeAws::bare_cases();
        aws.set("MAX_DELETIONS", "1000");
        for n in 0..workers {
            aws.world()
                .put_worker(Worker::of(LONG_GONE, &format!("i-0b{n:015x}")).without_key());
        }
        aws.run(r#"{"action":"sweep"}"#).expect("safe");
        let mut sizes: Vec<usize> = aws
            .calls("TerminateInstances")
            .iter()
            .map(|c| c.request.ids().len())
            .collect();
        sizes.sort_by(|a, b| b.cmp(a));
        assert_eq!(sizes, chunks);
    }
}

/// Groups by fifties, as Auto Scaling takes them, and none twice.
#[test]
fn many_groups_are_read_by_fifties() {
    for count in [1, 50, 51, 120] {
        let aws = FakeAws::bare_cases();
        let names: Vec<String> = (0..count).map(|n| format!("group-{n}")).collect();
        aws.set("AUTO_SCALING_GROUPS", &names.join(","));
        aws.run(r#"{"action":"sweep"}"#).expect("safe");
        let asked: Vec<Vec<String>> = aws
            .calls("DescribeAutoScalingGroups")
            .iter()
            .map(|c| c.request.list("AutoScalingGroupNames"))
            .collect();
        assert!(
            asked
                .iter()
                .all(|names| names.len() <= 50 && !names.is_empty())
        );
        assert_eq!(asked.concat(), names);
    }
}
