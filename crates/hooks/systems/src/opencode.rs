//! opencode, which calls a plugin in its own process.

mod capabilities;
mod event;
mod headless;
mod host;
mod installation;
mod tools;

use crate::host::HostAgent;

/// opencode as a host.
pub static HOST: HostAgent = HostAgent {
    name: "opencode",
    title: "opencode",
    programs: &["opencode"],
    processes: &[],
    measured_version: "1.18.33",
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
