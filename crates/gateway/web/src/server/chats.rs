//! The routes of chats: messages, history, and requests that are not messages.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::access::{self, Client};
use super::answer::{self, AnswerCollector, RETRY_AFTER};
use super::body::read_json;
use super::events;
use super::http_error::HttpError;
use super::state::SharedState;
use super::upload;
use super::wait::AnswerWait;
use crate::client_chat::{ClientChatId, place_of};
use crate::client_frame::{ClientChat, ClientMessage, ClientRefusal, ServerFrame};
use crate::frame_channel::{dedupe_of, sender};
use tenterhook_channel::channel::{Accepted, Inlet};
use tenterhook_channel::message::{ApprovalChoice, Control};
use tenterhook_channel::store::StoreError;

/// How long a request waits for its channel to run.
const START_PATIENCE: Duration = Duration::from_secs(2);

/// The maximum number of chats in a list.
const MAX_CHATS: usize = 1_000;

/// The maximum number of frames of one request for history, and the number without `limit`.
const MAX_HISTORY: usize = 200;
const DEFAULT_HISTORY: usize = 50;

/// The maximum size of a body that has no text of a person.
const SMALL_BODY: usize = 64 << 10;

/// How the client wants its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyForm {
    /// One body, when the turn has ended.
    Whole,
    /// The frames of the turn.
    Stream,
    /// None: it only wants to know that the message is durable.
    Later,
}

impl ReplyForm {
    fn wanted(headers: &HeaderMap) -> Self {
        let has = |name, word: &str| {
            let values = headers.get_all(name).into_iter();
            let mut values = values.filter_map(|value| value.to_str().ok());
            values.any(|value| value.to_ascii_lowercase().contains(word))
        };
        if has(header::ACCEPT, "text/event-stream") {
            Self::Stream
        } else if has(header::HeaderName::from_static("prefer"), "respond-async") {
            Self::Later
        } else {
            Self::Whole
        }
    }
}

/// Returns whether an accepted message was sent before.
fn is_duplicate(accepted: Accepted) -> Result<bool, HttpError> {
    match accepted {
        Accepted::Recorded => Ok(false),
        Accepted::Duplicate => Ok(true),
        Accepted::Refused { code, notice } => {
            let text = notice.unwrap_or_else(|| "the message was not taken".to_owned());
            Err(answer::refusal(code, text))
        }
        Accepted::Failed { cause } => {
            let text = format!("the message could not be recorded: {cause}");
            Err(HttpError::unavailable("not_recorded", text, RETRY_AFTER))
        }
    }
}

/// `POST /v1/chats/{chat}/messages`.
pub(crate) async fn post_message(
    State(state): State<SharedState>,
    Extension(client): Extension<Client>,
    Path(id): Path<ClientChatId>,
    request: Request,
) -> Result<Response, HttpError> {
    let channel = Arc::clone(state.http()?);
    let user = &client.token.user;
    let chat = id.chat_of(channel.id(), user);
    let inlet = inlet(&state, &client).await?;
    let form = ReplyForm::wanted(request.headers());
    let last_event = events::last_event(request.headers())?;
    let message_id = message_id(request.headers())?;
    let content = upload::read_message(&state, (user, &chat), request).await?;
    let message = ClientMessage {
        chat: id.clone(),
        message_id: message_id.clone(),
        text: content.text,
        parts: content.parts,
        reply_to: content.reply_to,
    };
    let dedupe = dedupe_of(&chat, &message_id);

    let mut follower = state.parts.hub.follow(chat.clone(), None);
    let offered = channel.offer(user, message, &inlet).await;
    let is_duplicate = is_duplicate(offered.map_err(refused)?)?;
    if form == ReplyForm::Later {
        let body = json!({"chat": id, "message_id": message_id, "duplicate": is_duplicate});
        return Ok((StatusCode::ACCEPTED, Json(body)).into_response());
    }
    if is_duplicate {
        follower = state.parts.hub.follow(chat.clone(), Some(0));
    }
    let collector = AnswerCollector::new(id.clone(), message_id);
    let token_ended = access::token_ended(&state.gatekeeper, &client.token);
    let wait = AnswerWait::new(state, chat, dedupe, follower, collector);
    Ok(match form {
        ReplyForm::Stream => events::stream_answer(wait, token_ended, id, is_duplicate, last_event),
        ReplyForm::Whole | ReplyForm::Later => tokio::select! {
            answer = wait.answer() => answer.into_response(),
            () = token_ended => return Err(access::unauthorized()),
        },
    })
}

/// Returns the id of a message: what the client chose, so that it can send the message again, or a new one.
fn message_id(headers: &HeaderMap) -> Result<String, HttpError> {
    let Some(key) = headers.get("idempotency-key") else {
        return Ok(Uuid::now_v7().to_string());
    };
    let key = key.to_str().ok().filter(|key| !key.is_empty());
    key.map(str::to_owned).ok_or_else(|| {
        HttpError::bad_request(
            "invalid_key",
            "`Idempotency-Key` must be visible ASCII characters",
        )
    })
}

