//! The command line: arguments and environment in, an exit status out. Everything else is the library's.

use clap::Parser;
use lifecycle_reaper::cli::{self, Args, Exit, Terminal};
use std::{
    io::{self, LineWriter},
    process::ExitCode,
};

#[expect(
    clippy::disallowed_methods,
    reason = "the edge: here the environment comes in"
)]
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are asked for, and go to standard output.
            let exit = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Good
            };
            let _ = error.print();
            return ExitCode::from(exit as u8);
        }
    };
    let variables = std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    let sdk = async || aws_config::load_defaults(aws_config::BehaviorVersion::latest()).await;
    let columns = std::env::var("COLUMNS").ok();
    let (mut out, mut err) = (LineWriter::new(io::stdout().lock()), io::stderr().lock());
    let mut terminal = Terminal {
        out: &mut out,
        err: &mut err,
        width: cli::width(columns.as_deref()),
    };
    let exit = cli::run(&args, variables, sdk, &mut terminal).await;
    ExitCode::from(exit as u8)
}
