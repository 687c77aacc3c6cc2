//! `preflight`: what would keep `MODE=enforce` from working, asked with the caller's credentials.

use super::{Error, Exit, Format, Terminal, markdown, plan, progress, show, whole};
use crate::{
    aws::Aws,
    config::Config,
    document::PlanDocument,
    preflight::{self, Finding, Level, QueueFacts},
};
use std::io::Write;

/// Shows the findings alone.
pub(super) async fn run(
    aws: &Aws,
    config: &Config,
    format: Format,
    terminal: &mut Terminal<'_>,
) -> Result<Exit, Error> {
    let mut document = plan::read(aws, config, terminal.err).await?;
    add_findings(aws, config, &mut document, terminal.err).await?;
    let findings = &document.findings;
    let lines = match format {
        Format::Json => vec![
            serde_json::to_string_pretty(findings)
                .map_err(|error| Error::failed(error.to_string()))?,
        ],
        Format::Table | Format::Markdown if findings.is_empty() => {
            vec!["Nothing stands in the way of MODE=enforce.".into()]
        }
        Format::Table => show::findings(findings, terminal.width),
        Format::Markdown => markdown::findings(findings),
    };
    for line in lines.iter().skip_while(|line| line.is_empty()) {
        writeln!(terminal.out, "{line}")?;
    }
    whole(&document)?;
    let has_problem = findings
        .iter()
        .any(|finding| finding.level == Level::Problem);
    Ok(if has_problem {
        Exit::PersonNeeded
    } else {
        Exit::Good
    })
}

/// Adds to a plan what the function can't know of itself: permissions, agents, queues.
pub(super) async fn add_findings(
    aws: &Aws,
    config: &Config,
    document: &mut PlanDocument,
    err: &mut dyn Write,
) -> Result<(), Error> {
    let findings = progress::during(
        aws,
        err,
        "Asking for permissions, agents and queues",
        ask(aws, config, document),
    )
    .await?;
    document.findings.extend(findings);
    document.findings.sort_by_key(|finding| finding.level);
    Ok(())
}

async fn ask(aws: &Aws, config: &Config, document: &PlanDocument) -> Vec<Finding> {
    let mut findings = vec![];
    let expected = preflight::expected_agents(&document.managers, config);
    if !expected.is_empty() {
        findings.extend(preflight::of_agents(
            &expected,
            &aws.agents(&expected).await,
        ));
    }
    let mut queues = vec![];
    for (variable, url) in preflight::queues_of(config) {
        let attributes = aws.queue_attributes(&url).await;
        queues.push(QueueFacts {
            variable,
            url,
            attributes,
        });
    }
    findings.extend(preflight::of_queues(&queues, config));
    let mut answers = vec![];
    for probe in preflight::probes(document, config) {
        let answer = aws.would_permit(&probe).await;
        answers.push((probe, answer));
    }
    findings.extend(preflight::of_permissions(&answers));
    findings
}
