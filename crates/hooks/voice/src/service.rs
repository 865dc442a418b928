//! Services with the HTTP interface of OpenAI.
//!
//! | what | rule |
//! |---|---|
//! | deadline | set by the caller; dropping the future closes the connection |
//! | redirects, proxies, compression | none |
//! | a second try | once, after 429, a 5xx status or a failed connection |
//! | answers | read up to a limit |
//! | the key | in no message |

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tenterhook_runners::http::direct_client;

use crate::container::AudioContainer;
use crate::engine_settings::SpeechService;
use crate::error::VoiceError;
use crate::limits::MAX_SPEECH_BYTES;
use crate::service_key::read_key;
use crate::settings::TtsSettings;

/// How long it may take to connect, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of an answer with a transcript.
const MAX_ANSWER: usize = 1 << 20;
/// How much of the answer of a service that failed is read.
const MAX_ERROR_ANSWER: usize = 4096;
/// How much of it is shown.
const SHOWN_ERROR: usize = 200;
/// How long to wait before the second try, unless the service says it.
const PAUSE: Duration = Duration::from_millis(300);
/// The longest time to wait if the service says it.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The voice if the settings name none.
const DEFAULT_VOICE: &str = "alloy";

/// The words for the formats that a service is asked for.
const FORMATS: [(AudioContainer, &str); 4] = [
    (AudioContainer::OggOpus, "opus"),
    (AudioContainer::Mp3, "mp3"),
    (AudioContainer::Wav, "wav"),
    (AudioContainer::Flac, "flac"),
];

/// A client of one service.
#[derive(Debug, Clone)]
pub(crate) struct ServiceClient {
    client: Client,
    base_url: String,
    host: String,
    model: String,
    /// For removing it from what the service says.
    key: Option<ServiceKey>,
}

/// A key, which is never shown.
#[derive(Clone)]
struct ServiceKey(String);

impl std::fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

#[derive(Deserialize)]
struct TranscriptAnswer {
    text: String,
}

/// The result of one try.
enum Try {
    Answered(Response),
    /// A second try may help, after this time.
    Later(Duration, VoiceError),
    Failed(VoiceError),
}

