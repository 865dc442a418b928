//! The tools of one system: finds the row of a call in both directions.

use tenterhook_engine::{
    CanonicalCall, CommandReading, NATIVE_SYSTEM, OwnCall, ToolInputError, ToolNames,
};
use tenterhook_protocol::JsonObject;

use crate::tool_names::agent_tools::AGENT_TOOLS;
use crate::tool_names::canonical::CANONICAL_TOOLS;
use crate::tool_names::command::FoundCommand;
use crate::tool_names::row::{Packing, Problem, ToolRow};

/// The canonical name of the shell tool.
const SHELL: &str = "shell";

/// The table of one system's tools.
#[derive(Debug, Clone)]
pub struct ToolTable {
    /// The name of the system.
    pub system: &'static str,
    /// The rows, in lookup order.
    pub rows: &'static [ToolRow],
    /// The system's tools that stand for no canonical tool.
    pub others: &'static [&'static str],
}

impl ToolTable {
    /// Creates the table of a system.
    pub const fn new(system: &'static str, rows: &'static [ToolRow]) -> Self {
        Self {
            system,
            rows,
            others: &[],
        }
    }

    /// Adds the tools that stand for no canonical tool.
    #[must_use]
    pub const fn with_others(self, others: &'static [&'static str]) -> Self {
        Self { others, ..self }
    }

    /// Returns whether the system has a tool with this name.
    pub fn has(&self, name: &str) -> bool {
        let mut names = self.rows.iter().map(|row| row.name);
        names.any(|known| known == name) || self.others.contains(&name)
    }

    /// Returns the row of a call to a tool that runs commands but is not the tool by which hooks know the shell.
    fn other_shell(&self, name: &str, input: &JsonObject) -> Option<&'static ToolRow> {
        let row = self.row_of(name, input)?;
        let shell = self.row_for(SHELL)?;
        (row.tool == SHELL && row.name != shell.name && row.packing == Packing::One).then_some(row)
    }

    /// Returns the row for a call of the system: the first whose selector matches.
    fn row_of(&self, name: &str, input: &JsonObject) -> Option<&'static ToolRow> {
        let mut rows = self.rows.iter().filter(|row| row.name == name);
        rows.find(|row| row.selector.is_none_or(|selector| selector.selects(input)))
    }

    /// Returns the row for showing one of our tools to the system's hooks: the first row of its canonical tool, or else a
    /// tool that packs several operations. If the system also has a tool with our non-canonical name, that row is used.
    fn row_for(&self, tool: &str) -> Option<&'static ToolRow> {
        let canonical = native_row(tool).map_or(tool, |row| row.tool);
        let mut rows = self.rows.iter().filter(|row| row.tool == canonical);
        let mut same_name = rows
            .clone()
            .filter(|row| canonical != tool && row.name == tool);
        let several = || self.rows.iter().find(|row| row.can_be(canonical));
        same_name.next().or_else(|| rows.next()).or_else(several)
    }

    /// Returns the canonical names of the arguments with which the system shows the canonical tool `tool`. `None` if it
    /// does not have the tool.
    pub fn arguments(&self, tool: &str) -> Option<Vec<&'static str>> {
        let row = self.row_for(tool)?;
        let mut names: Vec<_> = row.arguments.iter().map(|it| it.canonical).collect();
        if let Packing::Edits(..) = row.packing {
            names.extend(["old_text", "new_text"]);
        }
        Some(names)
    }

    fn error(&self, tool: &str, problem: Problem) -> ToolInputError {
        ToolInputError {
            system: self.system,
            tool: tool.to_owned(),
            problem,
        }
    }
}

/// Returns the canonical name of one of our tools.
fn canonical_tool(tool: &str) -> &str {
    native_row(tool).map_or(tool, |row| row.tool)
}

/// Returns the row of one of our tools whose name or arguments are not canonical.
fn native_row(tool: &str) -> Option<&'static ToolRow> {
    AGENT_TOOLS.iter().find(|row| row.name == tool)
}

impl ToolNames for ToolTable {
    fn system(&self) -> &'static str {
        self.system
    }

    fn names(&self, tool: &str) -> Vec<&'static str> {
        let row = self.row_for(tool).into_iter();
        row.flat_map(|row| std::iter::once(row.name).chain(row.matched_as.iter().copied()))
            .collect()
    }

    fn canonical_name<'a>(&self, name: &'a str) -> &'a str {
        let mut rows = self.rows.iter().filter(|row| row.name == name);
        let first = rows.next().filter(|row| !row.is_several());
        first
            .filter(|first| rows.all(|row| row.tool == first.tool))
            .map_or(name, |row| row.tool)
    }

    fn spelling<'a>(&self, name: &'a str) -> &'a str {
        // Our own agent knows its tools exactly, so another case is another tool.
        if self.system == NATIVE_SYSTEM || self.rows.iter().any(|row| row.name == name) {
            return name;
        }
        let is_same = |row: &&ToolRow| row.name.eq_ignore_ascii_case(name);
        let mut rows = self.rows.iter().filter(is_same).map(|row| row.name);
        match rows.next() {
            Some(first) if rows.all(|row| row == first) => first,
            _ => name,
        }
    }

    fn operations(
        &self,
        name: &str,
        input: &JsonObject,
    ) -> Result<Option<Vec<CanonicalCall>>, ToolInputError> {
        let Some(row) = self.row_of(name, input) else {
            return Ok(None);
        };
        let operations = row.operations(input);
        operations
            .map(Some)
            .map_err(|problem| self.error(name, problem))
    }

    fn command_of(&self, name: &str, input: &JsonObject) -> Option<CommandReading> {
        if let Some(row) = self.other_shell(name, input) {
            // Arguments that cannot be translated are reported when the call's operations are read.
            let mut operations = row.operations(input).ok()?;
            let call = operations.pop()?;
            return Some(CommandReading { call, guess: None });
        }
        // A call that is canonical already is known under its own name.
        let mut canonical = CANONICAL_TOOLS.iter();
        if self.has(name) || canonical.any(|tool| tool.name == name) {
            return None;
        }
        FoundCommand::read(self.system, name, input)
    }

    fn command_input(
        &self,
        name: &str,
        input: &JsonObject,
        shell: &JsonObject,
    ) -> Result<JsonObject, ToolInputError> {
        let own = match self.other_shell(name, input) {
            Some(row) => row.view(SHELL, shell),
            None => FoundCommand::written(name, input, shell),
        };
        own.map_err(|problem| self.error(name, problem))
    }

    fn view(&self, tool: &str, input: &JsonObject) -> Result<Option<OwnCall>, ToolInputError> {
        let Some(row) = self.row_for(tool) else {
            return Ok(None);
        };
        let canonical = native_row(tool).map(|row| row.renamed_back(input.clone()));
        let canonical = canonical.transpose();
        let name = canonical_tool(tool);
        let own =
            canonical.and_then(|canonical| row.view(name, canonical.as_ref().unwrap_or(input)));
        own.map(|input| {
            Some(OwnCall {
                name: row.name.to_owned(),
                input,
            })
        })
        .map_err(|problem| self.error(row.name, problem))
    }

    fn canonical_input(&self, tool: &str, own: &JsonObject) -> Result<JsonObject, ToolInputError> {
        let Some(row) = self.row_for(tool) else {
            return Ok(own.clone());
        };
        let canonical = row.canonical_input(canonical_tool(tool), own);
        let input = canonical.and_then(|canonical| match native_row(tool) {
            Some(native) => native.view(native.tool, &canonical),
            None => Ok(canonical),
        });
        input.map_err(|problem| self.error(row.name, problem))
    }
}
