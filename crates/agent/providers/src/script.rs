//! The file format of scripted models: the turns, and the order in which they are used.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_saphyr::Spanned;
use tenterhook_protocol::{JsonObject, ToolCall, Usage};
use thiserror::Error;

use crate::error::{ProviderError, ProviderErrorKind, is_overflow};
use crate::facts::Price;
use crate::provider::ModelEvent;
use crate::yaml_problem;

/// The provider's name in model ids and on the command line.
pub(super) const PROVIDER: &str = "scripted";

/// The reasons why a script cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The text is not a valid script.
    #[error("{name}: {message}")]
    Parse {
        /// The script, with line and column.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// A turn is invalid.
    #[error("{name}:{line}:{column}: {problem}")]
    Turn {
        /// The script.
        name: String,
        /// The turn's line, counted from 1.
        line: u64,
        /// The turn's column, from 1.
        column: u64,
        /// What is wrong with it.
        problem: ScriptedTurnError,
    },
}

/// The reasons why a turn is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScriptedTurnError {
    /// It contains no answer.
    #[error("the turn has none of `text`, `reasoning`, `tool_calls`, `error`, `summary`, `judge`")]
    Empty,
    /// Two keys exclude each other.
    #[error("`{key}` cannot be combined with `{other}`")]
    Excluded {
        /// The key.
        key: &'static str,
        /// The key that it cannot be combined with.
        other: &'static str,
    },
    /// `retryable` without `error`.
    #[error("`retryable` requires `error`")]
    RetryableWithoutError,
    /// A turn follows one that repeats.
    #[error("the turn is never reached, because the one before it for {kind} repeats")]
    Unreachable {
        /// What the turns answer.
        kind: String,
    },
}

/// A parsed script.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) model: String,
    pub(crate) context_window: Option<u64>,
    pub(crate) price: Option<Price>,
    pub(crate) turns: BTreeMap<TurnKind, TurnQueue>,
}

/// The turns of one kind, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct TurnQueue {
    turns: Vec<Turn>,
    next: usize,
}

/// The script as written in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenScript {
    name: Option<String>,
    context_window: Option<u64>,
    price: Option<Price>,
    turns: Vec<Spanned<Turn>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Turn {
    text: Option<String>,
    reasoning: Option<String>,
    tool_calls: Vec<Call>,
    error: Option<String>,
    retryable: Option<bool>,
    usage: Option<Tokens>,
    #[serde(rename = "for")]
    subagent: Option<String>,
    summary: Option<String>,
    judge: Option<String>,
    repeat: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    #[serde(default)]
    arguments: JsonObject,
    id: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tokens {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

/// The kind of request that a turn answers. Turns of one kind are used in order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TurnKind {
    Main,
    Subagent(String),
    Summary,
    Judge,
}

impl TurnKind {
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Main => "the main agent".to_owned(),
            Self::Subagent(name) => format!("subagent `{name}`"),
            Self::Summary => "summaries".to_owned(),
            Self::Judge => "model hooks".to_owned(),
        }
    }
}

impl Script {
    /// Parses a script. Error messages use `name`.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        let written: WrittenScript = serde_saphyr::from_str(text).map_err(|error| {
            let (name, message) = yaml_problem::describe(name, &error);
            ScriptError::Parse { name, message }
        })?;
        let mut turns: BTreeMap<TurnKind, TurnQueue> = BTreeMap::new();
        for Spanned {
            value: turn,
            referenced,
            ..
        } in written.turns
        {
            let refuse = |problem| ScriptError::Turn {
                name: name.to_owned(),
                line: referenced.line(),
                column: referenced.column(),
                problem,
            };
            turn.check().map_err(refuse)?;
            let kind = turn.kind();
            let queue = turns.entry(kind.clone()).or_default();
            if queue.turns.last().is_some_and(|last| last.repeat) {
                return Err(refuse(ScriptedTurnError::Unreachable {
                    kind: kind.describe(),
                }));
            }
            queue.turns.push(turn);
        }
        let stem = Path::new(name)
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        Ok(Self {
            model: written.name.or(stem).unwrap_or_else(|| PROVIDER.to_owned()),
            context_window: written.context_window,
            price: written.price,
            turns,
        })
    }
}

