//! docker-agent's files: agent files (`agents.NAME.hooks.EVENT`), hook drop-ins (`EVENT` at the top level) and the
//! user's settings (`settings.hooks.EVENT`).
//!
//! Every key of such a file is checked against the table in `agent_file/known_keys.txt`. The keys that a program
//! which runs the agents needs are handed out in an [`AgentFile`].

mod flag;
mod known_keys;
mod permission;
mod toolset;

use std::path::PathBuf;

use tenterhook::{AnswerEnd, EventName, Matcher, OnError, Phase};
use tenterhook_dialects::docker_agent::{DockerAgent, DockerEvent, EVENTS};
use tenterhook_process::{Command, Program, Shell};
use tenterhook_protocol::{EventKind, events};

use self::known_keys::{Detail, KeyCheck};
pub use self::permission::PermissionRules;
pub use self::toolset::{Toolset, ToolsetKind};
use crate::draft::{Action, Definition, Draft, DraftEvent, Ids};
use crate::fields::{Empty, Fields, Text, wrong};
use crate::http::HttpAction;
use crate::model::{self, Models};
use crate::native::compile_matcher;
use crate::report::Report;
use crate::source::Span;
use crate::suggest::one_of;
use crate::timeout;
use crate::tree::{Entry, Node, Value, shorten};

/// The keys that do something for some types only.
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
/// The agent whose hooks are for all agents.
const ROOT: &str = "root";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Command,
    Builtin,
    Model,
    /// Not of docker-agent, but of no other meaning there.
    Http,
}

const KINDS: [(&str, Kind); 4] = [
    ("command", Kind::Command),
    ("builtin", Kind::Builtin),
    ("model", Kind::Model),
    ("http", Kind::Http),
];
/// The types of docker-agent that there is no handler for.
const UNAVAILABLE: [&str; 1] = ["evaluator"];

impl Kind {
    fn name(self) -> &'static str {
        let named = KINDS.iter().find(|(_, kind)| *kind == self);
        named.map_or("command", |(name, _)| name)
    }
}

/// The agents of an agent file, for a program that runs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFile {
    /// The file.
    pub path: PathBuf,
    /// Its agents, in the order of the file.
    pub agents: Vec<AgentDefinition>,
    /// The rules for tool calls of all its agents.
    pub permissions: PermissionRules,
}

impl AgentFile {
    /// Returns the agent that a session begins with: the one named `root`, else the first.
    pub fn root(&self) -> Option<&AgentDefinition> {
        let named = self.agents.iter().find(|agent| agent.name == ROOT);
        named.or_else(|| self.agents.first())
    }
}

/// One agent of an agent file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentDefinition {
    /// The name.
    pub name: String,
    /// The model.
    pub model: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What the model is told.
    pub instruction: Option<String>,
    /// The agents that it may hand work to.
    pub sub_agents: Vec<String>,
    /// The sets of tools that it has, its own and those that `use_toolsets` names; `None` where the file does not say.
    pub toolsets: Option<Vec<Toolset>>,
    /// It has only tools that change nothing.
    pub read_only: bool,
    /// The largest number of model calls of one run; `None` where the file does not say, or says 0.
    pub max_iterations: Option<u32>,
    /// How often in a row the same tool call may come before the run ends; `None` where the file does not say, or says 0.
    pub max_consecutive_tool_calls: Option<u32>,
}

/// The contents of a file.
#[derive(Debug)]
pub(crate) struct Read {
    /// Its hooks, in the order of the file.
    pub(crate) drafts: Vec<Draft>,
    /// The hooks that keys of its agents stand for. They run after all that somebody wrote.
    pub(crate) wired: Vec<Draft>,
    /// Its agents.
    pub(crate) file: AgentFile,
}

/// The forms in which docker-agent's hooks are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `agents.NAME.hooks.EVENT`.
    AgentFile,
    /// `settings.hooks.EVENT`, in the user's `config.yaml`.
    UserSettings,
    /// `EVENT` at the top level, in a file of `hooks.d`.
    DropIn,
}

