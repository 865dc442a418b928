//! The condition of a hook: a permission rule such as `Bash(git *)`, for calls of one tool.
//!
//! In case of doubt, a condition is met: a guard that runs once too often only costs time. So a hook also runs for the
//! commands that a wrapper such as `sudo` runs, and for lines whose commands are known only when they run.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use tenterhook_protocol::JsonObject;
use tenterhook_shell::read;
use thiserror::Error;

/// A tool whose calls a pattern can select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConditionTool {
    /// The name of the tool.
    pub name: &'static str,
    /// The name that the tool had earlier.
    pub earlier: Option<&'static str>,
    /// The argument that a pattern is compared with, and its meaning. `None` if a pattern has no effect.
    pub argument: Option<(&'static str, PatternSubject)>,
}

impl ConditionTool {
    /// Describes a tool whose calls can be selected by an argument.
    pub const fn new(name: &'static str, argument: &'static str, subject: PatternSubject) -> Self {
        Self {
            name,
            earlier: None,
            argument: Some((argument, subject)),
        }
    }
}

/// What the argument is that a pattern is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternSubject {
    /// A command line. The pattern selects one of its commands.
    CommandLine,
    /// The path of a file. The pattern is written as in `.gitignore`.
    Path,
    /// A text, in which `*` stands for any text.
    Text,
}

/// Why a condition cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConditionError {
    /// It is not the name of a tool with an optional pattern.
    #[error("it is not the name of a tool, or a tool with a pattern in brackets")]
    Form,
    /// It contains several rules.
    #[error("it has more than one rule")]
    Several,
    /// The tool is written in another case.
    #[error("unknown tool `{found}`; did you mean `{known}`?")]
    Case {
        /// The name in the rule.
        found: String,
        /// The name of the tool.
        known: &'static str,
    },
    /// The pattern of a path begins with `!` or contains alternatives in braces.
    #[error("the pattern `{0}` of a path never matches")]
    PathPattern(String),
}

/// A condition. If it is unknown whether it is met, the hook runs.
#[derive(Debug, Clone)]
pub struct Condition {
    tool: String,
    pattern: Option<Pattern>,
    is_partly_read: bool,
}

#[derive(Debug, Clone)]
struct Pattern {
    argument: &'static str,
    subject: PatternSubject,
    /// One of these lists must match.
    units: Vec<Vec<Unit>>,
    /// Whether it is about all commands of one program.
    is_program: bool,
}

impl Pattern {
    fn new(
        text: &str,
        argument: &'static str,
        subject: PatternSubject,
    ) -> Result<Self, ConditionError> {
        let text = without_escapes(text);
        let never_matches = text.starts_with('!') || text.contains(['{', '}']);
        if subject == PatternSubject::Path && never_matches {
            return Err(ConditionError::PathPattern(text));
        }
        let units = match subject {
            PatternSubject::CommandLine => command_units(&text),
            PatternSubject::Path => path_units(&text),
            PatternSubject::Text => vec![text_units(&text)],
        };
        let program = text.strip_suffix(":*").or_else(|| text.strip_suffix('*'));
        let is_program = program.is_some_and(|it| !it.trim_end().contains([' ', '*']));
        Ok(Self {
            argument,
            subject,
            units,
            is_program,
        })
    }

    fn matches(&self, text: &str) -> bool {
        self.units.iter().any(|units| is_match(units, text))
    }
}

impl Condition {
    /// Reads a rule: the name of a tool, and optionally a pattern in brackets.
    ///
    /// # Errors
    /// Returns the reason why no call could meet the condition.
    pub fn read(rule: &str, tools: &[ConditionTool]) -> Result<Self, ConditionError> {
        let rule = rule.trim();
        let (name, pattern) = match rule.split_once('(') {
            None => (rule, None),
            Some((name, rest)) => {
                let pattern = rest.strip_suffix(')').ok_or(ConditionError::Form)?;
                if closes_early(pattern) {
                    return Err(ConditionError::Several);
                }
                (name, Some(pattern))
            }
        };
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let server = name.strip_suffix("__*").unwrap_or(name);
        if server.is_empty() || !server.chars().all(is_of_name) {
            return Err(ConditionError::Form);
        }
        let known = |tool: &&ConditionTool| tool.name == name || tool.earlier == Some(name);
        let tool = tools.iter().find(known);
        let mut others = tools.iter();
        if tool.is_none()
            && let Some(other) = others.find(|tool| tool.name.eq_ignore_ascii_case(name))
        {
            return Err(ConditionError::Case {
                found: name.to_owned(),
                known: other.name,
            });
        }
        let pattern = pattern.filter(|pattern| !matches!(pattern.trim(), "" | "*"));
        let argument = tool.and_then(|tool| tool.argument);
        let read = pattern.zip(argument);
        let read = read.map(|(text, (argument, subject))| Pattern::new(text, argument, subject));
        let read = read.transpose()?;
        Ok(Self {
            tool: tool.map_or(server, |tool| tool.name).to_owned(),
            is_partly_read: pattern.is_some() && read.is_none(),
            pattern: read,
        })
    }

