//! What goes wrong: rules that say which call, and the log of every call with what came out of it.

use super::paging::PageFault;
use super::wire::{Answer, Refusal, Request, Service};
use super::world::World;
use chrono::{DateTime, TimeDelta, Utc};

#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The service's own throttling code.
    Throttled,
    /// The service's own code for a missing permission.
    Denied,
    /// Any code, with status 400 unless `status` says otherwise.
    Code(&'static str),
    CodeAndMessage(&'static str, String),
    /// HTTP 500 before anything happened.
    ServerError,
    /// The effect took place; the caller sees HTTP 500.
    LostReply,
    /// The effect took place; the caller gets status 200 with something that isn't the reply.
    Garbled,
    /// The effect took place; the caller gets status 200 and the first half of the reply, as if it were all.
    Halved,
    /// The effect took place; the caller gets status 200 and this text.
    Says(String),
    /// The connection is open and nothing ever comes.
    Hanging,
    /// The effect took place, and then nothing ever comes.
    EffectThenSilence,
    /// Nobody listens.
    Refused,
    /// The reply takes so long.
    Latency(TimeDelta),
    /// A list call answers an empty page and a token that leads to the items.
    EmptyPage,
    /// A list call answers a page whose token is the one that it was asked with (or that leads to itself).
    RepeatedToken,
    /// A list call leaves these ids out, as if they weren't there yet.
    Omits(Vec<String>),
    /// The code that makes the call panics.
    Panics,
}

/// What happens to one call: a fault or none, and the time on the way there and back.
#[derive(Clone, Debug, Default)]
pub struct Mishap {
    pub fault: Option<Fault>,
    pub there: TimeDelta,
    pub back: TimeDelta,
}

/// Draws what happens to a request at a time, made by the run with a number.
pub type Draw = Box<dyn FnMut(&Request, DateTime<Utc>, u64) -> Mishap + Send>;

/// Somebody who sees every call that takes effect, with the world before and after.
pub trait Witness: Send {
    fn before(&mut self, world: &mut World, request: &Request);
    fn after(&mut self, world: &mut World, request: &Request, answer: &Answer);
}

type Condition = Box<dyn Fn(&Request) -> bool + Send>;

/// Which calls a fault hits.
pub struct Rule {
    pub fault: Fault,
    operation: Option<String>,
    condition: Option<Condition>,
    skip: usize,
    times: usize,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "{:?} on {:?}, after {}, {} times",
            self.fault, self.operation, self.skip, self.times
        )
    }
}

impl Fault {
    /// On every call of this operation.
    pub fn on(self, operation: &str) -> Rule {
        Rule {
            fault: self,
            operation: Some(operation.into()),
            condition: None,
            skip: 0,
            times: usize::MAX,
        }
    }

    /// On every call of any operation.
    pub fn everywhere(self) -> Rule {
        Rule {
            fault: self,
            operation: None,
            condition: None,
            skip: 0,
            times: usize::MAX,
        }
    }

    pub fn page_fault(&self) -> PageFault {
        match self {
            Self::EmptyPage => PageFault {
                empty: true,
                ..PageFault::default()
            },
            Self::RepeatedToken => PageFault {
                repeat_token: true,
                ..PageFault::default()
            },
            Self::Omits(ids) => PageFault {
                omit: ids.clone(),
                ..PageFault::default()
            },
            _ => PageFault::default(),
        }
    }

    /// The refusal that this fault is, if it is one.
    pub fn refusal(&self, service: Service) -> Option<Refusal> {
        let (status, code, message) = match self {
            Self::Throttled => throttling(service),
            Self::Denied => denial(service),
            Self::Code(code) => (400, *code, "This call was told to fail.".into()),
            Self::CodeAndMessage(code, message) => (400, *code, message.clone()),
            Self::ServerError => (
                500,
                "InternalError",
                "We encountered an internal error. Please try again.".into(),
            ),
            _ => return None,
        };
        Some(Refusal {
            status,
            code: code.into(),
            message,
        })
    }
}

fn throttling(service: Service) -> (u16, &'static str, String) {
    match service {
        Service::Ec2 => (
            503,
            "RequestLimitExceeded",
            "Request limit exceeded.".into(),
        ),
        Service::AutoScaling => (400, "Throttling", "Rate exceeded".into()),
        Service::Ssm => (400, "ThrottlingException", "Rate exceeded".into()),
        Service::Sqs => (400, "RequestThrottled", "Rate exceeded".into()),
    }
}

fn denial(service: Service) -> (u16, &'static str, String) {
    let message = "User: arn:aws:sts::123456789012:assumed-role/lifecycle-reaper/f is not authorized to perform this operation";
    match service {
        Service::Ec2 => (
            403,
            "UnauthorizedOperation",
            "You are not authorized to perform this operation.".into(),
        ),
        Service::AutoScaling => (403, "AccessDenied", message.into()),
        Service::Ssm | Service::Sqs => (400, "AccessDeniedException", message.into()),
    }
}

impl Rule {
    /// Only the nth matching call, counted from 1.
    pub fn nth(self, number: usize) -> Self {
        Self {
            skip: number - 1,
            times: 1,
            ..self
        }
    }

    /// Spare the first so many.
    pub fn after(self, skip: usize) -> Self {
        Self { skip, ..self }
    }

    /// Only so many calls; then it is over.
    pub fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }

    pub fn when(self, condition: impl Fn(&Request) -> bool + Send + 'static) -> Self {
        Self {
            condition: Some(Box::new(condition)),
            ..self
        }
    }

    /// Only calls that name this id.
    pub fn naming(self, id: &str) -> Self {
        let id = id.to_owned();
        self.when(move |request| request.names(&id))
    }

    /// Whether this call is hit; counts it.
    pub fn hits(&mut self, request: &Request) -> bool {
        let matches = self
            .operation
            .as_ref()
            .is_none_or(|operation| *operation == request.operation)
            && self
                .condition
                .as_ref()
                .is_none_or(|condition| condition(request));
        if !matches || self.times == 0 {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.times -= 1;
        true
    }
}

/// How one call ended, as the caller saw it and as it was.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Still on its way (or the caller was killed before the reply).
    Pending,
    Accepted,
    /// The service said no, by this code.
    Rejected(String),
    /// The service did it, and the caller can't know.
    AcceptedUnseen,
    /// Nothing was sent, or nothing came.
    NoConnection,
}

/// One call in the log.
#[derive(Clone, Debug)]
pub struct Call {
    pub at: DateTime<Utc>,
    /// Its place among the world's notes and calls.
    pub moment: u64,
    pub request: Request,
    pub outcome: Outcome,
    pub fault: Option<Fault>,
    /// Which run of the function made it (a number that the caller of `FakeAws` chose).
    pub run: u64,
}

impl Call {
    pub fn operation(&self) -> &str {
        &self.request.operation
    }

    /// Whether the service did what it was asked.
    pub fn took_effect(&self) -> bool {
        matches!(self.outcome, Outcome::Accepted | Outcome::AcceptedUnseen)
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} -> {:?}", self.request, self.outcome)
    }
}
