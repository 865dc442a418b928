//! A permission rule: its syntax, and the calls that it covers.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::argument::{JudgedCall, Restriction};
use crate::glob::Glob;

/// A rule for a tool, or for calls to a tool with a certain argument.
///
/// `shell` covers every call to the tool, `shell(cmd=git *)` only calls whose argument matches. In both parts, `*`
/// matches any text and `?` one character.
///
/// If a call could do more than it appears to, each kind of rule errs on the safe side:
///
/// | call | in an allow rule with an argument | in a deny or ask rule |
/// |---|---|---|
/// | a command line with `;`, `&`, `\|`, `<`, `>`, `` ` ``, `$(`, `${`, a bracket, a backslash or a line end | never matches | each command in it is judged too |
/// | a command in another form: quotes, tabs, `NAME=value`, `!`, `if`, `then`, `do`, a folder before the program | is judged as written | is judged as written and in plain form |
/// | a command that runs another one: `timeout 5 x`, `sudo x`, `sh -c 'x'`, `xargs x`, `find -exec x`, `git difftool -x x` | matches only if the rule spells out the other program before any wildcard | the other command is judged too |
/// | commands nested more than 16 deep | never matches | always matches |
/// | a program that is known only when the line runs: `$x`, `$(…)`, `/bin/r?` | never matches | always matches |
/// | a path with `..` | never matches | is judged as written, resolved and absolute |
/// | a path through a link | matches only if the link's target matches too | the target is judged too, also where the rule names the link |
/// | a file with hard links | never matches, because its other names may be anywhere | is judged by the name that the call uses |
///
/// A call without `path`, or without `cwd`, works in the session's directory and is judged as if the argument were `.`.
/// Paths are compared after links are followed. So an allow rule for a folder that is itself a link matches nothing;
/// write the link's target instead.
///
/// Rules read a command line; they do not run it. They cannot see arguments in variables or built at run time, the
/// commands that a script, an alias, a makefile or an interpreter's own code runs (`python3 -c`), or options that a
/// program takes before its subcommand (`git -C . push`). A folder that a rule names can still be searched from the
/// folder above it, and links are followed as they are at the time of the check. Where that matters, use a `tool_guard`
/// hook or a sandbox, and allow calls instead of denying them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub(super) tool: Glob,
    pub(super) argument: Option<(String, Glob)>,
}

/// The error for text that is not a permission rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{found}` is not a permission rule; expected `TOOL` or `TOOL(ARGUMENT=PATTERN)`")]
pub struct InvalidRule {
    /// The text.
    pub found: String,
}

impl FromStr for Rule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let invalid = || InvalidRule {
            found: text.to_owned(),
        };
        let text = text.trim();
        let is_name = |name: &str| {
            !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "()=".contains(c))
        };
        let Some((tool, rest)) = text.split_once('(') else {
            return if is_name(text) {
                Ok(Self::of_tool(text))
            } else {
                Err(invalid())
            };
        };
        let inner = rest.strip_suffix(')').ok_or_else(invalid)?;
        let (name, pattern) = inner.split_once('=').ok_or_else(invalid)?;
        if !is_name(tool) || !is_name(name) || pattern.is_empty() {
            return Err(invalid());
        }
        Ok(Self {
            tool: Glob::new(tool),
            argument: Some((name.to_owned(), Glob::new(pattern))),
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.argument {
            Some((name, pattern)) => write!(f, "{}({name}={pattern})", self.tool),
            None => self.tool.fmt(f),
        }
    }
}

impl Rule {
    fn of_tool(name: &str) -> Self {
        Self {
            tool: Glob::new(name),
            argument: None,
        }
    }

    pub(super) fn allows(&self, call: &JudgedCall<'_>) -> bool {
        self.tool.matches(call.name)
            && self.argument.as_ref().is_none_or(|(name, pattern)| {
                let argument = call.argument(name);
                argument.is_some_and(|argument| argument.is_allowed_by(pattern))
            })
    }

    /// Returns how the rule covers a call if it is a deny or ask rule. `None` if it does not.
    pub(super) fn restricts(&self, call: &JudgedCall<'_>) -> Option<Restriction> {
        if !self.tool.matches(call.name) {
            return None;
        }
        let Some((name, pattern)) = &self.argument else {
            return Some(Restriction::Matches);
        };
        call.argument(name)?.restricted_by(pattern)
    }
}
