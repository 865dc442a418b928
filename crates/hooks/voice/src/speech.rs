//! The two directions: recordings become text, and answers become audio.

use std::borrow::Cow;
use std::time::Duration;

use tokio::time::Instant;

use crate::command_engine;
use crate::container::AudioContainer;
use crate::converter::ConversionRun;
use crate::engine_settings::{SpeechProgram, VoiceEngine};
use crate::error::VoiceError;
use crate::limits::{MAX_RECORDING_BYTES, MAX_SPEECH_BYTES};
use crate::opus_length::opus_length;
use crate::program::check_installed;
use crate::service::ServiceClient;
use crate::settings::{SttSettings, TtsSettings};
use crate::spoken_text::{cut_at_sentence, spoken_text};
use crate::step::{OnVoiceStep, TimedWork, VoiceStep};
use crate::wav::Wav;

/// The maximum size of a transcript in bytes.
const MAX_TRANSCRIPT: usize = 32 * 1024;

/// The maximum number of characters of one request to a service.
const MAX_SERVICE_CHARS: usize = 4096;

/// What whisper.cpp writes instead of silence.
const SILENCE: &str = "[BLANK_AUDIO]";

#[derive(Debug, Clone)]
enum ReadyEngine {
    Service(ServiceClient),
    Program(SpeechProgram),
}

impl ReadyEngine {
    fn of(engine: &VoiceEngine) -> Result<Self, VoiceError> {
        match engine {
            VoiceEngine::OpenAi(service) => Ok(Self::Service(ServiceClient::new(service)?)),
            VoiceEngine::Command(program) => {
                check_installed(&program.argv)?;
                command_engine::check_files(program)?;
                Ok(Self::Program(program.clone()))
            }
        }
    }
}

/// Turns recordings into text.
#[derive(Debug, Clone)]
pub struct SpeechToText {
    settings: SttSettings,
    engine: ReadyEngine,
}

impl SpeechToText {
    /// Prepares the engine: reads the key of a service, or looks for the program. It reads files.
    ///
    /// # Errors
    ///
    /// Fails if the engine cannot work.
    pub fn new(settings: SttSettings) -> Result<Self, VoiceError> {
        let engine = ReadyEngine::of(&settings.engine)?;
        Ok(Self { settings, engine })
    }

    /// Returns the settings.
    pub fn settings(&self) -> &SttSettings {
        &self.settings
    }

    /// Returns the text of a recording, on one line. Dropping the future ends all programs and removes all files.
    ///
    /// # Errors
    ///
    /// Fails if the recording is damaged or too long, or if the engine fails or hears nothing before `timeout`.
    pub async fn transcribe(
        &self,
        recording: &[u8],
        timeout: Duration,
    ) -> Result<String, VoiceError> {
        self.transcribe_timed(recording, timeout, &|_, _| {}).await
    }

    /// Does the same as [`transcribe`](Self::transcribe), and reports how long its parts took.
    ///
    /// # Errors
    ///
    /// As `transcribe`.
    pub async fn transcribe_timed(
        &self,
        recording: &[u8],
        timeout: Duration,
        on_step: &OnVoiceStep<'_>,
    ) -> Result<String, VoiceError> {
        within(timeout, async |deadline| {
            let work = TimedWork { deadline, on_step };
            let text = self.text_of(recording, work).await?;
            clean_transcript(&text).ok_or(VoiceError::Empty {
                what: "the transcript",
            })
        })
        .await
    }

    async fn text_of(&self, recording: &[u8], work: TimedWork<'_>) -> Result<String, VoiceError> {
        if recording.len() > MAX_RECORDING_BYTES {
            let what = "the recording".to_owned();
            return Err(VoiceError::TooLarge {
                what,
                limit: MAX_RECORDING_BYTES as u64,
            });
        }
        let container = AudioContainer::of_bytes(recording).ok_or(VoiceError::UnknownFormat)?;
        if container == AudioContainer::Wav {
            self.check_length(&Wav::read(recording)?)?;
        }
        let language = self.settings.language.as_deref();
        match &self.engine {
            ReadyEngine::Service(service) => {
                let sent = self.measured(recording, container, work).await?;
                let container = AudioContainer::of_bytes(&sent).ok_or(VoiceError::UnknownFormat)?;
                let text = service.transcribe(&sent, container, language);
                work.step(VoiceStep::Transcription, text).await
            }
            ReadyEngine::Program(program) => {
                let wav = self.wav(recording, container, work).await?;
                let text = command_engine::transcribe(program, language, &wav, work.deadline);
                work.step(VoiceStep::Transcription, text).await
            }
        }
    }

