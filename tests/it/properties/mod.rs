//! Properties: what holds for any event, name, world, configuration and line.

mod events;
mod names;
mod planner;
mod settings;
mod worlds;

use proptest::test_runner::Config;

/// So many cases, and no files left behind.
pub fn cases(number: u32) -> Config {
    Config {
        cases: number,
        failure_persistence: None,
        ..Config::default()
    }
}
