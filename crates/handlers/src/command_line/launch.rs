//! Which commands a command runs itself: behind a wrapper such as `timeout`, in the value of an option such as
//! `git difftool -x`, or in a line for a shell such as that of `sh -c`.
//!
//! The tables err on the side of more commands. An option that a wrapper's row does not have may or may not take
//! the next word as its value, so the command is read both ways.

use std::collections::BTreeSet;
use std::path::Path;

/// Something that a command runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Launch {
    /// A command in its words.
    Words(Vec<String>),
    /// A line for a shell.
    Line(String),
    /// Something that the command line does not show.
    Unseen,
}

/// A program that runs the command behind its own options and operands.
struct Wrapper {
    name: &'static str,
    /// Letters of options without a value.
    flags: &'static str,
    /// Options whose value is the next word.
    valued: &'static [&'static str],
    /// How many words stand between the options and the command.
    operands: usize,
}

const fn wrapper(name: &'static str) -> Wrapper {
    Wrapper {
        name,
        flags: "",
        valued: &[],
        operands: 0,
    }
}

const fn with_operand(name: &'static str) -> Wrapper {
    Wrapper {
        operands: 1,
        ..wrapper(name)
    }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("builtin"),
    wrapper("busybox"),
    wrapper("bwrap"),
    wrapper("caffeinate"),
    wrapper("catchsegv"),
    wrapper("ccache"),
    wrapper("cgexec"),
    wrapper("chpst"),
    with_operand("chroot"),
    with_operand("chrt"),
    Wrapper {
        flags: "pvV",
        ..wrapper("command")
    },
    wrapper("coproc"),
    wrapper("daemonize"),
    wrapper("dbus-run-session"),
    Wrapper {
        flags: "Lns",
        valued: &["-C", "-u"],
        ..wrapper("doas")
    },
    Wrapper {
        flags: "0iv",
        valued: &["-C", "-u", "--chdir", "--unset"],
        ..wrapper("env")
    },
    wrapper("entr"),
    Wrapper {
        flags: "cl",
        valued: &["-a"],
        ..wrapper("exec")
    },
    wrapper("fakeroot"),
    with_operand("faketime"),
    wrapper("firejail"),
    Wrapper {
        flags: "Feonsux",
        valued: &["-E", "-w", "--timeout"],
        ..with_operand("flock")
    },
    Wrapper {
        flags: "t",
        valued: &["-P", "-c", "-n", "-p", "-u", "--class", "--classdata"],
        ..wrapper("ionice")
    },
    wrapper("linux32"),
    wrapper("linux64"),
    wrapper("ltrace"),
    Wrapper {
        flags: "0123456789",
        valued: &["-n", "--adjustment"],
        ..wrapper("nice")
    },
    wrapper("nocorrect"),
    wrapper("noglob"),
    wrapper("nohup"),
    wrapper("nsenter"),
    wrapper("numactl"),
    wrapper("parallel"),
    wrapper("pkexec"),
    wrapper("prlimit"),
    wrapper("proxychains"),
    wrapper("proxychains4"),
    wrapper("rlwrap"),
    wrapper("runuser"),
    Wrapper {
        flags: "cfw",
        ..wrapper("setsid")
    },
    wrapper("setarch"),
    wrapper("setpriv"),
    Wrapper {
        valued: &["-e", "-i", "-o", "--error", "--input", "--output"],
        ..wrapper("stdbuf")
    },
    wrapper("strace"),
    Wrapper {
        flags: "ABEHKPSbeiknNsv",
        valued: &[
            "-C", "-D", "-R", "-T", "-U", "-g", "-h", "-p", "-r", "-t", "-u",
        ],
        ..wrapper("sudo")
    },
    wrapper("systemd-run"),
    Wrapper {
        flags: "ac",
        ..with_operand("taskset")
    },
    Wrapper {
        flags: "apqvV",
        valued: &["-f", "-o", "--format", "--output"],
        ..wrapper("time")
    },
    Wrapper {
        flags: "fpv",
        valued: &["-k", "-s", "--kill-after", "--signal"],
        ..with_operand("timeout")
    },
    wrapper("torify"),
    wrapper("torsocks"),
    wrapper("toybox"),
    wrapper("unbuffer"),
    wrapper("unshare"),
    wrapper("valgrind"),
    Wrapper {
        flags: "bceghptwx",
        valued: &["-d", "-n", "-q"],
        ..wrapper("watch")
    },
    Wrapper {
        flags: "0oprtx",
        valued: &[
            "-E",
            "-I",
            "-J",
            "-L",
            "-P",
            "-R",
            "-S",
            "-a",
            "-d",
            "-n",
            "-s",
            "--arg-file",
            "--delimiter",
            "--max-args",
            "--max-chars",
            "--max-lines",
            "--max-procs",
            "--process-slot-var",
            "--replace",
        ],
        ..wrapper("xargs")
    },
    wrapper("xvfb-run"),
];

