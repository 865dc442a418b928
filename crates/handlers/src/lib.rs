//! The handlers that need more than the engine: built-ins, HTTP, and models as judges.
//!
//! An embedder that registers functions and commands only does not compile any of this.

#![forbid(unsafe_code)]

pub mod builtin;
pub mod command_line;
pub mod git;
pub mod http;
pub mod model;
mod private_dir;
pub mod recipe;
mod response_cache;
pub mod secret;
mod services;
pub mod snapshot;
pub mod template;
#[cfg(unix)]
pub mod worker;

pub use response_cache::ResponseCache;
pub use services::Services;
