//! The command line: what the function would do, why, what is in its way, and a sweep before it goes.
//!
//! A second binary over the same library. It reads and judges exactly as the function does, with the caller's
//! credentials and the function's variables; only `sweep --yes` writes. Results go to standard output, progress and
//! errors to standard error.

mod args;
mod markdown;
mod plan;
mod preflight;
mod progress;
mod show;
mod sweep;
mod table;
mod why;

pub use args::{Args, Command, Format, Settings};
pub use sweep::Leftovers;
pub use table::{Column, cut, plain, table};

use crate::{
    aws::Aws,
    config::{Config, ConfigErrors},
    document::PlanDocument,
    fault::{Fault, with_causes},
};
use aws_config::SdkConfig;
use aws_sdk_ec2::config::ProvideCredentials;
use std::{
    fmt,
    io::{self, Write},
};

/// How a command ended, as the process's exit status says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done; for a sweep: nothing is left.
    Good = 0,
    /// Something failed or could not be read.
    Failed = 1,
    /// Done, and something is left for a person: a leftover, a problem, an id that nothing knows.
    PersonNeeded = 2,
    /// The command line or the configuration can't be used (`EX_USAGE`).
    Usage = 64,
}

/// Where a command writes, and how wide that is.
pub struct Terminal<'a> {
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// Standard error.
    pub err: &'a mut dyn Write,
    /// Characters in a line.
    pub width: usize,
}

impl fmt::Debug for Terminal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Terminal {} wide", self.width)
    }
}

/// What ends a command early.
#[derive(Debug)]
pub(crate) enum Error {
    /// A message for a person, and the exit status.
    Message(Exit, String),
    /// Nobody reads what is written any more.
    Closed,
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Message(Exit::Failed, format!("could not write: {error}")),
        }
    }
}

impl Error {
    fn failed(message: impl Into<String>) -> Self {
        Self::Message(Exit::Failed, message.into())
    }
}

/// The width of a line where the terminal doesn't tell.
pub const USUAL_WIDTH: usize = 100;
/// In a narrower line nothing can be said.
const NARROWEST: usize = 40;

/// The width of the terminal, as the variable `COLUMNS` tells it.
pub fn width(columns: Option<&str>) -> usize {
    let columns = columns
        .and_then(|c| c.trim().parse().ok())
        .filter(|c| *c > 0);
    columns.map_or(USUAL_WIDTH, |c: usize| c.max(NARROWEST))
}

/// Runs one command. `variables` is the environment; `sdk` loads the SDK's configuration, and only if AWS is asked.
pub async fn run(
    args: &Args,
    variables: impl IntoIterator<Item = (String, String)>,
    sdk: impl AsyncFnOnce() -> SdkConfig,
    terminal: &mut Terminal<'_>,
) -> Exit {
    match dispatch(args, variables, sdk, terminal).await {
        Ok(exit) => exit,
        // Nobody saw whether it ended clean.
        Err(Error::Closed) if matches!(args.command, Command::Sweep { yes: true, .. }) => {
            Exit::Failed
        }
        // As other tools do when their reader has seen enough.
        Err(Error::Closed) => Exit::Good,
        Err(Error::Message(exit, message)) => {
            // There is nowhere left to say that this can't be said.
            let _ = writeln!(terminal.err, "lifecycle-reaper: {message}");
            exit
        }
    }
}

async fn dispatch(
    args: &Args,
    variables: impl IntoIterator<Item = (String, String)>,
    sdk: impl AsyncFnOnce() -> SdkConfig,
    terminal: &mut Terminal<'_>,
) -> Result<Exit, Error> {
    if let Command::Why {
        id,
        plan: Some(path),
    } = &args.command
    {
        return why::in_file(id, path, terminal);
    }
    let config = Config::from_vars(args.settings.over(variables)).map_err(unusable)?;
    let sdk = sdk().await;
    can_ask(&sdk).await?;
    let aws = Aws::new(sdk);
    match &args.command {
        Command::Plan { format, save } => {
            plan::run(&aws, &config, *format, save.as_deref(), terminal).await
        }
        Command::Why { id, .. } => why::live(&aws, &config, id, terminal).await,
        Command::Preflight { format } => preflight::run(&aws, &config, *format, terminal).await,
        Command::Sweep { yes: false, .. } => sweep::rehearse(&aws, &config, terminal).await,
        Command::Sweep {
            yes: true,
            timeout_seconds,
        } => sweep::run(&aws, &config, *timeout_seconds, terminal).await,
    }
}

/// All problems of the settings, each with its variable and its flag.
fn unusable(problems: ConfigErrors) -> Error {
    let lines = problems.0.iter().map(|problem| {
        let variable = problem.variable;
        let flag = Settings::flag_of(variable)
            .map(|f| format!(" ({f})"))
            .unwrap_or_default();
        let holds = problem
            .holds
            .as_ref()
            .map_or("is not set".to_owned(), |value| format!("holds {value:?}"));
        format!(
            "\n  {variable}{flag} {holds}; it may hold {}",
            problem.wants
        )
    });
    let lines: String = lines.collect();
    Error::Message(Exit::Usage, format!("the settings can't be used:{lines}"))
}

/// Whether there is anything to ask AWS with: better one error now than one for each call.
async fn can_ask(sdk: &SdkConfig) -> Result<(), Error> {
    if sdk.region().is_none() {
        return Err(Error::failed(
            "no Region is configured: set AWS_REGION, or a profile with a Region (AWS_PROFILE)",
        ));
    }
    let Some(provider) = sdk.credentials_provider() else {
        return Err(Error::failed(format!(
            "no credentials are configured: {CREDENTIALS}"
        )));
    };
    match provider.provide_credentials().await {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::failed(format!(
            "no credentials: {}\n{CREDENTIALS}",
            with_causes(&error)
        ))),
    }
}

/// What helps whoever has no credentials.
const CREDENTIALS: &str = "set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; with single sign-on or a credential process: \
                           eval \"$(aws configure export-credentials --format env)\"";

/// An error when something could not be read: the plan is shown, and is no whole one.
fn whole(document: &PlanDocument) -> Result<(), Error> {
    if document.unread.is_empty() {
        return Ok(());
    }
    let unread = document.unread.join("\n  ");
    let message =
        format!("not everything could be read, so what hangs on it was not judged:\n  {unread}");
    Err(Error::failed(message))
}

fn faulty(what: &str, fault: &Fault) -> Error {
    Error::failed(format!("{what}: {fault}"))
}
