//! The arguments of every command.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Parser, Subcommand, ValueEnum};
use serde_json::Value;
use tenterhook::EventKind;
use tenterhook_agent::{Rule, ThinkingLevel};
use tenterhook_config::{FolderName, HookLine, LOAD_DEADLINE};
use tenterhook_dialects::form::FORMS;

use crate::exit::EXIT_HELP;

/// Lifecycle hooks for AI agents: one engine, every protocol.
#[derive(Debug, Parser)]
#[command(name = "tenterhook", version, propagate_version = true, after_help = EXIT_HELP)]
pub(crate) struct Args {
    /// When to use colour.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    pub(crate) fn apply(self) {
        let choice = match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show hooks at work: a scripted session with real shell commands in a temporary folder.
    Demo(DemoArgs),
    /// Run the agent on a prompt.
    Run(Box<RunArgs>),
    /// Send one event through the hooks and show what they decide.
    Fire(FireArgs),
    /// List the hooks in the order in which they run.
    List(ListArgs),
    /// Check hook files and report every problem.
    Check(CheckArgs),
    /// Say which hooks an event would run, which not, and why.
    Explain(ExplainArgs),
    /// Look at the hooks that this project brings, approve them, take that back.
    Trust(TrustArgs),
    /// Disable a source of hooks, such as a script that cannot be loaded. It stays disabled until you enable it.
    #[command(override_usage = "tenterhook disable [OPTIONS] <SOURCE>")]
    Disable(SourceArgs),
    /// Enable a source of hooks that was disabled.
    #[command(override_usage = "tenterhook enable [OPTIONS] <SOURCE>")]
    Enable(SourceArgs),
    /// Work with the processes that serve hooks of scripts.
    #[cfg(unix)]
    Worker(WorkerArgs),
    /// Show and take back what agents changed in the files of a work tree.
    Snapshot(SnapshotArgs),
    /// Look at the stored sessions of a folder.
    Sessions(SessionsArgs),
}

#[cfg(unix)]
#[derive(Debug, Parser)]
pub(crate) struct WorkerArgs {
    #[command(subcommand)]
    pub(crate) command: WorkerCommand,
}

#[cfg(unix)]
#[derive(Debug, Subcommand)]
pub(crate) enum WorkerCommand {
    /// Check whether a program speaks the protocol of workers.
    Check {
        /// A script for the worker, with at least one hook.
        #[arg(long, value_name = "FILE")]
        script: PathBuf,

        /// Whose hooks the script has.
        #[arg(long, value_name = "NAME", default_value = "tenterhook")]
        api: String,

        /// Print one JSON object.
        #[arg(long)]
        json: bool,

        /// The program and its arguments.
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
}

#[derive(Debug, Parser)]
pub(crate) struct SnapshotArgs {
    #[command(subcommand)]
    pub(crate) command: SnapshotCommand,

    /// A folder of the work tree.
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,

    /// Print one JSON object.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Keep the files as they are now.
    Checkpoint {
        /// What to call it.
        #[arg(long, value_name = "TEXT")]
        label: Option<String>,
    },
    /// List the checkpoints, newest first.
    List,
    /// Take back the newest change of an agent that was not taken back yet. Other files stay as they are.
    Undo {
        /// How many changes to take back.
        #[arg(value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..).map(usize::from))]
        count: usize,

        #[command(flatten)]
        restore: RestoreArgs,
    },
    /// Put all files back to how they were before a checkpoint, or at one that was asked for.
    Reset {
        /// The checkpoint's number in `list`.
        #[arg(value_name = "ID")]
        id: u64,

        #[command(flatten)]
        restore: RestoreArgs,
    },
}

/// How files are restored.
#[derive(Debug, Clone, Copy, Parser)]
pub(crate) struct RestoreArgs {
    /// Overwrite what was changed since.
    #[arg(long)]
    pub(crate) force: bool,

    /// Change nothing; show what would be changed.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,

    /// The folder that the agent worked in.
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,

    #[command(flatten)]
    pub(crate) dir: SessionDirArgs,

