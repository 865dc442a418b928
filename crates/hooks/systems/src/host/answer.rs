//! The answer to a host.

use super::capability::HostEffect;

/// What the program that a host started must print, and its exit status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostAnswer {
    /// The standard output. Empty if the hooks have no opinion.
    pub stdout: String,
    /// The standard error output.
    pub stderr: String,
    /// The exit status.
    pub status: u8,
}

/// An effect that the host cannot honour, and what replaced it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Downgrade {
    /// The effect that hooks wanted.
    pub effect: HostEffect,
    /// What happens instead, as the end of a sentence: `the call is denied`.
    pub instead: String,
}
