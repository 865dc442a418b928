//! The user's side of an agent: shows what it does and answers its questions.

use std::fmt;
use std::sync::Arc;

use futures_util::future::{self, BoxFuture};
use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use tenterhook_engine::tool_call::AskedBy;
use tenterhook_protocol::event::NotificationLevel;
use tenterhook_protocol::{EventKind, JsonObject, Message, ToolCall, ToolResult, ToolUseId};

pub use crate::drawing::{DrawingFrame, ScreenSize, ScriptDrawing};

/// The events whose hooks may change a tool's result. If any of their hooks can change it, partial results go only to
/// hooks of `tool_execution_update`. So no one else sees text that a hook later removes from the result.
pub const RESULT_EVENTS: [EventKind; 2] =
    [EventKind::ToolResponseTransform, EventKind::PostToolUse];

/// Shows what an agent does and answers its questions.
///
/// Methods that show something must not block; by default, they do nothing. They are called in the order in which
/// things happen, so the methods of parallel tool calls interleave.
pub trait Frontend: Send + Sync {
    /// Shows a piece of the model's answer.
    fn text_delta(&self, _agent: &str, _text: &str) {}

    /// Shows a piece of the model's reasoning.
    fn reasoning_delta(&self, _agent: &str, _text: &str) {}

    /// Shows a complete message of the model, as the session keeps it.
    fn message(&self, _agent: &str, _message: &Message) {}

    /// Delivers a complete message of the model. The run waits for it, so the message's tool calls start afterwards. The
    /// default does nothing.
    fn deliver<'a>(&'a self, _agent: &'a str, _message: &'a Message) -> BoxFuture<'a, ()> {
        Box::pin(future::ready(()))
    }

    /// Prepares for another turn of the run, or for a compaction before it. By now, the conversation is stored, unless it
    /// is compacted. The run waits for it. The default does nothing.
    fn turn_starting<'a>(&'a self, _agent: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(future::ready(()))
    }

    /// Notes that the agent has heard a message that was added while it worked. `extra` is the message's own.
    fn heard(&self, _agent: &str, _extra: &JsonObject) {}

    /// Shows that a model call failed and is retried: the number of the retry from 1, and the maximum. Without an error,
    /// it shows that the retry succeeded.
    fn model_retry(&self, _agent: &str, _number: u32, _max: u32, _error: Option<&str>) {}

    /// Shows a message of an extension. It is called only for messages that the extension wants to be shown.
    fn extension_message(&self, _agent: &str, _message: &Message) {}

    /// Shows a message of an extension in the form that the extension renders. By default, the message itself is shown.
    fn extension_lines(&self, agent: &str, message: &Message, _lines: &[String]) {
        self.extension_message(agent, message);
    }

    /// Returns whether calls and results are shown in the form that their tools render. The default is `false`, so that
    /// nothing is rendered.
    fn shows_tool_lines(&self) -> bool {
        false
    }

    /// Shows that a tool call begins, with the lines that its tool renders. By default, the call itself is shown.
    fn tool_start_lines(&self, agent: &str, call: &ToolCall, _lines: &[String]) {
        self.tool_start(agent, call);
    }

    /// Shows the end of a tool call, with the lines that its tool renders. By default, the result itself is shown.
    fn tool_end_lines(&self, agent: &str, call: &ToolCall, result: &ToolResult, _lines: &[String]) {
        self.tool_end(agent, call, result);
    }

    /// Shows that a tool call begins. Hooks may still change its arguments.
    fn tool_start(&self, _agent: &str, _call: &ToolCall) {}

    /// Shows that hooks changed the arguments of a call. It runs with `input`.
    fn tool_rewritten(&self, _agent: &str, _call: &ToolCall, _input: &JsonObject) {}

    /// Returns whether to show partial results of tools. The default is `false`, so that tools need not produce them.
    fn shows_progress(&self) -> bool {
        false
    }

    /// Shows the partial result of a running tool: everything so far, or the end of it. It is not called if hooks may
    /// change results, because they may remove text from them.
    fn tool_update(&self, _agent: &str, _call: &ToolCall, _partial: &ToolResult) {}

    /// Shows the end of a tool call, with the result that the model gets.
    fn tool_end(&self, _agent: &str, _call: &ToolCall, _result: &ToolResult) {}

    /// Shows that a tool call was denied.
    fn tool_denied(&self, _agent: &str, _denial: &Denial<'_>) {}

    /// Shows a hook's notice to the user.
    fn hook_notice(&self, _event: &'static str, _text: &str) {}

    /// Shows that a hook failed.
    fn hook_failure(&self, _event: &'static str, _failure: &HookFailure<'_>) {}

    /// Shows a notification of the agent, such as a warning, an error or a retry.
    fn notification(&self, _level: NotificationLevel, _text: &str) {}

    /// Shows a line that a script printed. `worker` is the process in which it runs.
    fn script_output(&self, _worker: &str, _line: &str) {}

    /// Shows something that a script displays next to the conversation. By default, only notices are shown.
    fn display<'a>(&'a self, display: &'a ScriptDisplay) -> BoxFuture<'a, ()> {
        if let ScriptDisplay::Notice { level, message } = display {
            self.notification(*level, message);
        }
        Box::pin(future::ready(()))
    }

    /// Returns the text that the user is writing as the next prompt. The default is empty.
    fn editor_text(&self) -> String {
        String::new()
    }

    /// Returns whether someone can answer questions. If not, every question counts as denied.
    fn is_interactive(&self) -> bool;

    /// Asks whether a tool call may run. Called only if [`is_interactive`](Self::is_interactive), one question at a
    /// time. If the run is cancelled, the future is dropped.
    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval>;

    /// Returns whether scripts can draw on the screen. The default is `false`.
    fn can_draw(&self) -> bool {
        false
    }

    /// Shows what a script draws and passes the user's keys to it, until the script closes the drawing or the user
    /// interrupts it. Called only if [`can_draw`](Self::can_draw), and not while a question is open. If the script's
    /// call is over, the future is dropped.
    fn draw<'a>(&'a self, _drawing: &'a Arc<ScriptDrawing>) -> BoxFuture<'a, ()> {
        Box::pin(future::ready(()))
    }

    /// Asks the user a question of a script, one question at a time. Returns `None` if there is no answer, which is
    /// the default. If the script withdraws the question, the future is dropped.
    fn question<'a>(&'a self, _question: &'a ScriptQuestion) -> BoxFuture<'a, Option<String>> {
        Box::pin(future::ready(None))
    }

    /// Shows that a script has withdrawn the question that the user was asked.
    fn question_withdrawn(&self) {}

    /// Asks whether the agent may continue after `limit` model calls, and for how many more. The default is no.
    fn more_iterations(&self, _limit: u32) -> BoxFuture<'_, Option<u32>> {
        Box::pin(future::ready(None))
    }
}

