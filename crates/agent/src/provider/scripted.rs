//! A model that reads its answers from a file: for tests, demos and the first run without a key.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::stream::{self, BoxStream, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_saphyr::Spanned;
use tenterhook_protocol::{JsonObject, Messages, ToolCall, Usage};
use thiserror::Error;

use super::{
    Exchange, ModelError, ModelErrorKind, ModelEvent, ModelId, ModelRequest, Price, Provider,
    Purpose, ToolSpec, is_overflow,
};

/// The provider's name in model ids and in the user's choice.
pub(super) const PROVIDER: &str = "scripted";

/// A model whose answers are the turns of a YAML file.
///
/// Each model call takes the next turn. Turns with `for` are those of a subagent, turns with `summary`
/// those of compaction, turns with `judge` those of model hooks; each of these has its own order. A call that
/// finds no turn left fails. A script without `judge` leaves model hooks to the models that they name.
///
/// | key of a turn | meaning |
/// |---|---|
/// | `text` | what the model says |
/// | `reasoning` | what it shows of its reasoning |
/// | `tool_calls` | the tools that it calls: `name`, `arguments` (default none), `id` (default `call_N`) |
/// | `error` | the call fails with this text; nothing else but `retryable`, `for` and `repeat` may stand beside it |
/// | `retryable` | the failure is one after which another try may succeed |
/// | `usage` | `input_tokens` and `output_tokens` of the call |
/// | `for` | the turn is for the subagent of this name |
/// | `summary` | the text with which a request for a summary is answered |
/// | `judge` | the reply to a model hook, whatever model it names |
/// | `repeat` | the turn is given for ever; only the last of its order may |
///
/// Beside `turns` stand `name` (the model's name, default the file's name) and `context_window` in
/// tokens, and `price`, a [`Price`]. An `error` whose text says that the context is too long counts as such.
///
/// Hooks of `provider_request` see a request as `model`, `purpose` (`turn`, `summary`, `judge`), `subagent`, `thinking`, `messages`
/// and `tools`, and what they put in its place is what the model reads: with another `purpose` or `subagent` the turn
/// is of another order.
///
/// # Examples
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = tenterhook_agent::provider::Scripted::parse(
///     "demo",
///     r#"
/// context_window: 8000
/// turns:
///   - text: I look at the folder first.
///     tool_calls:
///       - name: list_directory
///         arguments: { path: . }
///     usage: { input_tokens: 120, output_tokens: 30 }
///   - error: the service is busy
///     retryable: true
///   - text: There is nothing in it.
///   - for: researcher
///     text: I found nothing either.
///   - summary: The user asked for the folder's content.
/// "#,
/// )?;
/// # let _ = script;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Scripted {
    id: ModelId,
    context_window: Option<u64>,
    price: Option<Price>,
    state: Arc<State>,
}

/// What a script was asked, and what is left of it.
#[derive(Debug, Default)]
struct State {
    lanes: Mutex<BTreeMap<Lane, Progress>>,
    asked: Mutex<Option<Payload>>,
}

/// A request as a scripted model reads it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Payload {
    model: String,
    purpose: Purpose,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subagent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    messages: Messages,
    tools: Vec<ToolSpec>,
}

/// A script that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is no script.
    #[error("{name}: {message}")]
    Parse {
        /// The script.
        name: String,
        /// What is wrong, with line and column.
        message: String,
    },
    /// A turn makes no sense.
    #[error("{name}:{line}:{column}: {problem}")]
    Turn {
        /// The script.
        name: String,
        /// The turn's line, from 1.
        line: u64,
        /// The turn's column, from 1.
        column: u64,
        /// What is wrong with it.
        problem: TurnProblem,
    },
}

