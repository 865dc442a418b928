//! Finds the commands that a command runs: after a wrapper such as `timeout`, in the value of an
//! option such as `git difftool -x`, or in a line for a shell such as the argument of `sh -c`.
//!
//! In case of doubt, the tables find too many commands instead of too few. For example, an option
//! that is not in a wrapper's row may or may not take the next word as its value, so the command is
//! read in both ways.

use std::collections::BTreeSet;

use crate::assignment::is_assignment;
use crate::variables::Variables;
use crate::word::{Word, joined};

/// A command that another command runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Launch {
    /// A command, as its words.
    Words { words: Vec<Word>, is_certain: bool },
    /// A line for a shell.
    Line {
        line: String,
        is_certain: bool,
        /// The values of `$0`, `$1` and so on.
        parameters: Vec<Word>,
    },
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

    /// Adds a command. `is_certain` is whether these words surely run.
    fn words(&mut self, words: &[Word], is_certain: bool) {
        // Some programs set variables before the command that they run.
        let is_set = |word: &&Word| is_assignment(word.as_str());
        let set = words.iter().take_while(is_set).count();
        let words = words.get(set..).unwrap_or_default();
        if self.is_complete && !words.is_empty() && self.has_room(size(words)) {
            let words = words.to_vec();
            self.found.push(Launch::Words { words, is_certain });
        }
    }

    /// Adds a line for a shell. `is_certain` is whether it surely runs.
    fn line(&mut self, line: &str, is_certain: bool) {
        self.line_with(line, is_certain, &[]);
    }

    fn line_with(&mut self, line: &str, is_certain: bool, parameters: &[Word]) {
        if self.has_room(line.len() + size(parameters)) {
            self.found.push(Launch::Line {
                line: line.to_owned(),
                is_certain,
                parameters: parameters.to_vec(),
            });
        }
    }

    /// Adds words as one line.
    fn joined(&mut self, words: &[Word], is_certain: bool) {
        if self.is_complete && !words.is_empty() && self.has_room(size(words)) {
            self.found.push(Launch::Line {
                line: joined(words),
                is_certain,
                parameters: Vec::new(),
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
pub(super) fn size(words: &[Word]) -> usize {
    words.iter().map(|word| word.as_str().len() + 1).sum()
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
    /// Whether these words may be left out.
    is_optional: bool,
}

const fn wrapper(name: &'static str) -> Wrapper {
    Wrapper {
        name,
        flags: "",
        valued: &[],
        operands: 0,
        is_optional: false,
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
    Wrapper {
        is_optional: true,
        ..with_operand("setarch")
    },
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
            "-C", "-D", "-R", "-T", "-U", "-g", "-h", "-p", "-r", "-t", "-u", "--chdir", "--group",
            "--host", "--prompt", "--user",
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

/// Wrappers that join the words of their command into one line for a shell.
const JOINING: [&str; 3] = ["parallel", "ssh", "watch"];

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
    (&["sftp"], &["-D", "-S", "-o"]),
    (&["sort"], &["--compress-program"]),
    (&["split"], &["--filter"]),
    (&["ssh"], &["-o"]),
    (&["su"], &["-c", "--command", "--session-command"]),
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

/// Options with which git's subcommands run commands from the configuration, or write a file, by subcommand. An empty
/// subcommand stands for all.
const GIT_UNSEEN_OPTIONS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "--ext-diff",
            "--interactive",
            "--output",
            "--output-directory",
            "--template",
            "--textconv",
        ],
    ),
    ("archive", &["-o"]),
    ("bundle", &["create"]),
    ("fast-export", &["--export-marks"]),
    ("fast-import", &["--export-marks", "--export-pack-edges"]),
    ("format-patch", &["-o"]),
    ("read-tree", &["--index-output"]),
];

/// Options of git itself that make it use another configuration or other programs.
const GIT_ELSEWHERE: [&str; 5] = [
    "-C",
    "--config-env",
    "--exec-path",
    "--git-dir",
    "--work-tree",
];

/// Returns whether an option of a shell takes the next word as its value, as `-o` and `-euo` do.
fn takes_next(word: &str) -> bool {
    if let Some(long) = word.strip_prefix("--") {
        return ["rcfile", "init-file"].contains(&long);
    }
    word.starts_with(['-', '+']) && word.ends_with(['o', 'O'])
}

/// Returns the commands that a command runs. Its first word is its program. `room` is the limit on their
/// total size, in bytes.
pub(super) fn launched(words: &[Word], room: usize, variables: &Variables) -> Launches {
    let mut launches = Launches::new(room);
    let Some((program, arguments)) = words.split_first() else {
        return launches;
    };
    let name = program_name(program.as_str());
    let is_dynamic_linker = name.starts_with("ld-") || name.starts_with("ld.");
    let linker = wrapper("ld.so");
    let found = if is_dynamic_linker {
        Some(&linker)
    } else {
        WRAPPERS.iter().find(|wrapper| wrapper.name == name)
    };
    if let Some(wrapper) = found {
        wrapped(wrapper, arguments, &mut launches);
    }
    // A variable may contain the name of a shell, such as `$SHELL`.
    if SHELLS.contains(&name) || name.starts_with('$') {
        // Other shells have another syntax, so what looks hidden in it may not be.
        let is_posix = !["elvish", "fish", "nu", "pwsh", "xonsh"].contains(&name);
        shell_lines(arguments, is_posix, &mut launches);
    }
    if sets_variables(name) {
        set_variables(arguments, &mut launches);
    }
    match name {
        "env" => split_strings(arguments, &mut launches),
        "tar" => tar_letters(arguments, &mut launches),
        "eval" => {
            let is_end = arguments.first().is_some_and(|word| word.as_str() == "--");
            launches.joined(
                arguments.get(usize::from(is_end)..).unwrap_or_default(),
                true,
            );
        }
        "trap" => {
            let line = arguments
                .iter()
                .find(|word| !word.as_str().starts_with('-'));
            if let Some(line) = line {
                launches.line(line.as_str(), true);
            }
        }
        "alias" => {
            for word in arguments {
                if let Some((_, line)) = word.as_str().split_once('=') {
                    launches.line(line, false);
                }
            }
        }
        _ => {}
    }
    let subcommand = if name == "git" {
        git(arguments, variables, &mut launches)
    } else {
        None
    };
    let is_key = |of: &[&str]| match of {
        [program] => *program == name,
        [program, of] => *program == name && Some(*of) == subcommand,
        _ => false,
    };
    for (_, options) in COMMAND_OPTIONS.iter().filter(|(of, _)| is_key(of)) {
        for option in *options {
            option_values(option, arguments, &mut launches);
        }
    }
    for (_, before) in COMMAND_WORDS.iter().filter(|(of, _)| is_key(of)) {
        let starts = arguments.iter().enumerate();
        for (at, _) in starts.filter(|(_, word)| before.contains(&word.as_str())) {
            command_at(arguments.get(at + 1..).unwrap_or_default(), &mut launches);
        }
    }
    launches
}

/// Returns the name of a program without its folder.
pub(super) fn program_name(program: &str) -> &str {
    program.rsplit_once('/').map_or(program, |(_, name)| name)
}

/// Returns whether a program runs the words or lines that it reads.
pub(super) fn is_fed(name: &str) -> bool {
    FED.contains(&name)
}

/// Returns whether a program that runs others has a name with this beginning.
pub(super) fn runs_others(start: &str) -> bool {
    let wrappers = WRAPPERS.iter().map(|wrapper| wrapper.name);
    let others = ["eval", "find", "git", "source", "tar", "rsync"];
    wrappers
        .chain(SHELLS)
        .chain(others)
        .any(|name| name.starts_with(start))
}

/// Returns whether a program sets the variables that its arguments name.
pub(super) fn sets_variables(name: &str) -> bool {
    SETTERS.contains(&name)
}

/// Returns whether a program runs the files that its arguments name.
pub(super) fn runs_file(name: &str) -> bool {
    is_shell(name) || [".", "source"].contains(&name)
}

/// Returns whether a command runs the text that it reads: a shell with neither `-c` nor a script, for example.
pub(super) fn reads_input(name: &str, words: &[Word]) -> bool {
    if name == "parallel" || name == "su" {
        return true;
    }
    if !runs_file(name) {
        return false;
    }
    let mut arguments = words.iter().skip(1).map(Word::as_str);
    while let Some(word) = arguments.next() {
        if takes_next(word) {
            arguments.next();
        } else if let Some(letters) = word.strip_prefix('-') {
            let letters = letters.strip_prefix('-').map_or(letters, |_| "");
            if letters.contains('c') {
                return false;
            }
            if letters.contains('s') || letters.is_empty() && !word.starts_with("--") {
                return true;
            }
        } else if !word.starts_with('+') {
            let path = word.replace("//", "/");
            return ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].contains(&path.as_str());
        }
    }
    is_shell(name)
}

/// Returns the commands that `xargs` makes of its command and the text that it reads.
pub(super) fn with_input(words: &[Word], arguments: &[Word], text: &str) -> Vec<Vec<Word>> {
    let mut options = arguments.iter().map(Word::as_str);
    let placeholder = options.find_map(|word| {
        let rest = word
            .strip_prefix("-I")
            .or_else(|| word.strip_prefix("--replace"))?;
        let rest = rest.strip_prefix('=').unwrap_or(rest);
        Some(if rest.is_empty() { "" } else { rest })
    });
    let at = arguments.iter().position(|word| word.as_str() == "-I");
    let next = at.and_then(|at| arguments.get(at + 1)).map(Word::as_str);
    let placeholder = placeholder.map(|it| {
        if it.is_empty() {
            next.unwrap_or("{}")
        } else {
            it
        }
    });
    if let Some(placeholder) = placeholder {
        let lines = text.lines().take(MAX_INPUT_LINES);
        let replaced = lines.map(|line| {
            let words = words.iter();
            let words = words.map(|word| Word::known(word.as_str().replace(placeholder, line)));
            words.collect()
        });
        return replaced.collect();
    }
    // Quotes in the text group words, as in a shell.
    let quoted = crate::commands::commands(&text.replace(['\n', '\0'], " "));
    let quoted = quoted.into_iter().flatten().map(Word::known);
    let plain = Word::known(text).split("").words;
    [quoted.collect(), plain]
        .into_iter()
        .map(|more: Vec<Word>| words.iter().cloned().chain(more).collect())
        .collect()
}

/// How many lines of a text make commands of their own.
const MAX_INPUT_LINES: usize = 64;

/// Returns the commands in the value of a variable, if programs run it.
pub(super) fn variable_commands(name: &str, value: &str) -> Vec<Launch> {
    let line = |line: &str| Launch::Line {
        line: line.to_owned(),
        is_certain: false,
        parameters: Vec::new(),
    };
    if name == "GIT_CONFIG_PARAMETERS" {
        // Its value is a list of quoted settings, as `git -c` takes them.
        let value = value.replace("'='", "=");
        let settings = crate::commands::commands(&value).into_iter().flatten();
        let git = settings.map(|setting| Launch::Words {
            words: ["git", "-c", &setting].map(Word::known).to_vec(),
            is_certain: false,
        });
        return git.collect();
    }
    let ends = [
        "PAGER",
        "EDITOR",
        "ASKPASS",
        "_RSH",
        "VISUAL",
        "BROWSER",
        "LESSOPEN",
        "LESSCLOSE",
        "SSH_COMMAND",
        "PROXY_COMMAND",
        "PROMPT_COMMAND",
        "EXTERNAL_DIFF",
        "GIT_SSH",
    ];
    let is_setting = name.starts_with("GIT_CONFIG_VALUE_");
    if !is_setting && !ends.iter().any(|end| name.ends_with(end)) {
        return Vec::new();
    }
    // A value of git's configuration may be an alias, whose command starts with `!`. One of `less` starts with `|`.
    vec![line(value.trim_start_matches(['!', '|', '-']))]
}

/// Adds the commands that may follow a wrapper's options.
fn wrapped(wrapper: &Wrapper, words: &[Word], launches: &mut Launches) {
    let is_joining = JOINING.contains(&wrapper.name);
    let mut open = BTreeSet::from([0]);
    let mut commands = BTreeSet::new();
    let end = |at: usize, commands: &mut BTreeSet<usize>| {
        commands.insert(at + wrapper.operands);
        if wrapper.is_optional {
            commands.insert(at);
        }
    };
    // `env` sets variables of any name, and people give it the output of a program.
    let is_skipped = |at: usize| {
        let word = words.get(at);
        word.is_some_and(|word| word.as_str().contains('=') || word.has_output())
    };
    // Positions only grow, so each one is checked once.
    while let Some(at) = open.pop_first() {
        let Some(word) = words.get(at).map(Word::as_str) else {
            continue;
        };
        if word == "--" {
            end(at + 1, &mut commands);
        } else if word == "-" {
            // `env - x` means `env -i x`. For other programs, `-` may be an operand.
            open.insert(at + 1);
            end(at, &mut commands);
        } else if word.starts_with('-') {
            let is_flag = |letters: &str| letters.chars().all(|c| wrapper.flags.contains(c));
            let is_known = word.strip_prefix('-').is_some_and(is_flag) || word.contains('=');
            if wrapper.valued.contains(&word) || ends_with_valued(wrapper, word) {
                open.insert(at + 2);
            } else if is_known || has_attached_value(wrapper, word) {
                open.insert(at + 1);
            } else {
                open.extend([at + 1, at + 2]);
            }
        } else if is_assignment(word) && !is_joining || wrapper.name == "env" && is_skipped(at) {
            open.insert(at + 1);
        } else {
            end(at, &mut commands);
        }
    }
    // `command -v x` only looks for a program.
    let is_option = |word: &&Word| word.as_str().starts_with('-');
    let mut options = words.iter().take_while(is_option);
    if wrapper.name == "command" && options.any(|word| word.as_str().contains(['v', 'V'])) {
        return;
    }
    // An unknown option may take the next word.
    let is_shown = words.iter().take(1).all(Word::is_known);
    let is_only = commands.len() == 1 && is_shown;
    let commands = commands.into_iter().map(|mut at| {
        // `ssh HOST -p 22 LINE` has options after its operand, too.
        while wrapper.name == "ssh"
            && let Some(word) = words.get(at).map(Word::as_str)
            && word.starts_with('-')
        {
            at += 1 + usize::from(wrapper.valued.contains(&word));
        }
        words.get(at..).unwrap_or_default()
    });
    for words in commands.filter(|words| !words.is_empty()) {
        if is_joining {
            launches.joined(words, is_only);
        }
        launches.words(words, !is_joining);
    }
}

/// Returns whether a word is a group of options of which the last takes the next word, such as `-Hu`.
fn ends_with_valued(wrapper: &Wrapper, word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    let Some((flags, last)) = letters
        .char_indices()
        .next_back()
        .and_then(|(at, _)| letters.split_at_checked(at))
    else {
        return false;
    };
    let mut valued = wrapper
        .valued
        .iter()
        .filter_map(|option| option.strip_prefix('-'));
    !flags.is_empty()
        && flags.chars().all(|c| wrapper.flags.contains(c))
        && valued.any(|option| option == last)
}

/// Returns whether a word is an option with its value, such as `-n1`.
fn has_attached_value(wrapper: &Wrapper, word: &str) -> bool {
    let mut valued = wrapper.valued.iter().filter(|option| option.len() == 2);
    valued.any(|option| word.len() > 2 && word.starts_with(option))
}

/// Adds the lines that a shell gets with `-c`.
fn shell_lines(words: &[Word], is_certain: bool, launches: &mut Launches) {
    let is_c = |word: &Word| {
        let word = word.as_str();
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        letters.is_some_and(|letters| letters.contains('c')) || word.starts_with("--c")
    };
    let Some(at) = words.iter().position(is_c) else {
        return;
    };
    if let Some((_, line)) = words.get(at).and_then(|word| word.as_str().split_once('=')) {
        launches.line(line, false);
    }
    // The line is the first word after the options. The words after it are its parameters.
    let mut line = at;
    while let Some(word) = words.get(line).map(Word::as_str) {
        if takes_next(word) {
            line += 2;
        } else if word.starts_with(['-', '+']) && word.len() > 1 {
            line += 1;
        } else {
            break;
        }
    }
    if let Some(word) = words.get(line) {
        let parameters = words.get(line + 1..).unwrap_or_default();
        launches.line_with(word.as_str(), is_certain, parameters);
    }
}

/// Adds the strings that `env -S` splits into words.
fn split_strings(words: &[Word], launches: &mut Launches) {
    for (at, word) in words.iter().map(Word::as_str).enumerate() {
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
        // `env` reads `\_` as a space. The words that it makes may again be its own options.
        let line = format!("env {text} {}", joined(rest)).replace("\\_", " ");
        launches.line(&line, true);
        // The rest of the words could be joined as often as there are words.
        if !launches.is_complete {
            return;
        }
    }
}

/// Adds the commands in the variables that commands such as `env` and `export` set.
fn set_variables(words: &[Word], launches: &mut Launches) {
    for word in words {
        if let Some((name, value)) = word.as_str().split_once('=') {
            launches.found.extend(variable_commands(name, value));
        }
    }
}

/// Adds the value of an option in the first word of `tar`, which needs no dash: `tar cIf COMMAND FILE`.
fn tar_letters(words: &[Word], launches: &mut Launches) {
    let Some((letters, values)) = words.split_first() else {
        return;
    };
    let letters = letters.as_str();
    let letters = letters.strip_prefix('-').unwrap_or(letters);
    if !letters.starts_with('-') && letters.contains(['I', 'F']) {
        // Which value belongs to which letter depends on the letters before it.
        for value in values.iter().take(letters.len()) {
            launches.line(value.as_str(), false);
        }
    }
}

/// Adds the commands that git itself runs, and returns its subcommand.
fn git<'a>(words: &'a [Word], variables: &Variables, launches: &mut Launches) -> Option<&'a str> {
    let mut at = 0;
    let mut aliases = Vec::new();
    while let Some(word) = words
        .get(at)
        .map(Word::as_str)
        .filter(|word| word.starts_with('-'))
    {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        if name == "-c" {
            at += 1;
            let setting = words.get(at).map_or("", Word::as_str);
            let (name, value) = setting.split_once('=').unwrap_or_default();
            aliases.extend(alias(name, value));
            if runs_value(name) {
                launches.line(without_mark(value), false);
            }
            launches.unseen();
        } else if GIT_ELSEWHERE.contains(&name) {
            launches.unseen();
            if name == "--config-env" {
                let next = words.get(at + 1).map_or("", Word::as_str);
                let setting = word.split_once('=').map_or(next, |(_, setting)| setting);
                let (name, variable) = setting.split_once('=').unwrap_or_default();
                for value in variables.texts(variable) {
                    aliases.extend(alias(name, &value));
                    if runs_value(name) {
                        launches.line(without_mark(&value), false);
                    }
                }
            }
            at += usize::from(!word.contains('=') && name != "--exec-path");
        }
        at += 1;
    }
    let (subcommand, rest) = match words.get(at..).unwrap_or_default().split_first() {
        Some((subcommand, rest)) => (subcommand.as_str(), rest),
        None => ("", [].as_slice()),
    };
    if subcommand == "config" {
        for (name, value) in rest.iter().zip(rest.iter().skip(1)) {
            let (name, value) = (name.as_str(), value.as_str());
            aliases.extend(alias(name, value));
            if runs_value(name) {
                launches.line(without_mark(value), false);
            }
        }
    }
    // `git config` only stores the alias.
    let arguments = if subcommand == "config" { &[] } else { rest };
    for line in aliases {
        launches.line(format!("{line} {}", joined(arguments)).trim_end(), true);
    }
    if GIT_UNSEEN.contains(&subcommand) || rest.iter().any(|word| is_unseen(subcommand, word)) {
        launches.unseen();
    }
    for word in rest.iter().map(Word::as_str) {
        if let Some(line) = word.strip_prefix("ext::") {
            launches.line(line, false);
        }
    }
    Some(subcommand)
}

