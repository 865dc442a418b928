//! The options of several commands that select which hooks to load, and how strictly.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use tenterhook_discovery::{FolderName, LOAD_DEADLINE};
use tenterhook_engine::EventKind;
use tenterhook_hookfile::HookLine;
use tenterhook_setup::hook_options::{HookOptions, PlaceOptions};

/// Which hooks to load, and how strictly.
#[derive(Debug, Clone, Parser)]
pub(crate) struct HookArgs {
    /// A file with hooks: a hook file (YAML, TOML or JSON), an agent file of docker-agent, the settings of a coding
    /// agent, a script or an executable. May be repeated.
    #[arg(long = "hooks", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Continue without the hook files, scripts and folders that cannot be loaded, with a warning for each.
    #[arg(long)]
    pub(crate) lenient: bool,

    /// Make a gate deny when one of its hooks fails, whatever the hook's `on_error` is.
    #[arg(long)]
    pub(crate) strict: bool,

    /// Deny every operation that an untrusted project hook may guard, instead of leaving the hook out.
    #[arg(long)]
    pub(crate) deny_untrusted: bool,

    /// A pi extension: a file, its folder, or a folder of extensions. Extensions are loaded last. May be repeated.
    #[arg(short = 'e', long = "extension", value_name = "PATH")]
    pub(crate) extensions: Vec<PathBuf>,

    /// The time limit for loading.
    #[command(flatten)]
    pub(crate) load: DeadlineArgs,

    /// The set of hooks.
    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    /// The user's own folder.
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

impl HookArgs {
    /// Returns what to load.
    pub(crate) fn options(&self) -> HookOptions {
        HookOptions {
            files: self.files.clone(),
            lenient: self.lenient,
            strict: self.strict,
            deny_untrusted: self.deny_untrusted,
            extensions: self.extensions.clone(),
            deadline: self.load.deadline(),
            place: self.place.options(),
            config_dir: self.config.config_dir.clone(),
            ..HookOptions::default()
        }
    }
}

/// The time limit for loading hooks.
#[derive(Debug, Clone, Copy, Parser)]
pub(crate) struct DeadlineArgs {
    /// The time limit for loading each script, executable or extension, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = LOAD_DEADLINE.as_secs(), value_parser = clap::value_parser!(u64).range(1..=3600))]
    load_timeout: u64,
}

impl DeadlineArgs {
    /// Returns the time limit for loading each source.
    pub(crate) fn deadline(self) -> Duration {
        Duration::from_secs(self.load_timeout)
    }
}

/// Which set of hooks to load, for hook systems that have several sets.
#[derive(Debug, Clone, Default, Parser)]
pub(crate) struct PlaceArgs {
    /// The morphix workspace whose hooks are in force, a folder in the project's `workspaces`. The default is the
    /// value of `TENTERHOOK_WORKSPACE`, else `main`.
    #[arg(long, value_name = "NAME")]
    pub(crate) workspace: Option<FolderName>,

    /// The Operator profile whose hooks are in force. The default is the value of `OPERATOR_PROFILE`, else `default`.
    #[arg(long, value_name = "NAME")]
    pub(crate) operator_profile: Option<FolderName>,
}

impl PlaceArgs {
    /// Returns the sets to load.
    pub(crate) fn options(&self) -> PlaceOptions {
        PlaceOptions {
            workspace: self.workspace.clone(),
            operator_profile: self.operator_profile.clone(),
        }
    }
}

/// Where the user's own hooks are.
#[derive(Debug, Clone, Parser)]
pub(crate) struct ConfigArgs {
    /// Your configuration folder. The hooks in its `hooks.d` always apply. The default is the value of
    /// `TENTERHOOK_CONFIG_DIR`, else `tenterhook` in the platform's configuration folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,
}

/// Hooks given as shell command lines, in docker-agent's dialect. They run after the hooks of files.
#[derive(Debug, Clone, Default, Parser)]
pub(crate) struct LineArgs {
    /// Run the shell command LINE before every tool call. May be repeated, like the other `--hook-` options.
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

    /// Run LINE when the agent waits for the user.
    #[arg(long = "hook-on-user-input", value_name = "LINE")]
    pub(crate) on_user_input: Vec<String>,

    /// Run LINE when the model has finished its work.
    #[arg(long = "hook-stop", value_name = "LINE")]
    pub(crate) stop: Vec<String>,
}

impl LineArgs {
    /// Returns every line with its option, grouped by event.
    pub(crate) fn lines(&self) -> impl Iterator<Item = HookLine> {
        use EventKind::{PostToolUse, PreToolUse, SessionEnd, SessionStart, Stop, WaitingForUser};
        let lines = [
            of("--hook-pre-tool-use", PreToolUse, &self.pre_tool_use),
            of("--hook-post-tool-use", PostToolUse, &self.post_tool_use),
            of("--hook-session-start", SessionStart, &self.session_start),
            of("--hook-session-end", SessionEnd, &self.session_end),
            of("--hook-on-user-input", WaitingForUser, &self.on_user_input),
            of("--hook-stop", Stop, &self.stop),
        ];
        lines.into_iter().flatten()
    }
}

/// Returns the lines of one option.
fn of(option: &'static str, event: EventKind, lines: &[String]) -> Vec<HookLine> {
    let lines = lines.iter().cloned();
    lines
        .map(|line| HookLine {
            option,
            event,
            line,
        })
        .collect()
}
