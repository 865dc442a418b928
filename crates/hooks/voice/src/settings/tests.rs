use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{OnUnheard, SpokenAnswer, SttSettings, TtsSettings, VoiceMode};
use crate::engine_settings::{
    AudioConversion, SpeechKey, SpeechProgram, SpeechService, VoiceEngine,
};
use crate::setting_reader::VoiceSetting;

fn settings(arguments: &[&str]) -> Vec<VoiceSetting> {
    let read = arguments
        .iter()
        .map(|text| VoiceSetting::from_argument(text));
    read.collect::<Result<_, _>>().unwrap()
}

fn stt(arguments: &[&str]) -> Result<SttSettings, Vec<String>> {
    let read = SttSettings::read(&settings(arguments), Some(Path::new("/etc/voice")));
    read.map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn tts(arguments: &[&str]) -> Result<TtsSettings, Vec<String>> {
    let read = TtsSettings::read(&settings(arguments), None);
    read.map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn a_service_needs_only_its_name() {
    let read = stt(&["engine=openai"]).unwrap();
    let service = SpeechService {
        base_url: "https://api.openai.com/v1".to_owned(),
        model: "whisper-1".to_owned(),
        key: SpeechKey::Usual,
    };
    let expected = SttSettings {
        enabled: VoiceMode::Auto,
        engine: VoiceEngine::OpenAi(service),
        language: None,
        convert: AudioConversion::Auto,
        timeout: Duration::from_mins(1),
        max: Duration::from_mins(10),
        on_failure: OnUnheard::Tell,
    };
    assert_eq!(read, expected);
    assert_eq!(read.secret_variable(), Some("OPENAI_API_KEY"));
}

#[test]
fn every_setting_of_a_program_is_read() {
    let read = tts(&[
        "enabled=true",
        "engine=command",
        "preset=espeak-ng",
        "voice=en-us",
        "speed=1.5",
        "convert=off",
        "timeout=5s",
        "text=voice_only",
        "max_chars=200",
    ])
    .unwrap();
    assert_eq!(read.enabled, VoiceMode::On);
    assert_eq!(read.voice.as_deref(), Some("en-us"));
    assert!((read.speed - 1.5).abs() < f64::EPSILON);
    assert_eq!(read.convert, AudioConversion::Off);
    assert_eq!(read.timeout, Duration::from_secs(5));
    assert_eq!(read.text, SpokenAnswer::VoiceOnly);
    assert_eq!(read.max_chars, 200);
    assert_eq!(read.secret_variable(), None);
}

#[test]
fn paths_begin_in_the_folder_of_the_file() {
    let read = stt(&["engine=command", "preset=pocketsphinx", "grammar=home.jsgf"]).unwrap();
    let VoiceEngine::Command(SpeechProgram { grammar, .. }) = read.engine else {
        panic!("a program");
    };
    assert_eq!(grammar, Some(PathBuf::from("/etc/voice/home.jsgf")));
    let problems = tts(&["engine=command", "preset=piper", "model=amy.onnx"]).unwrap_err();
    assert_eq!(
        problems,
        [
            "`model` is the relative path `amy.onnx`; expected an absolute path, or one that begins with `~/`"
        ]
    );
}

#[test]
fn a_misspelt_word_gets_a_suggestion() {
    for (setting, expected) in [
        (
            "engine=comand",
            "`engine` is `comand`; expected one of `openai`, `command`; did you mean `command`?",
        ),
        (
            "engine=something",
            "`engine` is `something`; expected one of `openai`, `command`",
        ),
    ] {
        assert_eq!(stt(&[setting]).unwrap_err(), [expected]);
    }
}

#[test]
fn every_problem_is_reported_with_what_is_allowed() {
    let problems = stt(&[
        "engin=x",
        "enabled=perhaps",
        "timeout=1d",
        "max=3h",
        "language=-l",
        "api_key=sk-1",
    ])
    .unwrap_err();
    assert_eq!(
        problems,
        [
            "unknown setting `engin`; expected `engine`",
            "`api_key` would contain the key itself; expected `key_env` with the name of a variable, or `key_file`",
            "`enabled` is `perhaps`; expected one of `auto`, `null`, `true`, `false`",
            "`engine` is missing; expected one of `openai`, `command`",
            "`language` is `-l`; expected a name that does not begin with `-`, without control characters",
            "`timeout` is `1d`; expected a time such as `30s` or `2m`, from 1s to 600s",
            "`max` is `3h`; expected a time such as `30s` or `2m`, from 1s to 7200s",
        ]
    );
}

#[test]
fn settings_that_do_not_fit_the_engine_are_problems() {
    for (arguments, expected) in [
        (
            &["engine=openai", "grammar=/a"][..],
            "the engine `openai` has no setting `grammar`; expected `engine: command`",
        ),
        (
            &[
                "engine=command",
                "preset=whisper-cli",
                "key_env=K",
                "model=/m",
            ],
            "the engine `command` has no setting `key_env`; expected `engine: openai`",
        ),
        (
            &["engine=command"],
            "the engine `command` needs a program; expected `preset` or `argv`",
        ),
        (
            &["engine=command", "preset=espeak-ng"],
            "`preset` is `espeak-ng`; expected one of `whisper-cli`, `pocketsphinx`",
        ),
        (
            &["engine=command", "preset=pocketsphinx"],
            "the preset `pocketsphinx` needs `grammar`; expected the path of a file",
        ),
        (
            &["engine=command", r#"argv=["./listen"]"#],
            "`argv` does not begin with a program; expected its name or its absolute path, and then its arguments",
        ),
        (
            &["engine=command", "argv=listen"],
            "`argv` is a text; expected a list: the program and its arguments",
        ),
        (
            &["engine=openai", r#"convert=["ffmpeg", "{input}"]"#],
            "`convert` does not contain `{output}`; expected a program with both `{input}` and `{output}`",
        ),
        (
            &["engine=openai", "base_url=https://me:canary@host/v1"],
            "`base_url` cannot be used: it contains a user name or a password; send them in a header; expected a web address such as `http://127.0.0.1:9000/v1`",
        ),
    ] {
        assert_eq!(stt(arguments).unwrap_err(), [expected], "{arguments:?}");
    }
}

#[test]
fn an_argument_without_a_value_is_a_problem() {
    let problem = VoiceSetting::from_argument("espeak-ng").unwrap_err();
    assert_eq!(
        problem.to_string(),
        "`espeak-ng` is not a setting; expected `KEY=VALUE`, such as `engine=command`"
    );
    let problem = VoiceSetting::from_argument("argv=[1]").unwrap_err();
    assert_eq!(problem.key.as_deref(), Some("argv"));
}
