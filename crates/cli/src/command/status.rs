//! `tenterhook status`: in which coding agents Tenterhook is installed, and whether the entries are complete.

#[cfg(unix)]
mod daemon_report;

use clap::Parser;
use serde_json::{Value, json};
use tenterhook_install::{
    ApprovalState, HostStatus, Installer, Machine, PlaceState, PlaceStatus, ShimState,
};
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exceptions::ExceptionReport;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::warning;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;
use tenterhook_terminal::output::escape::escape_line;

#[cfg(unix)]
use self::daemon_report::DaemonReport;
use crate::command::host_args::{machine, project_folder};
use crate::command::install::{approval_name, fails_closed, failure_note, shown};

#[derive(Debug, Parser)]
pub(crate) struct StatusArgs {
    /// Print a single JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn status(args: StatusArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let machine = machine()?;
    let project = project_folder()?;
    let own = machine.clone();
    let look = move || {
        let hosts = HostStatus::all(&own, &project);
        let daemon = DaemonReport::query();
        Ok((
            hosts,
            Installer::shim_state(&own),
            daemon,
            ExceptionReport::read(),
        ))
    };
    let (hosts, shim, daemon, exceptions) = run_blocking(interrupts, look).await?;
    let hosts: Vec<HostStatus> = hosts
        .into_iter()
        .filter(|host| host.is_present || host.is_touched())
        .collect();
    let is_used = hosts.iter().any(HostStatus::is_installed);
    let is_sound = hosts.iter().all(is_sound)
        && (!is_used || is_runnable(shim))
        && daemon.is_sound()
        && exceptions.is_sound();
    if args.json {
        output::json(&json!({
            "ok": is_sound,
            "hosts": hosts.iter().map(report).collect::<Vec<Value>>(),
            "shim": { "path": machine.shim().display().to_string(), "state": shim.name() },
            "daemon": daemon.json(),
            "exceptions": exceptions.json(),
        }));
    } else {
        show(&machine, &hosts, shim, is_used);
        if is_used {
            daemon.show();
        }
        exceptions.show();
    }
    Ok(if is_sound { Exit::Done } else { Exit::Config })
}

/// There is no daemon on this platform.
#[cfg(not(unix))]
#[derive(Debug)]
struct DaemonReport;

#[cfg(not(unix))]
impl DaemonReport {
    const fn query() -> Self {
        Self
    }

    const fn is_sound(&self) -> bool {
        true
    }

    const fn json(&self) -> Value {
        Value::Null
    }

    const fn show(&self) {}
}

/// Returns whether nothing about an agent needs the user's attention.
fn is_sound(host: &HostStatus) -> bool {
    let is_sound = |place: &PlaceStatus| {
        matches!(place.state, PlaceState::Absent | PlaceState::Complete)
            && place.approval != ApprovalState::Missing
    };
    let is_off = host.is_installed() && !host.switched_off.is_empty();
    host.places.iter().all(is_sound) && !host.fires_twice() && !is_off
}

const fn is_runnable(shim: ShimState) -> bool {
    matches!(shim, ShimState::Current | ShimState::Unknown)
}

fn show(machine: &Machine, hosts: &[HostStatus], shim: ShimState, is_used: bool) {
    if hosts.is_empty() {
        output::line("No coding agent was found in `PATH` or in your home folder.");
    }
    for host in hosts {
        let version = host
            .version
            .as_ref()
            .map(|version| format!(" {}", escape_line(version)));
        let title = format!("{}{}", host.host.title, version.unwrap_or_default());
        let installed: Vec<&PlaceStatus> = host
            .places
            .iter()
            .filter(|place| place.state != PlaceState::Absent)
            .collect();
        if installed.is_empty() {
            output::line(format!(
                "{title}: not installed (`tenterhook install {}`)",
                host.host.name
            ));
            continue;
        }
        output::line(format!("{title}:"));
        for place in installed {
            show_place(host, place);
        }
        for off in &host.switched_off {
            output::line(format!(
                "  switched off: {} runs no hooks because of `{}` in {}",
                host.host.title,
                off.key,
                shown(&off.path)
            ));
        }
        for path in &host.repeated_by {
            output::line(format!(
                "  runs twice: {} also runs the entries in {}",
                host.host.title,
                shown(path)
            ));
        }
        output::line(format!("  {}", failure_note(host.host)));
    }
    if is_used {
        show_shim(machine, shim);
    }
}

