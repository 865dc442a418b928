//! The files of coding agents in which people write hooks next to other settings: at the key `hooks`, an object
//! with a list for each event.
//!
//! The table of hook systems says what differs between these files.

use std::path::Path;
use std::time::Duration;

use tenterhook_engine::{EventClass, EventName, Matcher, OnError, Phase};
use tenterhook_process::Shell;
use tenterhook_systems::settings_file::{HookSettings, SettingsEvent};
use tenterhook_systems::{HookSystem, SYSTEMS};

use crate::declaration::{DeclaredEvent, HookAction, HookDeclaration, quoted_for_shell};
use crate::definition::Definition;
use crate::excerpt::shorten;
use crate::fields::{Empty, Fields, wrong};
use crate::hook_names::HookNames;
use crate::http::HttpDeclaration;
use crate::report::Report;
use crate::source::Span;
use crate::suggest::one_of;
use crate::tree::{Entry, Node};

/// The longest timeout of a hook.
const MAX_TIMEOUT: Duration = Duration::from_hours(24);
/// The placeholder for the directory of the project, which is also a variable of the hook.
const DIRECTORY: &str = "${CLAUDE_PROJECT_DIR}";

/// The name of the program by which agents call Tenterhook.
const SHIM: &str = "tenterhook-shim";

/// The types of hooks that run here.
const TYPES: [&str; 2] = ["command", "http"];
/// The types of hooks that need the agent's own model or connections.
const UNAVAILABLE: [&str; 4] = ["prompt", "agent", "mcp_tool", "function"];
/// The keys of a hook that have no effect on which answer it gives.
const OTHER_KEYS: &[&str] = &[
    "type",
    "name",
    "description",
    "statusMessage",
    "async",
    "asyncRewake",
    "once",
    "if",
    "onFailure",
    "shell",
    "args",
    "exec",
    "env",
    "cwd",
    "matcher",
    "url",
    "headers",
    "allowedEnvVars",
    "additionalContextLimit",
    "commandWindows",
    "powershell",
    "prompt",
    "model",
    "continueOnBlock",
    "server",
    "tool",
    "input",
];

/// Returns the system whose settings a file contains, by its path or else by the names of its events. Returns
/// `None` for other files.
pub(crate) fn system_of(path: &Path, root: &Node) -> Option<&'static HookSystem> {
    let hooks = root.entry("hooks").map(|entry| &entry.value);
    let events = hooks.and_then(Node::as_table);
    if hooks.is_some() && events.is_none() {
        return None;
    }
    let in_place = |system: &&&HookSystem| {
        let places = system.settings.map_or(&[][..], |settings| settings.places);
        let mut parts = path.components();
        parts.any(|part| places.iter().any(|place| part.as_os_str() == *place))
    };
    // Systems share names of events, so the one that knows most of them counts. Of several, it is the first.
    let known = |system: &&&HookSystem| {
        let settings = system.settings;
        let events = events.unwrap_or_default().iter();
        let is_known = |key: &str| settings.is_some_and(|it| it.event(key).is_some());
        events.filter(|event| is_known(&event.key)).count()
    };
    let by_events = || {
        let best = SYSTEMS.iter().rev().max_by_key(known);
        best.filter(|system| known(system) > 0)
    };
    SYSTEMS.iter().find(in_place).or_else(by_events).copied()
}

/// Reads the hooks of a file, in the order of the file.
pub(crate) fn read(
    report: &mut Report,
    root: &Node,
    system: &'static HookSystem,
) -> Vec<HookDeclaration> {
    let Some(settings) = system.settings else {
        return Vec::new();
    };
    let Some(file) = Fields::any(report, root, "a file of settings", Empty::Absent) else {
        return Vec::new();
    };
    if let Some(entry) = file.entry("disableAllHooks")
        && file.boolean(report, "disableAllHooks") == Some(true)
    {
        let message = "`disableAllHooks` is set, so none of the hooks of this file run";
        report.add(report.warning(entry.key_span, message));
        return Vec::new();
    }
    let Some(switches) = Switches::read(report, &file, settings) else {
        return Vec::new();
    };
    let Some(hooks) = file.entry("hooks") else {
        return Vec::new();
    };
    let mut reader = SettingsReader {
        report,
        system: system.name,
        settings,
        switches,
        ids: HookNames::default(),
        declarations: Vec::new(),
    };
    for entry in hooks.value.as_table().unwrap_or_default() {
        reader.read_event(entry);
    }
    reader.declarations
}

