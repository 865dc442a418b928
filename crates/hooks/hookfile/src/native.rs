//! Reads native hook files, which have the keys `version`, `defaults` and `hooks`.

use std::time::Duration;

use tenterhook_engine::{Matcher, OnError, Phase};
use tenterhook_process::Shell;
use tenterhook_protocol::{EventKind, ParseEventNameError, events};
use tenterhook_systems::docker_agent::DockerAgent;
use tenterhook_systems::native::Native;

use crate::declaration::{DeclaredEvent, HookAction, HookDeclaration};
use crate::definition::Definition;
use crate::excerpt::shorten;
use crate::fields::{Empty, Fields, wrong};
use crate::hook_names::HookNames;
use crate::http::HttpDeclaration;
use crate::import_entry::ImportEntry;
use crate::matcher::compile_matcher;
use crate::model;
use crate::native_keys::{DEFAULT_KEYS, FILE_KEYS, HOOK_KEYS, NativeKey, names};
use crate::problem::Problem;
use crate::report::Report;
use crate::source::Span;
use crate::suggest::{nearest, one_of};
use crate::timeout;
use crate::tree::Node;
use crate::unknown_tools;

/// The keys that say what a hook runs. A hook has exactly one of them.
const ACTIONS: [&str; 5] = ["command", "argv", "builtin", "http", "model"];

const SHELLS: [(&str, Shell); 3] = [
    ("sh", Shell::Sh),
    ("bash", Shell::Bash),
    ("pwsh", Shell::Pwsh),
];

/// The values for hooks that do not set their own.
#[derive(Debug, Default)]
struct Defaults {
    timeout: Option<Duration>,
    on_error: Option<OnError>,
    shell: Option<Shell>,
    working_dir: Option<(String, Span)>,
    env: Vec<(String, String)>,
}

/// The contents of a native file.
#[derive(Debug, Default)]
pub(crate) struct NativeFile {
    /// The hooks, in the order of the file.
    pub(crate) declarations: Vec<HookDeclaration>,
    /// The files that `import` names.
    pub(crate) imports: Vec<ImportEntry>,
}

/// Reads a native file.
pub(crate) fn read(report: &mut Report, root: &Node) -> NativeFile {
    if root.as_table().is_none() && !root.is_broken() {
        let message = format!("a hook file cannot be {}", root.describe());
        let problem = report.problem(root.span, message);
        report.add(problem.allowed("a mapping with the key `hooks`, in YAML, TOML or JSON"));
        return NativeFile::default();
    }
    if let (Some(cases), None) = (root.entry("cases"), root.entry("hooks")) {
        let message = "the file contains test cases, not hooks";
        let problem = report.problem(cases.key_span, message);
        report.add(problem.hint("run the cases with `tenterhook test FILE`"));
        return NativeFile::default();
    }
    let Some(file) = Fields::read(report, root, "a hook file", &names(FILE_KEYS), Empty::Wrong)
    else {
        return NativeFile::default();
    };
    if let Some(entry) = file.entry("version")
        && entry.value.as_number().and_then(|number| number.integer) != Some(1)
    {
        wrong::<()>(report, "version", &entry.value, "`1`");
    }
    let imports = read_imports(report, &file);
    let defaults = match file.entry("defaults") {
        Some(entry) if !entry.value.is_null() => read_defaults(report, &entry.value),
        _ => Defaults::default(),
    };
    let unknown_tools = unknown_tools::read(report, &file).map(|mut declaration| {
        declaration.definition = definition(&declaration, None, None);
        declaration
    });
    let mut declarations: Vec<HookDeclaration> = unknown_tools.into_iter().collect();
    let mut ids = HookNames::default();
    let hooks = file.entry("hooks").map(|entry| &entry.value);
    let Some(node) = hooks.filter(|node| !node.is_null()) else {
        return NativeFile {
            declarations,
            imports,
        };
    };
    let hooks = node
        .as_list()
        .or_else(|| wrong(report, "hooks", node, "a list of hooks"));
    let hooks = hooks.unwrap_or_default().iter();
    declarations.extend(hooks.filter_map(|hook| read_hook(report, hook, &defaults, &mut ids)));
    NativeFile {
        declarations,
        imports,
    }
}

