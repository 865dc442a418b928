//! Exit statuses: scripts rely on them.

use std::process::ExitCode;

/// How the program ends.
///
/// | status | when |
/// |---|---|
/// | 0 | everything was done; for `fire`: nothing stopped the operation |
/// | 1 | something failed: a file could not be read, a journal not be written |
/// | 2 | a hook stopped the operation (`fire`) or the run (`run`) |
/// | 3 | a hook file, a script or an input is wrong |
/// | 4 | the run failed: the model, the iteration cap, a loop |
/// | 64 | the call is wrong: an unknown option, a missing argument |
/// | 130 | interrupted |
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    Stopped = 2,
    Config = 3,
    Run = 4,
    Usage = 64,
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The table above for `--help`.
pub(crate) const EXIT_HELP: &str = "Exit status: 0 done, 1 failed, 2 stopped by a hook, 3 wrong hook file, script or \
                                    input, 4 the run failed, 64 wrong call, 130 interrupted.";
