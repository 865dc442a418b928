//! What the settings say about engines and converters, and the programs that are known to work as engines.

use std::path::PathBuf;

/// The service that is asked if the settings name no other.
pub(crate) const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// What turns speech into text, or text into speech.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VoiceEngine {
    /// A service with the HTTP interface of OpenAI.
    OpenAi(SpeechService),
    /// A program on this machine.
    Command(SpeechProgram),
}

/// A service with the HTTP interface of OpenAI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeechService {
    /// The address, to which paths such as `/audio/speech` are appended. It has no slash at its end.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// Where the key is.
    pub key: SpeechKey,
}

/// Where the key of a service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeechKey {
    /// In `OPENAI_API_KEY` if the service is OpenAI's own. Other services get no key.
    Usual,
    /// In an environment variable.
    Variable(String),
    /// In a file that only its owner can read.
    File(PathBuf),
}

/// A program on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeechProgram {
    /// The program and its arguments, with placeholders.
    pub argv: Vec<String>,
    /// The name of the preset that the arguments come from, if it is one.
    pub preset: Option<String>,
    /// The file with the model or voice, if the program needs one.
    pub model: Option<PathBuf>,
    /// The file with the grammar, if the program needs one.
    pub grammar: Option<PathBuf>,
}

/// How audio is converted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AudioConversion {
    /// By the first suitable program that is installed: `ffmpeg`, `opusdec` or `opusenc`, `sox`.
    #[default]
    Auto,
    /// By this program with its arguments, which have the placeholders `{input}` and `{output}`.
    Command(Vec<String>),
    /// Not at all.
    Off,
}

impl VoiceEngine {
    /// Returns the word that names the engine in the settings.
    pub fn word(&self) -> &'static str {
        match self {
            Self::OpenAi(_) => "openai",
            Self::Command(_) => "command",
        }
    }

    pub(crate) fn secret_variable(&self) -> Option<&str> {
        match self {
            Self::OpenAi(service) => service.key_variable(),
            Self::Command(_) => None,
        }
    }
}

impl SpeechService {
    /// Returns the environment variable that contains the key, if one does.
    pub(crate) fn key_variable(&self) -> Option<&str> {
        match &self.key {
            SpeechKey::Variable(variable) => Some(variable),
            SpeechKey::Usual if self.base_url == DEFAULT_BASE_URL => Some("OPENAI_API_KEY"),
            SpeechKey::Usual | SpeechKey::File(_) => None,
        }
    }
}

/// What differs between the engines of the two directions.
#[derive(Debug)]
pub(crate) struct Direction {
    pub(crate) presets: &'static [Preset],
    pub(crate) default_model: &'static str,
}

/// A program with arguments that are known to work.
#[derive(Debug)]
pub(crate) struct Preset {
    pub(crate) name: &'static str,
    pub(crate) argv: &'static [&'static str],
    /// The key with the file that the program cannot do without.
    pub(crate) required: Option<&'static str>,
}

impl Direction {
    pub(crate) const STT: Self = Self {
        default_model: "whisper-1",
        presets: &[
            Preset {
                name: "whisper-cli",
                argv: &[
                    "whisper-cli",
                    "-nt",
                    "-np",
                    "-m",
                    "{model}",
                    "-l",
                    "{language}",
                    "-f",
                    "{input}",
                ],
                required: Some("model"),
            },
            Preset {
                name: "pocketsphinx",
                argv: &[
                    "pocketsphinx_continuous",
                    "-infile",
                    "{input}",
                    "-jsgf",
                    "{grammar}",
                    "-logfn",
                    "/dev/null",
                ],
                required: Some("grammar"),
            },
        ],
    };

    // The text is on standard input, so that an answer that begins with `-` is not an option.
    pub(crate) const TTS: Self = Self {
        default_model: "tts-1",
        presets: &[
            Preset {
                name: "espeak-ng",
                argv: &[
                    "espeak-ng",
                    "--stdin",
                    "-b",
                    "1",
                    "-v",
                    "{voice}",
                    "-s",
                    "{rate}",
                    "-w",
                    "{output}",
                ],
                required: None,
            },
            Preset {
                name: "piper",
                argv: &[
                    "piper",
                    "--model",
                    "{model}",
                    "--length_scale",
                    "{length_scale}",
                    "--output_file",
                    "{output}",
                ],
                required: Some("model"),
            },
        ],
    };
}
