//! The keys that templates may use.

use std::collections::BTreeSet;
use std::sync::Arc;

use tenterhook_engine::{Dialect, EventName};
use tenterhook_protocol::JsonObject;

/// The variable of a translated template that holds the event.
pub(super) const ROOT: &str = "_root";

/// What happens if a key has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingKey {
    /// It prints `<no value>` and counts as false.
    Printed,
    /// The rendering fails.
    Failure,
}

/// The events that a template is for, and the dialect that writes them. Together they determine the keys.
#[derive(Debug, Clone)]
pub struct TemplateScope {
    pub(super) dialect: Arc<dyn Dialect>,
    pub(super) events: Vec<EventName>,
    /// Each known key, with its value for events that leave it out.
    pub(super) zeros: JsonObject,
    /// Whether an event may have keys that are not known in advance.
    pub(super) is_open: bool,
}

impl TemplateScope {
    /// Makes the scope of a hook from its events and its dialect.
    pub fn new(dialect: Arc<dyn Dialect>, events: &[EventName]) -> Self {
        let mut zeros = JsonObject::new();
        let mut is_open = events.is_empty();
        for event in events {
            match dialect.skeleton(event.info()) {
                Some(keys) => zeros.extend(keys),
                None => is_open = true,
            }
        }
        Self {
            dialect,
            events: events.to_vec(),
            zeros,
            is_open,
        }
    }

    /// Fails if no event of the scope has this key.
    pub(super) fn check(&self, key: &str, written: &str) -> Result<(), String> {
        if self.is_open || self.zeros.contains_key(key) {
            return Ok(());
        }
        let events: Vec<String> = self
            .events
            .iter()
            .map(|event| format!("`{event}`"))
            .collect();
        let meant = self
            .zeros
            .keys()
            .map(|known| (strsim::jaro_winkler(key, known), known))
            .filter(|(likeness, _)| *likeness >= 0.86)
            .reduce(|best, next| if next.0 > best.0 { next } else { best });
        let meant = meant.map(|(_, known)| format!(", did you mean `{known}`?"));
        Err(format!(
            "unknown field `{written}` of {}{}",
            events.join(" and "),
            meant.unwrap_or_default()
        ))
    }

    pub(super) fn names(&self) -> String {
        let names: Vec<String> = self.zeros.keys().map(|key| format!("`{key}`")).collect();
        names.join(", ")
    }
}

/// Where a template in Go's syntax gets its values from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Values<'a> {
    /// An event of a scope.
    Event(&'a TemplateScope),
    /// Named arguments.
    Arguments,
}

/// The keys of the event that a template uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Names {
    All,
    These(BTreeSet<String>),
}