/// Shells, which run the line behind `-c`.
const SHELLS: [&str; 17] = [
    "ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "osh", "pwsh", "rbash",
    "sh", "tcsh", "xonsh", "yash", "zsh",
];

/// Commands that make one line of all of their words.
const LINES: [&str; 6] = ["alias", "eval", "parallel", "ssh", "trap", "watch"];

/// Commands that set variables, some of which hold commands.
const SETTERS: [&str; 6] = ["declare", "env", "export", "local", "readonly", "typeset"];

/// Programs that run what they read as words or lines.
const FED: [&str; 2] = ["parallel", "xargs"];

/// Options that start a command, by program and subcommand.
const COMMAND_OPTIONS: &[(&[&str], &[&str])] = &[
    (&["flock"], &["-c", "--command"]),
    (&["git", "archive"], &["--exec"]),
    (
        &["git", "clone"],
        &["-c", "--config", "-u", "--upload-pack"],
    ),
    (&["git", "difftool"], &["-x", "--extcmd"]),
    (&["git", "fetch"], &["--upload-pack"]),
    (&["git", "fetch-pack"], &["--exec", "--upload-pack"]),
    (
        &["git", "filter-branch"],
        &[
            "--commit-filter",
            "--env-filter",
            "--index-filter",
            "--msg-filter",
            "--parent-filter",
            "--setup",
            "--tag-name-filter",
            "--tree-filter",
        ],
    ),
    (&["git", "grep"], &["-O", "--open-files-in-pager"]),
    (&["git", "ls-remote"], &["--exec", "--upload-pack"]),
    (&["git", "pull"], &["--upload-pack"]),
    (&["git", "push"], &["--exec", "--receive-pack"]),
    (&["git", "rebase"], &["-x", "--exec"]),
    (
        &["git", "send-email"],
        &["--sendmail-cmd", "--smtp-server", "--to-cmd", "--cc-cmd"],
    ),
    (&["git", "send-pack"], &["--exec", "--receive-pack"]),
    (&["rg"], &["--pre", "--hostname-bin"]),
    (&["rsync"], &["-e", "--rsh", "--rsync-path"]),
    (&["runuser"], &["-c", "--command"]),
    (&["scp"], &["-S", "-o"]),
    (&["script"], &["-c", "--command"]),
    (&["sftp"], &["-S", "-o"]),
    (&["sort"], &["--compress-program"]),
    (&["split"], &["--filter"]),
    (&["ssh"], &["-o"]),
    (&["su"], &["-c", "--command"]),
    (
        &["tar"],
        &[
            "-F",
            "-I",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--to-command",
            "--use-compress-program",
        ],
    ),
];

/// Words after which a command stands, by program and subcommand.
const COMMAND_WORDS: &[(&[&str], &[&str])] = &[
    (&["fd"], &["-X", "-x", "--exec", "--exec-batch"]),
    (&["fdfind"], &["-X", "-x", "--exec", "--exec-batch"]),
    (&["find"], &["-exec", "-execdir", "-ok", "-okdir"]),
    (&["gdb"], &["--args"]),
    (&["git", "bisect"], &["run"]),
    (&["git", "submodule"], &["foreach"]),
];

