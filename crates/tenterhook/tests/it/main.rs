//! Tests of the crate with different sets of features.

#![cfg_attr(
    feature = "files",
    expect(clippy::unwrap_used, reason = "a test may fail")
)]

#[cfg(feature = "files")]
mod files;
