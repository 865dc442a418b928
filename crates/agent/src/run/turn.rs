//! One turn: a model call and what it leads to.
//!
//! `turn_start` → `context` → `before_llm_call` → `tool_selection` → the model → `after_llm_call` →
//! tool calls, or `stop` → `turn_end`, exactly once and with the reason.

use jiff::Timestamp;
use tenterhook_protocol::event::{
    AfterLlmCall, BeforeLlmCall, Context, NotificationLevel, Stop, ToolSelection, TurnEnd,
    TurnEndReason, TurnStart,
};
use tenterhook_protocol::{ContentBlock, Image, Message, Messages, Role, ToolCall, ToolResult};

use super::{Interrupt, Next, Run};
use crate::agent::RunEnd;
use crate::ask::{Answer, AskError, Asker};
use crate::call::{Bench, Called};
use crate::compaction::{CompactionError, Order};
use crate::provider::{ModelErrorKind, ModelRequest, Purpose};
use crate::subagent::Delegation;

/// What a turn leaves for `turn_end`.
#[derive(Default)]
struct Record {
    message: Option<Message>,
    results: Vec<ToolResult>,
}

impl Run<'_> {
    /// Answers from the cache, without a turn. `None` is a conversation that has no answer there.
    pub(super) async fn replay(&mut self) -> Option<Result<Next, Interrupt>> {
        let cache = self.life.setup.responses.as_ref()?;
        let agent = &self.life.identity.name;
        let text = cache.find(agent, &self.life.session.messages()).await?;
        self.hooks.frontend().text_delta(agent, &text);
        let message = self.hooks.finish_message(Message::assistant(text)).await;
        self.life.session.push(message.clone());
        self.hooks.frontend().message(agent, &message);
        let spoken = self.finish_speaking(message.content).await;
        Some(spoken.map(|(_, next)| next))
    }

    pub(super) async fn turn(&mut self) -> Next {
        self.selected = self.life.setup.selected();
        if self.life.identity.subagent().is_none() {
            self.life.note_selection();
        }
        let turn_index = self.tally.turns;
        self.tally.turns += 1;
        self.life.turns += 1;
        let started = || TurnStart {
            turn_index,
            started_at_ms: Timestamp::now().as_millisecond(),
        };
        let outcome = self.hooks.fire(started).await;
        let mut record = Record::default();
        let (reason, next) = match self.work(outcome.context(), &mut record).await {
            Ok(done) => done,
            Err(interrupt) => self.interrupted(interrupt).await,
        };
        let ended = || TurnEnd {
            turn_index,
            turn_number: self.life.turns,
            response: record
                .message
                .as_ref()
                .map(|message| message.content.clone())
                .unwrap_or_default(),
            message: record.message,
            tool_results: record.results,
            reason,
        };
        self.hooks.tell(ended).await;
        self.life.swap_context();
        self.life.save().await;
        next
    }

    async fn work(
        &mut self,
        context: &[String],
        record: &mut Record,
    ) -> Result<(TurnEndReason, Next), Interrupt> {
        self.tally.iterations += 1;
        let (request, offered) = self.assemble(context).await?;
        let answer = self.ask_model(&request).await?;
        self.tally.has_overflowed = false;
        let message = self.store_answer(answer).await;
        record.message = Some(message.clone());
        if self.cancel.is_cancelled() {
            self.answer_unrun_calls(&message).await;
            return Err(Interrupt::Canceled);
        }
        if message.tool_calls.is_empty() {
            self.finish_speaking(message.content).await
        } else {
            self.use_tools(&message.tool_calls, &offered, record).await
        }
    }

    /// Says how the turn ended that something interrupted. A context that is too long is compacted once
    /// and the turn tried again.
    async fn interrupted(&mut self, mut interrupt: Interrupt) -> (TurnEndReason, Next) {
        let is_overflow = matches!(&interrupt, Interrupt::Failed(error) if error.kind == ModelErrorKind::ContextOverflow);
        if is_overflow && !std::mem::replace(&mut self.tally.has_overflowed, true) {
            let order = Order::for_overflow();
            match self.life.compact(&order, &self.hooks, self.cancel).await {
                Ok(_) => return (TurnEndReason::Error, Next::Again),
                Err(CompactionError::Canceled) => interrupt = Interrupt::Canceled,
                Err(_) => {}
            }
        }
        let reason = match &interrupt {
            Interrupt::Canceled => TurnEndReason::Canceled,
            Interrupt::Blocked { .. } => TurnEndReason::HookBlocked,
            Interrupt::Failed(_) => TurnEndReason::Error,
        };
        let end = self.conclude(interrupt).await;
        (reason, Next::End(end))
    }

    /// Puts together what the model gets, and the names of the tools it is offered.
    async fn assemble(
        &mut self,
        turn_context: &[String],
    ) -> Result<(ModelRequest, Vec<String>), Interrupt> {
        let mut messages = Vec::new();
        if !self.system_prompt.is_empty() {
            messages.push(Message::system(self.system_prompt.clone()));
        }
        messages.extend(self.life.session.contexts());
        let transient = self.prompt_context.iter().chain(turn_context);
        messages.extend(transient.map(|text| Message::system(text.clone())));
        messages.extend(self.life.session.conversation());
        let messages = Messages::from(messages);
        let build = || Context {
            messages: messages.clone(),
        };
        let outcome = self.hooks.fire(build).await;
        self.check_cancelled()?;
        let messages = outcome
            .into_rewritten()
            .map_or(messages, |event| event.messages);
        let messages = self.before_model(messages).await?;
        let offered = self.select_tools().await?;
        let toolbox = &self.life.setup.toolbox;
        let request = ModelRequest {
            messages,
            tools: offered
                .iter()
                .filter_map(|name| toolbox.spec(name))
                .collect(),
            purpose: Purpose::Turn,
            subagent: self.life.identity.subagent().map(str::to_owned),
            ..ModelRequest::default()
        };
        Ok((request, offered))
    }

    async fn before_model(&self, messages: Messages) -> Result<Messages, Interrupt> {
        let build = || BeforeLlmCall {
            model_id: self.selected.id(),
            iteration: self.tally.iterations,
            messages: messages.clone(),
        };
        let outcome = self.hooks.fire(build).await;
        self.check(&outcome)?;
        Ok(outcome
            .into_rewritten()
            .map_or(messages, |event| event.messages))
    }

    async fn select_tools(&self) -> Result<Vec<String>, Interrupt> {
        let build = || ToolSelection {
            tools: self.tools.clone(),
        };
        let outcome = self.hooks.fire(build).await;
        self.check_cancelled()?;
        let mut tools = outcome
            .into_rewritten()
            .map_or_else(|| self.tools.clone(), |event| event.tools);
        tools.retain(|name| self.life.may_use(name) && self.life.setup.toolbox.get(name).is_some());
        Ok(tools)
    }

    async fn ask_model(&mut self, request: &ModelRequest) -> Result<Answer, Interrupt> {
        let asker = Asker {
            setup: &self.life.setup,
            selected: &self.selected,
            agent: &self.life.identity.name,
            hooks: &self.hooks,
            cancel: self.cancel,
        };
        let answer = asker.ask(request).await.map_err(|error| match error {
            AskError::Canceled => Interrupt::Canceled,
            AskError::Failed(error) => Interrupt::Failed(error),
        })?;
        let answered = || AfterLlmCall {
            model_id: self.selected.id(),
            response: answer.message.content.clone(),
            last_user_message: self.last_user_message(),
            usage: answer.usage,
            cost: self.selected.cost(answer.usage.as_ref()),
        };
        self.hooks.tell(answered).await;
        Ok(answer)
    }

    async fn store_answer(&mut self, answer: Answer) -> Message {
        self.tally.charge(self.selected.cost(answer.usage.as_ref()));
        match answer.usage {
            Some(usage) => {
                self.tally.add(&usage);
                self.life.note_usage(usage);
            }
            None => self.life.spend_estimate(&answer.message),
        }
        let message = self.hooks.finish_message(answer.message).await;
        self.life.session.push(message.clone());
        self.hooks
            .frontend()
            .message(&self.life.identity.name, &message);
        message
    }

    fn last_user_message(&self) -> Option<String> {
        self.life
            .session
            .last_of(Role::User)
            .map(|message| message.content.clone())
    }

    /// The model asked for no tool: hooks and queues say whether there is more to do.
    async fn finish_speaking(
        &mut self,
        response: String,
    ) -> Result<(TurnEndReason, Next), Interrupt> {
        let build = || Stop {
            messages: self.life.session.shared_messages(),
            response,
            last_user_message: self.last_user_message(),
            stop_hook_active: self.tally.stop_hooks > 0,
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
            return Ok((TurnEndReason::Continue, Next::Again));
        }
        if self.take_steering().await? {
            return Ok((TurnEndReason::Steered, Next::Again));
        }
        if self.take_follow_up().await? {
            return Ok((TurnEndReason::Continue, Next::Again));
        }
        Ok((TurnEndReason::Normal, Next::End(RunEnd::Completed)))
    }

    /// Counts a wish of stop hooks to go on, unless there were too many in a row.
    async fn may_stop_hooks_go_on(&mut self) -> bool {
        let most = self.life.setup.limits.stop_hooks;
        if self.tally.stop_hooks >= most {
            let text =
                format!("stop hooks kept the agent going {most} times in a row; it stops now");
            self.hooks
                .notify(NotificationLevel::Warning, "stop_hook_cap", &text)
                .await;
            return false;
        }
        self.tally.stop_hooks += 1;
        true
    }

    async fn use_tools(
        &mut self,
        calls: &[ToolCall],
        offered: &[String],
        record: &mut Record,
    ) -> Result<(TurnEndReason, Next), Interrupt> {
        let called = self.call_tools(calls, offered).await;
        self.store_results(calls, &called).await;
        let stop = called.iter().find_map(|called| called.stop.clone());
        // One result that wants the end takes nothing from the model that the others have for it.
        let terminates = called.iter().all(|called| called.result.terminate);
        record.results = called.into_iter().map(|called| called.result).collect();
        if self.cancel.is_cancelled() {
            return Err(Interrupt::Canceled);
        }
        if let Some(stop) = stop {
            return Err(Interrupt::Blocked {
                event: stop.event,
                reason: stop.reason,
            });
        }
        if terminates {
            return Ok((TurnEndReason::Normal, Next::End(RunEnd::Completed)));
        }
        if let Some(tool) = self.find_loop(calls) {
            let text = format!("the model repeated the same call of `{tool}`");
            self.hooks.report_error("loop_detected", &text, false).await;
            return Ok((
                TurnEndReason::LoopDetected,
                Next::End(RunEnd::LoopDetected { tool }),
            ));
        }
        let is_steered = self.take_steering().await?;
        let reason = if is_steered {
            TurnEndReason::Steered
        } else {
            TurnEndReason::Continue
        };
        Ok((reason, Next::Again))
    }

    async fn call_tools(&self, calls: &[ToolCall], offered: &[String]) -> Vec<Called> {
        let delegation = Delegation {
            setup: &self.life.setup,
            parent: &self.life.identity,
            hooks: &self.hooks,
            cancel: self.cancel,
            tools: offered,
            tasks: &self.life.tasks,
        };
        let bench = Bench {
            setup: &self.life.setup,
            agent: &self.life.identity.name,
            hooks: &self.hooks,
            cancel: self.cancel,
            offered,
            listens: self.life.identity.subagent().is_none(),
            in_background: self.life.identity.in_background,
            delegate: &delegation,
        };
        bench.call_all(calls).await
    }

    /// Answers the calls of a message that came too late, so that each call has its result.
    async fn answer_unrun_calls(&mut self, message: &Message) {
        let called = self.call_tools(&message.tool_calls, &[]).await;
        self.store_results(&message.tool_calls, &called).await;
    }

    async fn store_results(&mut self, calls: &[ToolCall], called: &[Called]) {
        for (call, called) in calls.iter().zip(called) {
            let text = called.result.joined_text();
            let mut message = Message::tool(call.id.clone(), text, called.result.is_error);
            message.images = called.result.content.iter().filter_map(image_of).collect();
            self.record(message).await;
        }
        for text in called.iter().flat_map(|called| &called.contexts) {
            self.record(Message::system(text.clone())).await;
        }
    }

    /// Returns the tool that was called too often in the same way.
    fn find_loop(&mut self, calls: &[ToolCall]) -> Option<String> {
        let most = self.life.setup.limits.repeated_calls;
        let restrictions = &self.life.identity.restrictions;
        let most = restrictions.at_most(most, |one| one.repeated_calls);
        let toolbox = &self.life.setup.toolbox;
        let mut counted = calls.iter().filter(|call| {
            let tool = toolbox.get(&call.name);
            !tool.is_some_and(|tool| tool.may_repeat())
        });
        let repeated = counted.find(|call| self.repeats.count(call) >= most)?;
        Some(repeated.name.clone())
    }
}

fn image_of(block: &ContentBlock) -> Option<Image> {
    match block {
        ContentBlock::Image { image } => Some(image.clone()),
        ContentBlock::Text { .. } | _ => None,
    }
}
