//! Decides the exit status of `tenterhook fire`, whatever goes wrong.
//!
//! Other agents run a tool unless the command that guards it exits with status 2. So on a gate event, `fire` exits
//! with 0 only if the operation may proceed, and with 2 in every other case: an unknown option, a broken hook file,
//! an interrupt, a panic. This rule is in this module only.

use std::borrow::Cow;
use std::ffi::OsStr;

use clap::CommandFactory as _;
use serde_json::{Value, json};
use tenterhook_engine::{EventClass, EventName};

use crate::args::{Args, Command};
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::output;

/// What is known about a call of `fire`, even if its arguments cannot be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FireCall {
    /// Whether the caller waits for a decision: the event is a gate, user-defined or unknown.
    is_gate: bool,
    is_json: bool,
}

impl FireCall {
    /// Recognises a call of `fire` by its words, even if they cannot be parsed as arguments.
    pub(crate) fn of_words<'a>(words: impl Iterator<Item = &'a OsStr>) -> Option<Self> {
        let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
        let program = Args::command();
        let is_command = |word: &str| program.find_subcommand(word).is_some();
        // A word after an option may be the option's value, so a word that follows no option takes precedence.
        let before = std::iter::once(None).chain(words.iter().map(Some));
        let is_free =
            |before: Option<&Cow<'_, str>>| before.is_none_or(|word| !word.starts_with('-'));
        let mut commands = words
            .iter()
            .zip(before)
            .enumerate()
            .filter(|(_, (word, _))| is_command(word));
        let free = commands.clone().find(|(_, (_, before))| is_free(*before));
        let (at, (command, _)) = free.or_else(|| commands.next())?;
        if command != "fire" {
            return None;
        }
        // Only a word right after the command is certainly the event. Any other call may have been meant for a gate.
        let event = words.get(at + 1).and_then(|word| word.parse().ok());
        Some(Self {
            is_gate: event.is_none_or(|event| is_gate(&event)),
            is_json: words.iter().any(|word| word == "--json"),
        })
    }

    /// Recognises a parsed call of `fire`.
    pub(crate) fn of_command(command: &Command) -> Option<Self> {
        let Command::Fire(args) = command else {
            return None;
        };
        let event: Option<EventName> = args.event.parse().ok();
        Some(Self {
            is_gate: event.is_none_or(|event| is_gate(&event)),
            is_json: args.json,
        })
    }

    /// Returns whether the caller waits for a decision.
    pub(crate) fn is_gate(self) -> bool {
        self.is_gate
    }

    /// Returns the exit status of the call.
    pub(crate) fn status(self, exit: Exit) -> Exit {
        if self.is_gate && exit != Exit::Done {
            Exit::Stopped
        } else {
            exit
        }
    }

    /// Prints the report of a failed call as JSON, if the call has `--json`.
    pub(crate) fn report(self, error: &CliError) {
        if self.is_json {
            let decision = self.is_gate.then_some("stop");
            output::json(&json!({
                "decision": decision,
                "reason": error.in_one_line(),
                "by": null,
                "kind": self.is_gate.then_some("failed"),
                "error": describe(error),
            }));
        }
    }
}

/// Returns whether callers wait for a decision on the event. A user-defined event counts as a gate, because only the
/// user knows what it is for.
pub(crate) fn is_gate(event: &EventName) -> bool {
    matches!(event, EventName::Custom(_)) || event.info().class == EventClass::Gate
}

/// Describes an error as JSON.
pub(crate) fn describe(error: &CliError) -> Value {
    let problems = error.load.as_ref().map(|load| load.problems.as_slice());
    let broken = error.load.as_ref().map(|load| load.broken.as_slice());
    json!({
        "message": error.message,
        "causes": error.causes,
        "hint": error.hint,
        "problems": problems.unwrap_or_default(),
        "broken": broken.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> Option<FireCall> {
        FireCall::of_words(line.split(' ').map(OsStr::new))
    }

    #[test]
    fn a_call_of_fire_is_recognised_by_its_words() {
        for (line, is_gate) in [
            ("fire pre_tool_use --bogus", Some(true)),
            ("--bogus fire pre_tool_use", Some(true)),
            ("--color sometimes fire tool_guard", Some(true)),
            ("fire --bogus x-acme.deploy", Some(true)),
            ("fire pre_tol_use --bogus", Some(true)),
            ("fire --input -", Some(true)),
            ("fire", Some(true)),
            ("fire session_start --input pre_tool_use", Some(false)),
            (
                "fire --hooks stop --tool turn_start -- pre_tool_use --bad",
                Some(true),
            ),
            ("fire --tool stop pre_tool_usee --badopt", Some(true)),
            ("--color list fire pre_tool_use", Some(true)),
            ("fire session_start --bogus", Some(false)),
            ("fire session_start -- pre_tool_use", Some(false)),
            ("run fire pre_tool_use", None),
            ("list --bogus", None),
            ("--version", None),
        ] {
            let found = call(line).map(|call| call.is_gate);
            assert_eq!(found, is_gate, "{line}");
        }
    }

    #[test]
    fn every_status_of_a_gate_but_0_is_2() {
        let statuses = [
            Exit::Done,
            Exit::Failed,
            Exit::Stopped,
            Exit::Config,
            Exit::Run,
            Exit::Usage,
            Exit::Interrupted,
        ];
        let gate = call("fire pre_tool_use").unwrap();
        let observer = call("fire session_start").unwrap();
        for exit in statuses {
            let expected = if exit == Exit::Done {
                Exit::Done
            } else {
                Exit::Stopped
            };
            assert_eq!(gate.status(exit), expected);
            assert_eq!(observer.status(exit), exit);
        }
    }
}
