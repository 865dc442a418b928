//! Which event a name means, in Tenterhook or in a hook system.

use serde::Serialize;
use tenterhook_engine::{EventKind, EventName};
use tenterhook_systems::form::system_event_names;

/// An event that a name may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventNameMatch {
    /// The event.
    pub kind: EventKind,
    /// The hook systems that use the name. Empty for a name of the catalogue, in any spelling.
    pub systems: Vec<&'static str>,
}

impl EventNameMatch {
    fn of_catalogue(kind: EventKind) -> Self {
        let systems = Vec::new();
        Self { kind, systems }
    }
}

/// The names of an event in one hook system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamesInSystem {
    /// The name of the system, as in `tenterhook fire --from`.
    pub system: &'static str,
    /// The names.
    pub names: Vec<String>,
}

/// Returns the events that `text` may mean: the event of the catalogue with that name, or else the events that have
/// that name in a hook system, or else the event whose name differs only in spelling, as in `PreToolUse`.
///
/// Two systems may use one name for different events. The result is empty if the name is unknown.
pub fn find_event(text: &str) -> Vec<EventNameMatch> {
    if let Some(kind) = known(text) {
        return vec![EventNameMatch::of_catalogue(kind)];
    }
    let mut found: Vec<EventNameMatch> = Vec::new();
    for row in system_event_names().filter(|row| row.name == text) {
        match found.iter_mut().find(|known| known.kind == row.kind) {
            Some(known) => known.systems.push(row.system),
            None => found.push(EventNameMatch {
                kind: row.kind,
                systems: vec![row.system],
            }),
        }
    }
    if found.is_empty() {
        found.extend(known(&snake_case(text)).map(EventNameMatch::of_catalogue));
    }
    found
}

/// Returns the event of the catalogue with this name.
fn known(text: &str) -> Option<EventKind> {
    if text == EventKind::Custom.info().name {
        return Some(EventKind::Custom);
    }
    text.parse().ok().map(|name: EventName| name.kind())
}

/// Returns the names of an event in other hook systems.
pub(crate) fn names_in_systems(kind: EventKind) -> Vec<NamesInSystem> {
    let mut systems: Vec<NamesInSystem> = Vec::new();
    for row in system_event_names().filter(|row| row.kind == kind) {
        match systems.iter_mut().find(|known| known.system == row.system) {
            Some(known) => known.names.push(row.name),
            None => systems.push(NamesInSystem {
                system: row.system,
                names: vec![row.name],
            }),
        }
    }
    systems
}

/// Returns `PreToolUse`, `preToolUse` and `pre-tool-use` as `pre_tool_use`.
fn snake_case(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    let mut was_lower = false;
    // No name of an event is nearly as long.
    for character in text.chars().take(64) {
        if character.is_uppercase() && was_lower {
            name.push('_');
        }
        was_lower = character.is_lowercase() || character.is_numeric();
        if matches!(character, '-' | ' ') {
            name.push('_');
        } else {
            name.extend(character.to_lowercase());
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_system_are_found() {
        for (text, expected) in [
            ("pre_tool_use", vec![(EventKind::PreToolUse, vec![])]),
            ("PreToolUse", vec![(EventKind::PreToolUse, vec![])]),
            ("pre-tool-use", vec![(EventKind::PreToolUse, vec![])]),
            (
                "before_tool_call",
                vec![(EventKind::PreToolUse, vec!["kodelet"])],
            ),
            (
                "on_before_tool",
                vec![(EventKind::PreToolUse, vec!["morphix"])],
            ),
            (
                "on_error",
                vec![(EventKind::AgentError, vec!["docker-agent"])],
            ),
            (
                "tool_call",
                vec![(EventKind::PreToolUse, vec!["operator", "pi"])],
            ),
            (
                "after_provider_response",
                vec![
                    (EventKind::AfterLlmCall, vec!["operator"]),
                    (EventKind::ProviderResponse, vec!["pi"]),
                ],
            ),
            ("x-acme.deploy", vec![(EventKind::Custom, vec![])]),
            ("pre_tool_usee", vec![]),
            ("", vec![]),
        ] {
            let found = find_event(text).into_iter();
            let found: Vec<_> = found.map(|found| (found.kind, found.systems)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
