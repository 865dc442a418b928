//! The engine `openai`, against a service on loopback that follows a script.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Multipart, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use tenterhook_voice::{AudioContainer, VoiceError};
use tokio::net::TcpListener;

use crate::{LONG, settings, silence, stt, tts};

/// What the service does with one request.
#[derive(Debug, Clone)]
enum Reply {
    Json(&'static str),
    Audio(Vec<u8>),
    Status(u16, &'static str),
    RetryAfter(&'static str),
    Redirect(String),
    Hang,
    /// More bytes than anyone wants, without a declared length.
    Flood,
}

#[derive(Debug, Default)]
struct Scripted {
    replies: VecDeque<Reply>,
    /// What was asked, in words.
    asked: Vec<String>,
}

type Shared = Arc<Mutex<Scripted>>;

struct Service {
    url: String,
    shared: Shared,
}

impl Service {
    async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let scripted = Scripted {
            replies: replies.into_iter().collect(),
            asked: Vec::new(),
        };
        let shared = Arc::new(Mutex::new(scripted));
        let app = Router::new()
            .route("/v1/audio/transcriptions", post(transcriptions))
            .route("/v1/audio/speech", post(speech))
            .with_state(Arc::clone(&shared));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, shared }
    }

    fn base_url(&self) -> String {
        format!("base_url={}", self.url)
    }

    fn asked(&self) -> Vec<String> {
        self.shared.lock().unwrap().asked.clone()
    }

    /// Returns the result of one recording, with everything that differs from run to run replaced.
    async fn transcribe(&self, timeout: Duration) -> Result<String, String> {
        let engine = stt(&["engine=openai", &self.base_url()]);
        let text = engine.transcribe(&silence(1, 16_000), timeout).await;
        let host = self
            .url
            .strip_prefix("http://")
            .unwrap()
            .strip_suffix("/v1")
            .unwrap();
        text.map_err(|error| error.to_string().replace(host, "HOST"))
    }
}

async fn transcriptions(
    State(shared): State<Shared>,
    headers: HeaderMap,
    mut form: Multipart,
) -> Response<Body> {
    let mut asked = vec![authorization(&headers)];
    while let Some(field) = form.next_field().await.unwrap() {
        let name = field.name().unwrap().to_owned();
        let file = field.file_name().map(str::to_owned);
        let bytes = field.bytes().await.unwrap();
        asked.push(match file {
            Some(file) => format!("{name}={file} ({} bytes)", bytes.len()),
            None => format!("{name}={}", String::from_utf8_lossy(&bytes)),
        });
    }
    reply(&shared, asked.join(" ")).await
}

async fn speech(State(shared): State<Shared>, headers: HeaderMap, body: String) -> Response<Body> {
    reply(&shared, format!("{} {body}", authorization(&headers))).await
}

fn authorization(headers: &HeaderMap) -> String {
    let value = headers.get("authorization");
    value
        .map_or("-", |value| value.to_str().unwrap())
        .to_owned()
}

async fn reply(shared: &Shared, asked: String) -> Response<Body> {
    let reply = {
        let mut scripted = shared.lock().unwrap();
        scripted.asked.push(asked);
        scripted.replies.pop_front()
    };
    match reply {
        Some(Reply::Json(json)) => json.into_response(),
        Some(Reply::Audio(bytes)) => bytes.into_response(),
        Some(Reply::Status(status, body)) => {
            (StatusCode::from_u16(status).unwrap(), body).into_response()
        }
        Some(Reply::RetryAfter(seconds)) => (
            StatusCode::TOO_MANY_REQUESTS,
            [("retry-after", seconds)],
            "slow down",
        )
            .into_response(),
        Some(Reply::Redirect(to)) => (StatusCode::FOUND, [("location", to)]).into_response(),
        Some(Reply::Hang) => std::future::pending().await,
        Some(Reply::Flood) => {
            let chunks =
                futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 65_536]));
            Body::from_stream(chunks).into_response()
        }
        None => (StatusCode::IM_A_TEAPOT, "nothing more was expected").into_response(),
    }
}

