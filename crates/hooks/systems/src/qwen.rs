//! Qwen Code, whose hooks are commands in its settings.

mod capabilities;
mod event;
mod headless;
mod host;
mod installation;
mod tools;

use crate::host::HostAgent;

/// Qwen Code as a host.
pub static HOST: HostAgent = HostAgent {
    name: "qwen",
    title: "Qwen Code",
    programs: &["qwen"],
    processes: &[],
    measured_version: "0.24.4",
    tools: &tools::TOOLS,
    events: event::EVENTS,
    variables: &[],
    project_variables: &[
        "QWEN_PROJECT_DIR",
        "GEMINI_PROJECT_DIR",
        "CLAUDE_PROJECT_DIR",
    ],
    read: host::read,
    write: host::write,
    capabilities: capabilities::CAPABILITIES,
    blind_spots: &[],
    installation: &installation::INSTALLATION,
    headless: Some(&headless::HEADLESS),
};
