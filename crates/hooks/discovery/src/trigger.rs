//! The five moments at which kodelet runs hooks, each as a function that a program calls.

use std::path::PathBuf;

use serde_json::Value;
use tenterhook_engine::{
    Decision, Dispatcher, InvokedBy, JsonObject, Message, Origin, ToolResult, ToolUseId,
};
use tenterhook_protocol::UniqueObject;
use tenterhook_protocol::event::{
    PostToolUse, PreToolUse, Stop, ToolGuard, TurnEnd, UserPromptSubmit,
};

use crate::manager::HookManager;

/// A hook stopped an operation. The reason is never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("blocked by hook: {reason}")]
pub struct Blocked {
    /// The reason.
    pub reason: String,
}

/// The conversation to which the moments belong.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conversation {
    /// Its id.
    pub id: String,
    /// The working directory of its agent.
    pub working_dir: PathBuf,
    /// Whether another agent gave the agent its task.
    pub is_subagent: bool,
    /// The recipe that it runs.
    pub recipe: Option<String>,
}

impl From<Conversation> for Origin {
    fn from(conversation: Conversation) -> Self {
        let invoked_by = if conversation.is_subagent {
            InvokedBy::Subagent
        } else {
            InvokedBy::Main
        };
        Self::new(conversation.id, conversation.working_dir)
            .with_invoked_by(invoked_by)
            .with_recipe(conversation.recipe)
    }
}

/// Runs the hooks of one conversation at the moments that kodelet defines. The default has no
/// hooks, so it neither blocks nor changes anything.
#[derive(Debug, Clone, Default)]
pub struct Trigger {
    hooks: Option<(Dispatcher, Conversation)>,
}

impl Trigger {
    /// Creates a trigger for a conversation.
    pub fn new(manager: &HookManager, conversation: Conversation) -> Self {
        let dispatcher = manager.dispatcher(conversation.clone().into());
        Self {
            hooks: Some((dispatcher, conversation)),
        }
    }

    /// Sets the id of the conversation for all later moments.
    pub fn set_conversation_id(&mut self, id: impl Into<String>) {
        if let Some((dispatcher, conversation)) = &mut self.hooks {
            conversation.id = id.into();
            *dispatcher = dispatcher.with_origin(conversation.clone().into());
        }
    }

    /// Runs the hooks before a message of the user is sent.
    ///
    /// # Errors
    /// Fails if a hook blocks the message. Then it must neither be stored nor reach the model.
    pub async fn user_message_send(&self, message: &str) -> Result<(), Blocked> {
        let Some((dispatcher, _)) = &self.hooks else {
            return Ok(());
        };
        let event = || UserPromptSubmit::new(message.to_owned());
        let outcome = dispatcher.dispatch_with(event).await;
        outcome
            .decision()
            .reason()
            .map_or(Ok(()), |reason| Err(blocked(reason)))
    }

    /// Runs the hooks before a tool call. `input` is the JSON that the model wrote. Returns the input with
    /// which to run the tool.
    ///
    /// # Errors
    /// Fails if a hook blocks the call. If there are hooks, also fails if the input is not a JSON object,
    /// because the hooks could not check it.
    pub async fn before_tool_call(
        &self,
        tool: &str,
        input: &str,
        call_id: &str,
    ) -> Result<String, Blocked> {
        let unchanged = || Ok(input.to_owned());
        let Some((dispatcher, _)) = &self.hooks else {
            return unchanged();
        };
        if !dispatcher.is_hooked::<PreToolUse>() && !dispatcher.is_hooked::<ToolGuard>() {
            return unchanged();
        }
        let tool_input = match serde_json::from_str(input) {
            Ok(UniqueObject(tool_input)) => tool_input,
            Err(error) => {
                return Err(blocked(&format!(
                    "hooks cannot check the input of the tool: expected a JSON object, {error}"
                )));
            }
        };
        let event = PreToolUse::new(tool.to_owned())
            .with_tool_use_id(ToolUseId::new(call_id))
            .with_tool_input(tool_input.clone());
        let outcome = dispatcher.dispatch(event).await;
        judge(outcome.decision())?;
        let rewritten = outcome.into_rewritten().map(|event| event.tool_input);
        // Guards check the input that the tool would really receive.
        let guard = || {
            ToolGuard::new(tool.to_owned())
                .with_tool_use_id(ToolUseId::new(call_id))
                .with_tool_input(rewritten.clone().unwrap_or(tool_input))
        };
        let guarded = dispatcher.dispatch_with(guard).await;
        judge(guarded.decision())?;
        rewritten.map_or_else(unchanged, |input| Ok(Value::Object(input).to_string()))
    }

    /// Runs the hooks after a tool call. Returns the result to use instead of the tool's own, if a hook
    /// changed it.
    pub async fn after_tool_call(
        &self,
        tool: &str,
        input: &str,
        result: &ToolResult,
        call_id: &str,
    ) -> Option<ToolResult> {
        let (dispatcher, _) = self.hooks.as_ref()?;
        let event = || {
            PostToolUse::new(tool.to_owned())
                .with_tool_use_id(ToolUseId::new(call_id))
                .with_tool_input(serde_json::from_str::<JsonObject>(input).unwrap_or_default())
                .with_result(result.clone())
        };
        let outcome = dispatcher.dispatch_with(event).await;
        outcome.into_rewritten().map(|event| event.result)
    }

    /// Reports a tool call that a hook or the program's own rules blocked, for hooks that keep a record.
    pub async fn tool_call_blocked(
        &self,
        tool: &str,
        input: &str,
        blocked: &Blocked,
        call_id: &str,
    ) {
        let Some((dispatcher, _)) = &self.hooks else {
            return;
        };
        let event = || {
            PostToolUse::new(tool.to_owned())
                .with_tool_use_id(ToolUseId::new(call_id))
                .with_tool_input(serde_json::from_str::<JsonObject>(input).unwrap_or_default())
                .with_result(ToolResult::error(&blocked.reason))
                .with_blocked(true)
        };
        let _notified = dispatcher.dispatch_with(event).await;
    }

    /// Runs the hooks when the model has finished. Returns follow-up messages that keep the agent running,
    /// without empty ones. The caller must limit how often this happens in a row.
    pub async fn agent_stop(&self, messages: Vec<Message>) -> Vec<String> {
        let Some((dispatcher, _)) = &self.hooks else {
            return Vec::new();
        };
        let event = || Stop::new().with_messages(messages);
        let outcome = dispatcher.dispatch_with(event).await;
        let texts = outcome.follow_up().iter();
        texts
            .filter(|text| !text.trim().is_empty())
            .cloned()
            .collect()
    }

    /// Reports the end of a turn: the answer of the model, and the number of the exchange within the
    /// message, counted from 1.
    pub async fn turn_end(&self, response: &str, turn_number: u32) {
        let Some((dispatcher, _)) = &self.hooks else {
            return;
        };
        let event = || {
            TurnEnd::new()
                .with_turn_index(turn_number.saturating_sub(1))
                .with_turn_number(turn_number)
                .with_response(response.to_owned())
        };
        let _notified = dispatcher.dispatch_with(event).await;
    }
}

/// Blocks if the decision is to stop or to ask, because there is no one to ask here.
fn judge(decision: Decision) -> Result<(), Blocked> {
    match decision {
        Decision::Proceed => Ok(()),
        Decision::Ask { reason, .. } | Decision::Stop { reason, .. } => Err(Blocked { reason }),
    }
}

fn blocked(reason: &str) -> Blocked {
    Blocked {
        reason: reason.to_owned(),
    }
}
