//! The built-in handlers, and what they share: snapshots of a work tree, and running git.
//!
//! An embedder that registers only functions and commands does not compile this crate.

#![forbid(unsafe_code)]

pub mod builtin;
mod response_cache;
pub mod snapshot;
#[cfg(feature = "http")]
mod voice_hook;

#[cfg(feature = "http")]
pub use builtin::OnVoiceFailure;
pub use response_cache::ResponseCache;
#[cfg(feature = "http")]
pub use voice_hook::{stt_hook, tts_hook};
