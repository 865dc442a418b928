//! The time that a voice message or a spoken answer takes besides the engine and the converter, compared with the length of
//! the audio. The engine and the converter are programs that only copy a file.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use tenterhook_voice::{SpeechToText, SttSettings, TextToSpeech, TtsSettings, VoiceSetting};

/// The lengths of the audio in seconds.
const LENGTHS: [u32; 4] = [1, 10, 60, 300];

/// How often each is measured.
const ROUNDS: usize = 11;

/// The limit of the ratio.
const LIMIT: f64 = 0.02;

const TIMEOUT: Duration = Duration::from_mins(1);

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let folder = tempfile::tempdir()?;
    let wav = folder.path().join("audio.wav");
    let stt = stt(&[r#"argv=["echo", "hello"]"#])?;
    let copies = list(&[
        "sh",
        "-c",
        "cp \"$1\" \"$2\"",
        "{input}",
        &shown(&wav),
        "{output}",
    ])?;
    let converting = self::stt(&[r#"argv=["echo", "hello"]"#, &format!("convert={copies}")])?;
    let speaks = list(&["cat", &shown(&wav)])?;
    let speaks = settings(&["engine=command", &format!("argv={speaks}")])?;
    let tts = TextToSpeech::new(TtsSettings::read(&speaks, None).map_err(first)?)?;
    // The header of an Ogg/Opus file, which a converter has to be asked for.
    let mut note = [b"OggS".as_slice(), &[0; 24], b"OpusHead"].concat();
    for seconds in LENGTHS {
        let audio = silence(seconds);
        std::fs::write(&wav, &audio)?;
        note.resize(seconds as usize * 4_000, 7);
        let ratio = |times: Vec<Duration>| median(times).as_secs_f64() / f64::from(seconds);
        let mut heard = Vec::new();
        let mut converted = Vec::new();
        let mut spoken = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            runtime.block_on(stt.transcribe(&audio, TIMEOUT))?;
            heard.push(start.elapsed());
            let start = Instant::now();
            runtime.block_on(converting.transcribe(&note, TIMEOUT))?;
            converted.push(start.elapsed());
            let start = Instant::now();
            runtime.block_on(tts.speak("Some **words** to speak.", &[], TIMEOUT))?;
            spoken.push(start.elapsed());
        }
        show(&format!(
            "{seconds:>4} s: WAV {:.4}   voice note {:.4}   answer {:.4}   (limit {LIMIT})",
            ratio(heard),
            ratio(converted),
            ratio(spoken),
        ))?;
    }
    Ok(())
}

fn stt(arguments: &[&str]) -> Result<SpeechToText, Failure> {
    let arguments = [&["engine=command"], arguments].concat();
    let settings = SttSettings::read(&settings(&arguments)?, None).map_err(first)?;
    Ok(SpeechToText::new(settings)?)
}

fn settings(arguments: &[&str]) -> Result<Vec<VoiceSetting>, Failure> {
    let read = arguments
        .iter()
        .map(|text| VoiceSetting::from_argument(text));
    Ok(read.collect::<Result<_, _>>()?)
}

fn first(problems: Vec<tenterhook_voice::VoiceSettingError>) -> Failure {
    let first = problems.into_iter().next();
    first.map_or_else(|| "no problem".into(), Into::into)
}

fn list(words: &[&str]) -> Result<String, Failure> {
    Ok(serde_json::to_string(words)?)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Returns a WAV file with one channel of 16-bit samples at 16 kHz.
fn silence(seconds: u32) -> Vec<u8> {
    let length = seconds * 32_000;
    let mut file = b"RIFF".to_vec();
    file.extend_from_slice(&(length + 36).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data");
    file.extend_from_slice(&length.to_le_bytes());
    file.resize(file.len() + length as usize, 0);
    file
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn show(line: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{line}")
}
