//! Factory droid, whose hooks are commands in its settings.

mod capabilities;
mod event;
mod headless;
mod host;
mod installation;
mod tools;

use crate::host::HostAgent;

/// Factory droid as a host.
pub static HOST: HostAgent = HostAgent {
    name: "droid",
    title: "Factory droid",
    programs: &["droid"],
    processes: &[],
    measured_version: "0.215.0",
    tools: &tools::TOOLS,
    events: event::EVENTS,
    variables: &[],
    project_variables: &[
        "FACTORY_PROJECT_DIR",
        "DROID_PROJECT_DIR",
        "CLAUDE_PROJECT_DIR",
    ],
    read: host::read,
    write: host::write,
    capabilities: capabilities::CAPABILITIES,
    blind_spots: &[],
    installation: &installation::INSTALLATION,
    headless: Some(&headless::HEADLESS),
};
