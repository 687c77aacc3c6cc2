//! The arguments. What the function reads from variables can be given as flags as well; a flag comes first.

use clap::{Parser, Subcommand, ValueEnum};
use std::{collections::BTreeMap, path::PathBuf};

/// See what lifecycle-reaper would delete and why, what is in its way, and sweep before it goes.
///
/// Reads the account of your AWS credentials and decides as the Lambda function does, with the same settings: give
/// them as the function's variables or as flags. Only `sweep --yes` writes.
#[derive(Debug, Parser)]
#[command(name = "lifecycle-reaper", version)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// The settings.
    #[command(flatten)]
    pub settings: Settings,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what would be deleted and why, what is kept and why, and what is in the way. Writes nothing.
    ///
    /// Exit status: 0 when everything could be read, orphans or not; 1 when something could not.
    Plan {
        /// How to show it.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
        /// Save the plan as JSON, for `why --plan`.
        #[arg(long, value_name = "FILE")]
        save: Option<PathBuf>,
    },
    /// Tell why one resource would be deleted or kept: each rule in order, and the fact that decided.
    ///
    /// Exit status: 0; 2 when nothing of ours has the id.
    Why {
        /// An instance, spot request or address id, a key pair's name, a public IP.
        id: String,
        /// Look into a saved plan, or a reply of the function, instead of the account.
        #[arg(long, value_name = "FILE")]
        plan: Option<PathBuf>,
    },
    /// Look for what would keep MODE=enforce from working: permissions, agents, hooks, queues. Writes nothing.
    ///
    /// Exit status: 0 without a problem, 2 with one.
    Preflight {
        /// How to show it.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// Delete what is left of groups that are scaled to zero or gone, until nothing is left. Then destroy is safe.
    ///
    /// Without --yes it shows the plan and writes nothing. Exit status: 0 only when nothing is left; 2 when something
    /// is, which is then listed; 1 when something could not be read or deleted.
    Sweep {
        /// Really delete.
        #[arg(long)]
        yes: bool,
        /// Give up after so long.
        #[arg(long, value_name = "SECONDS", default_value_t = 7200, value_parser = clap::value_parser!(u32).range(1..=604_800))]
        timeout_seconds: u32,
    },
}

/// How to show a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a terminal.
    Table,
    /// For a program, and for `why --plan`.
    Json,
    /// For a ticket or a pull request.
    Markdown,
}

/// Declares the flags that stand for a variable of the function each.
macro_rules! settings {
    ($($field:ident $variable:literal $name:literal $help:literal,)*) => {
        /// The function's variables as flags.
        #[derive(Debug, Default, clap::Args)]
        #[command(next_help_heading = "Settings, as the function's variables")]
        pub struct Settings {
            $(
                #[doc = $help]
                #[arg(long, global = true, value_name = $name, help = concat!($help, " [", $variable, "]"))]
                pub $field: Option<String>,
            )*
        }

        impl Settings {
            /// The flag that stands for a variable.
            pub fn flag_of(variable: &str) -> Option<String> {
                let field = [$(($variable, stringify!($field))),*].into_iter().find(|(v, _)| *v == variable)?.1;
                Some(format!("--{}", field.replace('_', "-")))
            }

            /// Each flag that is given, with its variable.
            fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
                [$(($variable, self.$field.as_deref())),*]
                    .into_iter()
                    .filter_map(|(variable, value)| Some((variable, value?)))
            }
        }
    };
}

settings! {
    groups "AUTO_SCALING_GROUPS" "NAMES" "Exact names of the managed groups",
    hooks "LIFECYCLE_HOOKS" "NAMES" "Exact names of our termination hooks",
    executor_name "EXECUTOR_NAME" "NAME" "The name part in worker, key and spot names",
    runner_tokens "RUNNER_TOKENS" "TOKENS" "Short runner tokens that contain a '-'",
    drain "DRAIN" "WORD" "ssm, observe or off",
    drain_document "DRAIN_DOCUMENT" "NAME" "The SSM Command document",
    drain_timeout_seconds "DRAIN_TIMEOUT_SECONDS" "SECONDS" "Longest drain",
    grace_seconds "GRACE_SECONDS" "SECONDS" "Nothing younger is deleted where its owner is only absent",
    worker_grace_seconds "WORKER_GRACE_SECONDS" "SECONDS" "So long an undrained manager's workers may finish",
    parent_tag "PARENT_TAG" "KEY" "Tag on workers that names their manager",
    owner_tag "OWNER_TAG" "KEY" "Tag on addresses that names their manager",
    eip_tag "EIP_TAG" "KEY=VALUE" "Addresses with exactly this tag are ours too",
    keep_tag "KEEP_TAG" "KEY" "Protects whatever carries it",
    reap "REAP" "KINDS" "Kinds that are looked at",
    worker_groups "WORKER_GROUPS" "PAIRS" "Pairs manager-group=worker-group",
    max_deletions "MAX_DELETIONS" "COUNT" "Deletions per kind and pass",
    max_receive_count "MAX_RECEIVE_COUNT" "COUNT" "The work queue's own setting",
    work_queue_url "WORK_QUEUE_URL" "URL" "The work queue",
    dead_letter_queue_url "DEAD_LETTER_QUEUE_URL" "URL" "The dead-letter queue",
}

impl Settings {
    /// The variables, with the flags over them.
    ///
    /// A plan needs neither document nor hooks. Where nothing says how to drain, nothing is drained from here:
    /// a hook is at most held by heartbeats, as something on the instance, or the function, completes it.
    pub fn over(
        &self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> BTreeMap<String, String> {
        let mut all: BTreeMap<String, String> = variables.into_iter().collect();
        // The older name of a variable must not win over the flag.
        if self.executor_name.is_some() {
            all.remove("NAME_EXECUTOR_INSTANCE");
        }
        all.extend(
            self.given()
                .map(|(variable, value)| (variable.to_owned(), value.to_owned())),
        );
        let is_set = |variable: &str| all.get(variable).is_some_and(|v| !v.trim().is_empty());
        if !is_set("DRAIN") && !is_set("DRAIN_DOCUMENT") {
            let drain = if is_set("LIFECYCLE_HOOKS") {
                "observe"
            } else {
                "off"
            };
            all.insert("DRAIN".into(), drain.into());
        }
        all
    }
}
