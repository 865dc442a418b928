//! The contract of docker-agent's hooks, which is also that of native command hooks.
//!
//! | exit status | stdout | effect |
//! |---|---|---|
//! | 0 | nothing | none |
//! | 0 | one JSON object | what its keys say |
//! | 0 | `{` and anything but one JSON object | failure |
//! | 0 | other text | context on the events that take plain text; else, from a native hook of a gate or under `strict_output`, a failure; else nothing |
//! | 2 | any | stops the operation with stderr as the reason |
//! | any other | any | failure |

mod answer;
mod captured;
mod event;
mod message;
mod read;
mod skeleton;
mod tools;
mod write;

use std::sync::Arc;

use tenterhook::{
    Dialect, EventInfo, EventKind, EventRef, OnError, Policy, ReadError, Reply, ToolNames,
    WriteError,
};
use tenterhook_protocol::{AnyEffect, JsonObject};

pub(crate) use captured::{FORM, NATIVE_FORM};
pub use event::{DockerEvent, EVENTS};
pub(crate) use tools::{TASK_ARGUMENTS, TOOLS};

/// Whose hook speaks the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    /// A hook of a native file. Every event, canonical names, and the keys that only this engine has.
    Native,
    /// A hook of a docker-agent agent file. That system's events under that system's names.
    AgentFile,
    /// A hook of an agent file's preempt lane: a guard that is told the public name `pre_tool_use`.
    Preempt,
}

/// The dialect.
#[derive(Debug)]
pub struct DockerAgent {
    speaker: Speaker,
}

impl DockerAgent {
    /// The contract as native hooks speak it.
    pub fn native() -> Arc<dyn Dialect> {
        Arc::new(Self {
            speaker: Speaker::Native,
        })
    }

    /// The contract as hooks of docker-agent agent files speak it.
    pub fn agent_file() -> Arc<dyn Dialect> {
        Arc::new(Self {
            speaker: Speaker::AgentFile,
        })
    }

    /// The contract as hooks of an agent file's preempt lane speak it: the event is `tool_guard`, the name that they
    /// are told is `pre_tool_use`.
    pub fn preempt() -> Arc<dyn Dialect> {
        Arc::new(Self {
            speaker: Speaker::Preempt,
        })
    }

    /// Returns the event that docker-agent knows by this name.
    pub fn event(name: &str) -> Option<&'static DockerEvent> {
        EVENTS.iter().find(|event| event.name == name)
    }
}

impl Dialect for DockerAgent {
    fn name(&self) -> &'static str {
        match self.speaker {
            Speaker::Native => "native",
            Speaker::AgentFile => "docker-agent",
            Speaker::Preempt => "docker-agent preempt",
        }
    }

    fn write(&self, event: &EventRef) -> Result<Vec<u8>, WriteError> {
        write::write(self.speaker, event)
    }

    fn skeleton(&self, info: &EventInfo) -> Option<JsonObject> {
        skeleton::skeleton(self.speaker, info.kind)
    }

    fn read(
        &self,
        info: &EventInfo,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        read::read(self.speaker, info, reply, strict)
    }

    fn tools(&self) -> Option<&dyn ToolNames> {
        match self.speaker {
            Speaker::Native => None,
            Speaker::AgentFile | Speaker::Preempt => crate::tools::of_dialect("docker-agent"),
        }
    }

    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy {
        match (self.speaker, info.kind, configured) {
            (Speaker::Native, _, _) => tenterhook::native_policy(info, configured),
            (
                Speaker::AgentFile | Speaker::Preempt,
                EventKind::PreToolUse | EventKind::ToolGuard,
                _,
            ) => Policy::new(OnError::Block, "docker-agent fails closed here"),
            (Speaker::AgentFile | Speaker::Preempt, _, Some(on_error)) => {
                Policy::new(on_error, "configured")
            }
            (Speaker::AgentFile | Speaker::Preempt, _, None) => {
                Policy::new(OnError::Warn, "docker-agent's default")
            }
        }
    }
}
