//! `tenterhook install`: add Tenterhook to the configuration of coding agents.

mod hooks_in_force;

use std::io::{IsTerminal as _, stdin};
use std::path::Path;

use crate::ancestry;
use crate::notice::show_error;
use crate::notice::unanswered;
use clap::Parser;
use serde_json::{Value, json};
use tenterhook_install::{
    ApprovalState, InstallError, InstallPlan, InstallScope, Installer, Machine,
};
use tenterhook_protocol::escape::{escape_line, escape_untrusted};
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::warning;
use tenterhook_systems::host::HostAgent;
use tenterhook_systems::host::installation::FailsClosed;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::line_source::LineSource;
use tenterhook_terminal::output;
use tenterhook_terminal::output::plural::count;

use self::hooks_in_force::HooksInForce;
use crate::command::host_args::{HostArgs, failed, machine, warn_of_switched_off};

#[derive(Debug, Parser)]
#[command(
    override_usage = "tenterhook install [OPTIONS] <HOST>...\n       tenterhook install [OPTIONS] --all"
)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    host: HostArgs,

    /// Show the changes and write nothing.
    #[arg(long)]
    dry_run: bool,

    /// Where an agent runs only hooks that you approved, record that you approve Tenterhook's. Without this option, you
    /// are asked at a terminal.
    #[arg(long)]
    trust: bool,

    /// Print a single JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn install(args: InstallArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    ancestry::require_user("install hooks")?;
    let machine = machine()?;
    let hosts = args.host.chosen(&machine)?;
    let scope = args.host.scope()?;
    if args.host.project && !args.json {
        warning::warn(
            "the entries name a program in your home folder; on the machines of others, it is missing until they run \
             `tenterhook install --project`, too",
        );
    }
    let mut reports: Vec<Value> = Vec::new();
    let mut exit = Exit::Done;
    let mut done: Vec<&'static HostAgent> = Vec::new();
    for host in hosts {
        let installed = install_one(&args, &machine, host, &scope, interrupts).await;
        done.extend(installed.is_ok().then_some(host));
        match installed {
            Ok((plan, _)) if args.json => reports.push(report(&plan, &args)),
            Ok((plan, _)) if args.dry_run => show_changes(&plan),
            Ok((plan, is_new_program)) => show(&plan, is_new_program.then_some(&machine)),
            // With a single agent, this is the error of the command.
            Err(error)
                if error.exit == Exit::Interrupted
                    || (!args.host.all && args.host.named().len() == 1) =>
            {
                return Err(error);
            }
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
    let mut in_force = None;
    if !args.dry_run && !done.is_empty() {
        match HooksInForce::load(&done, interrupts).await {
            Ok(hooks) => in_force = Some(hooks),
            Err(error) if error.exit == Exit::Interrupted => return Err(error),
            // The entries are there, so their report is shown all the same.
            Err(error) => {
                exit = exit.max(error.exit);
                show_error(&error);
            }
        }
    }
    let mut off = Vec::new();
    if in_force.is_some() {
        off = warn_of_switched_off(interrupts).await?;
        off.retain(|host| done.iter().any(|done| done.name == host.name));
    }
    if !off.is_empty() {
        exit = exit.max(Exit::Config);
    }
    if args.json {
        output::json(&json!({
            "hosts": reports,
            "shim": machine.shim().display().to_string(),
            "dry_run": args.dry_run,
            "switched_off": off.iter().map(|host| host.name).collect::<Vec<_>>(),
            "in_force": in_force.as_ref().map(HooksInForce::json),
        }));
    } else if let Some(in_force) = in_force {
        if let Some(note) = shim_note(&machine) {
            output::line(note);
        }
        in_force.show(&done, &off);
    }
    Ok(exit)
}

/// Returns what it costs that agents start the whole program for each event. `None` if they start the small shim.
pub(crate) fn shim_note(machine: &Machine) -> Option<&'static str> {
    (!Installer::has_small_shim(machine)).then_some(
        "The small program `tenterhook-shim` was not built, so your agents start the whole program, which takes about \
         20 ms longer for each event. To change that, run `cargo build -p tenterhook-cli`, and install again.",
    )
}

/// Installs into one agent's configuration, and returns whether agents run another program than before. Nothing is
/// locked while a question waits for its answer.
async fn install_one(
    args: &InstallArgs,
    machine: &Machine,
    host: &'static HostAgent,
    scope: &InstallScope,
    interrupts: &Interrupts,
) -> Result<(InstallPlan, bool), CliError> {
    let mut approves = args.trust;
    if !approves && !args.dry_run && !args.json && stdin().is_terminal() {
        let (plan, _) = run(machine, host, scope, interrupts, false, Mode::Plan).await?;
        if let (ApprovalState::Missing, Some(approval)) =
            (plan.approval, host.installation.approval)
        {
            let question = format!("{} [y/N] ", approval.question);
            let answer = LineSource::plain().confirm(&question, interrupts).await;
            let answer = answer.map_err(|error| unanswered(&error, "nothing was installed"))?;
            approves = answer.unwrap_or(false);
        }
    }
    let mode = if args.dry_run {
        Mode::Plan
    } else {
        Mode::Apply
    };
    run(machine, host, scope, interrupts, approves, mode).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plan,
    Apply,
}

