//! The description of a host.

use std::fmt;

use crate::tool_names::ToolTable;
use tenterhook_engine::ReadError;

use super::answer::HostAnswer;
use super::capability::{BlindSpot, CapabilityRow, HostEffect};
use super::event::{HostCall, HostEvent, HostInput};
use super::headless::HeadlessRun;
use super::installation::Installation;
use super::verdict::HostVerdict;

/// A coding agent that calls Tenterhook from its own hook configuration.
pub struct HostAgent {
    /// The name, for example `claude-code`, as in `tenterhook install claude-code`.
    pub name: &'static str,
    /// The name in sentences, for example `Claude Code`.
    pub title: &'static str,
    /// The names of its program, to find it in `PATH`.
    pub programs: &'static [&'static str],
    /// Names that its running processes have instead of the name of its program. `doctor --prove` shows that one of both is
    /// above the shell of the agent.
    pub processes: &'static [&'static str],
    /// The version that the capability table was measured on.
    pub measured_version: &'static str,
    /// The host's names of tools.
    pub tools: &'static ToolTable,
    /// The events that the host announces and that Tenterhook installs.
    pub events: &'static [HostEvent],
    /// The environment variables of the host that [`read`](Self::read) uses.
    pub variables: &'static [&'static str],
    /// The environment variables in which the host's own hooks find the folder of the project.
    pub project_variables: &'static [&'static str],
    /// Reads an event of the host.
    pub read: fn(&HostEvent, &HostInput<'_>) -> Result<HostCall, ReadError>,
    /// Writes a verdict whose effects the capability table lists as honoured. Returns the effect that
    /// the host cannot honour for this input, if there is one. Call [`answer`](Self::answer) instead.
    pub write: fn(&HostEvent, &HostInput<'_>, &HostVerdict) -> Result<HostAnswer, HostEffect>,
    /// What the host does with each effect.
    pub capabilities: &'static [CapabilityRow],
    /// What no hook can see.
    pub blind_spots: &'static [BlindSpot],
    /// How Tenterhook is added to the host's configuration.
    pub installation: &'static Installation,
    /// How to run the host without a person, to prove that it follows hooks.
    pub headless: Option<&'static HeadlessRun>,
}

impl fmt::Debug for HostAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl HostAgent {
    /// Returns the host's event with this name.
    pub fn event(&self, name: &str) -> Option<&'static HostEvent> {
        self.events.iter().find(|event| event.name == name)
    }
}
