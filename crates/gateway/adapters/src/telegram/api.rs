//! Calls of Telegram's methods.
//!
//! Parameters are JSON, and `bot_api.rs` has the objects that Telegram answers with.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::multipart::{Form, Part};
use reqwest::redirect::Policy;
use reqwest::{Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tenterhook_protocol::error_chain;
use tenterhook_runners::http::{tls_config, tls_config_without_roots};
use thiserror::Error;

use super::bot_api::{ErrorResponse, MethodResponse};
use tenterhook_channel::channel::{ChannelError, DeliveryError, MediaSink};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a file may take, in either direction.
const FILE_TIMEOUT: Duration = Duration::from_mins(3);
/// The maximum length of an answer in bytes: 100 updates are shorter.
const MAX_ANSWER: usize = 8 << 20;
/// How many groups that have moved are kept in memory. Telegram reports the new id of others each time.
const MAX_MOVED: usize = 1_000;
/// The parameter with the id of a chat.
const CHAT_ID: &str = "chat_id";

/// A bot's connection to Telegram.
pub(super) struct Api {
    client: reqwest::Client,
    base: Url,
    token: String,
    /// The new ids of groups that have moved.
    moved: Mutex<BTreeMap<i64, i64>>,
}

/// A call that failed. It contains no address and no token.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum ApiError {
    /// Telegram refused the call.
    #[error("Telegram refused `{method}`: {description} ({code})")]
    Refused {
        method: &'static str,
        code: u64,
        description: String,
        retry_after: Option<Duration>,
        /// The new id of the group that the call was about.
        moved_to: Option<i64>,
    },
    /// There is no valid answer.
    #[error("`{method}` of Telegram failed: {cause}")]
    Failed { method: &'static str, cause: String },
}

impl ApiError {
    /// Returns the status with which Telegram refused the call.
    pub(super) fn code(&self) -> Option<u64> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::Failed { .. } => None,
        }
    }

    /// Returns whether Telegram refused the contents of the call.
    pub(super) fn is_bad_request(&self) -> bool {
        self.code() == Some(400)
    }

    /// Returns how long Telegram asks to wait.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            Self::Failed { .. } => None,
        }
    }

    /// Returns whether an edit failed because it would change nothing.
    pub(super) fn is_not_modified(&self) -> bool {
        matches!(self, Self::Refused { description, .. } if description.contains("not modified"))
    }
}

impl From<ApiError> for DeliveryError {
    fn from(error: ApiError) -> Self {
        let cause = error.to_string();
        match error.code() {
            // A token that is refused now (401, 404) can be right again, and the answer must not be lost meanwhile.
            Some(400 | 402 | 403 | 405..=428 | 430..=499) => Self::Permanent { cause },
            _ => Self::Retry {
                after: error.retry_after(),
                cause,
            },
        }
    }
}

impl Api {
    pub(super) fn new(api_base: &str, token: String) -> Result<Self, ChannelError> {
        let invalid = |cause: String| ChannelError::new("settings", cause);
        let base = Url::parse(api_base)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && !url.cannot_be_a_base())
            .ok_or_else(|| {
                invalid("`api_base` is not an address; expected https://HOST".to_owned())
            })?;
        let tls = if base.scheme() == "https" {
            tls_config(&["h2", "http/1.1"])
        } else {
            tls_config_without_roots()
        };
        let tls = tls.map_err(|error| invalid(format!("cannot use TLS: {error}")))?;
        let builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect would take the token, which is in the path, to another server.
            .redirect(Policy::none());
        let is_local = matches!(base.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        let builder = if is_local {
            builder.no_proxy()
        } else {
            builder
        };
        let client = builder
            .build()
            .map_err(|error| invalid(format!("cannot create the client: {error}")))?;
        Ok(Self {
            client,
            base,
            token,
            moved: Mutex::default(),
        })
    }

