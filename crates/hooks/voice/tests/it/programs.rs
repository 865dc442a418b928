//! The engine `command` and converters, with shell scripts in their place.

use std::path::PathBuf;
use std::time::Duration;

use tenterhook_voice::{AudioContainer, SpeechToText, SttSettings, VoiceError, Wav};

use crate::{LONG, list, settings, silence, stt, tts};

/// Returns an argument with a program that runs a script. `$1` and `$2` are the words.
fn script(key: &str, script: &str, words: &[&str]) -> String {
    let mut argv = vec!["sh", "-c", script, "sh"];
    argv.extend(words);
    list(key, &argv)
}

/// Returns an engine that hears with a script, whose `$1` is the recording.
fn hearing(body: &str, more: &[&str]) -> SpeechToText {
    let argv = script("argv", body, &["{input}"]);
    let mut arguments = vec!["engine=command", &argv];
    arguments.extend(more);
    stt(&arguments)
}

/// Returns a file to which a script writes the name of its temporary file.
fn noted() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("noted");
    (folder, file)
}

#[tokio::test]
async fn a_program_gets_a_wav_file_with_a_true_header_in_a_folder_that_is_removed() {
    let (_folder, note) = noted();
    let body = format!(
        "echo \"$1\" > '{}'; ls -ld \"$(dirname \"$1\")\" | cut -c1-10; wc -c < \"$1\"; echo $2",
        note.display()
    );
    let argv = script("argv", &body, &["{input}", "{language}"]);
    let engine = stt(&["engine=command", &argv, "language=de"]);
    let mut wav = silence(1, 16_000);
    // The header declares an hour.
    wav[40..44].copy_from_slice(&(3600_u32 * 32_000).to_le_bytes());
    let text = engine.transcribe(&wav, LONG).await.unwrap();
    assert_eq!(text, "drwx------ 32044 de");
    let path = std::fs::read_to_string(&note).unwrap();
    assert!(!PathBuf::from(path.trim()).exists(), "{path}");
}

#[tokio::test]
async fn a_program_does_not_get_the_variables_of_its_parent() {
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let engine = hearing("echo \"${CARGO_MANIFEST_DIR-nothing} ${PATH:+path}\"", &[]);
    let text = engine.transcribe(&silence(1, 16_000), LONG).await.unwrap();
    assert_eq!(text, "nothing path");
}

// G93
#[tokio::test]
async fn a_voice_note_is_converted_or_the_converter_is_named() {
    let note = [b"OggS".as_slice(), &[0; 24], b"OpusHead"].concat();
    let (_folder, wav) = noted();
    std::fs::write(&wav, silence(1, 16_000)).unwrap();
    let copy = format!("test -s \"$1\" && cp '{}' \"$2\"", wav.display());
    let convert = script("convert", &copy, &["{input}", "{output}"]);
    let engine = hearing("wc -c < \"$1\"", &[&convert]);
    assert_eq!(engine.transcribe(&note, LONG).await.as_deref(), Ok("32044"));

    let engine = hearing("wc -c < \"$1\"", &["convert=off"]);
    let error = engine
        .transcribe(&note, LONG)
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "no converter for Ogg/Opus to WAV; expected `ffmpeg` or `opusdec` to be installed, or a program in `convert`"
    );
}

// G94
#[tokio::test]
async fn a_converter_is_ended_at_its_deadline_and_its_limit() {
    let note = [b"OggS".as_slice(), &[0; 24], b"OpusHead"].concat();
    let flood = "yes 0123456789012345 > \"$2\"";
    let print = "yes 0123456789012345";
    for (body, timeout, expected) in [
        (
            "sleep 600",
            Duration::from_millis(300),
            "no result within 300ms",
        ),
        (
            "sleep 600 & wait",
            Duration::from_millis(300),
            "no result within 300ms",
        ),
        (
            flood,
            LONG,
            "the converted audio has more than 100096 bytes",
        ),
        (print, Duration::from_millis(300), "no result within 300ms"),
        ("exit 3", LONG, "`sh` exited with status 3"),
        ("echo no > \"$2\"", LONG, "`sh` did not write WAV"),
        ("true", LONG, "`sh` wrote no file"),
        ("kill -9 $$", LONG, "`sh` was ended by signal 9"),
        (
            "echo cannot read \"$1\" >&2; exit 1",
            LONG,
            "`sh` exited with status 1: cannot read /input.ogg",
        ),
    ] {
        let convert = script("convert", body, &["{input}", "{output}"]);
        let engine = hearing("echo hi", &[&convert, "max=1s"]);
        let error = engine
            .transcribe(&note, timeout)
            .await
            .unwrap_err()
            .to_string();
        assert_eq!(error, expected, "{body}");
    }
}

