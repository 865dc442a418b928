//! One run: from an input until the model has nothing left to do.
//!
//! ```text
//! user_input → templates and skills → user_prompt_submit → before_agent_start → agent_start
//!   → turns, each with compaction and queued messages before it → agent_end → waiting_for_user
//! ```

mod tally;
mod turn;

use tenterhook_protocol::event::{
    AgentEnd, AgentEndReason, AgentSettled, AgentStart, BeforeAgentStart, MaxIterations,
    MessageStart, NotificationLevel, SessionLimitResume, UserFollowupSubmit, UserInput,
    UserPromptSubmit, UserSteeringSubmit, WaitReason, WaitingForUser,
};
use tenterhook_protocol::{Decision, EntryId, Event, GateEvent, Image, Message, Outcome, Role};
use tokio_util::sync::CancellationToken;

use self::tally::{Repeats, Tally};
use crate::agent::{Prompt, RunEnd, RunReport};
use crate::compaction::{CompactionError, Order};
use crate::hooks::Hooks;
use crate::life::Life;
use crate::model::Selected;
use crate::provider::ModelError;

/// A run under way.
pub(crate) struct Run<'a> {
    life: &'a mut Life,
    hooks: Hooks,
    cancel: &'a CancellationToken,
    system_prompt: String,
    /// What hooks said of the newest input of the user: for the model calls until the next input.
    prompt_context: Vec<String>,
    /// The model of the turn.
    selected: Selected,
    /// The names of the tools that the run has.
    tools: Vec<String>,
    /// Where the run's entries begin in the session.
    first_entry: usize,
    cap: u32,
    tally: Tally,
    repeats: Repeats,
}

/// What keeps a run from going on.
enum Interrupt {
    Canceled,
    Blocked { event: &'static str, reason: String },
    Failed(ModelError),
}

/// What comes after a turn.
enum Next {
    Again,
    End(RunEnd),
}

impl Life {
    /// Works on what the user says.
    pub(crate) async fn prompt(&mut self, prompt: Prompt, cancel: &CancellationToken) -> RunReport {
        let mut run = Run::new(self, cancel);
        let end = match run.take_input(prompt).await {
            Ok(Some((text, images))) => {
                let end = run.lead(text, images).await;
                run.hooks.tell(|| AgentSettled {}).await;
                end
            }
            Ok(None) => RunEnd::Handled,
            Err(interrupt) => run.conclude(interrupt).await,
        };
        let waiting = || WaitingForUser {
            reason: WaitReason::Idle,
        };
        run.hooks.tell(waiting).await;
        run.report(end)
    }

    /// Works on what another agent says.
    pub(crate) async fn work_on_task(
        &mut self,
        task: &str,
        cancel: &CancellationToken,
    ) -> RunReport {
        let mut run = Run::new(self, cancel);
        run.record(Message::user(task)).await;
        let end = run.lead(task.to_owned(), Vec::new()).await;
        run.report(end)
    }
}

impl<'a> Run<'a> {
    fn new(life: &'a mut Life, cancel: &'a CancellationToken) -> Self {
        Self {
            hooks: life.hooks.for_run(cancel),
            cancel,
            system_prompt: life.setup.system_prompt(&life.identity),
            prompt_context: Vec::new(),
            selected: life.setup.selected(),
            tools: life.tool_names(),
            first_entry: life.session.entries().len(),
            cap: life
                .identity
                .restrictions
                .at_most(life.setup.limits.max_iterations, |one| one.max_iterations),
            tally: Tally::default(),
            repeats: Repeats::default(),
            life,
        }
    }

    /// Takes an input to where the model may see it. `None` is an input that a hook dealt with.
    async fn take_input(
        &mut self,
        prompt: Prompt,
    ) -> Result<Option<(String, Vec<Image>)>, Interrupt> {
        let Prompt {
            mut text,
            mut images,
            source,
        } = prompt;
        let build = || UserInput {
            text: text.clone(),
            images: (!images.is_empty()).then(|| images.clone()),
            source,
        };
        let outcome = self.hooks.fire(build).await;
        self.check(&outcome)?;
        if outcome.is_handled() {
            return Ok(None);
        }
        if let Some(event) = outcome.into_rewritten() {
            text = event.text;
            // A hook that leaves no images has removed those that were there.
            images = event.images.unwrap_or_default();
        }
        text = self.life.setup.expand(text, source);
        let message = Message {
            images: images.clone(),
            ..Message::user(text.clone())
        };
        let entry = self.record(message).await;
        let build = || UserPromptSubmit {
            prompt: text.clone(),
        };
        let outcome = self.hooks.fire(build).await;
        if let Err(interrupt) = self.check(&outcome) {
            // What a hook refused must not reach the model with the next prompt.
            self.life.session.take_back(&[entry]);
            return Err(interrupt);
        }
        self.prompt_context = outcome.context().to_vec();
        Ok(Some((text, images)))
    }

