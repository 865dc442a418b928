//! Turns voice messages into text.
//!
//! The text replaces the audio part. Whatever fails, the text that the sender wrote stays.

use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use tenterhook_engine::{Call, HandlerError, RunNotes};
use tenterhook_protocol::event::{MessagePart, MessageReceive};
use tenterhook_protocol::{AnyEffect, Effect, EventKind};
use tenterhook_voice::{
    AudioContainer, MAX_RECORDING_BYTES, OnUnheard, SpeechToText, SttSettings, VoiceError,
    VoiceMode, VoiceStep, Wav,
};

use super::row::{Builtin, EventRunner};
use super::voice_arguments::{OnVoiceFailure, read_arguments, time_left};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "stt",
    events: &[EventKind::MessageReceive],
    arguments: "`KEY=VALUE` with the keys `enabled`, `engine`, `base_url`, `model`, `key_env`, `key_file`, `preset`, \
                `argv`, `grammar`, `language`, `convert`, `timeout`, `max`, `on_failure`",
    make: |setup| {
        let folder = setup.working_dir.filter(|dir| dir.is_absolute());
        let settings = read_arguments(setup.arguments, |settings| {
            SttSettings::read(settings, folder)
        })?;
        let stt = Stt::new(settings, None).map_err(|error| error.to_string())?;
        Ok(Box::new(stt))
    },
};

/// How many recordings of a message are worked on at once.
const AT_ONCE: usize = 2;

pub(super) struct Stt {
    engine: SpeechToText,
    on_failure: Option<OnVoiceFailure>,
}

/// The time that all recordings of a message share.
#[derive(Clone, Copy)]
struct MessageTime {
    timeout: Duration,
    deadline: Instant,
}

/// A recording of a message, after the engine tried to understand it.
struct Heard {
    /// Where the part is in the message.
    index: usize,
    text: Result<String, VoiceError>,
    length: Option<Duration>,
}

impl Stt {
    pub(super) fn new(
        settings: SttSettings,
        on_failure: Option<OnVoiceFailure>,
    ) -> Result<Self, VoiceError> {
        Ok(Self {
            engine: SpeechToText::new(settings)?,
            on_failure,
        })
    }

    /// Returns whether the recordings of a message become text. What the event says wins.
    fn is_on(&self, event: &MessageReceive) -> bool {
        let enabled = self.engine.settings().enabled;
        event.stt_enabled.unwrap_or(enabled != VoiceMode::Off)
    }

    async fn receive(&self, event: &MessageReceive, call: &Call) -> AnyEffect {
        let timeout = time_left(self.engine.settings().timeout, call.timeout);
        let time = MessageTime {
            timeout,
            deadline: Instant::now() + timeout,
        };
        let recordings = event.parts.iter().enumerate();
        let recordings = recordings.filter(|(_, part)| part.kind == "audio");
        // Collected first, because the compiler cannot infer the lifetimes in a stream of closures.
        let hearing: Vec<BoxFuture<'_, Heard>> = recordings
            .map(|(index, part)| self.hear(index, part, time, &call.notes).boxed())
            .collect();
        let heard: Vec<Heard> = stream::iter(hearing).buffered(AT_ONCE).collect().await;
        for error in heard.iter().filter_map(|heard| heard.text.as_ref().err()) {
            call.notes
                .add_problem(|| format!("not transcribed: {error}"));
            if let Some(on_failure) = &self.on_failure {
                on_failure(error);
            }
        }
        self.effect(event, &heard)
            .map(|effect| *effect)
            .unwrap_or_default()
    }

    async fn hear(
        &self,
        index: usize,
        part: &MessagePart,
        time: MessageTime,
        notes: &RunNotes,
    ) -> Heard {
        let declared = part.metadata.get("duration_ms").and_then(Value::as_u64);
        let mut length = declared.map(Duration::from_millis);
        let text = match content(part).await {
            Ok(recording) => {
                length = length.or_else(|| length_of(&recording));
                self.transcribe(&recording, length, time, notes).await
            }
            Err(error) => Err(error),
        };
        Heard {
            index,
            text,
            length,
        }
    }

