//! The trigger: the queue with its event-source mapping, and direct invocations with their retries.

use super::life::manager_id;
use super::messages;
use super::play::{Happening, MessageKind, Play};
use super::script::TroubleKind;
use super::truth::{Outgoing, Time, seconds};
use crate::fake_aws::cases::{DEAD_LETTER_QUEUE, DOCUMENT, WORK_QUEUE};
use crate::fake_aws::world::Fate;
use chrono::TimeDelta;
use serde_json::json;

/// A message in the work queue.
#[derive(Clone, Debug)]
pub struct Queued {
    pub id: String,
    pub body: String,
    pub kind: MessageKind,
    pub sent: Time,
    pub visible: Time,
    pub receives: u32,
    /// The handle of its latest receive.
    pub receipt: String,
    /// A second copy that the queue delivers although the first was deleted.
    pub ghost: bool,
}

impl Play {
    pub fn schedule_trigger(&mut self) {
        let every = self.script.trigger.sweep_every;
        let mut at = every / 2;
        while at < self.script.end - 60 {
            self.at(at, Happening::Sweep);
            at += every;
        }
        for index in 0..self.script.noise.len() {
            self.at(self.script.noise[index].at, Happening::Noise(index));
        }
        self.schedule_wakes();
    }

    /// Wakes that come with a hook's message, before it in the same batch: each has the time that the others need.
    fn schedule_wakes(&mut self) {
        let Some(trouble) = self.script.rarities.trouble else {
            return;
        };
        let end = self.script.managers[trouble.manager].end;
        let Some(end) = end.filter(|_| trouble.kind == TroubleKind::AllHangs) else {
            return;
        };
        let id = manager_id(trouble.manager);
        let now = self.start + seconds(end.at);
        for body in [
            messages::state_change(&id, "stopping", now),
            messages::spot_interruption(&id, now),
            messages::command_ended(
                "00000000-0000-4000-8000-00000000c0de",
                DOCUMENT,
                &id,
                "Success",
                now,
            ),
        ] {
            let body = body.to_string();
            let kind = MessageKind::Wake;
            self.at(end.at, Happening::Arrives { body, kind });
        }
    }

    /// Sends a message on its way to the queue: now or later, once or more.
    pub fn send(&mut self, body: String, kind: MessageKind, duplicates: u8) {
        let mut rng = fastrand::Rng::with_seed(
            self.script.seed ^ body.len() as u64 ^ self.now().timestamp() as u64,
        );
        let quiet = self.now() >= self.start + seconds(self.script.quiet_from);
        let delay = if quiet {
            0
        } else {
            rng.i64(0..=self.script.trigger.delay)
        };
        self.later(
            delay,
            Happening::Arrives {
                body: body.clone(),
                kind: kind.clone(),
            },
        );
        for _ in 0..duplicates {
            let delay = rng.i64(0..1800);
            self.later(
                delay,
                Happening::Arrives {
                    body: body.clone(),
                    kind: kind.clone(),
                },
            );
        }
    }

    pub fn enqueue(&mut self, body: String, kind: MessageKind, delay: i64) {
        let now = self.now();
        let number = self.aws.world().next_serial();
        let message = Queued {
            id: format!("{number:08x}-0000-4000-8000-00000000beef"),
            body,
            kind,
            sent: now,
            visible: now + seconds(delay),
            receives: 0,
            receipt: String::new(),
            ghost: false,
        };
        self.queue.push(message);
    }

    /// A message that the function sent itself.
    pub fn posted(&mut self, message: Outgoing) {
        if message.queue == WORK_QUEUE {
            if self.truth().queue_runs.contains(&message.run) {
                // Lambda would see a loop, and stop it after some sixteen rounds.
                self.violate(
                    4,
                    format!(
                        "run {} puts a message back on the queue that triggered it",
                        message.run
                    ),
                );
            }
            let kind = self.kind_of(&message.body);
            self.enqueue(message.body, kind, message.delay);
        } else if message.queue == DEAD_LETTER_QUEUE {
            self.check_burial(&message);
            self.truth().buried.insert(message.body);
        }
    }

    /// What a body leads to, by the manager that it names and the kind of event.
    fn kind_of(&self, body: &str) -> MessageKind {
        if body.contains("Scheduled Event") || body.contains("\"sweep\"") {
            return MessageKind::Sweep;
        }
        if let Some(kind) = self.asked.get(body) {
            return kind.clone();
        }
        let named = self
            .truth()
            .managers
            .iter()
            .position(|manager| body.contains(&manager.id));
        match named {
            Some(number) if body.contains("TERMINATING") => MessageKind::Terminate(number),
            Some(number) => MessageKind::Reap(number),
            None => MessageKind::Lie,
        }
    }

    pub fn change_visibility(&mut self, receipt: &str, delay: i64) {
        let now = self.now();
        if let Some(message) = self
            .queue
            .iter_mut()
            .find(|message| message.receipt == receipt)
        {
            message.visible = now + seconds(delay);
        }
    }

    /// When the event-source mapping would next do something.
    pub fn next_trigger(&self) -> Option<Time> {
        if self.queue_runs() >= self.script.trigger.concurrency {
            return None;
        }
        self.queue
            .iter()
            .map(|message| message.visible.max(self.now()))
            .min()
    }

    fn queue_runs(&self) -> usize {
        self.runs.iter().filter(|run| run.direct.is_none()).count()
    }

