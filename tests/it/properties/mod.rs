//! Properties: what holds for any event, name, world, configuration and line.

mod events;
mod excerpt;
mod names;
mod oracle;
mod planner;
mod settings;
mod worlds;

use proptest::test_runner::Config;

/// So many cases, unless `PROPTEST_CASES` asks for more; no files are left behind.
pub fn cases(number: u32) -> Config {
    let usual = Config::default();
    let asked = std::env::var_os("PROPTEST_CASES").map(|_| usual.cases);
    Config {
        cases: asked.unwrap_or(number),
        failure_persistence: None,
        ..usual
    }
}
