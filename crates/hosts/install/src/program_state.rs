//! Whether the programs that agents run are there and start.

use std::path::{Path, PathBuf};

use crate::machine::{Machine, PROGRAM, SHIM};
use crate::programs;
use crate::reported_version::reported_version;

/// The state of the programs that agents run: the shim and the program behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramState {
    /// Both start, and they are the running version.
    Current,
    /// Both start, and they differ from the running program.
    Other {
        /// The version that agents run.
        version: String,
    },
    /// One of them does not start, so agents have no guard that can answer.
    DoesNotStart {
        /// The program.
        path: PathBuf,
        /// What happened.
        problem: String,
    },
    /// One of them does not exist.
    Missing {
        /// The program.
        path: PathBuf,
    },
}

impl ProgramState {
    /// Starts both programs by the paths that agents use, and compares them with the running program. Takes at most
    /// twenty seconds.
    pub fn inspect(machine: &Machine) -> Self {
        let mut reported = String::new();
        for (path, name) in [
            (machine.shim(), SHIM),
            (machine.installed_program(), PROGRAM),
        ] {
            if !path.exists() {
                return Self::Missing { path };
            }
            match reported_version(&path, name) {
                Ok(line) => reported = line,
                Err(problem) => return Self::DoesNotStart { path, problem },
            }
        }
        if programs::are_current(machine) {
            Self::Current
        } else {
            let version = reported.trim_start_matches(PROGRAM).trim().to_owned();
            Self::Other { version }
        }
    }

    /// Returns the word for the state in JSON output.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Other { .. } => "other",
            Self::DoesNotStart { .. } => "does_not_start",
            Self::Missing { .. } => "missing",
        }
    }

    /// Returns what is wrong. `None` means that everything is in order.
    pub fn problem(&self, machine: &Machine) -> Option<String> {
        match self {
            Self::Current => None,
            Self::Other { version } => {
                let own = env!("CARGO_PKG_VERSION");
                let own = if version == own {
                    "another build of that version".to_owned()
                } else {
                    format!("version {own}")
                };
                let program = machine.program.display();
                Some(format!(
                    "your agents run version {version}, and `{program}` is {own}"
                ))
            }
            Self::DoesNotStart { path, problem } => {
                let effect = effect(path, machine);
                let path = path.display();
                Some(format!("`{path}` does not start ({problem}), so {effect}"))
            }
            Self::Missing { path } => {
                let effect = effect(path, machine);
                let path = path.display();
                Some(format!("`{path}` is missing, so {effect}"))
            }
        }
    }
}

/// Returns what happens to the tool calls of agents without a program.
fn effect(path: &Path, machine: &Machine) -> &'static str {
    if path == machine.shim() {
        "nothing is guarded: an agent denies every call or runs every call"
    } else {
        "every call of your agents is denied"
    }
}
