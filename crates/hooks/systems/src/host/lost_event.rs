//! Events whose hooks can do nothing in a host.

use tenterhook_engine::EventKind;

use super::agent::HostAgent;
use super::capability::{HostEffect, Support};
use super::event::{EventRole, HostMode};

/// Why hooks of an event have no effect in a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostEvent {
    /// What the host does, as the end of a sentence.
    pub why: &'static str,
    /// What works instead, as a sentence without a full stop.
    pub instead: &'static str,
}

impl HostAgent {
    /// Returns why hooks of an event can do nothing in the host, if all that they can do is to change the result of a
    /// tool and the host keeps its own result.
    pub fn lost_event(&self, kind: EventKind) -> Option<LostEvent> {
        let results = || {
            let events = self.events.iter();
            events.filter(|event| event.role == EventRole::ToolResult)
        };
        let honours = |effect| {
            results().any(|event| {
                self.support(event.name, HostMode::Interactive, effect) == Support::Honoured
            })
        };
        if kind != EventKind::ToolResponseTransform || honours(HostEffect::ReplaceResult) {
            return None;
        }
        Some(LostEvent {
            why: "keeps the tool's own result",
            instead: if honours(HostEffect::Context) {
                "there, `additional_context` of `post_tool_use` reaches the model, and `decision: deny` of \
                 `pre_tool_use` keeps the tool from running"
            } else {
                "there, `decision: deny` of `pre_tool_use` keeps the tool from running"
            },
        })
    }
}
