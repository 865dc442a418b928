//! What will work with some settings on this machine, and what will not.

use crate::container::AudioContainer;
use crate::converter::find_converter;
use crate::engine_settings::{AudioConversion, VoiceEngine};
use crate::error::VoiceError;
use crate::settings::{SttSettings, TtsSettings};
use crate::speech::{SpeechToText, TextToSpeech};

/// One finding of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoiceFinding {
    /// Whether something does not work.
    pub is_problem: bool,
    /// What was found.
    pub text: String,
}

impl SttSettings {
    /// Checks the engine and the converters. It reads files and looks for programs, and sends nothing.
    pub fn check(&self) -> Vec<VoiceFinding> {
        let engine = SpeechToText::new(self.clone()).map(drop);
        let mut findings = vec![engine_finding("speech to text", &self.engine, engine)];
        findings.extend(privacy_finding(&self.engine, "recordings"));
        if matches!(self.engine, VoiceEngine::Command(_)) {
            // Services read these formats themselves.
            findings.extend(self.conversion_findings());
        }
        findings
    }

    fn conversion_findings(&self) -> Vec<VoiceFinding> {
        let mut unreadable = Vec::new();
        let mut findings = Vec::new();
        for from in AudioContainer::ALL {
            match find_converter(&self.convert, from, AudioContainer::Wav) {
                Ok(argv) => {
                    let program = argv.first().cloned().unwrap_or_default();
                    findings.push((program, from.name()));
                }
                Err(_) => unreadable.push(from.name()),
            }
        }
        let mut lines: Vec<VoiceFinding> = Vec::new();
        let mut programs: Vec<&str> = findings
            .iter()
            .map(|(program, _)| program.as_str())
            .collect();
        programs.dedup();
        for program in programs {
            let of_program = findings.iter().filter(|(known, _)| known == program);
            let formats: Vec<&str> = of_program.map(|(_, format)| *format).collect();
            lines.push(fine(format!(
                "converter `{program}` for {}",
                formats.join(", ")
            )));
        }
        if !unreadable.is_empty() {
            let hint = match self.convert {
                AudioConversion::Off => "remove `convert: off`",
                AudioConversion::Auto | AudioConversion::Command(_) => "install `ffmpeg`",
            };
            lines.push(bad(format!(
                "recordings in {} cannot be understood, because there is no converter: {hint}",
                unreadable.join(", ")
            )));
        }
        lines
    }
}

impl TtsSettings {
    /// Checks the engine. It reads files and looks for programs, and sends nothing.
    pub fn check(&self) -> Vec<VoiceFinding> {
        let engine = TextToSpeech::new(self.clone()).map(drop);
        let mut findings = vec![engine_finding("text to speech", &self.engine, engine)];
        findings.extend(privacy_finding(&self.engine, "answers"));
        findings
    }

    /// Checks whether a channel that sends audio in these formats, the best first, can get one of them. `None` if nothing
    /// has to be converted.
    pub fn check_channel(&self, channel: &str, formats: &[String]) -> Option<VoiceFinding> {
        let wanted: Vec<AudioContainer> = formats
            .iter()
            .filter_map(|format| AudioContainer::of_media_type(format))
            .collect();
        // Services are asked for the format of the channel. Programs write WAV.
        let is_direct = matches!(self.engine, VoiceEngine::OpenAi(_));
        if formats.is_empty() || is_direct || wanted.contains(&AudioContainer::Wav) {
            return None;
        }
        let mut problem = None;
        for to in wanted {
            match find_converter(&self.convert, AudioContainer::Wav, to) {
                Ok(argv) => {
                    let program = argv.first().cloned().unwrap_or_default();
                    let text = format!(
                        "channel `{channel}`: converter `{program}` from WAV to {}",
                        to.name()
                    );
                    return Some(fine(text));
                }
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        let problem = problem
            .map(|error| format!(" ({error})"))
            .unwrap_or_default();
        Some(bad(format!(
            "channel `{channel}`: spoken answers are sent as WAV files{problem}"
        )))
    }
}

fn engine_finding(what: &str, engine: &VoiceEngine, ready: Result<(), VoiceError>) -> VoiceFinding {
    let name = match engine {
        VoiceEngine::OpenAi(service) => format!("the service `{}`", service.base_url),
        VoiceEngine::Command(program) => {
            let program = program.preset.as_ref().or(program.argv.first());
            format!("the program `{}`", program.map_or("", String::as_str))
        }
    };
    match ready {
        Ok(()) => fine(format!("{what} by {name}")),
        Err(error) => bad(format!("{what} by {name} does not work: {error}")),
    }
}

/// Warns of a service on a network that is asked without TLS.
fn privacy_finding(engine: &VoiceEngine, what: &str) -> Option<VoiceFinding> {
    let VoiceEngine::OpenAi(service) = engine else {
        return None;
    };
    let target = tenterhook_runners::http::Target::parse(&service.base_url, true).ok()?;
    let text = format!(
        "{what} cross the network to `{}` without encryption",
        target.host()
    );
    target.is_plain().then(|| bad(text))
}

fn fine(text: String) -> VoiceFinding {
    VoiceFinding {
        is_problem: false,
        text,
    }
}

fn bad(text: String) -> VoiceFinding {
    VoiceFinding {
        is_problem: true,
        text,
    }
}
