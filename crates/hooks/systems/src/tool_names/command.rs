//! Finds the command line in the arguments of a tool that no table has.
//!
//! A tool of an MCP server or an extension may run commands, and guards for the shell must judge them. Only the names and
//! the values of arguments are known, not the tool's schema. The rule is on the page about tools, so that people can
//! apply it themselves.

use serde_json::Value;
use tenterhook_engine::{CanonicalCall, CommandReading, ShellGuess};
use tenterhook_protocol::JsonObject;

use crate::tool_names::row::{Problem, is_blank};

/// The canonical argument with the command line.
const LINE: &str = "cmd";
/// The arguments that can contain a command line.
const LINES: [&str; 4] = ["command", "cmd", "script", "shell"];
/// The arguments that can contain the words of a command, or the words after the program.
const WORDS: [&str; 2] = ["args", "argv"];
/// Parts of the names of tools that run commands.
const SHELL_NAMES: [&str; 14] = [
    "bash",
    "cmd",
    "command",
    "commands",
    "exec",
    "powershell",
    "process",
    "pwsh",
    "sh",
    "shell",
    "ssh",
    "subprocess",
    "terminal",
    "zsh",
];
/// Programs by which a single word, a script or a list of words is known to be a command.
const PROGRAMS: &str = "\
    ansible apt apt-get awk aws az bash brew bun cargo cat cd chmod chown cmd cp curl dash dd \
    deno dnf doas docker dpkg echo env eval exec fdisk find fish gcloud gh git go gradle halt \
    helm java kill killall kubectl ln ls make mkdir mkfs mv mvn nc node nohup npm npx \
    osascript perl php pip pip3 pkill pnpm podman poweroff powershell printf psql pwsh python \
    python3 reboot rm rmdir rsync ruby scp sed setsid sh shred shutdown ssh su sudo systemctl \
    tar tee terraform timeout touch truncate umount uv wget xargs yarn yum zsh";

/// A command line in the arguments of a tool.
#[derive(Debug, PartialEq)]
pub struct FoundCommand {
    /// The names of the arguments that it was found in. The first one has the program.
    pub fields: Vec<String>,
    /// The line. If several arguments contain one, each is a line of the text.
    pub line: String,
    /// Whether one argument is a text that is the whole line.
    is_text: bool,
}

impl FoundCommand {
    /// Finds the command line in the arguments of a call to the tool `name`.
    ///
    /// ```
    /// use serde_json::json;
    /// use tenterhook_systems::tool_names::FoundCommand;
    ///
    /// let find = |name: &str, input: serde_json::Value| {
    ///     let input = input.as_object().cloned().unwrap_or_default();
    ///     FoundCommand::find(name, &input).map(|found| found.line)
    /// };
    /// assert_eq!(find("mcp__box__start", json!({ "command": "rm -rf /" })).as_deref(), Some("rm -rf /"));
    /// assert_eq!(find("mcp__box__start", json!({ "args": ["git", "push"] })).as_deref(), Some("git push"));
    /// assert_eq!(find("file_editor", json!({ "command": "view", "path": "/a" })), None);
    /// ```
    pub fn find(name: &str, input: &JsonObject) -> Option<Self> {
        let is_shell = has_shell_name(name);
        let mut found = Vec::new();
        for (key, value) in input.iter().filter(|(_, value)| !is_blank(value)) {
            // Some programs ignore the case of keys.
            let name = key.to_ascii_lowercase();
            if let Some(line) = line_of(&name, value).filter(|line| line.is_command(is_shell)) {
                found.push((key, line));
            }
        }
        // The name of a shell, next to the command that it runs.
        let is_option =
            |key: &str, line: &Line| key.eq_ignore_ascii_case("shell") && is_bare(&line.text);
        if found.iter().any(|(key, line)| !is_option(key, line)) {
            found.retain(|(key, line)| !is_option(key, line));
        }
        let (first, _) = found.first()?;
        let mut fields: Vec<String> = found.iter().map(|(key, _)| (*key).clone()).collect();
        let mut is_text = matches!(found.as_slice(), [(_, line)] if line.is_text);
        let mut lines: Vec<String> = found.iter().map(|(_, line)| line.text.clone()).collect();
        // The other words of a command whose program has an argument of its own.
        let rest = input.iter().filter(|(key, _)| !fields.contains(key));
        let rest = rest.filter(|(key, _)| WORDS.contains(&key.to_ascii_lowercase().as_str()));
        let rest: Vec<(String, String)> = rest
            .filter_map(|(key, value)| Some((key.clone(), words_text(value)?)))
            .collect();
        if !WORDS.contains(&first.to_ascii_lowercase().as_str())
            && let Some(line) = lines.first_mut()
        {
            for (key, words) in rest {
                line.push(' ');
                line.push_str(&words);
                fields.push(key);
                is_text = false;
            }
        }
        Some(Self {
            fields,
            line: lines.join("\n"),
            is_text,
        })
    }

