//! Channels to services and programs.
//!
//! - [`TelegramChannel`](telegram::TelegramChannel) is a Telegram bot. It receives updates by long polls, and edits a
//!   preview of the answer while the agent writes.
//! - [`ProgramChannel`](program::ProgramChannel) runs a program that speaks the channel protocol: JSON-RPC 2.0, one
//!   message a line. Any service can be connected in any language.
//! - [`pieces`] splits Markdown into pieces that fit a service's limit.
//!
//! Each channel has a file and a folder, and nothing outside of them knows its service. To add a channel, implement
//! [`Channel`](tenterhook_channel::channel::Channel), add a kind to
//! [`ChannelKind`](tenterhook_channel::settings::ChannelKind), and create the channel in `assembly.rs` of
//! `tenterhook-gateway`.

#![forbid(unsafe_code)]

pub mod pieces;
pub mod program;
pub mod telegram;