/// The hooks of a file that are switched off.
#[derive(Debug, Default)]
struct Switches {
    /// Names and command lines.
    disabled: Vec<String>,
}

impl Switches {
    /// Reads the switches of a file. Returns `None` if all hooks are switched off.
    fn read(report: &mut Report, file: &Fields<'_>, settings: &HookSettings) -> Option<Self> {
        let entry = settings.switches_key.and_then(|key| file.entry(key));
        let Some(entry) = entry else {
            return Some(Self::default());
        };
        let key = &entry.key;
        let switches = Fields::any(report, &entry.value, key, Empty::Absent)?;
        if let Some(entry) = switches.entry("enabled")
            && switches.boolean(report, "enabled") == Some(false)
        {
            let message =
                format!("`{key}.enabled` is false, so none of the hooks of this file run");
            report.add(report.warning(entry.key_span, message));
            return None;
        }
        let disabled = if switches.has("disabled") {
            switches.texts(report, "disabled").unwrap_or_default()
        } else {
            Vec::new()
        };
        Some(Self { disabled })
    }

    /// Returns whether a hook is switched off, by its name or its command line.
    fn has(&self, fields: &Fields<'_>, action: &HookAction) -> bool {
        let name = fields.entry("name").and_then(|entry| entry.value.as_text());
        let line = shell_line(action);
        let mut disabled = self.disabled.iter();
        disabled.any(|it| Some(it.as_str()) == name || Some(it.as_str()) == line)
    }
}

/// Returns the line that a shell runs, if the hook has one.
fn shell_line(action: &HookAction) -> Option<&str> {
    if let HookAction::Line { line, .. } = action {
        return Some(line);
    }
    None
}

/// Returns whether a command line starts the program by which agents call Tenterhook.
fn is_shim(line: &str) -> bool {
    let line = line.trim_start();
    let program = match line.strip_prefix('\'') {
        Some(quoted) => quoted.split('\'').next(),
        None => line.split_whitespace().next(),
    };
    let name = program.and_then(|program| Path::new(program).file_stem());
    name.is_some_and(|name| name == SHIM)
}

struct SettingsReader<'a> {
    report: &'a mut Report,
    system: &'static str,
    settings: &'static HookSettings,
    switches: Switches,
    ids: HookNames,
    declarations: Vec<HookDeclaration>,
}

/// What a hook inherits from its event and its group.
#[derive(Clone)]
struct Group {
    event: &'static SettingsEvent,
    matcher: Matcher,
}

