//! The reference agent: a small, real agent whose life runs through the hooks engine.
//!
//! It leads a conversation with a model, runs tools, asks for permission, compacts, gives tasks to
//! subagents, and dispatches each event of the catalogue where that event's meaning has its place. What
//! hooks answer is acted on; nothing here knows how a hook is configured or reached.
//!
//! The invariants:
//!
//! - A tool runs only after every gate had its word. Whatever goes wrong on the way, the call is denied.
//! - What has a beginning and an end among the events gets both, also when the run is cancelled:
//!   `tool_execution_start` and `_end`, `turn_start` and `turn_end`, `agent_start` and `agent_end`.
//! - What the model gets of a tool's result, what the session keeps and what the screen shows is the
//!   same: the result after the last hook.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//! use tenterhook::{Effect, Engine, event::PreToolUse};
//! use tenterhook_agent::provider::Scripted;
//! use tenterhook_agent::{Agent, CancellationToken, RunEnd};
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
//! let mut agent = Agent::builder(engine).model(Arc::new(script)).build()?;
//! let report = agent.prompt("clean up", &CancellationToken::new()).await;
//! assert_eq!(report.end, RunEnd::Completed);
//! assert_eq!(report.response, "I may not do that.");
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod agent;
mod ask;
mod background;
mod call;
mod compaction;
#[cfg(unix)]
pub mod extension;
pub mod frontend;
mod glob;
mod hooks;
mod life;
mod limit;
pub mod model;
mod passage;
pub mod permission;
mod protection;
pub mod provider;
mod queue;
pub mod resource;
mod restriction;
mod run;
pub mod session;
mod subagent;
mod swap;
pub mod tool;
mod user_command;

pub use tokio_util::sync::CancellationToken;

pub use crate::agent::{Agent, AgentBuilder, AgentSpec, BuildError, Prompt, RunEnd, RunReport};
pub use crate::compaction::{Compacted, CompactionError};
pub use crate::frontend::Frontend;
pub use crate::limit::{Limits, RetryPolicy};
pub use crate::model::{Models, SelectError, ThinkingLevel};
pub use crate::passage::{Leaving, Moved, PassageError};
pub use crate::permission::{Permissions, Rule, RuleProblem};
pub use crate::protection::ProtectedFiles;
pub use crate::queue::{AgentHandle, QueueFull, Submitted};
pub use crate::resource::{ResourcePlaces, Resources};
pub use crate::restriction::{AgentRestrictions, FolderRestriction};
pub use crate::session::{Session, Sessions};
pub use crate::swap::ContextSwaps;
pub use crate::tool::{Tool, Toolbox};
pub use crate::user_command::{UserCommand, UserCommandError, UserCommandRun};
