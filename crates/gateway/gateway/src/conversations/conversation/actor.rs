//! The task of a conversation.
//!
//! One *step* works on one message at a time: it receives it, steers the turn with it, or answers a command. Meanwhile
//! one *job* may run: a turn, or the end of a session. Everything that waits for a job is in the backlog, in order.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tenterhook_agent::extension::ScriptHost;
use tenterhook_protocol::event::{MessageCancelReason, SenderRole, SessionEndReason};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::backlog::{Backlog, Work};
use super::pause::Pause;
use super::script_prompts::ScriptPrompts;
use super::step::{
    Answer, MailboxMessage, Step, StepEnd, begin_session, delivery_of, give_answer, open, queued,
    reopen, submit, tell_crashed,
};
use super::stored_busy;
use crate::conversations::agent_slot::{AgentSlot, LastTurn};
use crate::conversations::chat_command::{ChatCommand, help, of_extension, parse};
use crate::conversations::conversation_parts::ConversationParts;
use crate::conversations::places::Places;
use crate::conversations::profile::Profile;
use crate::conversations::reply::Reply;
use crate::conversations::turn::{Turn, TurnResult};
use crate::conversations::turn_control::{Cancellation, Pending, SteerOutcome, TurnControl};
use tenterhook_channel::chat::{ChatRef, SessionKey};
use tenterhook_channel::frame::QueuedHow;
use tenterhook_channel::settings::BusyMode;
use tenterhook_channel::store::{InboxId, InboxRecord, InboxState};

/// What a chat reads after `/new` while the agent works.
const NEW_LATER: &str = "A new conversation begins when the current answer has ended.";

/// A request that does not wait behind messages.
pub(super) enum Request {
    Cancel {
        chat: ChatRef,
        sender: String,
        role: SenderRole,
        reply: oneshot::Sender<bool>,
    },
    Stop {
        drain: Duration,
    },
}

/// A turn, the end of a session, or a reload of the agent.
struct Job {
    /// How to steer and cancel it, if it is a turn.
    control: Option<Arc<TurnControl>>,
    /// The messages that it began with.
    records: Vec<InboxRecord>,
    task: JoinHandle<TurnResult>,
    /// Whether it opens the agent again.
    is_reload: bool,
}

/// How a conversation is stopped.
struct Stopping {
    deadline: Instant,
    is_cancelled: bool,
}

/// The task of a conversation.
pub(super) struct Actor {
    parts: Arc<ConversationParts>,
    slot: Arc<AgentSlot>,
    mailbox: mpsc::Receiver<Box<MailboxMessage>>,
    requests: mpsc::Receiver<Request>,
    places: Places,
    idle_since: Arc<Mutex<Option<Instant>>>,
    /// Learns of reloads.
    reloads: watch::Receiver<Arc<dyn Profile>>,
    /// Whether a reload has happened since the agent was last looked at.
    is_outdated: bool,
    /// What `/busy` has chosen, and whether the store was asked for it.
    busy: (Option<BusyMode>, bool),
    unopened: VecDeque<MailboxMessage>,
    step: Option<Step>,
    job: Option<Job>,
    backlog: Backlog,
    /// Set while no job begins, because the last one could not be stored.
    pause: Option<Pause>,
    stopping: Option<Stopping>,
    scripts: ScriptPrompts,
}

impl Actor {
    pub(super) fn new(
        parts: Arc<ConversationParts>,
        key: SessionKey,
        (mailbox, requests): (mpsc::Receiver<Box<MailboxMessage>>, mpsc::Receiver<Request>),
        (places, idle_since): (Places, Arc<Mutex<Option<Instant>>>),
    ) -> Self {
        Self {
            slot: Arc::new(AgentSlot::new(Arc::clone(&parts), key)),
            reloads: parts.profile.replacements(),
            is_outdated: false,
            parts,
            mailbox,
            requests,
            places,
            idle_since,
            busy: (None, false),
            unopened: VecDeque::new(),
            step: None,
            job: None,
            backlog: Backlog::default(),
            pause: None,
            stopping: None,
            scripts: ScriptPrompts::default(),
        }
    }