    /// Calls a method.
    pub(super) async fn call<Output: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &(impl Serialize + Sync),
    ) -> Result<Output, ApiError> {
        self.call_within(CALL_TIMEOUT, method, params).await
    }

    /// Calls a method that may take `timeout`.
    pub(super) async fn call_within<Output: DeserializeOwned>(
        &self,
        timeout: Duration,
        method: &'static str,
        params: &(impl Serialize + Sync),
    ) -> Result<Output, ApiError> {
        let mut params = to_value(method, params)?;
        self.redirect(&mut params);
        let send = async |params: &Value| {
            let request = self.client.post(self.method_url(method)).json(params);
            self.answer(method, request.timeout(timeout)).await
        };
        match send(&params).await {
            Err(error) if self.has_moved(&error, &mut params) => send(&params).await,
            result => result,
        }
    }

    /// Calls a method with a file as the value of `field`.
    pub(super) async fn upload<Output: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &(impl Serialize + Sync),
        (field, path, name): (&'static str, &Path, &str),
    ) -> Result<Output, ApiError> {
        let failed = |cause: String| ApiError::Failed { method, cause };
        let mut params = to_value(method, params)?;
        self.redirect(&mut params);
        let bytes = tokio::fs::read(path)
            .await
            .map_err(|error| failed(format!("cannot read the file `{name}`: {error}")))?;
        let bytes = Bytes::from(bytes);
        let send = async |params: &Value| {
            let file = Part::stream(bytes.clone()).file_name(name.to_owned());
            let form = form_of(params).part(field, file);
            let request = self.client.post(self.method_url(method)).multipart(form);
            self.answer(method, request.timeout(FILE_TIMEOUT)).await
        };
        match send(&params).await {
            Err(error) if self.has_moved(&error, &mut params) => send(&params).await,
            result => result,
        }
    }

    /// Replaces the id of a group that has moved.
    fn redirect(&self, params: &mut Value) {
        if let Some(id) = params.get_mut(CHAT_ID)
            && let Some(new) = id
                .as_i64()
                .and_then(|id| self.moved.lock().get(&id).copied())
        {
            *id = new.into();
        }
    }

    /// Returns whether a call failed because its group has moved. Then `params` are for its new id.
    fn has_moved(&self, error: &ApiError, params: &mut Value) -> bool {
        let ApiError::Refused {
            moved_to: Some(new),
            ..
        } = error
        else {
            return false;
        };
        let Some(id) = params.get_mut(CHAT_ID) else {
            return false;
        };
        let Some(old) = id.as_i64().filter(|old| old != new) else {
            return false;
        };
        let mut moved = self.moved.lock();
        if moved.len() < MAX_MOVED {
            moved.insert(old, *new);
        }
        *id = (*new).into();
        true
    }

    fn method_url(&self, method: &str) -> Url {
        self.url(&[&format!("bot{}", self.token), method])
    }

    /// Downloads a file by the path that `getFile` returned.
    pub(super) async fn download(
        &self,
        path: &str,
        into: &mut MediaSink,
    ) -> Result<(), ChannelError> {
        let failed = |cause: String| ChannelError::new("download", cause);
        let parts: Vec<&str> = path.split('/').collect();
        if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
            return Err(failed(
                "Telegram sent an invalid path of the file".to_owned(),
            ));
        }
        let bot = format!("bot{}", self.token);
        let segments: Vec<&str> = ["file", &bot].into_iter().chain(parts).collect();
        let request = self.client.get(self.url(&segments)).timeout(FILE_TIMEOUT);
        let response = request.send().await;
        let mut response = response.map_err(|error| failed(self.describe(error)))?;
        if !response.status().is_success() {
            let status = response.status().as_u16();
            return Err(failed(format!("Telegram refused the file ({status})")));
        }
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| failed(self.describe(error)))?
        {
            into.write(&chunk)
                .map_err(|error| ChannelError::new("too_large", error.to_string()))?;
        }
        Ok(())
    }

    fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        // `new` has checked that the address has a path.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    async fn answer<Output: DeserializeOwned>(
        &self,
        method: &'static str,
        request: reqwest::RequestBuilder,
    ) -> Result<Output, ApiError> {
        let failed = |cause: String| ApiError::Failed { method, cause };
        let response = request.send().await;
        let response = response.map_err(|error| failed(self.describe(error)))?;
        let status = response.status().as_u16();
        let body = self.read(response).await.map_err(failed)?;
        if status == 200 {
            return match serde_json::from_slice::<MethodResponse<Output>>(&body) {
                Ok(answer) => Ok(answer.result),
                Err(error) => Err(failed(format!("the answer is invalid: {error}"))),
            };
        }
        // A proxy in between answers something else.
        let refusal = serde_json::from_slice::<ErrorResponse>(&body).ok();
        let parameters = refusal.as_ref().and_then(|refusal| refusal.parameters);
        Err(ApiError::Refused {
            method,
            code: u64::from(status),
            description: refusal.map_or_else(
                || "no description".to_owned(),
                |refusal| redact(&refusal.description, &self.token),
            ),
            retry_after: parameters
                .and_then(|parameters| parameters.retry_after)
                .map(Duration::from_secs),
            moved_to: parameters.and_then(|parameters| parameters.migrate_to_chat_id),
        })
    }

    async fn read(&self, mut response: Response) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.describe(error))?
        {
            if body.len() + chunk.len() > MAX_ANSWER {
                return Err(format!("the answer is longer than {MAX_ANSWER} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Describes an error of the client, without the address.
    fn describe(&self, error: reqwest::Error) -> String {
        redact(&error_chain(&error.without_url()), &self.token)
    }
}

fn to_value(method: &'static str, params: &(impl Serialize + Sync)) -> Result<Value, ApiError> {
    serde_json::to_value(params).map_err(|error| ApiError::Failed {
        method,
        cause: error.to_string(),
    })
}

fn form_of(params: &Value) -> Form {
    let mut form = Form::new();
    for (key, value) in params.as_object().into_iter().flatten() {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        form = form.text(key.clone(), text);
    }
    form
}

/// Removes bot tokens from a text.
fn redact(text: &str, token: &str) -> String {
    let text = if token.is_empty() {
        text.to_owned()
    } else {
        text.replace(token, "[token]")
    };
    let mut parts = text.split("bot");
    let mut redacted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        redacted.push_str("bot");
        let after_id = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let secret = after_id.strip_prefix(':');
        if let Some(secret) = secret.filter(|_| after_id.len() < part.len()) {
            let is_secret = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            redacted.push_str("[token]");
            redacted.push_str(secret.trim_start_matches(is_secret));
        } else {
            redacted.push_str(part);
        }
    }
    redacted
}

#[cfg(test)]
mod tests {
    use super::*;

    // G82
    #[test]
    fn tokens_are_removed_from_texts() {
        for (text, expected) in [
            ("https://x/bot12:aB-_9/getMe", "https://x/bot[token]/getMe"),
            ("no 77:secret here", "no [token] here"),
            ("a robot: says bot", "a robot: says bot"),
            ("bot12:a bot34:b", "bot[token] bot[token]"),
        ] {
            assert_eq!(redact(text, "77:secret"), expected);
        }
    }

    #[test]
    fn an_error_says_whether_sending_again_can_help() {
        let refused = |code, seconds: Option<u64>| ApiError::Refused {
            method: "sendMessage",
            code,
            description: "no".to_owned(),
            retry_after: seconds.map(Duration::from_secs),
            moved_to: None,
        };
        for code in [400, 403, 413, 428, 430, 499] {
            let error = DeliveryError::from(refused(code, None));
            assert!(matches!(error, DeliveryError::Permanent { .. }), "{code}");
        }
        for (code, seconds) in [
            (401, None),
            (404, None),
            (429, Some(2)),
            (500, None),
            (502, None),
        ] {
            let error = DeliveryError::from(refused(code, seconds));
            let expected = seconds.map(Duration::from_secs);
            assert!(matches!(error, DeliveryError::Retry { after, .. } if after == expected));
        }
    }
}
