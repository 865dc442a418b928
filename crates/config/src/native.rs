//! Native hook files: `version`, `defaults`, `hooks`.

use std::time::Duration;

use tenterhook::{AnswerEnd, Matcher, OnError, Phase};
use tenterhook_dialects::docker_agent::DockerAgent;
use tenterhook_process::Shell;
use tenterhook_protocol::{EventKind, ParseEventNameError, events};

use crate::draft::{Action, Definition, Draft, DraftEvent, Ids};
use crate::fields::{Empty, Fields, Text, wrong};
use crate::http::HttpAction;
use crate::model;
use crate::python;
use crate::report::Report;
use crate::source::Span;
use crate::suggest::{nearest, one_of};
use crate::timeout;
use crate::tree::{Node, shorten};

/// The keys of the file.
const FILE: &[&str] = &["version", "defaults", "hooks"];
/// The keys of `defaults`.
const DEFAULTS: &[&str] = &["timeout", "on_error", "shell", "working_dir", "env"];
/// The keys of a hook.
const HOOK: &[&str] = &[
    "name",
    "event",
    "matcher",
    "command",
    "argv",
    "builtin",
    "http",
    "model",
    "args",
    "prompt",
    "schema",
    "headers",
    "allow_private",
    "prewarm",
    "answer",
    "python",
    "shell",
    "timeout",
    "working_dir",
    "env",
    "on_error",
    "phase",
    "priority",
    "strict_output",
    "agent",
];
/// The keys of which a hook has one.
const ACTIONS: [&str; 5] = ["command", "argv", "builtin", "http", "model"];

/// When a command has answered.
const ANSWERS: [(&str, AnswerEnd); 2] = [("exit", AnswerEnd::Exit), ("line", AnswerEnd::Line)];

const SHELLS: [(&str, Shell); 3] = [
    ("sh", Shell::Sh),
    ("bash", Shell::Bash),
    ("pwsh", Shell::Pwsh),
];

/// The values that hooks of the file have where they do not say their own.
#[derive(Debug, Default)]
struct Defaults {
    timeout: Option<Duration>,
    on_error: Option<OnError>,
    shell: Option<Shell>,
    working_dir: Option<(String, Span)>,
    env: Vec<(String, String)>,
}

/// Reads the hooks of a native file, in the order of the file.
pub(crate) fn read(report: &mut Report, root: &Node) -> Vec<Draft> {
    let Some(file) = Fields::read(report, root, "a hook file", FILE, Empty::Wrong) else {
        return Vec::new();
    };
    if let Some(entry) = file.entry("version")
        && entry.value.as_number().and_then(|number| number.integer) != Some(1)
    {
        wrong::<()>(report, "version", &entry.value, "`1`");
    }
    let defaults = match file.entry("defaults") {
        Some(entry) if !entry.value.is_null() => read_defaults(report, &entry.value),
        _ => Defaults::default(),
    };
    let mut ids = Ids::default();
    let hooks = file.entry("hooks").map(|entry| &entry.value);
    let Some(node) = hooks.filter(|node| !node.is_null()) else {
        return Vec::new();
    };
    let hooks = node
        .as_list()
        .or_else(|| wrong(report, "hooks", node, "a list of hooks"));
    hooks
        .unwrap_or_default()
        .iter()
        .filter_map(|hook| read_hook(report, hook, &defaults, &mut ids))
        .collect()
}