impl ServiceClient {
    /// Makes the client, and reads the key.
    pub(crate) fn new(service: &SpeechService) -> Result<Self, VoiceError> {
        let host = host_of(&service.base_url);
        let problem = |problem: String| VoiceError::Service {
            host: host.clone(),
            problem,
        };
        let key = read_key(service)?;
        let mut headers = HeaderMap::new();
        let agent = concat!("tenterhook/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        if let Some(key) = &key {
            let value = HeaderValue::try_from(format!("Bearer {key}"));
            // The error does not show the value.
            let mut value = value.map_err(|error| problem(error.to_string()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let is_secure = service.base_url.starts_with("https:");
        let builder = direct_client(is_secure).map_err(|error| problem(error.to_string()))?;
        let client = builder
            .connect_timeout(CONNECT_TIMEOUT)
            .default_headers(headers)
            .build()
            .map_err(|error| problem(cause(&error)))?;
        Ok(Self {
            client,
            base_url: service.base_url.clone(),
            model: service.model.clone(),
            key: key.map(ServiceKey),
            host,
        })
    }

    /// Returns the text of a recording.
    pub(crate) async fn transcribe(
        &self,
        recording: &[u8],
        container: AudioContainer,
        language: Option<&str>,
    ) -> Result<String, VoiceError> {
        let build = || {
            // The service tells the format by the extension.
            let file = Part::bytes(recording.to_vec())
                .file_name(format!("audio.{}", container.extension()));
            let mut form = Form::new()
                .part("file", file)
                .text("model", self.model.clone())
                .text("response_format", "json");
            if let Some(language) = language {
                form = form.text("language", language.to_owned());
            }
            self.client
                .post(format!("{}/audio/transcriptions", self.base_url))
                .multipart(form)
        };
        let mut response = self.send(build).await?;
        let body = self
            .body(&mut response, MAX_ANSWER, "the transcript")
            .await?;
        let answer: TranscriptAnswer = serde_json::from_slice(&body)
            .map_err(|_| self.failed("did not answer with JSON that has a `text`".to_owned()))?;
        Ok(answer.text)
    }

    /// Returns the audio of a text, in the first of the wanted formats that services know.
    pub(crate) async fn speak(
        &self,
        text: &str,
        settings: &TtsSettings,
        wanted: &[AudioContainer],
    ) -> Result<Vec<u8>, VoiceError> {
        let known = wanted.iter().find_map(|container| {
            let format = FORMATS.iter().find(|(known, _)| known == container);
            format.map(|(_, word)| *word)
        });
        let mut request = json!({
            "model": self.model,
            "input": text,
            "voice": settings.voice.as_deref().unwrap_or(DEFAULT_VOICE),
            "response_format": known.unwrap_or("mp3"),
        });
        if (settings.speed - 1.0).abs() > f64::EPSILON
            && let Some(request) = request.as_object_mut()
        {
            request.insert("speed".to_owned(), json!(settings.speed));
        }
        let body = request.to_string();
        let build = || {
            let request = self.client.post(format!("{}/audio/speech", self.base_url));
            request
                .header(reqwest::header::CONTENT_TYPE, "application/json")
                .body(body.clone())
        };
        let mut response = self.send(build).await?;
        let audio = self
            .body(&mut response, MAX_SPEECH_BYTES, "the spoken answer")
            .await?;
        match AudioContainer::of_bytes(&audio) {
            Some(_) => Ok(audio),
            None => Err(self.failed("did not answer with audio of a known format".to_owned())),
        }
    }

    /// Sends a request, and once more if that may help.
    async fn send(&self, build: impl Fn() -> RequestBuilder) -> Result<Response, VoiceError> {
        let pause = match self.send_once(build()).await {
            Try::Answered(response) => return Ok(response),
            Try::Failed(error) => return Err(error),
            Try::Later(pause, error) if pause > MAX_PAUSE => return Err(error),
            Try::Later(pause, _) => pause,
        };
        tokio::time::sleep(pause).await;
        match self.send_once(build()).await {
            Try::Answered(response) => Ok(response),
            Try::Later(_, error) | Try::Failed(error) => Err(error),
        }
    }

    async fn send_once(&self, request: RequestBuilder) -> Try {
        let mut response = match request.send().await {
            Ok(response) => response,
            Err(error) => {
                let failed = self.failed(format!("did not answer: {}", cause(&error)));
                return if error.is_connect() {
                    Try::Later(PAUSE, failed)
                } else {
                    Try::Failed(failed)
                };
            }
        };
        let status = response.status();
        if status.is_success() {
            return Try::Answered(response);
        }
        if status.is_redirection() {
            return Try::Failed(
                self.failed(format!("answered {status}; redirects are not followed")),
            );
        }
        let pause = retry_after(&response).unwrap_or(PAUSE);
        let words = self.error_words(&mut response).await;
        let words = if words.is_empty() {
            words
        } else {
            format!(": {words}")
        };
        let error = self.failed(format!("answered {status}{words}"));
        if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
            Try::Later(pause, error)
        } else {
            Try::Failed(error)
        }
    }

    async fn body(
        &self,
        response: &mut Response,
        limit: usize,
        what: &str,
    ) -> Result<Vec<u8>, VoiceError> {
        let mut body = Vec::new();
        loop {
            let chunk = response.chunk().await;
            let chunk = chunk.map_err(|error| {
                self.failed(format!("ended its answer early: {}", cause(&error)))
            })?;
            let Some(chunk) = chunk else {
                return Ok(body);
            };
            if body.len() + chunk.len() > limit {
                return Err(VoiceError::TooLarge {
                    what: what.to_owned(),
                    limit: limit as u64,
                });
            }
            body.extend_from_slice(&chunk);
        }
    }

    /// Returns the beginning of what a service says about a failure, on one line and without the key.
    async fn error_words(&self, response: &mut Response) -> String {
        let mut bytes = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            bytes.extend_from_slice(&chunk);
            if bytes.len() >= MAX_ERROR_ANSWER {
                bytes.truncate(MAX_ERROR_ANSWER);
                break;
            }
        }
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some(ServiceKey(key)) = &self.key {
            text = text.replace(key.as_str(), "***");
        }
        let is_separator = |c: char| c.is_whitespace() || c.is_control();
        let words = text.split(is_separator).filter(|word| !word.is_empty());
        let line = words.collect::<Vec<&str>>().join(" ");
        tenterhook_protocol::excerpt::head(&line, SHOWN_ERROR).to_owned()
    }

    fn failed(&self, problem: String) -> VoiceError {
        VoiceError::Service {
            host: self.host.clone(),
            problem,
        }
    }
}

/// Returns the time that a service asks to wait, in seconds. A date is ignored.
fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    Some(Duration::from_secs(value.trim().parse().ok()?))
}

/// Returns the host and port of an address that was checked before.
fn host_of(base_url: &str) -> String {
    let rest = base_url
        .split_once("://")
        .map_or(base_url, |(_, rest)| rest);
    rest.split(['/', '?', '#'])
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Returns the root cause of an error of the client. The errors above it repeat the URL.
fn cause(error: &reqwest::Error) -> String {
    let mut source = error.source();
    let mut text = None;
    while let Some(error) = source {
        text = Some(error.to_string());
        source = error.source();
    }
    text.unwrap_or_else(|| "the request failed".to_owned())
}
