//! The agent's tools and the canonical tools, as data: their arguments and their names in every hook system.

use serde::Serialize;
use serde_json::Value;
use tenterhook_systems::SYSTEMS;
use tenterhook_systems::tools::{
    CANONICAL_TOOLS, CanonicalTool, NATIVE_SYSTEM, ToolRow, canonical_name,
};
use tenterhook_tools::{Agents, Tool, Toolbox, TransferTask, add_background_tools};

/// A canonical tool that the agent does not have, what it does, and whether it only reads.
const OTHERS: &[(&str, &str, bool)] = &[
    ("delete_file", "Deletes a file.", false),
    (
        "find_files",
        "Finds files whose names match a pattern.",
        true,
    ),
    ("web_fetch", "Fetches a page of the web.", true),
    ("web_search", "Searches the web.", true),
    ("task", "Gives a task to another agent.", false),
];

/// Values for arguments in example calls.
const EXAMPLES: &[(&str, &str)] = &[
    ("agent", "reviewer"),
    ("cmd", "'git status'"),
    ("content", "hello"),
    ("new_text", "two"),
    ("old_text", "one"),
    ("path", "README.md"),
    ("pattern", "TODO"),
    ("prompt", "'Fix the tests'"),
    ("query", "'agent hooks'"),
    ("task", "'Fix the tests'"),
    ("task_id", "task_1"),
    ("url", "https://example.com"),
];

/// The reference page of one tool.
///
/// `tenterhook tools NAME --json` prints it as JSON.
#[derive(Debug, Clone, Serialize)]
pub struct ToolPage {
    /// The name.
    pub name: String,
    /// The canonical tool that hooks of other systems see: the same, or a more general one.
    pub canonical: String,
    /// What the tool does.
    pub meaning: String,
    /// Whether the agent of `tenterhook run` has the tool. Other agents may have the other tools.
    #[serde(rename = "of_agent")]
    pub is_of_agent: bool,
    /// Whether the tool only reads. Any other tool may change files.
    #[serde(rename = "read_only")]
    pub is_read_only: bool,
    /// The arguments.
    pub arguments: Vec<ToolArgument>,
    /// The names in the other hook systems.
    pub names: Vec<ToolInSystem>,
    /// A command that sends a call of the tool to the guards.
    pub example: String,
}

/// One argument of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolArgument {
    /// The name.
    pub name: String,
    /// The type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Whether every call has it.
    pub required: bool,
    /// What it means. Empty for tools that the agent does not have.
    pub meaning: String,
}

/// A tool in another hook system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolInSystem {
    /// The system.
    pub system: &'static str,
    /// The name of the tool there.
    pub name: &'static str,
    /// Which calls of that name are meant, as Markdown. Empty if all are.
    pub when: String,
    /// The arguments there, and the arguments here that they stand for, as Markdown.
    pub arguments: String,
}

/// A tool that a name may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolNameMatch {
    /// The name of the tool.
    pub name: String,
    /// The hook systems that use the name that was looked for. Empty for our own names.
    pub systems: Vec<&'static str>,
}

impl ToolPage {
    /// Returns the pages of all tools: the tools of the agent, then the other canonical tools.
    pub fn all() -> Vec<Self> {
        let toolbox = agent_tools();
        let of_agent = toolbox.names().filter_map(|name| toolbox.get(name));
        let mut pages: Vec<Self> = of_agent.map(|tool| Self::of_agent_tool(&**tool)).collect();
        let others = OTHERS.iter().filter_map(|(name, meaning, is_read_only)| {
            let tool = CANONICAL_TOOLS.iter().find(|tool| tool.name == *name)?;
            Some(Self::of_canonical(tool, meaning, *is_read_only))
        });
        pages.extend(others);
        pages
    }