    /// Print one JSON object.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions, the one that was written to last first.
    List,
    /// Show the tree of a session, an entry a line.
    Show {
        /// The session: its id, or how the id begins.
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Print the conversation of a session in full, as Markdown.
    Export {
        /// The session: its id, or how the id begins.
        #[arg(value_name = "ID")]
        id: String,
    },
}

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook demo [OPTIONS]")]
pub(crate) struct DemoArgs {
    /// Guard the session with a hook in Python, one in JavaScript and one for the shell. Needs `python3` and `node`.
    #[arg(long)]
    pub(crate) scripts: bool,

    /// Print one JSON object instead of a timeline.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which hooks, and how strictly.
#[derive(Debug, Clone, Parser)]
pub(crate) struct HookArgs {
    /// A hook file (YAML, TOML or JSON), native or a docker-agent agent file. May be repeated.
    #[arg(long = "hooks", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Go on without the hook files, scripts and folders that cannot be loaded, with a warning for each.
    #[arg(long)]
    pub(crate) lenient: bool,

    /// Make every gate deny when a hook of it fails, whatever its `on_error` says.
    #[arg(long)]
    pub(crate) strict: bool,

    /// Make what an untrusted hook of the project may guard be denied, in the place of leaving the hook out.
    #[arg(long)]
    pub(crate) deny_untrusted: bool,

    /// An extension of pi: a file, its folder, or a folder of extensions. Loaded last. May be repeated.
    #[arg(short = 'e', long = "extension", value_name = "PATH")]
    pub(crate) extensions: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) load: DeadlineArgs,

    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

/// How long sources of hooks may take to load.
#[derive(Debug, Clone, Copy, Parser)]
pub(crate) struct DeadlineArgs {
    /// How long each script, executable or extension may take to load, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = LOAD_DEADLINE.as_secs(), value_parser = clap::value_parser!(u64).range(1..=3600))]
    load_timeout: u64,
}

impl DeadlineArgs {
    pub(crate) fn deadline(self) -> Duration {
        Duration::from_secs(self.load_timeout)
    }
}

impl Default for DeadlineArgs {
    fn default() -> Self {
        Self {
            load_timeout: LOAD_DEADLINE.as_secs(),
        }
    }
}

/// Which hooks are looked for where a system has several sets of them.
#[derive(Debug, Clone, Default, Parser)]
pub(crate) struct PlaceArgs {
    /// The workspace: of `workspaces` in the project, morphix's hooks of this one are in force. The default is what
    /// `TENTERHOOK_WORKSPACE` names, else `main`.
    #[arg(long, value_name = "NAME")]
    pub(crate) workspace: Option<FolderName>,

    /// The profile of Operator whose hooks are in force. The default is what `OPERATOR_PROFILE` names, else `default`.
    #[arg(long, value_name = "NAME")]
    pub(crate) operator_profile: Option<FolderName>,
}

/// Where the user's own hooks are.
#[derive(Debug, Clone, Parser)]
pub(crate) struct ConfigArgs {
    /// The user's configuration folder, whose `hooks.d` has hooks for every call. The default is what
    /// `TENTERHOOK_CONFIG_DIR` names, else `tenterhook` in the platform's folder for configuration.
    #[arg(long, value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,
}

/// Hooks that are shell lines, in docker-agent's contract. They run after those of files.
#[derive(Debug, Clone, Default, Parser)]
pub(crate) struct LineArgs {
    /// Run LINE before every tool call. May be repeated, as the other `--hook-` options.
    #[arg(long = "hook-pre-tool-use", value_name = "LINE")]
    pub(crate) pre_tool_use: Vec<String>,

    /// Run LINE after every tool call.
    #[arg(long = "hook-post-tool-use", value_name = "LINE")]
    pub(crate) post_tool_use: Vec<String>,

    /// Run LINE when a session starts.
    #[arg(long = "hook-session-start", value_name = "LINE")]
    pub(crate) session_start: Vec<String>,

    /// Run LINE when a session ends.
    #[arg(long = "hook-session-end", value_name = "LINE")]
    pub(crate) session_end: Vec<String>,

    /// Run LINE when the user is waited for.
    #[arg(long = "hook-on-user-input", value_name = "LINE")]
    pub(crate) on_user_input: Vec<String>,

