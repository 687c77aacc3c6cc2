//! `sweep`: deletes what is left of groups that are scaled to zero or gone, until nothing is left.
//!
//! Each pass is the function's own. What a pass says is not believed at the end: a last look that writes nothing must
//! find no manager, nothing to delete, nothing undecided and nothing unproven. Only then is destroy safe.

use super::{Error, Exit, Format, Terminal, plan, progress, show, whole};
use crate::{
    aws::Aws,
    config::{Config, Mode},
    document::{Manager, PlanDocument, ResourceLine},
    pace,
    preflight::Level,
    reconcile::{self, Outcome, Report},
    task::{Delivery, Task},
    world::Time,
};
use chrono::TimeDelta;
use std::io::Write;

/// A line so often while a sweep waits.
const WAITING_LINE: TimeDelta = TimeDelta::seconds(30);
/// A plan that says otherwise than the passes did is believed so often; then a person must look.
const LOOKS: u32 = 3;

/// Shows the plan, and says how to carry it out.
pub(super) async fn rehearse(
    aws: &Aws,
    config: &Config,
    terminal: &mut Terminal<'_>,
) -> Result<Exit, Error> {
    let exit = plan::run(aws, config, Format::Table, None, terminal).await?;
    writeln!(
        terminal.out,
        "\nNothing was written. With --yes the sweep deletes what is to be deleted, until nothing is left."
    )?;
    Ok(exit)
}

/// Sweeps until nothing is left, or nothing can be done any more, or the time is over.
pub(super) async fn run(
    aws: &Aws,
    config: &Config,
    timeout_seconds: u32,
    terminal: &mut Terminal<'_>,
) -> Result<Exit, Error> {
    let config = Config {
        mode: Mode::Enforce,
        ..config.clone()
    };
    let deadline = aws.now() + TimeDelta::seconds(timeout_seconds.into());
    let mut passes = Passes {
        aws,
        config: &config,
        deadline,
        count: 0,
        faulty: 0,
    };
    let mut document = plan::read(aws, &config, terminal.err).await?;
    for finding in document.findings.iter().filter(|f| f.level != Level::Note) {
        writeln!(
            terminal.err,
            "{}: {}: {}: {}",
            finding.level, finding.about, finding.what, finding.why
        )?;
    }
    for _ in 0..LOOKS {
        let in_time = passes.until_done(terminal.err).await?;
        document = plan::read(aws, &config, terminal.err).await?;
        let left = Leftovers::in_plan(&document);
        if left.is_none() || !in_time || !left.may_pass() {
            break;
        }
        if !passes
            .wait(pace::SETTLE, "something is still on its way", terminal.err)
            .await?
        {
            break;
        }
    }
    conclude(&document, passes.count, terminal)
}

fn conclude(
    document: &PlanDocument,
    passes: u32,
    terminal: &mut Terminal<'_>,
) -> Result<Exit, Error> {
    whole(document)?;
    let left = Leftovers::in_plan(document);
    if left.is_none() {
        writeln!(
            terminal.out,
            "Clean after {passes} passes: no manager lives and nothing of theirs is left. Destroy is safe now."
        )?;
        if document.total("keep") > 0 {
            writeln!(
                terminal.out,
                "{} kept on purpose (in use, protected by a tag, or somebody else's):",
                document.total("keep")
            )?;
            for line in document.resources.iter().filter(|r| r.verdict == "keep") {
                write_all(&show::leftover(line, terminal.width), terminal)?;
            }
        }
        return Ok(Exit::Good);
    }
    writeln!(terminal.out, "NOT clean after {passes} passes. Left:")?;
    for manager in &left.managers {
        let lifecycle = manager
            .lifecycle
            .as_deref()
            .unwrap_or("not listed by its group");
        writeln!(
            terminal.out,
            "  manager {} of group {}: {lifecycle}, EC2 says {}",
            manager.id, manager.group, manager.state
        )?;
    }
    for line in &left.resources {
        write_all(&show::leftover(line, terminal.width), terminal)?;
    }
    if !left.managers.is_empty() {
        writeln!(
            terminal.out,
            "Managers live: scale their groups to zero, wait until they are gone, and sweep again."
        )?;
    }
    if !left.resources.is_empty() {
        writeln!(
            terminal.out,
            "Ask `lifecycle-reaper why ID` for each of them. Don't destroy yet."
        )?;
    }
    Ok(Exit::PersonNeeded)
}