#[tokio::test]
async fn a_recording_is_sent_with_its_extension_and_the_settings() {
    let service = Service::start([Reply::Json(r#"{"text": " Turn on\nthe lights. "}"#)]).await;
    let mut key = tempfile::NamedTempFile::new().unwrap();
    writeln!(key, "canary-key").unwrap();
    let key = format!("key_file={}", key.path().display());
    let engine = stt(&[
        "engine=openai",
        &service.base_url(),
        &key,
        "model=tiny",
        "language=en",
    ]);
    let text = engine.transcribe(&silence(1, 8_000), LONG).await;
    assert_eq!(text.as_deref(), Ok("Turn on the lights."));
    let expected = "Bearer canary-key file=audio.wav (16044 bytes) model=tiny response_format=json language=en";
    assert_eq!(service.asked(), [expected]);
    assert!(!format!("{engine:?}").contains("canary"), "{engine:?}");
}

// G88
#[tokio::test]
async fn a_failure_of_the_service_is_named_and_tried_again_only_if_that_may_help() {
    let ok = Reply::Json(r#"{"text": "hi"}"#);
    let flood = Service::start([ok.clone()]).await;
    for (replies, tries, expected) in [
        (vec![Reply::Status(500, "a\nb"), ok.clone()], 2, Ok("hi")),
        (
            vec![Reply::Status(500, "a\nb"), Reply::Status(503, "")],
            2,
            Err("`HOST` answered 503 Service Unavailable"),
        ),
        (vec![Reply::RetryAfter("0"), ok.clone()], 2, Ok("hi")),
        (
            vec![Reply::RetryAfter("3600"), ok.clone()],
            1,
            Err("`HOST` answered 429 Too Many Requests: slow down"),
        ),
        (
            vec![Reply::Status(401, "who are\tyou?"), ok.clone()],
            1,
            Err("`HOST` answered 401 Unauthorized: who are you?"),
        ),
        (
            vec![Reply::Redirect(flood.url.clone()), ok.clone()],
            1,
            Err("`HOST` answered 302 Found; redirects are not followed"),
        ),
        (
            vec![Reply::Json(r#"{"text": " \n"}"#)],
            1,
            Err("the transcript is empty"),
        ),
        (
            vec![Reply::Json("<html>")],
            1,
            Err("`HOST` did not answer with JSON that has a `text`"),
        ),
        (
            vec![Reply::Flood],
            1,
            Err("the transcript has more than 1048576 bytes"),
        ),
    ] {
        let service = Service::start(replies.clone()).await;
        let text = service.transcribe(LONG).await;
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(text, expected, "{replies:?}");
        assert_eq!(service.asked().len(), tries, "{replies:?}");
    }
    assert_eq!(flood.asked().len(), 0, "a redirect was followed");
}

// G88
#[tokio::test]
async fn a_service_that_hangs_is_given_up_at_the_timeout() {
    let service = Service::start([Reply::Hang]).await;
    let text = service.transcribe(Duration::from_millis(200)).await;
    assert_eq!(text, Err("no result within 200ms".to_owned()));
}

#[tokio::test]
async fn a_service_that_is_not_there_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("base_url=http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let engine = stt(&["engine=openai", &url]);
    let error = engine
        .transcribe(&silence(1, 16_000), LONG)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("did not answer: Connection refused"),
        "{error}"
    );
}

#[tokio::test]
async fn the_key_is_not_in_what_a_service_says() {
    let service = Service::start([Reply::Status(400, "bad key canary-key!")]).await;
    let mut key = tempfile::NamedTempFile::new().unwrap();
    write!(key, "canary-key").unwrap();
    let key = format!("key_file={}", key.path().display());
    let engine = tts(&["engine=openai", &service.base_url(), &key]);
    let error = engine.speak("hi", &[], LONG).await.unwrap_err().to_string();
    assert!(
        error.ends_with("answered 400 Bad Request: bad key ***!"),
        "{error}"
    );
}

#[test]
fn a_key_must_exist_and_be_private() {
    let mut key = tempfile::NamedTempFile::new().unwrap();
    writeln!(key, "two words").unwrap();
    let path = key.path().display().to_string();
    let new = || {
        let arguments = ["engine=openai", &format!("key_file={path}")];
        let settings = tenterhook_voice::SttSettings::read(&settings(&arguments), None).unwrap();
        tenterhook_voice::SpeechToText::new(settings)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        new(),
        format!("`{path}` contains no key; expected one line without spaces")
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(key.path(), std::fs::Permissions::from_mode(0o640)).unwrap();
        let expected =
            format!("the key file `{path}` has mode 640, expected 600; run `chmod 600` on it");
        assert_eq!(new(), expected);
    }
    drop(key);
    assert!(new().contains("cannot read the key file"), "{}", new());
}

#[tokio::test]
async fn an_answer_is_asked_for_in_the_format_of_the_channel() {
    let wav = silence(2, 16_000);
    let opus = [b"OggS".as_slice(), &[0; 24], b"OpusHead"].concat();
    for (formats, reply, expected_format, container) in [
        (&[][..], &wav, "mp3", AudioContainer::Wav),
        (
            &["audio/ogg", "audio/mpeg"],
            &opus,
            "opus",
            AudioContainer::OggOpus,
        ),
        (
            &["audio/webm", "audio/wav"],
            &wav,
            "wav",
            AudioContainer::Wav,
        ),
    ] {
        let service = Service::start([Reply::Audio(reply.clone())]).await;
        let engine = tts(&[
            "engine=openai",
            &service.base_url(),
            "voice=nova",
            "speed=1.5",
        ]);
        let formats: Vec<String> = formats.iter().map(|format| (*format).to_owned()).collect();
        let speech = engine
            .speak("**Hello** there", &formats, LONG)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(speech.container, container, "{formats:?}");
        assert!(speech.has_wanted_format, "{formats:?}");
        let is_wav = container == AudioContainer::Wav;
        assert_eq!(speech.duration, is_wav.then_some(Duration::from_secs(2)));
        let asked = service.asked().pop().unwrap();
        let asked: serde_json::Value =
            serde_json::from_str(asked.strip_prefix("- ").unwrap()).unwrap();
        let expected = serde_json::json!({
            "model": "tts-1", "input": "Hello there.", "voice": "nova", "speed": 1.5,
            "response_format": expected_format,
        });
        assert_eq!(asked, expected);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_audio_or_too_large_is_a_failure() {
    let not_audio = "did not answer with audio of a known format";
    for (reply, expected) in [
        (Reply::Json("{}"), not_audio),
        (
            Reply::Flood,
            "the spoken answer has more than 20971520 bytes",
        ),
    ] {
        let service = Service::start([reply]).await;
        let engine = tts(&["engine=openai", &service.base_url()]);
        let error = engine.speak("hi", &[], LONG).await.unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
}

#[tokio::test]
async fn nothing_is_asked_for_an_answer_without_words_or_a_recording_that_is_not_audio() {
    let service = Service::start([]).await;
    let engine = tts(&["engine=openai", &service.base_url()]);
    assert_eq!(
        engine.speak("| a |\n|---|\n| b |", &[], LONG).await,
        Ok(None)
    );
    let engine = stt(&["engine=openai", &service.base_url(), "max=1s"]);
    for (recording, expected) in [
        (b"hello".to_vec(), VoiceError::UnknownFormat),
        (
            silence(2, 8_000),
            VoiceError::TooLong {
                limit: Duration::from_secs(1),
            },
        ),
        (
            vec![0; 26 << 20],
            VoiceError::TooLarge {
                what: "the recording".to_owned(),
                limit: 25 << 20,
            },
        ),
    ] {
        assert_eq!(engine.transcribe(&recording, LONG).await, Err(expected));
    }
    assert_eq!(service.asked().len(), 0);
}

/// Returns a note with so many packets of 120 ms, whose pages declare no length at all.
fn note(packets: u8) -> Vec<u8> {
    let page = |sizes: &[u8], content: &[u8]| {
        let count = u8::try_from(sizes.len()).unwrap();
        [b"OggS".as_slice(), &[0; 22], &[count], sizes, content].concat()
    };
    let audio: Vec<u8> = (0..packets).flat_map(|_| [0x03, 12]).collect();
    let sizes = vec![2; usize::from(packets)];
    let start = [page(&[8], b"OpusHead"), page(&[8], b"OpusTags")].concat();
    [start, page(&sizes, &audio)].concat()
}

#[tokio::test]
async fn a_recording_that_lies_about_its_length_is_not_sent_to_a_service() {
    let service = Service::start([Reply::Json(r#"{"text": "hi"}"#)]).await;
    let engine = stt(&[
        "engine=openai",
        &service.base_url(),
        "max=2s",
        "convert=off",
    ]);
    let limit = Duration::from_secs(2);
    let long = engine.transcribe(&note(17), LONG).await;
    assert_eq!(long, Err(VoiceError::TooLong { limit }));

    // Compressed samples that claim to be many channels of a high rate.
    let mut compressed = silence(1, 16_000);
    compressed[20] = 0x55;
    let mp3 = [0xff, 0xfb, 0x90, 0x64];
    let webm = [0x1a, 0x45, 0xdf, 0xa3];
    let cut = note(1)[..40].to_vec();
    for recording in [compressed.as_slice(), &mp3, &webm, b"fLaC", &cut] {
        let error = engine.transcribe(recording, LONG).await.unwrap_err();
        assert!(matches!(error, VoiceError::NoConverter { .. }), "{error}");
    }
    assert_eq!(service.asked().len(), 0);
    let short = engine.transcribe(&note(16), LONG).await;
    assert_eq!(short.as_deref(), Ok("hi"));
}

#[tokio::test]
async fn a_wav_file_reaches_a_service_with_a_true_header() {
    let service = Service::start([Reply::Json(r#"{"text": "hi"}"#)]).await;
    let engine = stt(&["engine=openai", &service.base_url(), "max=2s"]);
    let mut wav = silence(1, 16_000);
    // The header declares one second, and two more seconds follow.
    wav.extend(vec![0; 64_000]);
    engine.transcribe(&wav, LONG).await.unwrap();
    let asked = service.asked().pop().unwrap();
    assert!(asked.contains("file=audio.wav (32044 bytes)"), "{asked}");
}
