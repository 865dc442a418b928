//! Programs that run other commands, and where the commands are among their arguments.

/// A program that runs the command after its own options and operands.
pub(crate) struct Wrapper {
    pub(crate) name: &'static str,
    /// The letters of options without a value.
    pub(crate) flags: &'static str,
    /// Options whose value is the next word.
    pub(crate) valued: &'static [&'static str],
    /// How many words there are between the options and the command.
    pub(crate) operands: usize,
    /// Whether these words may be left out.
    pub(crate) is_optional: bool,
}

pub(crate) const fn wrapper(name: &'static str) -> Wrapper {
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

pub(crate) const WRAPPERS: &[Wrapper] = &[
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
pub(crate) const SHELLS: [&str; 17] = [
    "ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "osh", "pwsh", "rbash",
    "sh", "tcsh", "xonsh", "yash", "zsh",
];

/// Wrappers that join the words of their command into one line for a shell.
pub(crate) const JOINING: [&str; 3] = ["parallel", "ssh", "watch"];

/// Commands that set variables, some of which contain commands.
pub(crate) const SETTERS: [&str; 6] = ["declare", "env", "export", "local", "readonly", "typeset"];

/// Programs that run the words or lines that they read.
pub(crate) const FED: [&str; 2] = ["parallel", "xargs"];

/// Options whose value is a command, by program and subcommand.
pub(crate) const COMMAND_OPTIONS: &[(&[&str], &[&str])] = &[
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
pub(crate) const COMMAND_WORDS: &[(&[&str], &[&str])] = &[
    (&["fd"], &["-X", "-x", "--exec", "--exec-batch"]),
    (&["fdfind"], &["-X", "-x", "--exec", "--exec-batch"]),
    (&["find"], &["-exec", "-execdir", "-ok", "-okdir"]),
    (&["gdb"], &["--args"]),
    (&["git", "bisect"], &["run"]),
    (&["git", "submodule"], &["foreach"]),
];