/// Why a turn makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TurnProblem {
    /// It says nothing.
    #[error("the turn has none of `text`, `reasoning`, `tool_calls`, `error`, `summary`, `judge`")]
    Empty,
    /// Two keys exclude each other.
    #[error("`{key}` may not stand beside `{beside}`")]
    Excluded {
        /// The key.
        key: &'static str,
        /// What it stands beside.
        beside: &'static str,
    },
    /// `retryable` without `error`.
    #[error("`retryable` stands only beside `error`")]
    RetryableWithoutError,
    /// A turn follows one that repeats.
    #[error("the turn is never reached, because the one before it for {lane} repeats")]
    Unreachable {
        /// Whose turns they are.
        lane: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    name: Option<String>,
    context_window: Option<u64>,
    price: Option<Price>,
    turns: Vec<Spanned<Turn>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Turn {
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

/// Turns that follow each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    Main,
    Subagent(String),
    Summary,
    Judge,
}

impl Lane {
    fn describe(&self) -> String {
        match self {
            Self::Main => "the main agent".to_owned(),
            Self::Subagent(name) => format!("subagent `{name}`"),
            Self::Summary => "summaries".to_owned(),
            Self::Judge => "model hooks".to_owned(),
        }
    }
}

#[derive(Debug, Default)]
struct Progress {
    turns: Vec<Turn>,
    next: usize,
}

impl Scripted {
    /// Reads a script from a file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or is no script.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let text = fs::read_to_string(path).map_err(|source| ScriptError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Reads a script from text; `name` stands in error messages.
    ///
    /// # Errors
    ///
    /// Fails if the text is no script: the message names line and column.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        let script: Script = serde_saphyr::from_str(text).map_err(|error| ScriptError::Parse {
            name: name.to_owned(),
            message: error.without_snippet().to_string(),
        })?;
        let mut lanes: BTreeMap<Lane, Progress> = BTreeMap::new();
        for Spanned {
            value: turn,
            referenced,
            ..
        } in script.turns
        {
            let refuse = |problem| ScriptError::Turn {
                name: name.to_owned(),
                line: referenced.line(),
                column: referenced.column(),
                problem,
            };
            turn.check().map_err(refuse)?;
            let lane = turn.lane();
            let progress = lanes.entry(lane.clone()).or_default();
            if progress.turns.last().is_some_and(|last| last.repeat) {
                return Err(refuse(TurnProblem::Unreachable {
                    lane: lane.describe(),
                }));
            }
            progress.turns.push(turn);
        }
        let stem = Path::new(name)
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        let model = script.name.or(stem).unwrap_or_else(|| PROVIDER.to_owned());
        Ok(Self {
            id: ModelId::new(PROVIDER, model),
            context_window: script.context_window,
            price: script.price,
            state: Arc::new(State {
                lanes: Mutex::new(lanes),
                ..State::default()
            }),
        })
    }

    /// Returns the newest request as the model read it: after hooks, which may have put another in its place.
    pub fn last_request(&self) -> Option<Value> {
        let asked = self.state.asked.lock();
        json_of(asked.unwrap_or_else(PoisonError::into_inner).as_ref()?)
    }
}

impl State {
    /// Answers a request.
    fn answer(&self, request: Payload) -> Vec<Result<ModelEvent, ModelError>> {
        let events = match self.take(&request) {
            Ok((turn, number)) => turn.events(number),
            Err(error) => vec![Err(error)],
        };
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
        events
    }

    /// Takes the turn that answers `request`, and its number in its order.
    fn take(&self, request: &Payload) -> Result<(Turn, usize), ModelError> {
        let lane = match (request.purpose, &request.subagent) {
            (Purpose::Summary, _) => Lane::Summary,
            (Purpose::Judge, _) => Lane::Judge,
            (Purpose::Turn, Some(name)) => Lane::Subagent(name.clone()),
            (Purpose::Turn, None) => Lane::Main,
        };
        let mut lanes = self.lanes();
        let progress = lanes.entry(lane.clone()).or_default();
        let number = progress.next;
        let turn = progress.turns.get(number).cloned().ok_or_else(|| {
            let (model, lane, count) = (&request.model, lane.describe(), progress.turns.len());
            let message = format!(
                "the script of `{model}` has no turn left for {lane}: all {count} were given"
            );
            ModelError::new(ModelErrorKind::Refused, message)
        })?;
        if !turn.repeat {
            progress.next += 1;
        }
        Ok((turn, number))
    }

    fn lanes(&self) -> MutexGuard<'_, BTreeMap<Lane, Progress>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Provider for Scripted {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn context_window(&self) -> Option<u64> {
        self.context_window
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn answers_hooks(&self) -> bool {
        self.state.lanes().contains_key(&Lane::Judge)
    }

    fn stream(
        &self,
        mut request: ModelRequest,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let exchange = request.exchange.take();
        let request = Payload {
            model: self.id.to_string(),
            purpose: request.purpose,
            subagent: request.subagent,
            thinking: request.thinking.map(|level| level.to_string()),
            messages: request.messages,
            tools: request.tools,
        };
        let Some(exchange) = exchange else {
            return stream::iter(self.state.answer(request)).boxed();
        };
        let state = Arc::clone(&self.state);
        let answered = async move {
            let request = request.pass(&exchange).await;
            let status = if request.is_ok() { 200 } else { 400 };
            exchange.response(status, JsonObject::new()).await;
            match request {
                Ok(request) => stream::iter(state.answer(request)),
                Err(error) => stream::iter(vec![Err(error)]),
            }
        };
        stream::once(answered).flatten().boxed()
    }
}

