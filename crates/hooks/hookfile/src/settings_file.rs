//! The files of coding agents in which people write hooks next to other settings: at the key `hooks`, an object
//! with a list for each event.
//!
//! The table of hook systems says what differs between these files.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tenterhook_engine::{EventClass, EventName, Matcher, OnError, Phase};
use tenterhook_process::Shell;
use tenterhook_systems::settings_file::{
    Condition, HookSettings, KeyEffect, KeyPlace, SettingsEvent,
};
use tenterhook_systems::{HookSystem, SYSTEMS, tools};

use crate::declaration::{DeclaredEvent, HookAction, HookDeclaration, quoted_for_shell};
use crate::definition::Definition;
use crate::excerpt::shorten;
use crate::fields::{Empty, Fields, Text, wrong};
use crate::hook_names::HookNames;
use crate::http::HttpDeclaration;
use crate::matcher::check_no_rule;
use crate::problem::Problem;
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

/// Reads the hooks of a file, in the order of the file. `variables` are those that the file which imports it sets.
pub(crate) fn read(
    report: &mut Report,
    root: &Node,
    system: &'static HookSystem,
    variables: &[(String, String)],
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
    let variables = Variables::read(report, &file, settings, variables);
    let mut reader = SettingsReader {
        report,
        system: system.name,
        settings,
        switches,
        variables,
        has_http_restriction: false,
        ids: HookNames::default(),
        declarations: Vec::new(),
    };
    reader.check_keys(KeyPlace::File, &file, "the file");
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

/// Returns the name of the variable after a `$`, and the text behind it. The name is empty if no name follows.
fn variable_name(text: &str) -> (&str, &str) {
    if let Some((name, rest)) = text.strip_prefix('{').and_then(|text| text.split_once('}')) {
        return (name, rest);
    }
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c| !is_of_name(c)).unwrap_or(text.len());
    text.split_at(end)
}

/// Returns the name of the first option of a plugin that a text has a placeholder for.
fn placeholder_of_option(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("${user_config.")?;
    Some(rest.split_once('}')?.0)
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

/// The variables that every hook of a file has, by their names.
#[derive(Debug, Default, Clone)]
struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Collects the variables: of the file, of the plugin that it belongs to, and of the file that imports it. Later
    /// ones replace earlier ones.
    fn read(
        report: &mut Report,
        file: &Fields<'_>,
        settings: &HookSettings,
        imported: &[(String, String)],
    ) -> Self {
        let mut all = BTreeMap::new();
        if settings.key(KeyPlace::File, "env") == Some(KeyEffect::Carried) && file.has("env") {
            all.extend(file.variables(report, "env").unwrap_or_default());
        }
        let path = std::path::absolute(report.source().path());
        if let (Some(plugin), Ok(path)) = (settings.plugin, path)
            && let Some(root) = plugin.root(&path)
        {
            let folder = root.to_string_lossy().into_owned();
            let names = plugin.root_variables.iter();
            all.extend(names.map(|name| ((*name).to_owned(), folder.clone())));
            let data = plugin.data_name(&root, None);
            let data = format!("${{env.HOME}}/{}/{data}", plugin.data);
            let names = plugin.data_variables.iter();
            all.extend(names.map(|name| ((*name).to_owned(), data.clone())));
        }
        all.extend(imported.iter().cloned());
        Self(all)
    }

    /// Returns a variable whose value is known when the file is read.
    fn known(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name).map(String::as_str);
        value.filter(|value| !value.contains("${env."))
    }
}

