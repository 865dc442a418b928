//! The answer of a model that a script calls itself.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use serde_json::{Value, json};
use tenterhook_process::CancellationToken;
use tenterhook_protocol::JsonObject;
use tenterhook_runners::worker::{Lease, ModelUpdates, ScriptModelEnd, ScriptModelPart, Worker};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::error::{ProviderError, ProviderErrorKind};
use crate::exchange::ProviderExchange;
use crate::provider::{ModelEvent, ModelId, ModelRequest};
use crate::remote::event_error;
use crate::thinking::ThinkingLevel;

/// How long a model that a script calls may take to answer.
const MAX_ANSWER: Duration = Duration::from_mins(30);

/// The maximum number of bytes of the parts of an answer, including what each part takes in memory.
const MAX_BYTES: usize = 32 << 20;

/// What a part of an answer takes in memory in addition to its text.
const PART_BYTES: usize = 128;

type Event = Result<ModelEvent, ProviderError>;

/// A call in progress.
struct Running {
    parts: UnboundedReceiver<ModelEvent>,
    run: BoxFuture<'static, Vec<Event>>,
    /// The last events, once the script has answered.
    last: Option<VecDeque<Event>>,
}

/// Lets a script call a model. `key` replaces the key that the script itself finds.
pub(crate) fn script_stream(
    worker: Worker,
    lease: Lease,
    id: &ModelId,
    key: Option<Arc<str>>,
    mut request: ModelRequest,
) -> BoxStream<'static, Event> {
    // The channel needs no limit of its own, because `collect` limits what is in it.
    let (sender, parts) = mpsc::unbounded_channel();
    let exchange = request.exchange.take();
    let body = body_of(&request);
    let id = id.clone();
    let run = async move {
        let body = show(exchange, body).await?;
        let too_long = CancellationToken::new();
        let updates = collect(sender, too_long.clone());
        let asked = json!({ "provider": id.provider, "model": id.name, "api_key": key.as_deref(), "body": body });
        let answer = worker.run_model(lease.number(), &asked, updates, MAX_ANSWER, &too_long);
        let answer = answer.await;
        if too_long.is_cancelled() {
            let message = format!("the answer is longer than {MAX_BYTES} bytes");
            return Err(ProviderError::new(ProviderErrorKind::Refused, message));
        }
        answer.map_err(|error| ProviderError::new(ProviderErrorKind::Refused, error.to_string()))
    };
    let run = async move {
        let ended: Result<ScriptModelEnd, ProviderError> = run.await;
        match ended {
            Ok(end) => last_events(end),
            Err(error) => vec![Err(error)],
        }
    };
    let running = Running {
        parts,
        run: Box::pin(run),
        last: None,
    };
    stream::unfold(running, next).boxed()
}

async fn next(mut running: Running) -> Option<(Event, Running)> {
    loop {
        if let Some(last) = &mut running.last {
            // The script sends its answer after all parts.
            let event = match running.parts.try_recv() {
                Ok(part) => Some(Ok(part)),
                Err(_) => last.pop_front(),
            };
            return event.map(|event| (event, running));
        }
        tokio::select! {
            biased;
            Some(part) = running.parts.recv() => return Some((Ok(part), running)),
            last = &mut running.run => running.last = Some(last.into()),
        }
    }
}

/// Returns the body of the request, which hooks see.
fn body_of(request: &ModelRequest) -> Value {
    let tools = request.tools.iter().map(
        |tool| json!({ "name": tool.name, "description": tool.description, "schema": tool.schema }),
    );
    json!({
        "messages": request.messages,
        "tools": tools.collect::<Value>(),
        "thinking": request.thinking.map(ThinkingLevel::as_str),
        "max_output_tokens": request.max_output_tokens,
    })
}

/// Shows the body to hooks. Returns the body that the script gets.
async fn show(exchange: Option<ProviderExchange>, body: Value) -> Result<Value, ProviderError> {
    let Some(exchange) = exchange else {
        return Ok(body);
    };
    let body = if exchange.sees_payload() {
        exchange.request(body.clone()).await?.unwrap_or(body)
    } else {
        body
    };
    // Only the script sees the real status and headers.
    exchange.response(200, JsonObject::new()).await;
    Ok(body)
}

/// Returns what passes the parts of the answer on, until they are too long.
fn collect(sender: mpsc::UnboundedSender<ModelEvent>, too_long: CancellationToken) -> ModelUpdates {
    let used = AtomicUsize::new(0);
    Arc::new(move |part| {
        let (size, event) = match part {
            ScriptModelPart::Text { delta } => (delta.len(), ModelEvent::Text(delta)),
            ScriptModelPart::Reasoning { delta } => (delta.len(), ModelEvent::Reasoning(delta)),
            ScriptModelPart::ToolCall { tool_call } => {
                let size = tool_call.arguments.to_string().len();
                (size, ModelEvent::ToolCall(tool_call))
            }
        };
        let size = size.saturating_add(PART_BYTES);
        if used.fetch_add(size, Ordering::Relaxed) > MAX_BYTES {
            too_long.cancel();
        } else {
            // The receiver is gone if the call was cancelled.
            sender.send(event).ok();
        }
    })
}

fn last_events(end: ScriptModelEnd) -> Vec<Event> {
    if let Some(message) = end.error {
        return vec![Err(event_error(&json!({ "message": message })))];
    }
    let usage = end.usage.map(|usage| Ok(ModelEvent::Usage(usage)));
    usage.into_iter().chain([Ok(ModelEvent::End)]).collect()
}
