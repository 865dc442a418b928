//! Converts audio with a program that is installed.
//!
//! No program reads anything but the file that it is given: formats that name other files or addresses are not known here,
//! and the arguments of `ffmpeg` name the format and allow it to open files only.

use std::time::Duration;

use tokio::time::Instant;

use crate::container::AudioContainer::{self, Flac, Mp3, OggOpus, OggVorbis, Wav};
use crate::engine_settings::AudioConversion;
use crate::error::VoiceError;
use crate::program::{ProgramRun, WorkFolder, is_installed};
use crate::step::{TimedWork, VoiceStep};

/// One thing that a program can do.
struct Converter {
    program: &'static str,
    from: &'static [AudioContainer],
    to: AudioContainer,
    /// The arguments that come before `arguments`.
    first: &'static [&'static str],
    arguments: &'static [&'static str],
}

/// How `ffmpeg` reads a file of a stranger: as one given format, without opening anything but files.
const FFMPEG_FIRST: &[&str] = &[
    "-nostdin",
    "-hide_banner",
    "-loglevel",
    "error",
    "-protocol_whitelist",
    "file",
    "-f",
    "{format}",
    "-i",
    "{input}",
    "-map",
    "0:a:0",
    "-ac",
    "1",
];

/// What programs can do, in the order of preference.
const CONVERTERS: [Converter; 6] = [
    Converter {
        program: "ffmpeg",
        from: &AudioContainer::ALL,
        to: Wav,
        first: FFMPEG_FIRST,
        arguments: &[
            "-ar",
            "16000",
            "-t",
            "{seconds}",
            "-c:a",
            "pcm_s16le",
            "-f",
            "wav",
            "{output}",
        ],
    },
    Converter {
        program: "opusdec",
        from: &[OggOpus],
        to: Wav,
        first: &[],
        arguments: &["--quiet", "--rate", "16000", "{input}", "{output}"],
    },
    Converter {
        program: "sox",
        from: &[Wav, OggVorbis, Flac, Mp3],
        to: Wav,
        first: &[],
        arguments: &[
            "-V1",
            "-t",
            "{format}",
            "{input}",
            "-t",
            "wav",
            "-c",
            "1",
            "-r",
            "16000",
            "-b",
            "16",
            "-e",
            "signed-integer",
            "{output}",
            "trim",
            "0",
            "{seconds}",
        ],
    },
    Converter {
        program: "ffmpeg",
        from: &AudioContainer::ALL,
        to: OggOpus,
        first: FFMPEG_FIRST,
        arguments: &["-c:a", "libopus", "-b:a", "32k", "-f", "ogg", "{output}"],
    },
    Converter {
        program: "opusenc",
        from: &[Wav, Flac],
        to: OggOpus,
        first: &[],
        arguments: &["--quiet", "--bitrate", "32", "{input}", "{output}"],
    },
    Converter {
        program: "ffmpeg",
        from: &AudioContainer::ALL,
        to: Mp3,
        first: FFMPEG_FIRST,
        arguments: &["-c:a", "libmp3lame", "-q:a", "4", "-f", "mp3", "{output}"],
    },
];

/// Returns the program with its arguments that converts audio, if there is one.
pub(crate) fn find_converter(
    conversion: &AudioConversion,
    from: AudioContainer,
    to: AudioContainer,
) -> Result<Vec<String>, VoiceError> {
    let argv = match conversion {
        AudioConversion::Command(argv) => Some(argv.clone()),
        AudioConversion::Off => None,
        AudioConversion::Auto => candidates(from, to)
            .find(|converter| is_installed(converter.program))
            .map(|converter| {
                let words = [converter.program].into_iter();
                words
                    .chain(converter.first.iter().copied())
                    .chain(converter.arguments.iter().copied())
                    .map(str::to_owned)
                    .collect()
            }),
    };
    argv.ok_or_else(|| {
        let mut programs: Vec<String> = Vec::new();
        programs.extend(candidates(from, to).map(|converter| format!("`{}`", converter.program)));
        VoiceError::NoConverter {
            from: from.name(),
            to: to.name(),
            programs: programs.join(" or "),
        }
    })
}

fn candidates(
    from: AudioContainer,
    to: AudioContainer,
) -> impl Iterator<Item = &'static Converter> {
    CONVERTERS
        .iter()
        .filter(move |converter| converter.to == to && converter.from.contains(&from))
}

/// A conversion of one file.
#[derive(Debug)]
pub(crate) struct ConversionRun<'a> {
    pub(crate) conversion: &'a AudioConversion,
    pub(crate) from: AudioContainer,
    pub(crate) to: AudioContainer,
    /// The maximum length of what is written, if the program can limit it.
    pub(crate) max: Duration,
    pub(crate) max_output: usize,
}

impl ConversionRun<'_> {
    /// Converts a file, and returns the new one. Temporary files are removed in any case.
    pub(crate) async fn run(
        &self,
        bytes: &[u8],
        work: TimedWork<'_>,
    ) -> Result<Vec<u8>, VoiceError> {
        let argv = find_converter(self.conversion, self.from, self.to)?;
        let converted = self.convert(&argv, bytes, work.deadline);
        work.step(VoiceStep::Conversion, converted).await
    }

    async fn convert(
        &self,
        argv: &[String],
        bytes: &[u8],
        deadline: Instant,
    ) -> Result<Vec<u8>, VoiceError> {
        let folder = WorkFolder::create()?;
        let input = folder
            .write(&format!("input.{}", self.from.extension()), bytes)
            .await?;
        let output = folder.path(&format!("output.{}", self.to.extension()));
        let values = [
            ("input", input.display().to_string()),
            ("output", output.display().to_string()),
            ("format", format_name(self.from).to_owned()),
            // One second more, so that a recording that is too long is noticed.
            ("seconds", self.max.as_secs().saturating_add(1).to_string()),
        ];
        let run = ProgramRun {
            argv,
            values: &values,
            stdin: &[],
            folder: &folder,
            max_output: self.max_output,
            deadline,
            what: "the converted audio",
        };
        run.run().await?;
        let converted = run.read_output(&output).await?;
        if AudioContainer::of_bytes(&converted) == Some(self.to) {
            return Ok(converted);
        }
        Err(VoiceError::Program {
            program: crate::program::program_name(argv),
            problem: format!("did not write {}", self.to.name()),
        })
    }
}

/// Returns what `ffmpeg` and `sox` call the format of a container.
fn format_name(container: AudioContainer) -> &'static str {
    match container {
        AudioContainer::M4a => "mov",
        AudioContainer::Webm => "matroska",
        Wav | OggOpus | OggVorbis | Mp3 | Flac => container.extension(),
    }
}
