//! Frames as server-sent events: one JSON object an event, whose id is the number of a durable frame.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt as _};

use super::access::{self, Client};
use super::answer::Answer;
use super::http_error::HttpError;
use super::state::SharedState;
use super::wait::{AnswerWait, Progress};
use crate::client_chat::ClientChatId;
use crate::client_frame::{ClientRefusal, ServerFrame, encode_chat_frame};
use crate::hub::Followed;
use tenterhook_channel::frame::ChatFrame;

/// How often a comment is sent while nothing happens, so that a broken connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// `GET /v1/chats/{chat}/events`: the frames of a chat, after `Last-Event-ID` or from now on.
pub(crate) async fn follow_chat(
    State(state): State<SharedState>,
    Extension(client): Extension<Client>,
    Path(id): Path<ClientChatId>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let chat = id.chat_of(state.http()?.id(), &client.token.user);
    let frames = state.parts.hub.follow(chat, last_event(&headers)?);
    let token_ended = access::token_ended(&state.gatekeeper, &client.token);
    let events = unfold((state, frames, id), |(state, mut frames, id)| async move {
        let followed = tokio::select! {
            // The last frames of turns that ended while the gateway stopped come first.
            biased;
            followed = frames.next() => followed?,
            () = state.stop.cancelled() => return None,
        };
        let event = match followed {
            Followed::Frame(frame) => frame_event(&id, &frame),
            Followed::Gap { from, to } => server_event(&ServerFrame::Gap {
                chat: id.clone(),
                from,
                to,
            }),
        };
        Some((Ok(event), (state, frames, id)))
    });
    Ok(respond(events.take_until(token_ended)))
}

/// Streams the frames of the turn that answers a message, until `token_ended`. Frames that the client has seen are left
/// out.
pub(crate) fn stream_answer(
    wait: AnswerWait,
    token_ended: BoxFuture<'static, ()>,
    id: ClientChatId,
    is_duplicate: bool,
    last_event: Option<u64>,
) -> Response {
    let frames = unfold(Some((wait, id)), move |rest| async move {
        let (mut wait, id) = rest?;
        loop {
            match wait.next().await {
                Progress::Frame(frame) => {
                    // A repeated request reads the whole chat again; only the answer to its own message counts.
                    let is_other = is_duplicate && !wait.is_heard();
                    let is_seen = frame.seq.is_some() && frame.seq <= last_event;
                    if !is_other && !is_seen {
                        return Some((Ok(frame_event(&id, &frame)), Some((wait, id))));
                    }
                }
                Progress::Ended(Answer::Given(_)) => return None,
                Progress::Ended(Answer::Refused(refusal)) => {
                    let error = ClientRefusal::new("refused", refusal.message);
                    let end = ServerFrame::error(error.of_message(wait.message_id()), Some(id));
                    return Some((Ok(server_event(&end)), None));
                }
            }
        }
    });
    respond(frames.take_until(token_ended))
}

/// Returns the number of the last frame that a client has seen.
///
/// # Errors
///
/// Fails with 400 if the header is not a number.
pub(crate) fn last_event(headers: &HeaderMap) -> Result<Option<u64>, HttpError> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let number = value.to_str().ok().and_then(|value| value.parse().ok());
    number.map(Some).ok_or_else(|| {
        HttpError::bad_request(
            "invalid_event_id",
            "`Last-Event-ID` must be the number of a frame",
        )
    })
}

fn respond(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Sse::new(events).keep_alive(keep_alive).into_response()
}

fn frame_event(id: &ClientChatId, frame: &ChatFrame) -> Event {
    let event = Event::default().data(encode_chat_frame(id, frame));
    match frame.seq {
        Some(seq) => event.id(seq.to_string()),
        None => event,
    }
}

fn server_event(frame: &ServerFrame) -> Event {
    Event::default().data(frame.encode())
}
