//! One turn: a run of the agent that answers one or more messages of a chat.
//!
//! ```text
//! running, said…  → start ┐
//! the agent's own records ┴→ the model and the tools, with their frames → end
//!   completed: message_send → parts → done
//!   failed:    error → gateway_error → message_send → parts → done
//!   cancelled: end → message_cancel → done
//! ```
//!
//! The beginning of the turn is stored together with what the agent adds to its session's file before it asks the model.
//! The agent waits for that, so nothing that a turn does is older than the record that it runs. If hooks see the messages
//! first, the turn waits before it calls the agent, because hooks have effects too.
//!
//! The state of the messages changes in the transaction that stores `done`, and the end of the session's file is kept
//! there too. So a turn waits for the store alone, which chats share, and not for the file of its session.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenterhook_agent::extension::{CommandFailure, ForeignCommand};
use tenterhook_agent::{Agent, CancellationToken, Prompt, RunEnd, RunReport, UnsyncedTail};
use tenterhook_protocol::event::{
    DeliveryKind, MessageCancel, MessageCancelReason, MessageSend, SenderRole,
};
use tenterhook_protocol::{EventKind, Usage};

use crate::conversations::agent_slot::{AgentSlot, AgentView, LastTurn};
use crate::conversations::chat_command::of_extension;
use crate::conversations::chat_frontend::{Shown, TurnView};
use crate::conversations::conversation_parts::ConversationParts;
use crate::conversations::deliver::{Answered, Delivery, Recipient};
use crate::conversations::gateway_events::{GatewayFailure, report_failure};
use crate::conversations::profile::Profile;
use crate::conversations::receive::NOT_CHECKED;
use crate::conversations::spoken_answer::{is_replaceable, is_voice_only, remove_text};
use crate::conversations::turn_control::{
    Cancellation, Pending, TurnControl, extra_of, is_of_record,
};
use crate::conversations::turn_work::TurnWork;
use tenterhook_channel::approval_card::describe_sender;
use tenterhook_channel::frame::{EndReason, Frame, TurnStatus};
use tenterhook_channel::publisher::{InboxUpdate, PublishError};
use tenterhook_channel::store::InboxState;

/// What the chat reads after a crash.
pub(crate) const INTERRUPTED: &str = "I was interrupted before I could finish. Tools may have run. Write again if I should continue.";

/// A turn of one session key.
pub(crate) struct Turn {
    pub(crate) parts: Arc<ConversationParts>,
    pub(crate) slot: Arc<AgentSlot>,
    pub(crate) control: Arc<TurnControl>,
    pub(crate) messages: Vec<Pending>,
    /// Whether an earlier attempt could not be stored.
    pub(crate) is_tried_again: bool,
}

/// The result of a turn.
pub(crate) enum TurnResult {
    /// It ended. These messages need another turn: those that the run did not hear, or all of them if the turn was
    /// cancelled before it began.
    Ended(Vec<Pending>),
    /// It did not begin, because its beginning could not be stored. These are its messages.
    NotStored(Vec<Pending>),
}

/// How the agent's run ended, as far as its chat is concerned.
enum TurnEnd {
    Completed,
    Cancelled(Cancellation),
    Failed(TurnFailure),
}

/// Why a turn failed.
struct TurnFailure {
    code: &'static str,
    /// What people in the chat read.
    text: String,
    /// What happened, for hooks.
    cause: String,
}

impl TurnFailure {
    /// A failure whose details only owners see, in chats where no one else is.
    fn private(code: &'static str, text: &str, cause: String, view: &TurnView) -> Self {
        let text = if view.shows_causes() {
            format!("{text} {cause}")
        } else {
            text.to_owned()
        };
        Self { code, text, cause }
    }

    fn plain(code: &'static str, text: String) -> Self {
        let cause = text.clone();
        Self { code, text, cause }
    }
}

impl Turn {
    /// Runs the turn.
    pub(crate) async fn run(self) -> TurnResult {
        let parts = Arc::clone(&self.parts);
        let Some(first) = self.messages.first() else {
            return TurnResult::Ended(Vec::new());
        };
        let place = parts.turns.take(&first.record.message.sender.id);
        let place = self.control.token().run_until_cancelled(place);
        let Some(Some(_place)) = place.await else {
            return TurnResult::Ended(self.messages);
        };
        // Only a turn that runs needs this memory: many may wait.
        Box::pin(self.run_permitted()).await
    }

