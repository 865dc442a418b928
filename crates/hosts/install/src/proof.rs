//! Proves with real coding agents that they follow hooks.
//!
//! The documentation of an agent says what its hooks can do. This crate checks it: it starts the installed program
//! without a person, in an empty home folder, against a [model server](model_server) on the same machine that
//! requests a harmless command. Then it looks whether the command ran.
//!
//! Nothing of the user is read or changed, and no credentials are passed to the agent.

mod approved_project;
mod canary;
pub mod case;
pub mod headless;
pub mod installed_agent;
pub mod model_server;
pub mod prove;
pub mod row_check;
pub mod sandbox;
pub mod trial;
pub mod trial_script;
