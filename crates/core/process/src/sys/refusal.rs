//! The reasons for which a system refuses to start a child.

/// Why the system refused to start a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Descriptors, processes or memory are exhausted. Another run may free some.
    Exhausted,
    /// The file is open for writing, often by a child that was just started.
    Busy,
    /// The file, its interpreter or the working directory does not exist.
    Missing,
    /// The system does not know the format of the file, such as a script without a `#!` line.
    NotAProgram,
    Other,
}