    async fn run_permitted(mut self) -> TurnResult {
        let parts = Arc::clone(&self.parts);
        let access = parts.access(&self.control.chat, self.control.role);
        let Some(first) = self.messages.first() else {
            return TurnResult::Ended(Vec::new());
        };
        let this = LastTurn {
            role: self.control.role,
            message: first.record.message.clone(),
        };
        let ended = match self.slot.take(&access, this).await {
            Ok((agent, opened)) => self.run_agent(agent, opened).await,
            Err(cause) => self.fail_to_open(cause).await,
        };
        match ended {
            Ok(unheard) => TurnResult::Ended(unheard),
            Err(error) => {
                self.report_unstarted(error.to_string()).await;
                TurnResult::NotStored(self.messages)
            }
        }
    }

    async fn fail_to_open(&mut self, cause: String) -> Result<Vec<Pending>, PublishError> {
        let view = self.view(None);
        self.start(&view).await?;
        let text = "The agent cannot be started.";
        let failure = TurnFailure::private("not_started", text, cause, &view);
        self.finish(&view, TurnEnd::Failed(failure), None).await;
        Ok(Vec::new())
    }

    /// Runs the agent. Returns the messages that it did not hear.
    ///
    /// # Errors
    ///
    /// Fails if the beginning of the turn cannot be stored. Then the model was not asked.
    async fn run_agent(
        &mut self,
        mut agent: Agent,
        opened: AgentView,
    ) -> Result<Vec<Pending>, PublishError> {
        let handle = opened.handle.clone();
        self.find_command(opened.profile.as_ref());
        let view = Arc::new(self.view(Some(opened)));
        if self.continues_unknown(&agent) {
            self.slot.put_back(agent).await;
            self.start(&view).await?;
            let failure = TurnFailure::plain("interrupted", INTERRUPTED.to_owned());
            self.finish(&view, TurnEnd::Failed(failure), None).await;
            return Ok(Vec::new());
        }
        self.take_back_unanswered(&mut agent);
        self.slot.frontend.show(Some(Arc::clone(&view)));
        let has_hooks = EventKind::ALL
            .iter()
            .filter(|kind| kind.info().precedes_model)
            .any(|kind| agent.dispatcher().may_change(*kind));
        let waits = self.is_tried_again || has_hooks || self.command().is_some();
        let (started, run) = if waits {
            match self.start(&view).await {
                Ok(()) => (Ok(()), Some(self.work(&view, &mut agent).await)),
                Err(error) => (Err(error), None),
            }
        } else {
            let starting = async {
                view.asks_model.cancelled().await;
                self.start(&view).await
            };
            let working = async {
                let run = self.work(&view, &mut agent).await;
                // A run can end before it asks the model.
                view.asks_model.cancel();
                run
            };
            let (started, run) = tokio::join!(starting, working);
            (started, Some(run))
        };
        let (heard, unheard) = self.control.close(&handle).await;
        self.slot.frontend.show(None);
        self.slot.put_back(agent).await;
        started?;
        for message in &mut self.messages {
            message.is_said = true;
        }
        self.messages.extend(heard);
        if let Some((done, is_timeout)) = run {
            let (end, usage) = match done {
                Ok(report) => (
                    self.end_of(&view, &report.end, is_timeout),
                    Some(report.usage),
                ),
                Err(failure) => (self.end_of_command(&view, &failure, is_timeout), None),
            };
            self.finish(&view, end, usage).await;
        }
        Ok(unheard)
    }

    /// Returns whether the turn should continue a message that is not in the agent's session. The program was killed while
    /// hooks saw the message, before the agent did. Only people know whether these hooks may run again.
    fn continues_unknown(&self, agent: &Agent) -> bool {
        let first = self.messages.first().map(|message| &message.record);
        let continued = first.filter(|record| record.state == InboxState::Running);
        continued.is_some_and(|record| {
            let entries = agent.session().entries().iter().rev();
            let mut messages = entries.filter_map(|entry| entry.message.as_ref());
            !messages.any(|message| is_of_record(&message.extra, record))
        })
    }

    /// Removes the first message from the session if an earlier attempt added it and could not store that the turn runs,
    /// or ended before it could. Otherwise, the agent would read it twice.
    fn take_back_unanswered(&self, agent: &mut Agent) {
        let first = self.messages.first().map(|message| &message.record);
        if let Some(record) = first.filter(|record| record.state == InboxState::Received) {
            agent.take_back_prompt(|extra| is_of_record(extra, record));
        }
    }

