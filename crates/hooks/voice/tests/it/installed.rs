//! Speech with the programs of a distribution. `.ci/voice-programs` runs these tests, and counts those that are skipped because a
//! program is missing.

use std::path::Path;
use std::time::Duration;

use tenterhook_voice::{AudioContainer, Speech, SttSettings, Wav};

use crate::{LONG, list, settings, stt, tts};

/// Sentences that `pocketsphinx` understands exactly with its grammar.
const SENTENCES: [&str; 3] = [
    "turn on the lights in the kitchen",
    "please open the door",
    "read the next message to me",
];

const GRAMMAR: &str = "#JSGF V1.0;\ngrammar home;\npublic <command> = turn on the lights in the kitchen \
                       | please open the door | read the next message to me | what is the weather today;\n";

/// Returns whether all programs are installed. If not, reports the test as skipped.
#[expect(
    clippy::print_stdout,
    reason = "`.ci/voice-programs` counts these lines"
)]
fn are_installed(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_missing =
        |program: &&&str| !std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    let missing: Vec<&str> = programs.iter().filter(is_missing).copied().collect();
    if !missing.is_empty() {
        println!("skipped: no {}", missing.join(", "));
    }
    missing.is_empty()
}

/// Speaks with `espeak-ng`.
async fn spoken(text: &str, formats: &[&str], convert: &str) -> Speech {
    let engine = tts(&["engine=command", "preset=espeak-ng", "voice=en-us", convert]);
    let formats: Vec<String> = formats.iter().map(|format| (*format).to_owned()).collect();
    engine.speak(text, &formats, LONG).await.unwrap().unwrap()
}

/// Returns what `pocketsphinx` understands.
async fn understood(recording: &[u8], convert: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let grammar = folder.path().join("home.jsgf");
    std::fs::write(&grammar, GRAMMAR).unwrap();
    let grammar = format!("grammar={}", grammar.display());
    let engine = stt(&["engine=command", "preset=pocketsphinx", &grammar, convert]);
    engine.transcribe(recording, LONG).await.unwrap()
}

fn with(argv: &[&str]) -> String {
    list("convert", argv)
}

/// Checks a WAV file that was decoded from what was spoken.
fn check_decoded(wav: &[u8], duration: Option<Duration>) {
    let wav = Wav::read(wav).unwrap();
    let difference = wav.duration().abs_diff(duration.unwrap());
    assert!(difference < Duration::from_millis(200), "{difference:?}");
    assert!(wav.samples.iter().any(|byte| *byte != 0));
}

// G96
#[tokio::test]
#[ignore = "needs espeak-ng, pocketsphinx_continuous and ffmpeg; `.ci/voice-programs` runs it"]
async fn spoken_sentences_are_understood() {
    if !are_installed(&["espeak-ng", "pocketsphinx_continuous", "ffmpeg"]) {
        return;
    }
    for sentence in SENTENCES {
        let speech = spoken(sentence, &[], "convert=auto").await;
        assert_eq!(speech.container, AudioContainer::Wav);
        assert_eq!(understood(&speech.bytes, "convert=auto").await, sentence);
    }
}

// G92, G93
#[tokio::test]
#[ignore = "needs espeak-ng, pocketsphinx_continuous and ffmpeg; `.ci/voice-programs` runs it"]
async fn a_voice_note_goes_through_ffmpeg_both_ways() {
    if !are_installed(&["espeak-ng", "pocketsphinx_continuous", "ffmpeg"]) {
        return;
    }
    for (format, container) in [
        ("audio/ogg", AudioContainer::OggOpus),
        ("audio/mpeg", AudioContainer::Mp3),
    ] {
        let speech = spoken(SENTENCES[1], &[format], "convert=auto").await;
        assert_eq!(speech.container, container);
        assert!(speech.has_wanted_format);
        assert_eq!(
            understood(&speech.bytes, "convert=auto").await,
            SENTENCES[1]
        );
    }
}

// G92, G93
#[tokio::test]
#[ignore = "needs espeak-ng, pocketsphinx_continuous, opusenc and opusdec; `.ci/voice-programs` runs it"]
async fn a_voice_note_goes_through_opus_tools_both_ways() {
    if !are_installed(&["espeak-ng", "pocketsphinx_continuous", "opusenc", "opusdec"]) {
        return;
    }
    let encode = with(&[
        "opusenc",
        "--quiet",
        "--bitrate",
        "32",
        "{input}",
        "{output}",
    ]);
    let decode = with(&[
        "opusdec", "--quiet", "--rate", "16000", "{input}", "{output}",
    ]);
    let speech = spoken(SENTENCES[0], &["audio/ogg"], &encode).await;
    assert_eq!(speech.container, AudioContainer::OggOpus);
    assert_eq!(understood(&speech.bytes, &decode).await, SENTENCES[0]);
}