/// Returns whether a word makes a subcommand of git write a file, or run a command from the configuration.
fn is_unseen(subcommand: &str, word: &Word) -> bool {
    let word = word.as_str();
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let rows = GIT_UNSEEN_OPTIONS.iter();
    let rows = rows.filter(|(of, _)| of.is_empty() || *of == subcommand);
    rows.flat_map(|(_, options)| *options).any(|option| {
        let is_letter = option.len() == 2 && !word.starts_with("--");
        name == *option || is_abbreviated(option, name) || is_letter && word.starts_with(option)
    })
}

/// Adds the values of an option: the next word, or the text that is attached to the option.
fn option_values(option: &str, words: &[Word], launches: &mut Launches) {
    let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
    for (at, word) in words.iter().map(Word::as_str).enumerate() {
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
            words.get(at + 1).map_or("", Word::as_str)
        } else {
            attached
        };
        // In `core.pager=CMD` or `exec=CMD`, the command comes after the `=`.
        if let Some((_, inner)) = value.split_once('=') {
            launches.line(without_mark(inner), false);
        }
        // `ssh -o` also takes a space between the name and the command.
        if option == "-o"
            && let Some((_, inner)) = value.split_once(' ')
        {
            launches.line(inner, false);
        }
        launches.line(value, false);
    }
}

