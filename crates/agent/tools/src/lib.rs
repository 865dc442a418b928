//! The tools of the reference agent, and the rules that say which calls need the user's consent.
//!
//! A [`Tool`] has a name, a description, a schema of its arguments and a way to run. A [`Toolbox`] holds the tools of
//! one agent; [`Toolbox::standard`] has the tools for files and commands. [`Permissions`] judge a call by its name and
//! arguments before it runs. [`ProtectedFiles`] are files that no tool changes without the user's consent.
//! [`AgentRestrictions`] limit an agent to fewer tools and folders.
//!
//! This crate does not combine the rules with hooks and the user's answers. The agent does: it takes each call through
//! its gates, and calls [`Tool::run`] only after the last one.

#![forbid(unsafe_code)]

mod ancestry;
mod argument_schema;
mod background_agent;
mod edit_file;
mod excerpt;
mod failure;
mod file_access;
mod glob;
mod key_block;
mod link;
mod list_directory;
pub mod permission;
mod progress;
mod protected_file;
mod read_file;
mod restriction;
mod retry;
mod search;
mod shell;
#[cfg(test)]
mod testing;
mod tool;
mod toolbox;
mod transfer_task;
mod typed_tool;
mod write_file;

#[cfg(unix)]
pub use crate::ancestry::inherited_values;
pub use crate::ancestry::{
    ProcessId, TenterhookAncestry, ancestor_running, is_below, is_run_by_tenterhook,
    tenterhook_ancestry,
};
pub use crate::argument_schema::{ArgumentSchema, ArgumentSchemaError};
pub use crate::background_agent::{
    NAMES as BACKGROUND_TOOLS, RUN as RUN_BACKGROUND_AGENT, add as add_background_tools,
};
pub use crate::edit_file::EditFile;
pub use crate::excerpt::excerpt;
pub use crate::failure::{InvalidInput, ToolFailure};
pub use crate::file_access::blocking;
pub use crate::list_directory::ListDirectory;
pub use crate::permission::{Permissions, Rule, UnmatchedRuleError};
pub use crate::progress::Progress;
pub use crate::protected_file::{ProtectedFiles, ProtectedTarget, WriteGuard};
pub use crate::read_file::{NAME as READ_FILE, ReadFile};
pub use crate::restriction::{AgentRestrictions, CommandPatterns, FolderRestriction, Restrictions};
pub use crate::retry::ToolRetry;
pub use crate::search::Search;
pub use crate::shell::{AGENT_VARIABLE, ShellTool};
pub use crate::tool::{Delegate, Tool, ToolContext};
pub use crate::toolbox::Toolbox;
pub use crate::transfer_task::{Agents, NAME as TRANSFER_TASK, TransferTask};
pub use crate::typed_tool::TypedTool;
pub use crate::write_file::WriteFile;
pub use tenterhook_protocol::ToolSpec;