async fn run(
    machine: &Machine,
    host: &'static HostAgent,
    scope: &InstallScope,
    interrupts: &Interrupts,
    approves: bool,
    mode: Mode,
) -> Result<(InstallPlan, bool), CliError> {
    let (machine, scope) = (machine.clone(), scope.clone());
    let work = move || -> Result<(InstallPlan, bool), InstallError> {
        let installer = Installer::open(machine)?;
        let plan = installer.plan_install(host, &scope, approves)?;
        let mut is_new_program = false;
        if mode == Mode::Apply {
            // Before any configuration names it.
            is_new_program = installer.install_programs()?;
            installer.apply(&plan)?;
        }
        Ok((plan, is_new_program))
    };
    run_blocking(&interrupts.token(), move || {
        work().map_err(|error| failed(&error))
    })
    .await
}

fn show_changes(plan: &InstallPlan) {
    if plan.changes.is_empty() {
        output::line(format!("{}: nothing to change.", plan.host.title));
    }
    for change in &plan.changes {
        output::text(escape_untrusted(&change.diff()));
    }
}

/// Shows what was installed. `copied_to` is the machine if agents run another program than before.
fn show(plan: &InstallPlan, copied_to: Option<&Machine>) {
    let host = plan.host;
    let events = count(host.events.len(), "event");
    output::line(if plan.changes.is_empty() {
        format!(
            "Tenterhook is already installed in {} ({events}).",
            host.title
        )
    } else {
        format!("Installed Tenterhook in {} ({events}).", host.title)
    });
    let changed = plan
        .changes
        .iter()
        .map(|change| (change.path.as_path(), change.action()));
    for (path, action) in changed {
        output::line(format!("  {action}  {}", shown(path)));
    }
    if let Some(folder) = copied_to.and_then(|machine| machine.shim().parent().map(shown)) {
        let version = env!("CARGO_PKG_VERSION");
        output::line(format!(
            "  Your agents now run version {version}, a copy of this program in {folder}."
        ));
    }
    if !plan.altered.is_empty() {
        warning::warn(format_args!(
            "someone changed the entries of {}; they stay as they are (to restore them, uninstall and install again)",
            plan.altered.join(", "),
        ));
    }
    output::line(format!("  {}", failure_note(host)));
    if let (ApprovalState::Missing, Some(approval)) = (plan.approval, host.installation.approval) {
        output::line(format!("  Not approved yet: {}.", approval.by_hand));
    }
    if !host.installation.after.is_empty() {
        output::line(format!("  {}", host.installation.after));
    }
    output::line(format!(
        "  Check it with `tenterhook doctor --prove {}`.",
        host.name
    ));
}

/// Says what the agent does if the program that it starts fails.
pub(crate) fn failure_note(host: &HostAgent) -> String {
    let title = host.title;
    match host.installation.fails_closed {
        FailsClosed::Always => {
            format!("If the shim is missing or killed, {title} denies the call.")
        }
        FailsClosed::ByKey(key) => {
            format!("If the shim is missing or killed, {title} denies the call (`{key}`).")
        }
        FailsClosed::Never(why) => {
            format!("{title} cannot be made to deny every call without the shim: {why}.")
        }
    }
}

fn report(plan: &InstallPlan, args: &InstallArgs) -> Value {
    let host = plan.host;
    let changes = plan.changes.iter().map(|change| {
        let mut entry =
            json!({ "path": change.path.display().to_string(), "action": change.action() });
        if let (true, Some(entry)) = (args.dry_run, entry.as_object_mut()) {
            entry.insert("diff".to_owned(), change.diff().into());
        }
        entry
    });
    json!({
        "host": host.name,
        "scope": plan.scope.name(),
        "files": paths(plan),
        "changes": changes.collect::<Vec<Value>>(),
        "events": plan.events,
        "altered": plan.altered,
        "fails_closed": fails_closed(host),
        "approval": approval_name(plan.approval),
        "after": host.installation.after,
    })
}

/// Returns the paths of the files of a plan.
pub(crate) fn paths(plan: &InstallPlan) -> Vec<String> {
    plan.files
        .iter()
        .map(|path| path.display().to_string())
        .collect()
}

/// Returns whether an agent denies if the program that it starts fails.
pub(crate) const fn fails_closed(host: &HostAgent) -> bool {
    !matches!(host.installation.fails_closed, FailsClosed::Never(_))
}

/// Returns the word for an approval in JSON output.
pub(crate) const fn approval_name(approval: ApprovalState) -> &'static str {
    match approval {
        ApprovalState::NotNeeded => "not_needed",
        ApprovalState::Recorded => "recorded",
        ApprovalState::Missing => "missing",
    }
}

/// Returns a path as this program shows it.
pub(crate) fn shown(path: &Path) -> String {
    escape_line(&path.display().to_string())
}
