//! Permission rules: what runs without a question, what the user is asked, what never runs.
//!
//! Rules judge a call by the tool's name and one argument. Deny beats ask beats allow; where no rule
//! matches, read-only tools run and the user is asked for all others. Hooks are not known here: how
//! their word and the rules' combine is decided where a tool call passes both.

mod check;
mod place;

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tenterhook_handlers::command_line;
use tenterhook_protocol::JsonObject;
use thiserror::Error;

pub use self::check::RuleProblem;
pub(crate) use self::place::follow;
use self::place::{Place, goes_up};
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
/// | a command in other clothes: quotes, tabs, `NAME=value`, `!`, `if`, `then`, `do`, a folder before the program | is judged as written | is judged as written and plain |
/// | a command that runs another one: `timeout 5 x`, `sudo x`, `sh -c 'x'`, `xargs x`, `find -exec x`, `git difftool -x x` | matches only if the rule spells the other program, before any wildcard | the other command is judged too |
/// | commands that run one another, more than 16 deep | never matches | always matches |
/// | a path with `..` | never matches | is judged as written, resolved and absolute |
/// | a path through a link | matches only if the place it leads to does too | the place it leads to is judged too, also where the rule names the link |
/// | a file with hard links | never matches: one of its other names may be anywhere | is judged by the name that the call uses |
///
/// A tool that is given no `path`, or no `cwd`, works in the session's directory, and is judged as if
/// the argument were `.`. Paths are compared as the disk has them, so an allow rule for a folder that
/// is itself a link matches nothing: it names the place behind it.
///
/// Rules read a command line and do not run it. No reading finds what a variable holds, what text is made at run
/// time, what a script, an alias, a makefile or an interpreter's own code runs (`python3 -c`), and
/// which options a program takes before its subcommand (`git -C . push`). A folder that a rule names can be
/// searched from the folder above it, and links are followed as they are at the time of the judgement.
/// Where that matters, a `tool_guard` hook or a sandbox judges, and rules allow instead of deny.
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
        self.matches(call, |pattern, argument| argument.is_allowed_by(pattern))
    }

    fn restricts(&self, call: &Judged<'_>) -> bool {
        self.matches(call, |pattern, argument| argument.is_restricted_by(pattern))
    }

    fn matches(&self, call: &Judged<'_>, is_match: impl Fn(&Glob, &Argument<'_>) -> bool) -> bool {
        if !self.tool.matches(call.name) {
            return false;
        }
        let Some((name, pattern)) = &self.argument else {
            return true;
        };
        call.argument(name)
            .is_some_and(|argument| is_match(pattern, &argument))
    }
}

/// A call as the rules see it.
struct Judged<'a> {
    name: &'a str,
    category: &'static str,
    input: &'a JsonObject,
    cwd: &'a Path,
}

/// What an argument means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    CommandLine,
    Path,
    Text,
}

/// One argument of a call.
struct Argument<'a> {
    text: Cow<'a, str>,
    meaning: Meaning,
    cwd: &'a Path,
}

impl Judged<'_> {
    /// Returns the argument of that name, or the default that stands for it.
    fn argument(&self, name: &str) -> Option<Argument<'_>> {
        let meaning = match (self.category, name) {
            ("shell", "cwd") | ("filesystem", _) => Meaning::Path,
            ("shell", _) => Meaning::CommandLine,
            _ => Meaning::Text,
        };
        let is_directory = matches!(
            (self.category, name),
            ("shell", "cwd") | ("filesystem", "path")
        );
        let text = match self.input.get(name) {
            Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
            None | Some(Value::Null) if is_directory => Cow::Borrowed("."),
            Some(value) => Cow::Owned(value.to_string()),
            None => return None,
        };
        Some(Argument {
            text,
            meaning,
            cwd: self.cwd,
        })
    }
}

