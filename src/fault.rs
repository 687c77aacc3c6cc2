//! What an AWS error means for us. This is the only file that knows error codes.
//!
//! An error of the SDK hides its code behind "service error": EC2 models no error shapes at all. So code, message
//! and request id are taken from the metadata, where they always are, and travel together with the meaning.

use aws_smithy_runtime_api::client::{orchestrator::HttpResponse, result::SdkError};
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use std::fmt;

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disposition {
    /// The thing is no longer there, or not yet visible: for a deletion that is success.
    Gone,
    /// This one resource forbids it (protected, in use, locked): report it, and don't come again for its sake.
    Refused,
    /// The same call may succeed later.
    Retry,
    /// It won't succeed until a person changes something.
    Stop,
}

/// An AWS call that failed, and what that means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The operation, as AWS names it.
    pub operation: &'static str,
    /// AWS's error code; empty when no answer with a code came.
    pub code: String,
    /// AWS's message, or what went wrong on the way, shortened.
    pub message: String,
    /// AWS's request id, for a support case.
    pub request_id: Option<String>,
    /// What to do about it.
    pub disposition: Disposition,
}

/// What stands for a code where an error answer has none, before the status.
const HTTP: &str = "HTTP";
/// The longest message that is kept.
const MESSAGE_CHARS: usize = 480;
/// After this a message of EC2's goes on with kilobytes that only `DecodeAuthorizationMessage` can read.
const ENCODED: &str = "Encoded authorization failure message";

const GONE: &[&str] = &[
    "InvalidInstanceID.NotFound",
    "InvalidSpotInstanceRequestID.NotFound",
    "InvalidAllocationID.NotFound",
    "InvalidAddress.NotFound",
    "InvalidKeyPair.NotFound",
    "InvalidFleetId.NotFound",
    "fleetIdDoesNotExist",
    "InvalidSpotFleetRequestId.NotFound",
    "fleetRequestIdDoesNotExist",
    "InvocationDoesNotExist",
];

const REFUSED: &[&str] = &[
    "OperationNotPermitted",
    "InvalidIPAddress.InUse",
    "InvalidAddress.Locked",
    "InvalidAddress.PtrSet",
    "DependencyViolation",
    "IncorrectInstanceState",
    "IncorrectState",
    "fleetNotInDeletableState",
    "fleetRequestNotInCancellableState",
];

const STOP: &[&str] = &[
    "UnauthorizedOperation",
    "AccessDenied",
    "AccessDeniedException",
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
    "InvalidSpotInstanceRequestID.Malformed",
    "InvalidAllocationID.Malformed",
    "TagLimitExceeded",
    "ValidationError",
    "ValidationException",
    "InvalidDocument",
    "InvalidDocumentVersion",
    "InvalidParameters",
    UNSUPPORTED_PLATFORM,
    "QueueDoesNotExist",
    "AWS.SimpleQueueService.NonExistentQueue",
    "KmsAccessDenied",
    "KMS.AccessDeniedException",
];

/// SQS has one code for each of its dialects.
const NO_SUCH_QUEUE: [&str; 2] = [
    "QueueDoesNotExist",
    "AWS.SimpleQueueService.NonExistentQueue",
];

/// SSM has no agent for the instance's platform.
const UNSUPPORTED_PLATFORM: &str = "UnsupportedPlatformType";

const THROTTLED: &[&str] = &[
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestThrottled",
    "RequestThrottledException",
    "RequestLimitExceeded",
    "EC2ThrottledException",
    "TooManyRequestsException",
    "SlowDown",
];

impl Fault {
    /// For `map_err`: turns an SDK error of `operation` into a fault.
    pub fn of<E>(operation: &'static str) -> impl Fn(SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        move |error| Self::new(operation, &error)
    }

    fn new<E>(operation: &'static str, error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let meta = error.as_service_error().map(ProvideErrorMetadata::meta);
        let code = match (meta.and_then(|m| m.code()), error.raw_response()) {
            (Some(code), _) => code.to_owned(),
            (None, Some(answer)) if answer.status().as_u16() >= 400 => {
                format!("{HTTP} {}", answer.status().as_u16())
            }
            (None, _) => String::new(),
        };
        let message = match meta.and_then(|m| m.message()) {
            Some(message) => message.to_owned(),
            None => with_causes(error),
        };
        let disposition = match error {
            SdkError::ConstructionFailure(_) => Disposition::Stop,
            SdkError::ServiceError(_) => disposition(operation, &code, &message),
            // No answer, a garbled one, or a kind of error that this SDK doesn't know yet: the effect is unknown.
            _ => Disposition::Retry,
        };
        let request_id = meta
            .and_then(|m| m.extra("aws_request_id"))
            .map(str::to_owned);
        Self {
            operation,
            code,
            message: shortened(&message),
            request_id,
            disposition,
        }
    }

