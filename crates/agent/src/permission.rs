//! Permission rules: what runs without a question, what the user is asked, what never runs.
//!
//! Rules judge a call by the tool's name and one argument. Deny beats ask beats allow; where no rule
//! matches, read-only tools run and the user is asked for all others. Hooks are not known here: how
//! their word and the rules' combine is decided where a tool call passes both.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tenterhook_protocol::JsonObject;
use thiserror::Error;

use crate::glob::Glob;
use crate::tool::Tool;

/// A tool, or calls of a tool with a certain argument.
///
/// `shell` is every call of the tool, `shell(cmd=git *)` those whose argument matches. In both parts
/// `*` stands for any text and `?` for one character.
///
/// What can make one command do another's work is on the safe side of each list:
///
/// | call | in an allow rule with an argument | in a deny or ask rule |
/// |---|---|---|
/// | a command line with `;`, `&`, `\|`, `<`, `>`, `` ` ``, `$(`, `${`, a bracket, a backslash or a line end | never matches | each command in it is judged too |
/// | a path with `..` | never matches | is judged as written, resolved and absolute |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    tool: Glob,
    argument: Option<(String, Glob)>,
}

/// The text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{found}` is no permission rule: expected `TOOL` or `TOOL(ARGUMENT=PATTERN)`")]
pub struct InvalidRule {
    /// What was given.
    pub found: String,
}

impl FromStr for Rule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let invalid = || InvalidRule {
            found: text.to_owned(),
        };
        let text = text.trim();
        let is_name = |name: &str| {
            !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "()=".contains(c))
        };
        let Some((tool, rest)) = text.split_once('(') else {
            return if is_name(text) {
                Ok(Self::of_tool(text))
            } else {
                Err(invalid())
            };
        };
        let inner = rest.strip_suffix(')').ok_or_else(invalid)?;
        let (name, pattern) = inner.split_once('=').ok_or_else(invalid)?;
        if !is_name(tool) || !is_name(name) || pattern.is_empty() {
            return Err(invalid());
        }
        Ok(Self {
            tool: Glob::new(tool),
            argument: Some((name.to_owned(), Glob::new(pattern))),
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.argument {
            Some((name, pattern)) => write!(f, "{}({name}={pattern})", self.tool),
            None => self.tool.fmt(f),
        }
    }
}

impl Rule {
    fn of_tool(name: &str) -> Self {
        Self {
            tool: Glob::new(name),
            argument: None,
        }
    }

    fn allows(&self, call: &Judged<'_>) -> bool {
        self.matches(call, |text| call.plain(text))
    }

    fn restricts(&self, call: &Judged<'_>) -> bool {
        self.matches(call, |text| call.readings(text))
    }

    fn matches(&self, call: &Judged<'_>, readings: impl Fn(String) -> Vec<String>) -> bool {
        if !self.tool.matches(call.name) {
            return false;
        }
        let Some((name, pattern)) = &self.argument else {
            return true;
        };
        let Some(value) = call.input.get(name) else {
            return false;
        };
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        readings(text).iter().any(|text| pattern.matches(text))
    }
}

/// A call as the rules see it.
struct Judged<'a> {
    name: &'a str,
    category: &'static str,
    input: &'a JsonObject,
    cwd: &'a Path,
}

impl Judged<'_> {
    /// Returns the text if it means only what it says, for rules that allow.
    fn plain(&self, text: String) -> Vec<String> {
        let is_plain = match self.category {
            "shell" => !text.contains(is_shell_syntax),
            "filesystem" => !Path::new(&text)
                .components()
                .any(|part| part == Component::ParentDir),
            _ => true,
        };
        if is_plain { vec![text] } else { Vec::new() }
    }

    /// Returns every reading of the text that a restricting rule should catch.
    fn readings(&self, text: String) -> Vec<String> {
        let mut readings: Vec<String> = match self.category {
            "shell" => text
                .split(is_shell_syntax)
                .map(|part| part.trim().to_owned())
                .collect(),
            "filesystem" => {
                let absolute = resolve(&self.cwd.join(&text));
                let relative = absolute
                    .strip_prefix(resolve(self.cwd))
                    .ok()
                    .map(Path::to_path_buf);
                let paths = [Some(absolute), relative];
                paths
                    .into_iter()
                    .flatten()
                    .map(|path| path.to_string_lossy().into_owned())
                    .collect()
            }
            _ => Vec::new(),
        };
        readings.push(text);
        readings
    }
}

/// Characters with which a command line does more than run one program with plain arguments.
fn is_shell_syntax(character: char) -> bool {
    matches!(
        character,
        ';' | '&' | '|' | '<' | '>' | '`' | '$' | '(' | ')' | '{' | '}' | '\\' | '\n' | '\r'
    )
}