    /// Run LINE when the model is done.
    #[arg(long = "hook-stop", value_name = "LINE")]
    pub(crate) stop: Vec<String>,
}

impl LineArgs {
    /// Returns every line with its option, event by event.
    pub(crate) fn lines(&self) -> impl Iterator<Item = HookLine<'_>> {
        let options = [
            (
                "--hook-pre-tool-use",
                EventKind::PreToolUse,
                &self.pre_tool_use,
            ),
            (
                "--hook-post-tool-use",
                EventKind::PostToolUse,
                &self.post_tool_use,
            ),
            (
                "--hook-session-start",
                EventKind::SessionStart,
                &self.session_start,
            ),
            (
                "--hook-session-end",
                EventKind::SessionEnd,
                &self.session_end,
            ),
            (
                "--hook-on-user-input",
                EventKind::WaitingForUser,
                &self.on_user_input,
            ),
            ("--hook-stop", EventKind::Stop, &self.stop),
        ];
        options.into_iter().flat_map(|(option, event, lines)| {
            lines.iter().map(move |line| HookLine {
                option,
                event,
                line,
            })
        })
    }
}

/// Where records go.
#[derive(Debug, Parser)]
pub(crate) struct JournalArgs {
    /// Append the journal to FILE instead of the day's file in the user's state folder.
    #[arg(long, value_name = "FILE", conflicts_with = "no_journal")]
    pub(crate) journal: Option<PathBuf>,

    /// Write no journal.
    #[arg(long)]
    pub(crate) no_journal: bool,
}

/// What the agent works on, and whether hooks watch it.
#[derive(Debug, Clone, Parser)]
pub(crate) struct WorkArgs {
    /// Run no hooks, whatever files and folders have: no executables, no handlers of recipes. What the machine's
    /// administrator manages runs all the same.
    #[arg(long, conflicts_with_all = [
        "strict", "deny_untrusted", "extensions", "pre_tool_use", "post_tool_use", "session_start", "session_end", "on_user_input", "stop",
    ])]
    pub(crate) no_hooks: bool,

    /// Run what stands behind `!` at the beginning of a prompt as a shell command of yours, also where prompts do not come
    /// from a terminal. No rule and no gate of tools judges it.
    #[arg(long)]
    pub(crate) shell_lines: bool,

    /// Work on a recipe: a Markdown file by its path, or by its name in `.tenterhook/recipes`, `.kodelet/recipes` or the
    /// user's folder. PROMPT is added to the recipe's own.
    #[arg(long, value_name = "NAME")]
    pub(crate) recipe: Option<String>,
}

/// Which session the agent leads.
#[derive(Debug, Clone, Parser)]
pub(crate) struct SessionArgs {
    /// Go on with a stored session of the folder that the agent works in: the one of that id, or whose id begins so.
    /// Without ID, the one that was written to last.
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", conflicts_with = "no_session")]
    pub(crate) resume: Option<String>,

    /// Do not store the session.
    #[arg(long)]
    pub(crate) no_session: bool,

    #[command(flatten)]
    pub(crate) dir: SessionDirArgs,
}

/// Where sessions are stored.
#[derive(Debug, Clone, Parser)]
pub(crate) struct SessionDirArgs {
    /// The folder that sessions are stored in, whatever hooks say.
    #[arg(long = "session-dir", global = true, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook run [OPTIONS] [PROMPT]")]
pub(crate) struct RunArgs {
    /// What to ask. Without it, prompts are read from stdin, one a line; `/help` shows the commands that may stand among them.
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

    /// Set a flag that a script registers: `NAME` or `NAME=VALUE`. May be repeated.
    #[arg(long = "flag", value_name = "NAME[=VALUE]")]
    pub(crate) flags: Vec<String>,

    /// The model: `scripted:FILE`, `openai:MODEL`, `anthropic:MODEL`, `gemini:MODEL`, `ollama:MODEL`, or a name of
    /// `models.yaml`. The default is that of the agent file, else the one that the session was led with.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// How much the model thinks: off, minimal, low, medium, high or xhigh. The default leaves it to the service.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) thinking: Option<ThinkingLevel>,

    /// The service's base URL, where it is not the service's own.
    #[arg(long, value_name = "URL", value_parser = base_url)]
    pub(crate) base_url: Option<String>,

