//! The tools of every hook system and the canonical tools that they stand for.
//!
//! Each system's folder has one table of rows (`tools.rs`). This module reads the tables in both directions:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use serde_json::json;
//! use tenterhook_dialects::tools::{canonical, of};
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

mod envelope;
pub(crate) mod table;
mod unified_diff;

use std::collections::BTreeSet;
use std::sync::Arc;

use tenterhook::Dialect;
pub use tenterhook::{CanonicalCall, NATIVE_SYSTEM, OwnCall, ToolInputError, ToolNames};
use tenterhook_protocol::JsonObject;

pub use self::table::{ArgumentRow, ToolRow};
use self::table::{ToolTable, single};
use crate::{docker_agent, kodelet, morphix, operator, pi};

/// A canonical tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanonicalTool {
    /// The name.
    pub name: &'static str,
    /// The arguments. Those that may be left out end with `?`.
    pub arguments: &'static [&'static str],
}

/// The canonical tools.
pub const CANONICAL_TOOLS: &[CanonicalTool] = &[
    tool("shell", &["cmd", "cwd?", "timeout?"]),
    tool("read_file", &["path", "offset?", "limit?"]),
    tool("write_file", &["path", "content"]),
    tool(
        "edit_file",
        &["path", "old_text", "new_text", "replace_all?"],
    ),
    tool("delete_file", &["path"]),
    tool("list_directory", &["path?"]),
    tool("search", &["pattern", "path?", "glob?"]),
    tool("find_files", &["pattern", "path?"]),
    tool("web_fetch", &["url"]),
    tool("web_search", &["query"]),
    tool("task", &["prompt", "agent?"]),
];

const fn tool(name: &'static str, arguments: &'static [&'static str]) -> CanonicalTool {
    CanonicalTool { name, arguments }
}

/// Returns the canonical tool of this name. The reference agent's tools that stand for one are known by their own names
/// too.
pub fn canonical_tool(name: &str) -> Option<&'static CanonicalTool> {
    let name = canonical_name(NATIVE_SYSTEM, name);
    CANONICAL_TOOLS.iter().find(|tool| tool.name == name)
}

/// The reference agent's tools whose names or arguments are not canonical.
const NATIVE_TOOLS: &[ToolRow] = &[
    single("transfer_task", "task", docker_agent::TASK_ARGUMENTS)
        .at("crates/agent/src/tool/transfer.rs"),
    single("run_background_agent", "task", docker_agent::TASK_ARGUMENTS)
        .at("crates/agent/src/tool/background.rs"),
];

/// Every table, our own first.
static TABLES: &[ToolTable] = &[
    ToolTable::new(NATIVE_SYSTEM, NATIVE_TOOLS),
    ToolTable::new("docker-agent", docker_agent::TOOLS),
    ToolTable::new("kodelet", kodelet::TOOLS),
    ToolTable::new("operator", operator::TOOLS),
    ToolTable::new("morphix", morphix::TOOLS),
    ToolTable::new("pi", pi::TOOLS),
];

/// Returns the names of the systems that have a table.
pub fn systems() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(ToolNames::system)
}

/// Returns the rows of a system, in the order in which they are looked up.
pub fn rows(system: &str) -> &'static [ToolRow] {
    table(system).map_or(&[], |table| table.rows)
}

/// Returns the tools of a system for its own dialect.
pub(crate) fn of_dialect(system: &str) -> Option<&'static dyn ToolNames> {
    table(system).map(|table| table as &dyn ToolNames)
}

/// Returns the tools of the system whose hooks speak `dialect`; `None` for hooks that see canonical tools.
pub fn of_hooks(dialect: &dyn Dialect) -> Option<Arc<dyn ToolNames>> {
    of(dialect.tools()?.system())
}

/// Returns the tools of a system.
pub fn of(system: &str) -> Option<Arc<dyn ToolNames>> {
    table(system).map(|table| Arc::new(table.clone()) as Arc<dyn ToolNames>)
}

