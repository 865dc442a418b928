//! The set of tools that an agent has.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenterhook_protocol::ToolSpec;

use crate::edit_file::EditFile;
use crate::list_directory::ListDirectory;
use crate::read_file::ReadFile;
use crate::restriction::Restrictions;
use crate::retry::ToolRetry;
use crate::search::Search;
use crate::shell::ShellTool;
use crate::tool::Tool;
use crate::write_file::WriteFile;

/// The tools of an agent, in the order in which they are offered to the model. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Toolbox {
    tools: Arc<Vec<Arc<dyn Tool>>>,
    retries: Arc<BTreeMap<String, ToolRetry>>,
}

impl Toolbox {
    /// Creates an empty toolbox.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Creates a toolbox with the tools for files and commands.
    pub fn standard() -> Self {
        Self::standard_with(ShellTool::default())
    }

    /// Creates a toolbox with the tools for files and this tool for commands.
    pub fn standard_with(shell: ShellTool) -> Self {
        Self::empty()
            .with(shell)
            .with(ReadFile)
            .with(WriteFile)
            .with(EditFile)
            .with(ListDirectory)
            .with(Search)
    }

    /// Adds a tool. It replaces a tool with the same name.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        let tools = Arc::make_mut(&mut self.tools);
        tools.retain(|known| known.name() != tool.name());
        tools.push(Arc::new(tool));
        self
    }

    /// Sets how failed runs of the tool called `tool` are retried. It overrides [`Tool::retry`].
    #[must_use]
    pub fn retry(mut self, tool: impl Into<String>, retry: ToolRetry) -> Self {
        Arc::make_mut(&mut self.retries).insert(tool.into(), retry);
        self
    }

    /// Returns how failed runs of a tool are retried.
    pub fn retry_of(&self, tool: &dyn Tool) -> ToolRetry {
        let set = self.retries.get(tool.name()).copied();
        set.unwrap_or_else(|| tool.retry())
    }

    /// Returns the tool called `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// Returns whether an agent with these restrictions may use the tool called `name`.
    pub fn admits(&self, name: &str, restrictions: &Restrictions) -> bool {
        // Even a read-only agent may delegate. The name alone says nothing, because an extension can choose it.
        let is_harmless = |tool: &Arc<dyn Tool>| tool.is_read_only() || tool.delegates();
        !restrictions.is_read_only() || self.get(name).is_some_and(is_harmless)
    }

    /// Returns the names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// Returns the name, description and schema of a tool for the model.
    pub fn spec(&self, name: &str) -> Option<ToolSpec> {
        let tool = self.get(name)?;
        Some(ToolSpec {
            name: tool.name().to_owned(),
            description: tool.description(),
            schema: tool.schema(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenterhook_protocol::JsonObject;

    use super::*;

    #[test]
    fn schemas_are_plain_objects_that_forbid_unknown_arguments() {
        for name in Toolbox::standard().names() {
            let schema = Toolbox::standard().spec(name).unwrap().schema;
            assert_eq!(schema["type"], "object", "{name}");
            assert_eq!(schema["additionalProperties"], false, "{name}");
            assert!(!schema.to_string().contains("null"), "{schema}");
        }
        let shell = Toolbox::standard().spec("shell").unwrap().schema;
        assert_eq!(shell["required"], json!(["cmd"]));
        assert_eq!(shell["properties"]["timeout"]["type"], "integer");
    }

    #[test]
    fn an_unknown_argument_is_answered_with_the_known_ones() {
        let input = json!({"cmd": "ls", "dir": "/"});
        let error = ShellTool::default()
            .check(input.as_object().unwrap())
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "invalid arguments for `shell`: unknown field `dir`, expected one of `cmd`, `cwd`, `timeout`"
        );
        let missing = ShellTool::default()
            .check(&JsonObject::new())
            .unwrap_err()
            .to_string();
        assert_eq!(
            missing,
            "invalid arguments for `shell`: missing field `cmd`"
        );
    }

    #[test]
    fn a_tool_takes_the_place_of_one_of_its_name() {
        let toolbox = Toolbox::empty().with(ReadFile).with(Search).with(ReadFile);
        assert_eq!(toolbox.names().collect::<Vec<_>>(), ["search", "read_file"]);
    }
}
