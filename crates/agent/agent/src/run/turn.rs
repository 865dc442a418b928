//! One turn: a model call and its tool calls.
//!
//! `turn_start` → `context` → `before_llm_call` → `tool_selection` → the model → `after_llm_call` →
//! tool calls, or `stop` → `turn_end`. Every turn sends `turn_end` exactly once, with the reason.

use jiff::Timestamp;
use serde_json::json;
use tenterhook_engine::tool_call::FinishedToolCall;
use tenterhook_protocol::event::{
    AfterLlmCall, BeforeLlmCall, Context, NotificationLevel, Stop, ToolSelection, TurnEnd,
    TurnEndReason, TurnStart,
};
use tenterhook_protocol::{
    ContentBlock, Image, Message, Messages, Role, ToolCall, ToolResult, message_extra,
};

use super::{AfterTurn, Run, RunInterrupt};
use crate::compaction::{CompactionError, CompactionRequest};
use crate::model_call::{ModelAnswer, ModelCall, ModelCallError};
use crate::run_report::RunEnd;
use crate::subagent::Delegation;
use crate::tool_call::ToolCalls;
use tenterhook_providers::{ModelRequest, ProviderErrorKind, Purpose};

/// The parts of `turn_end` that a turn collects.
#[derive(Default)]
struct TurnRecord {
    message: Option<Message>,
    results: Vec<ToolResult>,
}

