//! One pass: observe, plan, act, and say what comes next.
//!
//! A pass doesn't wait for the world and remembers nothing between deliveries: the state is in AWS. Every pass may
//! run twice at once, late, or be cut off after any call.

mod draining;
mod reaping;
mod report;

pub use report::{Outcome, Released, Report};

use crate::{
    aws::Aws,
    config::{Config, Mode},
    document::PlanDocument,
    drain::{self, Next},
    fault::Disposition,
    observe, pace,
    reap::{Evidence, OwnerState},
    task::{Change, Delivery, InstanceId, Task, ToldBy},
    world::{Answer, Began, Command, ManagerView, World},
};
use chrono::TimeDelta;
use futures_util::{
    FutureExt,
    stream::{self, StreamExt},
};

/// A message and the activities of its group are told by two clocks.
const CLOCK_SKEW: TimeDelta = TimeDelta::minutes(1);
/// The drain document waits for its jobs longer than this: what ended sooner failed, or found another copy at work.
const SHORTEST_DRAIN: TimeDelta = TimeDelta::minutes(3);
/// A sweep that continues for longer leaves the rest to the next one: sweeps must not pile up on the queue.
const LONGEST_SWEEP: TimeDelta = TimeDelta::hours(12);
/// So much longer than the grace period a sweep comes again that deletes nothing.
const LONGEST_WAITING_SWEEP: TimeDelta = TimeDelta::minutes(15);
/// At most so many waiting managers are woken by one sweep.
const WAKES_PER_SWEEP: usize = 50;
/// So many side by side.
const WAKES_AT_ONCE: usize = 10;

/// One pass for one task.
struct Pass<'a> {
    aws: &'a Aws,
    config: &'a Config,
    task: &'a Task,
    delivery: &'a Delivery,
}

/// Runs one pass for `task`.
pub async fn pass(aws: &Aws, config: &Config, task: &Task, delivery: &Delivery) -> Report {
    let pass = Pass {
        aws,
        config,
        task,
        delivery,
    };
    // Boxed, because the futures of many calls inside one another grow beyond what the compiler lays out.
    match task {
        Task::Terminate {
            manager,
            to_warm_pool,
            ..
        } => pass.terminate(manager, *to_warm_pool).boxed_local().await,
        Task::Wake { manager, .. } => pass.wake(manager).boxed_local().await,
        Task::Reap { manager, told_by } => pass.reap_one(manager, *told_by).boxed_local().await,
        Task::Sweep { .. } => pass.sweep().boxed_local().await,
    }
}

/// A pass that found nothing to do is done, and says so like any other.
fn nothing_to_do(manager: &InstanceId, reason: &str) -> Report {
    tracing::info!(instance_id = %manager, "planned: nothing: {reason}");
    Report::new(Outcome::Done, reason)
}

/// Whether a manager that is gone ended its jobs before: the document's answer counts only where the group's own
/// activity shows that it came after this termination began. One that was drained by hand may have been started again.
fn is_proven_drained(view: &ManagerView) -> bool {
    let is_drained = matches!(
        view.command,
        Command::Answered(Answer::Stopped | Answer::NothingToDrain, _)
    );
    is_drained && matches!(view.began, Began::At(_))
}

