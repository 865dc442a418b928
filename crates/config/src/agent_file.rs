//! docker-agent agent files: `agents.<name>.hooks.<event>`.
//!
//! What stands below `hooks`, `toolsets` and `permissions` is checked. The rest of the file belongs to the agent;
//! the few keys of it that a program which runs the agent wants are handed out as they are.

use std::path::PathBuf;

use tenterhook::{AnswerEnd, EventName, Matcher, OnError, Phase};
use tenterhook_dialects::docker_agent::{DockerAgent, DockerEvent, EVENTS};
use tenterhook_process::{Command, Program, Shell};
use tenterhook_protocol::{EventKind, events};

use crate::agent_flag;
use crate::draft::{Action, Definition, Draft, DraftEvent, Ids};
use crate::fields::{Empty, Fields, Text, wrong};
use crate::http::HttpAction;
use crate::model::{self, Models};
use crate::native::compile_matcher;
use crate::permission::{self, PermissionRules};
use crate::report::Report;
use crate::source::Span;
use crate::suggest::one_of;
use crate::timeout;
use crate::toolset::{self, Toolset};
use crate::tree::{Entry, Node, shorten};

/// The keys of a matcher entry.
const MATCHER_ENTRY: &[&str] = &["matcher", "hooks", "preempt_yolo"];
/// The keys of a hook.
const HOOK: &[&str] = &[
    "name",
    "type",
    "command",
    "args",
    "timeout",
    "env",
    "working_dir",
    "on_error",
    "strict_output",
    "model",
    "prompt",
    "schema",
    "url",
    "headers",
    "allow_private",
];
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

/// One agent of an agent file. What is not a text, or not a list of texts, is left out.
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
    /// The sets of tools that it has; `None` where the file does not say.
    pub toolsets: Option<Vec<Toolset>>,
    /// The most model calls of one run; `None` where the file does not say, or says 0.
    pub max_iterations: Option<u32>,
}

/// What an agent file has.
#[derive(Debug)]
pub(crate) struct Read {
    /// Its hooks, in the order of the file.
    pub(crate) drafts: Vec<Draft>,
    /// The hooks that keys of its agents stand for. They run after all that somebody wrote.
    pub(crate) wired: Vec<Draft>,
    pub(crate) file: AgentFile,
}

/// Reads an agent file.
pub(crate) fn read(report: &mut Report, root: &Node) -> Read {
    let mut read = Read {
        drafts: Vec::new(),
        wired: Vec::new(),
        file: AgentFile {
            path: report.source().path().to_owned(),
            agents: Vec::new(),
            permissions: PermissionRules::default(),
        },
    };
    let Some(fields) = Fields::any(report, root, "an agent file", Empty::Absent) else {
        return read;
    };
    if let Some(entry) = fields.entry("hooks") {
        report.add(
            report
                .problem(entry.key_span, "`hooks` beside `agents`")
                .allowed("`hooks` in a native hook file, or below an agent in an agent file")
                .hint("move these hooks to a file of their own"),
        );
    }
    if let Some(entry) = fields.entry("permissions") {
        read.file.permissions = permission::read(report, &entry.value);
    }
    let agents = fields
        .entry("agents")
        .and_then(|entry| Fields::any(report, &entry.value, "`agents`", Empty::Absent));
    let Some(agents) = agents else {
        return read;
    };
    let definitions = agents.entries().iter();
    read.file.agents = definitions
        .map(|entry| definition_of(report, entry))
        .collect();
    let root_name = read.file.root().map(|agent| agent.name.clone());
    let is_root = |entry: &Entry| Some(&entry.key) == root_name.as_ref();
    let mut reader = Reader {
        report,
        ids: Ids::default(),
        agent: None,
        models: model::read_models(root),
        drafts: Vec::new(),
    };
    for entry in agents.entries() {
        // Subagents pass the gates of the root agent too.
        reader.agent = Some(entry.key.clone()).filter(|_| !is_root(entry));
        reader.read_agent(entry);
    }
    read.drafts = reader.drafts;
    // What the root agent has for all need not be there for another one again.
    let mut agents: Vec<&Entry> = agents.entries().iter().collect();
    agents.sort_by_key(|entry| !is_root(entry));
    for agent in agents {
        let is_root = is_root(agent);
        agent_flag::read(report, agent, is_root, &read.drafts, &mut read.wired);
    }
    read
}

fn definition_of(report: &mut Report, entry: &Entry) -> AgentDefinition {
    if let Some(rules) = entry.value.entry("permissions") {
        // Whoever wrote them counts on them.
        report.add(
            report
                .problem(
                    rules.key_span,
                    format!("`permissions` of agent `{}`", shorten(&entry.key)),
                )
                .allowed("`permissions` beside `agents`, where they are for every agent")
                .hint("move the rules to the top of the file"),
        );
    }
    let get = |key| entry.value.entry(key).map(|entry| &entry.value);
    let text_of = |node: &Node| node.as_text().map(str::to_owned);
    let text = |key| get(key).and_then(text_of);
    let sub_agents = get("sub_agents").and_then(Node::as_list);
    AgentDefinition {
        name: entry.key.clone(),
        model: text("model"),
        description: text("description"),
        instruction: text("instruction"),
        sub_agents: sub_agents
            .map_or_else(Vec::new, |items| items.iter().filter_map(text_of).collect()),
        toolsets: get("toolsets")
            .filter(|node| !node.is_null())
            .map(|node| toolset::read(report, node)),
        max_iterations: get("max_iterations")
            .filter(|node| !node.is_null())
            .and_then(|node| read_cap(report, node))
            .filter(|cap| *cap > 0),
    }
}

/// Reads the cap of model calls. A cap that says nothing would not be one, so it is checked.
fn read_cap(report: &mut Report, node: &Node) -> Option<u32> {
    let number = node.as_number().and_then(|number| number.integer);
    let cap = number.and_then(|number| u32::try_from(number).ok());
    cap.or_else(|| wrong(report, "max_iterations", node, "a whole number from 0"))
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

impl Reader<'_> {
    fn read_agent(&mut self, agent: &Entry) {
        let hooks = agent.value.entry("hooks");
        let Some(hooks) = hooks.filter(|entry| !entry.value.is_null()) else {
            return;
        };
        let fields = Fields::any(self.report, &hooks.value, "`hooks`", Empty::Absent);
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
        if let Some(hooks) = node.as_list() {
            for hook in hooks {
                self.read_hook(&slot, hook);
            }
        } else if node.as_table().is_some() {
            self.read_hook(&slot, node);
        } else if !node.is_null() {
            wrong::<()>(self.report, event.name, node, "a list of hooks");
        }
    }

    fn read_matched(&mut self, event: &'static DockerEvent, entry: &Entry) {
        let node = &entry.value;
        if let Some(entries) = node.as_list() {
            for entry in entries {
                self.read_matcher_entry(event, entry);
            }
        } else if !node.is_null() {
            let allowed = "a list of entries with `matcher` and `hooks`";
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
        let fields = Fields::read(self.report, node, &what, MATCHER_ENTRY, Empty::Absent);
        let Some(fields) = fields else { return };
        let slot = Slot {
            event,
            kind: self.kind_of(event, &fields),
            matcher: compile_matcher(self.report, &fields),
        };
        let hooks = match fields.entry("hooks").map(|entry| &entry.value) {
            Some(node) => node
                .as_list()
                .or_else(|| wrong(self.report, "hooks", node, "a list of hooks")),
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
        let Some(fields) = Fields::read(report, node, "a hook", HOOK, Empty::Absent) else {
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
