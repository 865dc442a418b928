//! One run of the agent: from an input until the model has nothing left to do.
//!
//! ```text
//! user_input → templates and skills → user_prompt_submit → before_agent_start → agent_start
//!   → turns, each with compaction and queued messages before it → agent_end → waiting_for_user
//! ```

mod counts;
mod turn;

use tenterhook_protocol::event::{
    AgentEnd, AgentEndReason, AgentSettled, AgentStart, BeforeAgentStart, MaxIterations,
    MessageStart, NotificationLevel, SessionLimitResume, UserFollowupSubmit, UserInput,
    UserPromptSubmit, UserSteeringSubmit, WaitReason, WaitingForUser,
};
use tenterhook_protocol::{
    Decision, EntryId, Event, GateEvent, Image, JsonObject, Message, Outcome, Role,
};
use tokio_util::sync::CancellationToken;

use self::counts::{RepeatedCalls, RunCounts};
use crate::agent_session::AgentSession;
use crate::compaction::{CompactionError, CompactionRequest};
use crate::hooks::Hooks;
use crate::models::SelectedModel;
use crate::run_report::{Prompt, RunEnd, RunReport};
use tenterhook_providers::ProviderError;

/// A run in progress.
pub(crate) struct Run<'a> {
    agent: &'a mut AgentSession,
    hooks: Hooks,
    cancel: &'a CancellationToken,
    system_prompt: String,
    /// The context that hooks added to the user's newest input, for the model calls until the next input.
    prompt_context: Vec<String>,
    /// The model of the turn.
    selected: SelectedModel,
    /// The names of the tools of this run.
    tools: Vec<String>,
    /// The names of all tools that were added to the run or that hooks have removed from it.
    known_tools: Vec<String>,
    /// The index of the run's first entry in the session.
    first_entry: usize,
    cap: u32,
    counts: RunCounts,
    repeated_calls: RepeatedCalls,
}

/// Why a run cannot continue.
enum RunInterrupt {
    Cancelled,
    Blocked { event: &'static str, reason: String },
    Failed(ProviderError),
}

/// What comes after a turn.
enum AfterTurn {
    Again,
    End(RunEnd),
}

impl AgentSession {
    /// Runs the agent on a prompt of the user.
    pub(crate) async fn prompt(&mut self, prompt: Prompt, cancel: &CancellationToken) -> RunReport {
        self.state.set_run_over(false);
        let mut run = Run::new(self, cancel);
        let end = match run.accept_prompt(prompt).await {
            Ok(Some((text, images))) => {
                let end = run.work(text, images).await;
                run.hooks.announce(AgentSettled::new).await;
                end
            }
            Ok(None) => RunEnd::Handled,
            Err(interrupt) => run.report_interrupt(interrupt).await,
        };
        let waiting = || WaitingForUser::new().with_reason(WaitReason::Idle);
        run.hooks.announce(waiting).await;
        run.report(end)
    }

    /// Runs the agent on a task of another agent.
    pub(crate) async fn work_on_task(
        &mut self,
        task: &str,
        cancel: &CancellationToken,
    ) -> RunReport {
        let mut run = Run::new(self, cancel);
        run.record(Message::user(task)).await;
        let end = run.work(task.to_owned(), Vec::new()).await;
        run.report(end)
    }
}

impl<'a> Run<'a> {
    fn new(agent: &'a mut AgentSession, cancel: &'a CancellationToken) -> Self {
        let tools = agent.tool_names();
        Self {
            hooks: agent.hooks.for_run(cancel),
            cancel,
            system_prompt: agent.state.system_prompt(&agent.identity),
            prompt_context: Vec::new(),
            selected: agent.state.selected(),
            known_tools: tools.clone(),
            tools,
            first_entry: agent.session.entries().len(),
            cap: agent
                .identity
                .restrictions
                .at_most(agent.state.config.limits.max_iterations, |one| {
                    one.max_iterations
                }),
            counts: RunCounts::default(),
            repeated_calls: RepeatedCalls::default(),
            agent,
        }
    }

    /// Records an input for the model. Returns `None` if a hook handled the input.
    async fn accept_prompt(
        &mut self,
        prompt: Prompt,
    ) -> Result<Option<(String, Vec<Image>)>, RunInterrupt> {
        let Prompt {
            mut text,
            mut images,
            source,
            extra,
        } = prompt;
        let build = || {
            UserInput::new(text.clone())
                .with_images((!images.is_empty()).then(|| images.clone()))
                .with_source(source)
        };
        let outcome = self.hooks.fire(build).await;
        self.check(&outcome)?;
        if outcome.is_handled() {
            return Ok(None);
        }
        if let Some(event) = outcome.into_rewritten() {
            text = event.text;
            // A rewritten event without images means that a hook removed them.
            images = event.images.unwrap_or_default();
        }
        text = self.agent.state.expand(text, source);
        let mut message = Message::user(text.clone()).with_images(images.clone());
        message.extra = extra;
        let entry = self.record(message).await;
        let build = || UserPromptSubmit::new(text.clone());
        let outcome = self.hooks.fire(build).await;
        if let Err(interrupt) = self.check(&outcome) {
            // A refused prompt must not reach the model with the next prompt.
            self.agent.session.take_back(&[entry]);
            return Err(interrupt);
        }
        self.prompt_context = outcome.context().to_vec();
        Ok(Some((text, images)))
    }

