//! Kimi Code, whose hooks are commands in its configuration. Of its answers in JSON, it knows one denial.

mod capabilities;
mod event;
mod headless;
mod host;
mod installation;
mod tools;

use crate::host::HostAgent;

/// Kimi Code as a host.
pub static HOST: HostAgent = HostAgent {
    name: "kimi",
    title: "Kimi Code",
    programs: &["kimi"],
    processes: &["kimi-code"],
    measured_version: "2.1.0",
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
