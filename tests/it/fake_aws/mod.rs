//! An AWS in memory, at the wire: behind the HTTP client of the real SDK clients, so that paging, serialising,
//! retries and error codes are the real ones. Time is virtual; nothing sleeps, nothing runs beside the caller.
//!
//! ```ignore
//! let aws = FakeAws::cases();                        // the world of the cases: M1 terminating, M2 healthy, W1..W3
//! {
//!     let mut world = aws.world();                   // plain structs: change what you like
//!     world.put_worker(Worker::of(M1, W4).stopped());
//!     world.ssm.fates.push_back(Fate::ends("Failed", "Failed"));
//!     world.page_size = 2;
//! }
//! aws.inject(Fault::Throttled.on("TerminateInstances").times(2));
//! aws.inject(Fault::LostReply.on("CompleteLifecycleAction").nth(1));
//! aws.inject(Fault::Denied.on("ReleaseAddress").naming("eipalloc-1"));
//! let reply = aws.run(&event("01"));                 // Handler::handle, driven in virtual time to its end
//! assert_eq!(aws.calls("SendCommand").len(), 1);     // the log: request (typed), time, outcome
//! assert!(aws.touched(W1, "TerminateInstances"));    // the call took effect on this id
//! assert!(aws.world().ec2.instances[W3].state == InstanceState::Running);
//! ```
//!
//! `aws.set("MODE", "plan")` changes a variable of the function; `aws.run_for(&payload, seconds)` sets the time that the
//! invocation has; `aws.advance(minutes(5))` lets time pass between two runs. `aws.sdk_config()` is for direct SDK calls,
//! `drive(&clock, future)` runs any future in virtual time. An operation that the fake doesn't know panics.

// The cases use some of this, the simulation some, and each tool is whole.
#![allow(dead_code, unused_imports)]

pub mod autoscaling;
pub mod cases;
pub mod clock;
pub mod connector;
pub mod ec2_filters;
pub mod ec2_fleets;
pub mod ec2_reads;
pub mod ec2_writes;
pub mod faults;
pub mod function;
pub mod paging;
pub mod passing;
mod self_test;
mod self_test_faults;
mod self_test_services;
pub mod sqs;
pub mod ssm;
pub mod views;
pub mod wire;
pub mod world;

pub use cases::*;
pub use clock::{Clock, drive, drive_until};
pub use connector::FakeAws;
pub use faults::{Call, Fault, Outcome, Rule};
pub use wire::{Request, Service};
pub use world::*;
