//! Denies command lines of the shell tool that run certain commands.
//!
//! A rule is a program and, optionally, words that must all follow it, in any order. A word that ends in `*` stands
//! for every word with that beginning. A short option is also found in a group of options (`-f` in `-uf`). A long
//! option is also found with a value (`--force` in `--force=yes`), and if it is abbreviated (`--forc`).
//!
//! A rule reads the command line; it does not run it. It sees commands that other commands run, such as
//! `timeout 5 sudo x` and `sh -c 'sudo x'`. If commands are nested too deeply to be read, or the line does not show which
//! program it runs, as in `$x reboot`, it denies the line. It does not see options in variables, the commands that a
//! script or an alias runs, or text that is decoded at run time. Use a sandbox against those.

use futures_util::future::{BoxFuture, ready};
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind, Permission};

use super::row::{Builtin, EventRunner};
use super::shell_call::command_line;
use tenterhook_shell::readings;

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

/// A denied command.
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
    // In `-uf`, the option `-f` is one letter; `--force` is a whole word.
    let is_letter = option
        .filter(|letter| letter.chars().count() == 1)
        .zip(found.strip_prefix('-'))
        .is_some_and(|(letter, letters)| !letters.starts_with('-') && letters.contains(letter));
    // Many programs accept the beginning of a long option: `rm --rec` is `rm --recursive`.
    let name = found.split_once('=').map_or(found, |(name, _)| name);
    let is_beginning = name.len() > 2 && name.starts_with("--") && wanted.starts_with(name);
    wanted == found || has_value || is_letter || is_beginning
}

struct DenyCommands {
    rules: Vec<Rule>,
}

impl DenyCommands {
    fn judge(&self, line: &str) -> AnyEffect {
        let readings = readings(line);
        let mut effect = AnyEffect::default();
        let denied = self
            .rules
            .iter()
            .find(|rule| readings.texts.iter().any(|command| rule.matches(command)));
        let reason = if let Some(rule) = denied {
            format!("`{}` is not allowed here", rule.text)
        } else if let Some(unread) = readings.unread() {
            unread.to_string()
        } else {
            return effect;
        };
        effect.set_permission(Permission::Deny, Some(reason));
        effect
    }
}

