//! How programs spell their options: one table, for rules that name options.

/// The options of a program, or of a subcommand of it.
#[derive(Debug)]
pub(crate) struct Row {
    /// The program, and its subcommand.
    pub(crate) command: &'static [&'static str],
    /// Spellings that mean the same. The first one stands for all of them.
    pub(crate) same: &'static [&'static [&'static str]],
    /// Options whose value is the rest of their word or the next word.
    pub(crate) valued: &'static [&'static str],
    /// Letters whose value is the rest of their word, if there is any.
    pub(crate) attached: &'static [&'static str],
    /// Options that stand for several others.
    pub(crate) combined: &'static [(&'static str, &'static [&'static str])],
    /// Whether a word with one dash is one option, as in `find -delete`.
    pub(crate) has_words: bool,
    /// Whether the first word that is not an option is a subcommand.
    pub(crate) has_subcommands: bool,
    /// Whether the words after the first one that is not an option belong to what runs, as in `node FILE -e`.
    pub(crate) stops: bool,
}

const fn row(command: &'static [&'static str], same: &'static [&'static [&'static str]]) -> Row {
    Row {
        command,
        same,
        valued: &[],
        attached: &[],
        combined: &[],
        has_words: false,
        has_subcommands: false,
        stops: false,
    }
}

impl Row {
    const fn valued(self, valued: &'static [&'static str]) -> Self {
        Self { valued, ..self }
    }

    const fn attached(self, attached: &'static [&'static str]) -> Self {
        Self { attached, ..self }
    }

    const fn combined(self, combined: &'static [(&'static str, &'static [&'static str])]) -> Self {
        Self { combined, ..self }
    }

    const fn with_words(self) -> Self {
        Self {
            has_words: true,
            ..self
        }
    }

    const fn stops(self) -> Self {
        Self {
            stops: true,
            ..self
        }
    }

    const fn with_subcommands(self) -> Self {
        Self {
            has_subcommands: true,
            ..self
        }
    }
}

const RECURSIVE: &[&str] = &["--recursive", "-r", "-R"];
const FORCE: &[&str] = &["--force", "-f"];
const DRY_RUN: &[&str] = &["--dry-run", "-n"];
const ALL: &[&str] = &["--all", "-a"];
const YES: &[&str] = &["--yes", "-y", "--assume-yes"];
const DELETE: &[&str] = &["--delete", "-d"];
const NAMESPACE: &[&str] = &["--namespace", "-n"];

/// Other names of the same program.
const PROGRAMS: &[(&str, &str)] = &[
    ("gtar", "tar"),
    ("bsdtar", "tar"),
    ("gsed", "sed"),
    ("gfind", "find"),
    ("grm", "rm"),
];

/// Programs with the options of another one.
const RELATED: &[(&str, &str)] = &[
    ("tofu", "terraform"),
    ("podman", "docker"),
    ("nerdctl", "docker"),
];

/// Other names of the same subcommand, by program. A word that is left out (`""`) is followed by the real subcommand.
pub(crate) const SUBCOMMANDS: &[(&str, &str, &str)] = &[
    ("docker", "container", ""),
    ("npm", "run-script", "run"),
    ("npm", "rum", "run"),
    ("npm", "urn", "run"),
    ("npm", "in", "install"),
    ("npm", "ins", "install"),
    ("npm", "inst", "install"),
    ("npm", "add", "install"),
    ("npm", "i", "install"),
    ("npm", "r", "uninstall"),
    ("npm", "remove", "uninstall"),
    ("npm", "rm", "uninstall"),
    ("npm", "un", "uninstall"),
    ("npm", "unlink", "uninstall"),
    ("helm", "del", "uninstall"),
    ("helm", "delete", "uninstall"),
    ("helm", "un", "uninstall"),
    ("cargo", "b", "build"),
    ("cargo", "r", "run"),
    ("cargo", "t", "test"),
    ("cargo", "rm", "remove"),
];