impl Payload {
    /// Shows the request to hooks, and reads what they made of it.
    async fn pass(self, exchange: &Exchange) -> Result<Self, ModelError> {
        if !exchange.sees_payload() {
            return Ok(self);
        }
        let refused = |what: &str, error: serde_json::Error| {
            let message = format!("the scripted model cannot {what} its request: {error}");
            ModelError::new(ModelErrorKind::Refused, message)
        };
        let payload = serde_json::to_value(&self).map_err(|error| refused("write", error))?;
        match exchange.request(payload).await? {
            Some(replaced) => {
                serde_json::from_value(replaced).map_err(|error| refused("read", error))
            }
            None => Ok(self),
        }
    }
}

/// Returns a request as JSON. It is made of texts and JSON, so there always is one.
fn json_of(request: &Payload) -> Option<Value> {
    serde_json::to_value(request).ok()
}

impl Turn {
    fn lane(&self) -> Lane {
        if self.judge.is_some() {
            return Lane::Judge;
        }
        match (&self.summary, &self.subagent) {
            (Some(_), _) => Lane::Summary,
            (None, Some(name)) => Lane::Subagent(name.clone()),
            (None, None) => Lane::Main,
        }
    }

    fn check(&self) -> Result<(), TurnProblem> {
        let says = [
            ("text", self.text.is_some()),
            ("reasoning", self.reasoning.is_some()),
            ("tool_calls", !self.tool_calls.is_empty()),
        ];
        if let Some(beside) = self.exclusive_key() {
            let others = says.into_iter().chain([
                ("summary", self.summary.is_some() && beside != "summary"),
                ("judge", self.judge.is_some() && beside != "judge"),
            ]);
            let excluded = others.chain([("for", self.subagent.is_some() && beside != "error")]);
            if let Some((key, _)) = excluded.into_iter().find(|(_, present)| *present) {
                return Err(TurnProblem::Excluded { key, beside });
            }
        } else if says.iter().all(|(_, present)| !present) {
            return Err(TurnProblem::Empty);
        }
        if self.retryable.is_some() && self.error.is_none() {
            return Err(TurnProblem::RetryableWithoutError);
        }
        Ok(())
    }

    /// Returns the key that excludes those of an ordinary answer.
    fn exclusive_key(&self) -> Option<&'static str> {
        if self.error.is_some() {
            return Some("error");
        }
        if self.judge.is_some() {
            return Some("judge");
        }
        self.summary.is_some().then_some("summary")
    }

    fn events(self, number: usize) -> Vec<Result<ModelEvent, ModelError>> {
        if let Some(message) = self.error {
            let kind = match self.retryable {
                _ if is_overflow(&message) => ModelErrorKind::ContextOverflow,
                Some(true) => ModelErrorKind::Unavailable,
                _ => ModelErrorKind::Refused,
            };
            return vec![Err(ModelError::new(kind, message))];
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
            events.push(ModelEvent::ToolCall(ToolCall {
                id: id.into(),
                name: call.name,
                arguments: call.arguments.into(),
            }));
        }
        events.extend(self.usage.map(|tokens| {
            ModelEvent::Usage(Usage {
                input_tokens: tokens.input_tokens,
                output_tokens: tokens.output_tokens,
                ..Usage::default()
            })
        }));
        events.push(ModelEvent::End);
        events.into_iter().map(Ok).collect()
    }
}

