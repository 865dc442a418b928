//! goose, whose hooks are commands in a plugin.

mod capabilities;
mod event;
mod headless;
mod host;
mod installation;
mod tools;

use crate::host::HostAgent;

/// goose as a host.
pub static HOST: HostAgent = HostAgent {
    name: "goose",
    title: "goose",
    programs: &["goose"],
    processes: &[],
    measured_version: "1.52.0",
    tools: &tools::TOOLS,
    events: event::EVENTS,
    variables: host::VARIABLES,
    project_variables: &[],
    read: host::read,
    write: host::write,
    capabilities: capabilities::CAPABILITIES,
    blind_spots: capabilities::BLIND_SPOTS,
    installation: &installation::INSTALLATION,
    headless: Some(&headless::HEADLESS),
};
