//! What each of AWS's codes means, as the real SDK clients hand it on.

use crate::fake_aws::{Fault as Inject, *};
use lifecycle_reaper::{
    aws::Aws,
    fault::{Disposition, Fault},
    reap,
    task::InstanceId,
    world::Resource,
};

/// The fault of one call, when AWS answers with `code`.
fn fault_of(operation: &str, code: &'static str, message: &str) -> Fault {
    let fake = FakeAws::cases();
    fake.inject(Inject::CodeAndMessage(code, message.to_owned()).on(operation));
    let aws = Aws::new(fake.sdk_config());
    let id = InstanceId::parse(M1).expect("an id");
    let delete = async |kind: &str, id: &str| {
        let resource = Resource {
            id: id.into(),
            ..Resource::default()
        };
        let results = reap::reaper(kind)
            .expect("a kind")
            .delete(&aws, &[resource])
            .await;
        results.into_iter().next().expect("a result").1
    };
    let call = async {
        match operation {
            "TerminateInstances" => delete(reap::WORKERS, W1).await,
            "CancelSpotInstanceRequests" => delete(reap::SPOT_REQUESTS, "sir-1").await,
            "DeleteKeyPair" => delete(reap::KEY_PAIRS, "key").await,
            "ReleaseAddress" => delete(reap::ADDRESSES, "eipalloc-1").await,
            "CompleteLifecycleAction" => aws.complete(GROUP, HOOK, &id).await,
            "RecordLifecycleActionHeartbeat" => aws.heartbeat(GROUP, HOOK, &id).await,
            "SendCommand" => aws.send_drain(DOCUMENT, &id).await,
            "DescribeAutoScalingInstances" => aws.lifecycle(&id).await.map(drop),
            "SendMessage" => {
                aws.enqueue(WORK_QUEUE, "{}", chrono::TimeDelta::zero())
                    .await
            }
            "ChangeMessageVisibility" => {
                aws.come_again(WORK_QUEUE, "r", chrono::TimeDelta::zero())
                    .await
            }
            other => panic!("{other}"),
        }
    };
    drive(&fake.clock, call).expect_err("it was told to fail")
}

#[test]
fn every_code_through_the_real_client() {
    use Disposition::*;
    let ec2 = "TerminateInstances";
    let rows: &[(Disposition, &str, &[&str])] = &[
        (Gone, ec2, &["InvalidInstanceID.NotFound"]),
        (
            Gone,
            "CancelSpotInstanceRequests",
            &["InvalidSpotInstanceRequestID.NotFound"],
        ),
        (
            Gone,
            "ReleaseAddress",
            &["InvalidAllocationID.NotFound", "InvalidAddress.NotFound"],
        ),
        (Gone, "DeleteKeyPair", &["InvalidKeyPair.NotFound"]),
        (
            Refused,
            ec2,
            &[
                "OperationNotPermitted",
                "IncorrectInstanceState",
                "IncorrectState",
                "DependencyViolation",
            ],
        ),
        (
            Refused,
            "ReleaseAddress",
            &[
                "InvalidIPAddress.InUse",
                "InvalidAddress.Locked",
                "InvalidAddress.PtrSet",
                "OperationNotPermitted",
                "AuthFailure",
            ],
        ),
        (
            Stop,
            ec2,
            &[
                "UnauthorizedOperation",
                "AccessDenied",
                "AuthFailure",
                "OptInRequired",
                "Blocked",
                "PendingVerification",
                "UnsupportedOperation",
                "InvalidAction",
                "InvalidParameter",
                "InvalidParameterValue",
                "InvalidParameterCombination",
                "MissingParameter",
                "UnknownParameter",
                "InvalidInstanceID.Malformed",
                "TagLimitExceeded",
            ],
        ),
        (
            Stop,
            "CompleteLifecycleAction",
            &["AccessDenied", "ValidationError"],
        ),
        (
            Stop,
            "DescribeAutoScalingInstances",
            &["AccessDenied", "ValidationError"],
        ),
        (
            Stop,
            "SendCommand",
            &[
                "AccessDeniedException",
                "ValidationException",
                "InvalidDocument",
                "InvalidDocumentVersion",
                "InvalidParameters",
                "UnsupportedPlatformType",
            ],
        ),
        (
            Stop,
            "SendMessage",
            &["AccessDenied", "KmsAccessDenied", "InvalidParameterValue"],
        ),
        (
            Retry,
            ec2,
            &[
                "RequestLimitExceeded",
                "Throttling",
                "EC2ThrottledException",
                "InternalError",
                "InternalFailure",
                "Unavailable",
                "ServiceUnavailable",
                "RequestExpired",
                "ExpiredToken",
                "InsufficientInstanceCapacity",
                "ConcurrentTagAccess",
                "SomethingNew",
                "unauthorizedoperation",
                "InvalidInstanceID",
                "NotFound",
            ],
        ),
        (
            Retry,
            "CompleteLifecycleAction",
            &["Throttling", "ResourceContention", "SomethingNew"],
        ),
        (
            Retry,
            "SendCommand",
            &[
                "ThrottlingException",
                "InvalidInstanceId",
                "InternalServerError",
                "DuplicateInstanceId",
                "SomethingNew",
            ],
        ),
        (
            Retry,
            "ChangeMessageVisibility",
            &["MessageNotInflight", "ReceiptHandleIsInvalid", "OverLimit"],
        ),
    ];
    for (disposition, operation, codes) in rows {
        for code in *codes {
            let fault = fault_of(operation, code, "This call was told to fail.");
            assert_eq!(fault.disposition, *disposition, "{operation} {code}");
            // SQS's client shows some codes with their old prefix.
            assert!(fault.code.ends_with(code), "{operation}: {fault}");
            assert_eq!(fault.operation, *operation);
            assert!(fault.message.contains("told to fail"), "{fault}");
            let told = fault.to_string();
            assert!(
                told.contains(operation) && told.contains(code) && told.contains("f00dfeed"),
                "{told}"
            );
        }
    }
}