/// The keys of an entry of `import` that is not only a path.
const IMPORT_KEYS: &[&str] = &["file", "env"];

/// Reads the files whose hooks belong to this file: one entry, or a list of them.
fn read_imports(report: &mut Report, fields: &Fields<'_>) -> Vec<ImportEntry> {
    let Some(entry) = fields.entry("import") else {
        return Vec::new();
    };
    let node = &entry.value;
    let nodes = match node.as_list() {
        Some(nodes) => nodes,
        None => std::slice::from_ref(node),
    };
    let entries = nodes.iter().filter_map(|node| read_import(report, node));
    entries.collect()
}

/// Reads an entry of `import`: a path, or a mapping with the path and variables.
fn read_import(report: &mut Report, node: &Node) -> Option<ImportEntry> {
    if node.as_table().is_none() {
        let text = node.as_text().filter(|text| !text.trim().is_empty());
        let expected = "a path, a mapping with `file` and `env`, or a list of them";
        let text = text.or_else(|| wrong(report, "import", node, expected))?;
        return Some(ImportEntry {
            path: text.to_owned(),
            span: node.span,
            variables: Vec::new(),
        });
    }
    let fields = Fields::read(
        report,
        node,
        "an entry of `import`",
        IMPORT_KEYS,
        Empty::Wrong,
    )?;
    let Some(file) = fields.full_text(report, "file") else {
        if !fields.has("file") {
            report.add(report.problem(fields.span, "an entry of `import` has no `file`"));
        }
        return None;
    };
    let variables = if fields.has("env") {
        fields.variables(report, "env")?
    } else {
        Vec::new()
    };
    Some(ImportEntry {
        path: file.text.to_owned(),
        span: file.span,
        variables,
    })
}

fn read_defaults(report: &mut Report, node: &Node) -> Defaults {
    let Some(fields) = Fields::read(report, node, "`defaults`", DEFAULT_KEYS, Empty::Wrong) else {
        return Defaults::default();
    };
    Defaults {
        timeout: timeout::native(report, &fields),
        on_error: on_error(report, &fields),
        shell: fields.choice(report, "shell", &SHELLS),
        working_dir: working_dir(report, &fields),
        env: env(report, &fields),
    }
}

fn read_hook(
    report: &mut Report,
    node: &Node,
    defaults: &Defaults,
    ids: &mut HookNames,
) -> Option<HookDeclaration> {
    let fields = Fields::read(report, node, "a hook", &names(HOOK_KEYS), Empty::Wrong)?;
    let name = read_name(report, &fields, ids);
    let configured = on_error(report, &fields);
    let mut events = read_events(report, &fields);
    check_on_error(report, &fields, &events, configured);
    for event in &mut events {
        let numbered = ids.numbered(event.name.as_str());
        event.id = name.clone().unwrap_or(numbered);
        // A default of `block` applies only to events that can be blocked. It is not an error on the others.
        event.on_error = configured.or(defaults
            .on_error
            .filter(|on_error| *on_error != OnError::Block || event.name.info().can_fail_closed()));
    }
    let matcher = read_matcher(report, &fields, &events);
    let action = read_action(report, &fields, defaults);
    let has_process = ["command", "argv", "builtin"]
        .iter()
        .any(|key| fields.has(key));
    let timeout = timeout::native(report, &fields).or(defaults.timeout);
    let working_dir = working_dir(report, &fields).or_else(|| defaults.working_dir.clone());
    let env = merged(&defaults.env, env(report, &fields));
    let strict_output = fields.boolean(report, "strict_output");
    let prewarm = fields.boolean(report, "prewarm");
    let (agent, phase, priority) = (
        read_agent(report, &fields),
        read_phase(report, &fields, action.as_ref().map(|(action, _)| action)),
        read_priority(report, &fields),
    );
    check_phase(report, &fields, phase, configured);
    // Return only now, after reading all keys, so that a single load reports all problems of the hook.
    let (action, action_span) = action?;
    let mut declaration = HookDeclaration {
        span: fields.span,
        events,
        matcher,
        agent,
        includes_unnamed: false,
        action,
        action_span,
        timeout,
        working_dir: working_dir.filter(|_| has_process),
        env: if has_process { env } else { Vec::new() },
        strict_output: strict_output.unwrap_or_default(),
        prewarm: prewarm.unwrap_or_default(),
        phase,
        priority,
        definition: Definition::default(),
        dialect: Native::new(),
    };
    declaration.definition = definition(
        &declaration,
        name.as_deref(),
        configured.or(defaults.on_error),
    );
    Some(declaration)
}

