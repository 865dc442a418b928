//! Finds the commands that a command runs: after a wrapper such as `timeout`, in the value of an
//! option such as `git difftool -x`, or in a line for a shell such as the argument of `sh -c`.
//!
//! In case of doubt, the tables find too many commands instead of too few. For example, an option
//! that is not in a wrapper's row may or may not take the next word as its value, so the command is
//! read in both ways.

use std::collections::BTreeSet;
use std::path::Path;

use crate::assignment::is_assignment;

/// A command that another command runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Launch {
    /// A command, as its words.
    Words {
        words: Vec<String>,
        is_certain: bool,
    },
    /// A line for a shell.
    Line { line: String, is_certain: bool },
    /// Something that the command line does not show.
    Unseen,
}

/// The commands that one command runs, with a limit on their total size. The rest of the words may be
/// a command at each of many words, so without a limit, the size would be quadratic.
#[derive(Debug)]
pub(super) struct Launches {
    pub(super) found: Vec<Launch>,
    /// Whether all commands are in `found`.
    pub(super) is_complete: bool,
    /// The remaining bytes of the limit.
    pub(super) room: usize,
}

impl Launches {
    const fn new(room: usize) -> Self {
        Self {
            found: Vec::new(),
            is_complete: true,
            room,
        }
    }

    /// Adds a command that runs.
    fn words(&mut self, words: &[String]) {
        self.add_words(words, true);
    }

    /// Adds words that may be a command.
    fn guessed_words(&mut self, words: &[String]) {
        self.add_words(words, false);
    }

    fn add_words(&mut self, words: &[String], is_certain: bool) {
        if self.is_complete && self.has_room(size(words)) {
            let words = words.to_vec();
            self.found.push(Launch::Words { words, is_certain });
        }
    }

    /// Adds a line that runs.
    fn line(&mut self, line: &str) {
        self.add_line(line, true);
    }

    /// Adds text that may be a line that runs.
    fn guessed_line(&mut self, line: &str) {
        self.add_line(line, false);
    }

    fn add_line(&mut self, line: &str, is_certain: bool) {
        if self.has_room(line.len()) {
            let line = line.to_owned();
            self.found.push(Launch::Line { line, is_certain });
        }
    }

    /// Adds words as one line. They may be a line that runs.
    fn joined(&mut self, words: &[String]) {
        if self.is_complete && self.has_room(size(words)) {
            self.found.push(Launch::Line {
                line: words.join(" "),
                is_certain: false,
            });
        }
    }

    fn unseen(&mut self) {
        self.found.push(Launch::Unseen);
    }

    fn has_room(&mut self, bytes: usize) -> bool {
        // After the first command that is too large, nothing is measured any more: that alone would take
        // quadratic time.
        let has_room = self.is_complete && bytes <= self.room;
        if has_room {
            self.room -= bytes;
        }
        self.is_complete = has_room;
        has_room
    }
}

/// Returns the size of words in a line, in bytes. Empty words count, too.
pub(super) fn size(words: &[String]) -> usize {
    words.iter().map(|word| word.len() + 1).sum()
}

/// A program that runs the command after its own options and operands.
struct Wrapper {
    name: &'static str,
    /// The letters of options without a value.
    flags: &'static str,
    /// Options whose value is the next word.
    valued: &'static [&'static str],
    /// How many words there are between the options and the command.
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
    Wrapper {
        valued: &[
            "-I",
            "-L",
            "-N",
            "-S",
            "-a",
            "-j",
            "-n",
            "--jobs",
            "--sshlogin",
        ],
        ..wrapper("parallel")
    },
    wrapper("pkexec"),
    wrapper("prlimit"),
    wrapper("proxychains"),
    wrapper("proxychains4"),
    wrapper("rlwrap"),
    Wrapper {
        valued: &["-G", "-g", "-u", "--group", "--supp-group", "--user"],
        ..wrapper("runuser")
    },
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
    Wrapper {
        flags: "46AaCfGgKkMNnqsTtVvXxYy",
        valued: &[
            "-B", "-D", "-E", "-F", "-I", "-J", "-L", "-O", "-P", "-Q", "-R", "-S", "-W", "-b",
            "-c", "-e", "-i", "-l", "-m", "-o", "-p", "-w",
        ],
        ..with_operand("ssh")
    },
    Wrapper {
        flags: "cCdfFhikntTrvwxyYzZ",
        valued: &[
            "-E", "-O", "-P", "-S", "-a", "-b", "-e", "-o", "-p", "-s", "-u",
        ],
        ..wrapper("strace")
    },
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

