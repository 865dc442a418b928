//! The hooks of docker-agent's files, which are the same in all three forms.

use std::time::Duration;

use tenterhook_engine::{EventName, Matcher, OnError, Phase};
use tenterhook_protocol::{EventKind, events};
use tenterhook_systems::docker_agent::{DockerAgent, DockerEvent, EVENTS};

use super::known_keys;
use super::shell::documented_shell;
use crate::declaration::{DeclaredEvent, HookAction, HookDeclaration};
use crate::definition::Definition;
use crate::excerpt::shorten;
use crate::fields::{Empty, Fields, Text, wrong};
use crate::hook_names::HookNames;
use crate::http::HttpDeclaration;
use crate::matcher::compile_matcher;
use crate::model::{self, Models};
use crate::report::Report;
use crate::source::Span;
use crate::suggest::one_of;
use crate::timeout;
use crate::tree::{Entry, Node};

/// The keys that have an effect only on some types of hooks.
const OF_A_TYPE: &[&str] = &[
    "command",
    "args",
    "env",
    "working_dir",
    "strict_output",
    "model",
    "prompt",
    "schema",
    "url",
    "headers",
    "allow_private",
];
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Command,
    Builtin,
    Model,
    /// Not a type of docker-agent, which does not use this word for anything else.
    Http,
}

const KINDS: [(&str, Kind); 4] = [
    ("command", Kind::Command),
    ("builtin", Kind::Builtin),
    ("model", Kind::Model),
    ("http", Kind::Http),
];
/// The types of docker-agent that Tenterhook has no handler for.
const UNAVAILABLE: [&str; 1] = ["evaluator"];

impl Kind {
    fn name(self) -> &'static str {
        let named = KINDS.iter().find(|(_, kind)| *kind == self);
        named.map_or("command", |(name, _)| name)
    }
}

/// Returns the items of a list. A single mapping counts as a list with one item.
fn items_of(node: &Node) -> Option<&[Node]> {
    if node.as_table().is_some() {
        return Some(std::slice::from_ref(node));
    }
    node.as_list()
}

pub(super) struct HookReader<'a> {
    report: &'a mut Report,
    ids: HookNames,
    /// The agent whose hooks are being read; `None` for hooks of every agent.
    pub(super) agent: Option<String>,
    models: Models,
    pub(super) declarations: Vec<HookDeclaration>,
}

/// What a hook inherits from the event and the matcher entry around it.
#[derive(Clone)]
struct HookContext {
    event: &'static DockerEvent,
    kind: EventKind,
    matcher: Matcher,
}

impl<'a> HookReader<'a> {
    pub(super) fn new(report: &'a mut Report, models: Models) -> Self {
        Self {
            report,
            ids: HookNames::default(),
            agent: None,
            models,
            declarations: Vec::new(),
        }
    }

    /// Reads a mapping of events to hooks.
    pub(super) fn read_hooks(&mut self, hooks: &Node) {
        let fields = Fields::any(self.report, hooks, "`hooks`", Empty::Absent);
        for entry in fields.map_or(&[][..], |fields| fields.entries()) {
            match DockerAgent::event(&entry.key) {
                Some(event) if event.has_matcher => self.read_matched(event, entry),
                Some(event) => self.read_flat(event, entry),
                None => self.unknown_event(entry),
            }
        }
    }

    fn unknown_event(&mut self, entry: &Entry) {
        let name = &entry.key;
        let problem = self
            .report
            .problem(entry.key_span, format!("unknown event `{}`", shorten(name)))
            .allowed("an event of docker-agent");
        let canonical = events().find(|info| info.name == name);
        let own = canonical.and_then(|info| EVENTS.iter().find(|event| event.kind == info.kind));
        self.report.add(match (canonical, own) {
            (_, Some(event)) => problem
                .suggestion(Some(event.name))
                .hint(format!("docker-agent's name for `{name}`")),
            (Some(_), None) => {
                problem.hint("docker-agent has no such event; use it in a native hook file")
            }
            (None, None) => {
                let names = EVENTS.iter().map(|event| event.name);
                problem.suggestion(self.report.nearest(name, names))
            }
        });
    }