impl Run<'_> {
    /// Answers from the cache, without a turn. Returns `None` if the cache has no answer for this conversation.
    pub(super) async fn replay(&mut self) -> Option<Result<AfterTurn, RunInterrupt>> {
        let cache = self.agent.state.config.responses.as_ref()?;
        let messages = self.agent.session.messages();
        let text = cache.find(&self.agent.identity.name, &messages).await?;
        self.agent.store_before_model_call().await;
        let agent = &self.agent.identity.name;
        self.hooks.frontend().turn_starting(agent).await;
        if let Err(interrupt) = self.check_cancelled() {
            return Some(Err(interrupt));
        }
        self.hooks.frontend().text_delta(agent, &text);
        let message = self.hooks.finish_message(Message::assistant(text)).await;
        self.agent.session.push(message.clone());
        self.hooks.frontend().message(agent, &message);
        self.hooks.frontend().deliver(agent, &message).await;
        let spoken = self.finish_speaking(message.content).await;
        Some(spoken.map(|(_, next)| next))
    }

    pub(super) async fn turn(&mut self) -> AfterTurn {
        let frontend = self.hooks.frontend();
        frontend.turn_starting(&self.agent.identity.name).await;
        self.selected = self.agent.state.selected();
        if self.agent.identity.subagent().is_none() {
            self.agent.record_selection();
        }
        let turn_index = self.counts.turns;
        self.counts.turns += 1;
        self.agent.turns += 1;
        let started = || {
            TurnStart::new()
                .with_turn_index(turn_index)
                .with_started_at_ms(Timestamp::now().as_millisecond())
        };
        let outcome = self.hooks.fire(started).await;
        let mut record = TurnRecord::default();
        let (reason, next) = match self.run_turn(outcome.context(), &mut record).await {
            Ok(done) => done,
            Err(interrupt) => self.interrupted(interrupt).await,
        };
        let ended = || {
            TurnEnd::new()
                .with_turn_index(turn_index)
                .with_turn_number(self.agent.turns)
                .with_response(
                    record
                        .message
                        .as_ref()
                        .map(|message| message.content.clone())
                        .unwrap_or_default(),
                )
                .with_message(record.message)
                .with_tool_results(record.results)
                .with_reason(reason)
        };
        self.hooks.announce(ended).await;
        self.agent.apply_context_swap();
        self.agent.save().await;
        next
    }

    async fn run_turn(
        &mut self,
        context: &[String],
        record: &mut TurnRecord,
    ) -> Result<(TurnEndReason, AfterTurn), RunInterrupt> {
        self.counts.iterations += 1;
        let (request, offered) = self.assemble(context).await?;
        let answer = self.ask_model(&request).await?;
        self.counts.has_overflowed = false;
        let message = self.store_answer(answer).await;
        record.message = Some(message.clone());
        if self.cancel.is_cancelled() {
            self.answer_unrun_calls(&message).await;
            return Err(RunInterrupt::Cancelled);
        }
        if message.tool_calls.is_empty() {
            self.finish_speaking(message.content).await
        } else {
            self.use_tools(&message.tool_calls, &offered, record).await
        }
    }

    /// Returns how an interrupted turn ended. If the context is too long, it is compacted once and the turn is
    /// retried.
    async fn interrupted(&mut self, mut interrupt: RunInterrupt) -> (TurnEndReason, AfterTurn) {
        let is_overflow = matches!(&interrupt, RunInterrupt::Failed(error) if error.kind == ProviderErrorKind::ContextOverflow);
        if is_overflow && !std::mem::replace(&mut self.counts.has_overflowed, true) {
            let order = CompactionRequest::for_overflow();
            match self.agent.compact(&order, &self.hooks, self.cancel).await {
                Ok(_) => return (TurnEndReason::Error, AfterTurn::Again),
                Err(CompactionError::Cancelled) => interrupt = RunInterrupt::Cancelled,
                Err(_) => {}
            }
        }
        let reason = match &interrupt {
            RunInterrupt::Cancelled => TurnEndReason::Cancelled,
            RunInterrupt::Blocked { .. } => TurnEndReason::HookBlocked,
            RunInterrupt::Failed(_) => TurnEndReason::Error,
        };
        let end = self.report_interrupt(interrupt).await;
        (reason, AfterTurn::End(end))
    }

    /// Returns the request for the model, and the names of the tools that it offers.
    async fn assemble(
        &mut self,
        turn_context: &[String],
    ) -> Result<(ModelRequest, Vec<String>), RunInterrupt> {
        let mut messages = Vec::new();
        if !self.system_prompt.is_empty() {
            messages.push(Message::system(self.system_prompt.clone()));
        }
        messages.extend(self.agent.session.contexts());
        let transient = self.prompt_context.iter().chain(turn_context);
        messages.extend(transient.map(|text| Message::system(text.clone())));
        messages.extend(self.agent.session.conversation());
        let messages = Messages::from(messages);
        let build = || Context::new(messages.clone());
        let outcome = self.hooks.fire(build).await;
        self.check_cancelled()?;
        let messages = outcome
            .into_rewritten()
            .map_or(messages, |event| event.messages);
        let messages = self.before_model(messages).await?;
        let offered = self.select_tools().await?;
        let toolbox = self.agent.state.toolbox();
        let request = ModelRequest {
            messages,
            tools: offered
                .iter()
                .filter_map(|name| toolbox.spec(name))
                .collect(),
            purpose: Purpose::Turn,
            subagent: self.agent.identity.subagent().map(str::to_owned),
            ..ModelRequest::default()
        };
        Ok((request, offered))
    }

    async fn before_model(&self, messages: Messages) -> Result<Messages, RunInterrupt> {
        let build = || {
            BeforeLlmCall::new()
                .with_model_id(self.selected.id())
                .with_iteration(self.counts.iterations)
                .with_messages(messages.clone())
        };
        let outcome = self.hooks.fire(build).await;
        self.check(&outcome)?;
        Ok(outcome
            .into_rewritten()
            .map_or(messages, |event| event.messages))
    }

    /// Adds the tools that scripts have registered or activated since the last call of the model.
    fn add_new_tools(&mut self) {
        for name in self.agent.tool_names() {
            if !self.known_tools.contains(&name) {
                self.known_tools.push(name.clone());
                self.tools.push(name);
            }
        }
    }

    async fn select_tools(&mut self) -> Result<Vec<String>, RunInterrupt> {
        self.add_new_tools();
        let build = || ToolSelection::new(self.tools.clone());
        let outcome = self.hooks.fire(build).await;
        self.check_cancelled()?;
        let mut tools = outcome
            .into_rewritten()
            .map_or_else(|| self.tools.clone(), |event| event.tools);
        let toolbox = self.agent.state.toolbox();
        tools.retain(|name| self.agent.may_use(name) && toolbox.get(name).is_some());
        Ok(tools)
    }

    async fn ask_model(&mut self, request: &ModelRequest) -> Result<ModelAnswer, RunInterrupt> {
        let call = ModelCall {
            state: &self.agent.state,
            selected: &self.selected,
            agent: &self.agent.identity.name,
            hooks: &self.hooks,
            cancel: self.cancel,
        };
        let answer = call.ask(request).await.map_err(|error| match error {
            ModelCallError::Cancelled => RunInterrupt::Cancelled,
            ModelCallError::Failed(error) => RunInterrupt::Failed(error),
        })?;
        let answered = || {
            AfterLlmCall::new()
                .with_model_id(self.selected.id())
                .with_response(answer.message.content.clone())
                .with_last_user_message(self.last_user_message())
                .with_usage(answer.usage)
                .with_cost(self.selected.cost(answer.usage.as_ref()))
        };
        self.hooks.announce(answered).await;
        Ok(answer)
    }

    async fn store_answer(&mut self, answer: ModelAnswer) -> Message {
        let cost = self.selected.cost(answer.usage.as_ref());
        self.counts.charge(cost);
        match answer.usage {
            Some(usage) => {
                self.counts.add(&usage);
                self.agent.note_usage(usage);
            }
            None => self.agent.spend_estimate(&answer.message),
        }
        let mut message = answer
            .message
            .with_extra(message_extra::MODEL, self.selected.id());
        if let Some(usage) = answer.usage {
            message = message.with_extra(message_extra::USAGE, json!(usage));
        }
        if let Some(cost) = cost {
            message = message.with_extra(message_extra::COST, cost);
        }
        let message = self.hooks.finish_message(message).await;
        self.agent.session.push(message.clone());
        let (frontend, agent) = (self.hooks.frontend(), &self.agent.identity.name);
        frontend.message(agent, &message);
        frontend.deliver(agent, &message).await;
        message
    }

    fn last_user_message(&self) -> Option<String> {
        self.agent
            .session
            .last_message_of(Role::User)
            .map(|message| message.content.clone())
    }

    /// Handles an answer without tool calls: stop hooks and queued messages decide whether there is more to do.
    async fn finish_speaking(
        &mut self,
        response: String,
    ) -> Result<(TurnEndReason, AfterTurn), RunInterrupt> {
        let build = || {
            Stop::new()
                .with_messages(self.agent.session.shared_messages())
                .with_response(response)
                .with_last_user_message(self.last_user_message())
                .with_stop_hook_active(self.counts.stop_hooks > 0)
        };
        let outcome = self.hooks.fire(build).await;
        self.check_cancelled()?;
        let texts = outcome
            .follow_up()
            .iter()
            .filter(|text| !text.trim().is_empty());
        let follow_ups: Vec<String> = texts.cloned().collect();
        if !follow_ups.is_empty() && self.may_stop_hooks_go_on().await {
            for text in follow_ups {
                self.record(Message::user(text)).await;
            }
            return Ok((TurnEndReason::Continue, AfterTurn::Again));
        }
        if self.record_steering().await? {
            return Ok((TurnEndReason::Steered, AfterTurn::Again));
        }
        if self.record_follow_up().await? {
            return Ok((TurnEndReason::Continue, AfterTurn::Again));
        }
        Ok((TurnEndReason::Normal, AfterTurn::End(RunEnd::Completed)))
    }

    /// Counts a request of stop hooks to continue. Returns `false` if there were too many in a row.
    async fn may_stop_hooks_go_on(&mut self) -> bool {
        let most = self.agent.state.config.limits.stop_hooks;
        if self.counts.stop_hooks >= most {
            let text =
                format!("stop hooks kept the agent going {most} times in a row, so it stops now");
            self.hooks
                .notify(NotificationLevel::Warning, "stop_hook_cap", &text)
                .await;
            return false;
        }
        self.counts.stop_hooks += 1;
        true
    }

    async fn use_tools(
        &mut self,
        calls: &[ToolCall],
        offered: &[String],
        record: &mut TurnRecord,
    ) -> Result<(TurnEndReason, AfterTurn), RunInterrupt> {
        let called = self.call_tools(calls, offered).await;
        self.store_results(calls, &called).await;
        let stop = called.iter().find_map(|called| called.stop_run.clone());
        // The run ends only if every result requests it. Otherwise the model would miss the other results.
        let terminates = called.iter().all(|called| called.result.terminate);
        record.results = called.into_iter().map(|called| called.result).collect();
        if self.cancel.is_cancelled() {
            return Err(RunInterrupt::Cancelled);
        }
        if let Some(stop) = stop {
            return Err(RunInterrupt::Blocked {
                event: stop.event,
                reason: stop.reason,
            });
        }
        if terminates {
            return Ok((TurnEndReason::Normal, AfterTurn::End(RunEnd::Completed)));
        }
        if let Some(tool) = self.find_repeated_call(calls) {
            let text = format!("the model repeated the same call to `{tool}`");
            self.hooks.report_error("loop_detected", &text, false).await;
            return Ok((
                TurnEndReason::LoopDetected,
                AfterTurn::End(RunEnd::LoopDetected { tool }),
            ));
        }
        let is_steered = self.record_steering().await?;
        let reason = if is_steered {
            TurnEndReason::Steered
        } else {
            TurnEndReason::Continue
        };
        Ok((reason, AfterTurn::Again))
    }

    async fn call_tools(&self, calls: &[ToolCall], offered: &[String]) -> Vec<FinishedToolCall> {
        let delegation = Delegation {
            state: &self.agent.state,
            parent: &self.agent.identity,
            hooks: &self.hooks,
            cancel: self.cancel,
            tools: offered,
            tasks: &self.agent.tasks,
        };
        let tool_calls = ToolCalls {
            state: &self.agent.state,
            agent: &self.agent.identity.name,
            hooks: &self.hooks,
            cancel: self.cancel,
            offered,
            listens: self.agent.identity.subagent().is_none(),
            in_background: self.agent.identity.in_background,
            delegate: &delegation,
            restrictions: &self.agent.identity.restrictions,
        };
        tool_calls.call_all(calls).await
    }

    /// Answers the tool calls of a message that arrived after a cancellation, so that each call has a result.
    async fn answer_unrun_calls(&mut self, message: &Message) {
        let called = self.call_tools(&message.tool_calls, &[]).await;
        self.store_results(&message.tool_calls, &called).await;
    }

    async fn store_results(&mut self, calls: &[ToolCall], called: &[FinishedToolCall]) {
        for (call, called) in calls.iter().zip(called) {
            let text = called.result.joined_text();
            let mut message = Message::tool(call.id.clone(), text, called.result.is_error);
            message.images = called.result.content.iter().filter_map(image_of).collect();
            message.parts = called.result.content.iter().filter_map(opaque_of).collect();
            message = message.with_extra(message_extra::TOOL_NAME, call.name.clone());
            if let Some(details) = &called.result.details {
                message = message.with_extra(message_extra::DETAILS, details.clone());
            }
            self.record(message).await;
        }
        for text in called.iter().flat_map(|called| &called.context) {
            self.record(Message::system(text.clone())).await;
        }
    }

    /// Returns the tool that was called too often in a row with the same arguments.
    fn find_repeated_call(&mut self, calls: &[ToolCall]) -> Option<String> {
        let most = self.agent.state.config.limits.repeated_calls;
        let restrictions = &self.agent.identity.restrictions;
        let most = restrictions.at_most(most, |one| one.repeated_calls);
        let toolbox = self.agent.state.toolbox();
        let mut counted = calls.iter().filter(|call| {
            let tool = toolbox.get(&call.name);
            !tool.is_some_and(|tool| tool.may_repeat())
        });
        let repeated = counted.find(|call| self.repeated_calls.count(call) >= most)?;
        Some(repeated.name.clone())
    }
}

fn image_of(block: &ContentBlock) -> Option<Image> {
    match block {
        ContentBlock::Image { image } => Some(image.clone()),
        ContentBlock::Text { .. } | _ => None,
    }
}

/// Returns a block that is neither text nor an image. Blocks that have text are left out, because the message already
/// contains their text.
fn opaque_of(block: &ContentBlock) -> Option<ContentBlock> {
    let is_opaque = matches!(block, ContentBlock::Other(_)) && block.as_text().is_none();
    is_opaque.then(|| block.clone())
}
