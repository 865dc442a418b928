//! The five moments of kodelet's document, each a call that a program makes where it happens.

use std::path::PathBuf;

use serde_json::Value;
use tenterhook::{
    Decision, Dispatcher, InvokedBy, Message, Origin, SessionId, ToolResult, ToolUseId,
};
use tenterhook_protocol::UniqueObject;
use tenterhook_protocol::event::{
    PostToolUse, PreToolUse, Stop, ToolGuard, TurnEnd, UserPromptSubmit,
};

use crate::manager::HookManager;

/// Why something does not happen. The reason is never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("blocked by hook: {reason}")]
pub struct Blocked {
    /// The reason.
    pub reason: String,
}

/// Whose life the moments belong to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conversation {
    /// Its id.
    pub id: String,
    /// The directory that its agent works in.
    pub working_dir: PathBuf,
    /// Another agent gave the agent its task.
    pub is_subagent: bool,
    /// The recipe that it runs.
    pub recipe: Option<String>,
}

impl From<Conversation> for Origin {
    fn from(conversation: Conversation) -> Self {
        Self {
            session_id: SessionId::new(conversation.id),
            cwd: conversation.working_dir,
            invoked_by: if conversation.is_subagent {
                InvokedBy::Subagent
            } else {
                InvokedBy::Main
            },
            recipe: conversation.recipe,
            ..Self::default()
        }
    }
}

/// Sends the moments of one conversation to its hooks. The default one has no hooks: it blocks and changes nothing.
#[derive(Debug, Clone, Default)]
pub struct Trigger {
    hooks: Option<(Dispatcher, Conversation)>,
}

impl Trigger {
    /// Makes a trigger of a conversation.
    pub fn new(manager: &HookManager, conversation: Conversation) -> Self {
        let dispatcher = manager.dispatcher(conversation.clone().into());
        Self {
            hooks: Some((dispatcher, conversation)),
        }
    }

    /// Gives the conversation another id; later moments carry it.
    pub fn set_conversation_id(&mut self, id: impl Into<String>) {
        if let Some((dispatcher, conversation)) = &mut self.hooks {
            conversation.id = id.into();
            *dispatcher = dispatcher.with_origin(conversation.clone().into());
        }
    }

    /// The user is about to send a message.
    ///
    /// # Errors
    /// When a hook blocks it: the message must not be stored, nor reach the model.
    pub async fn user_message_send(&self, message: &str) -> Result<(), Blocked> {
        let Some((dispatcher, _)) = &self.hooks else {
            return Ok(());
        };
        let event = || UserPromptSubmit {
            prompt: message.to_owned(),
        };
        let outcome = dispatcher.dispatch_with(event).await;
        outcome
            .decision()
            .reason()
            .map_or(Ok(()), |reason| Err(blocked(reason)))
    }

    /// A tool is about to run with this input, as the model wrote it: JSON. Returns the input to run it with.
    ///
    /// # Errors
    /// When a hook blocks the call, or when there are hooks and the input is no JSON object: they could not judge it.
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
                    "no hook can judge the input of the tool: expected a JSON object, {error}"
                )));
            }
        };
        let event = PreToolUse {
            tool_use_id: ToolUseId::new(call_id),
            tool_name: tool.to_owned(),
            tool_input: tool_input.clone(),
            ..PreToolUse::default()
        };
        let outcome = dispatcher.dispatch(event).await;
        judge(outcome.decision())?;
        let rewritten = outcome.into_rewritten().map(|event| event.tool_input);
        // Guards judge what the tool would really get.
        let guard = || ToolGuard {
            tool_use_id: ToolUseId::new(call_id),
            tool_name: tool.to_owned(),
            tool_input: rewritten.clone().unwrap_or(tool_input),
            ..ToolGuard::default()
        };
        let guarded = dispatcher.dispatch_with(guard).await;
        judge(guarded.decision())?;
        rewritten.map_or_else(unchanged, |input| Ok(Value::Object(input).to_string()))
    }

    /// A tool ran, or was blocked. Returns the result to use in the place of its own, if a hook changed it.
    pub async fn after_tool_call(
        &self,
        tool: &str,
        input: &str,
        result: &ToolResult,
        call_id: &str,
    ) -> Option<ToolResult> {
        let (dispatcher, _) = self.hooks.as_ref()?;
        let event = || PostToolUse {
            tool_use_id: ToolUseId::new(call_id),
            tool_name: tool.to_owned(),
            tool_input: serde_json::from_str(input).unwrap_or_default(),
            result: result.clone(),
            ..PostToolUse::default()
        };
        let outcome = dispatcher.dispatch_with(event).await;
        outcome.into_rewritten().map(|event| event.result)
    }

    /// A tool call was blocked, by a hook or by the program's own rules: those who keep a record hear of it too.
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
        let event = || PostToolUse {
            tool_use_id: ToolUseId::new(call_id),
            tool_name: tool.to_owned(),
            tool_input: serde_json::from_str(input).unwrap_or_default(),
            result: ToolResult::error(&blocked.reason),
            blocked: true,
            ..PostToolUse::default()
        };
        let _told = dispatcher.dispatch_with(event).await;
    }

    /// The model is done. Returns the messages of the user that keep the agent going; empty ones are dropped. How often
    /// in a row is the caller's to bound.
    pub async fn agent_stop(&self, messages: Vec<Message>) -> Vec<String> {
        let Some((dispatcher, _)) = &self.hooks else {
            return Vec::new();
        };
        let event = || Stop {
            messages: messages.into(),
            ..Stop::default()
        };
        let outcome = dispatcher.dispatch_with(event).await;
        let texts = outcome.follow_up().iter();
        texts
            .filter(|text| !text.trim().is_empty())
            .cloned()
            .collect()
    }

    /// A turn is over: the answer of the model and the number of the exchange within the message, from 1.
    pub async fn turn_end(&self, response: &str, turn_number: u32) {
        let Some((dispatcher, _)) = &self.hooks else {
            return;
        };
        let event = || TurnEnd {
            turn_index: turn_number.saturating_sub(1),
            turn_number,
            response: response.to_owned(),
            ..TurnEnd::default()
        };
        let _told = dispatcher.dispatch_with(event).await;
    }
}

/// Blocks on a stop, and on a question too: there is no one to ask here.
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