/// SQS has one code for each of its dialects, and the client shows the older one.
#[test]
fn a_queue_that_is_not_there() {
    let fault = fault_of("SendMessage", "QueueDoesNotExist", "no such queue");
    assert!(
        fault.is_no_such_queue() && fault.disposition == Disposition::Stop,
        "{fault}"
    );
}

/// Auto Scaling has one code for every refusal; one message of it means "already released, or not visible yet".
#[test]
fn no_active_lifecycle_action_is_told_by_its_message() {
    for operation in ["CompleteLifecycleAction", "RecordLifecycleActionHeartbeat"] {
        for (message, expected) in [
            (
                "No active Lifecycle Action found with instance ID i-0a11aa11aa11aa110",
                Disposition::Gone,
            ),
            (
                "No active Lifecycle Action found with token 7b1d",
                Disposition::Gone,
            ),
            ("NO ACTIVE LIFECYCLE ACTION FOUND", Disposition::Gone),
            ("No Lifecycle Hook found with name: h", Disposition::Stop),
            ("Invalid lifecycle action result", Disposition::Stop),
            ("", Disposition::Stop),
        ] {
            assert_eq!(
                fault_of(operation, "ValidationError", message).disposition,
                expected,
                "{message}"
            );
        }
    }
    // From another service the same words mean nothing.
    assert_eq!(
        fault_of(
            "TerminateInstances",
            "InvalidParameterValue",
            "No active Lifecycle Action found"
        )
        .disposition,
        Disposition::Stop
    );
}

#[test]
fn a_long_message_is_shortened() {
    let fault = fault_of(
        "TerminateInstances",
        "UnauthorizedOperation",
        &"ä".repeat(10_000),
    );
    assert!(fault.message.chars().count() <= 481 && fault.message.ends_with('…'));
    // What EC2 says in words is kept to the end; what only a machine can read isn't.
    let words = format!(
        "You are not authorized: {}no identity-based policy allows it. ",
        "x".repeat(300)
    );
    let told = format!(
        "{words}Encoded authorization failure message: {}",
        "Q".repeat(2000)
    );
    let fault = fault_of("TerminateInstances", "UnauthorizedOperation", &told);
    assert_eq!(fault.message, format!("{words}…"));
}

/// What isn't an answer at all is retried: the effect is not known.
#[test]
fn no_answer_is_no_refusal() {
    for inject in [
        Inject::Refused,
        Inject::Hanging,
        Inject::Garbled,
        Inject::ServerError,
        Inject::LostReply,
    ] {
        let fake = FakeAws::cases();
        fake.inject(inject.clone().on("SendCommand"));
        let aws = Aws::new(fake.sdk_config());
        let result = drive(
            &fake.clock,
            aws.send_drain(DOCUMENT, &InstanceId::parse(M1).expect("an id")),
        );
        let fault = result.expect_err("no answer");
        assert_eq!(fault.disposition, Disposition::Retry, "{inject:?}");
        assert!(
            fault.message.len() > 10 && !fault.to_string().ends_with("service error"),
            "{fault}"
        );
    }
}

#[test]
fn dry_runs() {
    use lifecycle_reaper::fault::dry_run_permits;
    assert_eq!(dry_run_permits("DryRunOperation"), Some(true));
    assert_eq!(dry_run_permits("UnauthorizedOperation"), Some(false));
    for code in [
        "",
        "InvalidParameter",
        "RequestLimitExceeded",
        "dryrunoperation",
    ] {
        assert_eq!(dry_run_permits(code), None);
    }
}