fn read_name(report: &mut Report, fields: &Fields<'_>, ids: &mut HookNames) -> Option<String> {
    let name = fields.full_text(report, "name")?;
    if name.text.contains(char::is_control) {
        report.add(report.problem(
            name.span,
            "`name` contains a line break or another control character",
        ));
        return None;
    }
    if name.text.contains('#') {
        let message = format!("the name `{}` contains `#`", shorten(name.text));
        report.add(
            report
                .problem(name.span, message)
                .allowed("a name without `#`: Tenterhook names unnamed hooks `EVENT#NUMBER`"),
        );
        return None;
    }
    let line = report.source().line_of(name.span.start);
    if let Err(first) = ids.reserve(name.text, line) {
        let message = format!(
            "the name `{}` is already used by the hook on line {first}",
            name.text
        );
        report.add(
            report
                .problem(name.span, message)
                .allowed("a name that no other hook in the file uses"),
        );
    }
    Some(name.text.to_owned())
}

fn read_events(report: &mut Report, fields: &Fields<'_>) -> Vec<DeclaredEvent> {
    let Some(entry) = fields.entry("event") else {
        report.add(
            report
                .problem(fields.span, "the hook has no `event`")
                .hint("add `event:` with the name of an event, or a list of names"),
        );
        return Vec::new();
    };
    let node = &entry.value;
    let mut events: Vec<DeclaredEvent> = Vec::new();
    let nodes = match node.as_list() {
        Some(nodes) if !nodes.is_empty() => nodes,
        _ => std::slice::from_ref(node),
    };
    for node in nodes {
        let Some(event) = read_event(report, node) else {
            continue;
        };
        if events.iter().any(|known| known.name == event.name) {
            let message = format!("`{}` is listed twice", event.name);
            report.add(report.problem(event.span, message));
        } else {
            events.push(event);
        }
    }
    events
}

fn read_event(report: &mut Report, node: &Node) -> Option<DeclaredEvent> {
    let Some(text) = node.as_text() else {
        return wrong(
            report,
            "event",
            node,
            "the name of an event, or a list of names",
        );
    };
    let problem = match text.parse() {
        Ok(name) => {
            return Some(DeclaredEvent {
                name,
                span: node.span,
                id: String::new(),
                on_error: None,
            });
        }
        Err(ParseEventNameError::Custom(_)) => report
            .problem(node.span, format!("unknown event `{}`", shorten(text)))
            .allowed("`x-<vendor>.<name>`, each part of the characters a-z, 0-9, `_` and `-`"),
        Err(_) => unknown_event(report, node.span, text),
    };
    report.add(problem);
    None
}

fn unknown_event(report: &Report, span: Span, text: &str) -> Problem {
    let problem = report
        .problem(span, format!("unknown event `{}`", shorten(text)))
        .allowed("an event of the catalogue, or `x-<vendor>.<name>`");
    match DockerAgent::event(text) {
        Some(event) => problem
            .suggestion(Some(event.kind.info().name))
            .hint(format!("`{text}` is docker-agent's name for the event")),
        None => problem.suggestion(report.nearest(text, events().map(|info| info.name))),
    }
}

fn on_error(report: &mut Report, fields: &Fields<'_>) -> Option<OnError> {
    let words = OnError::ALL.map(|on_error| (on_error.as_str(), on_error));
    fields.choice(report, "on_error", &words)
}

/// Reports `on_error: block` on an event that cannot stop anything.
fn check_on_error(
    report: &mut Report,
    fields: &Fields<'_>,
    events: &[DeclaredEvent],
    on_error: Option<OnError>,
) {
    let (Some(OnError::Block), Some(entry)) = (on_error, fields.entry("on_error")) else {
        return;
    };
    for event in events {
        let info = event.name.info();
        if !info.can_fail_closed() || info.kind == EventKind::Stop {
            let message = format!(
                "`on_error: block` is not supported on `{}`, because this event cannot be blocked",
                event.name
            );
            report.add(
                report
                    .problem(entry.value.span, message)
                    .allowed(one_of(["warn", "ignore"])),
            );
        }
    }
}

