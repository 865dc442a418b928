//! The table of the methods that a program may call, and the code of the methods that change the conversation.

use serde_json::{Value, json};
use tenterhook_agent::{SessionSwitchError, SessionSwitched, ThinkingLevel};
use tenterhook_engine::{EntryId, JsonObject};

use super::super::record::ConversationRecord;
use super::super::state::Conversation;
use tenterhook_jsonrpc::{RpcError, RpcRequest};
use tenterhook_setup::exit::Exit;

/// A valid request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Method {
    Prompt(String),
    Steer(String),
    FollowUp(String),
    Abort,
    GetState,
    GetMessages,
    ListCommands,
    NewSession,
    Resume(String),
    Fork(EntryId),
    Compact(Option<String>),
    ListModels,
    SetModel(String),
    NextModel,
    SetThinkingLevel(String),
    SetSessionName(String),
    /// Runs the prompts of scripts. No program can request this.
    RunScriptPrompts,
    Shutdown,
}

/// A request that is answered while another one changes the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConcurrentRequest {
    Steer(String),
    FollowUp(String),
    Abort,
    GetState,
}

/// When a request is handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scheduling {
    /// At any time, also while another request is being handled.
    Concurrent(ConcurrentRequest),
    /// When no other request is being handled.
    Exclusive(Method),
}