    /// Reads a call that `system` makes to a tool that no table has as a call to the shell.
    pub fn read(system: &'static str, name: &str, input: &JsonObject) -> Option<CommandReading> {
        let found = Self::find(name, input)?;
        Some(CommandReading {
            call: CanonicalCall {
                tool: "shell".to_owned(),
                input: found.shell_input(input),
            },
            guess: Some(ShellGuess {
                system,
                because: found.because(),
            }),
        })
    }

    /// Returns changed arguments of the shell as arguments of the tool `name`, which was called with `input`.
    pub(crate) fn written(
        name: &str,
        input: &JsonObject,
        shell: &JsonObject,
    ) -> Result<JsonObject, Problem> {
        match Self::find(name, input) {
            Some(found) => found.own_input(shell),
            None => Ok(shell.clone()),
        }
    }

    /// Returns the call as one to the shell: the line, and the other arguments under their own names.
    pub fn shell_input(&self, input: &JsonObject) -> JsonObject {
        let rest = input.iter().filter(|(key, _)| !self.fields.contains(key));
        let mut shell: JsonObject = rest
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        shell.insert(LINE.to_owned(), self.line.clone().into());
        shell
    }

    /// Returns changed arguments of the shell as arguments of the tool.
    pub(crate) fn own_input(&self, shell: &JsonObject) -> Result<JsonObject, Problem> {
        let mut own = shell.clone();
        let Some(line) = own.remove(LINE) else {
            return Ok(own);
        };
        if self.is_text
            && let [field] = self.fields.as_slice()
        {
            own.insert(field.clone(), line);
        } else if line.as_str() != Some(&self.line) {
            return Err(format!(
                "the command is in {}, so hooks can judge it, but not change it",
                self.shown_fields()
            ));
        }
        Ok(own)
    }

    /// Returns why the call is read as one to the shell. The name of the tool is elsewhere in the record, where secrets
    /// are removed.
    pub(crate) fn because(&self) -> String {
        format!(
            "no table has this tool, and {} can be a command line",
            self.shown_fields()
        )
    }

    fn shown_fields(&self) -> String {
        let fields = self.fields.iter().map(|field| format!("`{field}`"));
        fields.collect::<Vec<_>>().join(" and ")
    }
}

/// The text of an argument that may be a command line.
struct Line {
    text: String,
    /// The first word, without variables before it.
    program: String,
    /// Whether the argument is one text instead of a list of words.
    is_text: bool,
    /// Whether a text of several words is a command line, whatever program it begins with.
    is_sure: bool,
}

impl Line {
    fn is_command(&self, is_shell: bool) -> bool {
        let is_program =
            is_path(&self.program) || PROGRAMS.split(' ').any(|program| program == self.program);
        is_program || is_shell || (self.is_sure && !is_bare(&self.text))
    }
}

/// Reads an argument that may be a command line. `name` is its name in lower case.
fn line_of(name: &str, value: &Value) -> Option<Line> {
    let has_line = LINES.contains(&name);
    let is_text = value.is_string();
    if !has_line && (is_text || !WORDS.contains(&name)) {
        return None;
    }
    let text = words_text(value)?;
    let first = match value.as_array() {
        Some(words) => words.first().and_then(Value::as_str),
        None => text.split_whitespace().find(|word| !is_assignment(word)),
    };
    let first = first.map(str::to_owned);
    Some(Line {
        program: first?,
        is_text,
        is_sure: matches!(name, "command" | "cmd"),
        text,
    })
}

/// Returns a text as it is, and a list of words as a command line.
fn words_text(value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    let words = value.as_array().filter(|words| !words.is_empty())?;
    let words = words.iter().map(|word| match word.as_str() {
        Some(word) => quoted(word),
        None => quoted(&word.to_string()),
    });
    Some(words.collect::<Vec<_>>().join(" "))
}

/// Writes a word so that a shell reads exactly this word.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Returns whether a text is a single word, such as `view` or `str_replace`.
fn is_bare(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    text.trim().bytes().all(is_letter)
}

