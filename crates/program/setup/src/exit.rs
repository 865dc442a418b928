//! Exit statuses. Scripts rely on them.

use std::process::ExitCode;

/// How the program ends.
///
/// | status | when |
/// |---|---|
/// | 0 | done; for `fire` on a gate event: the operation may proceed |
/// | 1 | something failed, for example a file that cannot be read |
/// | 2 | a hook stopped the run (`run`) or the operation (`fire`) |
/// | 3 | a hook file, a script or the input is invalid |
/// | 4 | the run failed: the model, the iteration limit, a loop |
/// | 5 | another gateway runs on the same state |
/// | 64 | usage error: an unknown option, a missing argument |
/// | 130 | interrupted |
///
/// On a gate event, or if the event is unknown, `fire` exits with 0 only if the operation may proceed. It exits with
/// 2 if a hook stops the operation, if a hook asks the user, and for every failure in this table, because other
/// agents run the tool on any other status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Something failed.
    Failed = 1,
    /// A hook stopped the run or the operation.
    Stopped = 2,
    /// A hook file, a script, the settings or the input is invalid.
    Config = 3,
    /// The run failed.
    Run = 4,
    /// Another gateway runs on the same state.
    Locked = 5,
    /// The command line is invalid.
    Usage = 64,
    /// The user interrupted the program.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The table above for `--help`.
pub const EXIT_HELP: &str = "Exit status: 0 done, 1 failed, 2 stopped by a hook, 3 invalid hook file, script or \
                                    input, 4 the run failed, 5 another gateway runs, 64 usage error, 130 interrupted. On a gate event `fire` \
                                    exits 0 only if the operation may proceed, and 2 in every other case.";
