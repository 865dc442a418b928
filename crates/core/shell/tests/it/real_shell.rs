//! Rules against a real shell: thousands of generated lines run in Bash, in which the programs are stubs that log their
//! arguments. A rule must find the lines that run what it names, and leave the others alone.
//!
//! `SEED=N LINES=N cargo test -p tenterhook-shell --test it -- --nocapture` runs other and more lines: `LINES` dangerous and
//! `LINES` harmless ones.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tenterhook_shell::{CommandRule, read};

/// How many lines of each kind a test run generates by default. A run takes some milliseconds for each.
const LINES: usize = 400;

/// A program, a rule for it, and commands with and without what the rule names.
struct Subject {
    rule: &'static str,
    program: &'static str,
    /// Arguments that the rule names. Each alternative is written in one way.
    dangerous: &'static [&'static str],
    harmless: &'static [&'static str],
    /// Whether a logged command is one that the rule names.
    is_dangerous: fn(&[String]) -> bool,
}

#[rustfmt::skip]
const SUBJECTS: [Subject; 10] = [
    Subject {
        rule: "rm -rf",
        program: "rm",
        dangerous: &[
            "-rf x", "-fr x", "-r -f x", "-f -r x", "-rfv x", "-vRf x", "-Rf x", "--recursive --force x",
            "--force --recursive x", "-r x --force", "x -rf", "--recurs --forc x", "-r -v -f -- x", "-rf --one-file-system x",
        ],
        harmless: &["-r x", "-f x", "x", "-rv x", "-r -- -f", "-- -rf", "--force x", "-v x", "--recursive x", "-i x"],
        is_dangerous: |words| has(words, 'r', &["--recursive"]) | has(words, 'R', &[]) && has(words, 'f', &["--force"]),
    },
    Subject {
        rule: "git push --force",
        program: "git",
        dangerous: &[
            "push --force", "push -f", "push -uf origin", "push origin main --force", "push origin main -f",
            "-C . push --force", "--no-pager push -f", "-c a.b=c push --forc", "push -fu o", "push -qf",
        ],
        harmless: &[
            "push", "push origin main", "push --force-with-lease", "push -u origin main", "push -o f", "push -of",
            "push -- -f", "commit -m f", "log --force", "commit -m push", "fetch -f", "stash push -f", "-C push log -f",
        ],
        is_dangerous: |words| {
            let words = after_options(words, &["-C", "-c"]);
            words.first().is_some_and(|word| word == "push") && {
                let words: Vec<String> = drop_values(&words, &["-o"]);
                has(&words, 'f', &["--force"])
            }
        },
    },
    Subject {
        rule: "docker system prune -a",
        program: "docker",
        dangerous: &[
            "system prune -a", "system prune --all", "system prune -af", "system prune -f -a", "-H x system prune -a",
            "--context c system prune --all --volumes", "system prune --force --all",
        ],
        harmless: &["system prune", "system df", "ps -a", "images -a", "system prune -f", "run x prune -a", "volume prune -a"],
        is_dangerous: |words| {
            let words = after_options(words, &["-H", "--context"]);
            words.starts_with(&["system".to_owned(), "prune".to_owned()]) && has(&words, 'a', &["--all"])
        },
    },
    Subject {
        rule: "kubectl delete",
        program: "kubectl",
        dangerous: &[
            "delete pod y", "-n x delete pod y", "--namespace=x delete -f y", "delete --all pods", "--context c delete ns x",
            "--kubeconfig k delete -f x",
        ],
        harmless: &["get pods", "describe pod delete", "-n delete get pods", "logs delete", "apply -f delete", "--namespace delete get x"],
        is_dangerous: |words| {
            let words = after_options(words, &["-n", "--context", "--kubeconfig", "--namespace"]);
            words.first().is_some_and(|word| word == "delete")
        },
    },
    Subject {
        rule: "chmod -R 777",
        program: "chmod",
        dangerous: &["-R 777 x", "--recursive 777 x", "777 -R x", "-Rv 777 x", "-vR 777 x", "--recurs 777 x", "-v -R 777 x y"],
        harmless: &["777 x", "-R 755 x", "-v 777 x", "-R u+x 7777", "--recursive 700 x", "644 x"],
        is_dangerous: |words| has(words, 'R', &["--recursive"]) && words.iter().any(|word| word == "777"),
    },
    Subject {
        rule: "chown -R",
        program: "chown",
        dangerous: &["-R me x", "--recursive me x", "me x -R", "-hR me x", "-Rv me x", "--recurs me:me x"],
        harmless: &["me x", "-h me x", "-v me R", "me -- -R", "--verbose me x"],
        is_dangerous: |words| has(words, 'R', &["--recursive"]),
    },
    Subject {
        rule: "curl -X DELETE",
        program: "curl",
        dangerous: &[
            "-X DELETE u", "-XDELETE u", "--request DELETE u", "--request=DELETE u", "-sXDELETE u", "-s -X DELETE u",
            "u -X DELETE", "-H a:b -X DELETE u",
        ],
        harmless: &["u", "-X GET u", "-d DELETE u", "-H DELETE u", "-XGET u", "--request PUT u", "-o DELETE u", "-s u"],
        is_dangerous: |words| {
            let pairs = words.iter().zip(words.iter().skip(1));
            let is_option = |word: &String| word == "--request" || word.starts_with('-') && !word.starts_with("--") && word.ends_with('X');
            words.iter().any(|word| word == "--request=DELETE" || word.starts_with('-') && word.ends_with("XDELETE"))
                || pairs.into_iter().any(|(option, value)| is_option(option) && value == "DELETE")
        },
    },
    Subject {
        rule: "npm publish",
        program: "npm",
        dangerous: &["publish", "publish .", "publish --tag x", "--registry r publish", "publish --access public", "--silent publish"],
        harmless: &["install", "run publish", "install publish", "view publish", "--registry publish install", "test -- publish"],
        is_dangerous: |words| after_options(words, &["--registry"]).first().is_some_and(|word| word == "publish"),
    },
    Subject {
        rule: "terraform destroy",
        program: "terraform",
        dangerous: &["destroy", "-chdir=x destroy", "destroy -auto-approve", "destroy -target=x"],
        harmless: &["plan", "plan -destroy", "-chdir=destroy plan", "plan -out destroy", "apply"],
        is_dangerous: |words| after_options(words, &[]).first().is_some_and(|word| word == "destroy"),
    },
    Subject {
        rule: "dd of=/dev/*",
        program: "dd",
        dangerous: &["if=x of=/dev/sda", "of=/dev/sda if=x", "if=x of=/dev/null bs=1", "bs=4M of=/dev/mapper/x"],
        harmless: &["if=/dev/sda of=x", "if=x of=y", "if=/dev/zero of=dev bs=1", "bs=4M if=x"],
        is_dangerous: |words| words.iter().any(|word| word.starts_with("of=/dev/")),
    },
];

