//! Engines that are programs on this machine.

use tokio::time::Instant;

use crate::container::AudioContainer;
use crate::engine_settings::SpeechProgram;
use crate::error::VoiceError;
use crate::program::{ProgramRun, WorkFolder, program_name};
use crate::settings::TtsSettings;

/// The maximum size of what a program prints as text.
const MAX_PRINTED: usize = 64 * 1024;

/// The maximum size of the WAV file that a program speaks, before it is converted.
const MAX_SPOKEN_WAV: usize = 64 * 1024 * 1024;

/// The placeholder of the file that a program writes.
const OUTPUT: &str = "{output}";

/// The normal speed of `espeak-ng`, in words a minute.
const WORDS_PER_MINUTE: f64 = 175.0;

/// Checks that the files exist that a program needs.
pub(crate) fn check_files(program: &SpeechProgram) -> Result<(), VoiceError> {
    for (key, path) in [("model", &program.model), ("grammar", &program.grammar)] {
        if let Some(path) = path
            && !path.is_file()
        {
            let problem = format!(
                "needs the file `{}` of `{key}`, which does not exist",
                path.display()
            );
            return Err(VoiceError::Program {
                program: program_name(&program.argv),
                problem,
            });
        }
    }
    Ok(())
}

/// Returns what a program hears in a WAV file.
pub(crate) async fn transcribe(
    program: &SpeechProgram,
    language: Option<&str>,
    wav: &[u8],
    deadline: Instant,
) -> Result<String, VoiceError> {
    let folder = WorkFolder::create()?;
    let input = folder.write("input.wav", wav).await?;
    let output = folder.path("output.txt");
    let mut values = file_values(program);
    values.extend([
        ("input", input.display().to_string()),
        ("output", output.display().to_string()),
        ("language", language.unwrap_or("auto").to_owned()),
    ]);
    let run = ProgramRun {
        argv: &program.argv,
        values: &values,
        stdin: &[],
        folder: &folder,
        max_output: MAX_PRINTED,
        deadline,
        what: "the transcript",
    };
    let mut text = run.run().await?;
    if program.argv.iter().any(|word| word.contains(OUTPUT)) {
        text = run.read_output(&output).await?;
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the audio of a program that speaks a text. The program reads the text from standard input, or from the file
/// `{input}`.
pub(crate) async fn speak(
    program: &SpeechProgram,
    settings: &TtsSettings,
    text: &str,
    deadline: Instant,
) -> Result<Vec<u8>, VoiceError> {
    let folder = WorkFolder::create()?;
    // Some programs write one file for each line, so that only the last line would be left.
    let text = text.replace('\n', " ");
    let input = folder.write("input.txt", text.as_bytes()).await?;
    let output = folder.path("output.wav");
    let language = settings.language.as_deref();
    let voice = settings.voice.as_deref().or(language).unwrap_or("en");
    let mut values = file_values(program);
    values.extend([
        ("input", input.display().to_string()),
        ("output", output.display().to_string()),
        ("language", language.unwrap_or("en").to_owned()),
        ("voice", voice.to_owned()),
        ("rate", format!("{:.0}", WORDS_PER_MINUTE * settings.speed)),
        ("speed", settings.speed.to_string()),
        ("length_scale", format!("{:.3}", 1.0 / settings.speed)),
    ]);
    let run = ProgramRun {
        argv: &program.argv,
        values: &values,
        stdin: text.as_bytes(),
        folder: &folder,
        max_output: MAX_SPOKEN_WAV,
        deadline,
        what: "the spoken answer",
    };
    let mut audio = run.run().await?;
    if program.argv.iter().any(|word| word.contains(OUTPUT)) {
        audio = run.read_output(&output).await?;
    }
    match AudioContainer::of_bytes(&audio) {
        Some(_) => Ok(audio),
        None => Err(VoiceError::Program {
            program: program_name(&program.argv),
            problem: "did not write audio of a known format".to_owned(),
        }),
    }
}

fn file_values(program: &SpeechProgram) -> Vec<(&'static str, String)> {
    let files = [("model", &program.model), ("grammar", &program.grammar)];
    let shown = files
        .into_iter()
        .filter_map(|(name, path)| Some((name, path.as_ref()?)));
    shown
        .map(|(name, path)| (name, path.display().to_string()))
        .collect()
}
