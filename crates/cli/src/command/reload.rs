//! `tenterhook reload`: lets running sessions of coding agents use the current versions of your hooks.

use clap::Parser;
use serde_json::json;
use tenterhook_daemon::ReloadedProject;

use crate::ancestry;
use crate::command::daemon::{failed, place};
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::warning::warn;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;

/// Options of `tenterhook reload`.
#[derive(Debug, Parser)]
pub(crate) struct ReloadArgs {
    /// Print a single JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn reload(args: ReloadArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    ancestry::require_user("reload hooks")?;
    let place = place(None)?;
    let reload = move || tenterhook_daemon::reload(&place).map_err(failed);
    let reloaded = run_blocking(&interrupts.token(), reload).await?;
    let projects = reloaded.as_deref().unwrap_or_default();
    let has_problems = projects.iter().any(|project| !project.problems.is_empty());
    if args.json {
        output::json(&json!({ "is_running": reloaded.is_some(), "projects": projects }));
    } else if reloaded.is_none() {
        output::line("No daemon runs. The next session loads the current hooks.");
    } else {
        show(projects);
    }
    Ok(if has_problems {
        Exit::Config
    } else {
        Exit::Done
    })
}

fn show(projects: &[ReloadedProject]) {
    for project in projects {
        let folder = escape_line(&project.path.display().to_string());
        let host = &project.host;
        if project.changes.is_empty() && project.problems.is_empty() {
            output::line(format_args!("`{folder}` ({host}): nothing has changed"));
        }
        for change in &project.changes {
            output::line(format_args!("`{folder}` ({host}): {}", escape_line(change)));
        }
        for problem in &project.problems {
            warn(format_args!(
                "`{folder}` ({host}): {}",
                escape_line(problem)
            ));
        }
    }
    if projects.is_empty() {
        output::line("No coding agent has called since the daemon started.");
    }
}