/// Reports whether a program is a shell, which runs the line after `-c`, and the text that it reads.
pub fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program)
}

/// Shells, which run the line after `-c`.
const SHELLS: [&str; 17] = [
    "ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "osh", "pwsh", "rbash",
    "sh", "tcsh", "xonsh", "yash", "zsh",
];

/// Commands that join their words into one line and run it.
const LINES: [&str; 6] = ["alias", "eval", "parallel", "ssh", "trap", "watch"];

/// At how many of the first words of such a command its line may begin, as in `ssh -p 22 -i KEY HOST LINE`.
const MAX_LINE_STARTS: usize = 8;

/// Commands that set variables, some of which contain commands.
const SETTERS: [&str; 6] = ["declare", "env", "export", "local", "readonly", "typeset"];

/// Programs that run the words or lines that they read.
const FED: [&str; 2] = ["parallel", "xargs"];

/// Options whose value is a command, by program and subcommand.
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

/// Words that are followed by a command, by program and subcommand.
const COMMAND_WORDS: &[(&[&str], &[&str])] = &[
    (&["fd"], &["-X", "-x", "--exec", "--exec-batch"]),
    (&["fdfind"], &["-X", "-x", "--exec", "--exec-batch"]),
    (&["find"], &["-exec", "-execdir", "-ok", "-okdir"]),
    (&["gdb"], &["--args"]),
    (&["git", "bisect"], &["run"]),
    (&["git", "submodule"], &["foreach"]),
];

/// Subcommands of git that run commands from the configuration, or change the configuration.
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

/// Options of git's subcommands that run commands from the configuration, or write a file.
const GIT_UNSEEN_OPTIONS: [&str; 5] = [
    "--ext-diff",
    "--interactive",
    "--output",
    "--template",
    "--textconv",
];

/// Options of git itself that make it use another configuration or other programs.
const GIT_ELSEWHERE: [&str; 5] = [
    "-C",
    "--config-env",
    "--exec-path",
    "--git-dir",
    "--work-tree",
];

/// Returns the commands that a command runs. Its first word is its program. `room` is the limit on their
/// total size, in bytes.
pub(super) fn launched(words: &[String], room: usize) -> Launches {
    let mut launches = Launches::new(room);
    let Some((program, arguments)) = words.split_first() else {
        return launches;
    };
    let name = program_name(program);
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
        wrapped(wrapper, arguments, &mut launches);
    }
    // A variable may contain the name of a shell, such as `$SHELL`.
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
        let texts = arguments.iter().enumerate();
        let texts: Vec<(usize, &str)> = texts
            .map(|(at, word)| (at, word.as_str()))
            .filter(|(_, word)| !word.starts_with('-'))
            .collect();
        // The first word may be the line itself (`trap`). A host (`ssh`), a name (`alias`) or the value
        // of an option may stand before the line. Options after its first word belong to the line.
        if let Some((_, first)) = texts.first() {
            launches.add_line(first, name == "trap");
        }
        if name == "eval" {
            launches.line(&arguments.join(" "));
        }
        for (start, _) in texts.iter().take(MAX_LINE_STARTS) {
            launches.joined(arguments.get(*start..).unwrap_or_default());
        }
        // Options with values may stand before the line, so more words can hide it.
        if name == "ssh" && texts.len() > MAX_LINE_STARTS {
            launches.is_complete = false;
        }
        for value in values(texts.iter().map(|(_, word)| *word)) {
            launches.guessed_line(value);
        }
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

