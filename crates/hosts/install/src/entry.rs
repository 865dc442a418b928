//! Entries in the hook configuration of an agent.

use serde_json::Value;

/// An entry to add.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewEntry {
    /// The agent's name for the event.
    pub(crate) event: String,
    /// The element of the list.
    pub(crate) value: Value,
}

/// An entry of Tenterhook that is in the configuration of an agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundEntry {
    /// The event that the command line names.
    pub(crate) event: String,
    /// The list that contains it, for example the event that the agent runs it for.
    pub(crate) list: String,
    /// The position in the list.
    pub(crate) index: usize,
    /// The element of the list.
    pub(crate) value: Value,
}

/// Recognises the command lines of Tenterhook for one agent: all text before the event's name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinePrefix<'a>(pub(crate) &'a str);

impl LinePrefix<'_> {
    /// Returns the event that a command line is for, if it is one of Tenterhook's.
    pub(crate) fn event<'t>(&self, line: &'t str) -> Option<&'t str> {
        let event = line.strip_prefix(self.0)?;
        let is_name = !event.is_empty()
            && event
                .chars()
                .all(|c| c.is_alphanumeric() || "._-".contains(c));
        is_name.then_some(event)
    }

    /// Returns the event of the first command line of Tenterhook in a value.
    pub(crate) fn event_in<'v>(&self, value: &'v Value) -> Option<&'v str> {
        match value {
            Value::String(line) => self.event(line),
            Value::Array(values) => values.iter().find_map(|value| self.event_in(value)),
            Value::Object(members) => members.values().find_map(|value| self.event_in(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    /// Returns whether a value consists of nothing but a handler of Tenterhook: an object with our command line, or
    /// an object whose list of handlers has no other handler.
    pub(crate) fn is_whole(&self, value: &Value) -> bool {
        let Value::Object(members) = value else {
            return false;
        };
        let is_line = |value: &Value| {
            value
                .as_str()
                .is_some_and(|line| self.event(line).is_some())
        };
        let is_list = |value: &Value| {
            let list = value.as_array().filter(|list| !list.is_empty());
            list.is_some_and(|list| list.iter().all(|value| self.is_whole(value)))
        };
        members
            .values()
            .any(|value| is_line(value) || is_list(value))
    }
}