    async fn transcribe(
        &self,
        recording: &[u8],
        length: Option<Duration>,
        time: MessageTime,
        notes: &RunNotes,
    ) -> Result<String, VoiceError> {
        let limit = self.engine.settings().max;
        if length.is_some_and(|length| length > limit) {
            return Err(VoiceError::TooLong { limit });
        }
        let left = time.deadline.saturating_duration_since(Instant::now());
        let on_step = |step: VoiceStep, took| notes.add_step(step.as_str(), took);
        let transcript = self.engine.transcribe_timed(recording, left, &on_step);
        match transcript.await {
            Err(VoiceError::TimedOut { .. }) => Err(VoiceError::TimedOut {
                after: time.timeout,
            }),
            result => result,
        }
    }

    /// Returns the message with text instead of recordings, or the refusal.
    fn effect(&self, event: &MessageReceive, heard: &[Heard]) -> Option<Box<AnyEffect>> {
        let failed = || heard.iter().filter(|heard| heard.text.is_err());
        if let Some(first) = failed().next() {
            let has_more = heard.iter().any(|heard| heard.text.is_ok())
                || event.parts.iter().any(says_something);
            let refuses = match self.engine.settings().on_failure {
                OnUnheard::Tell => !has_more,
                OnUnheard::Pass => false,
                OnUnheard::Reject => true,
            };
            if refuses {
                let problem = not_understood(first.length);
                let reason = format!("{problem} Please try again or write.");
                let refusal = Effect::<MessageReceive>::block(reason);
                return self.with_causes(refusal, heard).into_any();
            }
        }
        if heard.is_empty() {
            return None;
        }
        let mut parts = event.parts.clone();
        for heard in heard {
            if let Some(part) = parts.get_mut(heard.index) {
                *part = replacement(part, heard);
                if heard.text.is_err() && self.engine.settings().on_failure == OnUnheard::Tell {
                    let notice = json!(not_understood(heard.length));
                    part.metadata.insert("notice".to_owned(), notice);
                }
            }
        }
        let parts = with_current_text(event, parts);
        let mut effect = Effect::<MessageReceive>::none().replace_parts(parts);
        if self.engine.settings().on_failure == OnUnheard::Tell {
            for heard in failed() {
                effect = effect.notice(not_understood(heard.length));
            }
        }
        self.with_causes(effect, heard).into_any()
    }

    /// Adds the causes of failures, unless the operator of a gateway receives them.
    fn with_causes(
        &self,
        mut effect: Effect<MessageReceive>,
        heard: &[Heard],
    ) -> Effect<MessageReceive> {
        if self.on_failure.is_none() {
            for error in heard.iter().filter_map(|heard| heard.text.as_ref().err()) {
                effect = effect.notice(format!("stt: {error}"));
            }
        }
        effect
    }
}

impl EventRunner for Stt {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(async move {
            match call.event.downcast::<MessageReceive>() {
                Some(event) if self.is_on(event) => Ok(self.receive(event, call).await),
                Some(_) | None => Ok(AnyEffect::default()),
            }
        })
    }
}

/// Returns the bytes of a part: of a file, or in base64.
async fn content(part: &MessagePart) -> Result<Vec<u8>, VoiceError> {
    let data = part.data.as_deref().unwrap_or_default();
    let path = Path::new(data);
    if path.is_absolute() {
        let found = match tokio::fs::metadata(path).await {
            Ok(found) => found,
            // Audio in base64 can look like a path, because MP3 begins with `//`.
            Err(error) => return STANDARD.decode(data).map_err(|_| error.into()),
        };
        if !found.is_file() {
            return Err(VoiceError::UnknownFormat);
        }
        if found.len() > MAX_RECORDING_BYTES as u64 {
            return Err(VoiceError::TooLarge {
                what: "the recording".to_owned(),
                limit: MAX_RECORDING_BYTES as u64,
            });
        }
        return Ok(tokio::fs::read(path).await?);
    }
    STANDARD.decode(data).map_err(|_| VoiceError::UnknownFormat)
}

