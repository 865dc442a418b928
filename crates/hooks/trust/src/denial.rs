//! Hooks that deny in place of a hook that may not run.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_engine::{
    Answer, AsyncHandler, Call, EventClass, EventKind, EventName, HandlerError, HookId, HookSpec,
    OnError, Policy, Source,
};

use crate::project_hook::ProjectHook;

/// Returns hooks that deny in place of an untrusted one, for the gates among these events.
pub fn denials(events: Vec<EventName>, source: &Source, hook: &ProjectHook) -> Vec<HookSpec> {
    if events.is_empty() {
        return Vec::new();
    }
    deny(&hook.item.name, events, source, &hook.state.denial_reason())
}

/// Creates hooks that deny, one for each gate among the events. Without events, as for an executable
/// whose events are unknown, they deny prompts and tool calls.
pub fn deny(
    name: &str,
    mut events: Vec<EventName>,
    source: &Source,
    reason: &str,
) -> Vec<HookSpec> {
    if events.is_empty() {
        events = [EventKind::UserPromptSubmit, EventKind::PreToolUse]
            .map(EventName::Known)
            .to_vec();
    }
    events.sort();
    events.dedup();
    events.retain(|event| event.info().class == EventClass::Gate);
    let denials = events.into_iter().map(|event| {
        let handler = UntrustedGate {
            reason: reason.to_owned(),
        };
        HookSpec {
            policy: DENIES,
            source: source.clone(),
            ..HookSpec::new(event, HookId::new(name), Arc::new(handler))
        }
    });
    denials.collect()
}

/// The policy of the hooks that replace an untrusted gate.
const DENIES: Policy = Policy::new(OnError::Block, "an untrusted gate denies");

/// Replaces a hook that may not run. Every call fails with the reason.
#[derive(Debug)]
struct UntrustedGate {
    reason: String,
}

impl AsyncHandler for UntrustedGate {
    fn kind(&self) -> &'static str {
        "withheld"
    }

    fn describe(&self) -> String {
        "untrusted".to_owned()
    }

    fn handle<'a>(&'a self, _call: &'a Call) -> BoxFuture<'a, Answer> {
        Box::pin(async {
            Err(HandlerError::Other {
                problem: self.reason.clone(),
            })
        })
    }

    fn problem(&self) -> Option<String> {
        Some(self.reason.clone())
    }
}
