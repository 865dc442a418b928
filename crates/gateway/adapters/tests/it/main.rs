//! Tests of the channels to services and programs, with a service on the loopback interface and real programs.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod fake_telegram;
mod program_channel;
mod python_example;
mod recording_intake;
mod telegram;
mod telegram_messages;
