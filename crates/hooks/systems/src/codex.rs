//! Codex, whose hooks are commands in `hooks.json`. It drops an answer with a field that it does not know.

mod approval;
mod capabilities;
mod dialect;
mod event;
mod headless;
mod host;
mod installation;
mod settings;
mod tools;

use crate::host::HostAgent;
use crate::system::HookSystem;

/// Codex as a host.
pub static HOST: HostAgent = HostAgent {
    name: "codex",
    title: "Codex",
    programs: &["codex"],
    processes: &[],
    measured_version: "0.169.0",
    tools: &tools::TOOLS,
    events: event::EVENTS,
    variables: &[],
    project_variables: &[],
    read: host::read,
    write: host::write,
    capabilities: capabilities::CAPABILITIES,
    blind_spots: capabilities::BLIND_SPOTS,
    installation: &installation::INSTALLATION,
    headless: Some(&headless::HEADLESS),
};

/// Codex as a hook system: its own hooks, run here.
pub static SYSTEM: HookSystem = HookSystem {
    name: "codex",
    tools: &tools::TOOLS,
    settings: Some(&settings::SETTINGS),
    ..HookSystem::EMPTY
};