    /// Where the agent works.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,

    /// Let every tool run without a question, unless a rule or a hook denies it.
    #[arg(long)]
    pub(crate) yes: bool,

    /// Let matching tool calls run without a question: `TOOL` or `TOOL(ARGUMENT=PATTERN)`. May be repeated.
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<Rule>,

    /// Ask before matching tool calls. May be repeated.
    #[arg(long, value_name = "RULE")]
    pub(crate) ask: Vec<Rule>,

    /// Deny matching tool calls. May be repeated.
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<Rule>,

    /// Model calls of one run before the user is asked whether to go on.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,

    /// Compact the conversation when it reaches this many tokens. The default is 90 % of the model's window.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) compact_at: Option<u64>,

    /// Run no more tools when the session has used this many tokens.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) token_budget: Option<u64>,

    /// Run a tool up to N times for one call when it fails, with growing pauses: `TOOL=N`. Hooks judge each attempt. May be repeated.
    #[arg(long, value_name = "TOOL=N", value_parser = attempts)]
    pub(crate) attempts: Vec<(String, u32)>,

    /// Show every event that reached a hook, not only what hooks changed or stopped.
    #[arg(long)]
    pub(crate) timeline: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Who the output is for.
#[derive(Debug, Clone, Copy, Parser)]
pub(crate) struct OutputArgs {
    /// Print the answer and nothing else. What the user should know goes to stderr; nobody is asked anything.
    #[arg(short, long, conflicts_with = "timeline")]
    print: bool,

    /// What to print.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "timeline")]
    output_format: Option<OutputFormat>,

    /// The same as `--output-format json`.
    #[arg(long, conflicts_with_all = ["timeline", "output_format"])]
    json: bool,

    /// Who talks: a person, or a program in JSON-RPC on stdin and stdout.
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
    /// Every event as a JSON object in a line of its own while it happens, and the object of `json` at the end.
    Jsonl,
}

/// Who talks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// A person, or lines of text.
    Text,
    /// A program, in JSON-RPC.
    Rpc,
}

/// What a run prints, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Everything, for people.
    Text,
    /// The answers.
    Answer,
    /// The report.
    Json,
    /// Every event, then the report.
    Jsonl,
    /// Messages of JSON-RPC.
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

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook fire [OPTIONS] <EVENT>")]
pub(crate) struct FireArgs {
    /// The event: a name of the catalogue, or `x-<vendor>.<name>`.
    pub(crate) event: String,

    #[command(flatten)]
    pub(crate) payload: PayloadArgs,

    #[command(flatten)]
    pub(crate) hooks: HookArgs,

    #[command(flatten)]
    pub(crate) journal: JournalArgs,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is sent to the hooks.
#[derive(Debug, Parser)]
pub(crate) struct PayloadArgs {
    /// The event's payload as a JSON object; `-` is stdin. Keys such as `session_id`, `cwd` and `agent` say where
    /// the event comes from. What a hook of another system reads on its stdin works too. The default is an empty object.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// The form of the input: whose hook would read it. The default is recognised by its keys.
    #[arg(long, value_name = "SYSTEM", value_parser = PossibleValuesParser::new(FORMS.map(|form| form.name)))]
    pub(crate) from: Option<String>,

    /// Print an example of the event's payload and run no hooks. With `--from`, print it in the form of that system.
    #[arg(long, conflicts_with = "input")]
    pub(crate) example: bool,

    /// Make the payload of a call of this tool.
    #[arg(long, value_name = "NAME", conflicts_with = "input")]
    pub(crate) tool: Option<String>,

    /// An argument of the tool. A value that is JSON is read as JSON, any other is text. May be repeated.
    #[arg(long = "arg", value_name = "NAME=VALUE", requires = "tool", conflicts_with = "input", value_parser = tool_argument)]
    pub(crate) args: Vec<(String, Value)>,
}

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook list [OPTIONS]")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) hooks: HookArgs,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook check [OPTIONS] [FILE]...")]
pub(crate) struct CheckArgs {
    /// The hook files. Without a file and `--extension`, everything that is in force here is checked.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// An extension of pi to load and check: a file, its folder, or a folder of extensions. May be repeated.
    #[arg(short = 'e', long = "extension", value_name = "PATH")]
    pub(crate) extensions: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) load: DeadlineArgs,

    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    #[command(flatten)]
    pub(crate) config: ConfigArgs,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl CheckArgs {
    /// Returns how everything that is in force is loaded.
    pub(crate) fn hook_args(&self) -> HookArgs {
        HookArgs {
            files: self.files.clone(),
            lenient: false,
            strict: false,
            deny_untrusted: false,
            extensions: self.extensions.clone(),
            load: self.load,
            place: self.place.clone(),
            config: self.config.clone(),
        }
    }
}