    /// Gives visible messages to the function, a batch at a time.
    pub fn trigger(&mut self) {
        while self.queue_runs() < self.script.trigger.concurrency {
            let now = self.now();
            self.dead_letter(now);
            let visible: Vec<usize> = (0..self.queue.len())
                .filter(|index| self.queue[*index].visible <= now)
                .take(self.script.trigger.batch_size)
                .collect();
            if visible.is_empty() {
                return;
            }
            self.next_run += 1;
            let number = self.next_run;
            let mut records = Vec::new();
            let mut payload = Vec::new();
            for index in visible {
                let visibility = self.script.trigger.visibility;
                let message = &mut self.queue[index];
                message.receives += 1;
                message.receipt = format!("{}#{}", message.id, message.receives);
                message.visible = now + seconds(visibility);
                payload.push(messages::sqs_record(
                    &message.id,
                    &message.receipt,
                    &message.body,
                    message.receives,
                    message.sent,
                ));
                records.push((
                    message.id.clone(),
                    message.receipt.clone(),
                    message.kind.clone(),
                ));
            }
            for (_, receipt, kind) in &records {
                let receives = receipt.rsplit('#').next().and_then(|n| n.parse().ok());
                self.notice(kind, receives.unwrap_or(1));
            }
            self.begin(
                number,
                json!({"Records": payload}).to_string(),
                records,
                None,
            );
        }
    }

    /// The queue's own redrive policy.
    fn dead_letter(&mut self, now: Time) {
        let Some(max) = self.script.settings.max_receive_count else {
            return;
        };
        let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.queue)
            .into_iter()
            .partition(|message| message.visible <= now && message.receives >= max);
        self.queue = kept;
        for message in gone {
            self.aws.world().note(format!(
                "the queue gives up on {} ({:?})",
                message.id, message.kind
            ));
            self.check_given_up(&message);
            self.truth().buried.insert(message.body);
        }
    }

    fn notice(&mut self, kind: &MessageKind, receives: u32) {
        let now = self.now();
        if let MessageKind::Terminate(number) = kind {
            let mut truth = self.truth();
            truth.managers[*number].noticed.get_or_insert(now);
            let most = truth.receives_of.entry(*number).or_default();
            *most = receives.max(*most);
        }
    }

    pub fn sweep(&mut self) {
        let now = self.now();
        // A scheduled event may get lost, as long as things go wrong at all.
        let mut rng = fastrand::Rng::with_seed(self.script.seed ^ now.timestamp() as u64);
        let quiet =
            now >= self.start + seconds(self.script.quiet_from) || self.script.mishaps.are_none();
        if !quiet && rng.f64() < 0.15 {
            self.aws.world().note("a sweep is lost");
            return;
        }
        if quiet {
            self.follow_provable();
        }
        self.invoke_directly(messages::scheduled(now).to_string(), MessageKind::Sweep, 1);
    }

    pub fn invoke_directly(&mut self, body: String, kind: MessageKind, attempt: u8) {
        self.notice(&kind, 1);
        self.asked.insert(body.clone(), kind.clone());
        self.next_run += 1;
        let number = self.next_run;
        self.begin(
            number,
            body.clone(),
            Vec::new(),
            Some((body, kind, attempt)),
        );
    }

    /// Lambda tries an asynchronous event three times.
    pub fn retry_directly(&mut self, body: String, kind: MessageKind, attempt: u8) {
        if attempt < 3 {
            self.later(
                60 * i64::from(attempt),
                Happening::Direct {
                    body,
                    kind,
                    attempt: attempt + 1,
                },
            );
        } else {
            self.truth().buried.insert(body);
        }
    }

    /// A standard queue may deliver a message once more after it was deleted.
    pub fn perhaps_deliver_again(&mut self, message: Queued) {
        let now = self.now();
        let mut rng =
            fastrand::Rng::with_seed(self.script.seed ^ now.timestamp_millis() as u64 ^ 0x6057);
        let quiet =
            now >= self.start + seconds(self.script.quiet_from) || self.script.mishaps.are_none();
        if !quiet && !message.ghost && rng.f64() < 0.1 {
            let visible = now + TimeDelta::seconds(rng.i64(1..600));
            self.queue.push(Queued {
                ghost: true,
                visible,
                receipt: String::new(),
                ..message
            });
        }
    }

    /// A command reaches the instance, or doesn't; SSM may tell when it has ended.
    pub fn start_command(&mut self, id: &str, instance_id: &str) {
        let Some(number) = self.truth().manager_named(instance_id) else {
            return;
        };
        let now = self.now();
        let mut world = self.aws.world();
        let fate = super::drains::fate(&mut self.truth(), &world, &self.script, number);
        world.note(format!(
            "a command starts on manager {number}: {} {:?} after {:?} s",
            fate.status,
            fate.output.trim(),
            fate.ends_after.map(|after| after.num_seconds())
        ));
        let Some(command) = world
            .ssm
            .commands
            .iter_mut()
            .find(|command| command.id == id)
        else {
            return;
        };
        command.fate = Fate {
            starts_after: now - command.sent,
            ends_after: fate.ends_after.map(|after| now - command.sent + after),
            visible_after: command.fate.visible_after,
            ..fate
        };
        let ends = command.fate.ends_after.map(|after| command.sent + after);
        let proves = command.fate.status == "Success"
            && ["stopped", "aborted", "nothing-to-drain"]
                .iter()
                .any(|word| {
                    command
                        .fate
                        .output
                        .starts_with(&format!("lifecycle-reaper: {word}"))
                });
        drop(world);
        if let (true, Some(ends)) = (proves, ends) {
            self.truth().proven.entry(number).or_insert(ends);
        }
        let told = self.script.managers[number]
            .end
            .is_some_and(|end| end.tells_command);
        if let (true, Some(ends)) = (told, ends) {
            let body =
                messages::command_ended(id, DOCUMENT, instance_id, "Success", ends).to_string();
            self.at_time(
                ends + seconds(1),
                Happening::Arrives {
                    body,
                    kind: MessageKind::Wake,
                },
            );
        }
    }
}
