//! Handlers through the public door, with real programs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod git;
mod snapshot;
mod work_tree;
