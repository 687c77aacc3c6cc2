//! `plan`: the plan of the whole account, with the preflight's findings.

use super::{Error, Exit, Format, Terminal, markdown, preflight, progress, show, whole};
use crate::{
    aws::Aws,
    config::Config,
    document::PlanDocument,
    reconcile,
    task::{Delivery, Task},
};
use std::{io::Write, path::Path};

/// Shows the plan, and saves it.
pub(super) async fn run(
    aws: &Aws,
    config: &Config,
    format: Format,
    save: Option<&Path>,
    terminal: &mut Terminal<'_>,
) -> Result<Exit, Error> {
    let mut document = read(aws, config, terminal.err).await?;
    preflight::add_findings(aws, config, &mut document, terminal.err).await?;
    if let Some(path) = save {
        let json = to_json(&document)?;
        std::fs::write(path, json + "\n").map_err(|error| {
            Error::failed(format!(
                "could not save the plan in {}: {error}",
                path.display()
            ))
        })?;
        writeln!(terminal.err, "Saved in {}.", path.display())?;
    }
    write(&document, format, terminal)?;
    whole(&document)?;
    Ok(Exit::Good)
}

/// Reads the account and judges it, as the function does for `{"action":"plan"}`.
pub(super) async fn read(
    aws: &Aws,
    config: &Config,
    err: &mut dyn Write,
) -> Result<PlanDocument, Error> {
    let task = Task::Sweep { writes: false };
    let delivery = Delivery::first(aws.now());
    let pass = reconcile::pass(aws, config, &task, &delivery);
    let what = format!(
        "Reading the account in {}",
        aws.region().unwrap_or("the Region that is configured")
    );
    let report = progress::during(aws, err, &what, pass).await?;
    let document = report
        .document
        .ok_or_else(|| Error::failed("the pass made no plan"))?;
    Ok(*document)
}

fn write(
    document: &PlanDocument,
    format: Format,
    terminal: &mut Terminal<'_>,
) -> Result<(), Error> {
    let lines = match format {
        Format::Table => show::terminal(document, terminal.width),
        Format::Markdown => markdown::plan(document),
        Format::Json => vec![to_json(document)?],
    };
    for line in lines {
        writeln!(terminal.out, "{line}")?;
    }
    Ok(())
}

fn to_json(document: &PlanDocument) -> Result<String, Error> {
    serde_json::to_string_pretty(document).map_err(|error| Error::failed(error.to_string()))
}