/// Adds the command that starts with these words and ends at `;` or `+`.
fn command_at(words: &[Word], launches: &mut Launches) {
    // `+` ends a command only after `{}`.
    let before = std::iter::once(None).chain(words.iter().map(Some));
    let mut pairs = before.zip(words);
    let end = pairs.position(|(before, word)| {
        let is_after_file = before.is_some_and(|before| before.as_str() == "{}");
        word.as_str() == ";" || word.as_str() == "+" && is_after_file
    });
    let end = end.unwrap_or(words.len());
    let words = words.get(..end).unwrap_or_default();
    let is_option = |word: &&Word| word.as_str().starts_with('-');
    let skipped = words.iter().take_while(is_option).count();
    let words = words.get(skipped..).unwrap_or_default();
    launches.words(words, true);
    // `git bisect run` and `git submodule foreach` also take a line.
    if words.len() == 1 {
        launches.joined(words, false);
    }
}

/// Returns whether a word is a long option or an abbreviation of it, which many programs accept.
fn is_abbreviated(option: &str, word: &str) -> bool {
    word.len() > "--x".len() && word.starts_with("--") && option.starts_with(word)
}

fn without_mark(line: &str) -> &str {
    line.strip_prefix('!').unwrap_or(line)
}

/// Returns whether git runs the value of a setting.
fn runs_value(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = [
        "editor",
        "pager",
        "external",
        "fsmonitor",
        "clean",
        "smudge",
        "process",
        "textconv",
        "program",
        "command",
        "askpass",
        "cmd",
        "driver",
        "helper",
        "uploadpack",
        "receivepack",
        "proxy",
    ];
    ends.iter().any(|end| name.ends_with(end)) || name.starts_with("pager.")
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