    /// Finds the command of an extension again, because a reload may have replaced or removed it while the message
    /// waited. Without its command, a message is a prompt.
    fn find_command(&mut self, profile: &dyn Profile) {
        let first = self.messages.first_mut();
        if let Some(message) = first.filter(|message| message.command.is_some()) {
            let (text, role) = (&message.heard.text, message.record.role);
            let found = of_extension(text, role, profile.commands());
            message.command = found.ok().flatten().cloned();
        }
    }

    /// Returns the command of an extension with which the message begins, and the message.
    fn command(&self) -> Option<(&ForeignCommand, &str)> {
        let first = self.messages.first()?;
        Some((first.command.as_ref()?, first.heard.text.trim()))
    }

    /// Returns the prompt of the messages.
    fn prompt(&self) -> Prompt {
        let texts: Vec<&str> = self
            .messages
            .iter()
            .map(|message| message.heard.prompt.as_str())
            .collect();
        let images = self
            .messages
            .iter()
            .flat_map(|message| message.heard.images.clone());
        let first = self.messages.first();
        Prompt {
            text: texts.join("\n\n"),
            images: images.collect(),
            source: first.map(Pending::source).unwrap_or_default(),
            extra: extra_of(&self.messages),
        }
    }

    /// Does the work of the turn. Returns its result, and whether it was stopped because it took too long.
    async fn work(
        &self,
        view: &TurnView,
        agent: &mut Agent,
    ) -> (Result<RunReport, CommandFailure>, bool) {
        let cancel = self.control.token();
        let timeout = self.parts.settings.current().turns.timeout;
        let work = TurnWork {
            command: self.command(),
            prompt: self.prompt(),
            view,
            cancel,
        };
        let mut run = Box::pin(work.run(agent));
        // The run must not be dropped, because then the events that close it would not fire.
        tokio::select! {
            report = &mut run => (report, false),
            () = tokio::time::sleep(timeout) => {
                cancel.cancel();
                (run.await, true)
            }
        }
    }

    fn view(&self, opened: Option<AgentView>) -> TurnView {
        let (name, session, tail, dispatcher) = if let Some(opened) = opened {
            let session = Some(opened.session);
            (opened.name, session, opened.tail, opened.dispatcher)
        } else {
            let dispatcher = self.parts.events.dispatcher();
            (String::new(), None, UnsyncedTail::default(), dispatcher)
        };
        let records = || self.messages.iter().map(|message| &message.record);
        TurnView {
            parts: Arc::clone(&self.parts),
            key: self.slot.key().clone(),
            session,
            tail,
            agent: name,
            turn: self.control.turn.clone(),
            to: self.recipient(),
            asked_by: self.asked_by(),
            role: self.control.role,
            is_direct: records().all(|record| record.message.is_direct),
            delivery: Delivery::new(dispatcher, self.parts.media.clone()),
            is_voice_only: is_voice_only(
                &self.parts.settings.current(),
                || self.tts_enabled(),
                self.is_voice(),
            ),
            asks_model: CancellationToken::new(),
            start: CancellationToken::new(),
            early: Mutex::new(Some(Vec::new())),
            shown: Mutex::new(Shown::default()),
            failed_gates: Mutex::default(),
        }
    }

    /// Returns whether a message of the turn was spoken.
    fn is_voice(&self) -> bool {
        self.messages.iter().any(|message| message.heard.is_voice)
    }

    /// Returns whether answers are spoken in the chat's channel, if its settings say so. A channel that cannot play audio
    /// gets none, unless its settings want it.
    fn tts_enabled(&self) -> Option<bool> {
        let chat = &self.control.chat;
        let channel = self.parts.channel(&chat.channel);
        let wanted = channel.and_then(|channel| channel.tts_enabled);
        let capabilities = self.parts.publisher.capabilities(chat);
        let is_mute = capabilities.is_some_and(|can| can.audio_formats.is_empty());
        wanted.or(is_mute.then_some(false))
    }

    /// Describes who wrote the messages of the turn.
    fn asked_by(&self) -> String {
        let mut senders: Vec<String> = Vec::new();
        for message in &self.messages {
            let sender = &message.record.message.sender;
            let mut described = describe_sender(sender.name.as_deref(), &sender.id);
            if message.record.script.is_some() {
                described = format!("a script in the chat of {described}");
            }
            if !senders.contains(&described) {
                senders.push(described);
            }
        }
        senders.join(", ")
    }