    /// Reads the hooks of an event without matchers: a list of hooks, or a single hook.
    fn read_flat(&mut self, event: &'static DockerEvent, entry: &Entry) {
        let context = HookContext {
            event,
            kind: event.kind,
            matcher: Matcher::everything(),
        };
        let node = &entry.value;
        if let Some(hooks) = items_of(node) {
            for hook in hooks {
                self.read_hook(&context, hook);
            }
        } else if !node.is_null() {
            wrong::<()>(self.report, event.name, node, "a hook or a list of hooks");
        }
    }

    fn read_matched(&mut self, event: &'static DockerEvent, entry: &Entry) {
        let node = &entry.value;
        if let Some(entries) = items_of(node) {
            for entry in entries {
                self.read_matcher_entry(event, entry);
            }
        } else if !node.is_null() {
            let allowed = "an entry with `matcher` and `hooks`, or a list of such entries";
            wrong::<()>(self.report, event.name, node, allowed);
        }
    }

    fn read_matcher_entry(&mut self, event: &'static DockerEvent, node: &Node) {
        let what = format!("an entry of `{}`", event.name);
        let Some(any) = Fields::any(self.report, node, &what, Empty::Absent) else {
            return;
        };
        if any.has("type") && !any.has("hooks") {
            let message = format!("found a hook directly below `{}`", event.name);
            self.report.add(
                self.report
                    .problem(any.span, message)
                    .allowed("an entry with `matcher` and `hooks`")
                    .hint("move the hook into the list `hooks` of an entry"),
            );
            return;
        }
        let fields = Fields::read(
            self.report,
            node,
            &what,
            &known_keys::names("matcher_entry"),
            Empty::Absent,
        );
        let Some(fields) = fields else { return };
        let context = HookContext {
            event,
            kind: self.kind_of(event, &fields),
            matcher: compile_matcher(self.report, &fields),
        };
        let hooks = match fields.entry("hooks").map(|entry| &entry.value) {
            Some(node) => items_of(node)
                .or_else(|| wrong(self.report, "hooks", node, "a hook or a list of hooks")),
            None => Some(&[][..]),
        };
        for hook in hooks.unwrap_or_default() {
            self.read_hook(&context, hook);
        }
        if hooks.is_some_and(<[Node]>::is_empty) {
            self.report.add(
                self.report
                    .problem(fields.span, "at least one hook is required")
                    .allowed("an entry with `matcher` and `hooks`"),
            );
        }
    }

    /// Returns the event that the hooks of a matcher entry are for.
    fn kind_of(&mut self, event: &DockerEvent, fields: &Fields<'_>) -> EventKind {
        // Report the key even if it is `false`: its author expects it to have an effect on this event.
        let entry = fields
            .entries()
            .iter()
            .find(|entry| entry.key == "preempt_yolo");
        let Some(entry) = entry else {
            return event.kind;
        };
        if event.kind != EventKind::PreToolUse {
            self.report.add(self.report.problem(
                entry.key_span,
                "`preempt_yolo` is only valid on `pre_tool_use`",
            ));
            return event.kind;
        }
        match fields.boolean(self.report, "preempt_yolo") {
            Some(true) => EventKind::ToolGuard,
            _ => event.kind,
        }
    }

