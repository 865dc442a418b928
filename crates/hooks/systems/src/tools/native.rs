//! Our own tools, which are the canonical ones. Matchers find them by the names of every system.

use std::sync::Arc;

use crate::tool_names::{CANONICAL_TOOLS, FoundCommand, ToolTable, UNTRANSLATED_AGENT_TOOLS};
use tenterhook_engine::{
    CanonicalCall, CommandReading, NATIVE_SYSTEM, OwnCall, ToolInputError, ToolNames,
};
use tenterhook_protocol::JsonObject;

use crate::native::TOOLS;
use crate::{HOSTS, SYSTEMS};

/// Returns our own tools. The matcher of a native hook also accepts the names that other systems have for
/// a tool.
pub fn native() -> Arc<dyn ToolNames> {
    Arc::new(NativeTools)
}

/// Returns the canonical name of a tool that a host calls by the name of any system. A name that could
/// mean several canonical tools stays unchanged.
pub fn canonical_name_of_any(name: &str) -> &str {
    let mut tools = tables()
        .map(|table| table.canonical_name(name))
        .filter(|tool| *tool != name);
    match tools.next() {
        Some(first) if tools.all(|tool| tool == first) => first,
        _ => name,
    }
}

/// Returns the tables of all systems and all hosts.
pub(super) fn tables() -> impl Iterator<Item = &'static ToolTable> {
    let systems = SYSTEMS.iter().map(|system| system.tools);
    systems.chain(HOSTS.iter().map(|host| host.tools))
}

/// Returns whether a canonical tool, a tool of the reference agent, or a tool of any system or host has this name.
fn is_known(name: &str) -> bool {
    let mut canonical = CANONICAL_TOOLS.iter().map(|tool| tool.name);
    canonical.any(|known| known == name)
        || UNTRANSLATED_AGENT_TOOLS.contains(&name)
        || tables().any(|table| table.has(name))
}

/// Returns every name of a tool: first the canonical name, then the names in each system and host.
fn all_names(tool: &str) -> Vec<&'static str> {
    let tool = canonical_name_of_any(tool);
    let Some(known) = CANONICAL_TOOLS.iter().find(|known| known.name == tool) else {
        return Vec::new();
    };
    let mut names = vec![known.name];
    for row in tables().flat_map(|table| table.rows) {
        if row.can_be(tool) && !names.contains(&row.name) {
            names.push(row.name);
        }
    }
    names
}

/// Our own tools: the table of the reference agent, with the names of every system and host for matchers.
#[derive(Debug)]
struct NativeTools;

impl ToolNames for NativeTools {
    fn system(&self) -> &'static str {
        NATIVE_SYSTEM
    }

    fn names(&self, tool: &str) -> Vec<&'static str> {
        all_names(tool)
    }

    fn canonical_name<'a>(&self, name: &'a str) -> &'a str {
        TOOLS.canonical_name(name)
    }

    fn operations(
        &self,
        name: &str,
        input: &JsonObject,
    ) -> Result<Option<Vec<CanonicalCall>>, ToolInputError> {
        TOOLS.operations(name, input)
    }

    fn command_of(&self, name: &str, input: &JsonObject) -> Option<CommandReading> {
        if is_known(name) {
            return None;
        }
        FoundCommand::read(NATIVE_SYSTEM, name, input)
    }

    fn command_input(
        &self,
        name: &str,
        input: &JsonObject,
        shell: &JsonObject,
    ) -> Result<JsonObject, ToolInputError> {
        TOOLS.command_input(name, input, shell)
    }

    /// Native hooks see canonical tools.
    fn view(&self, _tool: &str, _input: &JsonObject) -> Result<Option<OwnCall>, ToolInputError> {
        Ok(None)
    }

    fn canonical_input(&self, _tool: &str, own: &JsonObject) -> Result<JsonObject, ToolInputError> {
        Ok(own.clone())
    }
}
