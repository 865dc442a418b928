//! Mistral Vibe, whose hooks are commands in a file.

mod capabilities;
mod event;
mod headless;
mod host;
mod installation;
mod tools;

use crate::host::HostAgent;

/// Mistral Vibe as a host.
pub static HOST: HostAgent = HostAgent {
    name: "vibe",
    title: "Mistral Vibe",
    programs: &["vibe"],
    processes: &["vibe-app-server", "vibe-rs"],
    measured_version: "3.0.2",
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
