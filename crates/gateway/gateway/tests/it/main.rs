//! Tests of conversations, with a scripted model and real hooks.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod attacks;
mod busy;
mod conversation;
mod conversation_stage;
mod extension_command;
mod history;
mod receive;
mod voice;
