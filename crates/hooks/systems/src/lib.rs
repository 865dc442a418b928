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
//! [`tools`] translates the names of tools. [`host`] describes the coding agents that call Tenterhook.

#![forbid(unsafe_code)]

pub mod claude_code;
pub mod cline;
pub mod codex;
mod command_hook;
pub mod copilot;
pub mod docker_agent;
pub mod droid;
mod entries;
mod escape;
pub mod folder_name;
pub mod form;
pub mod gemini;
pub mod goose;
pub mod hook_folder;
pub mod host;
mod hosts;
pub mod kimi;
pub mod kodelet;
pub mod morphix;
mod named_file;
pub mod native;
mod object;
pub mod opencode;
pub mod operator;
pub mod pi;
pub mod project_packages;
pub mod qwen;
mod reply;
mod returned;
pub mod settings_file;
mod system;
mod take_key;
pub mod tool_names;
pub mod tools;
pub mod vibe;

pub use tenterhook_protocol::example;

pub use self::hosts::HOSTS;
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
    &claude_code::SYSTEM,
    &codex::SYSTEM,
    &copilot::SYSTEM,
    &gemini::SYSTEM,
];