/// Takes `.` and `..` out of a path without looking at the disk.
fn resolve(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => resolved.push(part),
        }
    }
    resolved
}

/// What the rules say of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// A rule denies it.
    Deny(String),
    /// A rule asks.
    Ask(String),
    /// A rule allows it.
    Allow,
    /// The user allowed it for the session.
    Granted,
    /// No rule speaks of it, and the tool does no harm.
    Harmless,
    /// No rule speaks of it.
    Unruled,
}

/// The rules of an agent, and what the user allowed for the session. Clones share the latter.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    allow: Vec<Rule>,
    ask: Vec<Rule>,
    deny: Vec<Rule>,
    says_yes: bool,
    grants: Arc<Mutex<Vec<Grant>>>,
}

/// A call that the user allowed for the session.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grant {
    tool: String,
    /// For tools that run commands, the whole input: another command is another question.
    input: Option<JsonObject>,
}

impl Permissions {
    /// Makes permissions without rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule for calls that run without a question.
    #[must_use]
    pub fn allow(mut self, rule: Rule) -> Self {
        self.allow.push(rule);
        self
    }

    /// Adds a rule for calls that the user is asked about.
    #[must_use]
    pub fn ask(mut self, rule: Rule) -> Self {
        self.ask.push(rule);
        self
    }

    /// Adds a rule for calls that never run.
    #[must_use]
    pub fn deny(mut self, rule: Rule) -> Self {
        self.deny.push(rule);
        self
    }

    /// Answers yes to every question that a rule, or the lack of one, would ask. Deny rules and hooks
    /// keep their word.
    #[must_use]
    pub fn yes(mut self, says_yes: bool) -> Self {
        self.says_yes = says_yes;
        self
    }

    pub(crate) fn says_yes(&self) -> bool {
        self.says_yes
    }

    pub(crate) fn judge(&self, tool: &dyn Tool, input: &JsonObject, cwd: &Path) -> Ruling {
        let call = Judged {
            name: tool.name(),
            category: tool.category(),
            input,
            cwd,
        };
        let restricting = |rules: &[Rule]| {
            rules
                .iter()
                .find(|rule| rule.restricts(&call))
                .map(ToString::to_string)
        };
        if let Some(rule) = restricting(&self.deny) {
            Ruling::Deny(rule)
        } else if self.is_granted(tool, input) {
            Ruling::Granted
        } else if let Some(rule) = restricting(&self.ask) {
            Ruling::Ask(rule)
        } else if self.allow.iter().any(|rule| rule.allows(&call)) {
            Ruling::Allow
        } else if tool.wants_approval() {
            Ruling::Unruled
        } else {
            Ruling::Harmless
        }
    }

    /// Allows calls like this one for the session.
    pub(crate) fn grant(&self, tool: &dyn Tool, input: &JsonObject) {
        let grant = grant_for(tool, input);
        let mut grants = self.grants();
        if !grants.contains(&grant) {
            grants.push(grant);
        }
    }

    fn is_granted(&self, tool: &dyn Tool, input: &JsonObject) -> bool {
        self.grants().contains(&grant_for(tool, input))
    }

