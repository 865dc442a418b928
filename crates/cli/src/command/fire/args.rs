//! The options of `tenterhook fire`.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use serde_json::Value;
use tenterhook_systems::form::readable_forms;

use crate::hook_args::HookArgs;
use crate::journal_args::JournalArgs;

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook fire [OPTIONS] <EVENT>")]
pub(crate) struct FireArgs {
    /// The event's name, such as `pre_tool_use`, or `x-<vendor>.<name>` for a user-defined event.
    pub(crate) event: String,

    #[command(flatten)]
    pub(crate) payload: PayloadArgs,

    /// Run only the hooks of this script, or of another file that `--hooks` accepts. Naming it is an approval. The other
    /// hooks of the project and yours are left out, unless `--hooks` names them.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) hooks: HookArgs,

    #[command(flatten)]
    pub(crate) journal: JournalArgs,

    /// Print a single JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The options that make the event's payload.
#[derive(Debug, Parser)]
pub(crate) struct PayloadArgs {
    /// The file with the event's payload, a JSON object; `-` is stdin. Keys such as `session_id`, `cwd` and `agent`
    /// set where the event comes from. The JSON that hooks of another hook system read on stdin works too. The
    /// default is an empty object.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// The hook system or coding agent in whose form the input is, or whose names `--tool` and `--arg` have. By default, the keys of
    /// the input or the arguments of the tool decide.
    #[arg(long, value_name = "SYSTEM", value_parser = PossibleValuesParser::new(readable_forms()))]
    pub(crate) from: Option<String>,

    /// Print an example payload of the event and run no hooks. With `--from`, print it in the form of that hook
    /// system.
    #[arg(long, conflicts_with = "input")]
    pub(crate) example: bool,

    /// Make the payload of a call to this tool. `fire` translates names and arguments of other hook systems.
    #[arg(long, value_name = "NAME", conflicts_with = "input")]
    pub(crate) tool: Option<String>,

    /// An argument of the tool. A value that is valid JSON is read as JSON, any other value as text. May be repeated.
    #[arg(long = "arg", value_name = "NAME=VALUE", requires = "tool", conflicts_with = "input", value_parser = tool_argument)]
    pub(crate) args: Vec<(String, Value)>,

    /// The agent that the event comes from. Hooks for other agents do not run.
    #[arg(long, value_name = "NAME", conflicts_with = "input")]
    pub(crate) agent: Option<String>,
}

/// Reads `NAME=VALUE`. A value that is not valid JSON is text.
fn tool_argument(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("expected `NAME=VALUE`")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((name.to_owned(), value))
}
