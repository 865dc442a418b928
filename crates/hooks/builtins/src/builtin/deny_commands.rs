//! Denies command lines of the shell tool that run certain commands.
//!
//! A rule is a program and, optionally, words that must all be among its arguments, or a pipeline of such commands. It
//! finds each spelling of an option (`tenterhook_shell::CommandRule`), and judges one command at a time.
//!
//! A rule reads the command line; it does not run it. It sees commands that other commands run, such as
//! `timeout 5 sudo x` and `sh -c 'sudo x'`. If commands are nested too deeply to be read, or the line does not show which
//! program it runs, as in `$x reboot`, it denies the line. It does not see options in variables that the line does not
//! set, the commands that a script or an alias runs, or text that is decoded at run time. Use a sandbox against those.

use futures_util::future::{BoxFuture, ready};
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind, Permission};

use super::row::{Builtin, EventRunner};
use super::shell_call::command_line;
use tenterhook_shell::{CommandRule, Reading};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "deny_commands",
    events: &[EventKind::PreToolUse, EventKind::ToolGuard],
    arguments: "one or more commands, such as `sudo` or `git push --force`",
    make: |setup| {
        if setup.arguments.is_empty() {
            return Err("expected at least one command, such as `sudo`".to_owned());
        }
        let rules = setup.arguments.iter().map(|text| CommandRule::parse(text));
        let rules: Result<Vec<CommandRule>, _> = rules.collect();
        let rules = rules.map_err(|error| error.to_string())?;
        Ok(Box::new(DenyCommands { rules }))
    },
};

struct DenyCommands {
    rules: Vec<CommandRule>,
}

impl DenyCommands {
    fn judge(&self, reading: &Reading) -> AnyEffect {
        let mut effect = AnyEffect::default();
        let denied = self.rules.iter().find(|rule| rule.matches(reading));
        let reason = if let Some(rule) = denied {
            format!("`{}` is not allowed here", rule.as_str())
        } else if let Some(unread) = reading.unread_for(&self.rules) {
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
        let effect = line.map(|line| {
            line.map_or_else(AnyEffect::default, |line| {
                self.judge(&call.event.reading(&line))
            })
        });
        Box::pin(ready(effect))
    }

    fn coverage(&self) -> Vec<String> {
        let rules = self.rules.iter();
        let covered = rules.map(|rule| format!("`{}` covers {}", rule.as_str(), rule.coverage()));
        covered.chain([NOT_SEEN.to_owned()]).collect()
    }
}

/// What no rule sees, for the report of `check`.
const NOT_SEEN: &str = "not seen: options in variables that the line does not set, what a script or an alias runs, the \
    code of an interpreter, and text that is decoded when the line runs";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tenterhook_shell::read;

    use super::*;

