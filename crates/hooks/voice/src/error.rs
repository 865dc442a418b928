//! Why speech was not turned into text, or text into speech.

use std::io;
use std::time::Duration;

use thiserror::Error;

/// Why speech was not turned into text, or text into speech. No message contains what was said, or a path of a temporary
/// file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VoiceError {
    /// The bytes are not audio that is known.
    #[error("the file is not audio of a known format; expected WAV, Ogg, MP3, M4A, WebM or FLAC")]
    UnknownFormat,
    /// The audio is damaged.
    #[error("the {format} file is damaged: {problem}")]
    Damaged {
        /// What people call the format.
        format: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The recording is too long.
    #[error("the recording is longer than {}", shown(*.limit))]
    TooLong {
        /// The limit.
        limit: Duration,
    },
    /// A file has too many bytes.
    #[error("{what} has more than {limit} bytes")]
    TooLarge {
        /// What has too many bytes.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// There is no program that converts the audio.
    #[error(
        "no converter for {from} to {to}; expected {programs} to be installed, or a program in `convert`"
    )]
    NoConverter {
        /// What people call the format of the input.
        from: &'static str,
        /// What people call the format of the output.
        to: &'static str,
        /// Programs that could do it.
        programs: String,
    },
    /// A program failed.
    #[error("`{program}` {problem}")]
    Program {
        /// The name of the program.
        program: String,
        /// What happened.
        problem: String,
    },
    /// A service failed.
    #[error("`{host}` {problem}")]
    Service {
        /// The host.
        host: String,
        /// What happened.
        problem: String,
    },
    /// The key of the service cannot be used.
    #[error("{problem}")]
    Key {
        /// What is wrong.
        problem: String,
    },
    /// The engine heard nothing, or there is nothing to say.
    #[error("{what} is empty")]
    Empty {
        /// What is empty.
        what: &'static str,
    },
    /// The time was over.
    #[error("no result within {}", shown(*.after))]
    TimedOut {
        /// The time.
        after: Duration,
    },
    /// A file cannot be read or written.
    #[error("cannot read or write a file: {problem}")]
    Io {
        /// What happened.
        problem: String,
    },
}

impl From<io::Error> for VoiceError {
    fn from(error: io::Error) -> Self {
        // The kind alone: the whole error may contain a path.
        Self::Io {
            problem: error.kind().to_string(),
        }
    }
}

/// Returns a time as the settings have it.
fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds >= 60 && seconds.is_multiple_of(60) {
        format!("{}m", seconds / 60)
    } else if duration.subsec_millis() == 0 {
        format!("{seconds}s")
    } else {
        format!("{}ms", duration.as_millis())
    }
}
