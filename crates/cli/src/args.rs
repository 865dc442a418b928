//! The command line: every subcommand, and the options that all of them have.
//!
//! The options of a subcommand are next to its code, in `command/`. Shared options are in `hook_args.rs`.

use clap::{Parser, Subcommand, ValueEnum};

use crate::command::allow::AllowArgs;
use crate::command::check::CheckArgs;
use crate::command::completions::CompletionsArgs;
#[cfg(unix)]
use crate::command::daemon::DaemonArgs;
use crate::command::demo::DemoArgs;
use crate::command::disable::SourceArgs;
#[cfg(unix)]
use crate::command::doctor::DoctorArgs;
use crate::command::events::EventsArgs;
use crate::command::explain::ExplainArgs;
use crate::command::fire::args::FireArgs;
#[cfg(unix)]
use crate::command::gateway::GatewayArgs;
use crate::command::import::ImportArgs;
use crate::command::init::InitArgs;
use crate::command::inspect::InspectArgs;
use crate::command::install::InstallArgs;
use crate::command::list::ListArgs;
use crate::command::man::ManArgs;
#[cfg(unix)]
use crate::command::protect::ProtectArgs;
#[cfg(unix)]
use crate::command::reload::ReloadArgs;
use crate::command::run::args::RunArgs;
use crate::command::sessions::args::SessionsArgs;
use crate::command::snapshot::SnapshotArgs;
use crate::command::status::StatusArgs;
use crate::command::test::TestArgs;
use crate::command::tools::ToolsArgs;
use crate::command::trust::TrustArgs;
use crate::command::uninstall::UninstallArgs;
#[cfg(unix)]
use crate::command::worker::WorkerArgs;
use tenterhook_setup::exit::EXIT_HELP;

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
    /// Write a first guard for this project or for all your sessions, with its test cases.
    Init(InitArgs),
    /// Run the test cases of hooks: files `NAME.cases.yaml` next to them.
    Test(TestArgs),
    /// Run the agent on a prompt.
    Run(Box<RunArgs>),
    /// Let people talk to the agent over channels: a web page, HTTP, Telegram, any program.
    #[cfg(unix)]
    Gateway(GatewayArgs),
    /// Show what hooks did, on a web page: journals, or a page in one file.
    Inspect(InspectArgs),
    /// Send one event through the hooks and show what they decide.
    Fire(FireArgs),
    /// List the hooks in the order in which they run.
    List(ListArgs),
    /// Check hook files and report every problem.
    Check(CheckArgs),
    /// Show which hooks an event would run, which it would not, and why.
    Explain(ExplainArgs),
    /// List the events, or show what one carries, when it fires and what hooks may answer.
    Events(EventsArgs),
    /// List the tools, or show the arguments of one and its names in other hook systems.
    Tools(ToolsArgs),
    /// Show the hooks of this project, approve them, or revoke approvals.
    Trust(TrustArgs),
    /// Let a tool call through that a hook denied wrongly.
    Allow(AllowArgs),
    /// Set a passphrase for the commands that only you may give, such as `trust` and `disable`.
    #[cfg(unix)]
    Protect(ProtectArgs),
    /// Run the hooks that you wrote for a coding agent here too, without a change.
    Import(ImportArgs),
    /// Disable a source of hooks, such as a script that cannot be loaded. It stays disabled until you enable it.
    #[command(override_usage = "tenterhook disable [OPTIONS] <SOURCE>")]
    Disable(SourceArgs),
    /// Enable a disabled source of hooks.
    #[command(override_usage = "tenterhook enable [OPTIONS] <SOURCE>")]
    Enable(SourceArgs),
    /// List the coding agents on this machine, and prove that they follow hooks.
    #[cfg(unix)]
    #[command(override_usage = "tenterhook doctor [OPTIONS] [HOST]...")]
    Doctor(DoctorArgs),
    /// Add Tenterhook to the configuration of coding agents, so that your hooks guard them.
    Install(InstallArgs),
    /// Remove Tenterhook from the configuration of coding agents.
    Uninstall(UninstallArgs),
    /// Show in which coding agents Tenterhook is installed, and whether that works.
    Status(StatusArgs),
    /// Start the process that runs the hooks of coding agents. It also starts on demand.
    #[cfg(unix)]
    Daemon(DaemonArgs),
    /// Let running sessions of coding agents use the current versions of your hooks.
    #[cfg(unix)]
    Reload(ReloadArgs),
    /// Work with the processes that serve script hooks.
    #[cfg(unix)]
    Worker(WorkerArgs),
    /// Show and undo the changes that agents made to the files of a work tree.
    Snapshot(SnapshotArgs),
    /// List, show and export the stored sessions of a folder.
    Sessions(SessionsArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Write the manual pages into a folder.
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use clap::error::ErrorKind;
    use clap::{CommandFactory as _, Parser as _};

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Args::command().debug_assert();
    }

    fn collect(path: &Path, pages: &mut Vec<(String, String)>) {
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                collect(&entry.unwrap().path(), pages);
            }
        } else if path.extension().is_some_and(|it| it == "md") {
            let text = fs::read_to_string(path).unwrap();
            pages.push((path.display().to_string(), text));
        }
    }

    /// Returns the command lines of a page: the lines after `$` in its fenced blocks.
    fn command_lines(page: &str) -> impl Iterator<Item = &str> {
        let mut is_fenced = false;
        page.lines().filter_map(move |line| {
            if line.starts_with("```") {
                is_fenced = !is_fenced;
            }
            let line = line.strip_prefix("$ ").filter(|_| is_fenced)?;
            line.split("  #").next()
        })
    }

    #[test]
    fn every_command_of_the_documentation_is_accepted() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut pages = Vec::new();
        for place in ["README.md", "CONTRIBUTING.md", "docs"] {
            collect(&root.join(place), &mut pages);
        }
        let mut accepted = 0;
        for (name, page) in &pages {
            let commands = command_lines(page).flat_map(tenterhook_shell::commands);
            for words in commands.filter(|words| words.first().is_some_and(|it| it == "tenterhook"))
            {
                if let Err(error) = Args::try_parse_from(&words) {
                    let is_shown = [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion];
                    assert!(
                        is_shown.contains(&error.kind()),
                        "{name}: {words:?}\n{error}"
                    );
                }
                accepted += 1;
            }
        }
        assert!(accepted > 60, "{accepted}");
    }
}
