//! The handlers that need more than the engine: built-ins, and models as judges.
//!
//! An embedder that registers functions and commands only does not compile any of this.

#![forbid(unsafe_code)]

pub mod builtin;
pub mod model;
mod services;
pub mod template;

pub use services::Services;