/// Returns how long a recording plays, if its header says so.
fn length_of(recording: &[u8]) -> Option<Duration> {
    let is_wav = AudioContainer::of_bytes(recording) == Some(AudioContainer::Wav);
    is_wav
        .then(|| Wav::read(recording).ok().map(|wav| wav.duration()))
        .flatten()
}

/// Returns the text of parts: their texts, joined by line ends.
fn joined_text(parts: &[MessagePart]) -> String {
    let texts = parts.iter().filter(|part| part.kind == "text");
    let texts: Vec<&str> = texts.filter_map(|part| part.text.as_deref()).collect();
    texts.join("\n")
}

/// Returns the parts with the text that earlier hooks wrote instead of the sender's. `parts` are the parts of the event,
/// with transcripts instead of recordings.
fn with_current_text(event: &MessageReceive, parts: Vec<MessagePart>) -> Vec<MessagePart> {
    if event.text == joined_text(&event.parts) {
        return parts;
    }
    let is_written = |part: &MessagePart| part.kind == "text";
    let place = event.parts.iter().position(is_written);
    let pairs = event.parts.iter().zip(parts);
    let kept = pairs.filter(|(original, _)| !is_written(original));
    let mut kept: Vec<MessagePart> = kept.map(|(_, part)| part).collect();
    let written = MessagePart {
        kind: "text".to_owned(),
        text: Some(event.text.clone()),
        ..MessagePart::default()
    };
    // Everything before the first text was kept, so the place is still valid.
    kept.insert(place.unwrap_or(0).min(kept.len()), written);
    kept
}

/// Returns whether a part is something to answer besides recordings.
fn says_something(part: &MessagePart) -> bool {
    match part.kind.as_str() {
        "audio" => false,
        "text" => part
            .text
            .as_deref()
            .is_some_and(|text| !text.trim().is_empty()),
        _ => true,
    }
}

/// Returns the text part that replaces a recording. A placeholder has no path, because the model could do nothing with it.
fn replacement(part: &MessagePart, heard: &Heard) -> MessagePart {
    let text = match (&heard.text, heard.length) {
        (Ok(text), _) => text.clone(),
        (Err(_), Some(length)) => format!("[voice message, {} s: not understood]", seconds(length)),
        (Err(_), None) => "[voice message: not understood]".to_owned(),
    };
    let mut replacement = MessagePart {
        kind: "text".to_owned(),
        text: Some(text),
        ..MessagePart::default()
    };
    if let Some(id) = media_id(part) {
        replacement
            .metadata
            .insert("transcribed_from".to_owned(), json!(id));
    }
    replacement
}

/// Returns the id of a recording: its own, or the name of our copy without its extension.
fn media_id(part: &MessagePart) -> Option<&str> {
    let id = part.metadata.get("id").and_then(Value::as_str);
    let path = part.data.as_deref().map(Path::new);
    let path = path.filter(|path| path.is_absolute());
    id.or_else(|| path?.file_stem()?.to_str())
}

/// Returns what the sender reads about a recording that no one understood.
fn not_understood(length: Option<Duration>) -> String {
    let length = length.map(|length| format!(" ({} s)", seconds(length)));
    let length = length.unwrap_or_default();
    format!("I could not understand the voice message{length}.")
}

/// Returns whole seconds, at least one.
fn seconds(length: Duration) -> u128 {
    length.as_millis().div_ceil(1000).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn audio_in_base64_that_looks_like_a_path_is_audio() {
        let mp3 = [0xff, 0xfb, 0x90, 0x64, 1, 2];
        let mut part = MessagePart {
            data: Some(STANDARD.encode(mp3)),
            ..MessagePart::default()
        };
        assert!(part.data.as_ref().unwrap().starts_with("//"));
        assert_eq!(content(&part).await.unwrap(), mp3);
        part.data = Some("/missing.mp3".to_owned());
        assert!(content(&part).await.is_err());
    }
}
