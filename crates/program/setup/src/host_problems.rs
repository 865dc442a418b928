//! What keeps the configuration of agents from calling Tenterhook.

use tenterhook_engine::error_chain;
use tenterhook_install::{
    ApprovalState, HostStatus, Machine, PlaceState, PlaceStatus, ProgramState,
};
use tenterhook_protocol::escape::escape_line;
use tenterhook_systems::HOSTS;
use tenterhook_systems::host::HostAgent;

use crate::guard_problem::{GuardProblem, GuardProblemKind};
use crate::proven_versions::ProvenVersions;

/// Returns what is wrong with the configuration of all agents.
pub fn of_hosts(hosts: &[HostStatus], proven: &ProvenVersions) -> Vec<GuardProblem> {
    let mut problems: Vec<GuardProblem> = hosts
        .iter()
        .flat_map(|host| of_host(host, proven))
        .collect();
    let is_anywhere = hosts.iter().any(HostStatus::is_installed);
    if !is_anywhere && problems.is_empty() {
        problems.push(not_installed(hosts));
    }
    problems
}

fn not_installed(hosts: &[HostStatus]) -> GuardProblem {
    let kind = GuardProblemKind::NotInstalled;
    let Some(first) = hosts.first() else {
        let text = "no coding agent was found in `PATH` or in your home folder";
        let known: Vec<&str> = HOSTS.iter().map(|host| host.title).collect();
        return GuardProblem::new(kind, text, format!("install one of {}", known.join(", ")));
    };
    let titles: Vec<&str> = hosts.iter().map(|host| host.host.title).collect();
    let text = format!("Tenterhook is not installed in {}", titles.join(", "));
    GuardProblem::new(
        kind,
        text,
        format!("tenterhook install {}", first.host.name),
    )
}

fn of_host(status: &HostStatus, proven: &ProvenVersions) -> Vec<GuardProblem> {
    let host = status.host;
    let title = host.title;
    let mut problems: Vec<GuardProblem> = Vec::new();
    for place in &status.places {
        problems.extend(of_place(status, place));
    }
    if !status.is_installed() {
        return problems;
    }
    problems.extend(switched_off(status));
    for path in &status.repeated_by {
        let path = escape_line(&path.display().to_string());
        problems.push(GuardProblem::new(
            GuardProblemKind::RunsTwice,
            format!("{title} runs every hook twice, because it also runs the entries in {path}"),
            format!("tenterhook uninstall {}", host.name),
        ));
    }
    if let Some(version) = status.version.as_deref()
        && status.is_newer_than_measured()
        && !proven.has(host.name, version)
    {
        let measured = host.measured_version;
        let version = escape_line(version);
        problems.push(GuardProblem::new(
            GuardProblemKind::NewerVersion,
            format!("{title} {version} is newer than the tested version {measured}"),
            format!("tenterhook doctor --prove {}", host.name),
        ));
    }
    let problems = problems.into_iter();
    problems.map(|problem| problem.of_host(host.name)).collect()
}

/// Returns a problem for each setting with which an agent runs no hooks.
pub fn switched_off(status: &HostStatus) -> Vec<GuardProblem> {
    let title = status.host.title;
    let off = status.switched_off.iter().map(|off| {
        let path = escape_line(&off.path.display().to_string());
        let key = &off.key;
        GuardProblem::new(
            GuardProblemKind::SwitchedOff,
            format!("{title} runs no hooks because of `{key}` in {path}"),
            format!("remove `{key}` from {path}"),
        )
    });
    off.collect()
}

/// Returns what is wrong with one configuration of an agent.
fn of_place(status: &HostStatus, place: &PlaceStatus) -> Vec<GuardProblem> {
    let host = status.host;
    let title = host.title;
    let path = escape_line(&place.path.display().to_string());
    let project = if place.scope.project().is_some() {
        " --project"
    } else {
        ""
    };
    let name = host.name;
    let install = format!("tenterhook install {name}{project}");
    let entries =
        |text: String, step: String| GuardProblem::new(GuardProblemKind::Entries, text, step);
    let mut problems = Vec::new();
    match place.state {
        PlaceState::Absent | PlaceState::Complete | PlaceState::Incomplete => {}
        PlaceState::Removed => problems.push(entries(
            format!(
                "someone removed the entries of Tenterhook from {path}, so {title} runs no hook"
            ),
            install.clone(),
        )),
        PlaceState::Unreadable => {
            let why = place
                .problem
                .as_ref()
                .map(|it| escape_line(&error_chain(it)));
            let why = why.unwrap_or_else(|| format!("cannot read {path}"));
            problems.push(entries(format!("{title}: {why}"), format!("repair {path}")));
        }
    }
    for (what, events, step) in [
        ("lacks the entries of", &place.missing, install.clone()),
        (
            "has entries of an older version of",
            &place.outdated,
            install.clone(),
        ),
        (
            "has changed entries of",
            &place.altered,
            format!("run `tenterhook uninstall {name}{project}`, then `{install}`"),
        ),
    ] {
        if place.state == PlaceState::Incomplete && !events.is_empty() {
            let events = escape_line(&events.join(", "));
            problems.push(entries(format!("{title}: {path} {what} {events}"), step));
        }
    }
    if let (ApprovalState::Missing, Some(approval)) = (place.approval, host.installation.approval) {
        problems.push(GuardProblem::new(
            GuardProblemKind::EntriesNotApproved,
            format!("{title} does not run the entries in {path} before you approve them"),
            format!("{}, or run `{install} --trust`", approval.by_hand),
        ));
    }
    problems
}

/// Returns the agents whose hooks are loaded: those that call Tenterhook, else any, because a person wants to know about
/// the hooks before they install.
pub fn judged_hosts(hosts: &[HostStatus]) -> Vec<&'static HostAgent> {
    let installed = hosts.iter().filter(|host| host.is_installed());
    let installed: Vec<&'static HostAgent> = installed.map(|host| host.host).collect();
    if installed.is_empty() {
        let any = hosts.first().map(|host| host.host);
        return any
            .into_iter()
            .chain(HOSTS.first().copied())
            .take(1)
            .collect();
    }
    installed
}

/// Returns what is wrong with the programs that agents start.
pub fn of_program(machine: &Machine, programs: &ProgramState) -> Option<GuardProblem> {
    let text = escape_line(&programs.problem(machine)?);
    Some(GuardProblem::new(
        GuardProblemKind::Program,
        text,
        "run `tenterhook install` again for one of your agents",
    ))
}
