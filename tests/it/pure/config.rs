//! The configuration: every variable, every bound, and all problems at once.

use lifecycle_reaper::config::{Config, ConfigErrors, Drain, Mode};

fn read(vars: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    Config::from_vars(vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())))
}

const REQUIRED: [(&str, &str); 3] = [
    ("AUTO_SCALING_GROUPS", "g"),
    ("LIFECYCLE_HOOKS", "h"),
    ("DRAIN_DOCUMENT", "d"),
];

fn with(variable: &str, value: &str) -> Result<Config, ConfigErrors> {
    let mut vars: Vec<_> = REQUIRED
        .into_iter()
        .filter(|(k, _)| *k != variable)
        .collect();
    vars.push((variable, value));
    read(&vars)
}

#[test]
fn the_defaults() {
    let config = read(&REQUIRED).expect("legal");
    assert_eq!(
        (config.groups, config.hooks),
        (vec!["g".to_owned()], vec!["h".to_owned()])
    );
    assert_eq!(
        (config.mode, config.drain),
        (
            Mode::Plan,
            Drain::Ssm {
                document: "d".into()
            }
        )
    );
    let lengths =
        [config.drain_timeout, config.grace, config.worker_grace].map(|d| d.num_seconds());
    assert_eq!(lengths, [7200, 900, 0]);
    assert_eq!(
        [config.parent_tag, config.owner_tag, config.keep_tag],
        [
            "gitlab-runner-parent-id",
            "lifecycle-reaper:owner",
            "lifecycle-reaper:keep"
        ]
    );
    assert_eq!(
        (
            config.max_deletions,
            config.max_receive_count,
            config.eip_tag
        ),
        (100, None, None)
    );
    assert_eq!(
        (config.work_queue_url, config.dead_letter_queue_url),
        (None, None)
    );
    for kind in ["workers", "spot-requests", "key-pairs", "addresses"] {
        assert!(config.kinds.contains(&kind), "{kind}");
    }
    assert!(config.executor.is_none());
}

/// Each variable with what it may hold, and what it may not.
#[test]
fn every_variable_and_its_bounds() {
    let long_key = "k".repeat(128);
    let too_long = "k".repeat(129);
    let rows: &[(&str, &[&str], &[&str])] = &[
        (
            "AUTO_SCALING_GROUPS",
            &["a", "a,b", " a , b ,", "ä/b:c"],
            &["", " ", ",", " , "],
        ),
        ("LIFECYCLE_HOOKS", &["a", "a,b"], &["", " ", ","]),
        (
            "EXECUTOR_NAME",
            &["ci", "ci-linux", " ci "],
            &["", " ", "*", "ci*", "c?i", "c i", "ç"],
        ),
        ("NAME_EXECUTOR_INSTANCE", &["ci"], &["", "*", "?"]),
        (
            "MODE",
            &["plan", "enforce", "", " plan "],
            &["Plan", "ENFORCE", "on", "true", "1"],
        ),
        (
            "DRAIN",
            &["ssm", "observe", "off", ""],
            &["SSM", "none", "of", "false"],
        ),
        ("DRAIN_DOCUMENT", &["d", "arn:x/d"], &["", " "]),
        (
            "DRAIN_TIMEOUT_SECONDS",
            &["1", "60", "7200", "172800", "", " 60 "],
            &[
                "0",
                "-1",
                "172801",
                "1.5",
                "1h",
                "x",
                "99999999999999999999",
            ],
        ),
        (
            "GRACE_SECONDS",
            &["0", "900", "604800"],
            &["-1", "604801", "x"],
        ),
        ("WORKER_GRACE_SECONDS", &["0", "3600"], &["-1", "3601", "x"]),
        (
            "MAX_DELETIONS",
            &["1", "100", "10000"],
            &["0", "-1", "10001", "x"],
        ),
        ("MAX_RECEIVE_COUNT", &["1", "1000", ""], &["0", "1001", "x"]),
        (
            "PARENT_TAG",
            &["a", "a:b", &long_key, ""],
            &["*", "a?", "aws:x", &too_long],
        ),
        ("OWNER_TAG", &["a"], &["*", "aws:autoscaling:groupName"]),
        ("KEEP_TAG", &["a"], &["?", "aws:x"]),
        (
            "EIP_TAG",
            &["k=v", " k = v ", "k=v=w", ""],
            &["k", "=v", "k=", "=", "*=v", "k=*", "k=v?", "aws:k=v"],
        ),
        (
            "WORK_QUEUE_URL",
            &["https://sqs/q", "http://127.0.0.1:1/q", ""],
            &["q", "arn:aws:sqs:x", "ftp://x"],
        ),
        ("DEAD_LETTER_QUEUE_URL", &["https://sqs/q"], &["q"]),
        (
            "REAP",
            &[
                "workers",
                "workers,addresses",
                " key-pairs , spot-requests ",
                "",
            ],
            &["worker", "workers,x", "*", "all", "Workers"],
        ),
        (
            "WORKER_GROUPS",
            &["a=b", "a=b,a=c", ""],
            &["a", "=b", "a=", "a=b,c"],
        ),
    ];
    for (variable, legal, illegal) in rows {
        for value in *legal {
            with(variable, value).unwrap_or_else(|e| panic!("{variable}={value:?}: {e}"));
        }
        for value in *illegal {
            let errors =
                with(variable, value).expect_err(&format!("{variable}={value:?} must be refused"));
            assert!(
                errors.0.iter().any(|p| p.variable == *variable),
                "{variable}={value:?}: {errors}"
            );
            assert_eq!(errors.0.len(), 1, "{errors}");
            assert!(!errors.0[0].wants.is_empty());
            assert_eq!(
                errors.0[0].holds.as_deref(),
                Some(value.chars().take(80).collect::<String>()).as_deref()
            );
        }
    }
}