    /// Returns the recording for a service, which is paid by length. Only a length that was determined here counts: of samples,
    /// of packets, or of what a converter made of the file. A recording without one is refused.
    async fn measured<'a>(
        &self,
        recording: &'a [u8],
        container: AudioContainer,
        work: TimedWork<'_>,
    ) -> Result<Cow<'a, [u8]>, VoiceError> {
        if container == AudioContainer::Wav
            && let Some(true_wav) = Wav::read(recording)?.with_true_header()
        {
            return Ok(Cow::Owned(true_wav));
        }
        if container == AudioContainer::OggOpus
            && let Some(length) = opus_length(recording)
        {
            self.check_duration(length)?;
            return Ok(Cow::Borrowed(recording));
        }
        let wav = self.wav(recording, container, work).await?;
        if wav.len() > MAX_RECORDING_BYTES {
            return Err(VoiceError::TooLarge {
                what: "the recording, as WAV,".to_owned(),
                limit: MAX_RECORDING_BYTES as u64,
            });
        }
        Ok(Cow::Owned(wav))
    }

    /// Returns the WAV file for a program.
    async fn wav(
        &self,
        recording: &[u8],
        container: AudioContainer,
        work: TimedWork<'_>,
    ) -> Result<Vec<u8>, VoiceError> {
        if container == AudioContainer::Wav
            && let Some(ready) = Wav::read(recording)?.for_engine()
        {
            return Ok(ready);
        }
        let conversion = ConversionRun {
            conversion: &self.settings.convert,
            from: container,
            to: AudioContainer::Wav,
            max: self.settings.max,
            max_output: wav_bytes(self.settings.max),
        };
        let converted = conversion.run(recording, work).await?;
        let wav = Wav::read(&converted)?;
        self.check_length(&wav)?;
        wav.for_engine().ok_or_else(|| VoiceError::Damaged {
            format: AudioContainer::Wav.name(),
            problem: "the converter did not write 16,000 samples of 16 bits a second".to_owned(),
        })
    }

    fn check_length(&self, wav: &Wav<'_>) -> Result<(), VoiceError> {
        self.check_duration(wav.duration())
    }

    fn check_duration(&self, length: Duration) -> Result<(), VoiceError> {
        let limit = self.settings.max;
        if length > limit {
            Err(VoiceError::TooLong { limit })
        } else {
            Ok(())
        }
    }
}

/// Spoken audio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speech {
    /// The file.
    pub bytes: Vec<u8>,
    /// Its container.
    pub container: AudioContainer,
    /// How long it plays, if that is known.
    pub duration: Option<Duration>,
    /// Whether it has one of the formats that were asked for. If not, no installed program could convert it.
    pub has_wanted_format: bool,
}

/// Turns answers into audio.
#[derive(Debug, Clone)]
pub struct TextToSpeech {
    settings: TtsSettings,
    engine: ReadyEngine,
}

impl TextToSpeech {
    /// Prepares the engine: reads the key of a service, or looks for the program. It reads files.
    ///
    /// # Errors
    ///
    /// Fails if the engine cannot work.
    pub fn new(settings: TtsSettings) -> Result<Self, VoiceError> {
        let engine = ReadyEngine::of(&settings.engine)?;
        Ok(Self { settings, engine })
    }

    /// Returns the settings.
    pub fn settings(&self) -> &TtsSettings {
        &self.settings
    }

    /// Speaks an answer in Markdown, in one of these formats: media types, the best first. No formats means any format.
    /// Returns `None` if the answer has no words. Dropping the future ends all programs and removes all files.
    ///
    /// # Errors
    ///
    /// Fails if the engine fails or has no result before `timeout`.
    pub async fn speak(
        &self,
        markdown: &str,
        formats: &[String],
        timeout: Duration,
    ) -> Result<Option<Speech>, VoiceError> {
        self.speak_timed(markdown, formats, timeout, &|_, _| {})
            .await
    }