    /// Leads the run from its first turn to its end.
    async fn lead(&mut self, prompt: String, images: Vec<Image>) -> RunEnd {
        self.prepare(prompt, images).await;
        self.hooks.tell(|| AgentStart {}).await;
        let mut next = self.replay().await;
        let end = loop {
            let step = match next.take() {
                Some(replayed) => replayed,
                None => self.step().await,
            };
            match step {
                Ok(Next::Again) => {}
                Ok(Next::End(end)) => break end,
                Err(interrupt) => break self.conclude(interrupt).await,
            }
        };
        let ended = || AgentEnd {
            messages: self.own_messages(),
            reason: match end {
                RunEnd::Completed | RunEnd::Handled => AgentEndReason::Completed,
                RunEnd::Canceled | RunEnd::MaxIterations { .. } => AgentEndReason::Aborted,
                RunEnd::HookBlocked { .. } | RunEnd::LoopDetected { .. } | RunEnd::Error { .. } => {
                    AgentEndReason::Error
                }
            },
        };
        self.hooks.tell(ended).await;
        self.life.save().await;
        end
    }

    async fn prepare(&mut self, prompt: String, images: Vec<Image>) {
        let build = || BeforeAgentStart {
            prompt,
            images: (!images.is_empty()).then_some(images),
            system_prompt: self.system_prompt.clone(),
        };
        let outcome = self.hooks.fire(build).await;
        for name in outcome.enabled_tools() {
            let is_known = self.life.setup.toolbox.get(&name).is_some();
            if is_known && self.life.may_use(&name) && !self.tools.contains(&name) {
                self.tools.push(name);
            }
        }
        let disabled = outcome.disabled_tools();
        self.tools.retain(|name| !disabled.contains(name));
        for message in outcome.inject() {
            self.record(message.clone()).await;
        }
        if let Some(event) = outcome.into_rewritten() {
            self.system_prompt = event.system_prompt;
        }
    }

    async fn step(&mut self) -> Result<Next, Interrupt> {
        if self.cancel.is_cancelled() {
            return Err(Interrupt::Canceled);
        }
        if self.tally.iterations >= self.cap
            && let Some(end) = self.reach_cap().await?
        {
            return Ok(Next::End(end));
        }
        self.compact_if_full().await?;
        self.take_steering().await?;
        self.life.store_ahead().await;
        let next = self.turn().await;
        if matches!(next, Next::End(RunEnd::Completed)) && self.has_more_to_do().await? {
            return Ok(Next::Again);
        }
        Ok(next)
    }

    /// Hands what came in while the turn ended to the model; says whether there was anything.
    async fn has_more_to_do(&mut self) -> Result<bool, Interrupt> {
        Ok(self.take_steering().await? || self.take_follow_up().await?)
    }

    /// Says that the cap is reached and asks for more.
    async fn reach_cap(&mut self) -> Result<Option<RunEnd>, Interrupt> {
        let limit = self.cap;
        let text = format!("Maximum iterations reached ({limit})");
        self.hooks
            .notify(NotificationLevel::Warning, "max_iterations", &text)
            .await;
        self.hooks.tell(|| MaxIterations { limit }).await;
        if self.life.identity.in_background {
            // The user follows another agent.
            return Ok(Some(RunEnd::MaxIterations { limit }));
        }
        let waiting = || WaitingForUser {
            reason: WaitReason::MaxIterations,
        };
        self.hooks.tell(waiting).await;
        let more = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(Interrupt::Canceled),
            more = self.hooks.frontend().more_iterations(limit) => more,
        };
        let Some(more) = more.filter(|more| *more > 0) else {
            return Ok(Some(RunEnd::MaxIterations { limit }));
        };
        self.cap = limit.saturating_add(more);
        let resumed = || SessionLimitResume {
            previous_max_iterations: limit,
            new_max_iterations: self.cap,
        };
        self.hooks.tell(resumed).await;
        Ok(None)
    }

    /// Compacts a context that is nearly full. Without success the run goes on as it is: only the model
    /// knows whether the context is too long.
    async fn compact_if_full(&mut self) -> Result<(), Interrupt> {
        if !self.life.wants_compaction() {
            return Ok(());
        }
        let order = Order::for_threshold(&self.life.session);
        match self.life.compact(&order, &self.hooks, self.cancel).await {
            Err(CompactionError::Canceled) => Err(Interrupt::Canceled),
            Err(CompactionError::Blocked { .. } | CompactionError::Model(_)) => {
                self.life.put_off_compaction();
                Ok(())
            }
            Ok(_) | Err(CompactionError::Nothing) => Ok(()),
        }
    }

