//! Denies command lines of the shell tool that run certain commands.
//!
//! A rule is a program and, optionally, words that must all stand behind it, in any order. A word that ends in `*`
//! stands for every word that begins so. A short option is also found among others (`-f` in `-uf`), a long one also
//! with a value (`--force` in `--force=yes`).
//!
//! A rule reads the command line and does not run it. What a variable holds, what another program starts and what is
//! decoded at run time stays unseen: that takes a sandbox.

use futures_util::future::{BoxFuture, ready};
use tenterhook::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind, Permission};

use super::shell_call::command_line;
use super::{Builtin, Run};
use crate::command_line::readings;

pub(super) const BUILTIN: Builtin = Builtin {
    name: "deny_commands",
    events: &[EventKind::PreToolUse, EventKind::ToolGuard],
    arguments: "one or more commands, such as `sudo` or `git push --force`",
    make: |setup| {
        if setup.arguments.is_empty() {
            return Err("expected at least one command, such as `sudo`".to_owned());
        }
        let rules: Result<Vec<Rule>, String> = setup
            .arguments
            .iter()
            .map(|text| Rule::parse(text))
            .collect();
        Ok(Box::new(DenyCommands { rules: rules? }))
    },
};

/// A command that is denied.
struct Rule {
    /// The rule as written.
    text: String,
    program: String,
    words: Vec<String>,
}

impl Rule {
    fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace().map(str::to_owned);
        let program = words
            .next()
            .ok_or_else(|| "a command is empty; expected a program, such as `sudo`".to_owned())?;
        Ok(Self {
            text: text.trim().to_owned(),
            program,
            words: words.collect(),
        })
    }

    fn matches(&self, command: &str) -> bool {
        let mut words = command.split_whitespace();
        let rest = words.clone().skip(1);
        words
            .next()
            .is_some_and(|program| is_word(&self.program, program))
            && self
                .words
                .iter()
                .all(|wanted| rest.clone().any(|found| is_word(wanted, found)))
    }
}

/// Returns whether a word of a command is the word of a rule.
fn is_word(wanted: &str, found: &str) -> bool {
    if let Some(beginning) = wanted.strip_suffix('*') {
        return found.starts_with(beginning);
    }
    let option = wanted.strip_prefix('-');
    let has_value = option.is_some()
        && found
            .split_once('=')
            .is_some_and(|(name, _)| name == wanted);
    // Of `-uf`, `-f` is one letter; `--force` is a word.
    let is_letter = option
        .filter(|letter| letter.chars().count() == 1)
        .zip(found.strip_prefix('-'))
        .is_some_and(|(letter, letters)| !letters.starts_with('-') && letters.contains(letter));
    wanted == found || has_value || is_letter
}

struct DenyCommands {
    rules: Vec<Rule>,
}

impl DenyCommands {
    fn judge(&self, line: &str) -> AnyEffect {
        let readings = readings(line);
        let denied = self
            .rules
            .iter()
            .find(|rule| readings.iter().any(|command| rule.matches(command)));
        let mut effect = AnyEffect::default();
        if let Some(rule) = denied {
            let reason = format!("`{}` is not allowed here", rule.text);
            effect.set_permission(Permission::Deny, Some(reason));
        }
        effect
    }
}

impl Run for DenyCommands {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        let line = command_line(&call.event);
        let effect =
            line.map(|line| line.map_or_else(AnyEffect::default, |line| self.judge(&line)));
        Box::pin(ready(effect))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denies(rules: &[&str], line: &str) -> bool {
        let rules = rules
            .iter()
            .map(|text| Rule::parse(text).unwrap())
            .collect();
        !DenyCommands { rules }.judge(line).is_empty()
    }

    const RULES: &[&str] = &["sudo", "git push --force", "git push -f", "git push +*"];

    #[test]
    fn a_denied_command_is_found_however_it_is_written() {
        for line in [
            "sudo reboot",
            " sudo reboot",
            "\tsudo reboot",
            "cd x && sudo reboot",
            "cd x;sudo reboot",
            "/usr/bin/sudo reboot",
            "'sudo' reboot",
            "su''do reboot",
            "su\\do reboot",
            "A=1 sudo reboot",
            "env A=1 sudo reboot",
            "/usr/bin/env sudo reboot",
            "if true; then sudo reboot; fi",
            "(sudo reboot)",
            "echo $(sudo reboot)",
            "echo \"`sudo reboot`\"",
            "nohup sudo reboot &",
            "true | sudo tee x",
            "2>&1 sudo reboot",
            ">| f sudo reboot",
            "2>/dev/null sudo reboot",
            "git push --force",
            "git push -f",
            "git push origin main --force",
            "git push origin main -f",
            "git push -uf origin main",
            "git -C . push --force",
            "git push origin +main",
            "git push\t--force",
            "git push \"--force\"",
        ] {
            assert!(denies(RULES, line), "{line}");
        }
    }

    #[test]
    fn other_commands_go_on() {
        for line in [
            "",
            "ls",
            "echo pseudo",
            "git push",
            "git push origin main",
            "git push --follow-tags",
            "git commit -m 'no force'",
            "git log --force",
            "man sudoers",
        ] {
            assert!(!denies(RULES, line), "{line}");
        }
    }
}