impl Form {
    /// Tells the form of a document by its keys; `None` is not docker-agent's.
    pub(crate) fn of(root: &Node) -> Option<Self> {
        let has = |key| root.entry(key).is_some();
        let has_any = |is_wanted: fn(&str) -> bool| {
            let entries = root.as_table().unwrap_or_default();
            entries.iter().any(|entry| is_wanted(&entry.key))
        };
        if has("agents") {
            Some(Self::AgentFile)
        } else if has("hooks") {
            None
        } else if has("settings") {
            Some(Self::UserSettings)
        } else if has_any(|key| DockerAgent::event(key).is_some()) {
            Some(Self::DropIn)
        } else {
            // The key `agents` may be misspelt.
            has_any(|key| key != "version" && known_keys::is_known("file", key))
                .then_some(Self::AgentFile)
        }
    }
}

/// Reads a file.
pub(crate) fn read(report: &mut Report, root: &Node, form: Form) -> Read {
    let file = AgentFile {
        path: report.source().path().to_owned(),
        agents: Vec::new(),
        permissions: PermissionRules::default(),
    };
    let mut read = Read {
        drafts: Vec::new(),
        wired: Vec::new(),
        file,
    };
    let hooks = match form {
        Form::AgentFile => {
            read_agents(report, root, &mut read);
            return read;
        }
        Form::UserSettings => {
            KeyCheck::default().check(report, "user_settings_file", root, Detail::Full);
            hooks_of_settings(report, root)
        }
        Form::DropIn => Some(root),
    };
    let mut reader = Reader::new(report, Models::default());
    if let Some(hooks) = hooks.filter(|hooks| !hooks.is_null()) {
        reader.read_hooks(hooks);
    }
    read.drafts = reader.drafts;
    read
}

/// Returns the hooks of the user's settings. Settings without a value have none.
fn hooks_of_settings<'a>(report: &mut Report, root: &'a Node) -> Option<&'a Node> {
    let settings = &root.entry("settings")?.value;
    if settings.is_null() {
        return None;
    }
    let fields = Fields::any(report, settings, "`settings`", Empty::Absent)?;
    fields.entry("hooks").map(|entry| &entry.value)
}

fn read_agents(report: &mut Report, root: &Node, read: &mut Read) {
    let Some(fields) = Fields::any(report, root, "an agent file", Empty::Absent) else {
        return;
    };
    let mut keys = KeyCheck::default();
    keys.check(report, "file", root, Detail::Full);
    if let Some(entry) = fields.entry("permissions") {
        read.file.permissions = permission::read(report, &entry.value);
    }
    let Some(entry) = root.entry("agents") else {
        report.add(report.problem(fields.span, "the agent file has no `agents`"));
        return;
    };
    if entry.value.is_null() {
        return;
    }
    let Some(agents) = Fields::any(report, &entry.value, "`agents`", Empty::Absent) else {
        return;
    };
    let agents: Vec<&Entry> = agents.entries().iter().collect();
    for entry in &agents {
        check_agent(report, &mut keys, entry);
    }
    let shared = root.entry("toolsets").map(|entry| &entry.value);
    read.file.agents = agents
        .iter()
        .map(|entry| definition_of(report, entry, shared))
        .collect();
    let root_name = read.file.root().map(|agent| agent.name.clone());
    let is_root = |entry: &Entry| Some(&entry.key) == root_name.as_ref();
    let mut reader = Reader::new(report, model::read_models(root));
    for entry in &agents {
        // Subagents pass the gates of the root agent too.
        reader.agent = Some(entry.key.clone()).filter(|_| !is_root(entry));
        let hooks = entry.value.entry("hooks").map(|entry| &entry.value);
        if let Some(hooks) = hooks.filter(|hooks| !hooks.is_null()) {
            reader.read_hooks(hooks);
        }
    }
    read.drafts = reader.drafts;
    // A hook that the root agent has for all agents is not made again for another one.
    let (root, others): (Vec<&Entry>, Vec<&Entry>) =
        agents.iter().partition(|entry| is_root(entry));
    for agent in &root {
        flag::read(report, agent, true, &read.drafts, &mut read.wired);
    }
    for agent in &others {
        flag::read(report, agent, false, &read.drafts, &mut read.wired);
    }
}

