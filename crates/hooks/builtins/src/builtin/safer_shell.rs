//! Labels the command lines of the shell tool, and asks the user about destructive ones.
//!
//! The label comes from reading the line; it is not a sandbox. Effects of variables, encoded text or other programs
//! are not visible in the line, so such a line is never labelled `safe`.

mod destructive;
mod overwritten;
mod safe;

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind, Permission};

use self::destructive::{Radius, find_destructive, is_interpreter};
use self::overwritten::overwritten;
use self::safe::find_safe;
use super::row::{Builtin, EventRunner, blocking};
use super::shell_call::{command_line, directory};
use tenterhook_shell::{Input, LineCommand, Reading, Word};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "safer_shell",
    events: &[EventKind::PreToolUse, EventKind::ToolGuard],
    arguments: "`label`, `safer` (the default) or `strict`",
    make: |setup| {
        let policy = match setup.arguments {
            [] => POLICIES.get(1),
            [word] => POLICIES
                .iter()
                .find(|policy| policy.names.contains(&word.as_str())),
            other => return Err(format!("takes one argument, found {}", other.len())),
        };
        match policy {
            Some(policy) => Ok(Box::new(SaferShell { policy })),
            None => Err(format!(
                "unknown policy `{}`; expected `label`, `safer` or `strict`",
                setup.arguments.join(" ")
            )),
        }
    },
};

/// Which labels a policy asks about.
struct Policy {
    /// Its name, and docker-agent's name for a policy that is not stricter.
    names: &'static [&'static str],
    asks: &'static [Label],
}

const POLICIES: [Policy; 3] = [
    Policy {
        names: &["label", "unsafe"],
        asks: &[],
    },
    Policy {
        names: &["safer"],
        asks: &[Label::Destructive],
    },
    Policy {
        names: &["strict", "safe-auto"],
        asks: &[Label::Destructive, Label::Unknown],
    },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    /// The command only reads.
    Safe,
    /// The command can destroy something, or runs code that no one has reviewed.
    Destructive,
    /// Neither is certain.
    Unknown,
}

impl Label {
    fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Destructive => "destructive",
            Self::Unknown => "unknown",
        }
    }
}

/// What is known about a command line.
#[derive(Debug, PartialEq, Eq)]
struct Assessment {
    label: Label,
    blast_radius: &'static str,
    category: Option<&'static str>,
    /// Why it has this label. `None` if nothing is known.
    reason: Option<String>,
}

impl Assessment {
    fn destructive(radius: Radius, category: &'static str, reason: String) -> Self {
        Self {
            label: Label::Destructive,
            blast_radius: radius.as_str(),
            category: Some(category),
            reason: Some(reason),
        }
    }
}

/// Assesses a command line. The most destructive command in it counts.
fn assess(line: &str, reading: &Reading) -> Assessment {
    let found = reading.commands.iter().filter_map(find_destructive);
    if let Some(found) = found.reduce(|best, found| {
        if found.radius > best.radius {
            found
        } else {
            best
        }
    }) {
        let reason = format!("`{}` can destroy something", found.shown);
        return Assessment::destructive(found.radius, found.category, reason);
    }
    if !reading.is_complete {
        let reason = "it has too many nested commands to check";
        return Assessment::destructive(Radius::High, "code", reason.to_owned());
    }
    if reading.commands.iter().any(empties_file) {
        let reason = "it empties a file";
        return Assessment::destructive(Radius::Medium, "fs-overwrite", reason.to_owned());
    }
    if reading.commands.iter().any(runs_unread) {
        let reason = "it runs text that another command prints";
        return Assessment::destructive(Radius::High, "code", reason.to_owned());
    }
    match find_safe(line) {
        Some((command, category)) => Assessment {
            label: Label::Safe,
            blast_radius: "safe",
            category: Some(category),
            reason: Some(format!("`{command}` only reads")),
        },
        None => Assessment {
            label: Label::Unknown,
            blast_radius: "unknown",
            category: None,
            reason: None,
        },
    }
}

/// Reports whether a command redirects the output of no program, or of one without output, to a file.
fn empties_file(command: &LineCommand) -> bool {
    let has_no_output = ["", ":", "true"].contains(&command.program());
    let mut redirections = command.redirections.iter();
    has_no_output
        && redirections
            .any(|it| [">", ">|", "&>"].contains(&it.operator) && it.target.as_str() != "/dev/null")
}

/// Reports whether a command is an interpreter that runs the output of another command: what it reads from a pipe, or
/// text that the shell puts into the line.
fn runs_unread(command: &LineCommand) -> bool {
    if !is_interpreter(command.name()) {
        return false;
    }
    let mut operands = command.arguments().iter();
    let operand =
        operands.find(|word| !word.as_str().starts_with(['-', '+']) || word.as_str() == "-");
    let reads_input = operand.is_none_or(|word| ["-", "/dev/stdin"].contains(&word.as_str()))
        || command.arguments().iter().any(|word| word.as_str() == "-s");
    match &command.input {
        Input::Unknown if reads_input => true,
        Input::Text(text) if reads_input => text.contains("$(…)"),
        Input::Inherited | Input::Text(_) | Input::Unknown => operand.is_some_and(Word::has_output),
    }
}

struct SaferShell {
    policy: &'static Policy,
}

impl SaferShell {
    fn judge(&self, line: &str, reading: &Reading) -> AnyEffect {
        self.effect(assess(line, reading))
    }

    /// Judges a line that runs in a directory.
    async fn judge_in(
        &self,
        line: &str,
        reading: &Reading,
        dir: PathBuf,
    ) -> Result<AnyEffect, HandlerError> {
        let mut assessment = assess(line, reading);
        if assessment.label == Label::Unknown {
            let line = line.to_owned();
            if let Some(file) = blocking(move || overwritten(&line, &dir)).await? {
                let reason = format!("it overwrites `{file}`");
                assessment = Assessment::destructive(Radius::Medium, "fs-overwrite", reason);
            }
        }
        Ok(self.effect(assessment))
    }

    fn effect(&self, assessment: Assessment) -> AnyEffect {
        let Assessment {
            label,
            blast_radius,
            category,
            reason,
        } = assessment;
        let mut effect = AnyEffect::default();
        let metadata = [
            ("safety_label", Some(label.as_str())),
            ("blast_radius", Some(blast_radius)),
            ("category", category),
            ("reason", reason.as_deref()),
        ];
        for (key, value) in metadata {
            if let Some(value) = value {
                effect.metadata.insert(key.to_owned(), value.into());
            }
        }
        if self.policy.asks.contains(&label) {
            let reason = reason.as_deref();
            let reason = reason.unwrap_or("it is not certain that the command is safe");
            effect.set_permission(Permission::Ask, Some(format!("safer_shell: {reason}")));
        }
        effect
    }
}

impl EventRunner for SaferShell {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(async move {
            let Some(line) = command_line(&call.event)? else {
                return Ok(AnyEffect::default());
            };
            let reading = call.event.reading(&line);
            match directory(&call.event) {
                Some(dir) => self.judge_in(&line, &reading, dir).await,
                None => Ok(self.judge(&line, &reading)),
            }
        })
    }
}

#[cfg(test)]
mod tests;
