//! Converts errors of a service, and of the connection to it, to [`ProviderError`]s.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;
use tenterhook_protocol::{error_chain, excerpt};

use crate::error::{ProviderError, ProviderErrorKind, is_overflow};

/// The maximum number of characters of an error that are shown.
const SHOWN: usize = 600;

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "all other errors of the library concern the request or its configuration"
)]
pub(super) fn model_error(error: &genai::Error) -> ProviderError {
    match error {
        genai::Error::HttpError {
            status,
            body,
            headers,
            ..
        } => status_error(status.as_u16(), body, headers),
        genai::Error::WebStream { error: inner, .. } => {
            match inner.downcast_ref::<genai::Error>() {
                Some(inner) => model_error(inner),
                None => transport_error(inner.as_ref()),
            }
        }
        genai::Error::StreamParse { serde_error, .. } => ProviderError::new(
            ProviderErrorKind::Broken,
            format!("the answer broke off or is unreadable: {serde_error}"),
        ),
        genai::Error::ChatResponse { body, .. } => event_error(body),
        other => ProviderError::new(ProviderErrorKind::Refused, other.to_string()),
    }
}

fn status_error(status: u16, body: &str, headers: &HeaderMap) -> ProviderError {
    let text = serde_json::from_str(body)
        .ok()
        .and_then(|body: Value| message_of(&body));
    let text = text.unwrap_or_else(|| body.to_owned());
    let kind = match status {
        _ if is_overflow(body) => ProviderErrorKind::ContextOverflow,
        408 | 425 | 429 | 500..=599 => ProviderErrorKind::Unavailable,
        _ => ProviderErrorKind::Refused,
    };
    let message = if text.is_empty() {
        format!("the model service answered with status {status}")
    } else {
        format!("the model service answered with status {status}: {text}")
    };
    ProviderError {
        retry_after: retry_after(headers),
        ..ProviderError::new(kind, message)
    }
}

/// Converts an error that the service sent in the middle of a stream.
pub(crate) fn event_error(body: &Value) -> ProviderError {
    let whole = body.to_string();
    let text = message_of(body).unwrap_or_else(|| whole.clone());
    let is_busy = [
        "overloaded",
        "rate_limit",
        "server_error",
        "api_error",
        "unavailable",
    ];
    let kind = if is_overflow(&whole) {
        ProviderErrorKind::ContextOverflow
    } else if is_busy.iter().any(|word| whole.contains(word)) {
        ProviderErrorKind::Unavailable
    } else {
        ProviderErrorKind::Refused
    };
    ProviderError::new(kind, text)
}

/// Removes the key and other secrets from an error, because services quote the key that they refuse. Only then is the text shortened:
/// after a cut, the rest of a key would no longer be recognised.
pub(super) fn presentable(error: ProviderError, secrets: &[String]) -> ProviderError {
    let secrets = secrets.iter().filter(|secret| !secret.is_empty());
    let message = secrets.fold(error.message, |message, secret| {
        message.replace(secret.as_str(), "[the key]")
    });
    ProviderError {
        message: excerpt::shortened(&message, SHOWN),
        ..error
    }
}

pub(super) fn transport_error(error: &(dyn std::error::Error + 'static)) -> ProviderError {
    let is_connect = error
        .downcast_ref::<reqwest::Error>()
        .is_some_and(reqwest::Error::is_connect);
    let kind = if is_connect {
        ProviderErrorKind::Unavailable
    } else {
        ProviderErrorKind::Broken
    };
    ProviderError::new(kind, error_chain(error))
}

/// Finds the message in an error body. Services put it at `error.message`, `message` or `error`.
fn message_of(body: &Value) -> Option<String> {
    let found = ["/error/message", "/message", "/error", "/0/error/message"]
        .iter()
        .find_map(|path| body.pointer(path)?.as_str());
    found.map(str::to_owned)
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number =
        |name: &str| -> Option<u64> { headers.get(name)?.to_str().ok()?.trim().parse().ok() };
    let millis = number("retry-after-ms").map(Duration::from_millis);
    millis.or_else(|| number("retry-after").map(Duration::from_secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_kinds_and_waits() {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "7".parse().unwrap());
        let busy = status_error(429, r#"{"error":{"message":"slow down"}}"#, &headers);
        assert_eq!(busy.kind, ProviderErrorKind::Unavailable);
        assert_eq!(busy.retry_after, Some(Duration::from_secs(7)));
        assert_eq!(
            busy.message,
            "the model service answered with status 429: slow down"
        );
        let long = status_error(
            400,
            r#"{"error":{"code":"context_length_exceeded"}}"#,
            &HeaderMap::new(),
        );
        assert_eq!(long.kind, ProviderErrorKind::ContextOverflow);
        assert_eq!(
            status_error(401, "no", &HeaderMap::new()).kind,
            ProviderErrorKind::Refused
        );
        assert_eq!(
            status_error(529, "", &HeaderMap::new()).kind,
            ProviderErrorKind::Unavailable
        );
    }
}
