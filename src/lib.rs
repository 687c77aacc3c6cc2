//! Drains a terminating CI manager and reaps what it left behind.
//!
//! An Auto Scaling group is about to terminate an instance (a *manager*, which starts *workers*). We let the running
//! jobs finish, tell the group to go on, and remove what the manager left: workers, spot requests, key pairs,
//! Elastic IPs. What can't be finished now is taken up again.
//!
//! ```text
//! event ──parse──▶ Task ──observe──▶ World ──plan──▶ Plan ──act──▶ results ──▶ Outcome
//! JSON     fn             async, reads        fn            async, writes   fn
//! ```
//!
//! # Invariants
//!
//! - Whatever decides is a plain `fn` that takes `now` as an argument; an `async fn` talks to AWS.
//! - Reads happen only in [`observe`], writes only in [`act`] (queues apart: the [`handler`]'s). Nothing flows back.
//! - A pass keeps no state between deliveries: the state is in AWS. Every pass may run twice at once, late, or be cut
//!   off after any call.
//! - A plan is about the hook *or* about reaping, never both.
//! - What can't be read is unknown, not empty.
//!
//! # The map
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | environment → [`config::Config`], every problem at once |
//! | [`incoming`] | payload → records, messages or one event |
//! | [`event`] | AWS JSON → [`task::Task`], or ignored or unreadable with a reason |
//! | [`task`] | what to do, and since when |
//! | [`world`] | what a pass saw, as plain data |
//! | [`drain`] | the drain state machine: one total match |
//! | [`reap`] | what an orphan is, one file a kind |
//! | [`names`] | docker-machine's names, field by field |
//! | [`plan`], [`check`] | steps with reasons; and a second look at them |
//! | [`pace`] | when to come again |
//! | [`observe`], [`act`] | all reads; all writes |
//! | [`reconcile`] | one pass |
//! | [`handler`], [`reply`] | invocation in, acknowledgements out; what is said of a pass |
//! | [`aws`], [`fault`] | the clients and calls; what an error means |
//! | [`document`], [`preflight`] | the plan written down; what would keep it from coming true |
//! | [`log`], [`metrics`] | lines that are safe to read; numbers in CloudWatch's embedded format |
//! | [`cli`] | the command line: plan, why, preflight, sweep |

pub mod act;
pub mod aws;
pub mod check;
pub mod cli;
pub mod config;
pub mod document;
pub mod drain;
pub mod event;
pub mod fault;
pub mod handler;
pub mod incoming;
pub mod log;
pub mod metrics;
pub mod names;
pub mod observe;
pub mod pace;
pub mod plan;
pub mod preflight;
pub mod reap;
pub mod reconcile;
pub mod reply;
pub mod task;
pub mod world;
