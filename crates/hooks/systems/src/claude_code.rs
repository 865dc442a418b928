//! Claude Code, whose hooks are commands in its settings.

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

/// Claude Code as a host.
pub static HOST: HostAgent = HostAgent {
    name: "claude-code",
    title: "Claude Code",
    programs: &["claude"],
    processes: &[],
    measured_version: "2.1.330",
    tools: &tools::TOOLS,
    events: event::EVENTS,
    variables: host::VARIABLES,
    project_variables: dialect::DIRECTORY_VARIABLES,
    read: host::read,
    write: host::write,
    capabilities: capabilities::CAPABILITIES,
    blind_spots: &[],
    installation: &installation::INSTALLATION,
    headless: Some(&headless::HEADLESS),
};

/// Claude Code as a hook system: its own hooks, run here.
pub static SYSTEM: HookSystem = HookSystem {
    name: "claude-code",
    tools: &tools::TOOLS,
    settings: Some(&settings::SETTINGS),
    ..HookSystem::EMPTY
};
