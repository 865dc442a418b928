//! The settings of speech: which engine, in which voice or language, and within which limits.
//!
//! `gateway.yaml` and the arguments of the built-ins have the same keys. Both hand them over as [`VoiceSetting`]s, so that
//! each reader can report a problem at its own position.

use std::path::Path;
use std::time::Duration;

use crate::engine_settings::{AudioConversion, Direction, VoiceEngine};
use crate::setting_reader::{Limits, SettingReader, VoiceSetting, VoiceSettingError};

/// The keys of the settings of speech to text.
pub const STT_KEYS: &[&str] = &[
    "enabled",
    "engine",
    "base_url",
    "model",
    "key_env",
    "key_file",
    "preset",
    "argv",
    "grammar",
    "language",
    "convert",
    "timeout",
    "max",
    "on_failure",
];

/// The keys of the settings of text to speech.
pub const TTS_KEYS: &[&str] = &[
    "enabled",
    "engine",
    "base_url",
    "model",
    "key_env",
    "key_file",
    "preset",
    "argv",
    "voice",
    "language",
    "speed",
    "convert",
    "timeout",
    "text",
    "max_chars",
];

/// Whether voice is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum VoiceMode {
    /// Voice messages become text, and a voice message is answered with voice.
    #[default]
    Auto,
    /// Like `Auto`, and also typed messages are answered with voice.
    On,
    /// Never.
    Off,
}

/// What happens to a voice message that cannot be understood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnUnheard {
    /// The sender is asked to repeat it. If the message has something else too, the agent gets that and a placeholder.
    #[default]
    Tell,
    /// The agent gets a placeholder instead.
    Pass,
    /// The whole message is refused.
    Reject,
}

/// Whether a spoken answer is also sent as text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SpokenAnswer {
    /// The answer is sent as text, and then as audio.
    #[default]
    Both,
    /// The text is held back, and sent only if there is no audio.
    VoiceOnly,
}

/// The settings of speech to text.
#[derive(Debug, Clone, PartialEq)]
pub struct SttSettings {
    /// Whether it is used.
    pub enabled: VoiceMode,
    /// What turns speech into text.
    pub engine: VoiceEngine,
    /// The language that people speak, such as `en`. Without it, the engine finds out or uses its own.
    pub language: Option<String>,
    /// How audio becomes a WAV file for an engine that needs one.
    pub convert: AudioConversion,
    /// How long a message may take.
    pub timeout: Duration,
    /// The maximum length of a recording.
    pub max: Duration,
    /// What happens to a message that cannot be understood.
    pub on_failure: OnUnheard,
}

/// The settings of text to speech.
#[derive(Debug, Clone, PartialEq)]
pub struct TtsSettings {
    /// Whether it is used.
    pub enabled: VoiceMode,
    /// What turns text into speech.
    pub engine: VoiceEngine,
    /// The voice. Each engine has its own names.
    pub voice: Option<String>,
    /// The language of the answers, for programs that have the placeholder `{language}`.
    pub language: Option<String>,
    /// How fast the voice speaks. 1 is its normal speed.
    pub speed: f64,
    /// How the audio becomes what the channel can send.
    pub convert: AudioConversion,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Whether the answer is also sent as text.
    pub text: SpokenAnswer,
    /// The maximum number of characters that are spoken. A longer answer ends after a sentence.
    pub max_chars: usize,
}

const MODES: [(&str, VoiceMode); 4] = [
    ("auto", VoiceMode::Auto),
    ("null", VoiceMode::Auto),
    ("true", VoiceMode::On),
    ("false", VoiceMode::Off),
];
const UNHEARD: [(&str, OnUnheard); 3] = [
    ("tell", OnUnheard::Tell),
    ("pass", OnUnheard::Pass),
    ("reject", OnUnheard::Reject),
];
const ANSWERS: [(&str, SpokenAnswer); 2] = [
    ("both", SpokenAnswer::Both),
    ("voice_only", SpokenAnswer::VoiceOnly),
];

impl SttSettings {
    /// Reads settings. Relative paths begin in `folder`; without a folder they are problems.
    ///
    /// # Errors
    ///
    /// Returns all problems.
    pub fn read(
        settings: &[VoiceSetting],
        folder: Option<&Path>,
    ) -> Result<Self, Vec<VoiceSettingError>> {
        let mut reader = SettingReader::new(settings, STT_KEYS, folder);
        let read = Self {
            enabled: reader.choice("enabled", &MODES),
            engine: reader.engine(&Direction::STT),
            language: reader.word("language"),
            convert: reader.conversion(),
            timeout: reader.duration("timeout", Duration::from_mins(1), Limits::TIMEOUT),
            max: reader.duration("max", Duration::from_mins(10), Limits::RECORDING),
            on_failure: reader.choice("on_failure", &UNHEARD),
        };
        reader.finish(read)
    }

    /// Returns the environment variable that contains the key of the service, if there is one. Programs that people or the
    /// agent start must not see it.
    pub fn secret_variable(&self) -> Option<&str> {
        self.engine.secret_variable()
    }
}

impl TtsSettings {
    /// Reads settings. Relative paths begin in `folder`; without a folder they are problems.
    ///
    /// # Errors
    ///
    /// Returns all problems.
    pub fn read(
        settings: &[VoiceSetting],
        folder: Option<&Path>,
    ) -> Result<Self, Vec<VoiceSettingError>> {
        let mut reader = SettingReader::new(settings, TTS_KEYS, folder);
        let read = Self {
            enabled: reader.choice("enabled", &MODES),
            engine: reader.engine(&Direction::TTS),
            voice: reader.word("voice"),
            language: reader.word("language"),
            speed: reader.speed(),
            convert: reader.conversion(),
            timeout: reader.duration("timeout", Duration::from_secs(30), Limits::TIMEOUT),
            text: reader.choice("text", &ANSWERS),
            max_chars: reader.max_chars(),
        };
        reader.finish(read)
    }

    /// Returns the environment variable that contains the key of the service, if there is one. Programs that people or the
    /// agent start must not see it.
    pub fn secret_variable(&self) -> Option<&str> {
        self.engine.secret_variable()
    }
}

#[cfg(test)]
mod tests;
