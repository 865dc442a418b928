//! Voice messages: what the agent hears, what the chat shows, and how spoken answers reach it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::json;
use tenterhook_channel::frame::Frame;
use tenterhook_channel::message::{IncomingPart, MediaKind, MediaRef};
use tenterhook_channel::settings::Settings;
use tenterhook_engine::Effect;
use tenterhook_engine::event::{MessagePart, MessageReceive, MessageSend};
use tenterhook_gateway::conversations::conversation::ChatTask;
use tenterhook_hookfile::{Report, SourceText};
use tokio::sync::Semaphore;

use crate::conversation_stage::{Options, Stage, chat, texts};

const HELLO: &str = "turns: [{text: hello, repeat: true}]";
const WAV: &[u8] = b"RIFF\x24\0\0\0WAVEfmt ";

/// Keeps a recording that messages can refer to as `voice`.
async fn add_recording(stage: &Stage) {
    let name = Some("voice.wav".to_owned());
    let media = &stage.parts.media;
    let owner = chat("ann");
    let saved = media.save(WAV.to_vec(), MediaKind::Audio, name, &owner);
    let saved = saved.await.unwrap();
    let mut files = stage.publisher.files.lock();
    files.insert("voice".to_owned(), saved);
}

fn recording() -> IncomingPart {
    IncomingPart::Media(MediaRef {
        kind: MediaKind::Audio,
        reference: "voice".to_owned(),
        name: None,
        duration_ms: Some(3600),
    })
}

/// Says something aloud as Ann.
async fn speak(stage: &Stage) {
    let record = stage.record(|message| message.parts = vec![recording()]);
    stage.conversation().offer(record.await).unwrap();
}

fn text_part(text: &str) -> MessagePart {
    MessagePart {
        kind: "text".to_owned(),
        text: Some(text.to_owned()),
        ..MessagePart::default()
    }
}

/// Replaces each recording with a text.
fn transcribed(event: &MessageReceive) -> Effect<MessageReceive> {
    let parts = event.parts.iter().map(|part| match part.kind.as_str() {
        "audio" => text_part("turn on the lights"),
        _ => part.clone(),
    });
    Effect::<MessageReceive>::none().replace_parts(parts.collect::<Vec<_>>())
}

/// Returns the first message that the chat shows: its text, the names of its files, and whether it is a transcript.
fn first_said(stage: &Stage) -> (String, Vec<String>, bool) {
    let frames = stage.publisher.frames.lock();
    for (_, frame) in frames.iter() {
        if let Frame::Said {
            text,
            media,
            is_transcript,
            ..
        } = frame
        {
            let names = media.iter().map(|media| media.name.clone()).collect();
            return (text.clone(), names, *is_transcript);
        }
    }
    panic!("nothing was said");
}

#[tokio::test]
async fn the_chat_shows_a_recording_together_with_its_transcript() {
    let stage = Stage::new(HELLO);
    add_recording(&stage).await;
    stage.engine.on(transcribed);
    let sent: Arc<Mutex<Vec<MessageSend>>> = Arc::default();
    let log = Arc::clone(&sent);
    stage
        .engine
        .on(move |event: &MessageSend| log.lock().push(event.clone()));
    speak(&stage).await;
    stage.log.until("done", 1).await;
    assert_eq!(stage.heard(0), ["turn on the lights"]);
    let expected = (
        "turn on the lights".to_owned(),
        vec!["voice.wav".to_owned()],
        true,
    );
    assert_eq!(first_said(&stage), expected);
    let sent = sent.lock().pop().unwrap();
    assert!(sent.is_voice);
    assert_eq!(sent.input_text, "turn on the lights");
}

#[tokio::test]
async fn a_redaction_of_a_spoken_text_reaches_the_agent() {
    let stage = Stage::new(HELLO);
    add_recording(&stage).await;
    stage.engine.on(transcribed);
    stage.engine.on(|event: &MessageReceive| {
        let text = event.text.replace("lights", "***");
        Effect::<MessageReceive>::none().replace_text(text)
    });
    speak(&stage).await;
    stage.log.until("done", 1).await;
    assert_eq!(stage.heard(0), ["turn on the ***"]);
}

#[tokio::test]
async fn a_recording_that_nothing_transcribes_is_shown_without_a_transcript() {
    let stage = Stage::new(HELLO);
    add_recording(&stage).await;
    speak(&stage).await;
    stage.log.until("done", 1).await;
    assert_eq!(stage.heard(0), ["[voice message, 4 s]"]);
    assert_eq!(
        first_said(&stage),
        (String::new(), vec!["voice.wav".to_owned()], false)
    );
}