fn show_place(host: &HostStatus, place: &PlaceStatus) {
    let name = place.scope.name();
    let path = shown(&place.path);
    output::line(match place.state {
        PlaceState::Complete => format!("  {name}: installed in {path}"),
        PlaceState::Unreadable => format!("  {name}: cannot read {path}"),
        PlaceState::Absent | PlaceState::Incomplete => format!("  {name}: incomplete in {path}"),
    });
    if let Some(problem) = &place.problem {
        output::line(format!(
            "    {}",
            escape_line(&tenterhook_engine::error_chain(problem))
        ));
    }
    let project = if place.scope.project().is_some() {
        " --project"
    } else {
        ""
    };
    let command = format!("tenterhook install {}{project}", host.host.name);
    for (what, events, hint) in [
        (
            "missing",
            &place.missing,
            format!("to add them, run `{command}`"),
        ),
        (
            "outdated",
            &place.outdated,
            format!("to update them, run `{command}`"),
        ),
        (
            "changed",
            &place.altered,
            "to restore them, uninstall and install again".to_owned(),
        ),
    ] {
        if !events.is_empty() {
            output::line(format!(
                "    {what}: {} ({hint})",
                escape_line(&events.join(", "))
            ));
        }
    }
    if let (ApprovalState::Missing, Some(approval)) =
        (place.approval, host.host.installation.approval)
    {
        output::line(format!(
            "    not approved: {}, or run `{command} --trust`",
            approval.by_hand
        ));
    }
    for other in &place.other_shims {
        output::line(format!(
            "    the file also names another shim: {}",
            escape_line(other)
        ));
    }
}

fn show_shim(machine: &Machine, shim: ShimState) {
    let path = shown(&machine.shim());
    let problem = match shim {
        ShimState::Current => return output::line(format!("The shim is {path}.")),
        ShimState::Unknown => {
            return output::line(format!(
                "The shim is {path}. Its version is unknown, because this program comes without a shim."
            ));
        }
        ShimState::Outdated => "is of another version",
        ShimState::NotExecutable => "cannot be executed",
        ShimState::Missing => "is missing",
    };
    warning::warn(format_args!(
        "the shim `{path}` {problem}; run `tenterhook install` again"
    ));
}

fn report(status: &HostStatus) -> Value {
    let places = status.places.iter().map(|place| {
        json!({
            "scope": place.scope.name(),
            "path": place.path.display().to_string(),
            "state": place.state.name(),
            "missing": place.missing,
            "altered": place.altered,
            "outdated": place.outdated,
            "approval": approval_name(place.approval),
            "other_shims": place.other_shims,
            "problem": place.problem.as_ref().map(|problem| tenterhook_engine::error_chain(problem)),
        })
    });
    let repeated = status
        .repeated_by
        .iter()
        .map(|path| path.display().to_string());
    let off = status.switched_off.iter();
    let off = off.map(|it| json!({ "path": it.path.display().to_string(), "key": it.key }));
    json!({
        "host": status.host.name,
        "program": status.program.as_ref().map(|path| path.display().to_string()),
        "version": status.version,
        "installed": status.is_installed(),
        "fails_closed": fails_closed(status.host),
        "places": places.collect::<Vec<Value>>(),
        "runs_twice": repeated.collect::<Vec<String>>(),
        "switched_off": off.collect::<Vec<Value>>(),
    })
}
