//! From the options of a command to hooks in force, a model and an agent.
//!
//! The command line and the daemon share this: [`hooks`] loads the hooks that are in force in a folder, [`agent`] makes
//! the configuration of an agent from the files that were loaded, and [`models`] opens its model. [`agent_options`] and
//! [`hook_options`] select them. What cannot be loaded is a [`CliError`](error::CliError) with an exit status, the
//! lines of the file and a hint. What a person should know although the work continues is a
//! [`Notice`](warning::Notice).
//!
//! This crate knows neither command-line arguments nor a terminal. Those are in `tenterhook-cli` and
//! `tenterhook-terminal`.

#![forbid(unsafe_code)]

pub mod agent;
pub mod agent_options;
pub mod approval;
pub mod blocking;
pub mod config_dir;
pub mod data_dir;
pub mod disabled;
pub mod error;
pub mod exceptions;
pub mod exit;
pub mod extensions;
pub mod folder_guards;
pub mod guard_problem;
pub mod hook_changes;
pub mod hook_list;
pub mod hook_options;
pub mod hooks;
pub mod host_problems;
pub mod imports;
pub mod journal;
pub mod live_inspector;
pub mod local_time;
pub mod models;
pub mod protected;
pub mod proven_versions;
pub mod resources;
pub mod rules;
pub mod runtime;
pub mod session_store;
pub mod warning;
