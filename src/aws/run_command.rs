//! SSM Run Command: the newest drain command for a manager, and a new one.

use super::{Aws, Page, pages};
use crate::{
    fault::{Disposition, Fault},
    task::InstanceId,
    world::{Answer, Command, Time},
};
use aws_sdk_ssm::types::{CommandFilter, CommandFilterKey, CommandInvocationStatus, CommandStatus};
use chrono::{DateTime, SecondsFormat, TimeDelta};

/// SSM gives up on reaching the agent after so long; the default is an hour, and the drain waits meanwhile.
const DELIVERY_TIMEOUT_SECONDS: i32 = 60;

/// A command of our document for one instance, as SSM lists it.
#[derive(Clone, Debug)]
struct Sent {
    id: String,
    requested: Time,
    status: Option<CommandStatus>,
}

/// The newest drain command for an instance, whatever it proves.
#[derive(Clone, Debug)]
pub struct NewestCommand {
    /// When it was requested, and its id; `None` = there is none, or it can't be read.
    request: Option<(Time, String)>,
    /// What became of it.
    command: Command,
}

/// Which commands are evidence: yesterday's "stopped" proves nothing.
#[derive(Clone, Copy, Debug)]
pub struct Evidential<'a> {
    /// Requested at or after this,
    pub since: Time,
    /// or the one whose end woke us.
    pub woken_by: Option<&'a str>,
}

impl NewestCommand {
    /// When it was requested.
    pub fn requested(&self) -> Option<Time> {
        self.request.as_ref().map(|(requested, _)| *requested)
    }

    /// The command as far as it is evidence: one that ended counts only if it is, one in flight always does.
    pub fn as_evidence(&self, evidential: Evidential<'_>) -> Command {
        let is_evidence = self.request.as_ref().is_none_or(|(requested, id)| {
            *requested >= evidential.since || Some(id.as_str()) == evidential.woken_by
        });
        match &self.command {
            Command::Answered(..) | Command::Ended { .. } if !is_evidence => Command::None,
            command => command.clone(),
        }
    }
}

impl From<Command> for NewestCommand {
    fn from(command: Command) -> Self {
        Self {
            request: None,
            command,
        }
    }
}

/// A command that was sent so long before it could be evidence may still be in flight, and then a second must not be sent.
const STILL_IN_FLIGHT: TimeDelta = TimeDelta::hours(1);

impl Aws {
    /// The newest command of `document` for `id`, of those that can be evidence `since` or may still be in flight.
    ///
    /// Listed by document and time and matched on the instance ids in the answer: asked by instance id,
    /// SSM leaves out a command that is still pending.
    pub async fn drain_command(
        &self,
        document: &str,
        id: &InstanceId,
        since: Time,
    ) -> NewestCommand {
        let earliest = since - STILL_IN_FLIGHT;
        let filter = |key, value: String| CommandFilter::builder().key(key).value(value).build();
        let after = filter(
            CommandFilterKey::InvokedAfter,
            earliest.to_rfc3339_opts(SecondsFormat::Secs, true),
        );
        let of_document = filter(CommandFilterKey::DocumentName, document.to_owned());
        let (Ok(after), Ok(of_document)) = (after, of_document) else {
            let fault = Fault::stop("ListCommands", "the document name can't be a filter");
            return Command::Unreadable(fault).into();
        };
        let listing = pages("ListCommands", async |token| {
            let call = self
                .ssm()
                .list_commands()
                .filters(of_document.clone())
                .filters(after.clone())
                .set_next_token(token);
            let answer = call.send().await.map_err(Fault::of("ListCommands"))?;
            let ours = answer.commands().iter().filter(|c| is_for(c, document, id));
            let items = ours
                .filter_map(|c| sent(c, since))
                .filter(|c| c.requested >= earliest)
                .collect();
            Ok(Page {
                items,
                next: answer.next_token,
            })
        })
        .await;
        if let Some(fault) = listing.fault {
            return Command::Unreadable(fault).into();
        }
        match listing.items.into_iter().max_by_key(|c: &Sent| c.requested) {
            None => Command::None.into(),
            Some(newest) => NewestCommand {
                request: Some((newest.requested, newest.id.clone())),
                command: self.invocation(newest, id).await,
            },
        }
    }

    async fn invocation(&self, command: Sent, id: &InstanceId) -> Command {
        let call = self
            .ssm()
            .get_command_invocation()
            .command_id(&command.id)
            .instance_id(id.as_str());
        let answer = match call.send().await.map_err(Fault::of("GetCommandInvocation")) {
            Ok(answer) => answer,
            Err(fault) if fault.disposition == Disposition::Gone => {
                return without_invocation(&command);
            }
            Err(fault) => return Command::Unreadable(fault),
        };
        let details = answer.status_details().unwrap_or_default();
        let status = answer
            .status()
            .map(CommandInvocationStatus::as_str)
            .unwrap_or_default();
        let words = if details.is_empty() || details == status {
            status.to_owned()
        } else {
            format!("{status} ({details})")
        };
        match answer.status() {
            None
            | Some(
                CommandInvocationStatus::Pending
                | CommandInvocationStatus::InProgress
                | CommandInvocationStatus::Delayed
                | CommandInvocationStatus::Cancelling,
            ) => Command::InFlight { status: words },
            // Only a command that ended well says anything: the line of one that was cut off may be half the truth.
            Some(CommandInvocationStatus::Success) => {
                match Answer::in_output(answer.standard_output_content().unwrap_or_default()) {
                    Some((answer, facts)) => Command::Answered(answer, facts),
                    None => Command::Ended {
                        status: format!("{words}, without the document's line"),
                    },
                }
            }
            Some(_) => Command::Ended { status: words },
        }
    }

    /// Starts the drain document on one instance. The wait inside it is bounded by the document's own default.
    pub async fn send_drain(&self, document: &str, id: &InstanceId) -> Result<(), Fault> {
        let call = self
            .ssm()
            .send_command()
            .document_name(document)
            .instance_ids(id.as_str());
        let call = call
            .timeout_seconds(DELIVERY_TIMEOUT_SECONDS)
            .comment("lifecycle-reaper: drain a terminating manager");
        call.send()
            .await
            .map(drop)
            .map_err(Fault::of("SendCommand"))
    }
}

fn is_for(command: &aws_sdk_ssm::types::Command, document: &str, id: &InstanceId) -> bool {
    // Where the configuration names a document by its ARN, SSM may answer with the name alone.
    let same_document = command
        .document_name()
        .is_none_or(|name| name == document || document.ends_with(&format!("/{name}")));
    same_document && command.instance_ids().iter().any(|i| i == id.as_str())
}

/// A command without a time passed SSM's own filter: it is no older than `since`.
fn sent(command: &aws_sdk_ssm::types::Command, since: Time) -> Option<Sent> {
    let requested = command
        .requested_date_time()
        .and_then(|t| DateTime::from_timestamp(t.secs(), t.subsec_nanos()));
    Some(Sent {
        id: command.command_id()?.to_owned(),
        requested: requested.unwrap_or(since),
        status: command.status().cloned(),
    })
}

/// The command is listed and its invocation isn't: just sent, or never delivered.
fn without_invocation(command: &Sent) -> Command {
    match &command.status {
        Some(
            status @ (CommandStatus::Failed | CommandStatus::TimedOut | CommandStatus::Cancelled),
        ) => Command::Ended {
            status: format!("{}, never delivered", status.as_str()),
        },
        _ => Command::InFlight {
            status: "not visible yet".into(),
        },
    }
}