/// Reports `on_error: block` in the phase `observe`, which cannot block anything.
fn check_phase(report: &mut Report, fields: &Fields<'_>, phase: Phase, on_error: Option<OnError>) {
    let (Phase::Observe, Some(OnError::Block), Some(entry)) =
        (phase, on_error, fields.entry("on_error"))
    else {
        return;
    };
    let message =
        "`on_error: block` has no effect in the phase `observe`, which cannot block anything";
    report.add(
        report
            .problem(entry.value.span, message)
            .allowed(one_of(["warn", "ignore"])),
    );
}

fn read_matcher(report: &mut Report, fields: &Fields<'_>, events: &[DeclaredEvent]) -> Matcher {
    if let Some(entry) = fields.entry("matcher") {
        for event in events {
            if event.name.info().subject.is_none() {
                let message = format!("`{}` does not support matchers", event.name);
                report.add(
                    report
                        .problem(entry.key_span, message)
                        .hint("remove `matcher`"),
                );
            }
        }
    }
    compile_matcher(report, fields)
}

/// Reports a hook without anything to run.
fn report_no_action(report: &mut Report, fields: &Fields<'_>) {
    // A misspelt key is already reported, with a suggestion. A second problem would only confuse.
    let known = names(HOOK_KEYS);
    let is_misspelt = !report.is_full()
        && fields.entries().iter().take(known.len() * 2).any(|entry| {
            !known.contains(&entry.key.as_str())
                && nearest(&entry.key, known.iter().copied())
                    .is_some_and(|key| ACTIONS.contains(&key))
        });
    if !is_misspelt {
        report.add(
            report
                .problem(fields.span, "the hook has nothing to run")
                .allowed(format!("exactly one of {}", one_of(ACTIONS))),
        );
    }
}

/// Reads what a hook runs, and its position in the file.
fn read_action(
    report: &mut Report,
    fields: &Fields<'_>,
    defaults: &Defaults,
) -> Option<(HookAction, Span)> {
    let mut found = ACTIONS.iter().filter_map(|key| fields.entry(key));
    let Some(first) = found.next() else {
        report_no_action(report, fields);
        return None;
    };
    for other in found {
        let message = format!("`{}` cannot be combined with `{}`", other.key, first.key);
        report.add(
            report
                .problem(other.key_span, message)
                .allowed(format!("exactly one of {}", one_of(ACTIONS))),
        );
    }
    check_companions(report, fields, &first.key);
    let action = match first.key.as_str() {
        "command" => HookAction::Line {
            shell: fields
                .choice(report, "shell", &SHELLS)
                .or(defaults.shell)
                .unwrap_or_default(),
            line: fields.full_text(report, "command")?.text.to_owned(),
        },
        "argv" => HookAction::Argv(read_argv(report, fields)?),
        "builtin" => HookAction::Builtin {
            name: fields.full_text(report, "builtin")?.text.to_owned(),
            args: read_args(report, fields)?,
        },
        "model" => HookAction::Model(model::read(report, fields, &model::Models::new())?.0),
        "http" => HookAction::Http(HttpDeclaration::read(report, fields, "http")?.0),
        _ => return None,
    };
    Some((action, first.value.span))
}

fn read_argv(report: &mut Report, fields: &Fields<'_>) -> Option<Vec<String>> {
    let argv = fields.texts(report, "argv")?;
    if argv.first().is_none_or(|program| program.trim().is_empty()) {
        let span = fields.entry("argv")?.value.span;
        report.add(
            report
                .problem(span, "`argv` does not name a program")
                .allowed("a program and its arguments"),
        );
        return None;
    }
    Some(argv)
}

fn read_args(report: &mut Report, fields: &Fields<'_>) -> Option<Vec<String>> {
    match fields.entry("args") {
        Some(entry) if !entry.value.is_null() => fields.texts(report, "args"),
        _ => Some(Vec::new()),
    }
}