/// Subcommands of git that run what the configuration says, or change it.
const GIT_UNSEEN: [&str; 12] = [
    "citool",
    "config",
    "credential",
    "daemon",
    "difftool",
    "gui",
    "hook",
    "instaweb",
    "maintenance",
    "mergetool",
    "send-email",
    "web--browse",
];

/// Options of git's subcommands that do the same, or write a file.
const GIT_UNSEEN_OPTIONS: [&str; 5] = [
    "--ext-diff",
    "--interactive",
    "--output",
    "--template",
    "--textconv",
];

/// Options of git itself that lead to another configuration or to other programs.
const GIT_ELSEWHERE: [&str; 5] = [
    "-C",
    "--config-env",
    "--exec-path",
    "--git-dir",
    "--work-tree",
];

/// Returns what a command runs. The first word is its program.
pub(super) fn launched(words: &[String]) -> Vec<Launch> {
    let mut launches = Vec::new();
    let Some((program, arguments)) = words.split_first() else {
        return launches;
    };
    let name = program_name(program);
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
        wrapped(wrapper, arguments, &mut launches);
    }
    // A variable may hold the name of a shell, as `$SHELL` does.
    if SHELLS.contains(&name) || name.starts_with('$') {
        shell_lines(arguments, &mut launches);
    }
    if name == "env" {
        split_strings(arguments, &mut launches);
    }
    if SETTERS.contains(&name) {
        variables(arguments, &mut launches);
    }
    if name == "tar" {
        tar_letters(arguments, &mut launches);
    }
    if LINES.contains(&name) {
        let texts = arguments.iter().filter(|word| !word.starts_with('-'));
        let texts: Vec<&str> = texts.map(String::as_str).collect();
        launches.push(Launch::Line(texts.join(" ")));
        // The first word may be the line itself, as of `trap`, or a host or a name before it.
        launches.extend(texts.first().map(|first| Launch::Line((*first).to_owned())));
        launches.extend((1..texts.len().min(3)).filter_map(|skipped| {
            let rest = texts.get(skipped..)?;
            Some(Launch::Line(rest.join(" ")))
        }));
        launches.extend(values(&texts).map(Launch::Line));
    }
    let is_dynamic_linker = name.starts_with("ld-") || name.starts_with("ld.");
    if is_dynamic_linker {
        wrapped(&wrapper("ld.so"), arguments, &mut launches);
    }
    let subcommand = if name == "git" {
        git(arguments, &mut launches)
    } else {
        None
    };
    let key: Vec<&str> = std::iter::once(name).chain(subcommand).collect();
    for (_, options) in COMMAND_OPTIONS.iter().filter(|(of, _)| *of == key) {
        for option in *options {
            option_values(option, arguments, &mut launches);
        }
    }
    for (_, before) in COMMAND_WORDS.iter().filter(|(of, _)| *of == key) {
        let starts = arguments.iter().enumerate();
        for (at, _) in starts.filter(|(_, word)| before.contains(&word.as_str())) {
            command_at(arguments.get(at + 1..).unwrap_or_default(), &mut launches);
        }
    }
    launches
}

/// Returns the name of a program without its folder.
pub(super) fn program_name(program: &str) -> &str {
    let name = Path::new(program)
        .file_name()
        .and_then(|name| name.to_str());
    name.unwrap_or(program)
}

/// Says whether a command runs what it reads: another command's output may be a command then.
pub(super) fn is_fed(words: &[String]) -> bool {
    let mut names = words.iter().map(|word| program_name(word));
    names.any(|name| FED.contains(&name) || SHELLS.contains(&name))
}

/// Returns the value of a variable that programs run as a command.
pub(super) fn variable_command<'a>(name: &str, value: &'a str) -> Option<&'a str> {
    let is_command = name.starts_with("GIT_")
        || [
            "COMMAND", "PAGER", "EDITOR", "ASKPASS", "_RSH", "VISUAL", "BROWSER",
        ]
        .iter()
        .any(|end| name.ends_with(end));
    is_command.then_some(value)
}

