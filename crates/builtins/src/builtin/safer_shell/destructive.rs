//! The commands that can destroy something.

use tenterhook_shell::is_shell;

/// How much a destructive command can damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Radius {
    Low,
    Medium,
    High,
}

impl Radius {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A command that can destroy something.
struct Row {
    /// The programs, and the subcommand after them.
    programs: &'static [&'static str],
    subcommand: &'static str,
    /// Words of which at least one must follow. Without words, the command itself is destructive.
    with: &'static [&'static str],
    category: &'static str,
    radius: Radius,
}

/// A destructive command in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The command, with the word that makes it destructive.
    pub(super) shown: String,
    pub(super) category: &'static str,
    pub(super) radius: Radius,
}

const fn row(program: &'static [&'static str], category: &'static str, radius: Radius) -> Row {
    Row {
        programs: program,
        subcommand: "",
        with: &[],
        category,
        radius,
    }
}

impl Row {
    const fn sub(self, subcommand: &'static str) -> Self {
        Self { subcommand, ..self }
    }

    const fn with(self, with: &'static [&'static str]) -> Self {
        Self { with, ..self }
    }
}

const RECURSIVE: &[&str] = &["-r", "-R", "--recursive"];
const CONTAINERS: &[&str] = &["docker", "podman", "nerdctl"];
const GIT: &[&str] = &["git"];

const ROWS: &[Row] = &[
    row(&["rm"], "fs-delete", Radius::High).with(RECURSIVE),
    row(&["rm"], "fs-delete", Radius::Medium).with(&["-f", "--force"]),
    row(&["rm", "rmdir", "unlink"], "fs-delete", Radius::Low),
    row(&["find"], "fs-delete", Radius::High).with(&[
        "-delete", "-exec", "-execdir", "-ok", "-okdir", "-fls", "-fprint", "-fprint0", "-fprintf",
    ]),
    row(&["shred"], "fs-secure-delete", Radius::High),
    row(&["truncate"], "fs-overwrite", Radius::Medium),
    row(
        &["dd", "mkfs", "mke2fs", "wipefs", "fdisk", "parted"],
        "block-device",
        Radius::High,
    ),
    row(&["rsync"], "fs-modify", Radius::High).with(&[
        "--delete",
        "--delete-after",
        "--delete-before",
        "--delete-delay",
        "--delete-during",
        "--delete-excluded",
        "--remove-source-files",
    ]),
    row(&["mv", "cp"], "fs-modify", Radius::Medium).with(&["-f", "--force"]),
    row(&["ln"], "fs-modify", Radius::Medium).with(&["-f", "--force"]),
    // `chmod -r` removes a permission.
    row(
        &["chmod", "chown", "chgrp"],
        "fs-permissions",
        Radius::Medium,
    )
    .with(&["-R", "--recursive"]),
    row(
        &["sudo", "doas", "su", "pkexec", "runuser"],
        "privilege",
        Radius::High,
    ),
    row(&["kill", "killall", "pkill"], "process", Radius::Medium),
    row(
        &["shutdown", "reboot", "halt", "poweroff"],
        "system",
        Radius::High,
    ),
    row(&["systemctl"], "system", Radius::Medium).with(&[
        "stop", "disable", "mask", "kill", "reboot", "poweroff", "halt",
    ]),
    row(&["sed"], "fs-modify", Radius::Medium).with(&["-i", "--in-place"]),
    row(&["tee"], "fs-overwrite", Radius::Low),
    row(&["crontab"], "system", Radius::Medium).with(&["-r"]),
    row(&["eval"], "code", Radius::High),
    row(GIT, "git-history", Radius::High).sub("push").with(&[
        "--force",
        "-f",
        "--force-with-lease",
        "--delete",
        "-d",
        "--mirror",
        "--prune",
        // Overwrites, or deletes, a branch of the other side.
        "+*",
        ":*",
    ]),
    row(GIT, "git-discard", Radius::High)
        .sub("reset")
        .with(&["--hard", "--merge", "--keep"]),
    row(GIT, "git-history", Radius::Medium)
        .sub("branch")
        .with(&["-D", "-d", "--delete", "-M", "-C", "-f", "--force"]),
    row(GIT, "git-history", Radius::Medium)
        .sub("tag")
        .with(&["-d", "--delete", "-f", "--force"]),
    row(GIT, "git-history", Radius::High)
        .sub("reflog")
        .with(&["expire", "delete"]),
    row(GIT, "git-discard", Radius::High)
        .sub("checkout")
        .with(&["--", ".", "-f", "--force"]),
    row(GIT, "git-discard", Radius::High).sub("switch").with(&[
        "-f",
        "--force",
        "--discard-changes",
    ]),
    row(GIT, "git-discard", Radius::High)
        .sub("stash")
        .with(&["drop", "clear"]),
    row(GIT, "git-discard", Radius::Medium)
        .sub("worktree")
        .with(&["remove"]),
    row(GIT, "git-discard", Radius::High).sub("clean"),
    row(GIT, "git-discard", Radius::High).sub("restore"),
    row(GIT, "git-discard", Radius::Medium).sub("rm"),
    row(GIT, "git-history", Radius::High).sub("filter-branch"),
    row(GIT, "git-history", Radius::High).sub("update-ref"),
    row(CONTAINERS, "dk-volume-del", Radius::High)
        .sub("volume")
        .with(&["rm", "remove", "prune"]),
    row(CONTAINERS, "dk-multi-del", Radius::High)
        .sub("system")
        .with(&["prune"]),
    row(CONTAINERS, "dk-compose", Radius::Medium)
        .sub("compose")
        .with(&["down", "rm", "kill"]),
    row(
        &["docker-compose", "podman-compose"],
        "dk-compose",
        Radius::Medium,
    )
    .with(&["down", "rm", "kill"]),
    row(CONTAINERS, "dk-image-del", Radius::Medium).sub("rmi"),
    row(CONTAINERS, "dk-image-del", Radius::Medium)
        .sub("image")
        .with(&["rm", "remove", "prune"]),
    row(CONTAINERS, "dk-network-del", Radius::Medium)
        .sub("network")
        .with(&["rm", "remove", "prune"]),
    row(CONTAINERS, "dk-container-del", Radius::Medium).with(&["rm", "rmi", "prune", "kill"]),
    row(&["kubectl"], "k8s-delete", Radius::High).with(&["delete", "drain", "replace"]),
    row(&["helm"], "k8s-delete", Radius::High).with(&["uninstall", "delete"]),
    row(&["terraform", "tofu"], "infrastructure", Radius::High).with(&["apply", "destroy"]),
    row(&["npm", "pnpm", "yarn"], "publish", Radius::High).with(&["publish", "unpublish"]),
    row(&["cargo"], "publish", Radius::High).with(&["publish", "yank"]),
    row(&["gh"], "remote-delete", Radius::High).with(&["delete"]),
    row(&["dropdb"], "database", Radius::High),
];