#[tokio::test]
async fn the_settings_of_a_channel_are_in_the_events() {
    for enabled in [None, Some(true), Some(false)] {
        let mut settings = Settings::default();
        settings.channels[0].stt_enabled = enabled;
        settings.channels[0].tts_enabled = enabled.map(|enabled| !enabled);
        let stage = Stage::with(
            HELLO,
            Options {
                settings,
                ..Options::default()
            },
        );
        let seen: Arc<Mutex<Vec<Option<bool>>>> = Arc::default();
        let (received, sent) = (Arc::clone(&seen), Arc::clone(&seen));
        stage
            .engine
            .on(move |event: &MessageReceive| received.lock().push(event.stt_enabled));
        stage
            .engine
            .on(move |event: &MessageSend| sent.lock().push(event.tts_enabled));
        stage.ask("hi").await;
        assert_eq!(*seen.lock(), [enabled, enabled.map(|enabled| !enabled)]);
    }
}

#[tokio::test]
async fn a_channel_without_audio_gets_written_answers() {
    let options = Options {
        settings: spoken_settings("voice_only"),
        ..Options::default()
    };
    let stage = Stage::with(HELLO, options);
    stage.publisher.is_mute.store(true, Ordering::Release);
    add_recording(&stage).await;
    let seen: Arc<Mutex<Vec<Option<bool>>>> = Arc::default();
    let log = Arc::clone(&seen);
    stage
        .engine
        .on(move |event: &MessageSend| log.lock().push(event.tts_enabled));
    speak(&stage).await;
    stage.log.until("done", 1).await;
    assert_eq!(*seen.lock(), [Some(false)]);
    assert_eq!(stage.streamed(), "hello");
}

// G40
#[tokio::test]
async fn slow_speech_to_text_holds_up_its_own_chat_only() {
    let stage = Stage::new(HELLO);
    add_recording(&stage).await;
    let heard = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&heard);
    stage
        .engine
        .hook("slow")
        .on_async(move |event: &MessageReceive| {
            let (gate, event) = (Arc::clone(&gate), event.clone());
            Box::pin(async move {
                if event.is_voice {
                    gate.acquire().await.unwrap().forget();
                }
                transcribed(&event)
            })
        });
    speak(&stage).await;
    stage.say("and this is typed").await;
    let other = ChatTask::start(
        Arc::clone(&stage.parts),
        tenterhook_channel::chat::SessionKey("ben".to_owned()),
    );
    let record = stage
        .record(|message| {
            message.chat = chat("ben");
            message.parts = texts(&["hello from Ben"]);
        })
        .await;
    other.offer(record).unwrap();
    stage.log.until("ben: done", 1).await;
    let is_of_ann = |line: &String| line.starts_with("said ");
    assert!(!stage.lines().iter().any(is_of_ann), "{:#?}", stage.lines());
    heard.add_permits(1);
    stage.log.until("said and this is typed", 1).await;
    let mut said = stage.lines();
    said.retain(is_of_ann);
    assert_eq!(said, ["said turn on the lights", "said and this is typed"]);
}

/// Settings whose answers are spoken. The engine does not matter here: a hook of the test speaks.
fn spoken_settings(text: &str) -> Settings {
    let settings = format!("tts: {{ engine: command, preset: espeak-ng, text: {text} }}");
    let source = SourceText::new(Path::new("gateway.yaml"), &settings);
    Settings::read(&mut Report::new(source)).unwrap()
}

fn audio_part() -> MessagePart {
    MessagePart {
        kind: "audio".to_owned(),
        data: Some(STANDARD.encode(WAV)),
        ..MessagePart::default()
    }
}

/// Adds a hook that speaks answers to voice messages, or fails.
fn speak_answers(stage: &Stage, fails: bool) {
    stage.engine.on(move |event: &MessageSend| {
        if fails {
            return Err("the engine is down");
        }
        let mut effect = Effect::<MessageSend>::none();
        if event.is_voice {
            let mut answer = audio_part();
            answer
                .metadata
                .insert("spoken_answer".to_owned(), json!(true));
            effect = effect.part(answer);
        }
        Ok(effect)
    });
}

