//! What a client may ask for, in one table, and how it is done.

use serde_json::{Value, json};
use tenterhook::{EntryId, JsonObject};
use tenterhook_agent::{Moved, PassageError, ThinkingLevel};

use super::super::{Conversation, Record};
use super::wire::{Failure, Request};
use crate::exit::Exit;

/// A request that the agent understands.
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
    Shutdown,
}

/// What is answered beside other things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Aside {
    Steer(String),
    FollowUp(String),
    Abort,
    GetState,
}

/// When a request is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// At any time.
    Aside(Aside),
    /// When nothing else is.
    Alone(Method),
}

/// A method: its name, its parameter, whether that must be there, whether it is answered at any time, and what it makes.
struct Row {
    name: &'static str,
    param: Option<(&'static str, bool)>,
    is_aside: bool,
    make: fn(Option<String>) -> Method,
}

const fn row(
    name: &'static str,
    param: Option<(&'static str, bool)>,
    is_aside: bool,
    make: fn(Option<String>) -> Method,
) -> Row {
    Row {
        name,
        param,
        is_aside,
        make,
    }
}

const TEXT: Option<(&str, bool)> = Some(("text", true));

/// Every method.
const METHODS: &[Row] = &[
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

/// Returns the names of those that are answered at any time.
pub(super) fn names_aside() -> String {
    names(|row| row.is_aside || row.name == "shutdown")
}

fn names(are_meant: impl Fn(&Row) -> bool) -> String {
    let names = METHODS.iter().filter(|row| are_meant(row));
    let names: Vec<String> = names.map(|row| format!("`{}`", row.name)).collect();
    names.join(", ")
}

impl Method {
    /// Reads a request.
    pub(super) fn read(request: &Request) -> Result<Self, Failure> {
        let fail = |failure: Failure| Err(failure.about(&request.id));
        let Some(row) = METHODS.iter().find(|row| row.name == request.method) else {
            let text = format!(
                "there is no method `{}`; there are {}",
                request.method,
                names(|_| true)
            );
            return fail(Failure::unknown_method(&text));
        };
        match row.argument(&request.params) {
            Ok(argument) => Ok((row.make)(argument)),
            Err(text) => fail(Failure::invalid_params(&text)),
        }
    }

    /// Says when it is carried out.
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Steer(text) => Kind::Aside(Aside::Steer(text)),
            Self::FollowUp(text) => Kind::Aside(Aside::FollowUp(text)),
            Self::Abort => Kind::Aside(Aside::Abort),
            Self::GetState => Kind::Aside(Aside::GetState),
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
            | Self::Shutdown) => Kind::Alone(other),
        }
    }
}

impl Row {
    /// Reads the one parameter. Others are a mistake: nobody would do what they ask for.
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
            None => Err(format!("`{}` needs `{name}`, a text", self.name)),
            Some(other) => Err(format!(
                "`{name}` of `{}` is {other}, expected a text that is not empty",
                self.name
            )),
        }
    }
}

/// Returns what came of a prompt: its runs, or why a command came to nothing.
fn runs_of(record: &Record) -> Result<Value, Failure> {
    if record.runs.is_empty() {
        let text = |other: &'static str| record.problem.as_deref().unwrap_or(other);
        let failure = match record.exit {
            None | Some(Exit::Done) => record.problem.as_deref().map(Failure::failed),
            Some(Exit::Usage) => Some(Failure::invalid_params(text("it is wrong"))),
            Some(Exit::Stopped) => Some(Failure::stopped(text("a hook stopped it"))),
            Some(Exit::Interrupted) => Some(Failure::canceled(text("it was interrupted"))),
            Some(Exit::Failed | Exit::Config | Exit::Run) => {
                Some(Failure::failed(text("it failed")))
            }
        };
        if let Some(failure) = failure {
            return Err(failure);
        }
    }
    serde_json::to_value(&record.runs)
        .map(|runs| json!({"runs": runs}))
        .map_err(|error| Failure::failed(&error.to_string()))
}

/// Returns the error of a way to another session that was not taken.
fn not_moved(error: &PassageError) -> Failure {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let text = format!("{error}{}", cause.unwrap_or_default());
    match error {
        PassageError::Blocked { .. } => Failure::stopped(&text),
        PassageError::Canceled => Failure::canceled(&text),
        PassageError::NoEntry(_) | PassageError::Current(_) | PassageError::NotStored => {
            Failure::invalid_params(&text)
        }
        PassageError::Session(_) | PassageError::Summary(_) | _ => Failure::failed(&text),
    }
}

impl Conversation<'_> {
    /// Carries out a request that nothing else is carried out beside.
    pub(super) async fn change(&mut self, method: Method) -> Result<Value, Failure> {
        match method {
            Method::Prompt(text) => {
                let mut record = Record::default();
                self.reload().await;
                self.take(&text, &mut record).await;
                runs_of(&record)
            }
            Method::NewSession => {
                let cancel = self.interrupts.token();
                let done = self.agent.new_session(&cancel).await;
                self.moved(done.map(|()| Moved::default()))
            }
            Method::Resume(id) => {
                let cancel = self.interrupts.token();
                let done = match self.agent.find_session(&id) {
                    Ok(id) => self.agent.resume(&id, &cancel).await,
                    Err(error) => Err(error),
                };
                self.moved(done.map(|_| Moved::default()))
            }
            Method::Fork(entry) => {
                let cancel = self.interrupts.token();
                let done = self.agent.fork(&entry, &cancel).await;
                self.moved(done)
            }
            Method::Compact(instructions) => {
                let cancel = self.interrupts.token();
                let compacted = self.agent.compact(instructions, &cancel).await;
                match compacted {
                    Ok(_) => Ok(json!({"context_tokens": self.agent.context_tokens()})),
                    Err(error) if cancel.is_cancelled() => {
                        Err(Failure::canceled(&error.to_string()))
                    }
                    Err(error) => Err(Failure::failed(&error.to_string())),
                }
            }
            Method::GetMessages => serde_json::to_value(self.agent.session().messages())
                .map(|messages| json!({"messages": messages}))
                .map_err(|error| Failure::failed(&error.to_string())),
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

    fn moved(&self, done: Result<Moved, PassageError>) -> Result<Value, Failure> {
        let moved = done.map_err(|error| not_moved(&error))?;
        Ok(json!({"session_id": self.agent.session().id(), "words": moved.words}))
    }

    /// Returns what there is to know of the session.
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
            Method::read(&Request {
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
            ("promt", json!({}), "there are `prompt`, `steer`"),
            ("prompt", json!({}), "`prompt` needs `text`, a text"),
            (
                "prompt",
                json!({"text": " "}),
                "expected a text that is not empty",
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
            let failure = read(method, params.clone()).unwrap_err().message();
            let text = failure["error"]["message"].as_str().unwrap();
            assert!(text.contains(words), "{method} {params}: {text}");
        }
    }
}