#[test]
fn every_problem_is_told_at_once() {
    let errors = read(&[
        ("MODE", "x"),
        ("DRAIN", "x"),
        ("EXECUTOR_NAME", "*"),
        ("DRAIN_TIMEOUT_SECONDS", "x"),
        ("GRACE_SECONDS", "x"),
        ("WORKER_GRACE_SECONDS", "x"),
        ("PARENT_TAG", "*"),
        ("OWNER_TAG", "*"),
        ("KEEP_TAG", "*"),
        ("EIP_TAG", "x"),
        ("MAX_DELETIONS", "x"),
        ("MAX_RECEIVE_COUNT", "x"),
        ("WORK_QUEUE_URL", "x"),
        ("DEAD_LETTER_QUEUE_URL", "x"),
        ("REAP", "x"),
        ("WORKER_GROUPS", "x"),
    ])
    .expect_err("all wrong");
    let mut named: Vec<_> = errors.0.iter().map(|p| p.variable).collect();
    named.sort_unstable();
    assert_eq!(
        named,
        [
            "AUTO_SCALING_GROUPS",
            "DEAD_LETTER_QUEUE_URL",
            "DRAIN",
            "DRAIN_TIMEOUT_SECONDS",
            "EIP_TAG",
            "EXECUTOR_NAME",
            "GRACE_SECONDS",
            "KEEP_TAG",
            "LIFECYCLE_HOOKS",
            "MAX_DELETIONS",
            "MAX_RECEIVE_COUNT",
            "MODE",
            "OWNER_TAG",
            "PARENT_TAG",
            "REAP",
            "WORKER_GRACE_SECONDS",
            "WORKER_GROUPS",
            "WORK_QUEUE_URL"
        ]
    );
    let text = errors.to_string();
    for variable in named {
        assert!(text.contains(variable), "{variable} is not in {text}");
    }
    assert_eq!(read(&[]).expect_err("nothing is set").0.len(), 3);
}

#[test]
fn a_hook_is_needed_unless_nothing_drains() {
    assert!(read(&[("AUTO_SCALING_GROUPS", "g"), ("DRAIN", "off")]).is_ok());
    assert!(read(&[("AUTO_SCALING_GROUPS", "g"), ("DRAIN", "observe")]).is_err());
    assert!(
        read(&[
            ("AUTO_SCALING_GROUPS", "g"),
            ("LIFECYCLE_HOOKS", "h"),
            ("DRAIN", "observe")
        ])
        .is_ok()
    );
}

/// A value is shown shortened, so that a secret in the wrong place isn't printed whole.
#[test]
fn what_a_variable_holds_is_shown_shortened() {
    let errors = with("MODE", &"x".repeat(10_000)).expect_err("wrong");
    assert!(errors.to_string().len() < 300);
}

/// What is unreadable would come back for ever.
#[test]
fn the_dead_letter_queue_is_another_than_the_work_queue() {
    let url = "https://sqs/q";
    let vars = [("WORK_QUEUE_URL", url), ("DEAD_LETTER_QUEUE_URL", url)];
    let vars: Vec<_> = REQUIRED.into_iter().chain(vars).collect();
    let errors = read(&vars).expect_err("the same queue");
    assert_eq!(errors.0[0].variable, "DEAD_LETTER_QUEUE_URL");
}

#[test]
fn the_longer_name_wins_over_the_older_one() {
    let both = [
        ("AUTO_SCALING_GROUPS", "g"),
        ("DRAIN", "off"),
        ("EXECUTOR_NAME", "new"),
        ("NAME_EXECUTOR_INSTANCE", "old"),
    ];
    assert_eq!(
        read(&both)
            .expect("legal")
            .executor
            .expect("a name")
            .as_str(),
        "new"
    );
}

#[test]
fn what_is_legal_and_unlikely_is_warned_of() {
    let warnings = read(&REQUIRED).expect("legal").warnings().join("\n");
    for variable in ["WORK_QUEUE_URL", "DEAD_LETTER_QUEUE_URL", "EXECUTOR_NAME"] {
        assert!(warnings.contains(variable), "{variable}");
    }
    let all = [
        ("WORK_QUEUE_URL", "https://q"),
        ("DEAD_LETTER_QUEUE_URL", "https://dead"),
        ("EXECUTOR_NAME", "ci"),
    ];
    let vars: Vec<_> = REQUIRED.into_iter().chain(all).collect();
    assert!(read(&vars).expect("legal").warnings().is_empty());
    assert!(
        with("GRACE_SECONDS", "10")
            .expect("legal")
            .warnings()
            .iter()
            .any(|w| w.contains("GRACE_SECONDS=10"))
    );
}