// G90
#[tokio::test]
async fn a_spoken_answer_takes_the_place_of_the_text_only_if_there_is_audio() {
    for (text, is_spoken, fails, expected) in [
        (
            "both",
            true,
            false,
            vec!["end final Stop: hello", "message  [audio.wav]"],
        ),
        (
            "voice_only",
            true,
            false,
            vec!["end final Stop: ", "message  [audio.wav]"],
        ),
        ("voice_only", true, true, vec!["end final Stop: hello"]),
        ("voice_only", false, false, vec!["end final Stop: hello"]),
    ] {
        let options = Options {
            settings: spoken_settings(text),
            ..Options::default()
        };
        let stage = Stage::with(HELLO, options);
        add_recording(&stage).await;
        speak_answers(&stage, fails);
        if is_spoken {
            speak(&stage).await;
        } else {
            stage.say("typed").await;
        }
        stage.log.until("done Completed", 1).await;
        let mut lines = stage.lines();
        lines.retain(|line| line.starts_with("end") || line.starts_with("message"));
        assert_eq!(lines, expected, "{text} {is_spoken} {fails}");
        let is_held_back = text == "voice_only" && is_spoken;
        assert_eq!(stage.streamed().is_empty(), is_held_back);
    }
}

// G90
#[tokio::test]
async fn other_audio_does_not_take_the_place_of_an_answer_that_could_not_be_spoken() {
    let options = Options {
        settings: spoken_settings("voice_only"),
        ..Options::default()
    };
    let stage = Stage::with(HELLO, options);
    add_recording(&stage).await;
    speak_answers(&stage, true);
    stage
        .engine
        .on(|_: &MessageSend| Effect::<MessageSend>::none().part(audio_part()));
    speak(&stage).await;
    stage.log.until("done Completed", 1).await;
    let mut lines = stage.lines();
    lines.retain(|line| line.starts_with("end") || line.starts_with("message"));
    assert_eq!(lines, ["end final Stop: hello", "message  [audio.wav]"]);
}

#[tokio::test]
async fn an_answer_with_code_is_also_written() {
    let options = Options {
        settings: spoken_settings("voice_only"),
        ..Options::default()
    };
    let stage = Stage::with("turns: [{text: \"Run this:\\n\\n    ls\"}]", options);
    add_recording(&stage).await;
    speak_answers(&stage, false);
    speak(&stage).await;
    stage.log.until("done Completed", 1).await;
    let lines = stage.lines();
    let is_written = |line: &String| line.starts_with("end final") && line.contains("ls");
    assert!(lines.iter().any(is_written), "{lines:?}");
}

// G90
#[tokio::test]
async fn without_a_hook_that_speaks_the_text_is_sent() {
    let options = Options {
        settings: spoken_settings("voice_only"),
        ..Options::default()
    };
    let stage = Stage::with(HELLO, options);
    add_recording(&stage).await;
    speak(&stage).await;
    stage.log.until("done Completed", 1).await;
    assert!(stage.lines().contains(&"end final Stop: hello".to_owned()));
}

/// Returns a part with a notice for the people in the chat.
fn with_notice(mut part: MessagePart, notice: &str) -> MessagePart {
    part.metadata.insert("notice".to_owned(), json!(notice));
    part
}

// G89 and G92
#[tokio::test]
async fn people_read_the_notices_of_parts() {
    let stage = Stage::new(HELLO);
    add_recording(&stage).await;
    stage.engine.on(|event: &MessageReceive| {
        let mut parts = event.parts.clone();
        parts[1] = with_notice(
            text_part("[voice message: not understood]"),
            "Say it again.",
        );
        Effect::<MessageReceive>::none().replace_parts(parts)
    });
    stage.engine.on(|_: &MessageSend| {
        let file = MessagePart {
            kind: "file".to_owned(),
            data: Some(STANDARD.encode(WAV)),
            ..MessagePart::default()
        };
        Effect::<MessageSend>::none().part(with_notice(file, "This is not a voice message."))
    });
    let record = stage
        .record(|message| {
            message.parts = texts(&["read this"]);
            message.parts.push(recording());
        })
        .await;
    stage.conversation().offer(record).unwrap();
    stage.log.until("done", 1).await;
    assert_eq!(
        stage.heard(0),
        ["read this\n[voice message: not understood]"]
    );
    let lines = stage.lines();
    for expected in [
        "error notice: Say it again.",
        "message This is not a voice message. [file.wav]",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{lines:#?}");
    }
}
