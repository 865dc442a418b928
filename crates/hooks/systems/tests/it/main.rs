//! Tests of the dialects through their public API.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod answers;
mod events;
mod form;
mod gemini;
mod host_tools;
mod hosts;
#[cfg(unix)]
mod kodelet;
mod kodelet_extension;
mod operator;
mod pi;
#[cfg(unix)]
mod plugins;
#[cfg(unix)]
mod scripts;
mod stray_names;
mod strict;
mod tools;
mod unknown_tools;

use std::sync::Arc;

use tenterhook_engine::{AgentRef, AnyEvent, Envelope, Event, EventId, EventRef, Origin};

/// Sends an event from a host whose ids are always the same.
pub(crate) fn sent(event: impl Event) -> EventRef {
    sent_any(Arc::new(event))
}

/// Sends an event of any type from that host.
pub(crate) fn sent_any(event: Arc<dyn AnyEvent>) -> EventRef {
    let origin = Origin::new("s1", "/w").with_agent(AgentRef::new("root").with_id("a1"));
    let envelope = Envelope::stamped(
        Arc::new(origin),
        7,
        EventId::generate(),
        jiff::Timestamp::UNIX_EPOCH,
    );
    EventRef::new(event, Arc::new(envelope))
}