/// A tool call that does not run.
#[derive(Debug, Clone, PartialEq)]
pub struct Denial<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// The event whose hook denied the call, if a hook did.
    pub event: Option<&'static str>,
    /// The hook, if it is known.
    pub hook: Option<&'a str>,
    /// The reason, for the user.
    pub reason: &'a str,
}

/// A hook that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFailure<'a> {
    /// The hook.
    pub hook: &'a str,
    /// Why it failed.
    pub cause: &'a str,
    /// Whether the operation of a gate proceeded nevertheless.
    pub let_through: bool,
}

/// The question whether a tool call may run.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRequest<'a> {
    /// The agent that requests the call.
    pub agent: &'a str,
    /// The call.
    pub call: &'a ToolUseId,
    /// The tool.
    pub tool: &'a str,
    /// The arguments with which it would run, after all changes by hooks.
    pub input: &'a JsonObject,
    /// Why the user is asked: a hook's or a rule's reason, if there is one.
    pub reason: Option<&'a str>,
    /// Who requires the question.
    pub by: AskedBy<'a>,
    /// The metadata that hooks add to the question.
    pub metadata: &'a JsonObject,
    /// The rule that [`Approval::AllowSession`] stands for.
    pub suggestion: &'a str,
}

/// The user's answer to an [`ApprovalRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// The call may run.
    AllowOnce,
    /// The call may run, and so may similar calls for the rest of the session.
    AllowSession,
    /// The call may not run. The model gets the reason.
    Deny {
        /// The user's reason, if there is one.
        reason: Option<String>,
    },
    /// No one could be asked, so the call may not run.
    Unavailable,
}

/// A question of a script to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScriptQuestion {
    /// A yes-or-no question. The answer is `yes` or `no`.
    Confirm {
        /// The title.
        title: String,
        /// The question.
        message: String,
    },
    /// A choice. The answer is one of the options.
    Select {
        /// The title.
        title: String,
        /// The possible answers.
        options: Vec<String>,
    },
    /// A line of text.
    Input {
        /// The title.
        title: String,
        /// The text that is shown in the empty input field.
        placeholder: Option<String>,
    },
    /// A text of several lines.
    Editor {
        /// The title.
        title: String,
        /// The text that the user changes.
        text: String,
    },
}