/// Returns whether a command runs the text that it reads. Then the output of another command may be
/// a command.
pub(super) fn is_fed(words: &[String]) -> bool {
    let mut names = words.iter().map(|word| program_name(word));
    names.any(|name| FED.contains(&name) || SHELLS.contains(&name))
}

/// Returns the value of a variable if programs run it as a command.
pub(super) fn variable_command<'a>(name: &str, value: &'a str) -> Option<&'a str> {
    let is_command = name.starts_with("GIT_")
        || [
            "COMMAND", "PAGER", "EDITOR", "ASKPASS", "_RSH", "VISUAL", "BROWSER",
        ]
        .iter()
        .any(|end| name.ends_with(end));
    is_command.then_some(value)
}

/// Adds the commands that may follow a wrapper's options.
fn wrapped(wrapper: &Wrapper, words: &[String], launches: &mut Launches) {
    let mut open = BTreeSet::from([0]);
    let mut commands = BTreeSet::new();
    // Positions only grow, so each one is checked once.
    while let Some(at) = open.pop_first() {
        let Some(word) = words.get(at) else { continue };
        if word == "--" {
            commands.insert(at + 1 + wrapper.operands);
        } else if word == "-" {
            // `env - x` means `env -i x`. For other programs, `-` may be an operand.
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
        } else if is_assignment(word) {
            open.insert(at + 1);
        } else {
            commands.insert(at + wrapper.operands);
        }
    }
    // `command -v x` only looks for a program.
    let is_search = wrapper.name == "command" && words.iter().any(|word| word.starts_with("-v"));
    let commands = commands.into_iter().filter_map(|at| words.get(at..));
    for words in commands.filter(|words| !words.is_empty()) {
        launches.add_words(words, !is_search);
    }
}

/// Adds the lines that a shell gets with `-c`.
fn shell_lines(words: &[String], launches: &mut Launches) {
    let is_c = |word: &&String| {
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        letters.is_some_and(|letters| letters.contains('c')) || word.starts_with("--c")
    };
    let Some(at) = words.iter().position(|word| is_c(&word)) else {
        return;
    };
    let rest = words.get(at + 1..).unwrap_or_default();
    // Which word is the line depends on the options. The words after the line are its parameters.
    let first = rest.iter().position(|word| !word.starts_with(['-', '+']));
    for (at, word) in rest.iter().enumerate() {
        let word = word.strip_prefix("--command=").unwrap_or(word);
        launches.add_line(word, first == Some(at));
        if word.contains('$') {
            for words in [at + 1, at + 2].into_iter().filter_map(|at| rest.get(at..)) {
                launches.guessed_words(words);
            }
        }
    }
    if let Some((_, line)) = words.get(at).and_then(|word| word.split_once('=')) {
        launches.guessed_line(line);
    }
}

/// Adds the strings that `env -S` splits into words.
fn split_strings(words: &[String], launches: &mut Launches) {
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
        // `env` reads `\_` as a space.
        let spaced = line.replace("\\_", " ");
        if spaced != line {
            launches.guessed_line(&spaced);
        }
        launches.line(&line);
        // The rest of the words could be joined as often as there are words.
        if !launches.is_complete {
            return;
        }
    }
}

/// Adds the commands in the variables that commands such as `env` and `export` set.
fn variables(words: &[String], launches: &mut Launches) {
    let set = words.iter().filter_map(|word| word.split_once('='));
    let lines = set.filter_map(|(name, value)| variable_command(name, value));
    for line in lines {
        launches.guessed_line(line);
    }
}

