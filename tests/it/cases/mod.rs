//! Failures that functions like this one had in public, each as a test that is named after its id, grouped by kind.
//!
//! A case is data: the world and what is changed in it, the event, the faults; what must be called, what must not, the
//! replies, the log lines, what is left. [`check`] plays it: the first delivery, and every redelivery that the function
//! asks for, in virtual time to the end. Names such as `M1`, `W1` stand for the ids of the fake AWS's world.

mod batch;
mod denied;
mod deployment;
mod drain;
mod errors;
mod events;
mod expect;
mod fleets;
mod found;
mod hook;
mod keys_and_addresses;
mod limits;
mod log;
mod odd_events;
mod places;
mod poison;
mod promises;
mod slips;
mod spot;
pub mod story;
mod time;
mod whole_kind;
mod worker_groups;
mod workers;

pub use expect::{Case, Reply, case, check};
pub use story::{Story, event, play, termination_of};

/// All that the passes of a termination call, from the look at the manager to the worker's end.
const CALLS: [&str; 14] = [
    "DescribeAutoScalingInstances",
    "DescribeLifecycleHooks",
    "DescribeInstances",
    "ListCommands",
    "GetCommandInvocation",
    "RecordLifecycleActionHeartbeat",
    "SendCommand",
    "CompleteLifecycleAction",
    "DescribeSpotInstanceRequests",
    "DescribeKeyPairs",
    "DescribeAddresses",
    "DescribeAutoScalingGroups",
    "TerminateInstances",
    "ChangeMessageVisibility",
];