    /// Runs all turns, from the first to the end of the run.
    async fn work(&mut self, prompt: String, images: Vec<Image>) -> RunEnd {
        self.start_agent(prompt, images).await;
        self.hooks.announce(AgentStart::new).await;
        let mut next = self.replay().await;
        let end = loop {
            let step = match next.take() {
                Some(replayed) => replayed,
                None => self.step().await,
            };
            match step {
                Ok(AfterTurn::Again) => {}
                Ok(AfterTurn::End(end)) => break end,
                Err(interrupt) => break self.report_interrupt(interrupt).await,
            }
        };
        let ended = || {
            AgentEnd::new(self.own_messages()).with_reason(match end {
                RunEnd::Completed | RunEnd::Handled => AgentEndReason::Completed,
                RunEnd::Cancelled | RunEnd::MaxIterations { .. } => AgentEndReason::Aborted,
                RunEnd::HookBlocked { .. } | RunEnd::LoopDetected { .. } | RunEnd::Error { .. } => {
                    AgentEndReason::Error
                }
            })
        };
        // Messages that scripts send from here on start another run.
        if self.agent.identity.subagent().is_none() {
            self.agent.state.set_run_over(true);
        }
        self.hooks.announce(ended).await;
        self.agent.save().await;
        end
    }

    async fn start_agent(&mut self, prompt: String, images: Vec<Image>) {
        let build = || {
            BeforeAgentStart::new(prompt)
                .with_images((!images.is_empty()).then_some(images))
                .with_system_prompt(self.system_prompt.clone())
        };
        let outcome = self.hooks.fire(build).await;
        for name in outcome.enabled_tools() {
            let is_known = self.agent.state.toolbox().get(&name).is_some();
            if is_known && self.agent.may_use(&name) && !self.tools.contains(&name) {
                self.known_tools.push(name.clone());
                self.tools.push(name);
            }
        }
        let disabled = outcome.disabled_tools();
        self.tools.retain(|name| !disabled.contains(name));
        // A script that registers such a tool later does not bring it back.
        self.known_tools.extend(disabled);
        for message in outcome.inject() {
            self.record(message.clone()).await;
        }
        if let Some(event) = outcome.into_rewritten() {
            self.system_prompt = event.system_prompt;
        }
    }

    async fn step(&mut self) -> Result<AfterTurn, RunInterrupt> {
        if self.cancel.is_cancelled() {
            return Err(RunInterrupt::Cancelled);
        }
        if self.counts.iterations >= self.cap
            && let Some(end) = self.reach_iteration_cap().await?
        {
            return Ok(AfterTurn::End(end));
        }
        self.compact_if_full().await?;
        self.record_steering().await?;
        self.agent.store_before_model_call().await;
        let next = self.turn().await;
        if matches!(next, AfterTurn::End(RunEnd::Completed)) && self.has_more_to_do().await? {
            return Ok(AfterTurn::Again);
        }
        Ok(next)
    }

    /// Records the messages that arrived while the turn ended. Returns whether there were any.
    async fn has_more_to_do(&mut self) -> Result<bool, RunInterrupt> {
        Ok(self.record_steering().await? || self.record_follow_up().await?)
    }

    /// Reports that the limit of model calls is reached, and asks the user for more.
    async fn reach_iteration_cap(&mut self) -> Result<Option<RunEnd>, RunInterrupt> {
        let limit = self.cap;
        let text = format!("Maximum iterations reached ({limit})");
        self.hooks
            .notify(NotificationLevel::Warning, "max_iterations", &text)
            .await;
        self.hooks.announce(|| MaxIterations::new(limit)).await;
        if self.agent.identity.in_background {
            // The user follows another agent, so this one must not ask.
            return Ok(Some(RunEnd::MaxIterations { limit }));
        }
        let waiting = || WaitingForUser::new().with_reason(WaitReason::MaxIterations);
        self.hooks.announce(waiting).await;
        let more = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(RunInterrupt::Cancelled),
            more = self.hooks.frontend().more_iterations(limit) => more,
        };
        let Some(more) = more.filter(|more| *more > 0) else {
            return Ok(Some(RunEnd::MaxIterations { limit }));
        };
        self.cap = limit.saturating_add(more);
        let resumed = || SessionLimitResume::new(limit, self.cap);
        self.hooks.announce(resumed).await;
        Ok(None)
    }

