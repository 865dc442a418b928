//! Runs real children and checks what they leave behind.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    reason = "the helpers are not test functions, but they fail like them"
)]

mod burst;
mod companion;
mod end;
mod files;
mod group;
mod guard;
mod input;
mod leftovers;
mod output;
mod secrecy;
mod start;
mod support;
mod warm;
