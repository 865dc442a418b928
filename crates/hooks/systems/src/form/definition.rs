//! The definition of a form: how one system presents events to its hooks, as data.

use std::fmt;
use std::sync::Arc;

use tenterhook_engine::{Dialect, EventKind, EventName, ReadError};

use super::reading::Reading;

/// How one system presents events to its hooks.
pub struct Form {
    /// The name of the form, as in `--from kodelet`.
    pub name: &'static str,
    /// Keys that every event in this form has. The first one names the event.
    pub(crate) marks: &'static [&'static str],
    /// Keys that no event in this form has.
    pub(crate) lacks: &'static [&'static str],
    /// Returns the keys that a payload of the event may have. Needed only if several forms have the same marks.
    pub(crate) keys: fn(EventKind) -> Vec<&'static str>,
    /// Returns the system's names for an event, or an empty list if the system does not have the event.
    pub(crate) names: for<'a> fn(&'a EventName) -> Vec<&'a str>,
    /// Returns the dialect that writes an event in this form.
    pub(crate) dialect: fn(&EventName) -> Option<Arc<dyn Dialect>>,
    /// Translates the keys of an event.
    pub(crate) read: fn(&EventName, &mut Reading<'_>) -> Result<(), ReadError>,
    /// Whether the form leaves out fields that are zero, false or empty.
    pub(crate) omits_zeros: bool,
    /// Required fields of events that this form does not carry, with the values that they get.
    pub(crate) not_carried: &'static [(EventKind, &'static str, Substitute)],
}

/// The value of a field that a form does not carry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Substitute {
    Text(&'static str),
    Zero,
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Form {
    /// Describes the keys by which the form is recognised, for messages.
    pub fn deciding_keys(&self) -> String {
        let mut text = list(self.marks, " and ");
        if !self.lacks.is_empty() {
            text = format!("{text} without {}", list(self.lacks, ", "));
        }
        text
    }
}

/// Quotes names and joins them.
pub(super) fn list(names: &[impl fmt::Display], between: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(between)
}