impl Pass<'_> {
    async fn terminate(&self, manager: &InstanceId, to_warm_pool: bool) -> Report {
        let view = observe::manager(self.aws, self.task, self.delivery, manager, self.config).await;
        let first_seen = observe::since_when(self.task, self.delivery, &view);
        // A message that is older than the termination has used its deliveries up on something else: the termination
        // has a message of its own, so the last deliveries of this one end nothing.
        let is_older = first_seen > self.delivery.first_seen + CLOCK_SKEW;
        let max_count = self.delivery.max_count.filter(|_| !is_older);
        let delivery = Delivery {
            first_seen,
            max_count,
            ..*self.delivery
        };
        let now = self.aws.now();
        match drain::next(self.task, &delivery, &view, self.config, now) {
            Next::Reap | Next::AwaitGone if to_warm_pool && !drain::lags(&view, &delivery, now) => {
                nothing_to_do(manager, "it went to its warm pool: nothing of it is reaped")
            }
            Next::Reap => {
                let world = observe::world(self.aws, self.config).await;
                self.reap(&world, is_proven_drained(&view)).await
            }
            Next::Leave(reason) => {
                tracing::warn!(instance_id = %manager, "planned: left alone: {reason}");
                Report::new(Outcome::Done, reason)
            }
            next => {
                Pass {
                    delivery: &delivery,
                    ..*self
                }
                .drain(&view, next)
                .await
            }
        }
    }

    /// One look at one manager; whatever comes of it, the hook's own message or the sweep carries on.
    async fn wake(&self, manager: &InstanceId) -> Report {
        let view = observe::manager(self.aws, self.task, self.delivery, manager, self.config).await;
        let first_seen = observe::since_when(self.task, self.delivery, &view);
        let delivery = Delivery {
            first_seen,
            ..Delivery::first(self.aws.now())
        };
        let report = match drain::next(self.task, &delivery, &view, self.config, self.aws.now()) {
            Next::Leave(reason) if drain::is_without_hook(&view, self.config) => {
                let group = view.in_group().map(|place| place.group.as_str());
                tracing::warn!(instance_id = %manager, group, hooks = self.config.hooks.join(","), "planned: nothing: {reason}");
                Report {
                    without_hook: 1,
                    ..Report::new(Outcome::Done, reason)
                }
            }
            Next::Leave(reason) => nothing_to_do(manager, &reason),
            Next::Send(why) if self.is_woken_at_once(&view) => {
                let reason = format!("{why}: the hook's message sends the next command");
                nothing_to_do(manager, &reason)
            }
            Next::Reap | Next::AwaitGone => nothing_to_do(manager, "no hook of ours waits for it"),
            next => {
                Pass {
                    delivery: &delivery,
                    ..*self
                }
                .drain(&view, next)
                .await
            }
        };
        match report.outcome {
            Outcome::Again(_) => Report {
                outcome: Outcome::Done,
                ..report
            },
            Outcome::Done | Outcome::Failed(_) => report,
        }
    }

    /// Whether the end of a drain command woke us that took no time: the next would end as soon, and wake us again.
    fn is_woken_at_once(&self, view: &ManagerView) -> bool {
        let by_command = matches!(
            self.task,
            Task::Wake {
                change: Change::CommandEnded(_),
                ..
            }
        );
        let lasted = view.requested.map(|requested| self.aws.now() - requested);
        by_command && lasted.is_some_and(|lasted| lasted < SHORTEST_DRAIN)
    }

    /// A manager is said to be gone: reap, if EC2 agrees.
    async fn reap_one(&self, manager: &InstanceId, told_by: ToldBy) -> Report {
        let world = observe::world(self.aws, self.config).await;
        let evidence = Evidence::of(&world, self.task, false, self.config, self.aws.now());
        let OwnerState::Live(word) = evidence.owner_state(manager.as_str()) else {
            return self.reap(&world, false).await;
        };
        // That its group still lists it is no answer while EC2 could not be asked.
        let unread = world.instances.fault.clone();
        if let Some(fault) = unread.filter(|_| evidence.instance(manager.as_str()).is_none()) {
            tracing::error!(instance_id = %manager, aws_code = fault.code, %fault, "planned: nothing: whether the manager lives could not be read");
            let outcome = match fault.disposition {
                Disposition::Retry => Outcome::Again(pace::backoff(self.task, self.delivery)),
                _ => Outcome::Failed(fault.clone()),
            };
            let mut report = Report::new(outcome, fault.to_string());
            report.results.faults.push(fault);
            return report;
        }
        tracing::warn!(instance_id = %manager, state = word, "planned: manager alive: nothing is reaped");
        // EC2 may lag behind what Auto Scaling says, but not for long.
        let lags = self.delivery.age(self.aws.now()) < drain::TAKEN_BACK;
        let outcome = match told_by {
            ToldBy::TerminateSuccessful if lags && self.config.mode == Mode::Enforce => {
                Outcome::Again(pace::backoff(self.task, self.delivery))
            }
            _ => Outcome::Done,
        };
        Report::new(
            outcome,
            format!("refused: the manager {manager} is {word}; nothing of it is reaped"),
        )
    }

    /// Looks at everything, and wakes each manager that waits in a hook: its message may have been lost.
    async fn sweep(&self) -> Report {
        let world = observe::world(self.aws, self.config).await;
        let waiting =
            Evidence::of(&world, self.task, false, self.config, self.aws.now()).waiting_managers();
        let mut report = self.looking_at_all(&world).await;
        let mut woken = vec![];
        if self.writes() {
            let wakes = waiting.iter().take(WAKES_PER_SWEEP);
            let looks = stream::iter(wakes.map(|manager| self.wake_waiting(manager)));
            woken = looks.buffer_unordered(WAKES_AT_ONCE).collect().await;
        }
        report.waiting = waiting;
        if *self.task == (Task::Sweep { writes: false }) {
            report.document = Some(Box::new(self.written_down(&world, &report).await));
        }
        // The next sweep takes up what is left: the dead-letter queue is for what a person must look at.
        // What makes progress goes on; what only waits is seen by the next sweep as well.
        let is_progress = report.results.effective() > 0;
        let longest = if is_progress {
            LONGEST_SWEEP
        } else {
            self.config.grace + LONGEST_WAITING_SWEEP
        };
        let is_long = self.delivery.age(self.aws.now()) > longest;
        if matches!(report.outcome, Outcome::Again(_))
            && (is_long || self.delivery.is_among_the_last())
        {
            report.outcome = Outcome::Done;
            report.reason = format!("{}; left to the next sweep", report.reason);
        }
        for look in woken {
            report.add_look(look);
        }
        report
    }

    /// A wake for a manager whose hook's message may have been lost.
    async fn wake_waiting(&self, manager: &InstanceId) -> Report {
        let task = Task::Wake {
            manager: manager.clone(),
            change: Change::FoundWaiting,
        };
        let delivery = Delivery::first(self.aws.now());
        let woken = Pass {
            task: &task,
            delivery: &delivery,
            ..*self
        }
        .wake(manager)
        .await;
        tracing::info!(instance_id = %manager, outcome = woken.outcome.word(), "found waiting: {}", woken.reason);
        woken
    }

    /// Reaps; where nothing is written, with all orphans in the plan, for no pass has to end.
    async fn looking_at_all(&self, world: &World) -> Report {
        if self.writes() {
            return self.reap(world, false).await;
        }
        let unlimited = Config {
            max_deletions: usize::MAX,
            ..self.config.clone()
        };
        Pass {
            config: &unlimited,
            ..*self
        }
        .reap(world, false)
        .await
    }

    /// The plan as a document, with what only a person asks for.
    async fn written_down(&self, world: &World, report: &Report) -> PlanDocument {
        let groups = observe::groups(self.aws, self.config).await;
        let mut unread = report.results.faults.clone();
        if let Outcome::Failed(fault) = &report.outcome {
            unread.push(fault.clone());
        }
        let evidence = Evidence::of(world, self.task, false, self.config, self.aws.now());
        PlanDocument::of(&report.plan, &evidence, &groups, &unread, self.aws.region())
    }

    /// Whether this pass may write at all.
    fn writes(&self) -> bool {
        self.config.mode == Mode::Enforce && !matches!(self.task, Task::Sweep { writes: false })
    }
}