/// Returns whether a word is the path of a file, such as `./build.sh`. A web address and program code are not.
fn is_path(word: &str) -> bool {
    let is_letter =
        |character: char| character.is_alphanumeric() || "._-+~/\\:@".contains(character);
    let is_address = word.contains("//");
    word.contains(['/', '\\']) && !is_address && word.chars().all(is_letter)
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// Returns whether a tool's name has a part such as `shell`: `run_shell`, `mcp__box__execShell`.
fn has_shell_name(name: &str) -> bool {
    let mut part = String::new();
    let mut was_lower = false;
    for character in name.chars().chain(['_']) {
        let is_end =
            !character.is_ascii_alphanumeric() || (was_lower && character.is_ascii_uppercase());
        if is_end {
            if SHELL_NAMES.contains(&part.as_str()) {
                return true;
            }
            part.clear();
        }
        if character.is_ascii_alphanumeric() {
            part.push(character.to_ascii_lowercase());
        }
        was_lower = character.is_ascii_lowercase();
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn find(name: &str, input: &Value) -> Option<String> {
        let found = FoundCommand::find(name, input.as_object().unwrap());
        found.map(|found| found.line)
    }

    #[test]
    fn a_command_line_is_found_by_the_rule_of_the_page() {
        for (name, input, line) in [
            ("x", json!({ "command": "deploy now" }), Some("deploy now")),
            ("x", json!({ "command": "a;b" }), Some("a;b")),
            ("x", json!({ "command": "reboot" }), Some("reboot")),
            ("x", json!({ "command": "./a" }), Some("./a")),
            ("x", json!({ "command": "A=1 make" }), Some("A=1 make")),
            ("x", json!({ "command": "deploy" }), None),
            ("x", json!({ "command": "" }), None),
            ("x", json!({ "command": { "command": "rm -rf /" } }), None),
            ("x_shell", json!({ "command": "deploy" }), Some("deploy")),
            (
                "execCommand",
                json!({ "command": "deploy" }),
                Some("deploy"),
            ),
            ("shellac", json!({ "command": "deploy" }), None),
            ("x", json!({ "script": "deploy now" }), None),
            ("x", json!({ "script": "cd a\nrm b" }), Some("cd a\nrm b")),
            (
                "x",
                json!({ "args": ["git", "commit", "-m", "a b"] }),
                Some("git commit -m 'a b'"),
            ),
            ("x", json!({ "args": ["commit"] }), None),
            ("x", json!({ "args": "git push" }), None),
            (
                "x",
                json!({ "command": "git", "args": ["push", 1] }),
                Some("git push 1"),
            ),
            (
                "x",
                json!({ "command": "git", "args": "push -f" }),
                Some("git push -f"),
            ),
            (
                "x",
                json!({ "command": ["sh", "-c", "rm *"] }),
                Some("sh -c 'rm *'"),
            ),
            (
                "x",
                json!({ "CMD": "ls -l", "shell": "bash" }),
                Some("ls -l"),
            ),
            ("x", json!({ "shell": "bash" }), Some("bash")),
            (
                "x",
                json!({ "cmd": "ls -l", "command": "rm -r a" }),
                Some("ls -l\nrm -r a"),
            ),
        ] {
            assert_eq!(find(name, &input).as_deref(), line, "{name} {input}");
        }
    }

    #[test]
    fn the_page_about_tools_lists_every_program_and_every_part_of_a_name() {
        let page = include_str!("../../../../../docs/reference/tools.md");
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        };
        let programs: Vec<&str> = PROGRAMS.split(' ').collect();
        assert!(page.contains(&format!("The programs are these: {}.", shown(&programs))));
        let (last, others) = SHELL_NAMES.split_last().unwrap();
        let parts = format!("one of its parts is {} or `{last}`.", shown(others));
        assert!(page.contains(&parts));
        assert!(programs.is_sorted());
    }

    proptest! {
        #[test]
        fn a_changed_line_goes_back_and_other_arguments_stay(
            line in "[a-z./;-]{1,8} [a-z./;-]{1,8}",
            other in "[a-z ]{0,9}",
            field in "(command|cmd|Command)",
        ) {
            let input = json!({ (field.clone()): "ls -l", "description": other.clone() });
            let input = input.as_object().unwrap();
            let found = FoundCommand::find("x", input).unwrap();
            let mut shell = found.shell_input(input);
            prop_assert_eq!(&shell[LINE], "ls -l");
            prop_assert_eq!(&found.own_input(&shell).unwrap(), input);
            shell.insert(LINE.to_owned(), line.clone().into());
            let own = found.own_input(&shell).unwrap();
            prop_assert_eq!(own, json!({ field: line, "description": other }).as_object().unwrap().clone());
        }

        #[test]
        fn words_are_quoted_so_that_none_is_split(word in "[ a-z'\"$;\\\\]{1,9}") {
            let line = find("x", &json!({ "args": ["rm", word.clone()] })).unwrap();
            let plain = format!("rm {word}");
            let quoted = line.starts_with("rm '") && line.ends_with('\'');
            prop_assert!(line == plain || quoted);
        }
    }
}
