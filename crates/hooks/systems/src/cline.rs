//! Cline, whose hooks are executables that are named after events.

mod capabilities;
mod event;
mod headless;
mod host;
mod input;
mod installation;
mod tools;

use crate::host::HostAgent;

/// Cline as a host.
pub static HOST: HostAgent = HostAgent {
    name: "cline",
    title: "Cline",
    programs: &["cline"],
    processes: &[],
    measured_version: "3.0.65",
    tools: &tools::TOOLS,
    events: event::EVENTS,
    variables: &[],
    project_variables: &[],
    read: host::read,
    write: host::write,
    capabilities: capabilities::CAPABILITIES,
    blind_spots: &[],
    installation: &installation::INSTALLATION,
    headless: Some(&headless::HEADLESS),
};
