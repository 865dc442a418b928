//! The built-ins `stt` and `tts`, with scripts as engines.
//!
//! The engine of these tests hears what is written in the samples of a recording, and fails or hangs if that says so.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use tenterhook_builtins::builtin::{BuiltinConfig, builtin};
use tenterhook_builtins::{OnVoiceFailure, stt_hook, tts_hook};
use tenterhook_engine::{
    Effect, Engine, HookObserver, HookRun, HookSpec, HookVerdict, MemoryJournal, OnError, Phase,
    RawExchange,
};
use tenterhook_protocol::event::{MessagePart, MessageReceive, MessageSend};
use tenterhook_protocol::journal::{JournalRecord, RunRecord};
use tenterhook_protocol::{Decision, Event};
use tenterhook_runners::Services;
use tenterhook_voice::{SttSettings, TtsSettings, VoiceSetting};

use crate::{engine, origin};

const HEARS: &str = r#"argv=["sh", "-c", "t=$(tail -c +45 \"$1\" | tr -d '\\0'); case $t in FAIL) exit 1;; HANG) exec sleep 600;; esac; echo \"$t\"", "sh", "{input}"]"#;

/// Returns a WAV file with these bytes as its samples.
fn wav(samples: &[u8]) -> Vec<u8> {
    let mut samples = samples.to_vec();
    samples.resize(samples.len().next_multiple_of(32_000), 0);
    let length = u32::try_from(samples.len()).unwrap();
    let mut file = b"RIFF".to_vec();
    file.extend_from_slice(&(length + 36).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data");
    file.extend_from_slice(&length.to_le_bytes());
    file.extend_from_slice(&samples);
    file
}

fn text(text: &str) -> MessagePart {
    MessagePart {
        kind: "text".to_owned(),
        text: Some(text.to_owned()),
        ..MessagePart::default()
    }
}

fn image() -> MessagePart {
    let data = Some("/w/map.png".to_owned());
    MessagePart {
        kind: "image".to_owned(),
        data,
        ..MessagePart::default()
    }
}

/// A folder with recordings, like the media folder of a gateway.
struct Recordings(TempDir);

impl Recordings {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn part(&self, name: &str, bytes: &[u8]) -> MessagePart {
        let path: PathBuf = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let mut part = MessagePart {
            kind: "audio".to_owned(),
            media_type: Some("audio/ogg".to_owned()),
            data: Some(path.display().to_string()),
            ..MessagePart::default()
        };
        part.metadata.insert("duration_ms".to_owned(), json!(3_200));
        part
    }

    fn said(&self, name: &str, words: &str) -> MessagePart {
        self.part(name, &wav(words.as_bytes()))
    }
}

fn settings(arguments: &[&str]) -> Vec<VoiceSetting> {
    let read = arguments
        .iter()
        .map(|text| VoiceSetting::from_argument(text));
    read.collect::<Result<_, _>>().unwrap()
}

/// Remembers the causes of failures.
#[derive(Default, Clone)]
struct Causes(Arc<Mutex<Vec<String>>>);

impl Causes {
    fn sink(&self) -> OnVoiceFailure {
        let causes = Arc::clone(&self.0);
        Arc::new(move |error| causes.lock().unwrap().push(error.to_string()))
    }

    fn seen(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

fn stt(causes: &Causes, more: &[&str]) -> HookSpec {
    let arguments = [&["engine=command", HEARS], more].concat();
    let settings = SttSettings::read(&settings(&arguments), None).unwrap();
    stt_hook(settings, causes.sink()).unwrap()
}

fn tts(causes: &Causes, script: &str, more: &[&str]) -> HookSpec {
    let argv = format!("argv={}", json!(["sh", "-c", script]));
    let arguments = [&["engine=command", argv.as_str()], more].concat();
    let settings = TtsSettings::read(&settings(&arguments), None).unwrap();
    tts_hook(settings, causes.sink()).unwrap()
}

/// What the hooks of `message_receive` did.
struct Received {
    text: String,
    parts: Vec<MessagePart>,
    is_voice: bool,
    reason: Option<String>,
    notices: Vec<String>,
    failures: usize,
}

impl Received {
    fn texts(&self) -> Vec<String> {
        let shown = |part: &MessagePart| part.text.clone().unwrap_or_else(|| part.kind.clone());
        self.parts.iter().map(shown).collect()
    }
}

async fn receive(hook: HookSpec, event: MessageReceive) -> Received {
    receive_in(&engine([hook]), event).await
}

async fn receive_in(engine: &Engine, event: MessageReceive) -> Received {
    let outcome = engine.dispatcher(origin()).dispatch(event.clone()).await;
    let event = outcome.rewritten().cloned().unwrap_or(event);
    let reason = match outcome.decision() {
        Decision::Proceed => None,
        stopped @ (Decision::Ask { .. } | Decision::Stop { .. }) => {
            Some(stopped.reason().unwrap_or_default().to_owned())
        }
    };
    Received {
        text: event.text,
        parts: event.parts,
        is_voice: event.is_voice,
        reason,
        notices: outcome.notices().to_vec(),
        failures: outcome.failures().len(),
    }
}

fn message(parts: Vec<MessagePart>) -> MessageReceive {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| part.text.as_deref())
        .collect();
    MessageReceive::new("tg")
        .with_text(texts.join("\n"))
        .with_parts(parts)
        .with_is_voice(true)
}

// G85
#[tokio::test]
async fn a_transcript_takes_the_place_of_its_recording() {
    let recordings = Recordings::new();
    let causes = Causes::default();
    let parts = vec![
        text("first"),
        recordings.said("0198-a.wav", "turn on\nthe lights"),
        image(),
        recordings.said("0198-b.wav", "please"),
        text("last"),
    ];
    let received = receive(stt(&causes, &[]), message(parts)).await;
    assert_eq!(
        received.texts(),
        ["first", "turn on the lights", "image", "please", "last"]
    );
    assert!(received.is_voice);
    let metadata = |at: usize| Value::Object(received.parts[at].metadata.clone());
    assert_eq!(metadata(1), json!({"transcribed_from": "0198-a"}));
    assert_eq!(metadata(3), json!({"transcribed_from": "0198-b"}));
    assert_eq!((received.notices.len(), received.failures), (0, 0));
    assert_eq!(causes.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn a_guard_of_the_text_sees_what_was_spoken() {
    let recordings = Recordings::new();
    let engine = engine([stt(&Causes::default(), &[])]);
    engine.on(|event: &MessageReceive| {
        if event.text.contains("password") {
            Effect::<MessageReceive>::block("not here")
        } else {
            Effect::<MessageReceive>::none()
        }
    });
    let said = vec![text("hi"), recordings.said("a.wav", "my password is x")];
    let received = receive_in(&engine, message(said)).await;
    assert_eq!(received.reason.as_deref(), Some("not here"));

    let harmless = vec![text("hi"), recordings.said("b.wav", "good morning")];
    let received = receive_in(&engine, message(harmless)).await;
    assert_eq!(received.reason, None);
    assert_eq!(received.text, "hi\ngood morning");
    assert_eq!(received.texts(), ["hi", "good morning"]);
}

#[tokio::test]
async fn a_transcript_does_not_undo_an_earlier_redaction_of_the_text() {
    let recordings = Recordings::new();
    let said = || recordings.said("a.wav", "hello");
    for (parts, now, expected) in [
        (vec![text("secret"), said()], "***", vec!["***", "hello"]),
        (vec![said(), text("secret")], "***", vec!["hello", "***"]),
        (
            vec![image(), text("a"), said(), text("b")],
            "",
            vec!["image", "", "hello"],
        ),
        (vec![said()], "added", vec!["added", "hello"]),
    ] {
        let event = message(parts).with_text(now);
        let received = receive(stt(&Causes::default(), &[]), event).await;
        assert_eq!(received.texts(), expected);
    }
}

#[tokio::test]
async fn a_recording_in_base64_is_heard_too() {
    let mut part = Recordings::new().said("a.wav", "hello");
    part.data = Some(STANDARD.encode(wav(b"hello")));
    part.metadata.clear();
    part.metadata.insert("id".to_owned(), json!("voice-7"));
    let received = receive(stt(&Causes::default(), &[]), message(vec![part])).await;
    assert_eq!(received.texts(), ["hello"]);
    assert_eq!(
        received.parts[0].metadata.get("transcribed_from"),
        Some(&json!("voice-7"))
    );
}

#[tokio::test]
async fn two_recordings_are_heard_at_once_and_stay_in_order() {
    let recordings = Recordings::new();
    let seen = tempfile::tempdir().unwrap();
    // Each run waits until there was another one.
    let script = format!(
        "touch '{}'/$$; while test $(ls '{0}' | wc -l) -lt 2; do :; done; tail -c +45 \"$1\" | tr -d '\\0'",
        seen.path().display()
    );
    let argv = format!("argv={}", json!(["sh", "-c", script, "sh", "{input}"]));
    let settings = settings(&["engine=command", &argv, "timeout=20s"]);
    let settings = SttSettings::read(&settings, None).unwrap();
    let hook = stt_hook(settings, Causes::default().sink()).unwrap();
    let parts = ["one", "two", "three"].map(|word| recordings.said(word, word));
    let received = receive(hook, message(parts.to_vec())).await;
    assert_eq!(received.texts(), ["one", "two", "three"]);
}

// G86
#[tokio::test]
async fn the_settings_and_the_event_decide_whether_a_recording_is_heard() {
    let recordings = Recordings::new();
    for (enabled, by_event, is_heard) in [
        ("enabled=auto", None, true),
        ("enabled=null", None, true),
        ("enabled=true", None, true),
        ("enabled=false", None, false),
        ("enabled=false", Some(true), true),
        ("enabled=true", Some(false), false),
    ] {
        let parts = vec![recordings.said("a.wav", "hello")];
        let event = message(parts).with_stt_enabled(by_event);
        let received = receive(stt(&Causes::default(), &[enabled]), event).await;
        let expected = if is_heard { "hello" } else { "audio" };
        assert_eq!(received.texts(), [expected], "{enabled} {by_event:?}");
    }
    let typed = message(vec![text("hello")]).with_is_voice(false);
    let received = receive(stt(&Causes::default(), &["enabled=true"]), typed).await;
    assert_eq!(received.texts(), ["hello"]);
}

// G88
#[tokio::test]
async fn a_recording_that_is_not_understood_is_told_without_a_path() {
    let recordings = Recordings::new();
    let told = "I could not understand the voice message (4 s). Please try again or write.";
    for (recording, cause) in [
        (wav(b"\0"), "the transcript is empty"),
        (wav(b"FAIL"), "`sh` exited with status 1"),
        (wav(b"HANG"), "no result within 1s"),
        (
            b"not audio".to_vec(),
            "the file is not audio of a known format; expected WAV, Ogg, MP3, M4A, WebM or FLAC",
        ),
    ] {
        let causes = Causes::default();
        let part = recordings.part("a.wav", &recording);
        let began = Instant::now();
        let received = receive(stt(&causes, &["timeout=1s"]), message(vec![part])).await;
        assert!(began.elapsed() < Duration::from_secs(10), "{cause}");
        assert_eq!(received.reason.as_deref(), Some(told), "{cause}");
        assert_eq!((received.notices.len(), received.failures), (0, 0));
        assert_eq!(causes.seen(), [cause]);
    }
    let mut gone = recordings.said("b.wav", "hello");
    std::fs::remove_file(gone.data.as_ref().unwrap()).unwrap();
    gone.metadata.clear();
    let causes = Causes::default();
    let received = receive(stt(&causes, &[]), message(vec![gone])).await;
    let told = "I could not understand the voice message. Please try again or write.";
    assert_eq!(received.reason.as_deref(), Some(told));
    assert_eq!(
        causes.seen(),
        ["cannot read or write a file: entity not found"]
    );
}

/// Sends an event to a hook, and returns what the journal says about the run.
async fn recorded<E: Event>(hook: HookSpec, event: E) -> RunRecord {
    let journal = Arc::new(MemoryJournal::new());
    let engine = Engine::builder().journal(journal.clone()).build();
    engine.register(hook);
    drop(engine.dispatcher(origin()).dispatch(event).await);
    let records = journal.take().into_iter();
    let mut runs = records.filter_map(|record| {
        let JournalRecord::Run(run) = record else {
            return None;
        };
        Some(run)
    });
    runs.next().unwrap()
}

fn step_names(run: &RunRecord) -> Vec<&str> {
    run.steps.iter().map(|step| step.name.as_str()).collect()
}

// G88
#[tokio::test]
async fn the_journal_has_the_failures_of_voice_and_the_time_of_its_engines() {
    let recordings = Recordings::new();
    let parts = vec![
        recordings.said("a.wav", "hello"),
        recordings.said("b.wav", "HANG"),
        recordings.part("c.wav", b"not audio"),
    ];
    let hook = stt(&Causes::default(), &["timeout=1s"]);
    let run = recorded(hook, message(parts)).await;
    assert_eq!(
        run.problems,
        [
            "not transcribed: no result within 1s",
            "not transcribed: the file is not audio of a known format; expected WAV, Ogg, MP3, M4A, WebM or FLAC",
        ]
    );
    // The engine that hangs is cut off, and its time counts.
    assert_eq!(step_names(&run), ["transcription", "transcription"]);
    assert!(run.steps.iter().any(|step| step.duration_ms >= 900.0));
    let script = speaks(recordings.0.path());
    let hook = tts(&Causes::default(), &script, &["enabled=true"]);
    let run = recorded(hook, answer("Yes.")).await;
    assert_eq!(step_names(&run), ["speech"]);
    assert_eq!(run.problems.len(), 0);
}

/// Keeps the raw answer of the last run.
#[derive(Debug, Default)]
struct RawAnswers(Mutex<Option<RawExchange>>);

impl HookObserver for RawAnswers {
    fn hook_ended(&self, run: &HookRun<'_>, _took: Duration, _verdict: HookVerdict<'_>) {
        *self.0.lock().unwrap() = run.exchange.cloned();
    }

    fn requests_details(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn an_observer_sees_the_answer_of_a_builtin_without_audio() {
    let recordings = Recordings::new();
    let answers = Arc::new(RawAnswers::default());
    let engine = Engine::builder().observer(answers.clone()).build();
    let script = speaks(recordings.0.path());
    engine.register(tts(&Causes::default(), &script, &["enabled=true"]));
    drop(engine.dispatcher(origin()).dispatch(answer("Yes.")).await);
    let shown = answers.0.lock().unwrap().take().unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let part = &shown["collect"]["parts"][0];
    assert_eq!(part["metadata"]["spoken_answer"], true);
    let data = part["data"].as_str().unwrap();
    assert!(data.starts_with('[') && data.ends_with(" bytes]"), "{data}");
}

// G88
#[tokio::test]
async fn the_timeout_is_for_the_whole_message_and_the_length_that_a_channel_declares_counts() {
    let recordings = Recordings::new();
    let causes = Causes::default();
    let hanging = ["a", "b", "c"].map(|name| recordings.said(name, "HANG"));
    let received = receive(stt(&causes, &["timeout=1s"]), message(hanging.to_vec())).await;
    assert!(received.reason.is_some());
    assert_eq!(received.failures, 0);
    assert_eq!(causes.seen(), ["no result within 1s"; 3]);

    let causes = Causes::default();
    let long = recordings.said("d", "hello");
    let received = receive(stt(&causes, &["max=3s"]), message(vec![long])).await;
    assert!(received.reason.is_some());
    assert_eq!(causes.seen(), ["the recording is longer than 3s"]);
}

// G89
#[tokio::test]
async fn a_text_next_to_a_recording_that_is_not_understood_is_kept() {
    let recordings = Recordings::new();
    let placeholder = "[voice message, 4 s: not understood]";
    let notice = "I could not understand the voice message (4 s).";
    let broken = || recordings.said("a.wav", "FAIL");
    let fine = recordings.said("b.wav", "fine");
    for (policy, parts, texts, notices) in [
        (
            "tell",
            vec![text("hi"), broken()],
            Some(vec!["hi", placeholder]),
            vec![notice],
        ),
        (
            "tell",
            vec![broken(), fine],
            Some(vec![placeholder, "fine"]),
            vec![notice],
        ),
        (
            "tell",
            vec![broken(), image()],
            Some(vec![placeholder, "image"]),
            vec![notice],
        ),
        ("tell", vec![text(" "), broken()], None, vec![]),
        ("pass", vec![broken()], Some(vec![placeholder]), vec![]),
        ("reject", vec![text("hi"), broken()], None, vec![]),
    ] {
        let on_failure = format!("on_failure={policy}");
        let received = receive(stt(&Causes::default(), &[&on_failure]), message(parts)).await;
        assert_eq!(
            received.reason.is_none(),
            texts.is_some(),
            "{policy} {texts:?}"
        );
        assert_eq!(received.notices, notices, "{policy} {texts:?}");
        if let Some(texts) = texts {
            assert_eq!(received.texts(), texts, "{policy}");
        }
    }
}

fn answer(text: &str) -> MessageSend {
    MessageSend::new("tg").with_response_text(text)
}

/// What the hooks of `message_send` did: the parts that they added, the notices and the failures.
async fn send(hook: HookSpec, event: MessageSend) -> (Vec<MessagePart>, Vec<String>, Vec<String>) {
    let outcome = engine([hook]).dispatcher(origin()).dispatch(event).await;
    let parts = outcome.parts().into_iter().collect();
    let failures = outcome
        .failures()
        .iter()
        .map(|failure| failure.cause.clone())
        .collect();
    (parts, outcome.notices().to_vec(), failures)
}

/// Returns a script that speaks with the words as samples.
fn speaks(folder: &Path) -> String {
    let file = folder.join("spoken.wav");
    std::fs::write(&file, wav(b"spoken")).unwrap();
    format!("cat >/dev/null; cat '{}'", file.display())
}

// G86, G87
#[tokio::test]
async fn the_settings_and_the_event_decide_whether_an_answer_is_spoken() {
    let folder = tempfile::tempdir().unwrap();
    let script = speaks(folder.path());
    for (enabled, by_event, to_voice, to_typed) in [
        ("enabled=auto", None, true, false),
        ("enabled=null", None, true, false),
        ("enabled=true", None, true, true),
        ("enabled=false", None, false, false),
        ("enabled=false", Some(true), true, true),
        ("enabled=true", Some(false), false, false),
    ] {
        for (is_voice, is_spoken) in [(true, to_voice), (false, to_typed)] {
            let event = answer("Yes.")
                .with_is_voice(is_voice)
                .with_tts_enabled(by_event);
            let hook = tts(&Causes::default(), &script, &[enabled]);
            let (parts, notices, failures) = send(hook, event).await;
            assert_eq!(
                parts.len(),
                usize::from(is_spoken),
                "{enabled} {by_event:?} {is_voice}"
            );
            assert_eq!((notices.len(), failures.len()), (0, 0));
        }
    }
    for event in [
        answer(" \n"),
        answer("No.").with_is_error(true),
        answer("```\ncode\n```\n<b>"),
    ] {
        let is_code = event.response_text.contains("code");
        let hook = tts(&Causes::default(), &script, &["enabled=true"]);
        assert_eq!(send(hook, event).await.0.len(), usize::from(is_code));
    }
}

#[tokio::test]
async fn a_spoken_answer_is_a_part_with_the_media_type_of_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let script = speaks(folder.path());
    let formats = |formats: &[&str]| {
        formats
            .iter()
            .map(|&format| format.to_owned())
            .collect::<Vec<_>>()
    };
    for (wanted, kind, has_notice) in [
        (formats(&[]), "audio", false),
        (formats(&["audio/ogg", "audio/wav"]), "audio", false),
        (formats(&["audio/ogg"]), "file", true),
    ] {
        let event = answer("Yes.")
            .with_is_voice(true)
            .with_audio_formats(wanted.clone());
        let hook = tts(&Causes::default(), &script, &["convert=off"]);
        let (parts, notices, failures) = send(hook, event).await;
        let [part] = parts.as_slice() else {
            panic!("{parts:?}");
        };
        assert_eq!(
            (part.kind.as_str(), part.media_type.as_deref()),
            (kind, Some("audio/wav"))
        );
        assert!(STANDARD.decode(part.data.as_ref().unwrap()).unwrap() == wav(b"spoken"));
        let mut metadata = Value::Object(part.metadata.clone());
        let told = metadata.as_object_mut().unwrap().remove("notice");
        assert_eq!(
            metadata,
            json!({
                "name": "answer.wav",
                "size": 32_044,
                "duration_ms": 1000,
                "spoken_answer": true,
            })
        );
        let notice = notices.first().map(|notice| json!(notice));
        assert_eq!(told, notice, "{wanted:?}");
        assert_eq!(
            (notices.len(), failures.len()),
            (usize::from(has_notice), 0),
            "{wanted:?}"
        );
    }
}

// G90
#[tokio::test]
async fn an_engine_that_is_down_or_hangs_is_a_failure_that_stops_nothing() {
    for (script, cause) in [
        (
            "echo no voice >&2; exit 1",
            "`sh` exited with status 1: no voice",
        ),
        ("sleep 600", "no result within 1s"),
        ("echo hello", "`sh` did not write audio of a known format"),
    ] {
        let causes = Causes::default();
        let hook = tts(
            &causes,
            script,
            &["enabled=true", "text=voice_only", "timeout=1s"],
        );
        assert_eq!(
            (hook.policy.on_error, hook.phase),
            (OnError::Warn, Phase::Transform)
        );
        let (parts, _, failures) = send(hook, answer("Yes.")).await;
        assert_eq!(parts.len(), 0);
        assert_eq!(failures, [format!("the answer was not spoken: {cause}")]);
        assert_eq!(causes.seen(), [cause]);
    }
}

#[test]
fn wrong_arguments_and_missing_programs_are_found_when_the_hook_is_loaded() {
    for (name, arguments, expected) in [
        (
            "stt",
            &[][..],
            "builtin `stt`: `engine` is missing; expected one of `openai`, `command`",
        ),
        (
            "stt",
            &["command"],
            "builtin `stt`: `command` is not a setting; expected `KEY=VALUE`, such as `engine=command`",
        ),
        (
            "tts",
            &["engine=command", "preset=espeak", "spede=1"],
            "builtin `tts`: unknown setting `spede`; expected `speed`; `preset` is `espeak`; expected one of `espeak-ng`, `piper`; did you mean `espeak-ng`?",
        ),
        (
            "tts",
            &["engine=command", r#"argv=["no-such-program-7"]"#],
            "builtin `tts`: `no-such-program-7` is not installed, or is not in `PATH`",
        ),
    ] {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        let setup = BuiltinConfig {
            arguments: &arguments,
            env: &[],
            working_dir: None,
            services: &Services::default(),
            events: &[],
            dialect: &crate::native(),
        };
        let error = builtin(name, &setup).err().unwrap();
        assert_eq!(error.to_string(), expected);
    }
}

// G88
#[tokio::test]
async fn in_a_hook_file_the_notices_name_the_cause() {
    let recordings = Recordings::new();
    let arguments = ["engine=command", HEARS].map(str::to_owned);
    let setup = BuiltinConfig {
        arguments: &arguments,
        env: &[],
        working_dir: None,
        services: &Services::default(),
        events: &[],
        dialect: &crate::native(),
    };
    let handler = builtin("stt", &setup).unwrap();
    let hook = crate::spec(tenterhook_engine::EventKind::MessageReceive, "stt", handler);
    let parts = vec![text("hi"), recordings.said("a.wav", "FAIL")];
    let received = receive(hook, message(parts)).await;
    assert_eq!(
        received.notices,
        [
            "I could not understand the voice message (4 s).",
            "stt: `sh` exited with status 1"
        ]
    );
}
