//! Reads settings that were found in some file, and collects every problem.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenterhook_runners::http::Target;
use thiserror::Error;

use crate::engine_settings::{
    AudioConversion, DEFAULT_BASE_URL, Direction, Preset, SpeechKey, SpeechProgram, SpeechService,
    VoiceEngine,
};

/// One setting, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoiceSetting {
    /// The key.
    pub key: String,
    /// The value.
    pub value: VoiceSettingValue,
}

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VoiceSettingValue {
    /// A text, number or truth value, as it was written.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
}

impl VoiceSetting {
    /// Reads an argument of a built-in: `KEY=VALUE`. A list is written as in JSON.
    ///
    /// # Errors
    ///
    /// Fails if the argument does not have this form.
    pub fn from_argument(argument: &str) -> Result<Self, VoiceSettingError> {
        let Some((key, value)) = argument.split_once('=') else {
            return Err(VoiceSettingError {
                key: None,
                message: format!("`{argument}` is not a setting"),
                expected: Some("`KEY=VALUE`, such as `engine=command`".to_owned()),
                suggestion: None,
            });
        };
        let value = if value.starts_with('[') {
            serde_json::from_str(value)
                .map(VoiceSettingValue::List)
                .map_err(|error| VoiceSettingError {
                    key: Some(key.to_owned()),
                    message: format!("the value of `{key}` is not valid JSON: {error}"),
                    expected: Some(
                        "a list of texts such as `[\"my-program\", \"{input}\"]`".to_owned(),
                    ),
                    suggestion: None,
                })?
        } else {
            VoiceSettingValue::Text(value.to_owned())
        };
        Ok(Self {
            key: key.to_owned(),
            value,
        })
    }
}

/// What is wrong with a setting.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}{}{}", shown("; expected ", .expected.as_deref(), ""), shown("; did you mean `", .suggestion.as_deref(), "`?"))]
pub struct VoiceSettingError {
    /// The key that it is about. `None` if something is missing.
    pub key: Option<String>,
    /// What was found.
    pub message: String,
    /// What is allowed.
    pub expected: Option<String>,
    /// The value that was probably meant.
    pub suggestion: Option<String>,
}

/// Returns a text with what stands around it, or nothing.
fn shown(before: &str, text: Option<&str>, after: &str) -> String {
    text.map(|text| format!("{before}{text}{after}"))
        .unwrap_or_default()
}

/// The ranges of settings.
#[derive(Debug)]
pub(crate) struct Limits;

impl Limits {
    pub(crate) const TIMEOUT: RangeInclusive<Duration> =
        Duration::from_secs(1)..=Duration::from_mins(10);
    pub(crate) const RECORDING: RangeInclusive<Duration> =
        Duration::from_secs(1)..=Duration::from_hours(2);
    const SPEED: RangeInclusive<f64> = 0.25..=4.0;
    const CHARS: RangeInclusive<usize> = 1..=100_000;
}

/// The keys under which people write a secret itself.
const INLINE_SECRETS: [&str; 4] = ["key", "api_key", "token", "password"];

/// The keys that only one kind of engine has.
const ENGINE_KEYS: [(&str, &[&str]); 2] = [
    ("openai", &["base_url", "key_env", "key_file"]),
    ("command", &["preset", "argv", "grammar"]),
];

pub(crate) struct SettingReader<'a> {
    settings: &'a [VoiceSetting],
    folder: Option<&'a Path>,
    problems: Vec<VoiceSettingError>,
}

impl<'a> SettingReader<'a> {
    /// Begins, and reports unknown and repeated keys.
    pub(crate) fn new(
        settings: &'a [VoiceSetting],
        keys: &[&str],
        folder: Option<&'a Path>,
    ) -> Self {
        let mut reader = Self {
            settings,
            folder,
            problems: Vec::new(),
        };
        for (index, setting) in settings.iter().enumerate() {
            let key = setting.key.as_str();
            if INLINE_SECRETS.contains(&key) {
                let message = format!("`{key}` would contain the key itself");
                reader.report(
                    Some(key),
                    message,
                    "`key_env` with the name of a variable, or `key_file`",
                );
            } else if !keys.contains(&key) {
                reader.report(
                    Some(key),
                    format!("unknown setting `{key}`"),
                    &nearest_or_all(key, keys),
                );
            } else if settings
                .iter()
                .take(index)
                .any(|earlier| earlier.key == key)
            {
                reader.report(Some(key), format!("`{key}` is set twice"), "one value");
            }
        }
        reader
    }