impl SettingsReader<'_> {
    fn read_event(&mut self, entry: &Entry) {
        let Some(event) = self.settings.event(&entry.key) else {
            if !self.settings.other_keys.contains(&entry.key.as_str()) {
                self.unknown_event(entry);
            }
            return;
        };
        let Some(items) = entry.value.as_list() else {
            if !entry.value.is_null() {
                wrong::<()>(self.report, event.name, &entry.value, "a list");
            }
            return;
        };
        for item in items {
            if self.settings.has_groups {
                self.read_group(event, item);
            } else if let Some(fields) = Fields::any(self.report, item, "a hook", Empty::Absent) {
                let group = self.group(event, &fields);
                self.read_hook(&group, item);
            }
        }
    }

    /// Reports an event that the system does not have. The file may be for a newer version of it.
    fn unknown_event(&mut self, entry: &Entry) {
        let names = self.settings.events.iter().map(|event| event.name);
        let message = format!(
            "unknown event `{}`; its hooks do not run",
            shorten(&entry.key)
        );
        let problem = self.report.warning(entry.key_span, message);
        let suggestion = self.report.nearest(&entry.key, names);
        self.report.add(problem.suggestion(suggestion));
    }

    fn read_group(&mut self, event: &'static SettingsEvent, node: &Node) {
        let what = format!("an entry of `{}`", event.name);
        let Some(fields) = Fields::any(self.report, node, &what, Empty::Absent) else {
            return;
        };
        let group = self.group(event, &fields);
        let hooks = fields.entry("hooks").map(|entry| &entry.value);
        let Some(hooks) = hooks.and_then(Node::as_list) else {
            let message = format!("{what} has no list `hooks`");
            self.report.add(self.report.problem(fields.span, message));
            return;
        };
        for hook in hooks {
            self.read_hook(&group, hook);
        }
    }

    /// Reads the matcher. An event without matchers ignores it.
    fn group(&mut self, event: &'static SettingsEvent, fields: &Fields<'_>) -> Group {
        let written = fields.text(self.report, "matcher");
        let written = written.filter(|_| event.has_matcher);
        let text = written.map_or("", |written| written.text);
        let matcher = Matcher::parse(&self.settings.matchers.whole(text));
        let matcher = matcher.unwrap_or_else(|error| {
            let reason = error.source.to_string();
            let reason = reason.lines().last().unwrap_or_default();
            let message = format!("invalid matcher `{}`: {}", shorten(text), reason.trim());
            let span = written.map_or(fields.span, |written| written.span);
            self.report.add(self.report.problem(span, message));
            Matcher::everything()
        });
        Group {
            event,
            matcher: matcher.shown_as(text),
        }
    }

    fn read_hook(&mut self, group: &Group, node: &Node) {
        let Some(fields) = Fields::any(self.report, node, "a hook", Empty::Absent) else {
            return;
        };
        self.warn_of_keys(&fields);
        let event = group.event;
        let id = self.ids.numbered(event.name);
        let condition = fields.text(self.report, "if").map(|text| text.text);
        let on_error = self.on_failure(event, &fields);
        let timeout = self.timeout(event, &fields);
        let is_async = fields.boolean(self.report, "async") == Some(true);
        let env = fields.entry("env");
        let env = env.and_then(|_| fields.variables(self.report, "env"));
        let working_dir = fields.full_text(self.report, "cwd");
        let Some((action, action_span)) = self.action(event, &fields) else {
            return;
        };
        // The entry by which the agent calls Tenterhook would make Tenterhook call itself.
        let is_own = shell_line(&action).is_some_and(is_shim);
        if is_own || self.switches.has(&fields, &action) {
            return;
        }
        let mut declaration = HookDeclaration {
            span: fields.span,
            events: vec![DeclaredEvent {
                name: EventName::Known(event.kind),
                span: fields.span,
                id,
                on_error,
            }],
            matcher: group.matcher.clone(),
            agent: None,
            includes_unnamed: false,
            action,
            action_span,
            timeout: Some(timeout),
            working_dir: working_dir.map(|dir| (dir.text.to_owned(), dir.span)),
            env: env.unwrap_or_default(),
            strict_output: false,
            python: None,
            prewarm: false,
            // The agent does not wait for the hook, so its answer cannot count.
            phase: if is_async {
                Phase::Observe
            } else {
                Phase::Main
            },
            priority: 0,
            definition: Definition::default(),
            dialect: (self.settings.dialect)(event, condition),
        };
        declaration.definition = self.definition(group, condition, &declaration);
        self.declarations.push(declaration);
    }

    /// Warns about keys that have no effect here.
    fn warn_of_keys(&mut self, fields: &Fields<'_>) {
        let settings = self.settings;
        for entry in fields.entries() {
            let key = entry.key.as_str();
            let is_known = OTHER_KEYS.contains(&key)
                || settings.command_keys.contains(&key)
                || settings.timeout_key == key;
            let message = match key {
                "once" => "`once` has no effect in a file of settings; the hook runs every time",
                "asyncRewake" => "`asyncRewake` is not supported; the hook does not wake the agent",
                _ if is_known => continue,
                _ => "this key is unknown and has no effect",
            };
            self.report
                .add(self.report.warning(entry.key_span, message));
        }
    }

    fn on_failure(&mut self, event: &SettingsEvent, fields: &Fields<'_>) -> Option<OnError> {
        let words = [("block", OnError::Block), ("allow", OnError::Warn)];
        let chosen = fields.choice(self.report, "onFailure", &words)?;
        // Elsewhere, the key has no effect.
        let is_gate = event.kind.info().class == EventClass::Gate;
        is_gate.then_some(chosen)
    }

    fn timeout(&mut self, event: &SettingsEvent, fields: &Fields<'_>) -> Duration {
        let default = event.timeout.unwrap_or(self.settings.default_timeout);
        let key = self.settings.timeout_key;
        let Some(entry) = fields.entry(key) else {
            return default;
        };
        let unit = self.settings.timeout_unit.as_secs_f64();
        let number = entry.value.as_number();
        let timeout = number.and_then(|it| Duration::try_from_secs_f64(it.float * unit).ok());
        let Some(timeout) = timeout.filter(|timeout| !timeout.is_zero()) else {
            wrong::<()>(self.report, key, &entry.value, "a number greater than 0");
            return default;
        };
        timeout.min(MAX_TIMEOUT)
    }

    fn action(&mut self, event: &SettingsEvent, fields: &Fields<'_>) -> Option<(HookAction, Span)> {
        let kind = fields.text(self.report, "type");
        let name = kind.map_or("command", |kind| kind.text);
        let span = kind.map_or(fields.span, |kind| kind.span);
        if name == "http" {
            let (mut http, span) = HttpDeclaration::read(self.report, fields, "url")?;
            // The systems also send requests to servers on this machine.
            http.allow_private = true;
            return Some((HookAction::Http(http), span));
        }
        if name != "command" {
            self.unavailable(event, name, span);
            return None;
        }
        if fields.has("exec") {
            let program = fields.full_text(self.report, "exec")?;
            return Some((self.argv(program.text, fields)?, program.span));
        }
        let mut keys = self.settings.command_keys.iter();
        let Some(key) = keys.find(|key| fields.has(key)) else {
            let message = "the hook has no command";
            let problem = self.report.problem(fields.span, message);
            let keys = self.settings.command_keys.iter().copied();
            self.report.add(problem.allowed(one_of(keys)));
            return None;
        };
        let command = fields.full_text(self.report, key)?;
        if fields.has("args") {
            return Some((self.argv(command.text, fields)?, command.span));
        }
        let words = [("bash", Shell::Bash), ("powershell", Shell::Pwsh)];
        let shell = fields.choice(self.report, "shell", &words);
        let shell = shell.unwrap_or(if *key == "bash" {
            Shell::Bash
        } else {
            Shell::Sh
        });
        let line = command.text.to_owned();
        Some((HookAction::Line { shell, line }, command.span))
    }

    /// Returns a program with arguments. Placeholders are replaced when the hook runs, because the directory is not
    /// known earlier.
    fn argv(&mut self, program: &str, fields: &Fields<'_>) -> Option<HookAction> {
        let mut argv = vec![program.to_owned()];
        if fields.has("args") {
            argv.extend(fields.texts(self.report, "args")?);
        }
        if !argv.iter().any(|word| word.contains(DIRECTORY)) {
            return Some(HookAction::Argv(argv));
        }
        let word = |word: &String| {
            let parts = word.split(DIRECTORY).map(|part| match part {
                "" => String::new(),
                part => quoted_for_shell(&[part]),
            });
            parts.collect::<Vec<_>>().join(&format!("\"{DIRECTORY}\""))
        };
        let words = argv.iter().map(word).collect::<Vec<_>>();
        Some(HookAction::Line {
            shell: Shell::Sh,
            line: format!("exec {}", words.join(" ")),
        })
    }

    /// Reports a type of hook that does not run here. On a gate, leaving it out would weaken the gate.
    fn unavailable(&mut self, event: &SettingsEvent, name: &str, span: Span) {
        let is_known = UNAVAILABLE.contains(&name);
        let message = if is_known {
            format!("hooks of the type `{name}` need the agent that they were written for")
        } else {
            format!("unknown type of hook `{}`", shorten(name))
        };
        let is_gate = event.kind.info().class == EventClass::Gate;
        let problem = if is_gate || !is_known {
            self.report.problem(span, message)
        } else {
            self.report.warning(span, message)
        };
        self.report.add(problem.allowed(one_of(TYPES)));
    }

    /// Returns everything that distinguishes a hook from others.
    fn definition(
        &self,
        group: &Group,
        condition: Option<&str>,
        declaration: &HookDeclaration,
    ) -> Definition {
        let timeout = declaration.timeout.map(|timeout| timeout.as_secs_f64());
        let dir = declaration
            .working_dir
            .as_ref()
            .map(|(dir, _)| dir.as_str());
        let event = declaration.events.first();
        let on_error = event.and_then(|event| event.on_error);
        let definition = Definition::of(self.system)
            .field("event", Some(group.event.name))
            .field("matcher", Some(group.matcher.as_str()))
            .field("if", condition)
            .field("timeout", timeout)
            .field("working_dir", dir)
            .variables("env", &declaration.env)
            .field("on_error", on_error.map(OnError::as_str))
            .field("phase", Some(declaration.phase.as_str()));
        match &declaration.action {
            HookAction::Line { shell, line } => definition
                .field("shell", Some(format!("{shell:?}").to_ascii_lowercase()))
                .field("command", Some(line.as_str())),
            HookAction::Argv(argv) => definition.list("argv", argv),
            HookAction::Http(http) => http.define(definition, "url"),
            HookAction::Builtin { .. } | HookAction::Model(_) => definition,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook_file::{HookFile, read};
    use crate::source::SourceText;

    fn read_file(path: &str, text: &str) -> (HookFile, Vec<String>) {
        let mut report = Report::new(SourceText::new(Path::new(path), text));
        let file = read(&mut report);
        let problems = report.into_problems().into_iter();
        (file, problems.map(|problem| problem.message).collect())
    }

    fn lines(file: &HookFile) -> Vec<&str> {
        let declarations = file.declarations.iter();
        declarations
            .filter_map(|it| shell_line(&it.action))
            .collect()
    }

    const GEMINI: &str = r#"{
        "general": { "vimMode": true },
        "hooksConfig": { "disabled": ["old", "./noisy.sh"] },
        "hooks": {
            "SessionStart": [{ "hooks": [{ "type": "command", "command": "./start.sh" }] }],
            "BeforeTool": [
                {
                    "matcher": "run_shell_command|write_.*",
                    "sequential": true,
                    "hooks": [
                        { "type": "command", "name": "policy", "command": "./policy.sh", "timeout": 10000 },
                        { "type": "command", "name": "old", "command": "./old.sh" },
                        { "type": "command", "command": "./noisy.sh" }
                    ]
                },
                { "hooks": [{ "command": "'/d/bin/tenterhook-shim' gemini BeforeTool" }] }
            ]
        }
    }"#;

    #[test]
    fn gemini_settings_are_hooks() {
        let (file, problems) = read_file("/p/.gemini/settings.json", GEMINI);
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(file.system, "gemini");
        assert_eq!(lines(&file), ["./start.sh", "./policy.sh"]);
        let [start, policy] = file.declarations.as_slice() else {
            unreachable!("two hooks");
        };
        assert_eq!(start.timeout, Some(Duration::from_mins(1)));
        assert_eq!(policy.timeout, Some(Duration::from_secs(10)));
        for (tool, expected) in [
            ("run_shell_command", true),
            ("write_file", true),
            ("read_file", false),
        ] {
            assert_eq!(policy.matcher.matches(Some(tool)), expected, "{tool}");
        }
    }

    #[test]
    fn a_file_in_another_place_belongs_to_the_system_that_knows_most_of_its_events() {
        let (file, _) = read_file("/elsewhere/settings.json", GEMINI);
        assert_eq!(file.system, "gemini");
        let claude = GEMINI.replace("BeforeTool", "PreToolUse");
        let (file, _) = read_file("/elsewhere/settings.json", &claude);
        assert_eq!(file.system, "claude-code");
    }

    #[test]
    fn switched_off_hooks_do_not_run() {
        let off = GEMINI.replace("\"disabled\"", "\"enabled\": false, \"disabled\"");
        let (file, problems) = read_file("/p/.gemini/settings.json", &off);
        assert_eq!(lines(&file), Vec::<&str>::new());
        let message = "`hooksConfig.enabled` is false, so none of the hooks of this file run";
        assert_eq!(problems, [message]);
    }

    #[test]
    fn the_entry_by_which_an_agent_calls_tenterhook_is_found() {
        for (line, expected) in [
            ("/data/bin/tenterhook-shim claude-code PreToolUse", true),
            ("'/my data/bin/tenterhook-shim' codex Stop", true),
            ("./guard.sh tenterhook-shim", false),
            ("test -x tenterhook-shim && ./guard.sh", false),
        ] {
            assert_eq!(is_shim(line), expected, "{line}");
        }
    }
}
