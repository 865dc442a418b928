//! Runs a program on files of a private folder, with a deadline and limits for everything that it writes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use tempfile::TempDir;
use tenterhook_process::{
    CancellationToken, Capture, Captured, Command, End, Finished, HeldPipe, Limits, Program, Slots,
    SpawnError,
};
use tokio::time::Instant;

use crate::error::VoiceError;

/// Limits how many engines and converters run at once. Hooks and the agent's own commands do not wait for them.
static VOICE_SLOTS: LazyLock<Slots> = LazyLock::new(|| Slots::new(Slots::shared().count()));

/// The time between the request to terminate and the kill.
const GRACE: Duration = Duration::from_millis(500);

/// How often the size of what a program writes is looked at.
const WATCH_EVERY: Duration = Duration::from_millis(50);

/// How much of the standard error of a failed program is shown, in bytes.
const SHOWN_ERROR: usize = 300;

/// The variables that every program may see. Others can contain keys of services and channels.
const COMMON_VARIABLES: [&str; 8] = [
    "CUDA_VISIBLE_DEVICES",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "PATH",
    "TMPDIR",
];

/// A private folder for the files of one recording or answer. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct WorkFolder(TempDir);

impl WorkFolder {
    /// Creates the folder. Only its owner can read it.
    pub(crate) fn create() -> Result<Self, VoiceError> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("tenterhook-voice-");
        // Otherwise the process's mask for new files decides.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        Ok(Self(builder.tempdir()?))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and returns its path.
    pub(crate) async fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, VoiceError> {
        let path = self.path(name);
        tokio::fs::write(&path, bytes).await?;
        Ok(path)
    }

    /// Returns the size of all files in bytes.
    async fn size(&self) -> u64 {
        let mut size: u64 = 0;
        // What cannot be listed now is counted at the next look.
        if let Ok(mut entries) = tokio::fs::read_dir(self.0.path()).await {
            while let Ok(Some(entry)) = entries.next_entry().await {
                let found = entry.metadata().await;
                size = size.saturating_add(found.map_or(0, |found| found.len()));
            }
        }
        size
    }
}

/// One run of a program.
#[derive(Debug)]
pub(crate) struct ProgramRun<'a> {
    /// The program and its arguments, with placeholders.
    pub(crate) argv: &'a [String],
    /// The values of placeholders.
    pub(crate) values: &'a [(&'static str, String)],
    pub(crate) stdin: &'a [u8],
    pub(crate) folder: &'a WorkFolder,
    /// How many bytes the program may write, to files or to standard output.
    pub(crate) max_output: usize,
    pub(crate) deadline: Instant,
    /// What the program writes, for messages.
    pub(crate) what: &'static str,
}

