//! How coding agents write hooks in their own files, so that these hooks run here without a change.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenterhook_engine::{Dialect, EventKind};

/// The files of a hook system in which people write hooks next to other settings.
///
/// At the key `hooks`, such a file has an object with a list for each event.
pub struct HookSettings {
    /// The names of the folders and files of the system, by which its files are recognised.
    pub places: &'static [&'static str],
    /// Where the user's own file is, below the home folder.
    pub user: &'static str,
    /// Where the file of a project is, below its folder.
    pub project: &'static str,
    /// The events that hooks can be for.
    pub events: &'static [SettingsEvent],
    /// Keys next to the events that are not events.
    pub other_keys: &'static [&'static str],
    /// The key of an object that switches hooks off: with `enabled: false` all of them, and with `disabled` the
    /// hooks with these names or command lines.
    pub switches_key: Option<&'static str>,
    /// Whether hooks are in groups, each with a matcher and the list `hooks`.
    pub has_groups: bool,
    /// The keys of a hook that have its command line. The first one that is present counts.
    pub command_keys: &'static [&'static str],
    /// The key of a hook that has its timeout.
    pub timeout_key: &'static str,
    /// What one unit of the timeout is.
    pub timeout_unit: Duration,
    /// The timeout of a hook that does not set one.
    pub default_timeout: Duration,
    /// How matchers are written.
    pub matchers: MatcherStyle,
    /// Returns the dialect of a hook on an event. The text is the value of its key `if`.
    pub dialect: fn(&'static SettingsEvent, Option<&str>) -> Arc<dyn Dialect>,
}

impl fmt::Debug for HookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.user)
    }
}

impl HookSettings {
    /// Returns the event with this name.
    pub fn event(&self, name: &str) -> Option<&'static SettingsEvent> {
        self.events.iter().find(|event| event.name == name)
    }
}

/// An event for which hooks can be written in a file of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsEvent {
    /// The system's name for the event.
    pub name: &'static str,
    /// The event of the catalogue.
    pub kind: EventKind,
    /// Whether matchers have an effect on the event.
    pub has_matcher: bool,
    /// Which occurrences of the catalogue's event are this event.
    pub occurrences: Occurrences,
    /// The timeout of a hook that does not set one, if the event has its own.
    pub timeout: Option<Duration>,
}

/// Which occurrences of an event of the catalogue are an event of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrences {
    /// All of them, except results of calls that were denied.
    All,
    /// Results of tools that succeeded.
    Succeeded,
    /// Results of tools that failed.
    Failed,
}

impl SettingsEvent {
    /// Creates an event with a matcher and the system's usual timeout.
    pub const fn new(name: &'static str, kind: EventKind) -> Self {
        Self {
            name,
            kind,
            has_matcher: true,
            occurrences: Occurrences::All,
            timeout: None,
        }
    }

    /// Makes matchers have no effect.
    #[must_use]
    pub const fn without_matcher(self) -> Self {
        Self {
            has_matcher: false,
            ..self
        }
    }

    /// Restricts the event to some occurrences.
    #[must_use]
    pub const fn only(self, occurrences: Occurrences) -> Self {
        Self {
            occurrences,
            ..self
        }
    }

    /// Sets the timeout of hooks that do not set one, in seconds.
    #[must_use]
    pub const fn within(self, seconds: u64) -> Self {
        Self {
            timeout: Some(Duration::from_secs(seconds)),
            ..self
        }
    }
}

/// How matchers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatcherStyle {
    /// A list of names separated by `|` or `,`, or else a regular expression for any part of the subject.
    NamesOrPart,
    /// A regular expression for any part of the subject.
    Part,
    /// A regular expression for the whole subject.
    Whole,
}

impl MatcherStyle {
    /// Returns the matcher in our own form, which is a regular expression for the whole subject.
    pub fn whole(self, written: &str) -> String {
        let is_everything = written.is_empty() || written == "*";
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_- ,|".contains(c);
        if is_everything || self == Self::Whole {
            return written.to_owned();
        }
        if self == Self::NamesOrPart && written.chars().all(is_name) {
            let names = written.split(['|', ',']).map(str::trim);
            return names
                .filter(|name| !name.is_empty())
                .collect::<Vec<_>>()
                .join("|");
        }
        format!("(?s:.*)(?:{written})(?s:.*)")
    }
}

#[cfg(test)]
mod tests {
    use tenterhook_engine::Matcher;

    use super::*;

    #[test]
    fn matchers_are_read_as_their_system_documents_them() {
        use MatcherStyle::{NamesOrPart, Part, Whole};
        for (style, written, subject, expected) in [
            (NamesOrPart, "", "Bash", true),
            (NamesOrPart, "*", "Bash", true),
            (NamesOrPart, "Bash", "Bash", true),
            (NamesOrPart, "Bash", "BashOutput", false),
            (NamesOrPart, "Edit|Write", "Write", true),
            (NamesOrPart, "Edit, Write", "Write", true),
            (NamesOrPart, "mcp__memory", "mcp__memory__read", false),
            (NamesOrPart, "mcp__memory__.*", "mcp__memory__read", true),
            (NamesOrPart, "Note.*", "NotebookEdit", true),
            (NamesOrPart, ".*Edit", "NotebookEdit2", true),
            (NamesOrPart, "^Edit", "MultiEdit", false),
            (Part, "Bash", "BashOutput", true),
            (Part, "Edit|Write", "MultiEdit", true),
            (Part, "^(Bash|apply_patch)$", "apply_patch", true),
            (Whole, "bash|edit", "edit", true),
            (Whole, "bash", "bash2", false),
        ] {
            let matcher = Matcher::parse(&style.whole(written)).unwrap();
            assert_eq!(
                matcher.matches(Some(subject)),
                expected,
                "{written} {subject}"
            );
        }
    }
}