    fn read_hook(&mut self, context: &HookContext, node: &Node) {
        let report = &mut *self.report;
        let Some(any) = Fields::any(report, node, "a hook", Empty::Absent) else {
            return;
        };
        if !context.event.has_matcher && any.has("hooks") {
            let message = format!("`{}` does not support matchers", context.event.name);
            report.add(
                report
                    .problem(any.span, message)
                    .allowed("a list of hooks")
                    .hint("remove the key `hooks` and list the hooks directly"),
            );
            return;
        }
        let known = known_keys::names("hook");
        let Some(fields) = Fields::read(report, node, "a hook", &known, Empty::Absent) else {
            return;
        };
        let hook = Hook::read(report, &fields, context);
        let kind = read_kind(report, &fields);
        let models = &self.models;
        let action = kind.and_then(|kind| {
            let (action, span) = read_action(report, &fields, kind, &hook.args, models)?;
            Some((kind, action, span))
        });
        let Some((kind, action, action_span)) = action else {
            return;
        };
        warn_of_unused(report, &fields, kind);
        let declaration = HookDeclaration {
            span: fields.span,
            events: vec![DeclaredEvent {
                name: EventName::Known(context.kind),
                span: fields.span,
                id: self.id(context, hook.name),
                on_error: hook.on_error,
            }],
            matcher: context.matcher.clone(),
            agent: self.agent.clone(),
            includes_unnamed: false,
            action_span,
            timeout: hook.timeout.map(|(timeout, _)| timeout),
            working_dir: hook.working_dir.map(|dir| (dir.text.to_owned(), dir.span)),
            strict_output: hook.strict_output.unwrap_or_default(),
            prewarm: false,
            phase: Phase::Main,
            priority: 0,
            definition: define(
                hook.definition()
                    .field("agent", self.agent.as_deref())
                    .field("type", Some(kind.name())),
                &action,
            ),
            env: hook.env,
            action,
            dialect: if context.kind == EventKind::ToolGuard {
                DockerAgent::preempt()
            } else {
                DockerAgent::agent_file()
            },
        };
        self.declarations.push(declaration);
    }

    /// Returns the hook's own name, or else a name made of the agent, the event and a number.
    fn id(&mut self, context: &HookContext, name: Option<Text<'_>>) -> String {
        let prefix = match &self.agent {
            Some(agent) => format!("{agent}.{}", context.event.name),
            None => context.event.name.to_owned(),
        };
        let numbered = self.ids.numbered(&prefix);
        let Some(name) = name.map(|name| name.text) else {
            return numbered;
        };
        let mut id = name.to_owned();
        let mut count = 1;
        // docker-agent allows two hooks with the same name, but the journal must tell them apart.
        while self.ids.reserve(&id, 0).is_err() {
            count += 1;
            id = format!("{name}#{count}");
        }
        id
    }
}

/// The keys of a hook that do not depend on its type.
struct Hook<'a> {
    name: Option<Text<'a>>,
    args: Vec<String>,
    timeout: Option<(Duration, i64)>,
    env: Vec<(String, String)>,
    working_dir: Option<Text<'a>>,
    on_error: Option<OnError>,
    strict_output: Option<bool>,
    /// `model`, `prompt` and `schema`.
    asked: [(&'static str, Option<Text<'a>>); 3],
}

impl<'a> Hook<'a> {
    fn read(report: &mut Report, fields: &Fields<'a>, context: &HookContext) -> Self {
        let text = |report: &mut Report, key| fields.text(report, key);
        let words = OnError::ALL.map(|on_error| (on_error.as_str(), on_error));
        let on_error = fields.choice(report, "on_error", &words);
        check_on_error(report, fields, context, on_error);
        Self {
            name: text(report, "name").filter(|name| !name.text.is_empty()),
            args: fields.texts(report, "args").unwrap_or_default(),
            timeout: timeout::agent_file(report, fields),
            env: fields.variables(report, "env").unwrap_or_default(),
            working_dir: text(report, "working_dir").filter(|dir| !dir.text.is_empty()),
            on_error,
            strict_output: fields.boolean(report, "strict_output"),
            asked: ["model", "prompt", "schema"].map(|key| (key, text(report, key))),
        }
    }

    /// Returns everything by which docker-agent distinguishes two hooks, except the type and the command.
    fn definition(&self) -> Definition {
        let definition = Definition::of("docker-agent")
            .field("name", self.name.map(|name| name.text))
            .list("args", &self.args)
            .field("timeout", self.timeout.map(|(_, written)| written))
            .variables("env", &self.env)
            .field("working_dir", self.working_dir.map(|dir| dir.text))
            .field("on_error", self.on_error.map(OnError::as_str))
            .field("strict_output", self.strict_output.filter(|strict| *strict));
        self.asked
            .iter()
            .fold(definition, |definition, (key, value)| {
                definition.field(key, value.map(|value| value.text))
            })
    }
}