impl EventRunner for DenyCommands {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        let line = command_line(&call.event);
        let effect =
            line.map(|line| line.map_or_else(AnyEffect::default, |line| self.judge(&line)));
        Box::pin(ready(effect))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
            "env -u A sudo reboot",
            "exec -a x sudo reboot",
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
            "git push --forc",
            "eval git push --force",
            "ssh host -p 22 git push -f",
            "timeout 5 sudo reboot",
            "sh -c 'sudo reboot'",
            "echo x | xargs sudo",
            "busybox sh -c 'sudo reboot'",
            "setsid sudo reboot",
            "git difftool -x 'sudo reboot'",
            "git -c alias.x='!sudo reboot' x",
            "git -c alias.x='push --force' x",
            "git -c alias.x=push x -f",
            "git config alias.x 'push -f'",
            "su{d,}o reboot",
            "{sudo,reboot}",
            "git {push,-f}",
            "git push -{f,u} origin",
            "x=sudo; $x reboot",
            "ssh host sudo reboot",
            "ssh -p 22 host 'cd x; sudo reboot'",
            "timeout 5 sh -c 'git push -f'",
            "sh -c '\"$@\"' x git push -f",
        ] {
            assert!(denies(RULES, line), "{line}");
        }
    }

    #[test]
    fn a_program_that_the_line_does_not_show_is_denied() {
        for line in [
            "/usr/bin/sud? reboot",
            "/usr/bin/s[u]do reboot",
            "$(echo sudo) reboot",
            "`echo sudo` reboot",
            "su$x reboot",
            "read x; $x reboot",
            "timeout 5 $x reboot",
            "find . -exec $x {} +",
            "sh -c \"\\$x reboot\"",
            "$'\\x73udo' reboot",
        ] {
            assert!(denies(RULES, line), "{line}");
        }
        let rule = Rule::parse("sudo").unwrap();
        let effect = DenyCommands { rules: vec![rule] }.judge("cd x && /bin/s? reboot");
        assert_eq!(
            effect.permission.unwrap().reason.unwrap(),
            "the program `/bin/s?` is known only when the command runs; write its name instead"
        );
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
            "git push --force-with-lease",
            "git push -- x",
            "git commit -m 'no force'",
            "git log --force",
            "man sudoers",
            "timeout 5 echo sudo",
            "sh -c 'echo sudo'",
            "env A=1 make",
            "xargs -n 1 echo sudo",
            "git difftool -x 'meld --force'",
            "rm *.o && ls ?.c [ab].h",
            "git push origin $branch",
            "$HOME/bin/deploy x",
            "bin=target/tool; $bin --help",
            "cat > .gitignore <<END\n*.o\n$x\nEND",
            "git commit -m \"$(cat <<'END'\n* no force (don't)\nEND\n)\"",
            "[ -f x ] && [[ $a && $b ]] && echo $((2*3))",
            "git -c alias.x='log --force' x",
        ] {
            assert!(!denies(RULES, line), "{line}");
        }
    }

    /// Ways to run a command from another one. `{}` is the command, `{q}` is the command as one quoted word.
    const WRAPPERS: &[&str] = &[
        "timeout 5 {}",
        "timeout -k 1 -s KILL 5 {}",
        "nice {}",
        "nice -n 5 {}",
        "setsid -w {}",
        "env {}",
        "env -i A=1 {}",
        "env -u A {}",
        "env -S {q}",
        "nohup {}",
        "stdbuf -o L {}",
        "ionice -c 3 {}",
        "time -p {}",
        "command {}",
        "builtin {}",
        "exec -a x {}",
        "doas -u me {}",
        "busybox {}",
        "xargs -n 1 {}",
        "echo x | xargs {}",
        "sh -c {q}",
        "bash -lc {q}",
        "bash -o pipefail -c {q}",
        "busybox sh -c {q}",
        "/bin/sh -c {q} x y",
        "find . -exec {} \\;",
        "find . -execdir sh -c {q} +",
        "git difftool -y -x {q}",
        "git -c core.pager={q} log",
        "git fetch --upload-pack={q} .",
        "eval {q}",
        "eval {}",
        "ssh -p 22 -i key host {}",
        "watch {q}",
        "cd x && {}",
        "true; {}",
        "({})",
        "A=1 {}",
        "! {}",
        "if true; then {}; fi",
        "echo $({})",
        "{} &",
    ];

    fn wrapped(command: &str, wrapper: &str) -> String {
        // `eval` reads its words a second time. Then quotes are gone, and `sh -c 'git push -f'` runs `git`.
        let is_read_twice = wrapper == "eval {}" && command.contains(['\'', '\\']);
        let wrapper = if is_read_twice { "eval {q}" } else { wrapper };
        let quoted = format!("'{}'", command.replace('\'', "'\\''"));
        wrapper.replace("{q}", &quoted).replace("{}", command)
    }

    proptest! {
        #[test]
        fn a_denied_command_stays_denied_in_any_chain_of_wrappers(
            command in prop::sample::select(&["sudo reboot", "sudo", "git push -f", "git push origin +main"][..]),
            wrappers in prop::collection::vec(prop::sample::select(WRAPPERS), 0..6),
        ) {
            let line = wrappers.iter().fold(command.to_owned(), |line, wrapper| wrapped(&line, wrapper));
            prop_assert!(denies(RULES, &line), "{line}");
        }

        #[test]
        fn a_harmless_command_stays_allowed_in_a_wrapper(wrapper in prop::sample::select(WRAPPERS)) {
            let line = wrapped("ls -la", wrapper);
            prop_assert!(!denies(RULES, &line), "{line}");
        }
    }

    #[test]
    fn a_command_that_is_too_deep_to_be_read_is_denied() {
        let deep = "env ".repeat(1000);
        assert!(denies(RULES, &format!("{deep}sudo reboot")));
        assert!(denies(RULES, &format!("{deep}ls")));
    }
}