#[tokio::test]
#[ignore = "needs espeak-ng, pocketsphinx_continuous and sox; `.ci/voice-programs` runs it"]
async fn sox_converts_the_rate_of_a_wav_file() {
    if !are_installed(&["espeak-ng", "pocketsphinx_continuous", "sox"]) {
        return;
    }
    let convert = with(&[
        "sox", "-V1", "-t", "wav", "{input}", "-t", "wav", "-c", "1", "-r", "16000", "-b", "16",
        "{output}",
    ]);
    let speech = spoken(SENTENCES[2], &[], "convert=off").await;
    check_decoded(&speech.bytes, speech.duration);
    assert_eq!(understood(&speech.bytes, &convert).await, SENTENCES[2]);
}

// G94
#[tokio::test]
#[ignore = "needs espeak-ng, pocketsphinx_continuous, ffmpeg and sox; `.ci/voice-programs` runs it"]
async fn every_form_of_a_recording_is_understood() {
    if !are_installed(&["espeak-ng", "pocketsphinx_continuous", "ffmpeg", "sox"]) {
        return;
    }
    let speech = spoken(SENTENCES[0], &[], "convert=off").await;
    let folder = tempfile::tempdir().unwrap();
    let original = folder.path().join("original.wav");
    std::fs::write(&original, &speech.bytes).unwrap();
    for arguments in [
        &["-r", "16000", "-c", "2", "-b", "16", "out.wav"][..],
        &["-r", "44100", "-e", "float", "-b", "32", "out.wav"],
        &[
            "-r",
            "16000",
            "-b",
            "8",
            "-e",
            "unsigned-integer",
            "out.wav",
        ],
        &["-r", "48000", "-c", "2", "out.flac"],
        &["-r", "22050", "out.ogg"],
    ] {
        let form = folder.path().join(arguments.last().unwrap());
        let (_, options) = arguments.split_last().unwrap();
        let made = std::process::Command::new("sox")
            .arg(&original)
            .args(options)
            .arg(&form)
            .status();
        assert!(made.unwrap().success(), "{arguments:?}");
        let recording = std::fs::read(&form).unwrap();
        assert_eq!(
            understood(&recording, "convert=auto").await,
            SENTENCES[0],
            "{arguments:?}"
        );
    }
}

// G88
#[tokio::test]
#[ignore = "needs pocketsphinx_continuous and ffmpeg; `.ci/voice-programs` runs it"]
async fn what_is_not_speech_is_not_understood() {
    if !are_installed(&["pocketsphinx_continuous", "ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let grammar = folder.path().join("home.jsgf");
    std::fs::write(&grammar, GRAMMAR).unwrap();
    let grammar = format!("grammar={}", grammar.display());
    let engine = stt(&["engine=command", "preset=pocketsphinx", &grammar]);
    let broken = [b"OggS".as_slice(), &[0; 24], b"OpusHead", &[7; 4000]].concat();
    for recording in [crate::silence(2, 16_000), broken] {
        let error = engine
            .transcribe(&recording, LONG)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            !error.contains("/tmp") && !error.contains("tenterhook-voice"),
            "{error}"
        );
    }
}

#[test]
#[ignore = "needs espeak-ng, pocketsphinx_continuous, ffmpeg, opusdec and sox; `.ci/voice-programs` runs it"]
fn a_check_lists_the_converters() {
    if !are_installed(&["pocketsphinx_continuous", "ffmpeg"]) {
        return;
    }
    let grammar = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let grammar = format!("grammar={}", grammar.display());
    let arguments = ["engine=command", "preset=pocketsphinx", &grammar];
    let findings = SttSettings::read(&settings(&arguments), None)
        .unwrap()
        .check();
    let texts: Vec<&str> = findings
        .iter()
        .map(|finding| finding.text.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "speech to text by the program `pocketsphinx`",
            "converter `ffmpeg` for WAV, Ogg/Opus, Ogg/Vorbis, MP3, M4A, WebM, FLAC",
        ]
    );
}