struct SettingsReader<'a> {
    report: &'a mut Report,
    system: &'static str,
    settings: &'static HookSettings,
    switches: Switches,
    variables: Variables,
    /// Whether the file restricts HTTP hooks in a way that is not known here.
    has_http_restriction: bool,
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
        self.check_keys(KeyPlace::Group, &fields, &what);
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
        if let Some(written) = written
            && event.kind.info().subject == Some("tool_name")
        {
            let known = tools::rows(self.system).iter().map(|row| row.name);
            let has_condition = !self.settings.conditions.is_empty();
            check_no_rule(self.report, written, known, has_condition);
        }
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
        self.check_keys(KeyPlace::Hook, &fields, "the hook");
        let event = group.event;
        let id = self.ids.numbered(event.name);
        let Some((condition_text, condition)) = self.condition(event, &fields) else {
            return;
        };
        let on_error = self.on_failure(event, &fields);
        let timeout = self.timeout(event, &fields);
        let is_async = fields.boolean(self.report, "async") == Some(true);
        let mut env = self.variables.0.clone();
        if self.settings.carries("env") && fields.has("env") {
            env.extend(fields.variables(self.report, "env").unwrap_or_default());
        }
        let working_dir = if self.settings.carries("cwd") {
            fields.full_text(self.report, "cwd")
        } else {
            None
        };
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
            env: env.into_iter().collect(),
            strict_output: false,
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
        declaration.definition = self.definition(group, condition_text, &declaration);
        self.declarations.push(declaration);
    }

    /// Reports the keys that do not do here what they do in the system. `what` has them.
    fn check_keys(&mut self, place: KeyPlace, fields: &Fields<'_>, what: &str) {
        for entry in fields.entries() {
            let key = entry.key.as_str();
            let (is_error, message) = match self.settings.key(place, key) {
                Some(
                    KeyEffect::Carried
                    | KeyEffect::Display
                    | KeyEffect::Separate(_)
                    | KeyEffect::OfOtherType,
                ) => continue,
                // A file has other settings, which are not about hooks.
                None if place == KeyPlace::File => continue,
                Some(KeyEffect::RefusedWithHttp) => {
                    self.has_http_restriction = true;
                    continue;
                }
                Some(KeyEffect::Ignored(instead)) => {
                    (false, format!("`{key}` is not supported: {instead}"))
                }
                Some(KeyEffect::Refused(why)) => (true, format!("`{key}` cannot be used: {why}")),
                None => (false, self.unknown_key(place, key, what)),
            };
            let problem = if is_error {
                self.report.problem(entry.key_span, message)
            } else {
                self.report.warning(entry.key_span, message)
            };
            self.report.add(problem);
        }
    }

    /// Describes a key that the system does not have in this place.
    fn unknown_key(&self, place: KeyPlace, key: &str, what: &str) -> String {
        let is_of_hook =
            place == KeyPlace::Group && self.settings.key(KeyPlace::Hook, key).is_some();
        let key = shorten(key);
        if is_of_hook {
            format!("`{key}` has no effect in {what}; write it in each of its hooks")
        } else {
            format!("the key `{key}` of {what} is unknown and has no effect")
        }
    }

    /// Reads the condition of a hook, as text and as read. Returns `None` if the hook is left out; the reason is
    /// reported.
    fn condition<'f>(
        &mut self,
        event: &SettingsEvent,
        fields: &Fields<'f>,
    ) -> Option<(Option<&'f str>, Option<Condition>)> {
        if !self.settings.carries("if") || !fields.has("if") {
            return Some((None, None));
        }
        let text = fields.text(self.report, "if")?;
        if text.text.trim().is_empty() {
            return Some((None, None));
        }
        let shown = shorten(text.text);
        if event.kind.info().subject != Some("tool_name") {
            let message = format!(
                "`if: {shown}` is about tools, so a hook of `{}` with it never runs",
                event.name
            );
            let problem = self.weakening(event, text.span, message);
            self.report
                .add(problem.hint("remove `if`, or write the hook for an event of tools"));
            return None;
        }
        match Condition::read(text.text, self.settings.conditions) {
            Ok(condition) => {
                if condition.is_partly_read() {
                    let message = format!(
                        "the pattern of `if: {shown}` is not read; the hook runs for every call of the tool"
                    );
                    self.report.add(self.report.warning(text.span, message));
                }
                Some((Some(text.text), Some(condition)))
            }
            Err(error) => {
                let message = format!("`if: {shown}` would never run the hook: {error}");
                let problem = self.report.problem(text.span, message);
                self.report.add(problem.allowed(
                    "a single rule such as `Bash`, `Bash(git *)` or `Edit(src/**)`; write a hook for each rule",
                ));
                None
            }
        }
    }

    /// Creates a problem with a hook that is left out: an error on gates, which would be weaker without it.
    fn weakening(&self, event: &SettingsEvent, span: Span, message: String) -> Problem {
        if event.kind.info().class == EventClass::Gate {
            self.report.problem(span, message)
        } else {
            self.report.warning(span, message)
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
            return self.http(fields);
        }
        if name != "command" {
            self.unavailable(event, name, span);
            return None;
        }
        if fields.has("exec") {
            let program = fields.full_text(self.report, "exec")?;
            return Some((self.argv(program, fields)?, program.span));
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
            return Some((self.argv(command, fields)?, command.span));
        }
        let words = [("bash", Shell::Bash), ("powershell", Shell::Pwsh)];
        let shell = fields.choice(self.report, "shell", &words);
        let shell = shell.unwrap_or(match *key {
            "bash" => Shell::Bash,
            "powershell" => Shell::Pwsh,
            _ => Shell::Sh,
        });
        self.check_placeholders(&[command.text], command.span)?;
        let line = self.with_known_folders(command.text);
        Some((HookAction::Line { shell, line }, command.span))
    }

    /// Reads a hook that posts to a URL. Its headers contain variables as a shell writes them.
    fn http(&mut self, fields: &Fields<'_>) -> Option<(HookAction, Span)> {
        let (mut http, span) = HttpDeclaration::read(self.report, fields, "url")?;
        if self.has_http_restriction {
            let message =
                "the file restricts HTTP hooks, and Tenterhook cannot apply its restrictions";
            let problem = self.report.problem(span, message);
            self.report
                .add(problem.hint(
                    "remove `allowedHttpHookUrls` and `httpHookAllowedEnvVars`, or the hook",
                ));
            return None;
        }
        // The systems also send requests to servers on this machine.
        http.allow_private = true;
        let allowed = if fields.has("allowedEnvVars") {
            fields.texts(self.report, "allowedEnvVars")?
        } else {
            Vec::new()
        };
        for header in &mut http.headers {
            header.value = self.header_value(&header.value, &allowed);
        }
        Some((HookAction::Http(http), span))
    }

    /// Returns the value of a header in our own form. A variable that is not allowed is empty.
    fn header_value(&self, value: &str, allowed: &[String]) -> String {
        let mut read = String::new();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once('$') {
            read.push_str(before);
            let (name, behind) = variable_name(after);
            rest = behind;
            match name {
                "" => read.push('$'),
                _ if !allowed.iter().any(|allowed| allowed == name) => {}
                _ => match self.variables.0.get(name) {
                    Some(value) => read.push_str(value),
                    None => read.extend(["${env.", name, "}"]),
                },
            }
        }
        read.push_str(rest);
        read
    }

    /// Reports placeholders that nothing replaces here, because the hook would run something else. Returns `None` if
    /// there are any.
    fn check_placeholders(&mut self, texts: &[&str], span: Span) -> Option<()> {
        let Some(plugin) = self.settings.plugin else {
            return Some(());
        };
        let folders = plugin.root_variables.iter().chain(plugin.data_variables);
        for name in folders.filter(|name| !self.variables.0.contains_key(**name)) {
            if texts
                .iter()
                .any(|text| text.contains(&format!("${{{name}}}")))
            {
                let message = format!("`${{{name}}}` has a value only in a plugin");
                let problem = self.report.problem(span, message);
                let expected = format!("a file in the folder `{}` of a plugin", plugin.folder);
                self.report.add(problem.allowed(expected));
                return None;
            }
        }
        if let Some(option) = texts.iter().find_map(|text| placeholder_of_option(text))
            && self
                .variables
                .known(&plugin.option_variable(option))
                .is_none()
        {
            let name = plugin.option_variable(option);
            let message = format!("the option `{option}` of the plugin has no value");
            let problem = self.report.problem(span, message);
            self.report.add(problem.hint(format!(
                "set `{name}` at the key `env` of the entry in `import`"
            )));
            return None;
        }
        Some(())
    }

    /// Replaces the folder of the plugin in a command line, so that an approval covers the files in it. A folder that a
    /// shell would read differently stays a variable.
    fn with_known_folders(&self, line: &str) -> String {
        let mut line = line.to_owned();
        let names = self
            .settings
            .plugin
            .map_or(&[][..], |plugin| plugin.root_variables);
        for name in names {
            let is_plain = |c: char| c.is_alphanumeric() || "_./+@-".contains(c);
            let value = self.variables.known(name);
            if let Some(value) = value.filter(|value| value.chars().all(is_plain)) {
                line = line.replace(&format!("${{{name}}}"), value);
            }
        }
        line
    }

    /// Returns a program with arguments. Placeholders whose values are not known yet are replaced when the hook runs.
    fn argv(&mut self, program: Text<'_>, fields: &Fields<'_>) -> Option<HookAction> {
        let mut argv = vec![program.text.to_owned()];
        if fields.has("args") {
            argv.extend(fields.texts(self.report, "args")?);
        }
        let texts: Vec<&str> = argv.iter().map(String::as_str).collect();
        self.check_placeholders(&texts, program.span)?;
        let mut placeholders = vec![(DIRECTORY.to_owned(), None)];
        if let Some(plugin) = self.settings.plugin {
            let folders = plugin.root_variables.iter().chain(plugin.data_variables);
            placeholders.extend(folders.map(|name| {
                let value = self.variables.known(name).map(str::to_owned);
                (format!("${{{name}}}"), value)
            }));
            let options = argv.iter().filter_map(|text| placeholder_of_option(text));
            placeholders.extend(options.map(|option| {
                let value = self.variables.known(&plugin.option_variable(option));
                (
                    format!("${{user_config.{option}}}"),
                    value.map(str::to_owned),
                )
            }));
        }
        for (placeholder, value) in &placeholders {
            if let Some(value) = value {
                argv = argv
                    .iter()
                    .map(|word| word.replace(placeholder, value))
                    .collect();
            }
        }
        let unknown = |word: &String| {
            let found = placeholders.iter().map(|(placeholder, _)| placeholder);
            found
                .filter(|it| word.contains(it.as_str()))
                .min_by_key(|it| word.find(it.as_str()))
                .cloned()
        };
        if !argv.iter().any(|word| unknown(word).is_some()) {
            return Some(HookAction::Argv(argv));
        }
        let word = |word: &String| {
            let mut written = String::new();
            let mut rest = word.clone();
            while let Some(placeholder) = unknown(&rest)
                && let Some((before, after)) = rest.split_once(placeholder.as_str())
            {
                if !before.is_empty() {
                    written.push_str(&quoted_for_shell(&[before]));
                }
                written.extend(["\"", &placeholder, "\""]);
                rest = String::from(after);
            }
            if written.is_empty() || !rest.is_empty() {
                written.push_str(&quoted_for_shell(&[rest]));
            }
            written
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
        let problem = if is_known {
            self.weakening(event, span, message)
        } else {
            self.report.problem(span, message)
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
