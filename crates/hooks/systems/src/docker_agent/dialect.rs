//! The dialect of docker-agent's hooks.

use std::sync::Arc;

use tenterhook_engine::{
    Dialect, EventInfo, EventKind, EventRef, OnError, Policy, ReadError, Reply, ToolNames,
    WriteError,
};
use tenterhook_protocol::{AnyEffect, JsonObject};

use super::contract::Contract;
use super::event::{DockerEvent, EVENTS};
use super::tools::TOOLS;
use super::{read, skeleton, write};

/// The contract of hooks in agent files.
pub(super) static AGENT_FILE: Contract = Contract {
    name: "docker-agent",
    shown_as: None,
    extension: None,
};

/// The contract of guards with `preempt_yolo` in agent files. Their event is `tool_guard`, but they see
/// docker-agent's public name, `pre_tool_use`.
static PREEMPT: Contract = Contract {
    name: "docker-agent preempt",
    shown_as: Some(EventKind::PreToolUse),
    extension: None,
};

/// The dialect.
#[derive(Debug)]
pub struct DockerAgent {
    contract: &'static Contract,
}

impl DockerAgent {
    /// Returns the dialect of hooks in docker-agent's files.
    pub fn agent_file() -> Arc<dyn Dialect> {
        Arc::new(Self {
            contract: &AGENT_FILE,
        })
    }

    /// Returns the dialect of guards with `preempt_yolo` in docker-agent's files. Their event is
    /// `tool_guard`, but they see the name `pre_tool_use`.
    pub fn preempt() -> Arc<dyn Dialect> {
        Arc::new(Self { contract: &PREEMPT })
    }

    /// Returns the event with docker-agent's name `name`.
    pub fn event(name: &str) -> Option<&'static DockerEvent> {
        EVENTS.iter().find(|event| event.name == name)
    }
}

impl Dialect for DockerAgent {
    fn name(&self) -> &'static str {
        self.contract.name
    }

    fn write(&self, event: &EventRef) -> Result<Vec<u8>, WriteError> {
        write::write(self.contract, event)
    }

    fn skeleton(&self, info: &EventInfo) -> Option<JsonObject> {
        skeleton::skeleton(self.contract, info.kind)
    }

    fn read(
        &self,
        info: &EventInfo,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        read::read(self.contract, info, reply, strict)
    }

    fn tools(&self) -> Option<&dyn ToolNames> {
        Some(&TOOLS)
    }

    fn hears_stops(&self) -> bool {
        true
    }

    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy {
        match (info.kind, configured) {
            (EventKind::PreToolUse | EventKind::ToolGuard, _) => {
                Policy::new(OnError::Block, "docker-agent fails closed here")
            }
            (_, Some(on_error)) => Policy::new(on_error, "configured"),
            (_, None) => Policy::new(OnError::Warn, "docker-agent's default"),
        }
    }
}
