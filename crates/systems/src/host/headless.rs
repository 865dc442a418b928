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
}

/// How the model calls a tool of the host.
#[derive(Debug, Clone, Copy)]
pub struct ModelTool {
    /// The name that the host offers to the model.
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
}

impl Placeholders<'_> {
    /// Returns the text with all placeholders replaced.
    pub fn fill(&self, text: &str) -> String {
        text.replace("{url}", self.url)
            .replace("{home}", self.home)
            .replace("{work}", self.work)
            .replace("{prompt}", self.prompt)
    }
}
