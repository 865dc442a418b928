//! The options of `tenterhook run`.

use std::error::Error;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use tenterhook_agent::{Rule, ThinkingLevel};

use crate::command::sessions::args::SessionDirArgs;
use crate::conversation::format::Format;
use crate::hook_args::{HookArgs, LineArgs};
use crate::journal::JournalArgs;

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook run [OPTIONS] [PROMPT]")]
pub(crate) struct RunArgs {
    /// The prompt. Without it, prompts are read from stdin, one per line; a line `/help` lists the commands that you
    /// can use there.
    pub(crate) prompt: Option<String>,

    #[command(flatten)]
    pub(crate) session: SessionArgs,

    #[command(flatten)]
    pub(crate) hooks: HookArgs,

    #[command(flatten)]
    pub(crate) lines: LineArgs,

    #[command(flatten)]
    pub(crate) work: WorkArgs,

    #[command(flatten)]
    pub(crate) journal: JournalArgs,

    /// Set a flag that a script hook registers: `NAME` or `NAME=VALUE`. May be repeated.
    #[arg(long = "flag", value_name = "NAME[=VALUE]")]
    pub(crate) flags: Vec<String>,

    /// The model: `scripted:FILE`, `openai:MODEL`, `anthropic:MODEL`, `gemini:MODEL`, `ollama:MODEL`, or a name from
    /// `models.yaml`. The default is the agent file's model, else the model that the resumed session used last.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// How much the model thinks: off, minimal, low, medium, high or xhigh. By default, the model service decides.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) thinking: Option<ThinkingLevel>,

    /// The base URL of the model service, if it is not the usual one.
    #[arg(long, value_name = "URL", value_parser = base_url)]
    pub(crate) base_url: Option<String>,

    /// The folder that the agent works in.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,

    /// Let every tool run without asking you, unless a rule or a hook denies it.
    #[arg(long)]
    pub(crate) yes: bool,

    /// Let matching tool calls run without asking you: `TOOL` or `TOOL(ARGUMENT=PATTERN)`. May be repeated.
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<Rule>,

    /// Ask before matching tool calls. May be repeated.
    #[arg(long, value_name = "RULE")]
    pub(crate) ask: Vec<Rule>,

    /// Deny matching tool calls. May be repeated.
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<Rule>,

    /// Ask you whether to continue after this many model calls in one run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,

    /// Compact the conversation when it reaches this many tokens. The default is 90 % of the model's context window.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) compact_at: Option<u64>,

    /// Run no more tools once the session has used this many tokens.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) token_budget: Option<u64>,

    /// Retry a call of TOOL that fails until it has run N times, with growing pauses: `TOOL=N`. Hooks judge each
    /// attempt. May be repeated.
    #[arg(long, value_name = "TOOL=N", value_parser = attempts)]
    pub(crate) attempts: Vec<(String, u32)>,

    /// Show every event that reached a hook, not only those that hooks changed or stopped.
    #[arg(long)]
    pub(crate) timeline: bool,

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

/// Reads `TOOL=N`, how often a tool may run for one call.
fn attempts(text: &str) -> Result<(String, u32), String> {
    let most = 100;
    let (tool, number) = text.split_once('=').unwrap_or((text, ""));
    let number = number
        .parse()
        .ok()
        .filter(|number| (1..=most).contains(number));
    match number {
        Some(number) if !tool.is_empty() => Ok((tool.to_owned(), number)),
        _ => Err(format!("expected `TOOL=N` with a number from 1 to {most}")),
    }
}

/// Reads an absolute URL of a web service.
fn base_url(text: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
    if tenterhook_providers::is_base_url(text) {
        Ok(text.to_owned())
    } else {
        Err("expected a URL such as `https://host/v1`".into())
    }
}

fn recipe_argument(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected `NAME=VALUE`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_has_a_scheme_and_a_host() {
        for text in [
            "http://localhost:8080/v1/",
            "https://host",
            "http://[::1]:8080",
        ] {
            assert_eq!(base_url(text).unwrap(), text);
        }
        for text in [
            "",
            "localhost:8080",
            "ftp://host",
            "http://",
            "https:///v1",
            "http://:80",
            "http://a b",
        ] {
            assert!(base_url(text).is_err(), "{text}");
        }
    }
}