fn table(system: &str) -> Option<&'static ToolTable> {
    TABLES.iter().find(|table| table.system() == system)
}

/// Returns our own tools. A matcher of a native hook also accepts every system's name of a tool.
pub fn native() -> Arc<dyn ToolNames> {
    Arc::new(Native)
}

/// Translates a call of a system's tool to canonical operations. A tool that is not built into the system stays as
/// it is.
///
/// # Errors
/// When the system is unknown, or the arguments are ambiguous or have no canonical form.
pub fn canonical(
    system: &str,
    tool_name: &str,
    tool_input: &JsonObject,
) -> Result<Vec<CanonicalCall>, CanonicalError> {
    let table = table(system).ok_or_else(|| CanonicalError::UnknownSystem {
        system: system.to_owned(),
        available: systems().collect::<Vec<_>>().join("`, `"),
    })?;
    let operations = table.operations(tool_name, tool_input)?;
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
    /// There is no table for the system.
    #[error("unknown hook system `{system}`; available: `{available}`")]
    UnknownSystem {
        /// What was given.
        system: String,
        /// The systems that have a table.
        available: String,
    },
    /// The arguments cannot be translated.
    #[error(transparent)]
    Input(#[from] ToolInputError),
}

/// Returns the canonical name of a system's tool. A tool that is not built into the system keeps its name, and so does
/// one that stands for several canonical tools.
pub fn canonical_name<'a>(system: &str, name: &'a str) -> &'a str {
    table(system).map_or(name, |table| table.canonical_name(name))
}

/// Returns the name of every canonical tool and of every system's built-in tools, sorted.
pub fn known_tool_names() -> BTreeSet<&'static str> {
    let canonical = CANONICAL_TOOLS.iter().map(|tool| tool.name);
    let own = TABLES
        .iter()
        .flat_map(|table| table.rows)
        .map(|row| row.name);
    canonical.chain(own).collect()
}

/// Returns the canonical name of a tool that a host calls by the name of any system; a name that stands for several
/// canonical tools is none of them.
fn canonical_name_of_any(name: &str) -> &str {
    let mut tools = TABLES
        .iter()
        .map(|table| table.canonical_name(name))
        .filter(|tool| *tool != name);
    match tools.next() {
        Some(first) if tools.all(|tool| tool == first) => first,
        _ => name,
    }
}

/// Returns every name of a tool: the canonical one, then those of the systems.
fn all_names(tool: &str) -> Vec<&'static str> {
    let tool = canonical_name_of_any(tool);
    let Some(known) = CANONICAL_TOOLS.iter().find(|known| known.name == tool) else {
        return Vec::new();
    };
    let mut names = vec![known.name];
    for row in TABLES.iter().flat_map(|table| table.rows) {
        if row.can_be(tool) && !names.contains(&row.name) {
            names.push(row.name);
        }
    }
    names
}

/// Our own tools: the table of the reference agent, with every system's names for matchers.
#[derive(Debug)]
struct Native;

const NATIVE: ToolTable = ToolTable::new(NATIVE_SYSTEM, NATIVE_TOOLS);

impl ToolNames for Native {
    fn system(&self) -> &'static str {
        NATIVE_SYSTEM
    }

    fn names(&self, tool: &str) -> Vec<&'static str> {
        all_names(tool)
    }

    fn canonical_name<'a>(&self, name: &'a str) -> &'a str {
        NATIVE.canonical_name(name)
    }

    fn operations(
        &self,
        name: &str,
        input: &JsonObject,
    ) -> Result<Option<Vec<CanonicalCall>>, ToolInputError> {
        NATIVE.operations(name, input)
    }

    /// Native hooks see canonical tools.
    fn view(&self, _tool: &str, _input: &JsonObject) -> Result<Option<OwnCall>, ToolInputError> {
        Ok(None)
    }

    fn canonical_input(&self, _tool: &str, own: &JsonObject) -> Result<JsonObject, ToolInputError> {
        Ok(own.clone())
    }
}
