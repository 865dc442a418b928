//! `tenterhook status`: which guards are in force in which coding agents, and what keeps others from being in force.

#[cfg(unix)]
mod daemon_report;

use clap::Parser;
use serde_json::{Value, json};
use tenterhook_install::{HostStatus, Machine, PlaceState, PlaceStatus, ProgramState};
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exceptions::ExceptionReport;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::folder_guards::{self, FolderGuards};
use tenterhook_setup::guard_problem::{GuardProblem, worst_first};
use tenterhook_setup::host_problems;
use tenterhook_setup::proven_versions::ProvenVersions;
use tenterhook_systems::host::HostAgent;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::plural::count;
use tenterhook_terminal::output::{self, style, styled};

#[cfg(unix)]
use self::daemon_report::DaemonReport;
use crate::command::allow::show_exceptions;
use crate::command::host_args::{machine, project_folder};
use crate::command::install::{approval_name, fails_closed, failure_note, shown};
use crate::working_dir::current_dir;

#[derive(Debug, Parser)]
pub(crate) struct StatusArgs {
    /// Print a single JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn status(args: StatusArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let report = GuardReport::collect(|_| true, interrupts).await?;
    if args.json {
        output::json(&json!({
            "ok": report.problems.is_empty(),
            "problems": report.problems,
            "guards": report.guards,
            "hosts": report.hosts.iter().map(host_json).collect::<Vec<Value>>(),
            "shim": {
                "path": report.machine.shim().display().to_string(),
                "state": report.programs.name(),
            },
            "daemon": report.daemon.json(),
            "exceptions": report.exceptions.json(),
        }));
    } else {
        report.show_verdict();
        output::line("");
        report.show_details();
    }
    Ok(report.exit())
}

/// Which guards are in force in which agents, and what keeps others from being in force.
#[derive(Debug)]
pub(crate) struct GuardReport {
    /// What keeps guards from being in force, the worst first.
    pub(crate) problems: Vec<GuardProblem>,
    guards: Vec<FolderGuards>,
    hosts: Vec<HostStatus>,
    machine: Machine,
    programs: ProgramState,
    daemon: DaemonReport,
    exceptions: ExceptionReport,
}

impl GuardReport {
    /// Looks at the agents that are meant, at the hooks that their sessions would have in the working directory, and at
    /// the sessions that run.
    pub(crate) async fn collect(
        is_meant: impl Fn(&HostAgent) -> bool,
        interrupts: &Interrupts,
    ) -> Result<Self, CliError> {
        let machine = machine()?;
        let project = project_folder()?;
        let own = machine.clone();
        let look = move || {
            let hosts = HostStatus::all(&own, &project);
            let proven = ProvenVersions::read();
            Ok((
                hosts,
                proven,
                ProgramState::inspect(&own),
                DaemonReport::query(),
                ExceptionReport::read(),
            ))
        };
        let (hosts, proven, programs, daemon, exceptions) =
            run_blocking(&interrupts.token(), look).await?;
        let is_meant =
            |host: &HostStatus| is_meant(host.host) && (host.is_present || host.is_touched());
        let hosts: Vec<HostStatus> = hosts.into_iter().filter(is_meant).collect();
        let mut problems = host_problems::of_hosts(&hosts, &proven);
        let is_used = hosts.iter().any(HostStatus::is_installed);
        problems.extend(host_problems::of_program(&machine, &programs).filter(|_| is_used));
        problems.extend(daemon.problems());
        problems.extend(exceptions.problems());
        let mut guards = Vec::new();
        for host in host_problems::judged_hosts(&hosts) {
            match FolderGuards::load(host, &current_dir()?, &interrupts.token()).await {
                Ok(mut found) => {
                    problems.append(&mut found.problems);
                    guards.push(found);
                }
                Err(error) if error.exit == Exit::Interrupted => return Err(error),
                Err(error) => problems.push(folder_guards::unloadable(&error)),
            }
        }
        Ok(Self {
            problems: worst_first(problems),
            guards,
            hosts,
            machine,
            programs,
            daemon,
            exceptions,
        })
    }

