//! A model that reads its answers from a file, for tests, demos and trying things out without a key.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenterhook_protocol::{JsonObject, Messages, ToolSpec, message_extra};

use crate::error::{ProviderError, ProviderErrorKind};
use crate::exchange::ProviderExchange;
use crate::facts::Price;
use crate::provider::{ModelEvent, ModelId, ModelRequest, Provider, Purpose};
use crate::script::{PROVIDER, Script, ScriptError, Turn, TurnKind, TurnQueue};

/// A model whose answers are the turns of a YAML file.
///
/// Each model call uses the next turn. Turns with `for` answer a subagent, turns with `summary` answer requests for a
/// summary, and turns with `judge` answer model hooks. Each of these kinds has its own order. If no turn is left, the
/// call fails. If a script has no `judge` turns, model hooks call the models that they name.
///
/// | key of a turn | meaning |
/// |---|---|
/// | `text` | the text of the answer |
/// | `reasoning` | the reasoning that the model shows |
/// | `tool_calls` | the tools to call: `name`, `arguments` (default: empty), `id` (default: `call_N`) |
/// | `error` | the call fails with this text; only `retryable`, `for` and `repeat` can be combined with it |
/// | `retryable` | whether a retry may succeed after the error |
/// | `usage` | the `input_tokens` and `output_tokens` of the call |
/// | `for` | the name of the subagent that the turn answers |
/// | `summary` | the answer to a request for a summary |
/// | `judge` | the reply to a model hook, whichever model it names |
/// | `repeat` | whether the turn is used for ever; allowed only for the last turn of its kind |
///
/// Next to `turns`, a script may have `name` (the model's name; default: the file's name), `context_window` in tokens,
/// and `price`, a [`Price`]. An `error` whose text says that the context is too long counts as a context overflow.
///
/// Hooks of `provider_request` see a request as `model`, `purpose` (`turn`, `summary`, `judge`), `subagent`,
/// `thinking`, `messages` and `tools`. If they replace it, the model answers their version: another `purpose` or
/// `subagent` selects a turn of another kind.
///
/// # Examples
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = tenterhook_providers::Scripted::parse(
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

/// The remaining turns of a script, and the last request.
#[derive(Debug, Default)]
struct State {
    turns: Mutex<BTreeMap<TurnKind, TurnQueue>>,
    last_request: Mutex<Option<Payload>>,
}

/// A request in the form that a scripted model reads.
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

impl Scripted {
    /// Reads a script from a file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or is not a valid script.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let text = fs::read_to_string(path).map_err(|source| ScriptError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Parses a script. Error messages use `name`.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a valid script. The message contains line and column.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        let script = Script::parse(name, text)?;
        Ok(Self {
            id: ModelId::new(PROVIDER, script.model),
            context_window: script.context_window,
            price: script.price,
            state: Arc::new(State {
                turns: Mutex::new(script.turns),
                ..State::default()
            }),
        })
    }

    /// Returns the last request as the model saw it, after hooks may have replaced it.
    pub fn last_request(&self) -> Option<Value> {
        let request = self.state.last_request.lock();
        json_of(request.as_ref()?)
    }
}

impl State {
    /// Answers a request.
    fn answer(&self, request: Payload) -> Vec<Result<ModelEvent, ProviderError>> {
        let events = match self.take(&request) {
            Ok((turn, number)) => turn.events(number),
            Err(error) => vec![Err(error)],
        };
        *self.last_request.lock() = Some(request);
        events
    }

    /// Takes the turn that answers `request`, and its number within its kind.
    fn take(&self, request: &Payload) -> Result<(Turn, usize), ProviderError> {
        let kind = match (request.purpose, &request.subagent) {
            (Purpose::Summary, _) => TurnKind::Summary,
            (Purpose::Judge, _) => TurnKind::Judge,
            (Purpose::Turn, Some(name)) => TurnKind::Subagent(name.clone()),
            (Purpose::Turn, None) => TurnKind::Main,
        };
        let mut turns = self.turns.lock();
        let queue = turns.entry(kind.clone()).or_default();
        queue.take().ok_or_else(|| {
            let (model, kind, count) = (&request.model, kind.describe(), queue.len());
            let message = format!(
                "the script of `{model}` has no turn left for {kind}: all {count} were used"
            );
            ProviderError::new(ProviderErrorKind::Refused, message)
        })
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
        self.state.turns.lock().contains_key(&TurnKind::Judge)
    }

    fn stream(
        &self,
        mut request: ModelRequest,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
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
    /// Shows the request to hooks, and returns it with their changes.
    async fn pass(mut self, exchange: &ProviderExchange) -> Result<Self, ProviderError> {
        if !exchange.sees_payload() {
            return Ok(self);
        }
        // What the agent keeps about a message is not sent to a model.
        let mut messages = self.messages.into_vec();
        for message in &mut messages {
            message
                .extra
                .retain(|key, _| !message_extra::KEYS.contains(&key.as_str()));
        }
        self.messages = messages.into();
        let refused = |what: &str, error: serde_json::Error| {
            let message = format!("the scripted model cannot {what} its request: {error}");
            ProviderError::new(ProviderErrorKind::Refused, message)
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

/// Returns a request as JSON. This cannot fail, because a request contains only text and JSON.
fn json_of(request: &Payload) -> Option<Value> {
    serde_json::to_value(request).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenterhook_protocol::{ToolCall, Usage};

    use super::*;

    fn parse(text: &str) -> Result<Scripted, ScriptError> {
        Scripted::parse("demo.yaml", text)
    }

    async fn answer(
        script: &Scripted,
        request: ModelRequest,
    ) -> Result<Vec<ModelEvent>, ProviderError> {
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
            "the script of `scripted/demo` has no turn left for the main agent: all 1 were used"
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
            ModelEvent::ToolCall(ToolCall::new(id, name.to_owned(), arguments))
        };
        let usage = Usage::new(3, 0);
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
            ProviderErrorKind::Refused,
            ProviderErrorKind::Unavailable,
            ProviderErrorKind::ContextOverflow,
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
                "demo.yaml:2:5: `text` cannot be combined with `error`",
            ),
            (
                "turns:\n  - {summary: a, for: b}\n",
                "`for` cannot be combined with `summary`",
            ),
            (
                "turns:\n  - {judge: a, summary: b}\n",
                "`summary` cannot be combined with `judge`",
            ),
            (
                "turns:\n  - {judge: a, for: b}\n",
                "`for` cannot be combined with `judge`",
            ),
            (
                "turns:\n  - {text: a, retryable: true}\n",
                "`retryable` requires `error`",
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
        assert!(error.contains(":3:5: "), "{error}");
    }
}
