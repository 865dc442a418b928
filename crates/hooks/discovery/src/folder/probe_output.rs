//! The output of a file that was asked which hooks it has.

use tenterhook_hookfile::SourceProblem;

/// The output of an executable that is a worker itself.
pub(super) const WORKER: &str = "worker";

/// The output of a probe: the name of an event, or the JSON of what a worker or an extension registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProbeOutput(pub(super) String);

/// The output of a file, or why the file cannot be loaded.
pub(super) type ProbeResult = Result<ProbeOutput, SourceProblem>;