    /// Returns the machine, if Tenterhook is installed in an agent.
    pub(crate) fn used_machine(&self) -> Option<&Machine> {
        let mut hosts = self.hosts.iter();
        hosts.any(HostStatus::is_installed).then_some(&self.machine)
    }

    /// Returns the exit status: something needs the user's attention.
    pub(crate) fn exit(&self) -> Exit {
        if self.problems.is_empty() {
            Exit::Done
        } else {
            Exit::Config
        }
    }

    /// Shows the worst problem with its next step, and then all others. Without a problem, shows which guards are in
    /// force.
    pub(crate) fn show_verdict(&self) {
        let Some((worst, others)) = self.problems.split_first() else {
            for found in &self.guards {
                let title = HostAgent::by_name(found.host).map_or(found.host, |host| host.title);
                let guards = match found.guards {
                    1 => "1 guard is".to_owned(),
                    guards => format!("{guards} guards are"),
                };
                let ok = styled(style::GOOD, "ok:");
                output::line(format_args!("{ok} {guards} in force in {title}."));
            }
            return;
        };
        output::line(format_args!(
            "{} {}",
            styled(style::BAD, "problem:"),
            worst.text
        ));
        output::line(format_args!(
            "{} {}",
            styled(style::NAME, "next:"),
            shown_step(&worst.next_step)
        ));
        for other in others {
            output::line(format_args!(
                "{} {}",
                styled(style::CARE, "also:"),
                other.text
            ));
        }
    }

    fn show_details(&self) {
        let has = match self.used_machine() {
            Some(_) => "has",
            None => "would have",
        };
        for found in self.guards.iter().filter(|found| found.hooks > 0) {
            let title = HostAgent::by_name(found.host).map_or(found.host, |host| host.title);
            let (hooks, guards) = (count(found.hooks, "hook"), found.guards);
            output::line(format!(
                "A session of {title} in this folder {has} {hooks}; {guards} can stop something."
            ));
        }
        show_hosts(&self.hosts);
        if self.hosts.iter().any(HostStatus::is_installed) {
            output::line(format!("The shim is {}.", shown(&self.machine.shim())));
            self.daemon.show();
        }
        show_exceptions(&self.exceptions);
    }
}

/// Shows a command as one that can be typed, and leaves a sentence as it is.
fn shown_step(step: &str) -> String {
    if step.starts_with("tenterhook ") {
        format!("`{step}`")
    } else {
        step.to_owned()
    }
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

    const fn problems(&self) -> Vec<GuardProblem> {
        Vec::new()
    }

    const fn json(&self) -> Value {
        Value::Null
    }

    const fn show(&self) {}
}

fn show_hosts(hosts: &[HostStatus]) {
    for host in hosts {
        let version = host.version.as_ref();
        let version = version.map(|version| format!(" {}", escape_line(version)));
        let title = format!("{}{}", host.host.title, version.unwrap_or_default());
        let installed = host.places.iter();
        let mut installed = installed
            .filter(|place| place.state != PlaceState::Absent)
            .peekable();
        if installed.peek().is_none() {
            let name = host.host.name;
            output::line(format!(
                "{title}: not installed (`tenterhook install {name}`)"
            ));
            continue;
        }
        output::line(format!("{title}:"));
        for place in installed {
            show_place(place);
        }
        output::line(format!("  {}", failure_note(host.host)));
    }
}

fn show_place(place: &PlaceStatus) {
    let name = place.scope.name();
    let path = shown(&place.path);
    output::line(match place.state {
        PlaceState::Complete => format!("  {name}: installed in {path}"),
        PlaceState::Unreadable => format!("  {name}: cannot read {path}"),
        PlaceState::Removed => format!("  {name}: removed from {path}"),
        PlaceState::Absent | PlaceState::Incomplete => format!("  {name}: incomplete in {path}"),
    });
    for other in &place.other_shims {
        let other = escape_line(other);
        output::line(format!("    the file also names another shim: {other}"));
    }
}

fn host_json(status: &HostStatus) -> Value {
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
        "measured_version": status.host.measured_version,
        "installed": status.is_installed(),
        "fails_closed": fails_closed(status.host),
        "places": places.collect::<Vec<Value>>(),
        "runs_twice": repeated.collect::<Vec<String>>(),
        "switched_off": off.collect::<Vec<Value>>(),
    })
}