    /// Returns the page of a tool, by our name for it.
    pub fn of(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|page| page.name == name)
    }

    fn of_agent_tool(tool: &dyn Tool) -> Self {
        let arguments = arguments(&tool.schema());
        Self {
            name: tool.name().to_owned(),
            canonical: canonical_name(NATIVE_SYSTEM, tool.name()).to_owned(),
            meaning: tool.description(),
            is_of_agent: true,
            is_read_only: tool.is_read_only(),
            names: names_in_systems(tool.name()),
            example: example(tool.name(), &arguments),
            arguments,
        }
    }

    fn of_canonical(tool: &CanonicalTool, meaning: &str, is_read_only: bool) -> Self {
        let argument = |name: &&str| ToolArgument {
            name: name.trim_end_matches('?').to_owned(),
            type_name: "string".to_owned(),
            required: !name.ends_with('?'),
            meaning: String::new(),
        };
        let arguments: Vec<ToolArgument> = tool.arguments.iter().map(argument).collect();
        Self {
            name: tool.name.to_owned(),
            canonical: tool.name.to_owned(),
            meaning: meaning.to_owned(),
            is_of_agent: false,
            is_read_only,
            names: names_in_systems(tool.name),
            example: example(tool.name, &arguments),
            arguments,
        }
    }

    /// Returns what the tool does to files, in a few words.
    pub(crate) fn effect(&self) -> &'static str {
        if self.is_read_only {
            "only reads"
        } else {
            "may change files"
        }
    }
}

impl ToolArgument {
    /// Returns the type, whether the argument is required, and its meaning.
    pub(crate) fn describe(&self) -> String {
        let required = if self.required { ", required" } else { "" };
        let text = format!("{}{required}. {}", self.type_name, self.meaning);
        text.trim_end().to_owned()
    }
}

/// Returns the tools that `text` may mean: our tool with this name, or else the tools that hook systems call so. The
/// result is empty if the name is unknown.
pub fn find_tool(text: &str) -> Vec<ToolNameMatch> {
    if ToolPage::of(text).is_some() {
        return vec![ToolNameMatch {
            name: text.to_owned(),
            systems: Vec::new(),
        }];
    }
    let mut found: Vec<ToolNameMatch> = Vec::new();
    for (system, row) in rows_of_others().filter(|(_, row)| row.name == text) {
        for tool in CANONICAL_TOOLS.iter().filter(|tool| row.can_be(tool.name)) {
            match found.iter_mut().find(|known| known.name == tool.name) {
                Some(known) if known.systems.contains(&system) => {}
                Some(known) => known.systems.push(system),
                None => found.push(ToolNameMatch {
                    name: tool.name.to_owned(),
                    systems: vec![system],
                }),
            }
        }
    }
    found
}

/// Returns every tool that the agent may have. Some of them need other agents.
fn agent_tools() -> Toolbox {
    let agents: Agents = std::iter::empty().collect();
    let toolbox = Toolbox::standard().with(TransferTask::for_agents(agents.clone()));
    add_background_tools(toolbox, &agents)
}

/// Returns the arguments in a JSON Schema, the required ones first.
fn arguments(schema: &Value) -> Vec<ToolArgument> {
    let text = |value: Option<&Value>| {
        let text = value.and_then(Value::as_str).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten();
    let mut arguments: Vec<ToolArgument> = properties
        .map(|(name, property)| ToolArgument {
            name: name.clone(),
            type_name: text(property.get("type")),
            required: is_required(name),
            meaning: text(property.get("description")),
        })
        .collect();
    arguments.sort_by_key(|argument| !argument.required);
    arguments
}

/// Returns the tools of other systems that stand for one of our tools.
fn names_in_systems(tool: &str) -> Vec<ToolInSystem> {
    let canonical = canonical_name(NATIVE_SYSTEM, tool);
    let rows = rows_of_others().filter(|(_, row)| row.can_be(canonical));
    let names = rows.map(|(system, row)| {
        let (when, arguments) = row.describe();
        ToolInSystem {
            system,
            name: row.name,
            when: when.trim().to_owned(),
            arguments,
        }
    });
    names.collect()
}

fn rows_of_others() -> impl Iterator<Item = (&'static str, &'static ToolRow)> {
    let others = SYSTEMS.iter().filter(|system| system.name != NATIVE_SYSTEM);
    others.flat_map(|system| system.tools.rows.iter().map(|row| (system.name, row)))
}

/// Returns a command that sends a call with all required arguments.
fn example(tool: &str, arguments: &[ToolArgument]) -> String {
    let required = arguments.iter().filter(|argument| argument.required);
    let options = required.map(|argument| {
        let name = &argument.name;
        let value = EXAMPLES.iter().find(|(known, _)| known == name);
        format!(" --arg {name}={}", value.map_or("text", |(_, value)| value))
    });
    let options: String = options.collect();
    format!("tenterhook fire tool_guard --tool {tool}{options}")
}
