//! Tests speech with a service on loopback, with small shell scripts instead of engines, and with installed programs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod installed;
#[cfg(unix)]
mod programs;
mod service;

use std::path::Path;
use std::time::Duration;

use tenterhook_voice::{SpeechToText, SttSettings, TextToSpeech, TtsSettings, VoiceSetting};

/// Longer than any test takes.
const LONG: Duration = Duration::from_mins(1);

fn settings(arguments: &[&str]) -> Vec<VoiceSetting> {
    let read = arguments
        .iter()
        .map(|text| VoiceSetting::from_argument(text));
    read.collect::<Result<_, _>>().unwrap()
}

fn stt(arguments: &[&str]) -> SpeechToText {
    let settings = SttSettings::read(&settings(arguments), None).unwrap();
    SpeechToText::new(settings).unwrap()
}

fn tts(arguments: &[&str]) -> TextToSpeech {
    let settings = TtsSettings::read(&settings(arguments), None).unwrap();
    TextToSpeech::new(settings).unwrap()
}

/// Returns an argument with a list.
fn list(key: &str, words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    format!("{key}=[{}]", quoted.join(","))
}

/// Returns a WAV file with silence: one channel with samples of 16 bits.
fn silence(seconds: u32, rate: u32) -> Vec<u8> {
    let length = seconds * rate * 2;
    let mut file = b"RIFF".to_vec();
    file.extend_from_slice(&(length + 36).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend_from_slice(&rate.to_le_bytes());
    file.extend_from_slice(&(rate * 2).to_le_bytes());
    file.extend_from_slice(b"\x02\0\x10\0data");
    file.extend_from_slice(&length.to_le_bytes());
    file.resize(file.len() + length as usize, 0);
    file
}

#[test]
fn every_file_of_tests_is_part_of_this_binary() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = include_str!("main.rs");
    for entry in std::fs::read_dir(dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|name| *name != "main") {
            assert!(main.contains(&format!("\nmod {module};\n")), "{name}");
        }
    }
}
