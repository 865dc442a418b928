//! Speaks answers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use serde_json::json;
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::event::{MessagePart, MessageSend};
use tenterhook_protocol::{AnyEffect, Effect, EventKind, JsonObject};
use tenterhook_voice::{Speech, TextToSpeech, TtsSettings, VoiceError, VoiceMode, VoiceStep};

use super::row::{Builtin, EventRunner};
use super::voice_arguments::{OnVoiceFailure, read_arguments, time_left};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "tts",
    events: &[EventKind::MessageSend],
    arguments: "`KEY=VALUE` with the keys `enabled`, `engine`, `base_url`, `model`, `key_env`, `key_file`, `preset`, \
                `argv`, `voice`, `language`, `speed`, `convert`, `timeout`, `text`, `max_chars`",
    make: |setup| {
        let folder = setup.working_dir.filter(|dir| dir.is_absolute());
        let settings = read_arguments(setup.arguments, |settings| {
            TtsSettings::read(settings, folder)
        })?;
        let tts = Tts::new(settings, None).map_err(|error| error.to_string())?;
        Ok(Box::new(tts))
    },
};

pub(super) struct Tts {
    engine: TextToSpeech,
    on_failure: Option<OnVoiceFailure>,
}

impl Tts {
    pub(super) fn new(
        settings: TtsSettings,
        on_failure: Option<OnVoiceFailure>,
    ) -> Result<Self, VoiceError> {
        Ok(Self {
            engine: TextToSpeech::new(settings)?,
            on_failure,
        })
    }

    /// Returns whether an answer is spoken. What the event says wins.
    fn is_on(&self, event: &MessageSend) -> bool {
        if event.is_error || event.response_text.trim().is_empty() {
            return false;
        }
        event
            .tts_enabled
            .unwrap_or(match self.engine.settings().enabled {
                VoiceMode::Auto => event.is_voice,
                VoiceMode::On => true,
                VoiceMode::Off => false,
            })
    }

    async fn send(&self, event: &MessageSend, call: &Call) -> Result<AnyEffect, HandlerError> {
        let timeout = time_left(self.engine.settings().timeout, call.timeout);
        let (text, formats) = (&event.response_text, &event.audio_formats);
        let on_step = |step: VoiceStep, took| call.notes.add_step(step.as_str(), took);
        let spoken = self.engine.speak_timed(text, formats, timeout, &on_step);
        let speech = match spoken.await {
            Ok(Some(speech)) => speech,
            Ok(None) => return Ok(AnyEffect::default()),
            Err(error) => {
                if let Some(on_failure) = &self.on_failure {
                    on_failure(&error);
                }
                return Err(HandlerError::Other {
                    problem: format!("the answer was not spoken: {error}"),
                });
            }
        };
        let mut part = part(&speech);
        let mut effect = Effect::<MessageSend>::none();
        if !speech.has_wanted_format {
            let format = speech.container.name();
            let notice = format!(
                "The spoken answer is a {format} file, because no program is installed that converts it."
            );
            part.metadata.insert("notice".to_owned(), json!(notice));
            effect = effect.notice(notice);
        }
        let effect = effect.part(part);
        Ok(effect.into_any().map(|effect| *effect).unwrap_or_default())
    }
}

impl EventRunner for Tts {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(async move {
            match call.event.downcast::<MessageSend>() {
                Some(event) if self.is_on(event) => self.send(event, call).await,
                Some(_) | None => Ok(AnyEffect::default()),
            }
        })
    }
}

/// Returns the part with the audio in base64. It is a file if the channel cannot play it.
fn part(speech: &Speech) -> MessagePart {
    let mut metadata = JsonObject::new();
    let name = format!("answer.{}", speech.container.extension());
    metadata.insert("name".to_owned(), json!(name));
    metadata.insert("size".to_owned(), json!(speech.bytes.len()));
    // Audio without it does not replace a text that is held back.
    metadata.insert("spoken_answer".to_owned(), json!(true));
    if let Some(duration) = speech.duration {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        metadata.insert("duration_ms".to_owned(), json!(millis));
    }
    let kind = if speech.has_wanted_format {
        "audio"
    } else {
        "file"
    };
    MessagePart {
        kind: kind.to_owned(),
        text: None,
        media_type: Some(speech.container.media_type().to_owned()),
        data: Some(STANDARD.encode(&speech.bytes)),
        metadata,
    }
}
