//! An argument of a call in the form in which rules compare it: a command line, a path or plain text.

use std::borrow::Cow;
use std::path::Path;

use serde_json::Value;
use tenterhook_protocol::JsonObject;

use super::location::{Place, follow_pattern, goes_up};
use crate::glob::Glob;

/// The parts of a call that rules compare.
pub(super) struct JudgedCall<'a> {
    pub(super) name: &'a str,
    pub(super) category: &'static str,
    pub(super) input: &'a JsonObject,
    pub(super) cwd: &'a Path,
}

/// How an argument is interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    CommandLine,
    Path,
    Text,
}

/// How a deny or ask rule covers a call.
pub(super) enum Restriction {
    /// The call matches the rule.
    Matches,
    /// No one can tell what the call's command line runs, for this reason.
    Unread(String),
}

/// One argument of a call.
pub(super) struct Argument<'a> {
    text: Cow<'a, str>,
    meaning: Meaning,
    cwd: &'a Path,
}

impl JudgedCall<'_> {
    /// Returns the argument called `name`, or the default that the tool uses without it.
    pub(super) fn argument(&self, name: &str) -> Option<Argument<'_>> {
        let meaning = match (self.category, name) {
            ("shell", "cwd") | ("filesystem", _) => Meaning::Path,
            ("shell", _) => Meaning::CommandLine,
            _ => Meaning::Text,
        };
        let is_directory = matches!(
            (self.category, name),
            ("shell", "cwd") | ("filesystem", "path")
        );
        let text = match self.input.get(name) {
            Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
            None | Some(Value::Null) if is_directory => Cow::Borrowed("."),
            Some(value) => Cow::Owned(value.to_string()),
            None => return None,
        };
        Some(Argument {
            text,
            meaning,
            cwd: self.cwd,
        })
    }
}

impl Argument<'_> {
    /// Reports whether an allow pattern matches. An argument that could mean more than it says never matches.
    pub(super) fn is_allowed_by(&self, pattern: &Glob) -> bool {
        let means_it = match self.meaning {
            Meaning::CommandLine => return is_command_allowed(pattern, &self.text),
            Meaning::Path => {
                let mut found = self.place().found().into_iter();
                !goes_up(&self.text)
                    && !self.place().has_other_links()
                    && found.any(|name| pattern.matches(&name))
            }
            Meaning::Text => true,
        };
        means_it && pattern.matches(&self.text)
    }

    /// Returns how a deny or ask pattern covers the argument, if it does. A path pattern is compared both as written and
    /// with its links followed.
    pub(super) fn restricted_by(&self, pattern: &Glob) -> Option<Restriction> {
        let mut unread = None;
        let mut readings = match self.meaning {
            Meaning::CommandLine => {
                let reading = tenterhook_shell::read(&self.text);
                unread = reading.unread().map(|unread| unread.to_string());
                reading.texts()
            }
            Meaning::Path => [self.place().spelled(), self.place().found()].concat(),
            Meaning::Text => Vec::new(),
        };
        readings.push(self.text.clone().into_owned());
        let is_match = |pattern: &Glob| readings.iter().any(|text| pattern.matches(text));
        let is_restricted = is_match(pattern)
            || (self.meaning == Meaning::Path
                && follow_pattern(&pattern.to_string(), self.cwd)
                    .is_some_and(|followed| is_match(&Glob::new(&followed))));
        if is_restricted {
            Some(Restriction::Matches)
        } else {
            unread.map(Restriction::Unread)
        }
    }

    fn place(&self) -> Place<'_> {
        Place {
            text: &self.text,
            cwd: self.cwd,
        }
    }
}

/// Reports whether an allow pattern matches a command line. A line that could run more than one plain command never
/// matches.
pub(crate) fn is_command_allowed(pattern: &Glob, line: &str) -> bool {
    !line.contains(tenterhook_shell::is_syntax)
        && spells_launches(pattern, line)
        && pattern.matches(line)
}

/// Reports whether a pattern spells out every program that a line runs indirectly, as `timeout 5 make *` does. A
/// wildcard never stands for such a program.
fn spells_launches(pattern: &Glob, line: &str) -> bool {
    let launches = tenterhook_shell::launches(line);
    launches.is_some() && launches == tenterhook_shell::launches(&pattern.literal_words())
}