    /// Returns who gets the answer: the messages of the turn, and those that it heard while it ran.
    fn recipient(&self) -> Recipient {
        let records = || self.messages.iter().map(|message| &message.record);
        // Channels do not know what scripts have sent.
        let replied = records().filter(|record| record.script.is_none());
        Recipient {
            chat: self.control.chat.clone(),
            user: records()
                .next()
                .map(|first| first.message.sender.id.clone())
                .unwrap_or_default(),
            in_reply_to: replied
                .map(|record| record.message.message_id.clone())
                .collect(),
        }
    }

    /// Stores that the turn of the messages runs, and shows them and that it begins. The messages and the state share one
    /// wait for the disk. If that fails, the agent's run is ended.
    async fn start(&self, view: &TurnView) -> Result<(), PublishError> {
        let unsaid = self.messages.iter().filter(|message| !message.is_said);
        let said = unsaid.map(Pending::said).collect();
        let update = self.inbox_update(InboxState::Running);
        let (publisher, chat) = (&self.parts.publisher, &self.control.chat);
        let publish = |update| publisher.publish(chat, said, update);
        let stored = view.with_tail(update, publish).await;
        if stored.is_ok() {
            self.control.start();
            view.show_start();
        } else {
            // Before the run may continue, so that it ends without asking the model.
            self.control.token().cancel();
        }
        view.start.cancel();
        stored
    }

    fn inbox_update(&self, state: InboxState) -> InboxUpdate {
        let ids = self.messages.iter().map(|message| message.record.id);
        (ids.collect::<Vec<_>>(), state).into()
    }

    fn end_of_command(
        &self,
        view: &TurnView,
        failure: &CommandFailure,
        is_timeout: bool,
    ) -> TurnEnd {
        if self.control.token().is_cancelled() {
            return self.end_of(view, &RunEnd::Cancelled, is_timeout);
        }
        let text = "The command failed.";
        let cause = failure.to_string();
        TurnEnd::Failed(TurnFailure::private("command", text, cause, view))
    }

    fn end_of(&self, view: &TurnView, end: &RunEnd, is_timeout: bool) -> TurnEnd {
        let plain = |code, text| TurnEnd::Failed(TurnFailure::plain(code, text));
        match end {
            RunEnd::Completed | RunEnd::Handled => TurnEnd::Completed,
            RunEnd::Cancelled => match self.control.cancellation() {
                Some(cancellation) => TurnEnd::Cancelled(cancellation),
                None if is_timeout => {
                    let timeout = describe(self.parts.settings.current().turns.timeout);
                    plain(
                        "timeout",
                        format!("The answer took longer than {timeout}, so it was stopped."),
                    )
                }
                // A script ended the run.
                None => TurnEnd::Cancelled(Cancellation {
                    reason: MessageCancelReason::User,
                    user: String::new(),
                    role: SenderRole::Guest,
                }),
            },
            RunEnd::HookBlocked { event, reason } if view.hides_failure_of(event) => {
                let failure = TurnFailure::private("blocked", NOT_CHECKED, reason.clone(), view);
                TurnEnd::Failed(failure)
            }
            RunEnd::HookBlocked { reason, .. } => plain("blocked", reason.clone()),
            RunEnd::LoopDetected { tool } => plain(
                "loop",
                format!("The agent repeated the same call to `{tool}`, so it was stopped."),
            ),
            RunEnd::MaxIterations { limit } => plain(
                "max_iterations",
                format!("The agent stopped after {limit} model calls."),
            ),
            RunEnd::Error { message } => {
                let text = "The model call failed.";
                let failure = TurnFailure::private("model_error", text, message.clone(), view);
                TurnEnd::Failed(failure)
            }
            _ => plain("failed", "The agent stopped.".to_owned()),
        }
    }