/// Adds the commands that may stand behind a wrapper's options.
fn wrapped(wrapper: &Wrapper, words: &[String], launches: &mut Vec<Launch>) {
    let mut open = BTreeSet::from([0]);
    let mut commands = BTreeSet::new();
    // Positions only grow, so each is looked at once.
    while let Some(at) = open.pop_first() {
        let Some(word) = words.get(at) else { continue };
        if word == "--" {
            commands.insert(at + 1 + wrapper.operands);
        } else if word == "-" {
            // `env - x` is `env -i x`; to others it may be an operand.
            open.insert(at + 1);
            commands.insert(at + wrapper.operands);
        } else if word.starts_with('-') {
            let is_flag = |letters: &str| letters.chars().all(|c| wrapper.flags.contains(c));
            let is_known = word.strip_prefix('-').is_some_and(is_flag) || word.contains('=');
            if wrapper.valued.contains(&word.as_str()) {
                open.insert(at + 2);
            } else if is_known {
                open.insert(at + 1);
            } else {
                open.extend([at + 1, at + 2]);
            }
        } else if super::is_assignment(word) {
            open.insert(at + 1);
        } else {
            commands.insert(at + wrapper.operands);
        }
    }
    let commands = commands.into_iter().filter_map(|at| words.get(at..));
    let commands = commands.filter(|words| !words.is_empty());
    launches.extend(commands.map(|words| Launch::Words(words.to_vec())));
}

/// Adds the lines that a shell is given with `-c`.
fn shell_lines(words: &[String], launches: &mut Vec<Launch>) {
    let is_c = |word: &&String| {
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        letters.is_some_and(|letters| letters.contains('c')) || word.starts_with("--c")
    };
    let Some(at) = words.iter().position(|word| is_c(&word)) else {
        return;
    };
    let rest = words.get(at + 1..).unwrap_or_default();
    // Which of them is the line depends on the options; what follows it are its parameters.
    for (at, word) in rest.iter().enumerate() {
        let word = word.strip_prefix("--command=").unwrap_or(word);
        launches.push(Launch::Line(word.to_owned()));
        if word.contains('$') {
            let suffixes = [at + 1, at + 2]
                .into_iter()
                .filter_map(|from| rest.get(from..));
            launches.extend(suffixes.map(|words| Launch::Words(words.to_vec())));
        }
    }
    if let Some((_, line)) = words.get(at).and_then(|word| word.split_once('=')) {
        launches.push(Launch::Line(line.to_owned()));
    }
}

/// Adds the texts that `env -S` makes words of.
fn split_strings(words: &[String], launches: &mut Vec<Launch>) {
    for (at, word) in words.iter().enumerate() {
        let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let short = short
            .and_then(|rest| rest.split_once('S'))
            .map(|(_, text)| text);
        let is_long = word.starts_with("--s");
        let long = word
            .split_once('=')
            .filter(|_| is_long)
            .map(|(_, text)| text);
        let is_alone = is_long && !word.contains('=');
        let Some(text) = short.or(long).or(is_alone.then_some("")) else {
            continue;
        };
        let rest = words.get(at + 1..).unwrap_or_default();
        let line = format!("{text} {}", rest.join(" "));
        // `env` takes `\_` for a space.
        let spaced = line.replace("\\_", " ");
        if spaced != line {
            launches.push(Launch::Line(spaced));
        }
        launches.push(Launch::Line(line));
    }
}

/// Adds the commands in variables that words such as those of `env` and `export` set.
fn variables(words: &[String], launches: &mut Vec<Launch>) {
    let set = words.iter().filter_map(|word| word.split_once('='));
    let lines = set.filter_map(|(name, value)| variable_command(name, value));
    launches.extend(lines.map(|line| Launch::Line(line.to_owned())));
}