fn write_all(lines: &[String], terminal: &mut Terminal<'_>) -> Result<(), Error> {
    for line in lines {
        writeln!(terminal.out, "{line}")?;
    }
    Ok(())
}

/// What keeps a sweep from being clean.
#[derive(Debug)]
pub struct Leftovers<'a> {
    /// Managers that aren't gone.
    pub managers: Vec<&'a Manager>,
    /// Resources that are to be deleted, undecided or unproven.
    pub resources: Vec<&'a ResourceLine>,
}

impl<'a> Leftovers<'a> {
    /// What a plan shows.
    pub fn in_plan(document: &'a PlanDocument) -> Self {
        let is_gone = |m: &&Manager| matches!(m.state.as_str(), "terminated" | "shutting-down");
        Self {
            managers: document.managers.iter().filter(|m| !is_gone(m)).collect(),
            resources: document
                .resources
                .iter()
                .filter(|r| r.verdict != "keep")
                .collect(),
        }
    }

    /// Whether nothing is left.
    pub fn is_none(&self) -> bool {
        self.managers.is_empty() && self.resources.is_empty()
    }

    /// Whether what is left may go by itself: managers that terminate, resources that are undecided.
    fn may_pass(&self) -> bool {
        let terminates = |m: &&&Manager| {
            m.lifecycle
                .as_deref()
                .is_some_and(|l| l.starts_with("Terminating") && l != "Terminating:Retained")
        };
        let managers_go = !self.managers.is_empty()
            && self.managers.iter().filter(terminates).count() == self.managers.len();
        let resources_go = self.resources.iter().any(|r| r.verdict != "unknown");
        managers_go || (self.managers.is_empty() && resources_go)
    }
}

/// The passes of one sweep.
struct Passes<'a> {
    aws: &'a Aws,
    config: &'a Config,
    deadline: Time,
    count: u32,
    /// Passes in a row in which something failed that may succeed later.
    faulty: u32,
}

impl Passes<'_> {
    /// Runs passes until one has nothing left to do; `false` = the time is over.
    async fn until_done(&mut self, err: &mut dyn Write) -> Result<bool, Error> {
        loop {
            let report = self.one(err).await?;
            match report.outcome {
                Outcome::Done => return Ok(true),
                Outcome::Failed(fault) => {
                    return Err(Error::failed(format!("a person must act: {fault}")));
                }
                Outcome::Again(after) => {
                    if !self.wait(after, &report.reason, err).await? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    async fn one(&mut self, err: &mut dyn Write) -> Result<Report, Error> {
        self.count += 1;
        let task = Task::Sweep { writes: true };
        // Each pass is a first one, or the function's bounds for a sweep that comes again would end it.
        let delivery = Delivery {
            count: 1 + self.faulty,
            ..Delivery::first(self.aws.now())
        };
        let pass = reconcile::pass(self.aws, self.config, &task, &delivery);
        let report = progress::during(self.aws, err, &format!("Pass {}", self.count), pass).await?;
        let deleted: Vec<String> = report
            .results
            .deleted
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        let deleted = if deleted.is_empty() {
            "nothing".into()
        } else {
            deleted.join(", ")
        };
        writeln!(
            err,
            "Pass {}: deleted {deleted}; {} wait.",
            self.count, report.plan.over_limit
        )?;
        for (kind, count) in &report.results.refused {
            writeln!(
                err,
                "  EC2 refuses to delete {count} {kind}: protected or in use."
            )?;
        }
        for fault in &report.results.faults {
            writeln!(err, "  {fault}")?;
        }
        self.faulty = if report.results.faults.is_empty() {
            0
        } else {
            self.faulty + 1
        };
        Ok(report)
    }

    /// Waits, visibly; `false` = the time is over before.
    async fn wait(
        &self,
        wait: TimeDelta,
        reason: &str,
        err: &mut dyn Write,
    ) -> Result<bool, Error> {
        let until = self.aws.now() + wait;
        if until > self.deadline {
            writeln!(
                err,
                "The time is over (--timeout-seconds), and the next pass would come in {} s: {reason}.",
                wait.num_seconds()
            )?;
            return Ok(false);
        }
        loop {
            let left = until - self.aws.now();
            let Ok(part) = left.min(WAITING_LINE).to_std() else {
                return Ok(true);
            };
            if part.is_zero() {
                return Ok(true);
            }
            writeln!(err, "Next pass in {} s: {reason}.", left.num_seconds())?;
            self.aws.rest(part).await;
        }
    }
}
