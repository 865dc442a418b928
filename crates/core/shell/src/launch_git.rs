//! The commands that git runs: aliases, and the values of settings and options.

use crate::launches::{Launches, is_abbreviated, without_mark};
use crate::variables::Variables;
use crate::word::{Word, joined};

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

/// Adds the commands of a setting of git.
fn setting(name: &str, value: &str, aliases: &mut Vec<String>, launches: &mut Launches) {
    aliases.extend(alias(name, value));
    if runs_value(name) {
        launches.line(without_mark(value), false);
    }
}

/// Adds the commands in git's options, and returns the words after them.
fn after_options<'a>(
    words: &'a [Word],
    variables: &Variables,
    aliases: &mut Vec<String>,
    launches: &mut Launches,
) -> &'a [Word] {
    let text = |at: usize| words.get(at).map_or("", Word::as_str);
    let mut at = 0;
    while text(at).starts_with('-') {
        let word = text(at);
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        if name == "-c" {
            at += 1;
            let (name, value) = text(at).split_once('=').unwrap_or_default();
            setting(name, value, aliases, launches);
            launches.unseen();
        } else if GIT_ELSEWHERE.contains(&name) {
            launches.unseen();
            if name == "--config-env" {
                let value = word.split_once('=');
                let value = value.map_or(text(at + 1), |(_, value)| value);
                let (name, variable) = value.split_once('=').unwrap_or_default();
                for value in variables.texts(variable) {
                    setting(name, &value, aliases, launches);
                }
            }
            at += usize::from(!word.contains('=') && name != "--exec-path");
        }
        at += 1;
    }
    words.get(at..).unwrap_or_default()
}

/// Adds the commands that git itself runs, and returns its subcommand.
pub(crate) fn git<'a>(
    words: &'a [Word],
    variables: &Variables,
    launches: &mut Launches,
) -> &'a str {
    let mut aliases = Vec::new();
    let words = after_options(words, variables, &mut aliases, launches);
    let (subcommand, rest) = match words.split_first() {
        Some((subcommand, rest)) => (subcommand.as_str(), rest),
        None => ("", [].as_slice()),
    };
    if subcommand == "config" {
        for (name, value) in rest.iter().zip(rest.iter().skip(1)) {
            setting(name.as_str(), value.as_str(), &mut aliases, launches);
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
    subcommand
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