    /// Returns the settings if there was no problem.
    pub(crate) fn finish<T>(self, read: T) -> Result<T, Vec<VoiceSettingError>> {
        if self.problems.is_empty() {
            Ok(read)
        } else {
            Err(self.problems)
        }
    }

    fn report(&mut self, key: Option<&str>, message: String, expected: &str) {
        self.problems.push(VoiceSettingError {
            key: key.map(str::to_owned),
            message,
            expected: Some(expected.to_owned()),
            suggestion: None,
        });
    }

    fn value(&self, key: &str) -> Option<&'a VoiceSettingValue> {
        let found = self.settings.iter().find(|setting| setting.key == key);
        found.map(|setting| &setting.value)
    }

    /// Returns a text. Reports a list and an empty text.
    fn text(&mut self, key: &str) -> Option<&'a str> {
        match self.value(key)? {
            VoiceSettingValue::Text(text) if !text.trim().is_empty() => Some(text),
            VoiceSettingValue::Text(_) => {
                self.report(Some(key), format!("`{key}` is empty"), "a text");
                None
            }
            VoiceSettingValue::List(_) => {
                self.report(Some(key), format!("`{key}` is a list"), "a text");
                None
            }
        }
    }

    /// Reads a text with `parse`, or reports it.
    fn parsed<T>(
        &mut self,
        key: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(key)?;
        let value = parse(text);
        if value.is_none() {
            let message = format!("`{key}` is `{text}`");
            self.report(Some(key), message, expected);
        }
        value
    }

    /// Reads one of several words. Suggests a similar one if it is another word.
    fn one_word<'b>(&mut self, key: &str, words: &[&'b str]) -> Option<&'b str> {
        let text = self.text(key)?;
        let word = words.iter().copied().find(|word| *word == text);
        if word.is_none() {
            self.problems.push(VoiceSettingError {
                key: Some(key.to_owned()),
                message: format!("`{key}` is `{text}`"),
                expected: Some(one_of(words)),
                suggestion: nearest(text, words).map(str::to_owned),
            });
        }
        word
    }

    /// Reads one of several words, or returns the default.
    pub(crate) fn choice<T: Copy + Default>(&mut self, key: &str, choices: &[(&str, T)]) -> T {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let word = self.one_word(key, &words);
        let choice = choices.iter().find(|(known, _)| Some(*known) == word);
        choice.map(|(_, value)| *value).unwrap_or_default()
    }

    /// Reads a word for an engine, such as a language or a voice. It never looks like an option of a program.
    pub(crate) fn word(&mut self, key: &str) -> Option<String> {
        let expected = "a name that does not begin with `-`, without control characters";
        self.parsed(key, expected, |text| {
            let is_plain = !text.starts_with('-') && !text.chars().any(char::is_control);
            is_plain.then(|| text.to_owned())
        })
    }

    /// Reads a number of seconds, or a number with a unit.
    pub(crate) fn duration(
        &mut self,
        key: &str,
        default: Duration,
        allowed: RangeInclusive<Duration>,
    ) -> Duration {
        let (least, most) = (allowed.start().as_secs(), allowed.end().as_secs());
        let expected = format!("a time such as `30s` or `2m`, from {least}s to {most}s");
        let read = self.parsed(key, &expected, |text| {
            parse_duration(text).filter(|duration| allowed.contains(duration))
        });
        read.unwrap_or(default)
    }

    /// Reads the speed of a voice.
    pub(crate) fn speed(&mut self) -> f64 {
        let read = self.parsed("speed", "a number from 0.25 to 4", |text| {
            let speed: Option<f64> = text.parse().ok();
            speed.filter(|speed| Limits::SPEED.contains(speed))
        });
        read.unwrap_or(1.0)
    }

    /// Reads the maximum number of characters that are spoken.
    pub(crate) fn max_chars(&mut self) -> usize {
        let read = self.parsed("max_chars", "a whole number from 1 to 100000", |text| {
            let chars: Option<usize> = text.parse().ok();
            chars.filter(|chars| Limits::CHARS.contains(chars))
        });
        read.unwrap_or(1500)
    }

    /// Reads a program with its arguments.
    fn argv(&mut self, key: &str) -> Option<Vec<String>> {
        let argv = match self.value(key)? {
            VoiceSettingValue::List(argv) => argv,
            VoiceSettingValue::Text(_) => {
                let expected = "a list: the program and its arguments";
                self.report(Some(key), format!("`{key}` is a text"), expected);
                return None;
            }
        };
        let program = argv.first().filter(|program| !program.is_empty());
        // Programs run in a temporary folder, where a relative path would find nothing.
        let is_findable = program.is_some_and(|program| {
            let has_folder = program.contains(['/', std::path::MAIN_SEPARATOR]);
            !has_folder || Path::new(program.as_str()).is_absolute()
        });
        if !is_findable {
            let message = format!("`{key}` does not begin with a program");
            let expected = "its name or its absolute path, and then its arguments";
            self.report(Some(key), message, expected);
            return None;
        }
        Some(argv.clone())
    }

    /// Reads how audio is converted.
    pub(crate) fn conversion(&mut self) -> AudioConversion {
        const WORDS: [(&str, AudioConversion); 3] = [
            ("auto", AudioConversion::Auto),
            ("off", AudioConversion::Off),
            ("false", AudioConversion::Off),
        ];
        if let Some(VoiceSettingValue::List(argv)) = self.value("convert") {
            for placeholder in ["{input}", "{output}"] {
                if !argv.iter().any(|word| word.contains(placeholder)) {
                    let message = format!("`convert` does not contain `{placeholder}`");
                    let expected = "a program with both `{input}` and `{output}`";
                    self.report(Some("convert"), message, expected);
                }
            }
            let argv = self.argv("convert");
            return argv.map_or(AudioConversion::Off, AudioConversion::Command);
        }
        let expected = "`auto`, `off`, or a list with a program and its arguments";
        let read = self.parsed("convert", expected, |text| {
            let choice = WORDS.into_iter().find(|(word, _)| *word == text);
            choice.map(|(_, conversion)| conversion)
        });
        read.unwrap_or_default()
    }

    /// Reads the engine and the settings that belong to it. After a problem, the result is of no use.
    pub(crate) fn engine(&mut self, direction: &Direction) -> VoiceEngine {
        let words = ["openai", "command"];
        if self.value("engine").is_none() {
            self.report(None, "`engine` is missing".to_owned(), &one_of(&words));
        }
        let engine = self.one_word("engine", &words);
        let foreign = ENGINE_KEYS.iter().filter(|(of, _)| Some(*of) != engine);
        for key in foreign.flat_map(|(_, keys)| *keys).copied() {
            if let (Some(engine), Some(_)) = (engine, self.value(key)) {
                let message = format!("the engine `{engine}` has no setting `{key}`");
                let owner = ENGINE_KEYS.iter().find(|(_, keys)| keys.contains(&key));
                let owner = owner.map(|(of, _)| *of).unwrap_or_default();
                self.report(Some(key), message, &format!("`engine: {owner}`"));
            }
        }
        if engine == Some("openai") {
            VoiceEngine::OpenAi(self.service(direction))
        } else {
            VoiceEngine::Command(self.program(direction))
        }
    }

    fn service(&mut self, direction: &Direction) -> SpeechService {
        let base_url = self.text("base_url").unwrap_or(DEFAULT_BASE_URL);
        let base_url = base_url.trim_end_matches('/').to_owned();
        if let Err(error) = Target::parse(&base_url, true) {
            // The message does not show the URL, which may contain a password.
            let message = format!("`base_url` cannot be used: {error}");
            let expected = "a web address such as `http://127.0.0.1:9000/v1`";
            self.report(Some("base_url"), message, expected);
        }
        let variable = self.text("key_env");
        let file = self.path("key_file");
        if variable.is_some() && file.is_some() {
            let message = "`key_env` and `key_file` are both set".to_owned();
            self.report(Some("key_file"), message, "one of them");
        }
        let key = match (variable, file) {
            (Some(variable), _) => SpeechKey::Variable(variable.to_owned()),
            (None, Some(file)) => SpeechKey::File(file),
            (None, None) => SpeechKey::Usual,
        };
        let model = self.word("model");
        SpeechService {
            base_url,
            model: model.unwrap_or_else(|| direction.default_model.to_owned()),
            key,
        }
    }

    fn program(&mut self, direction: &Direction) -> SpeechProgram {
        let preset = self.preset(direction);
        let argv = self.argv("argv");
        let engine = VoiceSettingValue::Text("command".to_owned());
        if self.value("engine") == Some(&engine) {
            match (self.value("preset").is_some(), self.value("argv").is_some()) {
                (false, false) => {
                    let message = "the engine `command` needs a program".to_owned();
                    self.report(Some("engine"), message, "`preset` or `argv`");
                }
                (true, true) => {
                    let message = "`preset` and `argv` are both set".to_owned();
                    self.report(Some("argv"), message, "one of them");
                }
                (true, false) | (false, true) => {}
            }
        }
        let model = self.path("model");
        let grammar = self.path("grammar");
        if let Some(preset) = preset
            && let Some(required) = preset.required
            && self.value(required).is_none()
        {
            let message = format!("the preset `{}` needs `{required}`", preset.name);
            self.report(Some("preset"), message, "the path of a file");
        }
        let of_preset = preset.map(|preset| preset.argv.iter().map(|word| (*word).to_owned()));
        SpeechProgram {
            argv: argv
                .or_else(|| of_preset.map(Iterator::collect))
                .unwrap_or_default(),
            preset: preset.map(|preset| preset.name.to_owned()),
            model,
            grammar,
        }
    }

    fn preset(&mut self, direction: &Direction) -> Option<&'static Preset> {
        let names: Vec<&str> = direction.presets.iter().map(|preset| preset.name).collect();
        let name = self.one_word("preset", &names)?;
        direction.presets.iter().find(|preset| preset.name == name)
    }

    /// Reads the path of a file. Relative paths begin in the folder, and `~` is the home folder.
    fn path(&mut self, key: &str) -> Option<PathBuf> {
        let path = Path::new(self.text(key)?);
        let home = path.strip_prefix("~").ok().zip(std::env::home_dir());
        if let Some((below, home)) = home {
            return Some(home.join(below));
        }
        if path.is_absolute() {
            return Some(path.to_owned());
        }
        if let Some(folder) = self.folder {
            return Some(folder.join(path));
        }
        let message = format!("`{key}` is the relative path `{}`", path.display());
        self.report(
            Some(key),
            message,
            "an absolute path, or one that begins with `~/`",
        );
        None
    }
}

fn parse_duration(text: &str) -> Option<Duration> {
    let at = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text.split_at_checked(at.unwrap_or(text.len()))?;
    let is_number = number.starts_with(|c: char| c.is_ascii_digit());
    let number: f64 = number.parse().ok().filter(|_| is_number)?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" | "" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [only] => only.clone(),
        words => format!("one of {}", words.join(", ")),
    }
}

/// Returns the word that was probably meant: one that begins like it, or a similar one.
fn nearest<'a>(word: &str, words: &[&'a str]) -> Option<&'a str> {
    let begins = |known: &&&str| word.len() > 2 && known.starts_with(word);
    if let Some(known) = words.iter().find(begins) {
        return Some(known);
    }
    let distances = words
        .iter()
        .map(|known| (strsim::damerau_levenshtein(word, known), *known));
    let (distance, nearest) = distances.min()?;
    (distance <= 2).then_some(nearest)
}

/// Returns the key that was probably meant, or else all keys.
fn nearest_or_all(key: &str, keys: &[&str]) -> String {
    nearest(key, keys).map_or_else(|| one_of(keys), |known| format!("`{known}`"))
}