/// Which source of hooks to disable or to enable.
#[derive(Debug, Parser)]
pub(crate) struct SourceArgs {
    /// The source: the path of a hook file, of a file of a hooks folder, or the name that `tenterhook list` shows.
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,

    /// Do not ask. Needed where standard input is not a terminal.
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    #[command(flatten)]
    pub(crate) config: ConfigArgs,

    #[command(flatten)]
    pub(crate) journal: JournalArgs,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook explain [OPTIONS] <EVENT>")]
pub(crate) struct ExplainArgs {
    /// The event: a name of the catalogue, or `x-<vendor>.<name>`.
    pub(crate) event: String,

    /// The tool that the event is about. Without it, matchers of tools match.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,

    /// What else matchers of the event look at.
    #[arg(long, value_name = "TEXT", conflicts_with = "tool")]
    pub(crate) subject: Option<String>,

    #[command(flatten)]
    pub(crate) hooks: HookArgs,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook trust [OPTIONS] [HOOK]...")]
pub(crate) struct TrustArgs {
    /// The hooks, by their names. Those that are named are approved without a question; without names, each is
    /// asked for.
    #[arg(value_name = "HOOK")]
    pub(crate) names: Vec<String>,

    #[command(flatten)]
    pub(crate) mode: TrustMode,

    /// Accept, as they are, approvals that were given in another folder or another repository, so that their hooks run here
    /// instead of denying.
    #[arg(long, conflicts_with_all = ["show", "all", "revoke", "names"])]
    pub(crate) accept: bool,

    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    #[command(flatten)]
    pub(crate) config: ConfigArgs,

    /// Print one JSON object. To approve, this needs `--all` or names.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to do with the hooks of the project, where they are not approved one by one.
#[derive(Debug, Clone, Copy, Parser)]
pub(crate) struct TrustMode {
    /// Show what the project brings, and approve nothing.
    #[arg(long, conflicts_with_all = ["all", "revoke"])]
    pub(crate) show: bool,

    /// Approve everything without a question.
    #[arg(long, conflicts_with_all = ["revoke", "names"])]
    pub(crate) all: bool,

    /// Take approvals back: those of the named hooks, or all of this project.
    #[arg(long)]
    pub(crate) revoke: bool,
}

impl TrustArgs {
    /// Returns how hooks are loaded to be looked at: those of the layers and no others.
    pub(crate) fn hook_args(&self) -> HookArgs {
        HookArgs {
            files: Vec::new(),
            lenient: false,
            strict: false,
            deny_untrusted: false,
            extensions: Vec::new(),
            load: DeadlineArgs::default(),
            place: self.place.clone(),
            config: self.config.clone(),
        }
    }
}

/// Reads how often a tool may be run for one call.
fn attempts(text: &str) -> Result<(String, u32), String> {
    let most = 100;
    let (tool, number) = text.split_once('=').unwrap_or((text, ""));
    let number = number
        .parse()
        .ok()
        .filter(|number| (1..=most).contains(number));
    match number {
        Some(number) if !tool.is_empty() => Ok((tool.to_owned(), number)),
        _ => Err(format!(
            "expected the name of a tool, `=` and a number from 1 to {most}"
        )),
    }
}

/// Reads an argument of a tool: JSON, or else text.
fn tool_argument(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("expected the name of an argument, `=` and its value")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((name.to_owned(), value))
}

/// Takes an absolute URL of a web service.
fn base_url(text: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
    if tenterhook_agent::provider::is_base_url(text) {
        Ok(text.to_owned())
    } else {
        Err("expected a URL such as `https://host/v1`".into())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Args::command().debug_assert();
    }

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