/// Returns the answer to a message that the channel does not take.
fn refused(refusal: ClientRefusal) -> HttpError {
    match refusal.code {
        "too_large" => answer::refusal(refusal.code, refusal.text),
        code => HttpError::bad_request(code, refusal.text),
    }
}

/// Returns where messages go.
async fn inlet(state: &SharedState, client: &Client) -> Result<Inlet, HttpError> {
    let channel = state.http()?;
    // The server accepts connections a moment before its channels run.
    let running = tokio::time::timeout(START_PATIENCE, channel.wait_for_inlet()).await;
    let inlet = running.ok().flatten();
    let inlet = inlet.map(|inlet| inlet.for_role(client.token.role()));
    inlet.ok_or_else(|| {
        HttpError::unavailable("stopped", "the channel does not run now", RETRY_AFTER)
    })
}

/// `GET /v1/chats`: the chats of the user, the most recent first.
pub(crate) async fn list_chats(
    State(state): State<SharedState>,
    Extension(client): Extension<Client>,
) -> Result<Json<Value>, HttpError> {
    let channel = state.http()?.id();
    let own = place_of(channel, &client.token.user);
    let chats = state.parts.store.chats_of(&own, MAX_CHATS).await;
    let chats = chats.map_err(|error| unreadable(&error))?;
    let own = chats.into_iter().filter_map(|summary| {
        Some(ClientChat {
            id: ClientChatId::of(&summary.chat, channel, &client.token.user)?,
            title: summary.title,
            last_seq: summary.last_seq,
            at: summary.at,
        })
    });
    Ok(Json(json!({"chats": own.collect::<Vec<_>>()})))
}

#[derive(Deserialize)]
pub(crate) struct HistoryQuery {
    before: Option<u64>,
    limit: Option<usize>,
}

/// `GET /v1/chats/{chat}/history?before=&limit=`: durable frames, in order.
pub(crate) async fn history(
    State(state): State<SharedState>,
    Extension(client): Extension<Client>,
    Path(id): Path<ClientChatId>,
    Query(query): Query<HistoryQuery>,
) -> Result<Response, HttpError> {
    let chat = id.chat_of(state.http()?.id(), &client.token.user);
    let before = query.before.unwrap_or(u64::MAX);
    let limit = query.limit.unwrap_or(DEFAULT_HISTORY).clamp(1, MAX_HISTORY);
    let page = state.parts.store.frames_before(&chat, before, limit).await;
    let page = page.map_err(|error| unreadable(&error))?;
    let history = ServerFrame::History {
        chat: id,
        frames: page.frames,
        oldest: page.oldest,
    };
    Ok(Json(history).into_response())
}

/// `POST /v1/chats/{chat}/cancel`.
pub(crate) async fn cancel(
    State(state): State<SharedState>,
    Extension(client): Extension<Client>,
    Path(id): Path<ClientChatId>,
) -> Result<Json<Value>, HttpError> {
    let chat = id.chat_of(state.http()?.id(), &client.token.user);
    let sender = sender(&client.token.user);
    let notice = inlet(&state, &client)
        .await?
        .control(Control::Cancel { chat, sender })
        .await;
    Ok(Json(json!({"notice": notice})))
}

/// An answer to a question: `choice` for a tool call, `text` for a question of a script.
#[derive(Deserialize)]
struct QuestionAnswer {
    choice: Option<ApprovalChoice>,
    reason: Option<String>,
    text: Option<String>,
}

/// `POST /v1/chats/{chat}/approvals/{nonce}`.
pub(crate) async fn answer_question(
    State(state): State<SharedState>,
    Extension(client): Extension<Client>,
    Path((id, nonce)): Path<(ClientChatId, String)>,
    body: Body,
) -> Result<Json<Value>, HttpError> {
    let chat = id.chat_of(state.http()?.id(), &client.token.user);
    let answer: QuestionAnswer = read_json(body, SMALL_BODY).await?;
    let sender = sender(&client.token.user);
    let control = match answer.choice {
        Some(choice) => Control::Approval {
            nonce,
            choice,
            reason: answer.reason,
            chat,
            sender,
        },
        None => Control::Answer {
            nonce,
            text: answer.text,
            chat,
            sender,
        },
    };
    let notice = inlet(&state, &client).await?.control(control).await;
    Ok(Json(json!({"notice": notice})))
}

/// The refusal of a request for something that the store cannot read.
pub(crate) fn unreadable(error: &StoreError) -> HttpError {
    let text = format!("the store cannot be read: {error}");
    HttpError::unavailable("unreadable", text, RETRY_AFTER)
}