fn read_defaults(report: &mut Report, node: &Node) -> Defaults {
    let Some(fields) = Fields::read(report, node, "`defaults`", DEFAULTS, Empty::Wrong) else {
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
    ids: &mut Ids,
) -> Option<Draft> {
    let fields = Fields::read(report, node, "a hook", HOOK, Empty::Wrong)?;
    let name = read_name(report, &fields, ids);
    let configured = on_error(report, &fields);
    let mut events = read_events(report, &fields);
    check_on_error(report, &fields, &events, configured);
    for event in &mut events {
        let numbered = ids.numbered(event.name.as_str());
        event.id = name.clone().unwrap_or(numbered);
        // A default of `block` is for the hooks that it can have a meaning for.
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
    let answer = fields.choice(report, "answer", &ANSWERS);
    let (agent, phase, priority) = (
        read_agent(report, &fields),
        read_phase(report, &fields),
        read_priority(report, &fields),
    );
    check_phase(report, &fields, phase, configured);
    // Everything is read by now, so that one load reports everything that is wrong with the hook.
    let (action, action_span) = action?;
    let python = python::read(report, &fields, &action, action_span);
    let mut draft = Draft {
        span: fields.span,
        events,
        matcher,
        agent,
        action,
        action_span,
        shown: None,
        timeout,
        working_dir: working_dir.filter(|_| has_process),
        env: if has_process { env } else { Vec::new() },
        strict_output: strict_output.unwrap_or_default(),
        python,
        prewarm: prewarm.unwrap_or_default(),
        answer: answer.unwrap_or_default(),
        phase,
        priority,
        definition: String::new(),
        dialect: DockerAgent::native(),
    };
    draft.definition = definition(&draft, name.as_deref(), configured.or(defaults.on_error));
    Some(draft)
}

fn read_name(report: &mut Report, fields: &Fields<'_>, ids: &mut Ids) -> Option<String> {
    let name = fields.full_text(report, "name")?;
    if name.text.contains(char::is_control) {
        report.add(report.problem(name.span, "`name` has more than one line"));
        return None;
    }
    if name.text.contains('#') {
        let message = format!("the name `{}` has a `#`", shorten(name.text));
        report.add(
            report
                .problem(name.span, message)
                .allowed("a name without it: hooks without a name are called `EVENT#NUMBER`"),
        );
        return None;
    }
    let line = report.source().line_of(name.span.start);
    if let Err(first) = ids.take(name.text, line) {
        let message = format!(
            "the name `{}` is taken by the hook on line {first}",
            name.text
        );
        report.add(
            report
                .problem(name.span, message)
                .allowed("a name that no other hook of the file has"),
        );
    }
    Some(name.text.to_owned())
}

fn read_events(report: &mut Report, fields: &Fields<'_>) -> Vec<DraftEvent> {
    let Some(entry) = fields.entry("event") else {
        report.add(
            report
                .problem(fields.span, "the hook has no `event`")
                .hint("add `event:` with the name of an event, or a list of names"),
        );
        return Vec::new();
    };
    let node = &entry.value;
    let mut events: Vec<DraftEvent> = Vec::new();
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

fn read_event(report: &mut Report, node: &Node) -> Option<DraftEvent> {
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
            return Some(DraftEvent {
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

fn unknown_event(report: &Report, span: Span, text: &str) -> crate::problem::Problem {
    let problem = report
        .problem(span, format!("unknown event `{}`", shorten(text)))
        .allowed("an event of the catalogue, or `x-<vendor>.<name>`");
    match DockerAgent::event(text) {
        Some(event) => problem
            .suggestion(Some(event.kind.info().name))
            .hint(format!("`{text}` is docker-agent's name of the event")),
        None => problem.suggestion(report.nearest(text, events().map(|info| info.name))),
    }
}

fn on_error(report: &mut Report, fields: &Fields<'_>) -> Option<OnError> {
    let words = OnError::ALL.map(|on_error| (on_error.as_str(), on_error));
    fields.choice(report, "on_error", &words)
}

/// Reports `on_error: block` where nothing can be stopped.
fn check_on_error(
    report: &mut Report,
    fields: &Fields<'_>,
    events: &[DraftEvent],
    on_error: Option<OnError>,
) {
    let (Some(OnError::Block), Some(entry)) = (on_error, fields.entry("on_error")) else {
        return;
    };
    for event in events {
        let info = event.name.info();
        if !info.can_fail_closed() || info.kind == EventKind::Stop {
            let message = format!(
                "`on_error: block` is not supported on `{}`, which stops nothing",
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

/// Refuses a hook that is to stop something in a phase that stops nothing.
fn check_phase(report: &mut Report, fields: &Fields<'_>, phase: Phase, on_error: Option<OnError>) {
    let (Phase::Observe, Some(OnError::Block), Some(entry)) =
        (phase, on_error, fields.entry("on_error"))
    else {
        return;
    };
    let message = "`on_error: block` has no effect in the phase `observe`, which stops nothing";
    report.add(
        report
            .problem(entry.value.span, message)
            .allowed(one_of(["warn", "ignore"])),
    );
}

fn read_matcher(report: &mut Report, fields: &Fields<'_>, events: &[DraftEvent]) -> Matcher {
    if let Some(entry) = fields.entry("matcher") {
        for event in events {
            if event.name.info().subject.is_none() {
                let message = format!("`{}` has nothing that a matcher could look at", event.name);
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

/// Reads a matcher, whatever the event.
pub(crate) fn compile_matcher(report: &mut Report, fields: &Fields<'_>) -> Matcher {
    let Some(text) = fields.text(report, "matcher") else {
        return Matcher::everything();
    };
    match Matcher::parse(text.text) {
        Ok(matcher) => {
            warn_of_blanks(report, text);
            matcher
        }
        Err(error) => {
            // The expression crate draws the expression over several lines; the last one has the reason.
            let reason = error.source.to_string();
            let reason = reason.lines().last().unwrap_or_default();
            let reason = reason.trim_start_matches("error: ").to_owned();
            let message = format!("invalid matcher `{}`: {reason}", shorten(text.text));
            let problem = report
                .problem(text.span, message)
                .allowed("`*`, words joined by `|`, or a regular expression for the whole subject");
            report.add(if text.text.starts_with('*') {
                problem.hint("any text is `.*`; `*` has that meaning only when it stands alone")
            } else {
                problem
            });
            Matcher::everything()
        }
    }
}

/// Warns of words with blanks around the bar between them, which are a regular expression with blanks in it.
fn warn_of_blanks(report: &mut Report, text: Text<'_>) {
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    let words: Vec<&str> = text.text.split('|').map(str::trim).collect();
    let meant = words.join("|");
    if meant != text.text && words.iter().all(|word| is_word(word)) {
        let message = format!("the blanks in `{}` are part of it", shorten(text.text));
        report.add(
            report
                .warning(text.span, message)
                .suggestion(Some(shorten(&meant)))
                .hint("write the words without blanks around the bar"),
        );
    }
}

/// Reads what a hook runs, and where that stands.
fn read_action(
    report: &mut Report,
    fields: &Fields<'_>,
    defaults: &Defaults,
) -> Option<(Action, Span)> {
    let mut found = ACTIONS.iter().filter_map(|key| fields.entry(key));
    let Some(first) = found.next() else {
        // A misspelt key is reported as such, with what was probably meant.
        let is_misspelt = !report.is_full()
            && fields.entries().iter().take(HOOK.len() * 2).any(|entry| {
                !HOOK.contains(&entry.key.as_str())
                    && nearest(&entry.key, HOOK.iter().copied())
                        .is_some_and(|key| ACTIONS.contains(&key))
            });
        if !is_misspelt {
            report.add(
                report
                    .problem(fields.span, "the hook has nothing to run")
                    .allowed(format!("exactly one of {}", one_of(ACTIONS))),
            );
        }
        return None;
    };
    for other in found {
        let message = format!("`{}` beside `{}`", other.key, first.key);
        report.add(
            report
                .problem(other.key_span, message)
                .allowed(format!("exactly one of {}", one_of(ACTIONS))),
        );
    }
    check_companions(report, fields, &first.key);
    let action = match first.key.as_str() {
        "command" => Action::Line {
            shell: fields
                .choice(report, "shell", &SHELLS)
                .or(defaults.shell)
                .unwrap_or_default(),
            line: fields.full_text(report, "command")?.text.to_owned(),
        },
        "argv" => Action::Argv(read_argv(report, fields)?),
        "builtin" => Action::Builtin {
            name: fields.full_text(report, "builtin")?.text.to_owned(),
            args: read_args(report, fields)?,
        },
        "model" => Action::Model(model::read(report, fields, &model::Models::new())?.0),
        "http" => Action::Http(HttpAction::read(report, fields, "http")?.0),
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
                .problem(span, "`argv` names no program")
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

/// Reports keys that say nothing beside what the hook runs.
fn check_companions(report: &mut Report, fields: &Fields<'_>, action: &str) {
    for (key, with) in [
        ("shell", &["command"][..]),
        ("args", &["builtin"]),
        ("working_dir", &["command", "argv", "builtin"]),
        ("env", &["command", "argv", "builtin"]),
        ("prompt", &["model"]),
        ("schema", &["model"]),
        ("headers", &["http"]),
        ("allow_private", &["http"]),
        ("prewarm", &["command", "argv"]),
        ("answer", &["command", "argv"]),
        ("python", &["command", "argv"]),
        ("strict_output", &["command", "argv", "http"]),
    ] {
        if let Some(entry) = fields.entry(key)
            && !with.contains(&action)
        {
            let message = format!("`{key}` has no meaning beside `{action}`");
            let problem = report
                .problem(entry.key_span, message)
                .allowed(format!("`{key}` with {}", one_of(with.iter().copied())));
            report.add(match key {
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

fn read_phase(report: &mut Report, fields: &Fields<'_>) -> Phase {
    let words = Phase::ALL.map(|phase| (phase.as_str(), phase));
    fields.choice(report, "phase", &words).unwrap_or_default()
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

fn definition(draft: &Draft, name: Option<&str>, on_error: Option<OnError>) -> String {
    let definition = Definition::of("native")
        .field("name", name)
        .field(
            "timeout",
            draft.timeout.map(|timeout| timeout.as_secs_f64()),
        )
        .field(
            "working_dir",
            draft.working_dir.as_ref().map(|(dir, _)| dir.as_str()),
        )
        .variables("env", &draft.env)
        .field("on_error", on_error.map(OnError::as_str))
        .field("strict_output", draft.strict_output.then_some(true))
        .field("phase", Some(draft.phase.as_str()))
        .field("priority", Some(draft.priority))
        .field("agent", draft.agent.as_deref())
        .field("python", draft.python.map(|_| python::FORK_SERVER))
        .field("prewarm", draft.prewarm.then_some(true))
        .field(
            "answer",
            (draft.answer == AnswerEnd::Line).then_some("line"),
        );
    let definition = match &draft.action {
        Action::Line { shell, line } => definition
            .field("shell", Some(shell_name(*shell)))
            .field("command", Some(line.as_str())),
        Action::Argv(argv) => definition.list("argv", argv),
        Action::Builtin { name, args } => definition
            .field("builtin", Some(name.as_str()))
            .list("args", args),
        Action::Model(asked) => definition
            .field("model", Some(asked.model.as_str()))
            .field("prompt", Some(asked.prompt.as_str()))
            .field("schema", asked.shape.schema_name()),
        Action::Http(http) => http.define(definition, "http"),
    };
    definition.into_text()
}

fn shell_name(shell: Shell) -> &'static str {
    let named = SHELLS.iter().find(|(_, known)| *known == shell);
    named.map_or("sh", |(name, _)| name)
}