/// An answer that does not fit its question. Has what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`answer` is not {0}")]
pub struct UnfittingAnswer(pub &'static str);

impl ScriptQuestion {
    /// Reads the answer of a program: an object with `answer`. A missing or null `answer` dismisses the question.
    ///
    /// # Errors
    ///
    /// Fails if the answer does not fit the question.
    pub fn read_answer(&self, answer: &Value) -> Result<Option<String>, UnfittingAnswer> {
        let answer = match answer.get("answer") {
            None | Some(Value::Null) => return Ok(None),
            Some(answer) => answer,
        };
        match (self, answer) {
            (Self::Confirm { .. }, Value::Bool(yes)) => {
                Ok(Some(if *yes { "yes" } else { "no" }.to_owned()))
            }
            (Self::Confirm { .. }, _) => Err(UnfittingAnswer("true or false")),
            (Self::Select { options, .. }, Value::String(choice)) if !options.contains(choice) => {
                Err(UnfittingAnswer("one of the options"))
            }
            (_, Value::String(text)) => Ok(Some(text.clone())),
            _ => Err(UnfittingAnswer("a string")),
        }
    }
}

/// Something that a script displays next to the conversation. Later values with the same key replace earlier ones, and
/// a missing value removes them. Nothing in them is safe to print on a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScriptDisplay {
    /// A message.
    Notice {
        /// How serious it is.
        level: NotificationLevel,
        /// The message.
        message: String,
    },
    /// A short text that stays visible.
    Status {
        /// The name of the status, which its script chose.
        key: String,
        /// The text.
        #[serde(default)]
        text: Option<String>,
    },
    /// Lines next to the prompt.
    Widget {
        /// The name of the widget, which its script chose.
        key: String,
        /// The lines.
        #[serde(default)]
        lines: Option<Vec<String>>,
        /// Where they belong.
        #[serde(default)]
        placement: WidgetPlacement,
    },
    /// A notification of the user's desktop, for example by the terminal.
    Alert {
        /// The number of the control sequence of terminals that shows it: 9, 99 or 777. 0 is the bell.
        code: u16,
        /// The text of the sequence.
        text: String,
    },
    /// The title of the window.
    Title {
        /// The title.
        text: String,
    },
    /// The text that is shown while the agent works, instead of the usual one.
    WorkingMessage {
        /// The text.
        #[serde(default)]
        text: Option<String>,
    },
    /// Text for the prompt that the user is writing.
    EditorText {
        /// The text.
        text: String,
        /// Whether it replaces what the user has written. Otherwise it is added.
        replaces: bool,
    },
}

/// Where a script's widget belongs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WidgetPlacement {
    /// Above the prompt.
    #[default]
    Above,
    /// Below the prompt.
    Below,
    /// At the beginning of the session.
    Header,
    /// In the last lines above the prompt.
    Footer,
}

/// A frontend that shows nothing and answers no questions, so every question counts as denied.
#[derive(Debug, Clone, Copy, Default)]
pub struct NonInteractive;

impl Frontend for NonInteractive {
    fn is_interactive(&self) -> bool {
        false
    }

    fn approve<'a>(&'a self, _request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(future::ready(Approval::Deny { reason: None }))
    }
}

impl fmt::Debug for dyn Frontend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Frontend")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_is_answered_by_one_of_its_answers_or_not_at_all() {
        let confirm = ScriptQuestion::Confirm {
            title: String::new(),
            message: String::new(),
        };
        let select = ScriptQuestion::Select {
            title: String::new(),
            options: vec!["a".to_owned()],
        };
        let input = ScriptQuestion::Input {
            title: String::new(),
            placeholder: None,
        };
        for (asked, answer, expected) in [
            (&confirm, json!({"answer": true}), Some(Some("yes"))),
            (&confirm, json!({"answer": false}), Some(Some("no"))),
            (&confirm, json!({"answer": "yes"}), None),
            (&confirm, json!({"answer": 1}), None),
            (&select, json!({"answer": "a"}), Some(Some("a"))),
            (&select, json!({"answer": "b"}), None),
            (&input, json!({"answer": ""}), Some(Some(""))),
            (&input, json!({"answer": 1}), None),
            (&input, json!({"answer": null}), Some(None)),
            (&input, json!({}), Some(None)),
        ] {
            let read = asked.read_answer(&answer).ok();
            let read = read.as_ref().map(|read| read.as_deref());
            assert_eq!(read, expected, "{answer}");
        }
    }
}