/// Checks the keys of an agent.
fn check_agent(report: &mut Report, keys: &mut KeyCheck, agent: &Entry) {
    let is_key = ["agent", "file"]
        .iter()
        .any(|kind| known_keys::is_known(kind, &agent.key));
    let is_agent = agent.value.as_table().is_some_and(|entries| {
        let mut entries = entries.iter();
        entries.all(|entry| known_keys::is_known("agent", &entry.key))
    });
    if is_key && !is_agent {
        // One level too high, a key of an agent is read as the name of one.
        let message = format!("`{}` where the name of an agent is expected", agent.key);
        let problem = report.problem(agent.key_span, message);
        report.add(
            problem
                .allowed(known_keys::places_of(&agent.key).join(" or "))
                .hint("move it there"),
        );
        return;
    }
    if !agent.value.is_null() && agent.value.as_table().is_none() {
        wrong::<()>(
            report,
            &agent.key,
            &agent.value,
            "a mapping with the keys of an agent",
        );
    }
    keys.check(report, "agent", &agent.value, Detail::Full);
}

fn definition_of(report: &mut Report, entry: &Entry, shared: Option<&Node>) -> AgentDefinition {
    let name = entry.key.clone();
    if entry.value.as_table().is_none() {
        // The report has the reason where it is not empty.
        return AgentDefinition {
            name,
            ..AgentDefinition::default()
        };
    }
    let get = |key| {
        let entry = entry.value.entry(key).map(|entry| &entry.value);
        entry.filter(|node| !node.is_null())
    };
    let text = |key| get(key).and_then(Node::as_text).map(str::to_owned);
    let own = get("toolsets").map(|node| toolset::read(report, node));
    let used = get("use_toolsets").map(|node| toolset::read_shared(report, node, shared));
    let toolsets = match (own, used) {
        (None, None) => None,
        (own, used) => Some(own.into_iter().chain(used).flatten().collect()),
    };
    let is_read_only = get("readonly").map(|node| read_boolean(report, "readonly", node));
    let mut count = |key| get(key).and_then(|node| read_count(report, key, node));
    AgentDefinition {
        name,
        model: text("model"),
        description: text("description"),
        instruction: text("instruction"),
        toolsets,
        read_only: is_read_only.unwrap_or(false),
        max_iterations: count("max_iterations"),
        max_consecutive_tool_calls: count("max_consecutive_tool_calls"),
        sub_agents: get("sub_agents")
            .map_or_else(Vec::new, |node| read_names(report, "sub_agents", node)),
    }
}

/// Reads a switch that restricts. A value that is not understood is an error, and restricts meanwhile.
fn read_boolean(report: &mut Report, key: &str, node: &Node) -> bool {
    if let Value::Bool(value) = node.value {
        return value;
    }
    wrong::<()>(report, key, node, "`true` or `false`");
    true
}

/// Reads a limit; 0 is none. One that says nothing would not be one, so it is checked.
fn read_count(report: &mut Report, key: &str, node: &Node) -> Option<u32> {
    let number = node.as_number().and_then(|number| number.integer);
    let count = number.and_then(|number| u32::try_from(number).ok());
    let count = count.or_else(|| wrong(report, key, node, "a whole number from 0"));
    count.filter(|count| *count > 0)
}

/// Reads a list of texts.
fn read_names(report: &mut Report, key: &str, node: &Node) -> Vec<String> {
    let Some(items) = node.as_list() else {
        wrong::<()>(report, key, node, "a list of texts");
        return Vec::new();
    };
    let mut texts = Vec::new();
    for item in items {
        if let Some(text) = item.as_text() {
            texts.push(text.to_owned());
        } else if !item.is_broken() {
            let message = format!("an item of `{key}` cannot be {}", item.describe());
            report.add(report.problem(item.span, message).allowed("text"));
        }
    }
    texts
}