impl Argument<'_> {
    /// Says whether the argument means only what it says, and that matches.
    fn is_allowed_by(&self, pattern: &Glob) -> bool {
        let means_it = match self.meaning {
            Meaning::CommandLine => {
                !self.text.contains(command_line::is_syntax) && spells_launches(pattern, &self.text)
            }
            Meaning::Path => {
                let mut found = self.place().found().into_iter();
                !goes_up(&self.text)
                    && !self.place().has_other_links()
                    && found.any(|name| pattern.matches(&name))
            }
            Meaning::Text => true,
        };
        means_it && pattern.matches(&self.text)
    }

    /// Says whether any reading of the argument matches. A pattern for paths is read both as written and
    /// as the disk has its folders.
    fn is_restricted_by(&self, pattern: &Glob) -> bool {
        let Some(readings) = self.readings() else {
            // No one knows what such a line runs.
            return true;
        };
        let is_match = |pattern: &Glob| readings.iter().any(|text| pattern.matches(text));
        is_match(pattern)
            || (self.meaning == Meaning::Path
                && place::follow_pattern(&pattern.to_string(), self.cwd)
                    .is_some_and(|followed| is_match(&Glob::new(&followed))))
    }

    /// Returns every reading of the argument that a restricting rule should catch; `None` is a command line
    /// that runs commands too deep to be read.
    fn readings(&self) -> Option<Vec<String>> {
        let mut readings = match self.meaning {
            Meaning::CommandLine => {
                let readings = command_line::readings(&self.text);
                readings.is_complete.then_some(readings.texts)?
            }
            Meaning::Path => [self.place().spelled(), self.place().found()].concat(),
            Meaning::Text => Vec::new(),
        };
        readings.push(self.text.clone().into_owned());
        Some(readings)
    }

    fn place(&self) -> Place<'_> {
        Place {
            text: &self.text,
            cwd: self.cwd,
        }
    }
}

/// Says whether a pattern spells every program that a line runs besides its own, as `timeout 5 make *` does. A
/// wildcard never stands for such a program.
fn spells_launches(pattern: &Glob, line: &str) -> bool {
    let launches = command_line::launches(line);
    launches.is_some() && launches == command_line::launches(&pattern.literal_words())
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

impl Ruling {
    /// Returns the stricter of what was said of two versions of a call.
    pub(crate) fn stricter(self, other: Self) -> Self {
        if other.strictness() > self.strictness() {
            other
        } else {
            self
        }
    }

    fn strictness(&self) -> u8 {
        match self {
            Self::Allow | Self::Granted => 0,
            Self::Harmless => 1,
            Self::Unruled => 2,
            Self::Ask(_) => 3,
            Self::Deny(_) => 4,
        }
    }

    /// Says how far a yes of the user to such a call reaches, if it is for the session. A question that
    /// a rule asks is about the one call: the rule asks again about the next.
    pub(crate) fn reach(&self, tool: &dyn Tool) -> Reach {
        if matches!(self, Self::Ask(_)) || tool.category() == "shell" {
            Reach::SameInput
        } else {
            Reach::WholeTool
        }
    }
}

/// How far a yes for the session reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// To calls with this very input. For a command line, another one is another question.
    SameInput,
    /// To every call of the tool that no rule asks about.
    WholeTool,
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
    /// The input; `None` is any.
    input: Option<JsonObject>,
}