    /// Shows how the turn ended, and stores the last state of its messages.
    async fn finish(&self, view: &TurnView, end: TurnEnd, usage: Option<Usage>) {
        let to = self.recipient();
        let (status, state, mut frames) = match end {
            TurnEnd::Completed => {
                let mut frames = view.last_end(EndReason::Stop).await;
                // Without hooks that could take long, the answer and `done` share one wait for the disk.
                if view.delivery.dispatcher().is_hooked::<MessageSend>() {
                    if !view.is_voice_only {
                        self.publish(view, std::mem::take(&mut frames)).await;
                    }
                    let answer = view.answer();
                    let is_replaceable = is_replaceable(&self.parts.settings.current(), &answer);
                    let (extras, speaks_answer) = self.extras(view, &to, answer, false).await;
                    if is_replaceable && speaks_answer {
                        remove_text(&mut frames);
                    }
                    frames.extend(extras);
                }
                (TurnStatus::Completed, InboxState::Answered, frames)
            }
            TurnEnd::Cancelled(cancellation) => {
                let frames = view.last_end(EndReason::Cancelled).await;
                self.publish(view, frames).await;
                let build = || {
                    MessageCancel::new(to.chat.channel.as_str())
                        .with_chat_id(to.chat.chat.as_str())
                        .with_user_id(cancellation.user)
                        .with_reason(cancellation.reason)
                };
                let _observed = view.delivery.dispatcher().dispatch_with(build).await;
                (TurnStatus::Cancelled, InboxState::Cancelled, Vec::new())
            }
            TurnEnd::Failed(failure) => {
                let text = self.show_failure(view, &to, failure).await;
                let (extras, _) = self.extras(view, &to, text, true).await;
                (TurnStatus::Failed, InboxState::Failed, extras)
            }
        };
        frames.push(Frame::Done {
            turn: view.turn.clone(),
            status,
            usage,
        });
        view.publish_last(frames, self.inbox_update(state)).await;
    }

    async fn publish(&self, view: &TurnView, frames: Vec<Frame>) {
        if !frames.is_empty() {
            view.publish(frames, InboxUpdate::default()).await;
        }
    }

    /// Shows and reports a failure. Returns the text that was shown.
    async fn show_failure(&self, view: &TurnView, to: &Recipient, failure: TurnFailure) -> String {
        let mut frames = view.last_end(EndReason::Error).await;
        let (kind, content) = (DeliveryKind::Error, failure.text.into());
        let text = view.delivery.deliver(to, kind, content).await.text;
        frames.push(Frame::Error {
            turn: Some(view.turn.clone()),
            message_id: None,
            code: failure.code.to_owned(),
            text: text.clone(),
            retry: None,
        });
        self.publish(view, frames).await;
        self.report(view, failure.code, failure.cause).await;
        text
    }

    /// Sends `message_send`. Returns the frames of what its hooks add, and whether one of them is the answer as audio.
    async fn extras(
        &self,
        view: &TurnView,
        to: &Recipient,
        response: String,
        is_error: bool,
    ) -> (Vec<Frame>, bool) {
        let inputs: Vec<&str> = self
            .messages
            .iter()
            .map(|message| message.heard.text.as_str())
            .collect();
        let capabilities = self.parts.publisher.capabilities(&to.chat);
        let formats = capabilities.map_or(&[][..], |capabilities| capabilities.audio_formats);
        let answered = Answered {
            input: inputs.join("\n\n"),
            response,
            is_voice: self.is_voice(),
            is_error,
            tts_enabled: self.tts_enabled(),
            audio_formats: formats.iter().map(|format| (*format).to_owned()).collect(),
        };
        let extras = view.delivery.extras(to, answered).await;
        for problem in extras.problems {
            self.report(view, "part", problem).await;
        }
        let turn = Some(view.turn.as_str());
        let contents = extras.contents.into_iter();
        let frames = contents.flat_map(|content| content.into_frames(turn, None));
        (frames.collect(), extras.speaks_answer)
    }

    async fn report(&self, view: &TurnView, code: &str, error: String) {
        let chat = &self.control.chat;
        let failure = GatewayFailure {
            code: code.to_owned(),
            error,
            chat: Some(chat.clone()),
            message_id: view.to.in_reply_to.first().cloned(),
            will_retry: false,
        };
        report_failure(view.delivery.dispatcher(), &chat.channel, failure).await;
    }

    /// Reports messages whose turn cannot be recorded, once.
    async fn report_unstarted(&self, error: String) {
        if self.is_tried_again {
            return;
        }
        let text = "The message cannot be processed now, because it cannot be stored that it is. \
                    It will be tried again.";
        let notice = Frame::Notice {
            text: text.to_owned(),
        };
        self.parts.publisher.live(&self.control.chat, &notice);
        self.report(&self.view(None), "store", error).await;
    }
}

fn describe(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds >= 60 && seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}