/// Reports `on_error: block` on an event that cannot stop anything.
fn check_on_error(
    report: &mut Report,
    fields: &Fields<'_>,
    context: &HookContext,
    on_error: Option<OnError>,
) {
    if let (Some(OnError::Block), Some(entry)) = (on_error, fields.entry("on_error"))
        && !context.kind.info().can_stop()
    {
        let message = format!(
            "`on_error: block` is not supported on `{}`, because this event cannot be blocked",
            context.event.name
        );
        report.add(
            report
                .problem(entry.value.span, message)
                .allowed(one_of(["warn", "ignore"])),
        );
    }
}

fn read_kind(report: &mut Report, fields: &Fields<'_>) -> Option<Kind> {
    if !fields.has("type") {
        report.add(
            report
                .problem(fields.span, "the hook has no `type`")
                .allowed(one_of(KINDS.map(|(name, _)| name)))
                .hint("`type` has no default; for a shell command, add `type: command`"),
        );
        return None;
    }
    if let Some(kind) = fields.entry("type")
        && let Some(word) = kind.value.as_text()
        && UNAVAILABLE.contains(&word)
    {
        let message = format!("{word} hooks are not available in this version");
        report.add(
            report
                .problem(kind.value.span, message)
                .allowed(one_of(KINDS.map(|(name, _)| name))),
        );
        return None;
    }
    fields.choice(report, "type", &KINDS)
}

/// Adds what a hook runs to its definition.
fn define(definition: Definition, action: &HookAction) -> Definition {
    match action {
        HookAction::Http(http) => http.define(definition, "url"),
        HookAction::Line { .. }
        | HookAction::Argv(_)
        | HookAction::Builtin { .. }
        | HookAction::Model(_) => definition.field("command", action.agent_file_command()),
    }
}

fn read_action(
    report: &mut Report,
    fields: &Fields<'_>,
    kind: Kind,
    args: &[String],
    models: &Models,
) -> Option<(HookAction, Span)> {
    if kind == Kind::Model {
        let (model, span) = model::read(report, fields, models)?;
        return Some((HookAction::Model(model), span));
    }
    if kind == Kind::Http {
        if !fields.has("url") {
            report.add(report.problem(fields.span, "the http hook has no `url`"));
            return None;
        }
        let (http, span) = HttpDeclaration::read(report, fields, "url")?;
        return Some((HookAction::Http(http), span));
    }
    if !fields.has("command") {
        let message = match kind {
            Kind::Builtin => "the builtin hook has no `command`, which should name the built-in",
            Kind::Command | Kind::Model | Kind::Http => "the command hook has no `command`",
        };
        report.add(report.problem(fields.span, message));
        return None;
    }
    let command = fields.full_text(report, "command")?;
    let action = match kind {
        Kind::Builtin => HookAction::Builtin {
            name: command.text.to_owned(),
            args: args.to_vec(),
        },
        Kind::Command | Kind::Model | Kind::Http => HookAction::Line {
            shell: documented_shell(),
            line: command.text.to_owned(),
        },
    };
    Some((action, command.span))
}

/// Warns about keys that docker-agent accepts but that have no effect on a hook of this type.
fn warn_of_unused(report: &mut Report, fields: &Fields<'_>, kind: Kind) {
    let used: &[&str] = match kind {
        Kind::Builtin => &["command", "args", "env", "working_dir", "strict_output"],
        Kind::Command => &["command", "env", "working_dir", "strict_output"],
        Kind::Model => &["model", "prompt", "schema", "strict_output"],
        Kind::Http => &["url", "headers", "allow_private", "strict_output"],
    };
    for key in OF_A_TYPE.iter().filter(|key| !used.contains(*key)) {
        let Some(entry) = fields.entry(key) else {
            continue;
        };
        let article = if kind == Kind::Http { "an" } else { "a" };
        let message = format!(
            "`{}` does nothing for {article} {} hook",
            entry.key,
            kind.name()
        );
        report.add(report.warning(entry.key_span, message));
    }
}