/// Cuts a text behind each run of white space, as a model's text arrives in pieces.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(char::is_whitespace).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Result<Scripted, ScriptError> {
        Scripted::parse("demo.yaml", text)
    }

    async fn answer(
        script: &Scripted,
        request: ModelRequest,
    ) -> Result<Vec<ModelEvent>, ModelError> {
        let events: Vec<_> = script.stream(request).collect().await;
        events.into_iter().collect()
    }

    fn text_of(events: &[ModelEvent]) -> String {
        let texts = events.iter().map(|event| match event {
            ModelEvent::Text(text) => text.as_str(),
            ModelEvent::Reasoning(_)
            | ModelEvent::ToolCall(_)
            | ModelEvent::Usage(_)
            | ModelEvent::End => "",
        });
        texts.collect()
    }

    #[tokio::test]
    async fn turns_are_given_in_order_and_the_last_may_repeat() {
        let script =
            parse("turns:\n  - text: one two\n  - text: three\n    repeat: true\n").unwrap();
        let mut texts = Vec::new();
        for _ in 0..4 {
            texts.push(text_of(
                &answer(&script, ModelRequest::default()).await.unwrap(),
            ));
        }
        assert_eq!(texts, ["one two", "three", "three", "three"]);
    }

    #[tokio::test]
    async fn a_script_that_ran_out_says_so() {
        let script = parse("turns:\n  - text: one\n").unwrap();
        answer(&script, ModelRequest::default()).await.unwrap();
        let error = answer(&script, ModelRequest::default()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the script of `scripted/demo` has no turn left for the main agent: all 1 were given"
        );
        assert!(!error.is_retryable());
    }

    #[tokio::test]
    async fn subagents_and_summaries_have_turns_of_their_own() {
        let script = parse(
            "turns:\n- {for: helper, text: of helper}\n- {summary: of all}\n- {text: of main}\n",
        )
        .unwrap();
        let subagent = Some("helper".to_owned());
        let helper = answer(
            &script,
            ModelRequest {
                subagent,
                ..ModelRequest::default()
            },
        )
        .await
        .unwrap();
        let purpose = Purpose::Summary;
        let summary = answer(
            &script,
            ModelRequest {
                purpose,
                ..ModelRequest::default()
            },
        )
        .await
        .unwrap();
        let main = answer(&script, ModelRequest::default()).await.unwrap();
        assert_eq!(
            [text_of(&helper), text_of(&summary), text_of(&main)],
            ["of helper", "of all", "of main"]
        );
    }

    #[tokio::test]
    async fn model_hooks_have_turns_of_their_own() {
        let script =
            parse("turns:\n- {text: of main}\n- {judge: of hook, repeat: true}\n").unwrap();
        assert!(script.answers_hooks());
        assert!(!parse("turns: [{text: a}]").unwrap().answers_hooks());
        for _ in 0..2 {
            let request = ModelRequest {
                purpose: Purpose::Judge,
                ..ModelRequest::default()
            };
            let events = answer(&script, request).await.unwrap();
            assert_eq!(text_of(&events), "of hook");
        }
        let main = answer(&script, ModelRequest::default()).await.unwrap();
        assert_eq!(text_of(&main), "of main");
    }

    #[tokio::test]
    async fn calls_get_ids_and_usage_is_given() {
        let text = "turns:\n- tool_calls:\n  - {name: shell, arguments: {cmd: ls}}\n  - {name: search, id: mine}\n  usage: {input_tokens: 3}\n";
        let events = answer(&parse(text).unwrap(), ModelRequest::default())
            .await
            .unwrap();
        let call = |id: &str, name: &str, arguments: Value| {
            ModelEvent::ToolCall(ToolCall {
                id: id.into(),
                name: name.to_owned(),
                arguments,
            })
        };
        let usage = Usage {
            input_tokens: 3,
            ..Usage::default()
        };
        assert_eq!(
            events,
            [
                call("call_1_1", "shell", json!({"cmd": "ls"})),
                call("mine", "search", json!({})),
                ModelEvent::Usage(usage),
                ModelEvent::End,
            ]
        );
    }

    #[tokio::test]
    async fn errors_are_final_retryable_or_an_overflow() {
        let text =
            "turns:\n- error: no\n- {error: busy, retryable: true}\n- error: prompt is too long\n";
        let script = parse(text).unwrap();
        let mut kinds = Vec::new();
        for _ in 0..3 {
            kinds.push(
                answer(&script, ModelRequest::default())
                    .await
                    .unwrap_err()
                    .kind,
            );
        }
        let expected = [
            ModelErrorKind::Refused,
            ModelErrorKind::Unavailable,
            ModelErrorKind::ContextOverflow,
        ];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn wrong_scripts_are_refused_with_line_and_column() {
        for (text, expected) in [
            ("turns:\n  - text: a\n    tex: b\n", "tex"),
            ("turns:\n  - text: a\n    usage: many\n", "3"),
            ("turns:\n  - {}\n", "demo.yaml:2:5: the turn has none of"),
            (
                "turns:\n  - {error: a, text: b}\n",
                "demo.yaml:2:5: `text` may not stand beside `error`",
            ),
            (
                "turns:\n  - {summary: a, for: b}\n",
                "`for` may not stand beside `summary`",
            ),
            (
                "turns:\n  - {judge: a, summary: b}\n",
                "`summary` may not stand beside `judge`",
            ),
            (
                "turns:\n  - {judge: a, for: b}\n",
                "`for` may not stand beside `judge`",
            ),
            (
                "turns:\n  - {text: a, retryable: true}\n",
                "`retryable` stands only beside `error`",
            ),
            (
                "turns:\n  - {text: a, repeat: true}\n  - text: b\n",
                "demo.yaml:3:5: the turn is never reached, because the one before it for the main agent repeats",
            ),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = parse("turns:\n  - text: a\n    tex: b\n")
            .unwrap_err()
            .to_string();
        assert!(error.contains("line 3, column 5"), "{error}");
    }
}
