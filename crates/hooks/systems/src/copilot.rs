//! GitHub Copilot CLI, whose hooks are commands in files of its folder of hooks.

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

/// Copilot CLI as a host.
pub static HOST: HostAgent = HostAgent {
    name: "copilot",
    title: "Copilot CLI",
    programs: &["copilot"],
    processes: &[],
    measured_version: "1.0.102",
    tools: &tools::TOOLS,
    events: event::EVENTS,
    variables: &[],
    project_variables: dialect::DIRECTORY_VARIABLES,
    read: host::read,
    write: host::write,
    capabilities: capabilities::CAPABILITIES,
    blind_spots: &[],
    installation: &installation::INSTALLATION,
    headless: Some(&headless::HEADLESS),
};

/// Copilot CLI as a hook system: its own hooks, run here.
pub static SYSTEM: HookSystem = HookSystem {
    name: "copilot",
    tools: &tools::TOOLS,
    settings: Some(&settings::SETTINGS),
    ..HookSystem::EMPTY
};
