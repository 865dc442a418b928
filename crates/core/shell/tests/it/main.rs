//! Tests of rules against what a real shell runs.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test stops at the first thing that is not as it should be, and shows its seed"
)]

mod real_shell;