/// Returns whether words have an option: a letter, alone or among others, or a long option or an abbreviation of it.
fn has(words: &[String], letter: char, long: &[&str]) -> bool {
    let mut words = words.iter().take_while(|word| *word != "--");
    words.any(|word| match word.strip_prefix("--") {
        Some("") | None => {
            let letters = word.strip_prefix('-').unwrap_or_default();
            letters.contains(letter)
        }
        Some(_) => long
            .iter()
            .any(|long| long.starts_with(word.as_str()) && word.len() > 3),
    })
}

/// Returns the words from the first one that is neither an option nor a value of one.
fn after_options(words: &[String], valued: &[&str]) -> Vec<String> {
    let mut rest = words;
    while let Some((first, after)) = rest.split_first() {
        if !first.starts_with('-') {
            break;
        }
        rest = after
            .get(usize::from(valued.contains(&first.as_str()))..)
            .unwrap_or_default();
    }
    rest.to_vec()
}

/// Returns the words without these options and their values.
fn drop_values(words: &[String], valued: &[&str]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if valued.contains(&word.as_str()) {
            words.next();
        } else if !valued.iter().any(|option| word.starts_with(option)) {
            kept.push(word.clone());
        }
    }
    kept
}

/// A generator of pseudo-random numbers (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        value ^ (value >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn is_one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// A command, with the variables that must be set before it.
struct Written {
    before: String,
    command: String,
}

