//! Speech to text and text to speech.
//!
//! A service with the HTTP interface of OpenAI, or a program on this machine, does the work. This crate reads the settings,
//! checks the audio, runs programs that convert it, and returns text or audio. No audio is decoded in this process: a decoder
//! would read bytes of strangers. It knows no hooks; the built-ins `stt` and `tts` of `tenterhook-builtins` use it.
//!
//! [`SttSettings`] and [`TtsSettings`] are read from keys and values, whatever file these come from. [`SpeechToText`] and
//! [`TextToSpeech`] do the work within a time.
//!
//! # Examples
//!
//! ```
//! use std::time::Duration;
//! use tenterhook_voice::{SttSettings, VoiceSetting, spoken_text};
//!
//! let settings = ["engine=openai", "base_url=http://127.0.0.1:9000/v1", "timeout=20s"];
//! let settings = settings.map(|text| VoiceSetting::from_argument(text).unwrap());
//! let settings = SttSettings::read(&settings, None).unwrap();
//! assert_eq!(settings.timeout, Duration::from_secs(20));
//!
//! assert_eq!(spoken_text("# Hello\nSee <https://example.com/a>"), "Hello.\nSee example.com.");
//! ```

#![forbid(unsafe_code)]

mod check;
mod command_engine;
mod container;
mod converter;
mod engine_settings;
mod error;
mod limits;
mod opus_length;
mod program;
mod service;
mod service_key;
mod setting_reader;
mod settings;
mod speech;
mod spoken_text;
mod step;
mod wav;

pub use check::VoiceFinding;

pub use container::AudioContainer;
pub use engine_settings::{AudioConversion, SpeechKey, SpeechProgram, SpeechService, VoiceEngine};
pub use error::VoiceError;
pub use limits::{MAX_RECORDING_BYTES, MAX_SPEECH_BYTES};
pub use setting_reader::{VoiceSetting, VoiceSettingError, VoiceSettingValue};
pub use settings::{
    OnUnheard, STT_KEYS, SpokenAnswer, SttSettings, TTS_KEYS, TtsSettings, VoiceMode,
};
pub use speech::{Speech, SpeechToText, TextToSpeech};
pub use spoken_text::{is_spoken_whole, spoken_text};
pub use step::{OnVoiceStep, VoiceStep};
pub use wav::Wav;