    /// Hands waiting steering messages to the model; says whether there were any.
    async fn take_steering(&mut self) -> Result<bool, Interrupt> {
        if self.life.identity.subagent().is_some() {
            return Ok(false);
        }
        let queues = self.life.setup.queues.clone();
        let messages = queues.take_steering(&self.hooks).await;
        if messages.is_empty() {
            return Ok(false);
        }
        let mut entries = Vec::new();
        for text in &messages {
            entries.push(self.record(Message::user(text.clone())).await);
        }
        let outcome = self.hooks.fire(|| UserSteeringSubmit { messages }).await;
        self.accept_input(&outcome, outcome.context(), &entries)?;
        Ok(true)
    }

    /// Hands the oldest follow-up to the model; says whether there was one.
    async fn take_follow_up(&mut self) -> Result<bool, Interrupt> {
        if self.life.identity.subagent().is_some() {
            return Ok(false);
        }
        let queues = self.life.setup.queues.clone();
        let Some(prompt) = queues.take_follow_up(&self.hooks).await else {
            return Ok(false);
        };
        let entry = self.record(Message::user(prompt.clone())).await;
        let outcome = self.hooks.fire(|| UserFollowupSubmit { prompt }).await;
        self.accept_input(&outcome, outcome.context(), &[entry])?;
        Ok(true)
    }

    /// Takes queued messages that hooks agree to; refused ones leave the session.
    fn accept_input<E: GateEvent>(
        &mut self,
        outcome: &Outcome<E>,
        context: &[String],
        entries: &[EntryId],
    ) -> Result<(), Interrupt> {
        if let Err(interrupt) = self.check(outcome) {
            self.life.session.take_back(entries);
            return Err(interrupt);
        }
        self.prompt_context = context.to_vec();
        self.tally.stop_hooks = 0;
        Ok(())
    }

    /// Stores a message that is whole from the beginning.
    async fn record(&mut self, message: Message) -> EntryId {
        let started = || MessageStart {
            message: message.clone(),
        };
        self.hooks.tell(started).await;
        let message = self.hooks.finish_message(message).await;
        self.life.session.push(message)
    }

    /// Fails if the run was cancelled: hooks that were cancelled with it may not have answered.
    fn check_cancelled(&self) -> Result<(), Interrupt> {
        if self.cancel.is_cancelled() {
            return Err(Interrupt::Canceled);
        }
        Ok(())
    }

    /// Fails if the run was cancelled or a hook stops what comes next.
    fn check<E: GateEvent>(&self, outcome: &Outcome<E>) -> Result<(), Interrupt> {
        self.check_cancelled()?;
        match outcome.decision() {
            Decision::Proceed => Ok(()),
            // No one is asked about these events.
            Decision::Ask { reason, .. } | Decision::Stop { reason, .. } => {
                Err(Interrupt::Blocked {
                    event: E::INFO.name,
                    reason,
                })
            }
        }
    }

    /// Makes the end of a run known that did not come from the model.
    async fn conclude(&mut self, interrupt: Interrupt) -> RunEnd {
        match interrupt {
            Interrupt::Canceled => RunEnd::Canceled,
            Interrupt::Blocked { event, reason } => {
                let text = if event == UserPromptSubmit::INFO.name {
                    format!("message blocked by hook: {reason}")
                } else {
                    format!("a {event} hook ended the run: {reason}")
                };
                self.hooks.report_error("hook_blocked", &text, false).await;
                RunEnd::HookBlocked { event, reason }
            }
            Interrupt::Failed(error) => {
                let message = error.to_string();
                self.hooks
                    .report_error("model_error", &message, error.is_retryable())
                    .await;
                RunEnd::Error { message }
            }
        }
    }

    /// Returns the messages of this run.
    fn own_messages(&self) -> Vec<Message> {
        let entries = self.life.session.entries().iter().skip(self.first_entry);
        entries.filter_map(|entry| entry.message.clone()).collect()
    }

    fn report(self, end: RunEnd) -> RunReport {
        let answers = self
            .own_messages()
            .into_iter()
            .rev()
            .filter(|message| message.role == Role::Assistant);
        let response = answers
            .map(|message| message.content)
            .find(|text| !text.is_empty());
        RunReport {
            end,
            response: response.unwrap_or_default(),
            turns: self.tally.turns,
            usage: self.tally.usage,
            cost: self.tally.cost(),
        }
    }
}