/// Reports keys that cannot be combined with the action of the hook.
fn check_companions(report: &mut Report, fields: &Fields<'_>, action: &str) {
    let companions = HOOK_KEYS.iter().filter(|key| !key.with.is_empty());
    for NativeKey {
        name: key, with, ..
    } in companions
    {
        if let Some(entry) = fields.entry(key)
            && !with.contains(&action)
        {
            let message = format!("`{key}` cannot be combined with `{action}`");
            let problem = report
                .problem(entry.key_span, message)
                .allowed(format!("`{key}` with {}", one_of(with.iter().copied())));
            report.add(match *key {
                "args" if action == "argv" => problem.hint("write the arguments into `argv`"),
                "args" => problem.hint("write the arguments into `command`"),
                _ => problem,
            });
        }
    }
}

fn read_agent(report: &mut Report, fields: &Fields<'_>) -> Option<String> {
    fields
        .full_text(report, "agent")
        .map(|agent| agent.text.to_owned())
}

fn read_phase(report: &mut Report, fields: &Fields<'_>, action: Option<&HookAction>) -> Phase {
    let words = Phase::ALL.map(|phase| (phase.as_str(), phase));
    let default = if action.is_some_and(HookAction::is_speech) {
        // Every other hook sees the text.
        Phase::Transform
    } else {
        Phase::Main
    };
    fields.choice(report, "phase", &words).unwrap_or(default)
}

fn read_priority(report: &mut Report, fields: &Fields<'_>) -> i32 {
    let Some(entry) = fields.entry("priority") else {
        return 0;
    };
    let number = entry.value.as_number().and_then(|number| number.integer);
    let in_range = number
        .filter(|priority| (-1000..=1000).contains(priority))
        .and_then(|priority| i32::try_from(priority).ok());
    in_range.unwrap_or_else(|| {
        wrong::<()>(
            report,
            "priority",
            &entry.value,
            "a whole number from -1000 to 1000",
        );
        0
    })
}

fn working_dir(report: &mut Report, fields: &Fields<'_>) -> Option<(String, Span)> {
    fields
        .full_text(report, "working_dir")
        .map(|dir| (dir.text.to_owned(), dir.span))
}

fn env(report: &mut Report, fields: &Fields<'_>) -> Vec<(String, String)> {
    match fields.entry("env") {
        Some(entry) if !entry.value.is_null() => {
            fields.variables(report, "env").unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn merged(defaults: &[(String, String)], own: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut env: Vec<_> = defaults
        .iter()
        .filter(|(name, _)| !own.iter().any(|(known, _)| known == name))
        .cloned()
        .collect();
    env.extend(own);
    env
}

fn definition(
    declaration: &HookDeclaration,
    name: Option<&str>,
    on_error: Option<OnError>,
) -> Definition {
    let definition = Definition::of("native")
        .field("name", name)
        .field(
            "timeout",
            declaration.timeout.map(|timeout| timeout.as_secs_f64()),
        )
        .field(
            "working_dir",
            declaration
                .working_dir
                .as_ref()
                .map(|(dir, _)| dir.as_str()),
        )
        .variables("env", &declaration.env)
        .field("on_error", on_error.map(OnError::as_str))
        .field("strict_output", declaration.strict_output.then_some(true))
        .field("phase", Some(declaration.phase.as_str()))
        .field("priority", Some(declaration.priority))
        .field("agent", declaration.agent.as_deref())
        .field("prewarm", declaration.prewarm.then_some(true));
    match &declaration.action {
        HookAction::Line { shell, line } => definition
            .field("shell", Some(shell_name(*shell)))
            .field("command", Some(line.as_str())),
        HookAction::Argv(argv) => definition.list("argv", argv),
        HookAction::Builtin { name, args } => definition
            .field("builtin", Some(name.as_str()))
            .list("args", args),
        HookAction::Model(model) => definition
            .field("model", Some(model.model.as_str()))
            .field("prompt", Some(model.prompt.as_str()))
            .field("schema", model.reply.schema_name()),
        HookAction::Http(http) => http.define(definition, "http"),
    }
}

fn shell_name(shell: Shell) -> &'static str {
    let named = SHELLS.iter().find(|(_, known)| *known == shell);
    named.map_or("sh", |(name, _)| name)
}
