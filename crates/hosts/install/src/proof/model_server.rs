//! A model service on this machine that follows a script.
//!
//! Coding agents call it instead of a real model. It accepts the requests of four APIs on one port: Anthropic
//! Messages, OpenAI Chat Completions, OpenAI Responses, and Gemini. It looks only at the end of a path, and it accepts
//! every key. A request that offers the tools of the next scripted turn gets that turn. A request without tools, for
//! example for the title of a session, gets a short text.
//!
//! The server keeps all requests, so that a proof can check what the model was shown.

mod anthropic;
mod chat;
mod gemini;
mod reply;
mod request;
mod responses;
mod script;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tenterhook_systems::host::headless::HeadlessRun;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::gemini::GeminiForm;
use self::reply::Reply;
pub use self::request::RecordedRequest;
use self::script::{ModelCall, ModelTurn};
pub use self::script::{ModelScript, ScriptedAction, ScriptedTurn};

/// The largest request. Agents send whole conversations.
const MAX_REQUEST: usize = 64 * 1024 * 1024;
/// How many requests are answered. An agent that never ends its turn gets an error after them.
const MAX_REQUESTS: usize = 100;

/// A scripted model service on the loopback interface. Dropping it stops it.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    state: Arc<ServerState>,
    _stop: DropGuard,
}

impl ModelServer {
    /// Starts a server on a free port. `run` names the tools that the host offers to models.
    ///
    /// # Errors
    /// Fails if no port of the loopback interface can be opened.
    pub async fn start(script: ModelScript, run: &'static HeadlessRun) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(ServerState {
            script,
            run,
            log: Mutex::default(),
        });
        let router = Router::new()
            .fallback(handle)
            .layer(DefaultBodyLimit::max(MAX_REQUEST))
            .with_state(Arc::clone(&state));
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        tokio::spawn(async move {
            // Only accepting connections can fail, and then the agent reports that no model answers.
            let _served = axum::serve(listener, router)
                .with_graceful_shutdown(stopped)
                .await;
        });
        Ok(Self {
            address,
            state,
            _stop: stop.drop_guard(),
        })
    }

    /// Returns the address, for example `http://127.0.0.1:4100`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests to the model so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.state.log.lock().requests.clone()
    }

    /// Returns how many requests were answered with a turn of the conversation.
    pub fn turns(&self) -> usize {
        self.state.log.lock().turns
    }

    /// Returns whether the model was shown this text in a conversation.
    pub fn was_shown(&self, text: &str) -> bool {
        let log = self.state.log.lock();
        log.requests.iter().any(|request| request.shows(text))
    }
}

#[derive(Debug)]
struct ServerState {
    script: ModelScript,
    run: &'static HeadlessRun,
    log: Mutex<RequestLog>,
}

#[derive(Debug, Default)]
struct RequestLog {
    /// At most [`MAX_REQUESTS`].
    requests: Vec<RecordedRequest>,
    turns: usize,
    subagent_turns: usize,
    calls: usize,
}

async fn handle(
    State(state): State<Arc<ServerState>>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> Response {
    let path = uri.path().trim_end_matches('/');
    let reply = if method == Method::POST {
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        state.post(path, uri.query().unwrap_or_default(), &body)
    } else if path.ends_with("/models") {
        // Every API has its own name for the list.
        Reply::ok(json!({ "object": "list", "data": [], "models": [] }))
    } else if path.is_empty() {
        Reply::ok(json!({}))
    } else {
        not_found(path)
    };
    reply.into_response()
}

impl ServerState {
    fn post(&self, path: &str, query: &str, body: &Value) -> Reply {
        let ends = |end: &str| path.ends_with(end);
        if ends("/count_tokens") {
            return Reply::ok(json!({ "input_tokens": 1 }));
        }
        if ends(":countTokens") {
            return Reply::ok(json!({ "totalTokens": 1 }));
        }
        let gemini_form = if ends(":generateContent") {
            Some(GeminiForm::Plain)
        } else if !ends(":streamGenerateContent") {
            None
        } else if query.contains("alt=sse") {
            Some(GeminiForm::Events)
        } else {
            Some(GeminiForm::List)
        };
        let is_known = gemini_form.is_some()
            || ["/messages", "/chat/completions", "/responses"]
                .iter()
                .any(|end| ends(end));
        if !is_known {
            return not_found(path);
        }
        let Some((number, turn)) = self.next_turn(path, body.clone()) else {
            let message = "the script has ended";
            let error = json!({ "type": "invalid_request_error", "message": message });
            return Reply::Json(
                StatusCode::BAD_REQUEST,
                json!({ "type": "error", "error": error }),
            );
        };
        match gemini_form {
            Some(form) => gemini::answer(&turn, form, number),
            None if ends("/messages") => anthropic::answer(&turn, body, number),
            None if ends("/responses") => responses::answer(&turn, body, number),
            None => chat::answer(&turn, body, number),
        }
    }

    /// Records a request and returns its number and the turn that answers it. `None` if there were too many requests.
    fn next_turn(&self, path: &str, body: Value) -> Option<(usize, ModelTurn)> {
        let mut log = self.log.lock();
        if log.requests.len() >= MAX_REQUESTS {
            return None;
        }
        let mut request = RecordedRequest {
            path: path.to_owned(),
            body,
            turn: None,
        };
        let is_subagent =
            !self.script.subagent_turns.is_empty() && !request.shows(&self.script.prompt);
        let (turns, number) = if is_subagent {
            (&self.script.subagent_turns, log.subagent_turns)
        } else {
            (&self.script.turns, log.turns)
        };
        let turn = self.choose(&request, turns.get(number), log.calls);
        let (turn, is_conversation) = match turn {
            Some(turn) => (turn, true),
            None => (text_turn("ok"), false),
        };
        if is_conversation {
            log.calls += turn.calls.len();
            if is_subagent {
                log.subagent_turns += 1;
            } else {
                request.turn = Some(log.turns);
                log.turns += 1;
            }
        }
        log.requests.push(request);
        Some((log.requests.len(), turn))
    }

    /// Returns the next turn of the conversation, if the request offers the tools that it needs. `calls` is the number of
    /// calls before it.
    fn choose(
        &self,
        request: &RecordedRequest,
        turn: Option<&ScriptedTurn>,
        calls: usize,
    ) -> Option<ModelTurn> {
        let offered = request.offered_tools();
        let is_conversation = offered.contains(&self.run.shell.name);
        let Some(turn) = turn else {
            return is_conversation.then(|| text_turn(&self.script.final_text));
        };
        let mut requested = Vec::new();
        for (index, action) in turn.actions.iter().enumerate() {
            let tool = action.tool(self.run)?;
            let name = tool
                .name
                .split_once('/')
                .map_or(tool.name, |(_, name)| name);
            let is_offered = offered.contains(&name);
            if !is_offered && (action.must_be_offered() || !is_conversation) {
                return None;
            }
            requested.push(ModelCall {
                id: format!("{:04}", calls + index + 1),
                tool: tool.name,
                arguments: action.arguments(&tool).ok()?,
            });
        }
        Some(ModelTurn {
            text: turn.text.clone(),
            calls: requested,
        })
    }
}

fn text_turn(text: &str) -> ModelTurn {
    ModelTurn {
        text: text.to_owned(),
        calls: Vec::new(),
    }
}

fn not_found(path: &str) -> Reply {
    let message = format!("this scripted model has nothing at `{path}`");
    let error = json!({ "type": "not_found_error", "message": message });
    Reply::Json(StatusCode::NOT_FOUND, json!({ "error": error }))
}