/// Programs other than shells that run the text that they read, or get as an argument. `.` and `source` belong to the
/// shell.
const INTERPRETERS: [&str; 9] = [
    ".", "lua", "node", "perl", "php", "python", "ruby", "source", "tclsh",
];

/// Reports whether a program runs text, also under a name with a version such as `python3.12`. Some file systems ignore
/// case.
pub(super) fn is_interpreter(program: &str) -> bool {
    let program = program.to_ascii_lowercase();
    let program = program.strip_suffix(".exe").unwrap_or(&program);
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    [program, name]
        .iter()
        .any(|name| is_shell(name) || INTERPRETERS.contains(name))
}

/// Returns the most destructive row that matches the words of a command.
pub(super) fn find_destructive(words: &[&str]) -> Option<Found> {
    let (program, arguments) = words.split_first()?;
    let matching = ROWS.iter().filter_map(|row| {
        let mut programs = row.programs.iter();
        let name = programs.find(|name| is_program(program, name))?;
        let rest = row.arguments(arguments)?;
        let decisive = match row.with {
            [] => "",
            with => rest.iter().find(|word| is_one_of(with, word)).copied()?,
        };
        // The value of an option may be a secret.
        let decisive = decisive.split('=').next().unwrap_or_default();
        let shown = [*name, row.subcommand, decisive];
        let shown = shown.into_iter().filter(|word| !word.is_empty());
        Some(Found {
            shown: shown.collect::<Vec<_>>().join(" "),
            category: row.category,
            radius: row.radius,
        })
    });
    // Of equal rows, the first counts, because it says more.
    matching.reduce(|best, found| {
        if found.radius > best.radius {
            found
        } else {
            best
        }
    })
}

impl Row {
    /// Returns the words after the subcommand; `None` if the command has another one.
    fn arguments<'a>(&self, words: &'a [&'a str]) -> Option<&'a [&'a str]> {
        if self.subcommand.is_empty() {
            return Some(words);
        }
        let places = subcommand_places(words).into_iter();
        let mut places = places.filter(|at| words.get(*at) == Some(&self.subcommand));
        places.next().and_then(|at| words.get(at + 1..))
    }
}

/// Returns where the subcommand may be. The options before it may or may not take the next word as their value, so
/// several places are possible.
fn subcommand_places(words: &[&str]) -> Vec<usize> {
    let mut places = Vec::new();
    // Whether the word may be an option or the subcommand, for this word and the next one.
    let (mut is_open, mut is_next_open) = (true, false);
    for (at, word) in words.iter().enumerate() {
        let mut is_after_next_open = false;
        if is_open && word.starts_with('-') {
            is_next_open = true;
            is_after_next_open = !word.contains('=');
        } else if is_open {
            places.push(at);
        }
        if !is_next_open && !is_after_next_open {
            break;
        }
        (is_open, is_next_open) = (is_next_open, is_after_next_open);
    }
    places
}

/// Reports whether a word names a program, or a program of its family, such as `mkfs.ext4` for `mkfs`. Some file
/// systems ignore case.
fn is_program(word: &str, name: &str) -> bool {
    let Some((start, rest)) = word.split_at_checked(name.len()) else {
        return false;
    };
    start.eq_ignore_ascii_case(name)
        && (rest.is_empty()
            || rest.eq_ignore_ascii_case(".exe")
            || rest.starts_with('.') && name == "mkfs")
}

/// Reports whether a word is one of the deciding ones: alone, with a value, abbreviated, or in a group of letters.
fn is_one_of(known: &[&str], word: &str) -> bool {
    known.iter().any(|known| {
        let letter = known
            .strip_prefix('-')
            .filter(|letter| letter.len() == 1 && *letter != "-");
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        let is_abbreviated =
            name.len() > "--".len() && known.starts_with("--") && known.starts_with(name);
        let is_prefixed = known
            .strip_suffix('*')
            .is_some_and(|prefix| word.starts_with(prefix));
        name == *known
            || is_prefixed
            || is_abbreviated
            || letter.is_some_and(|letter| letters.is_some_and(|letters| letters.contains(letter)))
    })
}