    /// Compacts a context that is nearly full. If that fails, the run continues nevertheless, because only the model
    /// knows whether the context is too long.
    async fn compact_if_full(&mut self) -> Result<(), RunInterrupt> {
        if !self.agent.wants_compaction() {
            return Ok(());
        }
        let frontend = self.hooks.frontend();
        frontend.turn_starting(&self.agent.identity.name).await;
        self.check_cancelled()?;
        let order = CompactionRequest::for_threshold(&self.agent.session);
        match self.agent.compact(&order, &self.hooks, self.cancel).await {
            Err(CompactionError::Cancelled) => Err(RunInterrupt::Cancelled),
            Err(CompactionError::Blocked { .. } | CompactionError::Model(_)) => {
                self.agent.postpone_compaction();
                Ok(())
            }
            Ok(_) | Err(CompactionError::Nothing) => Ok(()),
        }
    }

    /// Records waiting steering messages for the model. Returns whether there were any.
    async fn record_steering(&mut self) -> Result<bool, RunInterrupt> {
        if self.agent.identity.subagent().is_some() {
            return Ok(false);
        }
        let queues = self.agent.state.queues.clone();
        let messages = queues.take_steering(|_| true, &self.hooks).await;
        if messages.is_empty() {
            return Ok(false);
        }
        let mut entries = Vec::new();
        let texts: Vec<String> = messages.iter().map(|queued| queued.text.clone()).collect();
        let extras: Vec<JsonObject> = messages.iter().map(|it| it.extra.clone()).collect();
        for queued in messages {
            entries.push(self.record(queued.into_message()).await);
        }
        let outcome = self.hooks.fire(|| UserSteeringSubmit::new(texts)).await;
        self.accept_queued(&outcome, outcome.context(), &entries)?;
        let frontend = self.hooks.frontend();
        for extra in &extras {
            frontend.heard(&self.agent.identity.name, extra);
        }
        Ok(true)
    }

    /// Records the oldest follow-up message for the model. Returns whether there was one.
    async fn record_follow_up(&mut self) -> Result<bool, RunInterrupt> {
        if self.agent.identity.subagent().is_some() {
            return Ok(false);
        }
        let queues = self.agent.state.queues.clone();
        let Some(follow_up) = queues.take_follow_up(&self.hooks).await else {
            return Ok(false);
        };
        let prompt = follow_up.text.clone();
        let entry = self.record(follow_up.into_message()).await;
        let outcome = self.hooks.fire(|| UserFollowupSubmit::new(prompt)).await;
        self.accept_queued(&outcome, outcome.context(), &[entry])?;
        Ok(true)
    }

    /// Keeps queued messages if hooks accept them. Refused messages are removed from the session.
    fn accept_queued<E: GateEvent>(
        &mut self,
        outcome: &Outcome<E>,
        context: &[String],
        entries: &[EntryId],
    ) -> Result<(), RunInterrupt> {
        if let Err(interrupt) = self.check(outcome) {
            self.agent.session.take_back(entries);
            return Err(interrupt);
        }
        self.prompt_context = context.to_vec();
        self.counts.stop_hooks = 0;
        Ok(())
    }

    /// Stores a complete message.
    async fn record(&mut self, message: Message) -> EntryId {
        let started = || MessageStart::new(message.clone());
        self.hooks.announce(started).await;
        let message = self.hooks.finish_message(message).await;
        let (frontend, agent) = (self.hooks.frontend(), &self.agent.identity.name);
        let state = &self.agent.state;
        state.show_script_message(&**frontend, agent, &message);
        self.agent.session.push(message)
    }

    /// Fails if the run was cancelled, because hooks that were cancelled with it may not have answered.
    fn check_cancelled(&self) -> Result<(), RunInterrupt> {
        if self.cancel.is_cancelled() {
            return Err(RunInterrupt::Cancelled);
        }
        Ok(())
    }

    /// Fails if the run was cancelled or a hook stopped it.
    fn check<E: GateEvent>(&self, outcome: &Outcome<E>) -> Result<(), RunInterrupt> {
        self.check_cancelled()?;
        match outcome.decision() {
            Decision::Proceed => Ok(()),
            // These events cannot ask the user, so a question stops the run.
            Decision::Ask { reason, .. } | Decision::Stop { reason, .. } => {
                Err(RunInterrupt::Blocked {
                    event: E::INFO.name,
                    reason,
                })
            }
        }
    }

    /// Reports the end of a run that did not come from the model.
    async fn report_interrupt(&mut self, interrupt: RunInterrupt) -> RunEnd {
        match interrupt {
            RunInterrupt::Cancelled => RunEnd::Cancelled,
            RunInterrupt::Blocked { event, reason } => {
                let text = if event == UserPromptSubmit::INFO.name {
                    format!("message blocked by hook: {reason}")
                } else {
                    format!("a {event} hook ended the run: {reason}")
                };
                self.hooks.report_error("hook_blocked", &text, false).await;
                RunEnd::HookBlocked { event, reason }
            }
            RunInterrupt::Failed(error) => {
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
        let entries = self.agent.session.entries().iter().skip(self.first_entry);
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
            turns: self.counts.turns,
            usage: self.counts.usage,
            cost: self.counts.cost(),
        }
    }
}