impl Permissions {
    /// Makes permissions without rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the same rules for another session, in which the user allowed nothing yet.
    pub(crate) fn for_new_session(&self) -> Self {
        Self {
            grants: Arc::default(),
            ..self.clone()
        }
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
        } else if self.is_granted(tool, Some(input)) {
            Ruling::Granted
        } else if let Some(rule) = restricting(&self.ask) {
            Ruling::Ask(rule)
        } else if self.is_granted(tool, None) {
            Ruling::Granted
        } else if self.allow.iter().any(|rule| rule.allows(&call)) {
            Ruling::Allow
        } else if tool.wants_approval() {
            Ruling::Unruled
        } else {
            Ruling::Harmless
        }
    }

    /// Allows this call for the session, and as many like it as `reach` says.
    pub(crate) fn grant(&self, tool: &dyn Tool, input: &JsonObject, reach: Reach) {
        let inputs = match reach {
            Reach::SameInput => vec![Some(input.clone())],
            Reach::WholeTool => vec![Some(input.clone()), None],
        };
        let mut grants = self.grants();
        for input in inputs {
            let grant = Grant {
                tool: tool.name().to_owned(),
                input,
            };
            if !grants.contains(&grant) {
                grants.push(grant);
            }
        }
    }

    fn is_granted(&self, tool: &dyn Tool, input: Option<&JsonObject>) -> bool {
        self.grants()
            .iter()
            .any(|grant| grant.tool == tool.name() && grant.input.as_ref() == input)
    }

    fn grants(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Describes what a session-wide yes to this call covers.
pub(crate) fn suggestion(tool: &dyn Tool, input: &JsonObject, reach: Reach) -> String {
    let name = tool.name();
    if reach == Reach::WholeTool {
        return name.to_owned();
    }
    let telling = ["cmd", "path"]
        .into_iter()
        .find_map(|argument| Some((argument, input.get(argument)?.as_str()?)));
    match telling {
        Some((argument, value)) => format!("{name}({argument}={value})"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::{ReadFile, Search, ShellTool, TransferTask, WriteFile};

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
    fn a_wildcard_never_stands_for_a_command_that_another_one_runs() {
        for (allowed, cmd) in [
            ("git *", "git difftool -x ./evil"),
            ("git *", "git difftool --extcmd=./evil"),
            ("git diff*", "git difftool -x ./evil"),
            ("git diff *", "git diff --output=x"),
            ("git *", "git -c core.pager=evil log"),
            ("git *", "git -C evil status"),
            ("git *", "git config core.pager evil"),
            ("git *", "git fetch --upload-pack=./evil ."),
            ("git *", "git rebase -x ./evil main"),
            ("timeout *", "timeout 5 ./evil"),
            ("timeout 5 *", "timeout 5 ./evil"),
            ("timeout 5 make *", "timeout 5 env ./evil"),
            ("env make *", "env sh -c ./evil"),
            ("sh *", "sh -c ./evil"),
            ("find *", "find . -exec ./evil +"),
            ("xargs *", "xargs ./evil"),
        ] {
            let rules = Permissions::new().allow(rule(&format!("shell(cmd={allowed})")));
            let ruling = judge(&rules, &ShellTool, json!({"cmd": cmd}));
            assert_eq!(ruling, Ruling::Unruled, "{allowed}: {cmd}");
        }
        for (allowed, cmd) in [
            ("git *", "git push -u origin main"),
            ("git *", "git log --oneline -5"),
            ("git diff*", "git diff --stat"),
            ("timeout 5 make *", "timeout 5 make check"),
            ("git difftool -x meld", "git difftool -x meld"),
            ("sh -c 'make *", "sh -c 'make check'"),
            ("find *", "find . -name x"),
        ] {
            let rules = Permissions::new().allow(rule(&format!("shell(cmd={allowed})")));
            let ruling = judge(&rules, &ShellTool, json!({"cmd": cmd}));
            assert_eq!(ruling, Ruling::Allow, "{allowed}: {cmd}");
        }
    }

    #[test]
    fn a_denying_pattern_finds_its_command_behind_any_wrapper() {
        let no_sudo = Permissions::new()
            .allow(rule("shell"))
            .deny(rule("shell(cmd=sudo *)"));
        let deep = "env ".repeat(100);
        for cmd in [
            "timeout 5 sudo x",
            "nice -n 5 sudo x",
            "setsid sudo x",
            "sh -c 'sudo x'",
            "bash -lc 'sudo x'",
            "echo x | xargs sudo x",
            "busybox sh -c 'sudo x'",
            "git difftool -x 'sudo x'",
            "find . -exec timeout 5 sh -c 'sudo x' +",
            &format!("{deep}ls"),
        ] {
            let ruling = judge(&no_sudo, &ShellTool, json!({"cmd": cmd}));
            assert_eq!(ruling, Ruling::Deny("shell(cmd=sudo *)".into()), "{cmd}");
        }
        let ruling = judge(
            &no_sudo,
            &ShellTool,
            json!({"cmd": "timeout 5 echo sudo x"}),
        );
        assert_eq!(ruling, Ruling::Allow);
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
        permissions.grant(&ShellTool, ls.as_object().unwrap(), Reach::SameInput);
        assert_eq!(judge(&permissions, &ShellTool, ls), Ruling::Granted);
        assert_eq!(
            judge(&permissions, &ShellTool, json!({"cmd": "ls /"})),
            Ruling::Ask("shell".into())
        );
        permissions.grant(
            &WriteFile,
            json!({"path": "a"}).as_object().unwrap(),
            Reach::WholeTool,
        );
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

    #[test]
    fn a_grant_for_a_whole_tool_leaves_what_a_rule_asks_about() {
        let permissions = Permissions::new().ask(rule("write_file(path=secret*)"));
        let input = |path: &str| json!({"path": path, "content": ""});
        let asked = Ruling::Ask("write_file(path=secret*)".into());
        permissions.grant(
            &WriteFile,
            input("a").as_object().unwrap(),
            Ruling::Unruled.reach(&WriteFile),
        );
        assert_eq!(judge(&permissions, &WriteFile, input("b")), Ruling::Granted);
        assert_eq!(judge(&permissions, &WriteFile, input("secret")), asked);
        permissions.grant(
            &WriteFile,
            input("secret").as_object().unwrap(),
            asked.reach(&WriteFile),
        );
        assert_eq!(
            judge(&permissions, &WriteFile, input("secret")),
            Ruling::Granted
        );
        assert_eq!(judge(&permissions, &WriteFile, input("secret2")), asked);
    }

    #[test]
    fn a_suggestion_says_what_a_yes_for_the_session_covers() {
        let input = json!({"path": "a", "content": ""});
        let input = input.as_object().unwrap();
        assert_eq!(
            suggestion(&WriteFile, input, Ruling::Unruled.reach(&WriteFile)),
            "write_file"
        );
        assert_eq!(
            suggestion(
                &WriteFile,
                input,
                Ruling::Ask(String::new()).reach(&WriteFile)
            ),
            "write_file(path=a)"
        );
    }

    #[test]
    fn a_command_in_other_clothes_is_denied_and_asked_about_all_the_same() {
        let denied = Permissions::new()
            .allow(rule("shell"))
            .deny(rule("shell(cmd=rm *)"));
        let asked = Permissions::new()
            .allow(rule("shell"))
            .ask(rule("shell(cmd=rm *)"));
        for cmd in [
            "! rm v1",
            "if true; then rm v2; fi",
            "for x in a; do rm v3; done",
            "X=1 rm v5",
            "rm\tv4",
            "'rm' v7",
            "echo \"$(rm v)\"",
            "/bin/rm v",
        ] {
            let input = || json!({"cmd": cmd});
            assert_eq!(
                judge(&denied, &ShellTool, input()),
                Ruling::Deny("shell(cmd=rm *)".into()),
                "{cmd}"
            );
            assert_eq!(
                judge(&asked, &ShellTool, input()),
                Ruling::Ask("shell(cmd=rm *)".into()),
                "{cmd}"
            );
        }
    }

    #[test]
    fn a_directory_that_is_left_out_is_the_sessions() {
        let rules = Permissions::new()
            .deny(rule("search(path=.)"))
            .deny(rule("shell(cwd=.)"));
        assert_eq!(
            judge(&rules, &Search, json!({"pattern": "x"})),
            Ruling::Deny("search(path=.)".into())
        );
        assert_eq!(
            judge(&rules, &Search, json!({"pattern": "x", "path": "a"})),
            Ruling::Harmless
        );
        assert_eq!(
            judge(&rules, &ShellTool, json!({"cmd": "ls"})),
            Ruling::Deny("shell(cwd=.)".into())
        );
        assert_eq!(
            judge(
                &rules,
                &ShellTool,
                json!({"cmd": "ls", "cwd": "/work/a/.."})
            ),
            Ruling::Deny("shell(cwd=.)".into())
        );
    }

    #[test]
    fn the_directory_of_a_command_is_a_path() {
        let rules = Permissions::new()
            .allow(rule("shell(cwd=src/*)"))
            .deny(rule("shell(cwd=secret*)"));
        assert_eq!(
            judge(&rules, &ShellTool, json!({"cmd": "ls", "cwd": "src/(a)"})),
            Ruling::Allow
        );
        assert_eq!(
            judge(
                &rules,
                &ShellTool,
                json!({"cmd": "ls", "cwd": "src/../../a"})
            ),
            Ruling::Unruled
        );
        assert_eq!(
            judge(
                &rules,
                &ShellTool,
                json!({"cmd": "ls", "cwd": "src/../secret"})
            ),
            Ruling::Deny("shell(cwd=secret*)".into())
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_hard_link_to_a_file_elsewhere_is_covered_by_no_allow_rule_for_a_path() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("work/src")).unwrap();
        std::fs::write(root.join("secret"), "").unwrap();
        std::fs::write(root.join("work/src/own"), "").unwrap();
        std::fs::hard_link(root.join("secret"), root.join("work/src/hard")).unwrap();
        std::os::unix::fs::symlink("hard", root.join("work/src/soft")).unwrap();
        let judge = |rules: &Permissions, path: &str| {
            let input = json!({"path": path, "content": ""});
            rules.judge(&WriteFile, input.as_object().unwrap(), &root.join("work"))
        };
        let of_path = Permissions::new().allow(rule("write_file(path=src/*)"));
        assert_eq!(judge(&of_path, "src/own"), Ruling::Allow);
        assert_eq!(judge(&of_path, "src/new"), Ruling::Allow);
        assert_eq!(judge(&of_path, "src/hard"), Ruling::Unruled);
        assert_eq!(judge(&of_path, "src/soft"), Ruling::Unruled);
        let whole = Permissions::new().allow(rule("write_file"));
        assert_eq!(judge(&whole, "src/hard"), Ruling::Allow);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_judged_by_where_it_leads() {
        use std::os::unix::fs::symlink;

        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["work/src", "work/secret", "out"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        symlink(root.join("out"), root.join("work/src/l")).unwrap();
        symlink("../../out/new", root.join("work/src/dangling")).unwrap();
        symlink("secret", root.join("work/alias")).unwrap();
        symlink("work", root.join("here")).unwrap();
        let rules = Permissions::new()
            .allow(rule("write_file(path=src/*)"))
            .deny(rule("write_file(path=secret*)"));
        let denied = Ruling::Deny("write_file(path=secret*)".into());
        for cwd in ["work", "here"] {
            let judge = |path: &str| {
                let input = json!({"path": path, "content": ""});
                rules.judge(&WriteFile, input.as_object().unwrap(), &root.join(cwd))
            };
            assert_eq!(judge("src/a"), Ruling::Allow, "{cwd}");
            assert_eq!(judge("src/new/a"), Ruling::Allow, "{cwd}");
            assert_eq!(judge("src/l"), Ruling::Unruled, "{cwd}");
            assert_eq!(judge("src/l/a"), Ruling::Unruled, "{cwd}");
            assert_eq!(judge("src/dangling"), Ruling::Unruled, "{cwd}");
            assert_eq!(judge("alias/a"), denied, "{cwd}");
            let absolute = root.join("work/alias/a");
            assert_eq!(judge(absolute.to_str().unwrap()), denied, "{cwd}");
        }
        let by_link = Permissions::new().deny(rule("write_file(path=alias/*)"));
        let input = json!({"path": "secret/a", "content": ""});
        assert_eq!(
            by_link.judge(&WriteFile, input.as_object().unwrap(), &root.join("work")),
            Ruling::Deny("write_file(path=alias/*)".into())
        );
    }
}
