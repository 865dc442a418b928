//! The commands that can destroy something.

use std::sync::LazyLock;

use tenterhook_shell::{CommandRule, LineCommand, is_shell};

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

use Radius::{High, Low, Medium};

/// Commands that can destroy something, as rules of which one must match.
struct Row {
    rules: &'static [&'static str],
    /// Rules for the forms of these commands that destroy nothing.
    unless: &'static [&'static str],
    category: &'static str,
    radius: Radius,
}

/// A destructive command in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The rule that names it.
    pub(super) shown: &'static str,
    pub(super) category: &'static str,
    pub(super) radius: Radius,
}

const fn row(rules: &'static [&'static str], category: &'static str, radius: Radius) -> Row {
    Row {
        rules,
        unless: &[],
        category,
        radius,
    }
}

impl Row {
    const fn unless(self, unless: &'static [&'static str]) -> Self {
        Self { unless, ..self }
    }
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(&["rm -r"], "fs-delete", High),
    row(&["rm -f"], "fs-delete", Medium),
    row(&["rm", "rmdir", "unlink"], "fs-delete", Low),
    row(
        &[
            "find -delete", "find -exec", "find -execdir", "find -ok", "find -okdir", "find -fls", "find -fprint",
            "find -fprint0", "find -fprintf",
        ],
        "fs-delete",
        High,
    ),
    row(&["shred"], "fs-secure-delete", High),
    row(&["truncate"], "fs-overwrite", Medium),
    row(&["dd", "mkfs*", "mke2fs", "wipefs", "fdisk", "parted"], "block-device", High)
        .unless(&["fdisk -l", "fdisk --list", "parted -l", "parted --list", "wipefs -n", "wipefs --no-act"]),
    row(&["rsync --delete*", "rsync --remove-source-files"], "fs-modify", High).unless(&["rsync -n"]),
    row(&["mv -f", "cp -f", "ln -f"], "fs-modify", Medium),
    // `chmod -r` removes a permission.
    row(&["chmod -R", "chown -R", "chgrp -R"], "fs-permissions", Medium),
    row(&["sudo", "doas", "su", "pkexec", "runuser"], "privilege", High).unless(&["sudo -l", "sudo --list"]),
    row(&["kill", "killall", "pkill"], "process", Medium).unless(&["kill -0", "kill -l", "killall -l"]),
    row(&["shutdown", "reboot", "halt", "poweroff"], "system", High),
    row(
        &[
            "systemctl stop", "systemctl disable", "systemctl mask", "systemctl kill", "systemctl reboot",
            "systemctl poweroff", "systemctl halt",
        ],
        "system",
        Medium,
    ),
    row(&["sed -i"], "fs-modify", Medium),
    row(&["tee"], "fs-overwrite", Low).unless(&["tee -a"]),
    row(&["crontab -r"], "system", Medium),
    row(&["eval"], "code", High),
    row(
        &[
            "git push --force", "git push --delete", "git push --mirror", "git push --prune",
            // Overwrites, or deletes, a branch of the other side.
            "git push +*", "git push :*",
        ],
        "git-history",
        High,
    )
    .unless(&["git push --dry-run"]),
    row(&["git reset --hard", "git reset --merge", "git reset --keep"], "git-discard", High),
    row(&["git branch --delete", "git branch -D", "git branch -M", "git branch -C", "git branch --force"], "git-history", Medium),
    row(&["git tag --delete", "git tag --force"], "git-history", Medium),
    row(&["git reflog expire", "git reflog delete"], "git-history", High).unless(&["git reflog --dry-run"]),
    row(&["git checkout --", "git checkout .", "git checkout --force"], "git-discard", High),
    row(&["git switch --discard-changes"], "git-discard", High),
    row(&["git stash drop", "git stash clear"], "git-discard", High),
    row(&["git worktree remove"], "git-discard", Medium),
    row(&["git clean"], "git-discard", High).unless(&["git clean --dry-run"]),
    row(&["git restore"], "git-discard", High).unless(&["git restore --staged"]),
    row(&["git restore --staged --worktree"], "git-discard", High),
    row(&["git rm"], "git-discard", Medium).unless(&["git rm --cached", "git rm --dry-run"]),
    row(&["git filter-branch", "git update-ref"], "git-history", High),
    row(CONTAINER_VOLUMES, "dk-volume-del", High),
    row(&["docker system prune", "podman system prune", "nerdctl system prune"], "dk-multi-del", High),
    row(COMPOSE, "dk-compose", Medium),
    row(CONTAINER_IMAGES, "dk-image-del", Medium),
    row(CONTAINER_NETWORKS, "dk-network-del", Medium),
    row(CONTAINERS, "dk-container-del", Medium),
    row(&["kubectl delete", "kubectl drain", "kubectl replace"], "k8s-delete", High)
        .unless(&["kubectl --dry-run=client", "kubectl --dry-run=server"]),
    row(&["helm uninstall"], "k8s-delete", High).unless(&["helm --dry-run"]),
    row(&["terraform apply", "terraform destroy", "tofu apply", "tofu destroy"], "infrastructure", High),
    row(&["npm publish", "npm unpublish", "pnpm publish", "yarn publish", "yarn npm publish"], "publish", High)
        .unless(&["npm --dry-run", "pnpm --dry-run"]),
    row(&["cargo publish", "cargo yank"], "publish", High).unless(&["cargo publish --dry-run", "cargo publish -n"]),
    row(
        &[
            "gh repo delete", "gh release delete", "gh issue delete", "gh secret delete", "gh variable delete",
            "gh run delete", "gh cache delete", "gh gist delete", "gh label delete", "gh ssh-key delete",
        ],
        "remote-delete",
        High,
    ),
    row(&["dropdb"], "database", High),
];

