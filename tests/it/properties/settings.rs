//! Any configuration, and any line of the log.

use super::cases;
use crate::cases::story::Lines;
use lifecycle_reaper::{
    config::{Config, Drain},
    log,
};
use proptest::prelude::*;

const VARIABLES: [&str; 21] = [
    "AUTO_SCALING_GROUPS",
    "LIFECYCLE_HOOKS",
    "EXECUTOR_NAME",
    "NAME_EXECUTOR_INSTANCE",
    "RUNNER_TOKENS",
    "MODE",
    "DRAIN",
    "DRAIN_DOCUMENT",
    "DRAIN_TIMEOUT_SECONDS",
    "GRACE_SECONDS",
    "WORKER_GRACE_SECONDS",
    "PARENT_TAG",
    "OWNER_TAG",
    "EIP_TAG",
    "KEEP_TAG",
    "MAX_DELETIONS",
    "MAX_RECEIVE_COUNT",
    "WORK_QUEUE_URL",
    "DEAD_LETTER_QUEUE_URL",
    "REAP",
    "WORKER_GROUPS",
];

fn value() -> impl Strategy<Value = String> {
    let words = [
        "",
        " ",
        "*",
        "ci",
        "plan",
        "enforce",
        "ssm",
        "off",
        "0",
        "1",
        "900",
        "-1",
        "99999999999999999999",
        "a=b",
        "https://q",
        "workers",
        ",,",
        "a,b",
    ];
    prop_oneof![
        prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        any::<String>(),
        any::<i64>().prop_map(|n| n.to_string())
    ]
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn any_configuration_is_read(vars in prop::collection::vec((prop::sample::select(&VARIABLES[..]), value()), 0..21)) {
        let vars: Vec<(String, String)> = vars.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        match Config::from_vars(vars.clone()) {
            Ok(config) => {
                prop_assert!(!config.groups.is_empty() && config.groups.iter().all(|g| !g.trim().is_empty()));
                prop_assert!(config.drain == Drain::Off || !config.hooks.is_empty());
                prop_assert!(config.executor.as_ref().is_none_or(|e| !e.as_str().is_empty() && !e.as_str().contains(['*', '?', ' '])));
                prop_assert!([&config.parent_tag, &config.owner_tag, &config.keep_tag].iter().all(|t| !t.is_empty() && !t.contains(['*', '?'])));
                prop_assert!((1..=10_000).contains(&config.max_deletions));
                prop_assert!(config.grace >= chrono::TimeDelta::zero() && config.drain_timeout > chrono::TimeDelta::zero());
                let _ = config.warnings();
            }
            Err(errors) => {
                prop_assert!(!errors.0.is_empty());
                for problem in &errors.0 {
                    prop_assert!(VARIABLES.contains(&problem.variable));
                    prop_assert!(problem.holds.as_ref().is_none_or(|h| h.chars().count() <= 80));
                }
            }
        }
    }

    #[test]
    fn any_text_is_logged_safely(message in any::<String>(), field in any::<String>(), times in 1..400_usize) {
        let lines = Lines::default();
        tracing::subscriber::with_default(log::subscriber("debug", lines.clone()), || {
            let span = tracing::info_span!("record", message_id = field);
            let _entered = span.enter();
            tracing::info!(field, long = message.repeat(times), "{message}");
        });
        for line in lines.read() {
            prop_assert!(line.raw.len() < 2048 && line.raw.bytes().all(|b| (0x20..0x7f).contains(&b)), "{}", line.raw);
            prop_assert!(line.json.is_object());
        }
    }

    #[test]
    fn the_beginning_of_any_text_is_short_and_holds_no_token(text in any::<String>(), token in "[A-Za-z0-9+/=_-]{25,80}", at in 0..30_usize) {
        let before: String = text.chars().take(at).collect();
        for body in [text.clone(), format!("{before} {token} {text}"), format!("{before}\"{token}\"")] {
            let begins = log::beginning(&body);
            prop_assert!(begins.chars().count() <= 200 * 10);
            prop_assert!(!begins.contains(&token));
        }
    }
}
