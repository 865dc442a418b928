//! The handlers that need more than the engine: built-ins and HTTP.
//!
//! An embedder that registers functions and commands only does not compile any of this.

#![forbid(unsafe_code)]

pub mod builtin;
pub mod http;
mod services;

pub use services::Services;
