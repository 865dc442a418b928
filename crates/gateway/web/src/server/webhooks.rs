//! The route of webhooks.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::answer::{self, RETRY_AFTER};
use super::body::{READ_TIMEOUT, read_body};
use super::http_error::HttpError;
use super::state::SharedState;
use crate::webhook::{MAX_WEBHOOK_BODY, WebhookOutcome};

/// `POST /v1/webhooks/{name}`. Its only credential is the signature.
pub(crate) async fn receive(
    State(state): State<SharedState>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, HttpError> {
    let mut webhooks = state.parts.webhooks.iter();
    let webhook = webhooks.find(|webhook| webhook.id().as_str() == name);
    let webhook = webhook.ok_or(HttpError::not_found("there is no webhook with this name"))?;
    let body = read_body(body, MAX_WEBHOOK_BODY, READ_TIMEOUT).await?;
    // A client that goes away must not leave a delivery that is neither taken nor forgotten.
    let webhook = Arc::clone(webhook);
    let received = tokio::spawn(async move { webhook.receive(&headers, &body).await });
    let status = match received.await.unwrap_or(WebhookOutcome::Unavailable) {
        WebhookOutcome::Recorded => "recorded",
        WebhookOutcome::Duplicate => "duplicate",
        WebhookOutcome::Ignored => "ignored",
        WebhookOutcome::Unauthorized => {
            let message = "the signature is missing, wrong or too old";
            return Err(HttpError::new(
                StatusCode::UNAUTHORIZED,
                "wrong_signature",
                message,
            ));
        }
        WebhookOutcome::Invalid(cause) => {
            return Err(HttpError::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid_body",
                cause,
            ));
        }
        WebhookOutcome::Refused(code) => {
            return Err(answer::refusal(code, "the message was not taken"));
        }
        WebhookOutcome::Unavailable => {
            let message = "the message cannot be recorded now; deliver it again later";
            return Err(HttpError::unavailable("not_recorded", message, RETRY_AFTER));
        }
    };
    Ok(Json(json!({"status": status})).into_response())
}
