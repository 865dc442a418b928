//! The commands that only read.
//!
//! A line is safe only if every part of it can be read: plain words, joined with `|`. In case of doubt, it is not safe.

use tenterhook_shell::{commands, is_syntax, launches};

/// A command that only reads.
struct Row {
    words: &'static str,
    category: &'static str,
    /// Options with which it writes a file or starts a program.
    unsafe_options: &'static [&'static str],
    /// The maximum number of words after it that are not options. A further one is a file that it writes.
    max_operands: usize,
}

const fn row(words: &'static str, category: &'static str) -> Row {
    Row {
        words,
        category,
        unsafe_options: &[],
        max_operands: usize::MAX,
    }
}

const fn without(
    words: &'static str,
    category: &'static str,
    unsafe_options: &'static [&'static str],
) -> Row {
    Row {
        unsafe_options,
        ..row(words, category)
    }
}

/// Options of git with which it writes a file or starts a program.
const OF_GIT: &[&str] = &[
    "--output",
    "--ext-diff",
    "--textconv",
    "--open-files-in-pager",
];

/// Options of kubectl that write files, or that read a configuration which can name programs to run.
const OF_KUBECTL: &[&str] = &[
    "--kubeconfig",
    "--cache-dir",
    "--profile",
    "--profile-output",
    "--log-dir",
    "--log-file",
    // The user's credentials must not go to another server.
    "--server",
    "-s",
    "--token",
    "--proxy-url",
    "--insecure-skip-tls-verify",
    "--filename",
    "-f",
    "--raw",
];

const ROWS: &[Row] = &[
    row("ls", "fs-read"),
    row("pwd", "fs-read"),
    row("cat", "fs-read"),
    row("head", "fs-read"),
    row("tail", "fs-read"),
    row("wc", "fs-read"),
    without("file", "fs-read", &["-C", "--compile"]),
    row("stat", "fs-read"),
    row("du", "fs-read"),
    row("df", "fs-read"),
    row("realpath", "fs-read"),
    row("readlink", "fs-read"),
    row("grep", "text-read"),
    without("rg", "text-read", &["--pre", "--hostname-bin"]),
    row("cut", "text-read"),
    Row {
        max_operands: 1,
        ..row("uniq", "text-read")
    },
    row("tr", "text-read"),
    row("echo", "io"),
    row("printf", "io"),
    row("basename", "io"),
    row("dirname", "io"),
    row("true", "io"),
    row("ps", "proc-read"),
    row("whoami", "proc-read"),
    row("id", "proc-read"),
    row("uname", "proc-read"),
    row("which", "proc-read"),
    without("git status", "git-read", OF_GIT),
    without("git log", "git-read", OF_GIT),
    without("git show", "git-read", OF_GIT),
    without("git diff", "git-read", OF_GIT),
    without("git rev-parse", "git-read", OF_GIT),
    without("git ls-files", "git-read", OF_GIT),
    without("git blame", "git-read", OF_GIT),
    row("docker ps", "dk-read"),
    row("docker images", "dk-read"),
    row("docker inspect", "dk-read"),
    row("docker logs", "dk-read"),
    row("docker version", "dk-read"),
    row("docker info", "dk-read"),
    without("kubectl get", "k8s-read", OF_KUBECTL),
    without("kubectl describe", "k8s-read", OF_KUBECTL),
    without("kubectl logs", "k8s-read", OF_KUBECTL),
    without("kubectl top", "k8s-read", OF_KUBECTL),
    without("kubectl version", "k8s-read", OF_KUBECTL),
];

/// Returns the first command of a line that only reads, with its category. Returns `None` if any part of the line may
/// do more.
pub(super) fn find_safe(line: &str) -> Option<(&'static str, &'static str)> {
    let is_plain = |c: char| c == ' ' || c == '\t' || !(c.is_whitespace() || c.is_control());
    let can_be_read = line.chars().all(is_plain)
        && !line.chars().any(|c| is_syntax(c) && c != '|')
        && !line.contains("||")
        && has_closed_quotes(line)
        && launches(line).is_some_and(|launched| launched.is_empty());
    if !can_be_read {
        return None;
    }
    let rows: Option<Vec<&Row>> = commands(line).iter().map(|words| row_of(words)).collect();
    let first = *rows?.first()?;
    Some((first.words, first.category))
}

/// Reports whether every quote is closed. The line contains no backslashes.
fn has_closed_quotes(line: &str) -> bool {
    let open = line.chars().fold(None, |open, c| match open {
        None if c == '\'' || c == '"' => Some(c),
        Some(quote) if c == quote => None,
        _ => open,
    });
    open.is_none()
}

fn row_of(words: &[String]) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.matches(words))
}

impl Row {
    fn matches(&self, words: &[String]) -> bool {
        let name: Vec<&str> = self.words.split(' ').collect();
        let Some((start, arguments)) = words.split_at_checked(name.len()) else {
            return false;
        };
        // The shell replaces such a word with names of files, which may look like options.
        let may_expand = |word: &String| word.contains(['*', '?', '[']);
        let is_limited = !self.unsafe_options.is_empty() || self.max_operands < usize::MAX;
        // `-` is an operand, and so is every word after `--`.
        let (options, after) = arguments.split_at(
            arguments
                .iter()
                .position(|word| word == "--")
                .unwrap_or(arguments.len()),
        );
        let is_operand = |word: &&String| !word.starts_with('-') || *word == "-";
        let operands = options.iter().filter(is_operand).count() + after.len().saturating_sub(1);
        start == name
            && !(is_limited && arguments.iter().any(may_expand))
            && !arguments.iter().any(|word| self.is_unsafe_option(word))
            && operands <= self.max_operands
    }

    /// Reports whether a word is an unsafe option: alone, with a value, abbreviated, or in a group of letters.
    fn is_unsafe_option(&self, word: &str) -> bool {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        self.unsafe_options.iter().any(|option| {
            let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
            let has_letter = letter
                .zip(letters)
                .is_some_and(|(letter, letters)| letters.contains(letter));
            let is_abbreviated = name.len() > "--".len() && option.starts_with(name);
            name == *option || is_abbreviated || has_letter
        })
    }
}