    /// Runs until the conversation is stopped, or dropped.
    pub(super) async fn run(mut self) {
        loop {
            self.begin_step();
            self.begin_job();
            self.note_idleness();
            if self.stopping.is_some() && self.job.is_none() && self.step.is_none() {
                break;
            }
            let wake = self.next_wake();
            tokio::select! {
                biased;
                request = self.requests.recv(), if self.hears_requests() => match request {
                    Some(Request::Cancel { chat, sender, role, reply }) => {
                        let is_cancelled = self.cancel(&chat, &sender, role, None).await;
                        // The caller may have given up.
                        let _sent = reply.send(is_cancelled);
                    }
                    Some(Request::Stop { drain }) => self.stop(drain),
                    None => self.stop(Duration::ZERO),
                },
                Ok(()) = self.reloads.changed() => self.is_outdated = true,
                end = job_end(&mut self.job) => match end {
                    Some(result) => self.end_job(result).await,
                    None => self.end_crashed_job().await,
                },
                end = step_end(&mut self.step) => self.end_step(end).await,
                (host, turn) = self.slot.next_prompt(), if self.hears_scripts() => {
                    self.take_prompt(&host, turn).await;
                }
                Some(message) = self.mailbox.recv(), if self.accepts_messages() => {
                    self.unopened.push_back(*message);
                }
                () = sleep_until(wake) => self.cancel_if_drained(),
            }
        }
        self.slot.close(SessionEndReason::Quit).await;
    }

    /// Returns whether a prompt of a script begins a turn. While a turn runs, prompts belong to it.
    fn hears_scripts(&self) -> bool {
        let is_idle = self.job.is_none() && self.step.is_none() && self.stopping.is_none();
        let nothing_waits = self.unopened.is_empty() && self.backlog.is_empty();
        is_idle && nothing_waits && !self.awaits_reload() && self.scripts.paused_until().is_none()
    }

    /// Records a prompt of a script, so that it begins a turn like a message.
    async fn take_prompt(&mut self, host: &ScriptHost, turn: LastTurn) {
        let chat = (&*self.parts, &*self.slot, &self.places);
        let prompt = self.scripts.take(host, turn, chat);
        self.unopened.extend(prompt.await);
    }

    fn accepts_messages(&self) -> bool {
        self.stopping.is_none() && self.step.is_none() && self.unopened.is_empty()
    }

    fn hears_requests(&self) -> bool {
        self.stopping.is_none() || !self.requests.is_closed()
    }

    /// Returns whether messages wait until the agent is opened with other hooks. A turn that runs keeps its agent, and
    /// messages do not wait for its end.
    fn awaits_reload(&self) -> bool {
        match &self.job {
            Some(job) => job.is_reload,
            None => self.is_outdated || self.reloads.has_changed().unwrap_or(false),
        }
    }

    fn is_busy(&self) -> bool {
        self.job.is_some() || !self.backlog.is_empty()
    }