#[rustfmt::skip]
const CONTAINER_VOLUMES: &[&str] = &[
    "docker volume rm", "docker volume remove", "docker volume prune", "podman volume rm", "podman volume prune",
    "nerdctl volume rm", "nerdctl volume prune",
];

#[rustfmt::skip]
const COMPOSE: &[&str] = &[
    "docker compose down", "docker compose rm", "docker compose kill", "podman compose down", "podman compose rm",
    "podman compose kill", "docker-compose down", "docker-compose rm", "docker-compose kill", "podman-compose down",
    "podman-compose rm", "podman-compose kill",
];

#[rustfmt::skip]
const CONTAINER_IMAGES: &[&str] = &[
    "docker rmi", "docker image rm", "docker image remove", "docker image prune", "podman rmi", "podman image rm",
    "podman image prune", "nerdctl rmi", "nerdctl image rm", "nerdctl image prune",
];

#[rustfmt::skip]
const CONTAINER_NETWORKS: &[&str] = &[
    "docker network rm", "docker network remove", "docker network prune", "podman network rm", "podman network prune",
    "nerdctl network rm", "nerdctl network prune",
];

#[rustfmt::skip]
const CONTAINERS: &[&str] = &[
    "docker rm", "docker prune", "docker kill", "docker builder prune", "docker buildx prune", "podman rm",
    "podman prune", "podman kill", "nerdctl rm", "nerdctl prune", "nerdctl kill",
];

/// A row whose rules were read.
struct ReadRow {
    rules: Vec<(&'static str, CommandRule)>,
    unless: Vec<CommandRule>,
    row: &'static Row,
}

static READ_ROWS: LazyLock<Vec<ReadRow>> = LazyLock::new(|| {
    let read = |text: &&'static str| Some((*text, CommandRule::parse(text).ok()?));
    let rows = ROWS.iter().map(|row| ReadRow {
        rules: row.rules.iter().filter_map(read).collect(),
        unless: row
            .unless
            .iter()
            .filter_map(read)
            .map(|(_, rule)| rule)
            .collect(),
        row,
    });
    rows.collect()
});

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

/// Returns the most destructive row that names a command.
pub(super) fn find_destructive(command: &LineCommand) -> Option<Found> {
    if shows_help(command) {
        return None;
    }
    let matching = READ_ROWS.iter().filter_map(|read| {
        let mut rules = read.rules.iter();
        let (shown, _) = rules.find(|(_, rule)| rule.matches_command(command))?;
        let is_harmless = read.unless.iter().any(|rule| rule.matches_command(command));
        (!is_harmless).then_some(Found {
            shown,
            category: read.row.category,
            radius: read.row.radius,
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

/// Reports whether a command only explains itself: its last word is `--help`, and no option comes before it. Some
/// programs take a later `--help` as the name of a file.
fn shows_help(command: &LineCommand) -> bool {
    let Some((last, before)) = command.arguments().split_last() else {
        return false;
    };
    let is_bare = |name: &str| ["rm", "sudo", "doas", "eval", "find"].contains(&name);
    last.as_str() == "--help"
        && !before.iter().any(|word| word.as_str().starts_with('-'))
        && (before.is_empty() || !is_bare(command.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_of_the_table_can_be_read() {
        for row in ROWS {
            for text in row.rules.iter().chain(row.unless) {
                assert!(CommandRule::parse(text).is_ok(), "{text}");
            }
        }
    }
}