    /// Returns whether the rule has a pattern that is not compared with anything, because the system knows no such
    /// pattern for the tool. The hook runs for every call of the tool.
    pub const fn is_partly_read(&self) -> bool {
        self.is_partly_read
    }

    /// Returns whether a call may be one that the rule is about.
    pub(crate) fn may_be_met(&self, tool: &str, input: &JsonObject) -> bool {
        // The name of an MCP server stands for all of its tools.
        let of_server = |rest: &str| self.tool.starts_with("mcp__") && rest.starts_with("__");
        if tool != self.tool && !tool.strip_prefix(&self.tool).is_some_and(of_server) {
            return false;
        }
        let Some(pattern) = &self.pattern else {
            return true;
        };
        let Some(Value::String(text)) = input.get(pattern.argument) else {
            return true;
        };
        match pattern.subject {
            PatternSubject::CommandLine => may_run(pattern, text),
            PatternSubject::Path => {
                let path = text.replace('\\', "/").to_lowercase();
                pattern.matches(&path) || pattern.matches(&without_dots(&path))
            }
            PatternSubject::Text => pattern.matches(text),
        }
    }
}

/// Returns the file that a path names, without `.`, `..` and repeated slashes.
fn without_dots(path: &str) -> String {
    let mut plain = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => plain.push(part),
        }
    }
    plain.to_string_lossy().replace('\\', "/")
}

/// Returns whether a bracket of a pattern closes before it was opened, as in `*.ts)|Write(*.ts`.
fn closes_early(pattern: &str) -> bool {
    let mut depth = 0_usize;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            '(' => depth += 1,
            ')' if depth == 0 => return true,
            ')' => depth -= 1,
            _ => {}
        }
    }
    false
}

/// Returns a pattern without the backslashes before brackets and backslashes.
fn without_escapes(pattern: &str) -> String {
    let brackets = pattern.replace("\\(", "(").replace("\\)", ")");
    brackets.replace("\\\\", "\\")
}

/// Returns whether a command line may run a command that a pattern is about.
fn may_run(pattern: &Pattern, line: &str) -> bool {
    let read = read(line);
    let syntax = unread_syntax(line);
    if read.unread().is_some() || syntax == Unread::Commands {
        return true;
    }
    // Words that are known later cannot change which program a command runs.
    if syntax == Unread::Words && !pattern.is_program {
        return true;
    }
    let texts = read.texts().into_iter();
    let mut texts = texts.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    texts.any(|text| pattern.matches(&text))
}

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Any text.
    Any,
    /// Any character.
    One,
    /// This character.
    Exactly(char),
}

/// Reads a text, in which `*` stands for any text.
fn text_units(pattern: &str) -> Vec<Unit> {
    let unit = |c| {
        if c == '*' {
            Unit::Any
        } else {
            Unit::Exactly(c)
        }
    };
    pattern.chars().map(unit).collect()
}

/// Reads a pattern of commands. `git *` is also about `git` alone.
fn command_units(pattern: &str) -> Vec<Vec<Unit>> {
    let program = pattern.strip_suffix(":*");
    match program.or_else(|| pattern.strip_suffix(" *")) {
        Some(begin) => vec![text_units(begin), text_units(&format!("{begin} *"))],
        None => vec![text_units(pattern)],
    }
}

/// Reads a pattern of paths as in `.gitignore`. It is relative to any folder, because the folders that it can be
/// relative to are not known here. A pattern that selects a folder selects what is in it. Sets of characters stand for
/// any character.
fn path_units(pattern: &str) -> Vec<Vec<Unit>> {
    let pattern = pattern.to_lowercase();
    let absolute = pattern.strip_prefix("//");
    let mut starts = ["~/", "./", "/"].iter();
    let start = starts.find_map(|start| pattern.strip_prefix(start));
    let rest = absolute.or(start).unwrap_or(&pattern);
    let rest = rest.trim_end_matches("/**").trim_end_matches('/');
    let mut units = Vec::new();
    let mut characters = rest.chars();
    while let Some(character) = characters.next() {
        units.push(match character {
            '*' if characters.as_str().starts_with("*/") => {
                characters.by_ref().take(2).for_each(drop);
                Unit::Any
            }
            '*' => Unit::Any,
            '?' => Unit::One,
            '[' if characters.as_str().contains(']') => {
                let _of_set = characters.by_ref().find(|c| *c == ']');
                Unit::One
            }
            '\\' => Unit::Exactly(characters.next().unwrap_or('\\')),
            other => Unit::Exactly(other),
        });
    }
    let begins = if absolute.is_some() {
        vec![vec![Unit::Exactly('/')]]
    } else {
        vec![Vec::new(), vec![Unit::Any, Unit::Exactly('/')]]
    };
    let below = [Unit::Exactly('/'), Unit::Any];
    let ends = [&[][..], &below[..]];
    let all = begins
        .iter()
        .flat_map(|begin| ends.map(|end| [begin, &units, end].concat()));
    all.collect()
}

