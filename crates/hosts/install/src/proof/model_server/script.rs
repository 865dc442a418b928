//! What the model server answers: scripted turns, expressed without the tool names of any agent.

use serde_json::{Map, Value};
use tenterhook_systems::host::headless::{HeadlessRun, ModelTool};

/// The turns of a scripted model.
#[derive(Debug, Clone, Default)]
pub struct ModelScript {
    /// The turns that request tools.
    pub turns: Vec<ScriptedTurn>,
    /// The turns of a subagent. Its requests are those that do not show [`prompt`](Self::prompt).
    pub subagent_turns: Vec<ScriptedTurn>,
    /// The prompt of the main agent.
    pub prompt: String,
    /// The text of all further turns.
    pub final_text: String,
}

impl ModelScript {
    /// Returns whether a turn calls the tool of the MCP server.
    pub(crate) fn calls_mcp(&self) -> bool {
        let mut actions = self.turns.iter().flat_map(|turn| &turn.actions);
        actions.any(|action| matches!(action, ScriptedAction::Mcp { .. }))
    }
}

/// One answer of the scripted model.
#[derive(Debug, Clone, Default)]
pub struct ScriptedTurn {
    /// A text for the user. May be empty.
    pub text: String,
    /// The tool calls.
    pub actions: Vec<ScriptedAction>,
}

/// A tool call, independent of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptedAction {
    /// Runs a shell line.
    Shell {
        /// The line.
        command: String,
    },
    /// Creates a file.
    Write {
        /// The absolute path.
        path: String,
        /// The content, a single line.
        content: String,
    },
    /// Calls the tool of the MCP server.
    Mcp {
        /// The argument `command`, without quotes.
        command: String,
    },
    /// Starts a subagent.
    Delegate {
        /// The prompt of the subagent.
        prompt: String,
    },
}

impl ScriptedAction {
    /// Returns the tool of the host that does this, if the host has one.
    pub(crate) fn tool(&self, run: &HeadlessRun) -> Option<ModelTool> {
        match self {
            Self::Shell { .. } => Some(run.shell),
            Self::Write { .. } => Some(run.write),
            Self::Mcp { .. } => run.mcp.map(|mcp| mcp.tool),
            Self::Delegate { .. } => run.subagent.map(|subagent| subagent.tool),
        }
    }

    /// Returns whether a request must offer the tool. Some hosts offer tools of MCP servers only after a search.
    pub(crate) const fn must_be_offered(&self) -> bool {
        !matches!(self, Self::Mcp { .. })
    }

    /// Returns the arguments of the call.
    pub(crate) fn arguments(&self, tool: &ModelTool) -> Result<Value, serde_json::Error> {
        let template: Value = serde_json::from_str(tool.arguments)?;
        Ok(self.fill(template))
    }

    fn fill(&self, template: Value) -> Value {
        match template {
            Value::String(text) => Value::String(match self {
                Self::Shell { command } | Self::Mcp { command } => {
                    text.replace("{command}", command)
                }
                Self::Delegate { prompt } => text.replace("{prompt}", prompt),
                Self::Write { path, content } => {
                    text.replace("{path}", path).replace("{content}", content)
                }
            }),
            Value::Array(list) => list.into_iter().map(|item| self.fill(item)).collect(),
            Value::Object(fields) => {
                let filled = fields
                    .into_iter()
                    .map(|(key, value)| (key, self.fill(value)));
                Value::Object(filled.collect::<Map<String, Value>>())
            }
            other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
        }
    }
}

/// A tool call in the terms of a host.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelCall {
    pub(crate) id: String,
    pub(crate) tool: &'static str,
    /// An object, or a string for a tool that takes free text.
    pub(crate) arguments: Value,
}

impl ModelCall {
    /// Returns the arguments as text: free text as it is, an object as JSON.
    pub(crate) fn arguments_text(&self) -> String {
        let text = self.arguments.as_str().map(str::to_owned);
        text.unwrap_or_else(|| self.arguments.to_string())
    }

    /// Returns whether the tool takes free text.
    pub(crate) fn is_free_text(&self) -> bool {
        self.arguments.is_string()
    }
}

/// One answer in the terms of a host.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ModelTurn {
    pub(crate) text: String,
    pub(crate) calls: Vec<ModelCall>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn placeholders_are_filled_after_parsing_so_quotes_in_a_command_are_kept() {
        let tool = ModelTool {
            name: "run",
            arguments: r#"{"commands": ["{command}"], "background": false}"#,
        };
        let action = ScriptedAction::Shell {
            command: r#"echo "a b" > out.txt"#.to_owned(),
        };
        assert_eq!(
            action.arguments(&tool).unwrap(),
            json!({ "commands": [r#"echo "a b" > out.txt"#], "background": false })
        );
    }

    #[test]
    fn a_string_template_is_free_text() {
        let tool = ModelTool {
            name: "patch",
            arguments: r#""add {path}\n+{content}""#,
        };
        let action = ScriptedAction::Write {
            path: "/w/a".to_owned(),
            content: "x".to_owned(),
        };
        assert_eq!(action.arguments(&tool).unwrap(), json!("add /w/a\n+x"));
    }
}