/// The rows. A row of a subcommand comes in addition to the row of its program.
#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    row(&["rm"], &[RECURSIVE, FORCE, &["--dir", "-d"], &["--verbose", "-v"], &["--one-file-system"],
        &["--no-preserve-root"], &["--interactive"]]),
    row(&["mv"], &[FORCE, &["--no-clobber", "-n"], &["--interactive", "-i"]]).valued(&["-t",
        "--target-directory", "-S", "--suffix"]),
    row(&["cp"], &[RECURSIVE, FORCE, &["--archive", "-a"], &["--no-clobber", "-n"]]).valued(&["-t",
        "--target-directory", "-S", "--suffix"]).combined(&[("-a", &["--archive", "--recursive"])]),
    row(&["ln"], &[FORCE, &["--symbolic", "-s"]]).valued(&["-t", "-S", "--target-directory"]),
    row(&["chmod"], &[&["--recursive", "-R"]]).valued(&["--reference"]),
    row(&["chown"], &[&["--recursive", "-R"]]).valued(&["--reference", "--from"]),
    row(&["chgrp"], &[&["--recursive", "-R"]]).valued(&["--reference"]),
    row(&["dd"], &[]).with_words(),
    row(&["find"], &[]).with_words(),
    row(&["shred"], &[&["--remove", "-u"], &["--zero", "-z"]]).valued(&["-n", "-s", "--iterations", "--size"]),
    row(&["truncate"], &[&["--size", "-s"]]).valued(&["--size", "-s", "-r", "--reference"]),
    row(&["tee"], &[&["--append", "-a"]]),
    row(&["sed"], &[&["--in-place", "-i"], &["--expression", "-e"], &["--quiet", "-n", "--silent"],
        &["--regexp-extended", "-E", "-r"]]).valued(&["-e", "--expression", "-f", "--file",
        "-l"]).attached(&["-i"]),
    row(&["tar"], &[&["--extract", "-x", "--get"], &["--create", "-c"], &["--file", "-f"], &["--directory",
        "-C"], &["--absolute-names", "-P"]]).valued(&["-f", "-C", "--file", "--directory"]),
    row(&["rsync"], &[&["--archive", "-a"], &["--recursive", "-r"], DRY_RUN, &["--rsh", "-e"]]).valued(&["-e",
        "--rsh", "-f", "--filter", "--exclude", "--include"]),
    row(&["curl"], &[&["--request", "-X"], &["--data", "-d", "--data-ascii"], &["--form", "-F"], &["--output",
        "-o"], &["--remote-name", "-O"], &["--upload-file", "-T"], &["--insecure", "-k"], &["--location", "-L"],
        &["--silent", "-s"], &["--user", "-u"], &["--header", "-H"], &["--config", "-K"]]).valued(&["-A", "-C",
        "-D", "-E", "-F", "-H", "-K", "-P", "-Q", "-T", "-U", "-X", "-Y", "-b", "-c", "-d", "-e", "-m", "-o", "-r",
        "-t", "-u", "-w", "-x", "-y", "-z", "--config", "--data", "--data-binary", "--data-raw", "--data-urlencode",
        "--form", "--header", "--json", "--output", "--request", "--upload-file", "--url", "--user",
        "--user-agent"]),
    row(&["wget"], &[&["--output-document", "-O"], &["--recursive", "-r"], &["--quiet", "-q"], &["--input-file",
        "-i"], &["--directory-prefix", "-P"], &["--no-clobber", "-nc"], &["--no-verbose", "-nv"], &["--no-parent", "-np"], &["--no-directories", "-nd"]]).valued(&["-A", "-B", "-D", "-I", "-O", "-P", "-Q", "-R", "-T", "-U",
        "-X", "-a", "-e", "-i", "-l", "-o", "-t", "-w", "--directory-prefix", "--header", "--input-file",
        "--method", "--output-document", "--post-data", "--post-file"]),
    row(&["git"], &[&["--no-pager", "-P"], &["--paginate", "-p"], &["--bare"], &["--literal-pathspecs"],
        &["--no-replace-objects"], &["--no-optional-locks"]]).valued(&["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env",
        "--super-prefix"]).with_subcommands(),
    row(&["git", "add"], &[FORCE, DRY_RUN, &["--all", "-A", "--no-ignore-removal"], &["--update", "-u"]]),
    row(&["git", "branch"], &[FORCE, DELETE, &["--move", "-m"], &["--copy", "-c"], &["--all", "-a"],
        &["--remotes", "-r"]]).valued(&["-u", "--set-upstream-to"]).combined(&[("-D", &["--delete", "--force"]),
        ("-M", &["--move", "--force"]), ("-C", &["--copy", "--force"])]),
    row(&["git", "checkout"], &[FORCE, &["--patch", "-p"]]).valued(&["-b", "-B", "--orphan", "--conflict",
        "--pathspec-from-file"]),
    row(&["git", "clean"], &[FORCE, DRY_RUN, &["--exclude", "-e"], &["--interactive", "-i"]]).valued(&["-e",
        "--exclude"]),
    row(&["git", "commit"], &[ALL, &["--message", "-m"], &["--no-verify", "-n"], &["--file", "-F"],
        &["--signoff", "-s"], &["--gpg-sign", "-S"], &["--amend"]]).valued(&["-m", "-F", "-C", "-c", "-t",
        "--message", "--file", "--author", "--date", "--template", "--fixup", "--squash", "--reuse-message",
        "--trailer"]).attached(&["-S", "-u"]),
    row(&["git", "fetch"], &[FORCE, ALL, &["--prune", "-p"]]).valued(&["--upload-pack", "--depth"]),
    row(&["git", "merge"], &[&["--no-verify"]]).valued(&["-m", "-s", "-X", "-F"]),
    row(&["git", "pull"], &[FORCE, &["--rebase", "-r"]]).valued(&["-s", "-X", "--upload-pack"]),
    row(&["git", "push"], &[FORCE, DELETE, DRY_RUN, &["--set-upstream", "-u"], &["--push-option", "-o"],
        &["--force-with-lease"], &["--force-if-includes"]]).valued(&["-o", "--push-option", "--repo",
        "--receive-pack", "--exec"]),
    row(&["git", "rebase"], &[&["--interactive", "-i"], &["--exec", "-x"]]).valued(&["-x", "--exec", "--onto",
        "-s", "-X"]),
    row(&["git", "restore"], &[&["--staged", "-S"], &["--worktree", "-W"], &["--source", "-s"]]).valued(&["-s",
        "--source"]),
    row(&["git", "rm"], &[FORCE, DRY_RUN, &["--recursive", "-r"], &["--cached"]]),
    row(&["git", "switch"], &[&["--discard-changes", "-f", "--force"], &["--create", "-c"], &["--force-create",
        "-C"]]).valued(&["-c", "-C", "--create", "--force-create", "--orphan"]),
    row(&["git", "tag"], &[FORCE, DELETE, &["--list", "-l"], &["--message", "-m"]]).valued(&["-m", "-F", "-u",
        "--message", "--file"]),
    row(&["git", "worktree"], &[FORCE]),
    row(&["docker"], &[FORCE, ALL, &["--volumes", "-v"], &["--host", "-H"], &["--quiet", "-q"],
        &["--debug", "-D"], &["--tls"], &["--tlsverify"]]).valued(&["-H",
        "--host", "-c", "--context", "--config", "-l", "--log-level"]).with_subcommands(),
    row(&["docker", "compose"], &[&["--file", "-f"], &["--volumes", "-v"]]).valued(&["-f", "--file", "-p",
        "--project-name", "--profile", "--env-file"]),
    row(&["docker", "run"], RUN).valued(RUN_VALUED).stops(),
    row(&["docker", "create"], RUN).valued(RUN_VALUED).stops(),
    row(&["docker", "exec"], &[&["--user", "-u"], &["--workdir", "-w"], &["--detach", "-d"]]).valued(&["-u",
        "--user", "-w", "--workdir", "-e", "--env"]).stops(),
    row(&["kubectl"], &[NAMESPACE, &["--filename", "-f"], &["--all-namespaces", "-A"], &["--selector", "-l"],
        &["--output", "-o"]]).valued(&["-n", "-f", "-l", "-o", "-s", "-c", "--namespace", "--filename",
        "--selector", "--output", "--context", "--kubeconfig", "--cluster", "--user", "--server", "--token", "--as",
        "--grace-period"]).with_subcommands(),
    row(&["helm"], &[NAMESPACE]).valued(&["-n", "--namespace", "--kube-context",
        "--kubeconfig"]).with_subcommands(),
    row(&["terraform"], &[]).with_words().with_subcommands(),
    row(&["aws"], &[]).valued(&["--profile", "--region", "--endpoint-url", "--output",
        "--query"]).with_subcommands(),
    row(&["gcloud"], &[&["--quiet", "-q"]]).valued(&["--project", "--account", "--format", "--zone",
        "--region"]).with_subcommands(),
    row(&["az"], &[YES, &["--name", "-n"], &["--resource-group", "-g"]]).valued(&["-n", "--name", "-g",
        "--resource-group", "-o", "--output"]).with_subcommands(),
    row(&["gh"], &[&["--repo", "-R"], &["--method", "-X"]]).valued(&["-R", "--repo", "-X", "--method", "-f",
        "-F", "-H"]).with_subcommands(),
    row(&["npm"], &[&["--global", "-g", "--location=global"], FORCE, YES, &["--workspace",
        "-w"], &["--silent", "-s"], &["--quiet", "-q"]]).valued(&["-w", "--workspace", "--prefix", "--registry", "--tag", "--otp"]).with_subcommands(),
    row(&["pnpm"], &[&["--global", "-g"], FORCE]).valued(&["-C", "--dir", "--filter", "-F"]).with_subcommands(),
    row(&["yarn"], &[]).valued(&["--cwd"]).with_subcommands(),
    row(&["pip"], &[YES, &["--requirement", "-r"], &["--upgrade", "-U"], &["--editable", "-e"], &["--index-url",
        "-i", "--pypi-url"], &["--target", "-t"]]).valued(&["-r", "-e", "-i", "-t", "-c", "-d", "--requirement",
        "--index-url", "--target"]).with_subcommands(),
    row(&["cargo"], &[&["--package", "-p"], &["--features", "-F"], &["--release", "-r"]]).valued(&["-p",
        "--package", "-F", "--features", "-j", "--jobs", "-Z", "-C", "--config"]).with_subcommands(),
    row(&["apt"], &[YES, &["--quiet", "-q"]]).valued(&["-o", "-t"]).with_subcommands(),
    row(&["apt-get"], &[YES, &["--quiet", "-q"]]).valued(&["-o", "-t"]).with_subcommands(),
    row(&["brew"], &[FORCE]).with_subcommands(),
    row(&["systemctl"], &[FORCE]).valued(&["-H", "-M", "-n", "-o", "-p", "-s", "-t", "--host", "--machine",
        "--type"]).with_subcommands(),
    row(&["kill"], &[&["-KILL", "-9", "-SIGKILL"], &["-TERM", "-15", "-SIGTERM"], &["--signal",
        "-s"]]).valued(&["-s", "--signal", "-n"]),
    row(&["pkill"], &[&["-KILL", "-9", "-SIGKILL"], &["-TERM", "-15", "-SIGTERM"], &["--full",
        "-f"]]).valued(&["-u", "-U", "-g", "-G", "-P", "-t"]),
    row(&["killall"], &[&["-KILL", "-9", "-SIGKILL"], &["--signal", "-s"]]).valued(&["-s", "-u"]),
    row(&["node"], &[&["--eval", "-e"], &["--print", "-p"]]).valued(&["-e", "-p", "-r", "--eval", "--print"]).stops(),
    row(&["python"], &[]).valued(&["-c", "-m", "-W", "-X"]).stops(),
    row(&["perl"], &[]).valued(&["-e", "-E", "-I", "-M"]).stops(),
    row(&["ruby"], &[]).valued(&["-e", "-I", "-r"]).stops(),
    row(&["bash"], &[]).valued(&["-c", "-o", "-O"]).stops(),
    row(&["sh"], &[]).valued(&["-c", "-o"]).stops(),
    row(&["go"], &[]).with_words().with_subcommands(),
    row(&["java"], &[]).with_words(),
    row(&["ffmpeg"], &[]).with_words(),
    row(&["crontab"], &[]).valued(&["-u"]),
    row(&["psql"], &[&["--command", "-c"], &["--file", "-f"]]).valued(&["-c", "-f", "-d", "-h", "-p", "-U",
        "-v", "-o", "--command", "--file"]),
    row(&["mysql"], &[&["--execute", "-e"]]).valued(&["-e", "-h", "-P", "-u", "-D", "--execute", "--host",
        "--user", "--database"]),

];

