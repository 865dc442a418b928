//! The reference agent: a small, complete agent under the hooks of an engine.
//!
//! An [`Agent`] talks with a model, runs tools, asks for permission, compacts its conversation and gives tasks to
//! subagents. It dispatches each event of the catalogue at the moment that the event describes, and applies the
//! effects of hooks. How a hook is configured or reached is the engine's concern.
//!
//! Build one from an [`AgentConfig`], give it a [`Prompt`], and read the [`RunReport`]. A [`Frontend`] shows what it
//! does and answers its questions; an [`AgentHandle`] speaks to it while it works. Models, tools and stored sessions
//! are crates of their own: `tenterhook-providers` and `tenterhook-tools`.
//!
//! The invariants:
//!
//! - A tool runs only after every gate has decided. If anything goes wrong on the way, the call is denied.
//! - Paired events always come in pairs, even if the run is cancelled: `tool_execution_start` and `_end`,
//!   `turn_start` and `turn_end`, `agent_start` and `agent_end`.
//! - The model, the session and the screen get the same result of a tool: the result after the last hook.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//! use tenterhook_agent::{AgentConfig, CancellationToken, RunEnd};
//! use tenterhook_engine::{Effect, Engine, event::PreToolUse};
//! use tenterhook_providers::Scripted;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::new();
//! engine.on(|_: &PreToolUse| Effect::<PreToolUse>::deny("not today"));
//! let script = Scripted::parse(
//!     "demo",
//!     r#"
//! turns:
//!   - tool_calls: [{ name: shell, arguments: { cmd: rm -rf / } }]
//!   - text: I may not do that.
//! "#,
//! )?;
//!
//! let config = AgentConfig {
//!     model: Some(Arc::new(script)),
//!     ..AgentConfig::default()
//! };
//! let mut agent = config.build(engine)?;
//! let report = agent.prompt("clean up", &CancellationToken::new()).await;
//! assert_eq!(report.end, RunEnd::Completed);
//! assert_eq!(report.response, "I may not do that.");
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod active_session;
mod agent;
mod agent_session;
mod attention;
mod background;
mod compaction;
mod config;
mod context_swap;
#[cfg(unix)]
mod dialogs;
mod drawing;
#[cfg(unix)]
pub mod extension;
pub mod frontend;
mod handle;
mod hooks;
mod identity;
mod leave_branch;
mod limit;
mod model_call;
#[cfg(unix)]
mod model_calls;
mod models;
mod queue;
pub mod resource;
mod run;
mod run_report;
#[cfg(unix)]
mod script_model;
#[cfg(unix)]
mod script_ui;
#[cfg(unix)]
mod script_view;
mod selection;
mod session_name;
pub mod sessions;
mod state;
mod subagent;
mod tool_call;
mod user_command;

pub use tokio_util::sync::CancellationToken;

#[cfg(unix)]
pub use crate::agent::SessionRequestError;
pub use crate::agent::{Agent, SessionSwitchError, SessionSwitched};
pub use crate::compaction::{CompactionError, CompactionReport};
pub use crate::config::{AgentConfig, AgentSpec, BuildError};
pub use crate::context_swap::ContextSwaps;
pub use crate::frontend::Frontend;
pub use crate::handle::{AgentHandle, SubmitOutcome};
pub use crate::leave_branch::LeaveBranch;
pub use crate::limit::{AgentLimits, RetryPolicy};
pub use crate::models::{Models, SelectError};
pub use crate::queue::QueueFull;
pub use crate::run_report::{Prompt, RunEnd, RunReport};
pub use crate::sessions::{Session, SessionStore, SessionTail, UnsyncedTail};
pub use crate::user_command::{UserCommand, UserCommandError, UserCommandRun};
pub use resource::{ResourcePlaces, Resources};
pub use tenterhook_providers::ThinkingLevel;
pub use tenterhook_tools::{
    AgentRestrictions, CommandPatterns, FolderRestriction, Permissions, ProtectedFiles, Rule, Tool,
    Toolbox, UnmatchedRuleError,
};
