//! `tenterhook uninstall`: remove Tenterhook from the configuration of coding agents.

use crate::ancestry;
use crate::notice::show_error;
use clap::Parser;
use serde_json::{Value, json};
use tenterhook_install::{
    HostStatus, InstallError, InstallPlan, InstallScope, Installer, Machine, PlaceState,
};
#[cfg(unix)]
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::warning;
use tenterhook_systems::HOSTS;
use tenterhook_systems::host::HostAgent;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;

#[cfg(unix)]
use crate::command::daemon;
use crate::command::host_args::{HostArgs, failed, machine, project_folder};
use crate::command::install::{paths, shown};

#[derive(Debug, Parser)]
#[command(
    override_usage = "tenterhook uninstall [OPTIONS] <HOST>...\n       tenterhook uninstall [OPTIONS] --all"
)]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    host: HostArgs,

    /// Print a single JSON object.
    #[arg(long)]
    json: bool,
}

/// A removal that was carried out.
#[derive(Debug)]
struct Removal {
    plan: InstallPlan,
    /// Copies of files that someone had changed.
    copies: Vec<String>,
    is_shim_removed: bool,
}

pub(crate) async fn uninstall(
    args: UninstallArgs,
    interrupts: &Interrupts,
) -> Result<Exit, CliError> {
    ancestry::require_user("uninstall hooks")?;
    let machine = machine()?;
    let scope = args.host.scope()?;
    let hosts = if args.host.all {
        installed(&machine, &scope)?
    } else {
        args.host.named()
    };
    if hosts.is_empty() && !args.json {
        output::line("Tenterhook is not installed in any agent.");
    }
    let mut reports: Vec<Value> = Vec::new();
    let mut is_shim_removed = false;
    let mut exit = Exit::Done;
    let is_single = hosts.len() == 1;
    for host in hosts {
        match remove(&machine, host, &scope, interrupts).await {
            Ok(removed) => {
                is_shim_removed |= removed.is_shim_removed;
                if args.json {
                    reports.push(report(&removed));
                } else {
                    show(&removed);
                }
            }
            Err(error) if error.exit == Exit::Interrupted || is_single => return Err(error),
            Err(error) => {
                exit = exit.max(error.exit);
                if args.json {
                    reports.push(json!({ "host": host.name, "error": error.in_one_line() }));
                } else {
                    show_error(&error);
                }
            }
        }
    }
    let is_daemon_stopped = is_shim_removed && stop_daemon(interrupts).await?;
    if args.json {
        output::json(&json!({
            "hosts": reports,
            "shim_removed": is_shim_removed,
            "daemon_stopped": is_daemon_stopped,
        }));
    } else if is_shim_removed {
        output::line(
            "No agent uses Tenterhook now, so the programs that agents ran were removed, too.",
        );
        if is_daemon_stopped {
            output::line("The daemon ends after the events that it is handling.");
        }
    }
    Ok(exit)
}

/// Stops the daemon, which no agent needs any more. Returns whether one ran. A daemon that does not answer is
/// reported, because it ends by itself when it is idle.
#[cfg(unix)]
async fn stop_daemon(interrupts: &Interrupts) -> Result<bool, CliError> {
    let place = daemon::place(None)?;
    let stopped = run_blocking(&interrupts.token(), move || {
        Ok(tenterhook_daemon::stop(&place))
    })
    .await?;
    Ok(stopped.unwrap_or_else(|problem| {
        warning::warn(format_args!(
            "the daemon was not stopped: {}",
            escape_line(&problem.to_string())
        ));
        false
    }))
}

#[cfg(not(unix))]
#[expect(clippy::unused_async, reason = "on Unix it waits for the daemon")]
async fn stop_daemon(_interrupts: &Interrupts) -> Result<bool, CliError> {
    Ok(false)
}

/// Returns the agents in whose configuration Tenterhook is, whether or not they are still on the machine.
fn installed(machine: &Machine, scope: &InstallScope) -> Result<Vec<&'static HostAgent>, CliError> {
    let project = project_folder()?;
    let is_installed = |host: &&'static HostAgent| {
        let status = HostStatus::inspect(machine, host, &project);
        let mut places = status.places.iter().filter(|place| place.scope == *scope);
        places.any(|place| place.state != PlaceState::Absent)
    };
    Ok(HOSTS.iter().copied().filter(is_installed).collect())
}

async fn remove(
    machine: &Machine,
    host: &'static HostAgent,
    scope: &InstallScope,
    interrupts: &Interrupts,
) -> Result<Removal, CliError> {
    let (machine, scope) = (machine.clone(), scope.clone());
    let work = move || -> Result<Removal, InstallError> {
        let installer = Installer::open(machine)?;
        let plan = installer.plan_removal(host, &scope)?;
        installer.apply(&plan)?;
        let kept = plan
            .changes
            .iter()
            .filter(|change| plan.kept.contains(&change.path));
        let copies = kept
            .map(|change| shown(&installer.kept_copy(change)))
            .collect();
        Ok(Removal {
            copies,
            is_shim_removed: installer.remove_unused_programs()?,
            plan,
        })
    };
    run_blocking(&interrupts.token(), move || {
        work().map_err(|error| failed(&error))
    })
    .await
}

fn show(removed: &Removal) {
    let plan = &removed.plan;
    let title = plan.host.title;
    output::line(if plan.changes.is_empty() {
        format!("Tenterhook is not installed in {title}.")
    } else {
        format!("Removed Tenterhook from {title}.")
    });
    for change in &plan.changes {
        output::line(format!("  {}  {}", change.action(), shown(&change.path)));
    }
    for copy in &removed.copies {
        warning::warn(format_args!(
            "someone had changed a file of Tenterhook; a copy is in `{copy}`"
        ));
    }
}

fn report(removed: &Removal) -> Value {
    let plan = &removed.plan;
    let changes = plan.changes.iter().map(
        |change| json!({ "path": change.path.display().to_string(), "action": change.action() }),
    );
    json!({
        "host": plan.host.name,
        "scope": plan.scope.name(),
        "files": paths(plan),
        "changes": changes.collect::<Vec<Value>>(),
        "copies": removed.copies,
    })
}