    fn denies(rules: &[&str], line: &str) -> bool {
        let rules = rules
            .iter()
            .map(|text| CommandRule::parse(text).unwrap())
            .collect();
        !DenyCommands { rules }.judge(&read(line)).is_empty()
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
        let rule = CommandRule::parse("sudo").unwrap();
        let effect = DenyCommands { rules: vec![rule] }.judge(&read("cd x && /bin/s? reboot"));
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
            "git push && tail -f log",
            "git push; rm -f x",
            "git commit -m 'push the -f flag'",
            "echo 'a;sudo reboot'",
            "echo \"a; sudo reboot\"",
            "cat <<END\nsudo reboot\nEND",
            "cat <<END | grep x\nsudo reboot\nEND",
            "ls # sudo reboot",
            "git push # --force",
            "git push origin main # it's done; sudo\nls",
        ] {
            assert!(!denies(RULES, line), "{line}");
        }
    }

    #[test]
    fn a_rule_finds_every_spelling_of_its_options() {
        let rule = &["rm -rf"][..];
        for line in [
            "rm -rf x",
            "rm -fr x",
            "rm -r -f x",
            "rm -rfv x",
            "rm -vRf x",
            "rm --recursive --force x",
            "rm --force --recursive x",
            "rm --rec --forc x",
            "rm -r dir --force",
            "rm x -rf",
            "\\rm -rf x",
            "command rm -fr x",
            "/bin/rm -f -r x",
            "env A=1 rm -fr x",
            "sudo rm -fr x",
            "find . -name x | xargs rm -fr",
            "find . -exec rm -f -r {} +",
            "sh -c 'rm -fr x'",
            "x=-fr; rm $x y",
            "a=rm b='-r -f'; $a $b y",
            "rm -r${IFS}-f x",
            "echo '-fr x' | xargs rm",
            "for o in -r -fr; do rm $o x; done",
            "set -- rm -rf x; \"$@\"",
            "c=(rm -fr x); \"${c[@]}\"",
        ] {
            assert!(denies(rule, line), "{line}");
        }
        for line in [
            "rm -r build && tar -xf a.tgz",
            "rm -f x",
            "rm -r x; ls -f",
            "rm x -- -rf",
            "echo rm -rf x",
            "git rm -rf x",
            "git commit -m 'rm -rf x'",
            "rm -r \"$(ls -f)\"",
            "rm -r x # -f",
        ] {
            assert!(!denies(rule, line), "{line}");
        }
    }

    /// A rule, lines that it denies, and lines that it does not.
    const SPELLINGS: &[(&str, &[&str], &[&str])] = &[
        (
            "git push --force",
            &["git push -f", "git push -uf o", "git -C x push --forc"],
            &[
                "git push --force-with-lease",
                "git push -o f",
                "git push -of",
            ],
        ),
        (
            "git checkout --",
            &["git checkout -- x", "git checkout main -- ."],
            &["git checkout -bnew-branch", "git checkout main"],
        ),
        (
            "git branch -D",
            &[
                "git branch -D x",
                "git branch -d -f x",
                "git branch --delete --force x",
            ],
            &["git branch -d x", "git checkout -D"],
        ),
        (
            "git commit --no-verify",
            &["git commit -n -m x", "git commit -anm x"],
            &[
                "git commit -m 'x -n'",
                "git commit -mn",
                "git push --no-verify",
            ],
        ),
        (
            "docker system prune -a",
            &["docker system prune --all", "docker system prune -fa"],
            &[
                "docker system prune",
                "docker ps -a",
                "podman system prune -a",
            ],
        ),
        (
            "docker rm -f",
            &["docker container rm --force x"],
            &["docker rmi -f x"],
        ),
        (
            "kubectl delete",
            &[
                "kubectl -n x delete pod y",
                "kubectl --context=c delete -f x",
            ],
            &["kubectl get pod delete", "kubectl -n delete get pods"],
        ),
        (
            "curl -X DELETE",
            &[
                "curl -XDELETE x",
                "curl --request DELETE x",
                "curl --request=DELETE x",
            ],
            &["curl -X GET x", "curl DELETE"],
        ),
        (
            "curl | sh",
            &["curl x | sh", "curl x | sudo sh", "curl x | tee y | sh"],
            &["curl x; sh y", "curl x && sh y"],
        ),
        (
            "terraform destroy",
            &[
                "terraform -chdir=x destroy",
                "terraform destroy -auto-approve",
            ],
            &["terraform plan -destroy"],
        ),
        (
            "terraform apply -auto-approve",
            &["terraform apply --auto-approve"],
            &["terraform apply"],
        ),
        (
            "find -delete",
            &["find . -name x -delete"],
            &["find . -depth"],
        ),
        (
            "chmod -R 777",
            &["chmod --recursive 777 x", "chmod 777 -R x"],
            &["chmod 777 x"],
        ),
        (
            "npm install -g",
            &["npm i --global x", "npm add -g x"],
            &["npm install x"],
        ),
        (
            "foo -xy",
            &["foo -yx", "foo -y a -x", "foo -xy"],
            &["foo -x", "foo --xy"],
        ),
        (
            "foo --mode=prod",
            &["foo --mode=prod", "foo --mode prod"],
            &["foo --mode dev"],
        ),
        (
            "dd of=/dev/*",
            &["dd if=x of=/dev/sda"],
            &["dd if=/dev/sda of=x"],
        ),
        ("mkfs*", &["mkfs.ext4 /dev/sda", "mkfs /dev/sda"], &["mk x"]),
        (
            "aws s3 rm",
            &["aws --profile p s3 rm x"],
            &["aws s3 ls rm2", "aws ec2 rm"],
        ),
        ("tar -x", &["tar xf a", "tar --extract -f a"], &["tar cf x"]),
        ("pip install", &["pip3 install x"], &["pip list"]),
        ("kill -9", &["kill -KILL 1", "kill -SIGKILL 1"], &["kill 1"]),
    ];

    #[test]
    fn spellings_of_other_programs_are_known() {
        for &(rule, denied, allowed) in SPELLINGS {
            for line in denied {
                assert!(denies(&[rule], line), "{rule}: {line}");
            }
            for line in allowed {
                assert!(!denies(&[rule], line), "{rule}: {line}");
            }
        }
    }

    #[test]
    fn a_rule_that_is_not_one_command_is_refused() {
        for rule in [
            "", "  ", "a && b", "a; b", "echo > x", "A=1", "rm $(x)", "a & b",
        ] {
            let error = CommandRule::parse(rule);
            assert!(error.is_err(), "{rule}");
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
        "if true; then {}; fi",
        // Without the space, `$((` would start arithmetic.
        "echo $( {} )",
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
