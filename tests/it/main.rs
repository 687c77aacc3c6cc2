//! The tests of the whole function, in one binary: they link the SDK once.

mod fake_aws;
