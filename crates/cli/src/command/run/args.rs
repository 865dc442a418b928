//! The options of `tenterhook run`.

use crate::agent_args::AgentArgs;
use crate::session_dir_args::SessionDirArgs;
use clap::{Parser, ValueEnum};

use crate::conversation::format::Format;

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook run [OPTIONS] [PROMPT]")]
pub(crate) struct RunArgs {
    /// The prompt. Without it, prompts are read from stdin, one per line; a line `/help` lists the commands that you
    /// can use there.
    pub(crate) prompt: Option<String>,

    #[command(flatten)]
    pub(crate) session: SessionArgs,

    #[command(flatten)]
    pub(crate) agent: AgentArgs,

    #[command(flatten)]
    pub(crate) work: WorkArgs,

    /// Set a flag that a script hook registers: `NAME` or `NAME=VALUE`. May be repeated.
    #[arg(long = "flag", value_name = "NAME[=VALUE]")]
    pub(crate) flags: Vec<String>,

    /// Let every tool run without asking you, unless a rule or a hook denies it.
    #[arg(long)]
    pub(crate) yes: bool,

    /// Show every event that reached a hook, not only those that hooks changed or stopped.
    #[arg(long)]
    pub(crate) timeline: bool,

    /// Show what hooks do on a web page while the agent runs. The link is printed on stderr.
    #[arg(long)]
    pub(crate) inspect: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What the agent works on, and whether hooks watch it.
#[derive(Debug, Clone, Parser)]
pub(crate) struct WorkArgs {
    /// Run no hooks and no recipe handlers, and start none of their programs. Hooks that the machine's administrator
    /// manages still run.
    #[arg(long, conflicts_with_all = [
        "strict", "deny_untrusted", "extensions", "pre_tool_use", "post_tool_use", "session_start", "session_end", "on_user_input", "stop",
    ])]
    pub(crate) no_hooks: bool,

    /// Run prompts that begin with `!` as your own shell commands, even if prompts do not come from a terminal. No
    /// permission rule and no tool gate checks these commands.
    #[arg(long)]
    pub(crate) shell_lines: bool,

    /// Start from a recipe, a Markdown file: give its path, or its name in `.tenterhook/recipes`, `.kodelet/recipes`
    /// or your own folder of recipes. PROMPT is added to the recipe's text.
    #[arg(long, value_name = "NAME")]
    pub(crate) recipe: Option<String>,

    /// Set an argument of the recipe, for example `--arg name=Ada`. May be repeated.
    #[arg(long = "arg", value_name = "NAME=VALUE", requires = "recipe", value_parser = recipe_argument)]
    pub(crate) recipe_arguments: Vec<(String, String)>,

    /// Run the commands of `{{bash …}}` in a recipe that is not in your own folders.
    #[arg(long, requires = "recipe")]
    pub(crate) recipe_commands: bool,
}

/// Which session the agent starts or resumes.
#[derive(Debug, Clone, Parser)]
pub(crate) struct SessionArgs {
    /// Resume a stored session of the agent's folder. ID is the session's id or the beginning of it. Without ID, the
    /// most recently written session is resumed.
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", conflicts_with = "no_session")]
    pub(crate) resume: Option<String>,

    /// Do not store the session.
    #[arg(long)]
    pub(crate) no_session: bool,

    #[command(flatten)]
    pub(crate) dir: SessionDirArgs,
}

/// Who the output is for.
#[derive(Debug, Clone, Copy, Parser)]
pub(crate) struct OutputArgs {
    /// Print only the answer. Messages for you go to stderr, and no question is asked.
    #[arg(short, long, conflicts_with = "timeline")]
    print: bool,

    /// What to print.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "timeline")]
    output_format: Option<OutputFormat>,

    /// The same as `--output-format json`.
    #[arg(long, conflicts_with_all = ["timeline", "output_format"])]
    json: bool,

    /// Who uses the agent: a person, or a program that speaks JSON-RPC on stdin and stdout.
    #[arg(long, value_enum, value_name = "MODE", default_value_t = Mode::Text, conflicts_with_all = [
        "timeline", "print", "output_format", "json", "prompt", "recipe",
    ])]
    mode: Mode,
}

/// What a run prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Text for people.
    Text,
    /// One JSON object at the end.
    Json,
    /// Each event as a JSON object on its own line as it happens, then the object of `json` at the end.
    Jsonl,
}

/// Who uses the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// A person, or a program that writes prompts as lines of text.
    Text,
    /// A program that speaks JSON-RPC.
    Rpc,
}

impl OutputArgs {
    /// Returns what to print.
    pub(crate) fn format(self) -> Format {
        match (self.mode, self.output_format) {
            (Mode::Rpc, _) => Format::Rpc,
            (Mode::Text, Some(OutputFormat::Jsonl)) => Format::Jsonl,
            (Mode::Text, Some(OutputFormat::Json)) => Format::Json,
            (Mode::Text, _) if self.json => Format::Json,
            (Mode::Text, _) if self.print => Format::Answer,
            (Mode::Text, _) => Format::Text,
        }
    }
}

fn recipe_argument(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected `NAME=VALUE`".to_owned()),
    }
}