/// Returns whether units match a whole text.
fn is_match(units: &[Unit], text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    // For each position in the text, whether the units so far can end there.
    let mut ends = vec![false; text.len() + 1];
    ends.splice(..1, [true]);
    for unit in units {
        let moved = |at: usize| match at.checked_sub(1) {
            None => false,
            Some(before) => {
                let is_end = ends.get(before) == Some(&true);
                let is_same = |c: &char| match unit {
                    Unit::Exactly(wanted) => c == wanted,
                    Unit::One | Unit::Any => true,
                };
                is_end && text.get(before).is_some_and(is_same)
            }
        };
        ends = match unit {
            Unit::Any => {
                let first = ends.iter().position(|is_end| *is_end);
                let first = first.unwrap_or(usize::MAX);
                (0..ends.len()).map(|at| at >= first).collect()
            }
            Unit::One | Unit::Exactly(_) => (0..ends.len()).map(moved).collect(),
        };
    }
    ends.last() == Some(&true)
}

/// What a line leaves open until it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unread {
    Nothing,
    /// Some words.
    Words,
    /// Which commands run.
    Commands,
}

/// Returns what a line leaves open. Text in single quotes leaves nothing open.
fn unread_syntax(line: &str) -> Unread {
    let mut found = Unread::Nothing;
    let mut characters = line.chars().peekable();
    let mut is_quoted = false;
    while let Some(character) = characters.next() {
        let next = characters.peek().copied();
        let unread = match (character, next) {
            ('\\', _) => {
                characters.next();
                Unread::Nothing
            }
            ('"', _) => {
                is_quoted = !is_quoted;
                Unread::Nothing
            }
            ('\'', _) if !is_quoted => {
                if characters.by_ref().any(|c| c == '\'') {
                    Unread::Nothing
                } else {
                    Unread::Commands
                }
            }
            ('`', _) => Unread::Words,
            ('$', Some(next)) if next.is_ascii_alphanumeric() || "_{(@*#?$!-'\"".contains(next) => {
                Unread::Words
            }
            ('<', Some('<')) | ('(', Some(')')) if !is_quoted => Unread::Commands,
            ('<' | '>', Some('(')) if !is_quoted => Unread::Words,
            _ => Unread::Nothing,
        };
        found = found.max(unread);
    }
    if is_quoted { Unread::Commands } else { found }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TOOLS: &[ConditionTool] = &[
        ConditionTool::new("Bash", "command", PatternSubject::CommandLine),
        ConditionTool::new("Write", "file_path", PatternSubject::Path),
        ConditionTool::new("Grep", "pattern", PatternSubject::Text),
        ConditionTool {
            name: "Agent",
            earlier: Some("Task"),
            argument: None,
        },
    ];

    fn is_met(rule: &str, tool: &str, argument: &str, value: &str) -> bool {
        let input = json!({ argument: value });
        let condition = Condition::read(rule, TOOLS).unwrap();
        condition.may_be_met(tool, input.as_object().unwrap())
    }

    /// What Claude Code 2.1.330 does with each line, for `Bash(git *)`, `Bash(git push:*)` and `Bash(rm -rf *)`.
    const MEASURED: &[(&str, &str)] = &[
        ("git push", "XX."),
        ("git", "X.."),
        ("ls", "..."),
        ("ls && git push", "XX."),
        ("FOO=1 git push", "XX."),
        ("xargs git push", "XX."),
        ("echo $(git push)", "XXX"),
        ("$X push", "XXX"),
        ("git$X push", "XXX"),
        ("if true; then git push; fi", "XX."),
        ("for f in a; do git push; done", "XX."),
        ("git\tpush", "XX."),
        ("git  push", "XX."),
        ("\\git push", "XX."),
        ("'git' push", "XX."),
        ("cat <<E\ngit push\nE", "XXX"),
        ("git -C x push", "X.."),
        ("(git push)", "XX."),
        ("git push > /dev/null", "XX."),
        ("gitk push", "..."),
        ("GIT push", "..."),
        ("! git push", "XX."),
        ("git push &", "XX."),
        ("ls | git push", "XX."),
        ("x() { git push; }; x", "XXX"),
        ("git push 2>&1 | tail -f log", "XX."),
        ("echo ${X:-$(git push)}", "XXX"),
        ("rm -rf build", "..X"),
        ("rm -fr build", "..."),
        ("awk '{ print $1 }' f", "..."),
    ];

    #[test]
    fn a_hook_runs_for_every_command_line_for_which_claude_code_runs_it() {
        for (line, expected) in MEASURED {
            for (rule, expected) in ["Bash(git *)", "Bash(git push:*)", "Bash(rm -rf *)"]
                .iter()
                .zip(expected.chars())
            {
                let found = is_met(rule, "Bash", "command", line);
                assert_eq!(found, expected == 'X', "{rule}: {line}");
            }
        }
    }

    #[test]
    fn a_hook_also_runs_for_commands_that_a_wrapper_runs() {
        for line in [
            "env git push",
            "sudo -u a git push",
            "timeout 5 git push",
            "nice git push",
            "sh -c 'git push'",
            "command git push",
            "/usr/bin/git push",
            "find . -exec git push ';'",
            "eval git push",
        ] {
            assert!(
                is_met("Bash(git push *)", "Bash", "command", line),
                "{line}"
            );
        }
    }

    #[test]
    fn a_pattern_of_a_path_is_read_as_in_gitignore() {
        // The first two columns are what Claude Code 2.1.330 does in the folder `/w`. Paths that are only selected in other
        // folders are selected here, too.
        for (rule, path, expected) in [
            ("Write(*.ts)", "/w/src/a.ts", true),
            ("Write(*.ts)", "/w/src/A.TS", true),
            ("Write(*.ts)", "/w/src/a.rs", false),
            ("Write(**/*.ts)", "/w/a.ts", true),
            ("Write(src/**)", "/w/src/b/a.rs", true),
            ("Write(./src/**)", "/w/src/a.ts", true),
            ("Write(/src/**)", "/w/src", true),
            ("Write(src)", "/w/b/src/a.ts", true),
            ("Write(src)", "/w/src2/a.ts", false),
            ("Write(//p/src/**)", "/p/src/a.ts", true),
            ("Write(//p/src/**)", "/w/p/src/a.ts", false),
            ("Write(//etc)", "/etc/zz", true),
            ("Write(~/x)", "/home/x", true),
            ("Write(.env)", "/w/.env", true),
            ("Write(.env)", "/w/x.env", false),
            ("Write(*.env)", "/w/x.env", true),
            ("Write(a?.ts)", "/w/ab.ts", true),
            ("Write([ab].ts)", "/w/a.ts", true),
            ("Write(a.ts)", "src/a.ts", true),
        ] {
            assert_eq!(
                is_met(rule, "Write", "file_path", path),
                expected,
                "{rule} {path}"
            );
        }
    }

    #[test]
    fn no_spelling_of_a_path_keeps_a_guard_from_running() {
        for path in [
            "/p/conf//keys/a",
            "/p/conf/./keys/a",
            "/p/conf/x/../keys/a",
            "conf/x/y/../../keys/a",
            "./conf/../conf/keys/a",
        ] {
            assert!(
                is_met("Write(conf/keys/*)", "Write", "file_path", path),
                "{path}"
            );
        }
    }

    #[test]
    fn a_condition_is_about_one_tool() {
        for (rule, tool, expected) in [
            ("Bash", "Bash", true),
            ("Bash()", "Bash", true),
            ("Bash(*)", "Bash", true),
            (" Bash(git *) ", "Bash", true),
            ("Bash", "Write", false),
            ("Task(Explore)", "Agent", true),
            ("Agent", "Agent", true),
            ("Grep(foo*)", "Grep", true),
            ("mcp__memory", "mcp__memory__read", true),
            ("mcp__memory__*", "mcp__memory__read", true),
            ("mcp__memory__read(x)", "mcp__memory__read", true),
            ("mcp__mem", "mcp__memory__read", false),
        ] {
            assert_eq!(is_met(rule, tool, "other", "x"), expected, "{rule} {tool}");
        }
        assert!(
            Condition::read("Task(Explore)", TOOLS)
                .unwrap()
                .is_partly_read()
        );
        assert!(!is_met("Grep(foo*)", "Grep", "pattern", "bar"));
        assert!(is_met(
            r"Bash(echo \(a\))",
            "Bash",
            "command",
            "'echo' '(a)'"
        ));
    }

    #[test]
    fn a_condition_that_no_call_could_meet_is_an_error() {
        for rule in [
            "Bash(git *",
            "Bash git",
            "Bash|Write",
            "Bash(git *)|Bash(rm *)",
            "Write(*.ts) Write(*.js)",
            "*",
            "(git *)",
            "bash(git *)",
            "Write({a,b}.ts)",
            "Write(!a.ts)",
        ] {
            assert!(Condition::read(rule, TOOLS).is_err(), "{rule}");
        }
    }
}
