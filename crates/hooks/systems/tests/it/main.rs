//! Tests of the dialects through their public API.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod answers;
mod events;
mod failures;
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

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tenterhook_engine::{AgentRef, AnyEvent, Envelope, Event, EventId, EventRef, Origin};

/// Set it to write golden files instead of comparing with them.
const UPDATE: &str = "TENTERHOOK_INTERNAL__UPDATE_DOCS";

/// Compares a text with a golden file, or writes the file.
pub(crate) fn compare(path: &Path, found: &str) {
    if std::env::var_os(UPDATE).is_some() {
        fs::write(path, found).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    let is_new = |line: &&str| !expected.lines().any(|known| known == *line);
    let new: Vec<&str> = found.lines().filter(is_new).collect();
    assert!(
        expected == found,
        "{} is out of date: run `{UPDATE}=1 cargo test -p tenterhook-systems --test it` and read the \
         difference; new lines:\n{}",
        path.display(),
        new.join("\n")
    );
}

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