/// A method: its name, its parameter and whether the parameter is required, whether the method is concurrent, and how
/// its [`Method`] is made.
struct MethodRow {
    name: &'static str,
    param: Option<(&'static str, bool)>,
    is_concurrent: bool,
    make: fn(Option<String>) -> Method,
}

const fn row(
    name: &'static str,
    param: Option<(&'static str, bool)>,
    is_concurrent: bool,
    make: fn(Option<String>) -> Method,
) -> MethodRow {
    MethodRow {
        name,
        param,
        is_concurrent,
        make,
    }
}

const TEXT: Option<(&str, bool)> = Some(("text", true));

/// Every method.
const METHODS: &[MethodRow] = &[
    row("prompt", TEXT, false, |text| {
        Method::Prompt(text.unwrap_or_default())
    }),
    row("steer", TEXT, true, |text| {
        Method::Steer(text.unwrap_or_default())
    }),
    row("follow_up", TEXT, true, |text| {
        Method::FollowUp(text.unwrap_or_default())
    }),
    row("abort", None, true, |_| Method::Abort),
    row("get_state", None, true, |_| Method::GetState),
    row("get_messages", None, false, |_| Method::GetMessages),
    row("list_commands", None, false, |_| Method::ListCommands),
    row("new_session", None, false, |_| Method::NewSession),
    row("resume", Some(("id", true)), false, |id| {
        Method::Resume(id.unwrap_or_default())
    }),
    row("fork", Some(("entry", true)), false, |entry| {
        Method::Fork(entry.unwrap_or_default().as_str().into())
    }),
    row(
        "compact",
        Some(("instructions", false)),
        false,
        Method::Compact,
    ),
    row("list_models", None, false, |_| Method::ListModels),
    row("set_model", Some(("name", true)), false, |name| {
        Method::SetModel(name.unwrap_or_default())
    }),
    row("next_model", None, false, |_| Method::NextModel),
    row(
        "set_thinking_level",
        Some(("level", true)),
        false,
        |level| Method::SetThinkingLevel(level.unwrap_or_default()),
    ),
    row("set_session_name", Some(("name", false)), false, |name| {
        Method::SetSessionName(name.unwrap_or_default())
    }),
    row("shutdown", None, false, |_| Method::Shutdown),
];

/// Returns the names of the methods that are allowed while another request is being handled.
pub(super) fn concurrent_method_names() -> String {
    names(|row| row.is_concurrent || row.name == "shutdown")
}

fn names(are_meant: impl Fn(&MethodRow) -> bool) -> String {
    let names = METHODS.iter().filter(|row| are_meant(row));
    let names: Vec<String> = names.map(|row| format!("`{}`", row.name)).collect();
    names.join(", ")
}

impl Method {
    /// Reads a request.
    pub(super) fn read(request: &RpcRequest) -> Result<Self, RpcError> {
        let fail = |failure: RpcError| Err(failure.about(&request.id));
        let Some(row) = METHODS.iter().find(|row| row.name == request.method) else {
            let text = format!(
                "unknown method `{}`; available: {}",
                request.method,
                names(|_| true)
            );
            return fail(RpcError::unknown_method(&text));
        };
        match row.argument(&request.params) {
            Ok(argument) => Ok((row.make)(argument)),
            Err(text) => fail(RpcError::invalid_params(&text)),
        }
    }

    /// Returns when the request is handled.
    pub(super) fn scheduling(self) -> Scheduling {
        match self {
            Self::Steer(text) => Scheduling::Concurrent(ConcurrentRequest::Steer(text)),
            Self::FollowUp(text) => Scheduling::Concurrent(ConcurrentRequest::FollowUp(text)),
            Self::Abort => Scheduling::Concurrent(ConcurrentRequest::Abort),
            Self::GetState => Scheduling::Concurrent(ConcurrentRequest::GetState),
            other @ (Self::Prompt(_)
            | Self::GetMessages
            | Self::ListCommands
            | Self::NewSession
            | Self::Resume(_)
            | Self::Fork(_)
            | Self::Compact(_)
            | Self::ListModels
            | Self::SetModel(_)
            | Self::NextModel
            | Self::SetThinkingLevel(_)
            | Self::SetSessionName(_)
            | Self::RunScriptPrompts
            | Self::Shutdown) => Scheduling::Exclusive(other),
        }
    }
}

impl MethodRow {
    /// Reads the parameter. Any other parameter is an error, because it would have no effect.
    fn argument(&self, params: &JsonObject) -> Result<Option<String>, String> {
        let allowed = self.param.map(|(name, _)| name);
        if let Some(other) = params.keys().find(|name| Some(name.as_str()) != allowed) {
            let expected = allowed.map_or("none".to_owned(), |name| format!("`{name}`"));
            return Err(format!(
                "`{}` has no parameter `{other}`, expected {expected}",
                self.name
            ));
        }
        let Some((name, is_needed)) = self.param else {
            return Ok(None);
        };
        match params.get(name) {
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
            None | Some(Value::Null) if !is_needed => Ok(None),
            None => Err(format!("`{}` needs the string `{name}`", self.name)),
            Some(other) => Err(format!(
                "`{name}` of `{}` is {other}, expected a non-empty string",
                self.name
            )),
        }
    }
}

/// Returns the result of a prompt: its runs, or why a command failed.
fn runs_of(record: &ConversationRecord) -> Result<Value, RpcError> {
    if record.runs.is_empty() {
        let text = |other: &'static str| record.problem.as_deref().unwrap_or(other);
        let failure = match record.exit {
            None | Some(Exit::Done) => record.problem.as_deref().map(RpcError::failed),
            Some(Exit::Usage) => Some(RpcError::invalid_params(text("the prompt is invalid"))),
            Some(Exit::Stopped) => Some(RpcError::stopped(text("a hook stopped it"))),
            Some(Exit::Interrupted) => Some(RpcError::cancelled(text("it was interrupted"))),
            Some(Exit::Failed | Exit::Config | Exit::Run | Exit::Locked) => {
                Some(RpcError::failed(text("the prompt failed")))
            }
        };
        if let Some(failure) = failure {
            return Err(failure);
        }
    }
    serde_json::to_value(&record.runs)
        .map(|runs| json!({"runs": runs}))
        .map_err(|error| RpcError::failed(&error.to_string()))
}

/// Returns the error of a failed switch to another session or branch.
fn not_moved(error: &SessionSwitchError) -> RpcError {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let text = format!("{error}{}", cause.unwrap_or_default());
    match error {
        SessionSwitchError::Blocked { .. } => RpcError::stopped(&text),
        SessionSwitchError::Cancelled => RpcError::cancelled(&text),
        SessionSwitchError::UnknownEntry(_)
        | SessionSwitchError::Current(_)
        | SessionSwitchError::NotStored => RpcError::invalid_params(&text),
        SessionSwitchError::Session(_) | SessionSwitchError::Summary(_) | _ => {
            RpcError::failed(&text)
        }
    }
}

impl Conversation<'_> {
    async fn compact_for_program(
        &mut self,
        instructions: Option<String>,
    ) -> Result<Value, RpcError> {
        let cancel = self.interrupts.token();
        match self.agent.compact(instructions, &cancel).await {
            Ok(_) => Ok(json!({"context_tokens": self.agent.context_tokens()})),
            Err(error) if cancel.is_cancelled() => Err(RpcError::cancelled(&error.to_string())),
            Err(error) => Err(RpcError::failed(&error.to_string())),
        }
    }

    /// Handles a request that changes the conversation.
    pub(super) async fn run_method(&mut self, method: Method) -> Result<Value, RpcError> {
        match method {
            Method::Prompt(text) => {
                let mut record = ConversationRecord::default();
                self.reload().await;
                self.handle_line(&text, &mut record).await;
                runs_of(&record)
            }
            Method::RunScriptPrompts => {
                self.reload().await;
                self.run_script_prompts(&mut ConversationRecord::default())
                    .await;
                Ok(json!({}))
            }
            Method::NewSession => {
                let cancel = self.interrupts.token();
                let done = self.agent.new_session(&cancel).await;
                self.switch_result(done.map(|()| SessionSwitched::default()))
            }
            Method::Resume(id) => {
                let cancel = self.interrupts.token();
                let done = match self.agent.find_session(&id) {
                    Ok(id) => self.agent.resume(&id, &cancel).await,
                    Err(error) => Err(error),
                };
                self.switch_result(done.map(|_| SessionSwitched::default()))
            }
            Method::Fork(entry) => {
                let cancel = self.interrupts.token();
                let done = self.agent.fork(&entry, &cancel).await;
                self.switch_result(done)
            }
            Method::Compact(instructions) => self.compact_for_program(instructions).await,
            Method::GetMessages => serde_json::to_value(self.agent.session().messages())
                .map(|messages| json!({"messages": messages}))
                .map_err(|error| RpcError::failed(&error.to_string())),
            Method::ListCommands => Ok(self.commands_for_program()),
            Method::ListModels => Ok(self.models_for_program()),
            Method::SetModel(name) => self.select_model(Some(&name)).await,
            Method::NextModel => self.select_model(None).await,
            Method::SetThinkingLevel(level) => self.select_thinking(&level).await,
            Method::SetSessionName(name) => {
                self.agent.name_session(&name).await;
                Ok(json!({"session_name": self.agent.session().name()}))
            }
            Method::Steer(_)
            | Method::FollowUp(_)
            | Method::Abort
            | Method::GetState
            | Method::Shutdown => Ok(json!({})),
        }
    }

    fn switch_result(
        &self,
        done: Result<SessionSwitched, SessionSwitchError>,
    ) -> Result<Value, RpcError> {
        let moved = done.map_err(|error| not_moved(&error))?;
        Ok(json!({"session_id": self.agent.session().id(), "words": moved.words}))
    }

    /// Returns the state of the session as JSON.
    pub(super) fn state(&self, is_busy: bool) -> Value {
        let session = self.agent.session();
        json!({
            "session_id": session.id(),
            "session_name": session.name(),
            "agent": self.agent.name(),
            "cwd": self.agent.cwd(),
            "model": self.agent.model().to_string(),
            "thinking_level": self.agent.thinking().map(ThinkingLevel::as_str),
            "is_busy": is_busy,
            "messages": session.messages().len(),
            "leaf": session.leaf(),
            "context_tokens": self.agent.context_tokens(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_takes_its_parameter_and_no_other() {
        let read = |method: &str, params: Value| {
            Method::read(&RpcRequest {
                id: 1.into(),
                method: method.to_owned(),
                params: params.as_object().cloned().unwrap_or_default(),
            })
        };
        for (method, params, expected) in [
            (
                "prompt",
                json!({"text": "hi"}),
                Method::Prompt("hi".to_owned()),
            ),
            ("compact", json!({}), Method::Compact(None)),
            (
                "compact",
                json!({"instructions": "short"}),
                Method::Compact(Some("short".to_owned())),
            ),
            ("abort", json!({}), Method::Abort),
        ] {
            assert_eq!(
                read(method, params.clone()),
                Ok(expected),
                "{method} {params}"
            );
        }
        for (method, params, words) in [
            ("promt", json!({}), "available: `prompt`, `steer`"),
            ("prompt", json!({}), "`prompt` needs the string `text`"),
            (
                "prompt",
                json!({"text": " "}),
                "expected a non-empty string",
            ),
            (
                "prompt",
                json!({"text": "a", "now": 1}),
                "no parameter `now`, expected `text`",
            ),
            (
                "abort",
                json!({"id": 1}),
                "no parameter `id`, expected none",
            ),
        ] {
            let failure = read(method, params.clone()).unwrap_err().to_message();
            let text = failure["error"]["message"].as_str().unwrap();
            assert!(text.contains(words), "{method} {params}: {text}");
        }
    }
}