    fn note_idleness(&self) {
        let is_idle = self.job.is_none() && self.places.are_free();
        let mut since = self.idle_since.lock();
        if is_idle {
            since.get_or_insert_with(Instant::now);
        } else {
            *since = None;
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        match &self.stopping {
            Some(stopping) => (!stopping.is_cancelled).then_some(stopping.deadline),
            None if self.job.is_some() => None,
            None => {
                let quiet = self.backlog.quiet_at().or(self.scripts.paused_until());
                let pause = self.pause.as_ref().filter(|_| !self.backlog.is_empty());
                quiet.max(pause.map(|pause| pause.until))
            }
        }
    }

    // Steps

    fn begin_step(&mut self) {
        if self.step.is_some() || self.stopping.is_some() || self.awaits_reload() {
            return;
        }
        let Some(message) = self.unopened.pop_front() else {
            return;
        };
        let record = message.record.clone();
        let (parts, slot) = (Arc::clone(&self.parts), Arc::clone(&self.slot));
        let is_busy = self.is_busy();
        self.step = Some(Step {
            record,
            is_steering: false,
            work: Box::pin(async move { open(&parts, &slot, message, is_busy).await }),
        });
    }

    async fn end_step(&mut self, end: StepEnd) {
        let step = self.step.take();
        match end {
            StepEnd::Crashed => {
                let records = step.map(|step| step.record).into_iter().collect();
                tell_crashed(&self.parts, &self.slot, None, records).await;
            }
            StepEnd::Over | StepEnd::Steered(SteerOutcome::Taken) => {}
            StepEnd::Received(message) => self.place(message).await,
            StepEnd::Steered(SteerOutcome::Unheard(mut message)) => {
                message.how = Some(QueuedHow::FollowUp);
                self.put_back(vec![message]).await;
            }
            StepEnd::Steered(SteerOutcome::Cancelled(message)) => {
                self.tell_cancelled(&message.record).await;
            }
            StepEnd::Steered(SteerOutcome::Finished(message, reason)) => {
                let delivery = delivery_of(&self.parts, &self.slot).await;
                let reply = Reply::new(&self.parts.publisher, &delivery, &message.record);
                match reason {
                    Some(reason) => reply.refuse("blocked", &reason).await,
                    None => reply.answered().await,
                }
            }
        }
    }

    /// Decides what happens to a message that was received.
    async fn place(&mut self, mut message: Pending) {
        if message.record.script.is_some() {
            // Only people use commands.
            return self.backlog.push(Work::Turn(message));
        }
        let text = message.heard.command_text();
        match parse(text, message.record.role) {
            Ok(None) => {}
            Ok(Some(command)) => return self.run_command(command, message).await,
            Err(problem) => return self.answer(message, Answer::Refuse("refused", problem)),
        }
        let (text, role) = (message.heard.command_text(), message.record.role);
        match of_extension(text, role, self.parts.profile.current().commands()) {
            Ok(None) => {}
            Ok(Some(command)) => {
                message.command = Some(command.clone());
                if self.is_busy() {
                    let queued = queued(&message, QueuedHow::FollowUp, self.backlog.len() + 1);
                    self.parts.publisher.live(message.chat(), &queued);
                }
                return self.backlog.push(Work::Turn(message));
            }
            Err(problem) => return self.answer(message, Answer::Refuse("refused", problem)),
        }
        if !self.is_busy() {
            self.backlog.push(Work::Turn(message));
            return;
        }
        let mode = self.busy_mode(message.chat()).await;
        let control = self.job.as_ref().and_then(|job| job.control.clone());
        // A message must not overtake those that wait already.
        let control = control.filter(|control| {
            self.backlog.is_empty() && control.is_started() && control.may_steer(&message.record)
        });
        let how = match (mode, control) {
            (BusyMode::Refuse, _) => {
                let problem = "The agent is busy. Please try again later.".to_owned();
                return self.answer(message, Answer::Refuse("busy", problem));
            }
            (BusyMode::Steer, Some(control)) => return self.steer(control, message).await,
            (BusyMode::Interrupt, Some(control)) => {
                control.cancel(Cancellation {
                    reason: MessageCancelReason::Interrupt,
                    user: message.record.message.sender.id.clone(),
                    role: message.record.role,
                });
                QueuedHow::FollowUp
            }
            (BusyMode::Collect, _) => QueuedHow::Collect,
            (BusyMode::Steer | BusyMode::Interrupt | BusyMode::FollowUp, _) => QueuedHow::FollowUp,
        };
        message.how = Some(how);
        let queued = queued(&message, how, self.backlog.len() + 1);
        self.parts.publisher.live(message.chat(), &queued);
        self.backlog.push(Work::Turn(message));
    }

    async fn busy_mode(&mut self, chat: &ChatRef) -> BusyMode {
        if !self.busy.1 {
            let stored = stored_busy::read(&self.parts.store, self.slot.key()).await;
            self.busy = (stored, true);
        }
        self.busy.0.unwrap_or_else(|| self.parts.busy_mode(chat))
    }

    async fn steer(&mut self, control: Arc<TurnControl>, message: Pending) {
        let access = self.parts.access(message.chat(), message.record.role);
        let Ok(view) = self.slot.view(&access).await else {
            self.backlog.push(Work::Turn(message));
            return;
        };
        let record = message.record.clone();
        let parts = Arc::clone(&self.parts);
        let turn = self.slot.frontend.turn();
        let work = Box::pin(submit(parts, (control, turn), view.handle, message));
        self.step = Some(Step {
            record,
            is_steering: true,
            work,
        });
    }

    // Commands

    async fn run_command(&mut self, command: ChatCommand, message: Pending) {
        let record = &message.record;
        let text = match command {
            ChatCommand::New => {
                if self.is_busy() {
                    let queued = queued(&message, QueuedHow::FollowUp, self.backlog.len() + 1);
                    self.parts.publisher.live(message.chat(), &queued);
                    let delivery = delivery_of(&self.parts, &self.slot).await;
                    let reply = Reply::new(&self.parts.publisher, &delivery, &message.record);
                    reply.acknowledge(NEW_LATER).await;
                }
                self.backlog.push(Work::NewSession(message));
                return;
            }
            ChatCommand::Stop => {
                let (chat, sender) = (message.chat().clone(), record.message.sender.id.clone());
                // Messages that were written after the command stay.
                let before = Some(record.id);
                let is_cancelled = self.cancel(&chat, &sender, record.role, before).await;
                let text = if is_cancelled {
                    "Stopped."
                } else {
                    "Nothing is running."
                };
                text.to_owned()
            }
            ChatCommand::Help => help(record.role, self.parts.profile.current().commands()),
            ChatCommand::Status => self.status(message.chat()).await,
            ChatCommand::Busy(mode) => {
                self.busy = (Some(mode), true);
                stored_busy::write(&self.parts.store, self.slot.key(), mode).await;
                "Changed what happens to messages while the agent works.".to_owned()
            }
        };
        self.answer(message, Answer::Output(text));
    }

    async fn status(&mut self, chat: &ChatRef) -> String {
        let is_running = self.job.is_some();
        let state = if is_running { "working" } else { "idle" };
        let access = self.parts.access(chat, SenderRole::Guest);
        let model = match self.slot.view(&access).await {
            Ok(view) => format!("\nmodel: {}", view.model),
            Err(_) => String::new(),
        };
        format!("state: {state}\nwaiting: {}{model}", self.backlog.len())
    }

    /// Answers a message without a turn.
    fn answer(&mut self, message: Pending, answer: Answer) {
        let (parts, slot) = (Arc::clone(&self.parts), Arc::clone(&self.slot));
        self.step = Some(Step {
            record: message.record.clone(),
            is_steering: false,
            work: Box::pin(async move { give_answer(&parts, &slot, message, answer).await }),
        });
    }

    // Jobs

    fn begin_job(&mut self) {
        let is_steering = self.step.as_ref().is_some_and(|step| step.is_steering);
        let is_paused = self.pause.as_ref().is_some_and(Pause::is_going_on);
        if self.job.is_some() || self.stopping.is_some() || is_steering {
            return;
        }
        let (parts, slot) = (Arc::clone(&self.parts), Arc::clone(&self.slot));
        if std::mem::take(&mut self.is_outdated) {
            self.job = Some(Job {
                control: None,
                records: Vec::new(),
                task: tokio::spawn(reopen(parts, slot)),
                is_reload: true,
            });
            return;
        }
        if is_paused {
            return;
        }
        let messages = match self.backlog.next() {
            None => return,
            Some(Work::NewSession(message)) => {
                let records = vec![message.record.clone()];
                let task = tokio::spawn(begin_session(parts, slot, message));
                self.job = Some(Job {
                    control: None,
                    records,
                    task,
                    is_reload: false,
                });
                return;
            }
            Some(Work::Turn(first)) => self.backlog.collect_with(first),
        };
        let Some(control) = TurnControl::new(&messages).map(Arc::new) else {
            return;
        };
        let records = messages.iter().map(|message| message.record.clone());
        let records = records.collect();
        let turn = Turn {
            parts,
            slot,
            control: Arc::clone(&control),
            messages,
            is_tried_again: self.pause.is_some(),
        };
        self.job = Some(Job {
            control: Some(control),
            records,
            task: tokio::spawn(turn.run()),
            is_reload: false,
        });
    }

    async fn end_job(&mut self, result: TurnResult) {
        let unheard = match result {
            TurnResult::Ended(unheard) => {
                self.pause = None;
                unheard
            }
            // Messages that arrived later wait, too: none may overtake these.
            TurnResult::NotStored(messages) => {
                self.pause = Some(Pause::after(self.pause.as_ref()));
                messages
            }
        };
        let control = self.job.take().and_then(|job| job.control);
        // A sender who may cancel a turn may cancel it before it begins, too.
        let is_whole = control
            .as_ref()
            .is_some_and(|control| !control.is_started());
        let cancellation = control.and_then(|control| control.cancellation());
        let mut kept = Vec::new();
        for message in unheard {
            let covers = |cancellation: &Cancellation| {
                let by_user = cancellation.reason == MessageCancelReason::User;
                is_whole && by_user || cancellation.covers(&message.record)
            };
            if cancellation.as_ref().is_some_and(covers) {
                self.tell_cancelled(&message.record).await;
            } else {
                kept.push(message);
            }
        }
        self.put_back(kept).await;
    }

    /// Reports a job that panicked. Its messages are never processed again, because tools may have run.
    async fn end_crashed_job(&mut self) {
        let Some(job) = self.job.take() else {
            return;
        };
        let control = job.control.as_ref();
        let steered = control.map(|control| control.abandon());
        let steered = steered.into_iter().flatten();
        let records = job.records.into_iter();
        let records = records.chain(steered.map(|message| message.record));
        self.slot.frontend.show(None);
        tell_crashed(&self.parts, &self.slot, control, records.collect()).await;
    }

    /// Puts messages that the run did not hear in front of the backlog. If the conversation stops, they are processed
    /// after the next start.
    async fn put_back(&mut self, unheard: Vec<Pending>) {
        if self.stopping.is_none() {
            self.backlog.put_back(unheard);
            return;
        }
        for (is_said, state) in [(false, InboxState::Received), (true, InboxState::Unheard)] {
            let these = unheard.iter().filter(|message| message.is_said == is_said);
            let ids: Vec<_> = these.map(|message| message.record.id).collect();
            if !ids.is_empty() {
                // If this fails, the next start reports the messages as interrupted.
                let _stored = self.parts.store.set_inbox_state(ids, state).await;
            }
        }
    }

    // Requests

    /// Cancels the turn, and what waits of the messages that arrived `before` another one.
    async fn cancel(
        &mut self,
        chat: &ChatRef,
        sender: &str,
        role: SenderRole,
        before: Option<InboxId>,
    ) -> bool {
        let cancellation = Cancellation {
            reason: MessageCancelReason::User,
            user: sender.to_owned(),
            role,
        };
        let control = self.job.as_ref().and_then(|job| job.control.as_ref());
        let control =
            control.filter(|control| control.chat == *chat && control.may_cancel(sender, role));
        let mut is_cancelled = control.is_some();
        if let Some(control) = control {
            control.cancel(cancellation.clone());
        }
        while let Ok(message) = self.mailbox.try_recv() {
            self.unopened.push_back(*message);
        }
        let is_covered = |record: &InboxRecord| {
            let is_earlier = before.is_none_or(|before| record.id < before);
            is_earlier && record.message.chat == *chat && cancellation.covers(record)
        };
        let mut removed: Vec<InboxRecord> = Vec::new();
        let step = self
            .step
            .take_if(|step| !step.is_steering && is_covered(&step.record));
        removed.extend(step.map(|step| step.record));
        let (gone, kept): (VecDeque<_>, _) = std::mem::take(&mut self.unopened)
            .into_iter()
            .partition(|message| is_covered(&message.record));
        self.unopened = kept;
        let waiting = self.backlog.remove(is_covered);
        removed.extend(waiting.iter().map(|message| message.record.clone()));
        removed.extend(gone.iter().map(|message| message.record.clone()));
        for record in removed {
            is_cancelled = true;
            self.tell_cancelled(&record).await;
        }
        is_cancelled
    }

    async fn tell_cancelled(&mut self, record: &InboxRecord) {
        let delivery = delivery_of(&self.parts, &self.slot).await;
        Reply::new(&self.parts.publisher, &delivery, record)
            .cancelled()
            .await;
    }

    fn stop(&mut self, drain: Duration) {
        let deadline = Instant::now() + drain;
        let is_cancelled = false;
        let stopping = self.stopping.get_or_insert(Stopping {
            deadline,
            is_cancelled,
        });
        stopping.deadline = stopping.deadline.min(deadline);
        self.step.take_if(|step| !step.is_steering);
        self.cancel_if_drained();
    }

    fn cancel_if_drained(&mut self) {
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        if stopping.is_cancelled || Instant::now() < stopping.deadline {
            return;
        }
        stopping.is_cancelled = true;
        if let Some(control) = self.job.as_ref().and_then(|job| job.control.as_ref()) {
            control.cancel(Cancellation {
                reason: MessageCancelReason::Shutdown,
                user: String::new(),
                role: SenderRole::Guest,
            });
        }
    }
}

/// Waits for the end of the job. Returns `None` if it panicked.
async fn job_end(job: &mut Option<Job>) -> Option<TurnResult> {
    match job {
        Some(job) => (&mut job.task).await.ok(),
        None => std::future::pending().await,
    }
}

async fn step_end(step: &mut Option<Step>) -> StepEnd {
    match step {
        Some(step) => {
            // A panic must not end the conversation: it could not be reached any more.
            let work = AssertUnwindSafe(&mut step.work).catch_unwind();
            work.await.unwrap_or(StepEnd::Crashed)
        }
        None => std::future::pending().await,
    }
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake).await,
        None => std::future::pending().await,
    }
}
