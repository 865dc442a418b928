//! Reading `stt` and `tts` of `gateway.yaml`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tenterhook_channel::settings::Settings;
use tenterhook_hookfile::{Problem, Report, SourceText};
use tenterhook_voice::{SpokenAnswer, VoiceEngine, VoiceMode};

fn read(text: &str) -> Result<Settings, Vec<Problem>> {
    let mut report = Report::new(SourceText::new(Path::new("/conf/gateway.yaml"), text));
    let settings = Settings::read(&mut report);
    settings.ok_or_else(|| report.into_problems())
}

#[test]
fn engines_are_read_with_paths_that_begin_in_the_folder_of_the_file() {
    let settings = read(
        "stt: { engine: command, preset: pocketsphinx, grammar: home.jsgf, enabled: null, timeout: 5 }\n\
         tts: { engine: openai, key_env: SPEECH_KEY, speed: 1.5, text: voice_only, enabled: true }\n",
    );
    let settings = settings.unwrap();
    assert_eq!(settings.secret_variables(), ["SPEECH_KEY"]);
    let stt = settings.stt.unwrap();
    let VoiceEngine::Command(program) = &stt.engine else {
        panic!("{stt:?}");
    };
    assert_eq!(program.grammar, Some(PathBuf::from("/conf/home.jsgf")));
    assert_eq!(
        (stt.enabled, stt.timeout),
        (VoiceMode::Auto, Duration::from_secs(5))
    );
    let tts = settings.tts.unwrap();
    assert_eq!(
        (tts.enabled, tts.text),
        (VoiceMode::On, SpokenAnswer::VoiceOnly)
    );
}

#[test]
fn speech_is_off_unless_the_file_says_otherwise() {
    for text in ["", "stt: off\ntts: off", "stt: false\ntts: false"] {
        let settings = read(text).unwrap();
        assert_eq!((settings.stt, settings.tts), (None, None), "{text}");
    }
}

// G8
#[test]
fn all_problems_of_speech_are_reported_at_once_with_positions() {
    let problems = read(
        "stt:\n  engine: whisper\n  time_out: 5s\n  timeout: 1d\n\
         tts:\n  engine: command\n  preset: espeak\n  convert: []\nbusy: stear\n",
    );
    let problems = problems.unwrap_err();
    let found: Vec<_> = problems
        .iter()
        .map(|problem| {
            let line = problem.position.unwrap().line;
            (
                line,
                problem.message.as_str(),
                problem.suggestion.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (2, "`engine` is `whisper`", None),
            (3, "unknown setting `time_out`", Some("timeout")),
            (4, "`timeout` is `1d`", None),
            (7, "`preset` is `espeak`", Some("espeak-ng")),
            (8, "`convert` does not contain `{input}`", None),
            (8, "`convert` does not contain `{output}`", None),
            (8, "`convert` does not begin with a program", None),
            (9, "`busy` cannot be `stear`", Some("steer")),
        ]
    );
    assert!(problems.iter().all(|problem| problem.allowed.is_some()));
}

// G82
#[test]
fn a_key_in_the_settings_of_speech_is_an_error_that_does_not_show_it() {
    for line in [
        "api_key: very-secret",
        "token: very-secret",
        "key_env: very-secret",
        "base_url: 'https://me:very-secret@host/v1'",
    ] {
        let problems = read(&format!("stt: {{ engine: openai, {line} }}")).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        let shown = problems[0].render(false);
        assert!(
            shown.contains("line 1: ") && !shown.contains("very-secret"),
            "{shown}"
        );
    }
}

#[test]
fn what_is_not_a_mapping_is_an_error() {
    for (text, expected) in [
        ("stt: 5", "`stt` (a mapping, or `off`) cannot be `5`"),
        ("tts: { engine: [openai] }", "`engine` is a list"),
        (
            "tts: { engine: openai, voice: { a: b } }",
            "`voice` cannot be",
        ),
        ("tts: { preset: espeak-ng }", "`engine` is missing"),
    ] {
        let problems = read(text).unwrap_err();
        let first = &problems[0].message;
        assert!(first.contains(expected), "{text}: {problems:?}");
    }
}