impl Written {
    fn line(&self) -> String {
        format!("{}{}", self.before, self.command)
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Writes a word in one of many ways that mean the same.
fn written_word(word: &str, random: &mut Random) -> String {
    let (first, rest) = word.split_at(1);
    match random.below(9) {
        0 => quoted(word),
        1 => format!("\"{word}\""),
        2 => format!("\\{word}"),
        3 => format!("{first}''{rest}"),
        4 => format!("{first}\"{rest}\""),
        5 => format!("$'{word}'"),
        6 => format!("$'\\x{:02x}{rest}'", first.as_bytes()[0]),
        _ => word.to_owned(),
    }
}

/// Writes a command with random quotes and variables.
fn written(program: &str, arguments: &str, folder: &Path, random: &mut Random) -> Written {
    let mut before = String::new();
    let mut words = Vec::new();
    let program = match random.below(8) {
        0 => {
            before = format!("p={program}; ");
            random.one(&["$p", "${p}", "\"$p\"", "\"${p}\""]).to_owned()
        }
        1 => folder.join(program).display().to_string(),
        2 => format!("\"$(echo {program})\""),
        3 => format!("{}{{{},}}", &program[..1], &program[1..]).replace(",}", ",zzz}"),
        _ => written_word(program, random),
    };
    // `r{m,zzz}` makes a second word.
    words.push(program);
    for (at, word) in arguments.split(' ').enumerate() {
        words.push(match random.below(7) {
            0 => {
                before = format!("{before}a{at}={word}; ");
                random
                    .one(&["$aN", "${aN}", "\"$aN\"", "${aN:-x}"])
                    .replace('N', &at.to_string())
            }
            _ => written_word(word, random),
        });
    }
    match random.below(12) {
        // All arguments in one variable.
        0 => Written {
            before: format!("{before}all='{arguments}'; "),
            command: format!("{} $all", words[0]),
        },
        1 => Written {
            before: format!("{before}list=({}); ", words[1..].join(" ")),
            command: format!("{} \"${{list[@]}}\"", words[0]),
        },
        2 => Written {
            before,
            command: words.join("${IFS}"),
        },
        3 => Written {
            before: format!("{before}set -- {}; ", words[1..].join(" ")),
            command: format!("{} \"$@\"", words[0]),
        },
        _ => Written {
            before,
            command: words.join(&" ".repeat(1 + random.below(2))),
        },
    }
}

/// Programs that run the command after them.
const BEFORE: [&str; 18] = [
    "env",
    "env A=1",
    "env -u A",
    "env -i PATH=\"$PATH\" LOG=\"$LOG\"",
    "command",
    "nice",
    "nice -n 5",
    "timeout 5",
    "timeout -k 1 -s KILL 5",
    "sudo",
    "sudo -u me",
    "nohup",
    "stdbuf -oL",
    "setsid -w",
    "A=1",
    "exec",
    "time",
    "!",
];

/// Lines around a command. `{}` is the command, and `{q}` is the command in quotes.
const AROUND: [&str; 38] = [
    "sh -c {q}",
    "bash -c {q}",
    "bash --norc -ec {q}",
    "bash -e -o pipefail -c {q}",
    "eval {q}",
    "echo {q} | sh",
    "echo {q} | bash -s",
    "printf '%s\\n' {q} | sh",
    "sh <<'E'\n{}\nE",
    "bash <<< {q}",
    "({})",
    "{ {}; }",
    "if true; then {}; fi",
    "if {}; then true; fi",
    "for i in 1; do {}; done",
    "while true; do {}; break; done",
    "until {}; do break; done",
    "case x in x) {};; esac",
    "f() { {}; }; f",
    "true && {}",
    "false || {}",
    "{} | cat",
    "echo y | { {}; }",
    "{} 2>&1 >/dev/null",
    ">/dev/null {}",
    "x=$({})",
    "echo \"$({})\"",
    "echo `{}`",
    "cat <({})",
    "trap {q} EXIT",
    "{} & wait",
    "cd . ; {}",
    "true\n{}",
    "{} # note\n",
    "cat <<E\n$({})\nE",
    "[[ a ]] && {}",
    "((1)) && {}",
    "timeout 5 sh -c {q}",
];

/// Lines that only name a command. `{q}` is the command in quotes.
const NAMING: [&str; 14] = [
    "echo {q}",
    "git commit -m {q}",
    "grep -r {q} /dev/null",
    "cat <<'E'\n{}\nE",
    "cat <<'E' | grep x\n{}\nE",
    "true # {c}",
    "x={q}",
    "echo {q} > /dev/null",
    "printf '%s' {q}",
    "test {q} = x",
    "echo a {q}; true",
    "case {q} in x) true;; esac",
    "for i in {q}; do true; done",
    "[[ {q} == x ]]",
];

fn around(form: &str, written: &Written) -> String {
    let line = written.line();
    form.replace("{q}", &quoted(&line)).replace("{}", &line)
}

/// Generates a line with its rule.
fn generate(random: &mut Random, folder: &Path) -> (&'static Subject, String) {
    let subject = &SUBJECTS[random.below(SUBJECTS.len())];
    let arguments = if random.is_one_in(2) {
        random.one(subject.dangerous)
    } else {
        random.one(subject.harmless)
    };
    let mut found = written(subject.program, arguments, folder, random);
    if random.is_one_in(3) {
        found.command = format!("{} {}", random.one(&BEFORE), found.command);
    }
    let line = match random.below(10) {
        0..=1 => {
            let form = random.one(&NAMING);
            let line = found.line().replace('\n', " ");
            form.replace("{c}", &line)
                .replace("{q}", &quoted(&line))
                .replace("{}", &line)
        }
        2..=3 => found.line(),
        4 => {
            // Another command has the options that this one lacks.
            let other = random.one(subject.dangerous);
            let separator = random.one(&[" && ", "; ", " | ", "\n", " & "]);
            let form = random.one(&["tail {}", "echo {}", "git log {}", "grep {}"]);
            format!("{}{separator}{}", found.line(), form.replace("{}", other))
        }
        5 => {
            let words = format!("{} {arguments}", subject.program);
            let form = random.one(&[
                "find . -maxdepth 0 -exec {} \\;",
                "echo x | xargs {}",
                "echo x | xargs -n 1 {}",
                "xargs -I% {} % <<< x",
                "find . -maxdepth 0 -exec sh -c '{}' \\;",
            ]);
            form.replace("{}", &words)
        }
        6..=8 => around(random.one(&AROUND), &found),
        _ => {
            // A here-document must be at the end.
            let inner = loop {
                let form = random.one(&AROUND);
                if !form.contains("<<") {
                    break around(form, &found);
                }
            };
            let outer = Written {
                before: String::new(),
                command: inner,
            };
            around(random.one(&AROUND), &outer)
        }
    };
    (subject, line)
}

/// The stubs: each logs its name and its arguments, one per line, and then an empty line.
fn stubs(folder: &Path) {
    // One call of `printf`, because two stubs may log at the same time.
    let log = "#!/bin/sh\nprintf '%s\\n' \"${0##*/}\" \"$@\" '' >> \"$LOG\"\n";
    let names = SUBJECTS.iter().map(|subject| subject.program);
    for name in names.chain(["tail"]) {
        write_program(&folder.join(name), log);
    }
    // `sudo` may be missing or ask for a password.
    let sudo = "#!/bin/sh\n[ \"$1\" != -u ] || shift 2\nexec \"$@\"\n";
    write_program(&folder.join("sudo"), sudo);
}

fn write_program(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Makes `sh` the shell that runs the lines, because not every `sh` reads all of them.
fn same_shell(folder: &Path) {
    let bash = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("bash"))
        .find(|file| file.exists())
        .unwrap();
    std::os::unix::fs::symlink(bash, folder.join("sh")).unwrap();
}

/// Runs a line, and returns the commands that the stubs logged.
fn run(line: &str, folder: &Path, log: &PathBuf) -> Vec<Vec<String>> {
    fs::write(log, "").unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut child = Command::new("timeout")
        .args(["10", "bash", "-c", &format!("{line}\nwait")])
        .current_dir(folder.parent().unwrap())
        .env("PATH", path)
        .env("LOG", log)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.wait().unwrap();
    let text = fs::read_to_string(log).unwrap();
    let commands = text.split("\n\n").filter(|command| !command.is_empty());
    commands
        .map(|command| command.lines().map(str::to_owned).collect())
        .collect()
}

fn number(variable: &str, default: usize) -> usize {
    let value = std::env::var(variable).ok();
    value.map_or(default, |value| value.parse().unwrap())
}

#[test]
fn a_rule_of_one_line_stops_what_a_real_shell_would_run_and_nothing_else() {
    let seed = number("SEED", 31);
    let wanted = number("LINES", LINES);
    println!("SEED={seed} LINES={wanted}");
    let stage = tempfile::tempdir().unwrap();
    let folder = stage.path().join("bin");
    fs::create_dir(&folder).unwrap();
    stubs(&folder);
    same_shell(&folder);
    let log = stage.path().join("log");
    let rules: Vec<CommandRule> = SUBJECTS
        .iter()
        .map(|subject| CommandRule::parse(subject.rule).unwrap())
        .collect();
    let mut random = Random(u64::try_from(seed).unwrap());
    let (mut dangerous, mut harmless) = (0, 0);
    let (mut passed, mut stopped) = (Vec::new(), Vec::new());
    let mut lines = HashSet::new();
    while dangerous < wanted || harmless < wanted {
        let (subject, line) = generate(&mut random, &folder);
        if !lines.insert(line.clone()) {
            continue;
        }
        let ran = run(&line, &folder, &log);
        let is_dangerous = ran.iter().any(|command| {
            command.split_first().is_some_and(|(program, words)| {
                program == subject.program && (subject.is_dangerous)(words)
            })
        });
        let count = if is_dangerous {
            &mut dangerous
        } else {
            &mut harmless
        };
        if *count >= wanted {
            continue;
        }
        *count += 1;
        let at = SUBJECTS
            .iter()
            .position(|it| it.rule == subject.rule)
            .unwrap();
        let reading = read(&line);
        let is_stopped = rules[at].matches(&reading) || reading.unread().is_some();
        if is_dangerous && !is_stopped {
            passed.push((line, subject.rule));
        } else if !is_dangerous && is_stopped {
            stopped.push((line, subject.rule));
        }
    }
    for (what, lines) in [("passed", &passed), ("stopped in vain", &stopped)] {
        for (line, rule) in lines {
            println!("{what} ({rule}): {line:?}");
        }
    }
    println!("{} of {wanted} dangerous lines passed", passed.len());
    println!("{} of {wanted} harmless lines were stopped", stopped.len());
    assert!(passed.len() * 100 <= wanted, "more than 1 % passed");
    assert!(
        stopped.len() * 200 <= wanted,
        "more than 0.5 % were stopped"
    );
}