    /// Does the same as [`speak`](Self::speak), and reports how long its parts took.
    ///
    /// # Errors
    ///
    /// As `speak`.
    pub async fn speak_timed(
        &self,
        markdown: &str,
        formats: &[String],
        timeout: Duration,
        on_step: &OnVoiceStep<'_>,
    ) -> Result<Option<Speech>, VoiceError> {
        let max_chars = match &self.engine {
            ReadyEngine::Service(_) => self.settings.max_chars.min(MAX_SERVICE_CHARS),
            ReadyEngine::Program(_) => self.settings.max_chars,
        };
        let text = spoken_text(markdown);
        let text = cut_at_sentence(&text, max_chars);
        if text.is_empty() {
            return Ok(None);
        }
        let wanted: Vec<AudioContainer> = formats
            .iter()
            .filter_map(|format| AudioContainer::of_media_type(format))
            .collect();
        let speech = within(timeout, async |deadline| {
            let work = TimedWork { deadline, on_step };
            self.audio(text, formats, &wanted, work).await
        });
        speech.await.map(Some)
    }

    async fn audio(
        &self,
        text: &str,
        formats: &[String],
        wanted: &[AudioContainer],
        work: TimedWork<'_>,
    ) -> Result<Speech, VoiceError> {
        let bytes = match &self.engine {
            ReadyEngine::Service(service) => {
                let audio = service.speak(text, &self.settings, wanted);
                work.step(VoiceStep::Speech, audio).await?
            }
            ReadyEngine::Program(program) => {
                let audio = command_engine::speak(program, &self.settings, text, work.deadline);
                work.step(VoiceStep::Speech, audio).await?
            }
        };
        let container = AudioContainer::of_bytes(&bytes).ok_or(VoiceError::UnknownFormat)?;
        let wav = if container == AudioContainer::Wav {
            Some(Wav::read(&bytes)?)
        } else {
            None
        };
        let duration = wav.as_ref().map(Wav::duration);
        let bytes = wav.and_then(|wav| wav.with_true_header()).unwrap_or(bytes);
        let mut speech = Speech {
            bytes,
            container,
            duration,
            has_wanted_format: formats.is_empty() || wanted.contains(&container),
        };
        if speech.has_wanted_format {
            return Ok(speech);
        }
        for to in wanted {
            let conversion = ConversionRun {
                conversion: &self.settings.convert,
                from: container,
                to: *to,
                max: Duration::from_hours(1),
                max_output: MAX_SPEECH_BYTES,
            };
            match conversion.run(&speech.bytes, work).await {
                Ok(bytes) => {
                    speech.bytes = bytes;
                    speech.container = *to;
                    speech.has_wanted_format = true;
                    break;
                }
                Err(VoiceError::NoConverter { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(speech)
    }
}

/// Runs work until a deadline.
async fn within<T>(
    timeout: Duration,
    work: impl AsyncFnOnce(Instant) -> Result<T, VoiceError>,
) -> Result<T, VoiceError> {
    let deadline = Instant::now() + timeout;
    let result = tokio::time::timeout_at(deadline, work(deadline)).await;
    match result {
        Ok(Err(VoiceError::TimedOut { .. })) | Err(_) => {
            Err(VoiceError::TimedOut { after: timeout })
        }
        Ok(result) => result,
    }
}

/// Returns the size of a WAV file for an engine with this length, and some room for its header.
fn wav_bytes(length: Duration) -> usize {
    let seconds = usize::try_from(length.as_secs()).unwrap_or(usize::MAX);
    seconds
        .saturating_add(2)
        .saturating_mul(32_000)
        .saturating_add(4096)
}

/// Returns a transcript on one line, without control characters. `None` if nothing is left.
fn clean_transcript(text: &str) -> Option<String> {
    let text = text.replace(SILENCE, " ");
    let is_separator = |c: char| c.is_whitespace() || c.is_control();
    let words = text.split(is_separator).filter(|word| !word.is_empty());
    let line = words.collect::<Vec<&str>>().join(" ");
    let end = line.floor_char_boundary(MAX_TRANSCRIPT);
    let kept = line.get(..end).unwrap_or(&line);
    (!kept.is_empty()).then(|| kept.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_one_line_of_bounded_length() {
        for (text, expected) in [
            ("  turn on\nthe lights \n", Some("turn on the lights")),
            ("a\u{7}b\u{1b}[31m", Some("a b [31m")),
            (" [BLANK_AUDIO]\n", None),
            ("\n", None),
        ] {
            assert_eq!(clean_transcript(text).as_deref(), expected, "{text:?}");
        }
        let long = clean_transcript(&"ä".repeat(MAX_TRANSCRIPT)).unwrap();
        assert_eq!(long.len(), MAX_TRANSCRIPT);
    }
}