#[tokio::test]
async fn a_cancelled_run_leaves_neither_a_process_nor_a_file() {
    let (folder, note) = noted();
    let done = folder.path().join("done");
    // The second line comes only if the process outlives the run.
    let body = format!(
        "echo \"$$ $1\" > '{}.part'; mv '{0}.part' '{0}'; exec sleep 600",
        note.display()
    );
    let engine = hearing(&body, &[]);
    let recording = silence(1, 16_000);
    {
        let running = engine.transcribe(&recording, LONG);
        let started = async {
            while !note.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            text = running => panic!("it ended: {text:?}"),
            () = started => {}
        }
    }
    let noted = std::fs::read_to_string(&note).unwrap();
    let (pid, path) = noted.trim().split_once(' ').unwrap();
    assert!(!PathBuf::from(path).exists(), "{path}");
    let gone = async {
        // A process that was killed is reaped a moment later.
        while std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone)
        .await
        .unwrap();
    assert!(!done.exists());
}

#[tokio::test]
async fn an_engine_that_prints_nothing_or_too_much_has_not_heard_anything() {
    let recording = silence(1, 16_000);
    for (body, expected) in [
        ("true", "the transcript is empty"),
        ("echo ' [BLANK_AUDIO] '", "the transcript is empty"),
        (
            "head -c 70000 /dev/zero",
            "the transcript has more than 65536 bytes",
        ),
        (
            "echo broken >&2; exit 2",
            "`sh` exited with status 2: broken",
        ),
    ] {
        let error = hearing(body, &[])
            .transcribe(&recording, LONG)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), expected, "{body}");
    }
}

#[tokio::test]
async fn a_program_reads_the_text_from_standard_input_and_writes_a_file_or_standard_output() {
    let (_folder, wav) = noted();
    std::fs::write(&wav, silence(3, 22_050)).unwrap();
    let check = format!(
        "test \"$(cat)\" = '-v Hello. There.' && test \"$1\" = 262 && cat '{}'",
        wav.display()
    );
    for body in [check.clone(), format!("({check}) > \"$2\"")] {
        let words = if body.starts_with('(') {
            &["{rate}", "{output}"][..]
        } else {
            &["{rate}"]
        };
        let argv = script("argv", &body, words);
        let engine = tts(&["engine=command", &argv, "speed=1.5"]);
        let speech = engine
            .speak("-v Hello.\n\nThere", &[], LONG)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(speech.duration, Some(Duration::from_secs(3)), "{body}");
        assert!(speech.bytes == std::fs::read(&wav).unwrap(), "{body}");
    }
}

#[tokio::test]
async fn without_a_converter_the_wav_file_is_what_there_is() {
    let (_folder, wav) = noted();
    std::fs::write(&wav, silence(1, 22_050)).unwrap();
    let argv = script("argv", &format!("cat '{}'", wav.display()), &[]);
    let engine = tts(&["engine=command", &argv, "convert=off"]);
    let formats = ["audio/ogg".to_owned(), "audio/mpeg".to_owned()];
    let speech = engine
        .speak("Hello.", &formats, LONG)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(speech.container, AudioContainer::Wav);
    assert!(!speech.has_wanted_format && Wav::read(&speech.bytes).is_ok());
    let finding = engine.settings().check_channel("phone", &formats).unwrap();
    assert!(finding.is_problem);
    assert_eq!(
        finding.text,
        "channel `phone`: spoken answers are sent as WAV files (no converter for WAV to Ogg/Opus; expected `ffmpeg` or `opusenc` to be installed, or a program in `convert`)"
    );
    let formats = ["audio/wav".to_owned()];
    assert_eq!(engine.settings().check_channel("page", &formats), None);
}

#[test]
fn a_program_or_file_that_is_missing_is_found_before_the_first_message() {
    for (arguments, expected) in [
        (
            &["engine=command", r#"argv=["no-such-program-7"]"#][..],
            "`no-such-program-7` is not installed, or is not in `PATH`",
        ),
        (
            &[
                "engine=command",
                r#"argv=["sh", "{grammar}"]"#,
                "grammar=/no/such.jsgf",
            ],
            "`sh` needs the file `/no/such.jsgf` of `grammar`, which does not exist",
        ),
    ] {
        let settings = SttSettings::read(&settings(arguments), None).unwrap();
        let error: VoiceError = SpeechToText::new(settings.clone()).unwrap_err();
        assert_eq!(error.to_string(), expected);
        let first = settings.check().remove(0);
        assert!(
            first.is_problem && first.text.ends_with(expected),
            "{first:?}"
        );
    }
}

#[test]
fn a_check_names_what_converters_are_for_and_what_goes_unencrypted() {
    let engine = hearing("true", &["convert=off"]);
    let findings = engine.settings().check();
    let texts: Vec<&str> = findings
        .iter()
        .map(|finding| finding.text.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "speech to text by the program `sh`",
            "recordings in WAV, Ogg/Opus, Ogg/Vorbis, MP3, M4A, WebM, FLAC cannot be understood, because there is no converter: remove `convert: off`",
        ]
    );
    let arguments = ["engine=openai", "base_url=http://192.0.2.1/v1"];
    let findings = SttSettings::read(&settings(&arguments), None)
        .unwrap()
        .check();
    let last = findings.last().unwrap();
    assert_eq!(
        last.text,
        "recordings cross the network to `192.0.2.1` without encryption"
    );
}