impl TurnQueue {
    /// Takes the next turn, and its number from 0. A repeating turn stays the next one.
    pub(crate) fn take(&mut self) -> Option<(Turn, usize)> {
        let number = self.next;
        let turn = self.turns.get(number)?.clone();
        if !turn.repeat {
            self.next += 1;
        }
        Some((turn, number))
    }

    /// Returns the number of turns, including those already taken.
    pub(crate) fn len(&self) -> usize {
        self.turns.len()
    }
}

impl Turn {
    fn kind(&self) -> TurnKind {
        if self.judge.is_some() {
            return TurnKind::Judge;
        }
        match (&self.summary, &self.subagent) {
            (Some(_), _) => TurnKind::Summary,
            (None, Some(name)) => TurnKind::Subagent(name.clone()),
            (None, None) => TurnKind::Main,
        }
    }

    fn check(&self) -> Result<(), ScriptedTurnError> {
        let says = [
            ("text", self.text.is_some()),
            ("reasoning", self.reasoning.is_some()),
            ("tool_calls", !self.tool_calls.is_empty()),
        ];
        if let Some(other) = self.exclusive_key() {
            let others = says.into_iter().chain([
                ("summary", self.summary.is_some() && other != "summary"),
                ("judge", self.judge.is_some() && other != "judge"),
            ]);
            let excluded = others.chain([("for", self.subagent.is_some() && other != "error")]);
            if let Some((key, _)) = excluded.into_iter().find(|(_, present)| *present) {
                return Err(ScriptedTurnError::Excluded { key, other });
            }
        } else if says.iter().all(|(_, present)| !present) {
            return Err(ScriptedTurnError::Empty);
        }
        if self.retryable.is_some() && self.error.is_none() {
            return Err(ScriptedTurnError::RetryableWithoutError);
        }
        Ok(())
    }

    /// Returns the key that cannot be combined with the keys of an ordinary answer.
    fn exclusive_key(&self) -> Option<&'static str> {
        if self.error.is_some() {
            return Some("error");
        }
        if self.judge.is_some() {
            return Some("judge");
        }
        self.summary.is_some().then_some("summary")
    }

    /// Returns the events of this turn, which is number `number` of its kind, counted from 0.
    pub(crate) fn events(self, number: usize) -> Vec<Result<ModelEvent, ProviderError>> {
        if let Some(message) = self.error {
            let kind = match self.retryable {
                _ if is_overflow(&message) => ProviderErrorKind::ContextOverflow,
                Some(true) => ProviderErrorKind::Unavailable,
                _ => ProviderErrorKind::Refused,
            };
            return vec![Err(ProviderError::new(kind, message))];
        }
        let mut events = Vec::new();
        events.extend(
            self.reasoning
                .iter()
                .flat_map(|text| pieces(text))
                .map(ModelEvent::Reasoning),
        );
        let text = self.judge.or(self.summary).or(self.text);
        events.extend(
            text.iter()
                .flat_map(|text| pieces(text))
                .map(ModelEvent::Text),
        );
        for (position, call) in self.tool_calls.into_iter().enumerate() {
            let id = call
                .id
                .unwrap_or_else(|| format!("call_{}_{}", number + 1, position + 1));
            events.push(ModelEvent::ToolCall(ToolCall::new(
                id,
                call.name,
                call.arguments.into(),
            )));
        }
        events.extend(self.usage.map(|tokens| {
            ModelEvent::Usage(Usage::new(tokens.input_tokens, tokens.output_tokens))
        }));
        events.push(ModelEvent::End);
        events.into_iter().map(Ok).collect()
    }
}

/// Splits text after each run of white space, because the text of a real model arrives in pieces.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(char::is_whitespace).map(str::to_owned)
}
