//! How a host runs without a person and without a model service, to prove that it follows hooks.
//!
//! A proof starts the real program in an empty home folder and points it to a model server on the same
//! machine. The texts of a [`HeadlessRun`] may contain these placeholders:
//!
//! | placeholder | value |
//! |---|---|
//! | `{url}` | the address of the model server, for example `http://127.0.0.1:4100` |
//! | `{home}` | the home folder of the run |
//! | `{work}` | the folder in which the agent works |
//! | `{prompt}` | the prompt |
//! | `{mcp}` | [`McpRun::entry`] in runs with an MCP server, otherwise nothing |
//! | `{server}` | the program of the MCP server |

/// How to run a host without a person, against a model server on the same machine.
#[derive(Debug)]
pub struct HeadlessRun {
    /// The arguments of the program.
    pub arguments: &'static [&'static str],
    /// The environment variables.
    pub variables: &'static [(&'static str, &'static str)],
    /// Files of the home folder that exist before Tenterhook is installed: the path and the text.
    pub files: &'static [(&'static str, &'static str)],
    /// The arguments of runs of the program that must come first, for example to store a key.
    pub preparations: &'static [&'static [&'static str]],
    /// The npm package that the host downloads before it loads a plugin.
    pub plugin_package: Option<PluginPackage>,
    /// How the model calls the shell.
    pub shell: ModelTool,
    /// How the model creates a file.
    pub write: ModelTool,
    /// How the model calls a tool of an MCP server; `None` if the host has no MCP servers.
    pub mcp: Option<McpRun>,
    /// How the model starts a subagent; `None` if the host offers none in such a run.
    pub subagent: Option<SubagentRun>,
}

/// An MCP server with the name `proof` and the tool `runner`, which takes a `command`.
#[derive(Debug, Clone, Copy)]
pub struct McpRun {
    /// The entry of the server in the host's configuration.
    pub entry: &'static str,
    /// How the model calls the tool.
    pub tool: ModelTool,
}

/// How the model of a host starts a subagent, which runs a command.
#[derive(Debug, Clone, Copy)]
pub struct SubagentRun {
    /// The tool. Its arguments contain `{prompt}`, the prompt of the subagent.
    pub tool: ModelTool,
    /// What hooks see of the calls of subagents.
    pub calls: SubagentCalls,
}

/// What hooks see of the calls of subagents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubagentCalls {
    /// The host says that a subagent calls.
    Named,
    /// Hooks judge the calls, but they look like calls of the main agent.
    Unnamed,
    /// No hook is asked.
    Unseen,
}

/// How the model calls a tool of the host.
#[derive(Debug, Clone, Copy)]
pub struct ModelTool {
    /// The name that the host offers to the model. A namespace and the name, with `/` between them, for a tool that is
    /// called in its namespace.
    pub name: &'static str,
    /// The arguments as JSON. The strings in it may contain `{command}`, `{path}` and `{content}`. A
    /// JSON string instead of an object is the input of a tool that takes free text.
    pub arguments: &'static str,
}

/// An npm package that a host downloads before it loads a plugin.
#[derive(Debug, Clone, Copy)]
pub struct PluginPackage {
    /// The name of the package.
    pub name: &'static str,
    /// The folders in which the host looks for it, with placeholders.
    pub folders: &'static [&'static str],
}

/// Values for the placeholders of a [`HeadlessRun`].
#[derive(Debug, Clone, Copy)]
pub struct Placeholders<'a> {
    /// The address of the model server.
    pub url: &'a str,
    /// The home folder of the run.
    pub home: &'a str,
    /// The folder in which the agent works.
    pub work: &'a str,
    /// The prompt.
    pub prompt: &'a str,
    /// The entry of the MCP server, or nothing.
    pub mcp: &'a str,
    /// The program of the MCP server.
    pub server: &'a str,
}

impl Placeholders<'_> {
    /// Returns the text with all placeholders replaced.
    pub fn fill(&self, text: &str) -> String {
        text.replace("{mcp}", self.mcp)
            .replace("{server}", self.server)
            .replace("{url}", self.url)
            .replace("{home}", self.home)
            .replace("{work}", self.work)
            .replace("{prompt}", self.prompt)
    }
}
