//! docker-agent's files: agent files (`agents.NAME.hooks.EVENT`), hook drop-ins (`EVENT` at the top
//! level) and the user's settings (`settings.hooks.EVENT`).
//!
//! Every key of such a file is checked against the table in `agent_file/known_keys.txt`. An [`AgentFile`]
//! holds the values that a program needs to run the agents.

mod agent;
mod flag;
mod hook;
mod known_keys;
mod permission;
mod shell;
mod toolset;
mod value;

use tenterhook_systems::docker_agent::DockerAgent;

pub use self::agent::{AgentDefinition, AgentFile};
use self::hook::HookReader;
use self::known_keys::{Detail, KeyCheck};
pub use self::permission::PermissionRules;
pub(crate) use self::shell::documented_shell;
pub use self::toolset::{Toolset, ToolsetKind};
use crate::declaration::HookDeclaration;
use crate::fields::{Empty, Fields, wrong};
use crate::model::{self, Models};
use crate::report::Report;
use crate::tree::{Entry, Node};

/// The contents of a file.
#[derive(Debug)]
pub(crate) struct FileRead {
    /// The hooks, in the order of the file.
    pub declarations: Vec<HookDeclaration>,
    /// The hooks that keys of agents stand for, such as `add_date: true`. They run after all written hooks.
    pub wired: Vec<HookDeclaration>,
    /// The agents.
    pub file: AgentFile,
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
    /// Recognises the form of a document by its keys. Returns `None` if the document is not docker-agent's.
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

/// Reads a docker-agent file of the given form. Problems go into the report.
pub(crate) fn read(report: &mut Report, root: &Node, form: Form) -> FileRead {
    let file = AgentFile {
        path: report.source().path().to_owned(),
        agents: Vec::new(),
        permissions: PermissionRules::default(),
    };
    let mut read = FileRead {
        declarations: Vec::new(),
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
    let mut reader = HookReader::new(report, Models::default());
    if let Some(hooks) = hooks.filter(|hooks| !hooks.is_null()) {
        reader.read_hooks(hooks);
    }
    read.declarations = reader.declarations;
    read
}

/// Returns the hooks in the user's settings, or `None` if `settings` is empty or has no `hooks`.
fn hooks_of_settings<'a>(report: &mut Report, root: &'a Node) -> Option<&'a Node> {
    let settings = &root.entry("settings")?.value;
    if settings.is_null() {
        return None;
    }
    let fields = Fields::any(report, settings, "`settings`", Empty::Absent)?;
    fields.entry("hooks").map(|entry| &entry.value)
}

fn read_agents(report: &mut Report, root: &Node, read: &mut FileRead) {
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
        .map(|entry| agent::read(report, entry, shared))
        .collect();
    let root_name = read.file.root().map(|agent| agent.name.clone());
    let is_root = |entry: &Entry| Some(&entry.key) == root_name.as_ref();
    let mut reader = HookReader::new(report, model::read_models(root));
    for entry in &agents {
        // Subagents pass the gates of the root agent too.
        reader.agent = Some(entry.key.clone()).filter(|_| !is_root(entry));
        let hooks = entry.value.entry("hooks").map(|entry| &entry.value);
        if let Some(hooks) = hooks.filter(|hooks| !hooks.is_null()) {
            reader.read_hooks(hooks);
        }
    }
    read.declarations = reader.declarations;
    // The root agent comes first: a hook that it has for all agents is not added again for another agent.
    let (root, others): (Vec<&Entry>, Vec<&Entry>) =
        agents.iter().partition(|entry| is_root(entry));
    for agent in &root {
        flag::read(report, agent, true, &read.declarations, &mut read.wired);
    }
    for agent in &others {
        flag::read(report, agent, false, &read.declarations, &mut read.wired);
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
        // A key of an agent that is written one level too high looks like the name of an agent.
        let message = format!(
            "expected the name of an agent, found the key `{}`",
            agent.key
        );
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