    /// A read that ended without an AWS error and still isn't whole.
    pub fn incomplete(operation: &'static str, message: impl Into<String>) -> Self {
        Self::retry(operation, message)
    }

    /// A call that our own clock ended.
    pub fn out_of_time(operation: &'static str) -> Self {
        Self::retry(operation, "the function's time ran out")
    }

    fn retry(operation: &'static str, message: impl Into<String>) -> Self {
        Self {
            operation,
            code: String::new(),
            message: message.into(),
            request_id: None,
            disposition: Disposition::Retry,
        }
    }

    /// An error that AWS gives for one id inside an answer that is a success.
    pub fn with_code(operation: &'static str, code: Option<&str>, message: Option<&str>) -> Self {
        let (code, message) = (code.unwrap_or_default(), message.unwrap_or_default());
        let disposition = disposition(operation, code, message);
        Self {
            operation,
            code: code.to_owned(),
            message: shortened(message),
            request_id: None,
            disposition,
        }
    }

    /// Something that only a person can put right.
    pub fn stop(operation: &'static str, message: impl Into<String>) -> Self {
        Self {
            disposition: Disposition::Stop,
            ..Self::retry(operation, message)
        }
    }

    /// Whether SQS knows no such queue.
    pub fn is_no_such_queue(&self) -> bool {
        NO_SUCH_QUEUE.contains(&self.code.as_str())
    }

    /// Whether a server answered that something is wrong without saying what: it doesn't know the call.
    pub fn is_without_code(&self) -> bool {
        self.code.starts_with(HTTP)
    }

    /// Whether the next look may know better: a denial, or a server that doesn't know the call, never will.
    pub fn may_pass(&self) -> bool {
        self.disposition == Disposition::Retry && !self.is_without_code()
    }

    /// Whether SSM can never run a command there.
    pub fn is_unsupported_platform(&self) -> bool {
        self.code == UNSUPPORTED_PLATFORM
    }
}

/// The table from AWS's codes to what to do. Unknown codes are retried: nothing is lost by it, and a queue bounds it.
fn disposition(operation: &str, code: &str, message: &str) -> Disposition {
    // Auto Scaling has one code for every refusal. This text means "already released" or "not visible yet".
    if code == "ValidationError"
        && message
            .to_ascii_lowercase()
            .contains("no active lifecycle action")
    {
        return Disposition::Gone;
    }
    // The address went back to the pool and belongs to another account by now.
    if operation == "ReleaseAddress" && code == "AuthFailure" {
        return Disposition::Refused;
    }
    let is_in = |table: &[&str]| table.contains(&code);
    if is_in(GONE) {
        Disposition::Gone
    } else if is_in(REFUSED) {
        Disposition::Refused
    } else if is_in(STOP) {
        Disposition::Stop
    } else {
        Disposition::Retry
    }
}

/// Whether an error answer, as it came, asks us to slow down.
pub fn is_throttling(body: &[u8]) -> bool {
    let body = String::from_utf8_lossy(body);
    THROTTLED.iter().any(|code| body.contains(code))
}

/// Whether EC2's answer to a dry run means that the call is permitted; `None` when it says neither.
pub fn dry_run_permits(code: &str) -> Option<bool> {
    match code {
        "DryRunOperation" => Some(true),
        "UnauthorizedOperation" | "AccessDenied" => Some(false),
        _ => None,
    }
}

/// An error and what caused it, in the words of each.
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

fn shortened(message: &str) -> String {
    let readable = message.split(ENCODED).next().unwrap_or_default();
    let mut short: String = readable.chars().take(MESSAGE_CHARS).collect();
    if short.len() < message.len() {
        short.push('…');
    }
    short
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.operation)?;
        if !self.code.is_empty() {
            write!(f, "{}: ", self.code)?;
        }
        f.write_str(&self.message)?;
        match &self.request_id {
            Some(id) => write!(f, " (request id {id})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}
