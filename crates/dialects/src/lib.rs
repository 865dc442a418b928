//! Other systems' wire contracts for hooks, one folder a dialect.
//!
//! A dialect is a pure translation: it writes an event for one hook and reads that hook's answer. How the
//! answers of several hooks combine is the engine's business and the same for all dialects.
//!
//! [`form`] is the way back: it reads the event that a hook of a system was sent.

#![forbid(unsafe_code)]

pub mod docker_agent;
mod entries;
mod escape;
pub mod example;
pub mod form;
pub mod kodelet;
pub mod kodelet_extension;
pub mod morphix;
mod object;
pub mod operator;
mod own;
pub mod pi;
mod reply;
mod returned;
pub mod tools;
