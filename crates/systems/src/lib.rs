//! Every hook system that Tenterhook knows, each in its own folder.
//!
//! A folder contains everything that is specific to its system: where its files are, the names of its
//! events and tools, the format in which its hooks receive events, the meaning of their answers, and the
//! effect of a failing hook. [`SYSTEMS`] lists the systems. All other crates read this table, so that
//! none of them names a system.
//!
//! A [dialect](tenterhook_engine::Dialect) is a pure translation: it writes an event for one hook and
//! reads the hook's answer. The engine combines the answers of several hooks, in the same way for all
//! dialects. [`form`] goes in the other direction: it reads an event that a hook of a system received.
//! [`tools`] translates the names of tools.

#![forbid(unsafe_code)]

pub mod docker_agent;
mod entries;
mod escape;
pub mod form;
pub mod hook_folder;
pub mod kodelet;
pub mod morphix;
mod named_file;
pub mod native;
mod object;
pub mod operator;
pub mod pi;
mod reply;
mod returned;
mod system;
mod take_key;
pub mod tools;

pub use tenterhook_protocol::example;

pub use self::named_file::kind_of_file;
pub use self::system::{GatewaySettings, HookSystem};

/// All hook systems. Our own comes first.
pub static SYSTEMS: &[&HookSystem] = &[
    &native::SYSTEM,
    &docker_agent::SYSTEM,
    &kodelet::SYSTEM,
    &operator::SYSTEM,
    &morphix::SYSTEM,
    &pi::SYSTEM,
];
