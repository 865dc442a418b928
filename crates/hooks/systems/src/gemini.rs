//! Gemini CLI, whose hooks are commands in its settings.

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

/// Gemini CLI as a host.
pub static HOST: HostAgent = HostAgent {
    name: "gemini",
    title: "Gemini CLI",
    programs: &["gemini"],
    processes: &[],
    measured_version: "0.61.0",
    tools: &tools::TOOLS,
    events: event::EVENTS,
    variables: &[],
    project_variables: dialect::DIRECTORY_VARIABLES,
    read: host::read,
    write: host::write,
    capabilities: capabilities::CAPABILITIES,
    blind_spots: capabilities::BLIND_SPOTS,
    installation: &installation::INSTALLATION,
    headless: Some(&headless::HEADLESS),
};

/// Gemini CLI as a hook system: its own hooks, run here.
pub static SYSTEM: HookSystem = HookSystem {
    name: "gemini",
    tools: &tools::TOOLS,
    settings: Some(&settings::SETTINGS),
    ..HookSystem::EMPTY
};
