//! The tests of the whole function, in one binary: they link the SDK once.

// These lints keep the function from panicking, its log clean and its clock ours; a test panics by design, and measures.
// SDK errors are large and read once, and a scene or a candidate is a tuple or a closure on purpose.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::dbg_macro,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::result_large_err,
    clippy::type_complexity,
    clippy::unwrap_used
)]

mod cases;
mod cli;
mod cost;
mod fake_aws;
mod properties;
mod pure;
mod sight;
mod sim;
mod start;
mod sweeps;
mod tls;