/// Adds the value of an option in the first word of `tar`, which needs no dash: `tar cIf COMMAND FILE`.
fn tar_letters(words: &[String], launches: &mut Vec<Launch>) {
    let Some((letters, values)) = words.split_first() else {
        return;
    };
    let letters = letters.strip_prefix('-').unwrap_or(letters);
    if !letters.starts_with('-') && letters.contains(['I', 'F']) {
        // Which value is whose depends on the letters before it.
        launches.extend(values.iter().take(letters.len()).cloned().map(Launch::Line));
    }
}

/// Adds what git itself runs, and returns its subcommand.
fn git<'a>(words: &'a [String], launches: &mut Vec<Launch>) -> Option<&'a str> {
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        if name == "-c" {
            at += 1;
            let value = words.get(at).and_then(|setting| setting.split_once('='));
            launches.push(Launch::Line(without_mark(
                value.map_or("", |(_, value)| value),
            )));
            launches.push(Launch::Unseen);
        } else if GIT_ELSEWHERE.contains(&name) {
            launches.push(Launch::Unseen);
            at += usize::from(!word.contains('=') && name != "--exec-path");
        }
        at += 1;
    }
    let (subcommand, rest) = words.get(at..)?.split_first()?;
    let is_unseen = |word: &String| {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        GIT_UNSEEN_OPTIONS
            .iter()
            .any(|option| is_abbreviated(option, name))
    };
    if GIT_UNSEEN.contains(&subcommand.as_str()) || rest.iter().any(is_unseen) {
        launches.push(Launch::Unseen);
    }
    for word in rest {
        if let Some(line) = word
            .strip_prefix('!')
            .or_else(|| word.strip_prefix("ext::"))
        {
            launches.push(Launch::Line(line.to_owned()));
        }
    }
    Some(subcommand)
}

/// Adds the values of an option: the next word, or what is attached to it.
fn option_values(option: &str, words: &[String], launches: &mut Vec<Launch>) {
    let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
    for (at, word) in words.iter().enumerate() {
        let attached = if let Some(letter) = letter {
            let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            letters
                .and_then(|letters| letters.split_once(letter))
                .map(|(_, rest)| rest)
        } else {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            is_abbreviated(option, name).then_some(value)
        };
        let Some(attached) = attached else { continue };
        let value = if attached.is_empty() {
            words.get(at + 1).map_or("", String::as_str)
        } else {
            attached
        };
        // Of `core.pager=CMD` or `exec=CMD`, the command is behind the sign.
        if let Some((_, inner)) = value.split_once('=') {
            launches.push(Launch::Line(without_mark(inner)));
        }
        // `ssh -o` also takes a space between the name and the command.
        if option == "-o"
            && let Some((_, inner)) = value.split_once(' ')
        {
            launches.push(Launch::Line(inner.to_owned()));
        }
        launches.push(Launch::Line(value.to_owned()));
    }
}

/// Adds the command that begins with these words and ends at `;` or `+`, also as one line.
fn command_at(words: &[String], launches: &mut Vec<Launch>) {
    let is_end = |word: &String| [";", "+"].contains(&word.as_str());
    let end = words.iter().position(is_end).unwrap_or(words.len());
    let words = words.get(..end).unwrap_or_default();
    let skipped = words
        .iter()
        .take_while(|word| word.starts_with('-'))
        .count();
    let words = words.get(skipped..).unwrap_or_default();
    launches.push(Launch::Words(words.to_vec()));
    launches.push(Launch::Line(words.join(" ")));
}

/// Says whether a word is a long option or a beginning of it, which many programs take for the whole.
fn is_abbreviated(option: &str, word: &str) -> bool {
    word.len() > "--x".len() && option.starts_with(word)
}

fn without_mark(line: &str) -> String {
    line.strip_prefix('!').unwrap_or(line).to_owned()
}

/// Returns what stands behind `NAME=` in words.
fn values<'a>(words: &'a [&str]) -> impl Iterator<Item = String> + 'a {
    let values = words.iter().filter_map(|word| word.split_once('='));
    values.map(|(_, value)| value.to_owned())
}
