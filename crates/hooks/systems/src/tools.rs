//! The tools of every hook system and the canonical tools that they stand for.
//!
//! Each system's folder has a table of its tools (`tools.rs`). [`tool_names`](crate::tool_names) translates calls
//! with it in both directions. This module answers questions that need the tables of all systems:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use serde_json::json;
//! use tenterhook_systems::tools::{canonical, of};
//!
//! let input = json!({ "command": "ls", "timeout": 5 });
//! let calls = canonical("kodelet", "bash", input.as_object().ok_or("not an object")?)?;
//! assert_eq!(calls[0].tool, "shell");
//! assert_eq!(calls[0].input["cmd"], "ls");
//!
//! let kodelet = of("kodelet").ok_or("unknown system")?;
//! let seen = kodelet.view("shell", &calls[0].input)?.ok_or("not translated")?;
//! assert_eq!(seen.name, "bash");
//! assert_eq!(seen.input["command"], "ls");
//! # Ok(())
//! # }
//! ```

mod native;

pub use tenterhook_engine::{CanonicalCall, NATIVE_SYSTEM, OwnCall, ToolInputError, ToolNames};

pub use crate::tool_names::{ArgumentRow, CANONICAL_TOOLS, CanonicalTool, ToolRow, ToolTable};

use self::native::tables;
pub use self::native::{canonical_name_of_any, native};

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::tool_names::UNTRANSLATED_AGENT_TOOLS;
use tenterhook_engine::Dialect;
use tenterhook_protocol::JsonObject;

use crate::SYSTEMS;

/// Returns the canonical tool with this name. Also accepts the reference agent's own names for canonical tools.
pub fn canonical_tool(name: &str) -> Option<&'static CanonicalTool> {
    let name = canonical_name(NATIVE_SYSTEM, name);
    CANONICAL_TOOLS.iter().find(|tool| tool.name == name)
}

/// Returns the names of all systems.
pub fn systems() -> impl Iterator<Item = &'static str> {
    SYSTEMS.iter().map(|system| system.name)
}

/// Returns the system that has a form with this name, as in `--from`.
pub fn system_of_form(form: &str) -> Option<&'static str> {
    let mut systems = SYSTEMS.iter();
    let system = systems.find(|system| system.form_names().any(|name| name == form))?;
    Some(system.name)
}

/// Returns the rows of a system's table, in the order in which they are tried. Unknown systems have no rows.
pub fn rows(system: &str) -> &'static [ToolRow] {
    table(system).map_or(&[], |table| table.rows)
}

/// Returns the tools of the system whose hooks use `dialect`, or `None` if these hooks see canonical tools.
pub fn of_hooks(dialect: &dyn Dialect) -> Option<Arc<dyn ToolNames>> {
    of(dialect.tools()?.system())
}

/// Returns the tools of a system, or `None` if the system is unknown.
///
/// ```
/// use tenterhook_engine::Dispatcher;
/// use tenterhook_protocol::event::PreToolUse;
///
/// # async fn example(dispatcher: Dispatcher, event: PreToolUse) {
/// let tools = tenterhook_systems::tools::of("kodelet").expect("a known system");
/// let outcome = dispatcher.with_tools(tools).dispatch(event).await;
/// # }
/// ```
pub fn of(system: &str) -> Option<Arc<dyn ToolNames>> {
    table(system).map(|table| Arc::new(table.clone()) as Arc<dyn ToolNames>)
}

/// Returns the tools of a system with the arguments of each. Returns `None` if there is no such system.
pub fn table(system: &str) -> Option<&'static ToolTable> {
    let mut systems = SYSTEMS.iter();
    systems
        .find(|known| known.name == system)
        .map(|known| known.tools)
}

/// Translates a call to a system's tool into canonical operations. A call to a tool that is not built
/// into the system stays unchanged.
///
/// # Errors
/// Fails if the system is unknown, or the arguments are ambiguous or have no canonical form.
pub fn canonical(
    system: &str,
    tool_name: &str,
    tool_input: &JsonObject,
) -> Result<Vec<CanonicalCall>, CanonicalError> {
    let table = table(system).ok_or_else(|| CanonicalError::UnknownSystem {
        system: system.to_owned(),
        available: systems().collect::<Vec<_>>().join("`, `"),
    })?;
    let operations = table.operations(table.spelling(tool_name), tool_input)?;
    Ok(operations.unwrap_or_else(|| {
        vec![CanonicalCall {
            tool: tool_name.to_owned(),
            input: tool_input.clone(),
        }]
    }))
}

/// A call that cannot be translated to canonical operations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CanonicalError {
    /// The system is unknown.
    #[error("unknown hook system `{system}`; available: `{available}`")]
    UnknownSystem {
        /// The unknown name.
        system: String,
        /// The known systems.
        available: String,
    },
    /// The arguments cannot be translated.
    #[error(transparent)]
    Input(#[from] ToolInputError),
}

/// Returns the canonical name of a system's tool. A tool keeps its name if it is not built into the
/// system, or if it corresponds to several canonical tools.
pub fn canonical_name<'a>(system: &str, name: &'a str) -> &'a str {
    table(system).map_or(name, |table| table.canonical_name(name))
}

/// Returns the name of every canonical tool, of the reference agent's tools and of the built-in tools
/// of every system and host, sorted.
pub fn known_tool_names() -> BTreeSet<&'static str> {
    let canonical = CANONICAL_TOOLS.iter().map(|tool| tool.name);
    let rows = tables().flat_map(|table| table.rows).map(|row| row.name);
    let others = tables().flat_map(|table| table.others).copied();
    let own = rows.chain(others);
    let of_agent = UNTRANSLATED_AGENT_TOOLS.iter().copied();
    canonical.chain(of_agent).chain(own).collect()
}