/// Returns the items of a list, or the one mapping that stands for a list of one.
fn items_of(node: &Node) -> Option<&[Node]> {
    if node.as_table().is_some() {
        return Some(std::slice::from_ref(node));
    }
    node.as_list()
}

struct Reader<'a> {
    report: &'a mut Report,
    ids: Ids,
    /// The agent whose hooks are read; `None` for those of every agent.
    agent: Option<String>,
    models: Models,
    drafts: Vec<Draft>,
}

/// What a hook has from what it stands in.
#[derive(Clone)]
struct Slot {
    event: &'static DockerEvent,
    kind: EventKind,
    matcher: Matcher,
}

impl<'a> Reader<'a> {
    fn new(report: &'a mut Report, models: Models) -> Self {
        Self {
            report,
            ids: Ids::default(),
            agent: None,
            models,
            drafts: Vec::new(),
        }
    }

    /// Reads a mapping of events to hooks.
    fn read_hooks(&mut self, hooks: &Node) {
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
                .hint(format!("docker-agent's name of `{name}`")),
            (Some(_), None) => {
                problem.hint("docker-agent has no such event; a native hook file can name it")
            }
            (None, None) => {
                let names = EVENTS.iter().map(|event| event.name);
                problem.suggestion(self.report.nearest(name, names))
            }
        });
    }

    /// Reads the hooks of an event without matchers: a list of them, or one.
    fn read_flat(&mut self, event: &'static DockerEvent, entry: &Entry) {
        let slot = Slot {
            event,
            kind: event.kind,
            matcher: Matcher::everything(),
        };
        let node = &entry.value;
        if let Some(hooks) = items_of(node) {
            for hook in hooks {
                self.read_hook(&slot, hook);
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
            let message = format!("a hook where `{}` has entries", event.name);
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
        let slot = Slot {
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
            self.read_hook(&slot, hook);
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
        // Even `false` says that somebody expects something of it, so the key alone counts.
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

    fn read_hook(&mut self, slot: &Slot, node: &Node) {
        let report = &mut *self.report;
        let Some(any) = Fields::any(report, node, "a hook", Empty::Absent) else {
            return;
        };
        if !slot.event.has_matcher && any.has("hooks") {
            let message = format!("`{}` has no matchers", slot.event.name);
            report.add(
                report
                    .problem(any.span, message)
                    .allowed("a list of hooks")
                    .hint("take the hooks out of `hooks`"),
            );
            return;
        }
        let known = known_keys::names("hook");
        let Some(fields) = Fields::read(report, node, "a hook", &known, Empty::Absent) else {
            return;
        };
        let hook = Hook::read(report, &fields, slot);
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
        let draft = Draft {
            span: fields.span,
            events: vec![DraftEvent {
                name: EventName::Known(slot.kind),
                span: fields.span,
                id: self.id(slot, hook.name),
                on_error: hook.on_error,
            }],
            matcher: slot.matcher.clone(),
            agent: self.agent.clone(),
            action_span,
            shown: None,
            timeout: hook.timeout.map(|(timeout, _)| timeout),
            working_dir: hook.working_dir.map(|dir| (dir.text.to_owned(), dir.span)),
            strict_output: hook.strict_output.unwrap_or_default(),
            python: None,
            prewarm: false,
            answer: AnswerEnd::Exit,
            phase: Phase::Main,
            priority: 0,
            definition: define(
                hook.definition()
                    .field("agent", self.agent.as_deref())
                    .field("type", Some(kind.name())),
                &action,
            )
            .into_text(),
            env: hook.env,
            action,
            dialect: if slot.kind == EventKind::ToolGuard {
                DockerAgent::preempt()
            } else {
                DockerAgent::agent_file()
            },
        };
        self.drafts.push(draft);
    }

    /// Names a hook: as its author did, else by the agent, the event, and its number there.
    fn id(&mut self, slot: &Slot, name: Option<Text<'_>>) -> String {
        let prefix = match &self.agent {
            Some(agent) => format!("{agent}.{}", slot.event.name),
            None => slot.event.name.to_owned(),
        };
        let numbered = self.ids.numbered(&prefix);
        let Some(name) = name.map(|name| name.text) else {
            return numbered;
        };
        let mut id = name.to_owned();
        let mut count = 1;
        // Two hooks of one name are allowed here; a journal has to tell them apart.
        while self.ids.take(&id, 0).is_err() {
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
    timeout: Option<(std::time::Duration, i64)>,
    env: Vec<(String, String)>,
    working_dir: Option<Text<'a>>,
    on_error: Option<OnError>,
    strict_output: Option<bool>,
    /// `model`, `prompt` and `schema`.
    asked: [(&'static str, Option<Text<'a>>); 3],
}

impl<'a> Hook<'a> {
    fn read(report: &mut Report, fields: &Fields<'a>, slot: &Slot) -> Self {
        let text = |report: &mut Report, key| fields.text(report, key);
        let words = OnError::ALL.map(|on_error| (on_error.as_str(), on_error));
        let on_error = fields.choice(report, "on_error", &words);
        check_on_error(report, fields, slot, on_error);
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

    /// Everything that docker-agent tells two hooks apart by, but the type and the command.
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

/// Reports `on_error: block` where nothing can be stopped.
fn check_on_error(
    report: &mut Report,
    fields: &Fields<'_>,
    slot: &Slot,
    on_error: Option<OnError>,
) {
    if let (Some(OnError::Block), Some(entry)) = (on_error, fields.entry("on_error"))
        && !slot.kind.info().can_stop()
    {
        let message = format!(
            "`on_error: block` is not supported on `{}`, which stops nothing",
            slot.event.name
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
                .hint("a command is not the default; add `type: command`"),
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

/// Adds what a hook runs.
fn define(definition: Definition, action: &Action) -> Definition {
    match action {
        Action::Http(http) => http.define(definition, "url"),
        Action::Line { .. } | Action::Argv(_) | Action::Builtin { .. } | Action::Model(_) => {
            definition.field("command", action.command())
        }
    }
}

fn read_action(
    report: &mut Report,
    fields: &Fields<'_>,
    kind: Kind,
    args: &[String],
    models: &Models,
) -> Option<(Action, Span)> {
    if kind == Kind::Model {
        let (asked, span) = model::read(report, fields, models)?;
        return Some((Action::Model(asked), span));
    }
    if kind == Kind::Http {
        if !fields.has("url") {
            report.add(report.problem(fields.span, "the http hook has no `url`"));
            return None;
        }
        let (http, span) = HttpAction::read(report, fields, "url")?;
        return Some((Action::Http(http), span));
    }
    if !fields.has("command") {
        let message = match kind {
            Kind::Builtin => "the builtin hook has no `command`, which names the builtin",
            Kind::Command | Kind::Model | Kind::Http => "the command hook has no `command`",
        };
        report.add(report.problem(fields.span, message));
        return None;
    }
    let command = fields.full_text(report, "command")?;
    let action = match kind {
        Kind::Builtin => Action::Builtin {
            name: command.text.to_owned(),
            args: args.to_vec(),
        },
        Kind::Command | Kind::Model | Kind::Http => Action::Line {
            shell: documented_shell(),
            line: command.text.to_owned(),
        },
    };
    Some((action, command.span))
}

/// Returns the shell that the document's hooks are written for.
///
/// They hand the event on with `echo "$INPUT"`. The `echo` of some `sh` turns `\n` in a JSON text into a line
/// end, so that the program behind the pipe cannot read the event and a guard finds nothing to deny. That of
/// `bash` hands it on as it is.
pub(crate) fn documented_shell() -> Shell {
    let bash = Program::Shell {
        shell: Shell::Bash,
        line: ":;".to_owned(),
    };
    match Command::new(bash).resolve() {
        Ok(_) => Shell::Bash,
        Err(_) => Shell::Sh,
    }
}

/// Warns of keys that docker-agent accepts and that do nothing for a hook of this type.
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
