//! Translates calls of a hook system's tools to the canonical tools, and back.
//!
//! Hook systems use different names for the same tools: `bash {command}` in one is `terminal {cmd}` in another. Each
//! system declares its names as data in a [`ToolTable`], with a [`ToolRow`] for each tool. This crate applies such a
//! table in both directions. The tables themselves, and functions that need all of them, are in `tenterhook-systems`.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use serde_json::json;
//! use tenterhook_engine::ToolNames;
//! use tenterhook_systems::tool_names::{ToolTable, renamed, same, single};
//!
//! static TOOLS: ToolTable = ToolTable::new(
//!     "acme",
//!     &[single("acme_run", "shell", &[renamed("line", "cmd"), same("cwd")])],
//! );
//!
//! let input = json!({ "line": "ls" });
//! let calls = TOOLS.operations("acme_run", input.as_object().ok_or("not an object")?)?;
//! let call = &calls.ok_or("not in the table")?[0];
//! assert_eq!(call.tool, "shell");
//! assert_eq!(call.input["cmd"], "ls");
//!
//! let own = TOOLS.view("shell", &call.input)?.ok_or("not in the table")?;
//! assert_eq!(own.name, "acme_run");
//! assert_eq!(own.input["line"], "ls");
//! # Ok(())
//! # }
//! ```
//!
//! A call that packs several operations is split into them ([`Packing`]), so that a rule about one canonical tool sees
//! every file of a patch. Ambiguous arguments are an error, because a gate must judge the same call that the tool runs.

mod agent_tools;
mod canonical;
mod command;
mod envelope;
mod python;
mod row;
mod table;
mod translation;
mod unified_diff;

pub use self::agent_tools::{AGENT_TOOLS, UNTRANSLATED_AGENT_TOOLS};
pub use self::canonical::{CANONICAL_TOOLS, CanonicalTool};
pub use self::command::FoundCommand;
pub use self::python::is_true_in_python;
pub use self::row::{ArgumentRow, Packing, Selector, ToolRow, Unit, renamed, same, single};
pub use self::table::ToolTable;