#[rustfmt::skip]
const RUN: &[&[&str]] = &[
    &["--volume", "-v"],
    &["--env", "-e"],
    &["--publish", "-p"],
    &["--detach", "-d"],
    &["--user", "-u"],
    &["--workdir", "-w"],
    &["--interactive", "-i"],
    &["--tty", "-t"],
    &["--network", "--net"],
];

#[rustfmt::skip]
const RUN_VALUED: &[&str] = &[
    "-v",
    "-e",
    "-p",
    "-u",
    "-w",
    "-h",
    "-l",
    "-m",
    "--volume",
    "--env",
    "--publish",
    "--user",
    "--workdir",
    "--name",
    "--network",
    "--net",
    "--pid",
    "--mount",
    "--entrypoint",
    "--cap-add",
    "--device",
    "--platform",
    "--hostname",
    "--label",
    "--memory",
    "--cpus",
    "--env-file",
    "--security-opt",
];

/// Returns the name that stands for a program and its other names.
pub(crate) fn program(name: &str) -> &str {
    // `pip3.11` is a `pip`.
    for program in ["pip", "python"] {
        let version = name.strip_prefix(program);
        if version.is_some_and(|it| it.chars().all(|c| c.is_ascii_digit() || c == '.')) {
            return program;
        }
    }
    let found = PROGRAMS.iter().find(|(other, _)| *other == name);
    found.map_or(name, |(_, program)| program)
}