impl ProgramRun<'_> {
    /// Runs the program, and returns its standard output. Dropping the future kills its process group.
    pub(crate) async fn run(&self) -> Result<Vec<u8>, VoiceError> {
        let argv = self.argv.iter().map(|word| fill(word, self.values));
        let command = Command::new(Program::exec(argv));
        let command = command.working_dir(self.folder.0.path().to_owned());
        let command = command
            .without_env(&uncommon_variables())
            .slots(VOICE_SLOTS.clone());
        let left = self.deadline.saturating_duration_since(Instant::now());
        let limits = Limits {
            timeout: left,
            grace: GRACE,
            stdout: Capture {
                head: self.max_output,
                tail: 0,
            },
            stderr: Capture {
                head: 4096,
                tail: 4096,
            },
            held_pipe: HeldPipe::Drain(Duration::from_millis(100)),
        };
        let cancel = CancellationToken::new();
        let before = self.folder.size().await;
        let limit = before.saturating_add(self.max_output as u64);
        let mut running = Box::pin(command.run(self.stdin, &limits, &cancel));
        let finished = tokio::select! {
            finished = &mut running => Some(finished),
            () = self.watch(limit) => None,
        };
        let Some(finished) = finished else {
            cancel.cancel();
            // The program ends now, so its result does not matter.
            running.await.ok();
            return Err(self.too_large());
        };
        let finished = finished.map_err(|error| self.not_run(&error))?;
        self.check(&finished, left)?;
        if finished.stdout.is_cut() || self.folder.size().await > limit {
            return Err(self.too_large());
        }
        Ok(finished.stdout.head().to_vec())
    }

    /// Reads a file that the program wrote.
    pub(crate) async fn read_output(&self, path: &Path) -> Result<Vec<u8>, VoiceError> {
        // The size was checked after the run, and no process of the program is left.
        match tokio::fs::read(path).await {
            Ok(bytes) if !bytes.is_empty() => Ok(bytes),
            Ok(_) | Err(_) => Err(self.failed("wrote no file".to_owned())),
        }
    }

    /// Returns when the files have more bytes than `limit`.
    async fn watch(&self, limit: u64) {
        loop {
            tokio::time::sleep(WATCH_EVERY).await;
            if self.folder.size().await > limit {
                return;
            }
        }
    }

    fn check(&self, finished: &Finished, left: Duration) -> Result<(), VoiceError> {
        let problem = match finished.end {
            End::Exited(0) => return Ok(()),
            End::TimedOut { .. } => return Err(VoiceError::TimedOut { after: left }),
            End::Exited(status) => format!("exited with status {status}"),
            End::Signaled(signal) => format!("was ended by signal {signal}"),
            End::Cancelled { .. } => "was cancelled".to_owned(),
        };
        let words = self.error_text(&finished.stderr);
        let words = if words.is_empty() {
            words
        } else {
            format!(": {words}")
        };
        Err(self.failed(format!("{problem}{words}")))
    }

    /// Returns what a program wrote to standard error, on one line, without the path of the folder.
    fn error_text(&self, stderr: &Captured) -> String {
        let folder = self.folder.0.path().display().to_string();
        let text = stderr.text().replace(&folder, "");
        let is_separator = |c: char| c.is_whitespace() || c.is_control();
        let words = text.split(is_separator).filter(|word| !word.is_empty());
        let line = words.collect::<Vec<&str>>().join(" ");
        tenterhook_protocol::excerpt::head(&line, SHOWN_ERROR).to_owned()
    }

    fn not_run(&self, error: &SpawnError) -> VoiceError {
        match error {
            SpawnError::Resolve(_) => not_installed(self.argv),
            SpawnError::TimedOut { .. } => VoiceError::TimedOut {
                after: Duration::ZERO,
            },
            SpawnError::Spawn { .. }
            | SpawnError::Exhausted { .. }
            | SpawnError::Cancelled
            | SpawnError::Lost { .. }
            | _ => self.failed("could not be started".to_owned()),
        }
    }

    fn failed(&self, problem: String) -> VoiceError {
        VoiceError::Program {
            program: program_name(self.argv),
            problem,
        }
    }

    fn too_large(&self) -> VoiceError {
        VoiceError::TooLarge {
            what: self.what.to_owned(),
            limit: self.max_output as u64,
        }
    }
}

/// Returns the variables of this process that a program does not need.
fn uncommon_variables() -> Vec<OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    let is_common = |name: &OsString| COMMON_VARIABLES.iter().any(|common| name == common);
    names.filter(|name| !is_common(name)).collect()
}

/// Returns whether a program can be found.
pub(crate) fn is_installed(program: &str) -> bool {
    Command::new(Program::exec([program])).resolve().is_ok()
}

/// Checks that the program of a command can be found.
pub(crate) fn check_installed(argv: &[String]) -> Result<(), VoiceError> {
    let program = argv.first().filter(|program| is_installed(program));
    program.map(drop).ok_or_else(|| not_installed(argv))
}

fn not_installed(argv: &[String]) -> VoiceError {
    VoiceError::Program {
        program: program_name(argv),
        problem: "is not installed, or is not in `PATH`".to_owned(),
    }
}

/// Returns the name of a program without its folder.
pub(crate) fn program_name(argv: &[String]) -> String {
    let program = Path::new(argv.first().map_or("", String::as_str));
    let name = program.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Replaces placeholders. Replaced text is not searched again.
fn fill(word: &str, values: &[(&str, String)]) -> String {
    let mut filled = String::with_capacity(word.len());
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let value = values.iter().find_map(|(name, value)| {
            let after = after.strip_prefix(name)?.strip_prefix('}')?;
            Some((value, after))
        });
        if let Some((value, after)) = value {
            filled.push_str(value);
            rest = after;
        } else {
            filled.push('{');
            rest = after;
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_once() {
        let values = [("input", "{output}".to_owned()), ("output", "b".to_owned())];
        for (word, expected) in [
            ("{input}", "{output}"),
            ("-f={output}.wav", "-f=b.wav"),
            ("{other} {", "{other} {"),
            ("{{output}}", "{b}"),
            ("", ""),
        ] {
            assert_eq!(fill(word, &values), expected, "{word}");
        }
    }
}