/// Adds the value of an option in the first word of `tar`, which needs no dash: `tar cIf COMMAND FILE`.
fn tar_letters(words: &[String], launches: &mut Launches) {
    let Some((letters, values)) = words.split_first() else {
        return;
    };
    let letters = letters.strip_prefix('-').unwrap_or(letters);
    if !letters.starts_with('-') && letters.contains(['I', 'F']) {
        // Which value belongs to which letter depends on the letters before it.
        for value in values.iter().take(letters.len()) {
            launches.guessed_line(value);
        }
    }
}

/// Adds the commands that git itself runs, and returns its subcommand.
fn git<'a>(words: &'a [String], launches: &mut Launches) -> Option<&'a str> {
    let mut at = 0;
    let mut aliases = Vec::new();
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        if name == "-c" {
            at += 1;
            let setting = words.get(at).and_then(|setting| setting.split_once('='));
            let (name, value) = setting.unwrap_or_default();
            aliases.extend(alias(name, value));
            launches.guessed_line(without_mark(value));
            launches.unseen();
        } else if GIT_ELSEWHERE.contains(&name) {
            launches.unseen();
            at += usize::from(!word.contains('=') && name != "--exec-path");
        }
        at += 1;
    }
    let (subcommand, rest) = words.get(at..)?.split_first()?;
    if subcommand == "config" {
        let pairs = rest.iter().zip(rest.iter().skip(1));
        aliases.extend(pairs.filter_map(|(name, value)| alias(name, value)));
    }
    for line in aliases {
        launches.line(&format!("{line} {}", rest.join(" ")));
    }
    let is_unseen = |word: &String| {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        GIT_UNSEEN_OPTIONS
            .iter()
            .any(|option| is_abbreviated(option, name))
    };
    if GIT_UNSEEN.contains(&subcommand.as_str()) || rest.iter().any(is_unseen) {
        launches.unseen();
    }
    for word in rest {
        if let Some(line) = word
            .strip_prefix('!')
            .or_else(|| word.strip_prefix("ext::"))
        {
            launches.guessed_line(line);
        }
    }
    Some(subcommand)
}

/// Adds the values of an option: the next word, or the text that is attached to the option.
fn option_values(option: &str, words: &[String], launches: &mut Launches) {
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
        // In `core.pager=CMD` or `exec=CMD`, the command comes after the `=`.
        if let Some((_, inner)) = value.split_once('=') {
            launches.guessed_line(without_mark(inner));
        }
        // `ssh -o` also takes a space between the name and the command.
        if option == "-o"
            && let Some((_, inner)) = value.split_once(' ')
        {
            launches.guessed_line(inner);
        }
        launches.guessed_line(value);
    }
}

/// Adds the command that starts with these words and ends at `;` or `+`, as words and as one line.
fn command_at(words: &[String], launches: &mut Launches) {
    let is_end = |word: &String| [";", "+"].contains(&word.as_str());
    let end = words.iter().position(is_end).unwrap_or(words.len());
    let words = words.get(..end).unwrap_or_default();
    let skipped = words
        .iter()
        .take_while(|word| word.starts_with('-'))
        .count();
    let words = words.get(skipped..).unwrap_or_default();
    launches.words(words);
    launches.joined(words);
}

/// Returns whether a word is a long option or an abbreviation of it, which many programs accept.
fn is_abbreviated(option: &str, word: &str) -> bool {
    word.len() > "--x".len() && option.starts_with(word)
}

fn without_mark(line: &str) -> &str {
    line.strip_prefix('!').unwrap_or(line)
}

/// Returns the values of words of the form `NAME=value`.
fn values<'a>(words: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    let values = words.filter_map(|word| word.split_once('='));
    values.map(|(_, value)| value)
}

/// Returns the line that a setting of git runs as a subcommand, as in `alias.x=push` or `alias.x=!make`.
fn alias(name: &str, value: &str) -> Option<String> {
    let (section, _) = name.split_once('.')?;
    if !section.eq_ignore_ascii_case("alias") {
        return None;
    }
    let line = value.strip_prefix('!').map(str::to_owned);
    Some(line.unwrap_or_else(|| format!("git {value}")))
}