/// Returns the program whose options a program has.
pub(crate) fn related(name: &str) -> &str {
    let found = RELATED.iter().find(|(other, _)| *other == name);
    found.map_or(name, |(_, program)| program)
}

/// Returns the rows of a program: its own row, and the row of the subcommand.
pub(crate) fn rows(program: &str, subcommand: Option<&str>) -> [Option<&'static Row>; 2] {
    let program = related(program);
    let own = ROWS.iter().find(|row| row.command == [program]);
    let inner = subcommand.and_then(|subcommand| {
        let mut rows = ROWS.iter();
        rows.find(|row| row.command == [program, subcommand])
    });
    [own, inner]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sound() {
        let mut seen = std::collections::BTreeSet::new();
        for row in ROWS {
            assert!(seen.insert(row.command), "{:?} twice", row.command);
            let [program] = row.command else {
                let [program, _] = row.command else {
                    panic!("{:?}", row.command)
                };
                let own = ROWS.iter().find(|own| own.command == [*program]);
                assert!(
                    own.is_some_and(|own| own.has_subcommands),
                    "{:?}",
                    row.command
                );
                continue;
            };
            assert_eq!(super::program(program), *program);
        }
        for row in ROWS {
            let spellings = row.same.iter().flat_map(|same| *same);
            let mut all: Vec<_> = spellings.chain(row.valued).chain(row.attached).collect();
            assert!(
                all.iter().all(|option| option.starts_with('-')),
                "{:?}",
                row.command
            );
            all = row.same.iter().flat_map(|same| *same).collect();
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count, "{:?} has an option twice", row.command);
        }
    }
}