    fn grants(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn grant_for(tool: &dyn Tool, input: &JsonObject) -> Grant {
    Grant {
        tool: tool.name().to_owned(),
        input: (tool.category() == "shell").then(|| input.clone()),
    }
}

/// Describes what a session-wide yes to this call covers.
pub(crate) fn suggestion(tool: &dyn Tool, input: &JsonObject) -> String {
    match (tool.category(), input.get("cmd").and_then(Value::as_str)) {
        ("shell", Some(cmd)) => format!("{}(cmd={cmd})", tool.name()),
        _ => tool.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::{ReadFile, ShellTool, TransferTask, WriteFile};

    fn rule(text: &str) -> Rule {
        text.parse().unwrap()
    }

    fn judge(permissions: &Permissions, tool: &dyn Tool, input: impl Into<Value>) -> Ruling {
        let input = input.into();
        permissions.judge(tool, input.as_object().unwrap(), Path::new("/work"))
    }

    #[test]
    fn rules_are_a_tool_or_a_tool_with_an_argument() {
        for text in [
            "shell",
            "mcp_*",
            "shell(cmd=git *)",
            "shell(cmd=a=(b))",
            "write_file(path=src/*)",
        ] {
            assert_eq!(rule(text).to_string(), text);
        }
        for text in [
            "",
            "shell(",
            "shell()",
            "shell(cmd)",
            "shell(cmd=)",
            "(cmd=ls)",
            "rm -rf",
            "shell(=ls)",
        ] {
            let expected = format!(
                "`{text}` is no permission rule: expected `TOOL` or `TOOL(ARGUMENT=PATTERN)`"
            );
            assert_eq!(text.parse::<Rule>().unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn deny_beats_ask_beats_allow_in_any_order() {
        let all = Permissions::new()
            .allow(rule("shell"))
            .ask(rule("shell(cmd=git *)"))
            .deny(rule("shell(cmd=git push*)"));
        assert_eq!(judge(&all, &ShellTool, json!({"cmd": "ls"})), Ruling::Allow);
        assert_eq!(
            judge(&all, &ShellTool, json!({"cmd": "git log"})),
            Ruling::Ask("shell(cmd=git *)".into())
        );
        assert_eq!(
            judge(&all, &ShellTool, json!({"cmd": "git push"})),
            Ruling::Deny("shell(cmd=git push*)".into())
        );
    }

    #[test]
    fn without_a_rule_only_harmless_tools_run() {
        let none = Permissions::new();
        assert_eq!(
            judge(&none, &ReadFile, json!({"path": "a"})),
            Ruling::Harmless
        );
        assert_eq!(
            judge(&none, &TransferTask::new([]), json!({})),
            Ruling::Harmless
        );
        assert_eq!(
            judge(&none, &ShellTool, json!({"cmd": "ls"})),
            Ruling::Unruled
        );
    }

    #[test]
    fn a_command_that_does_more_never_matches_an_allowing_pattern() {
        let git = Permissions::new().allow(rule("shell(cmd=git *)"));
        assert_eq!(
            judge(&git, &ShellTool, json!({"cmd": "git status -s"})),
            Ruling::Allow
        );
        for cmd in [
            "git status; rm -rf /",
            "git status && rm a",
            "git status & rm a",
            "git log | sh",
            "git log $(rm a)",
            "git log `rm a`",
            "git log\nrm a",
            "git log > /etc/passwd",
            "git log < a",
            "git log ${IFS}a",
            "git log \\\nrm",
        ] {
            assert_eq!(
                judge(&git, &ShellTool, json!({"cmd": cmd})),
                Ruling::Unruled,
                "{cmd}"
            );
        }
        let whole = Permissions::new().allow(rule("shell"));
        assert_eq!(
            judge(&whole, &ShellTool, json!({"cmd": "a; b"})),
            Ruling::Allow
        );
    }

    #[test]
    fn a_denying_pattern_finds_its_command_among_others() {
        let no_rm = Permissions::new()
            .allow(rule("shell"))
            .deny(rule("shell(cmd=rm *)"));
        for cmd in [
            "rm a",
            "cd / && rm a",
            "true;rm a",
            "echo $(rm a)",
            "echo `rm a`",
            "(rm a)",
            "ls | rm a",
        ] {
            assert_eq!(
                judge(&no_rm, &ShellTool, json!({"cmd": cmd})),
                Ruling::Deny("shell(cmd=rm *)".into()),
                "{cmd}"
            );
        }
        assert_eq!(
            judge(&no_rm, &ShellTool, json!({"cmd": "echo rm a"})),
            Ruling::Allow
        );
    }

    #[test]
    fn a_path_with_dots_is_allowed_by_no_pattern_and_denied_by_where_it_leads() {
        let rules = Permissions::new()
            .allow(rule("write_file(path=src/*)"))
            .deny(rule("write_file(path=secret/*)"));
        assert_eq!(
            judge(&rules, &WriteFile, json!({"path": "src/a"})),
            Ruling::Allow
        );
        assert_eq!(
            judge(&rules, &WriteFile, json!({"path": "src/../../etc/passwd"})),
            Ruling::Unruled
        );
        for path in [
            "secret/a",
            "./secret/a",
            "src/../secret/a",
            "/work/secret/a",
        ] {
            let expected = Ruling::Deny("write_file(path=secret/*)".into());
            assert_eq!(
                judge(&rules, &WriteFile, json!({"path": path})),
                expected,
                "{path}"
            );
        }
    }

    #[test]
    fn a_grant_covers_the_same_command_or_the_same_tool_but_no_deny_rule() {
        let permissions = Permissions::new()
            .ask(rule("shell"))
            .deny(rule("write_file(path=secret*)"));
        let ls = json!({"cmd": "ls"});
        permissions.grant(&ShellTool, ls.as_object().unwrap());
        assert_eq!(judge(&permissions, &ShellTool, ls), Ruling::Granted);
        assert_eq!(
            judge(&permissions, &ShellTool, json!({"cmd": "ls /"})),
            Ruling::Ask("shell".into())
        );
        permissions.grant(&WriteFile, json!({"path": "a"}).as_object().unwrap());
        assert_eq!(
            judge(&permissions, &WriteFile, json!({"path": "b"})),
            Ruling::Granted
        );
        let expected = Ruling::Deny("write_file(path=secret*)".into());
        assert_eq!(
            judge(&permissions, &WriteFile, json!({"path": "secret"})),
            expected
        );
    }
}
