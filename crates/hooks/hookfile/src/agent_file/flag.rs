//! Keys of an agent that turn on built-ins. For example, `add_date: true` adds a hook on every turn.
//!
//! | key | turned on | built-in | events |
//! |---|---|---|---|
//! | `add_date` | if it is true | `add_date` | `turn_start` |
//! | `add_prompt_files` | if it lists files | `add_prompt_files`, with `add_prompt_files_depth` | `turn_start` |
//! | `add_environment_info` | if it is true | `add_environment_info` | `session_start` |
//! | `redact_secrets` | unless it is false | `redact_secrets` | `tool_input_transform`, `before_llm_call`, `tool_response_transform` |
//! | `snapshot` | if it is true | `snapshot` | `session_start`, `turn_start`, `turn_end`, `session_end` |
//! | no key | always | `limit_large_tool_results` | `tool_response_transform`, `session_end` |
//! | `cache` | if it has `enabled: true` | `cache_response` | `stop` |
//!
//! The hooks are added in the order of the rows, so that secrets are removed from a result before a large
//! result is saved to a file.

use tenterhook_engine::{EventClass, EventKind, EventName, OnError};

use crate::declaration::{DeclaredEvent, HookAction, HookDeclaration};
use crate::definition::Definition;
use crate::fields::{Empty, Fields, wrong};
use crate::report::Report;
use crate::source::Span;
use crate::tree::Entry;

use super::value::read_count;

/// One row of the table.
struct Flag {
    /// The key of the agent, or the name of the built-in if it is always on and has no key.
    key: &'static str,
    switch: Switch,
    builtin: &'static str,
    audience: Audience,
    events: &'static [EventKind],
}

/// The agents that a built-in applies to if the root agent turns it on. Any other agent turns it on for
/// itself only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    /// Every agent, because the built-in protects what the agents exchange.
    Every,
    /// The root agent and agents without a name, because other agents did not ask for what the built-in
    /// adds. On gate events it still applies to every agent.
    Root,
}

/// What turns a built-in on.
#[derive(Clone, Copy)]
enum Switch {
    /// `true`.
    True,
    /// Anything but `false`.
    UnlessFalse,
    /// A list of files that is not empty. Another key of the agent may contain a depth.
    Files { depth: &'static str },
    /// A mapping with `enabled: true`.
    Enabled,
    /// Nothing: the built-in is always on.
    Always,
}

const FLAGS: &[Flag] = &[
    Flag {
        key: "add_date",
        switch: Switch::True,
        builtin: "add_date",
        audience: Audience::Root,
        events: &[EventKind::TurnStart],
    },
    Flag {
        key: "add_prompt_files",
        switch: Switch::Files {
            depth: "add_prompt_files_depth",
        },
        builtin: "add_prompt_files",
        audience: Audience::Root,
        events: &[EventKind::TurnStart],
    },
    Flag {
        key: "add_environment_info",
        switch: Switch::True,
        builtin: "add_environment_info",
        audience: Audience::Root,
        events: &[EventKind::SessionStart],
    },
    Flag {
        key: "redact_secrets",
        switch: Switch::UnlessFalse,
        builtin: "redact_secrets",
        audience: Audience::Every,
        events: &[
            EventKind::ToolInputTransform,
            EventKind::BeforeLlmCall,
            EventKind::ToolResponseTransform,
        ],
    },
    Flag {
        key: "snapshot",
        switch: Switch::True,
        builtin: "snapshot",
        audience: Audience::Root,
        events: &[
            EventKind::SessionStart,
            EventKind::TurnStart,
            EventKind::TurnEnd,
            EventKind::SessionEnd,
        ],
    },
    Flag {
        key: "limit_large_tool_results",
        switch: Switch::Always,
        builtin: "limit_large_tool_results",
        audience: Audience::Every,
        events: &[EventKind::ToolResponseTransform, EventKind::SessionEnd],
    },
    Flag {
        key: "cache",
        switch: Switch::Enabled,
        builtin: "cache_response",
        audience: Audience::Root,
        events: &[EventKind::Stop],
    },
];

/// Adds the hooks that the keys of an agent stand for to `wired`. It leaves out hooks that `wired` or
/// `written` already has.
///
/// Gate hooks of the root agent apply to every agent, like its written hooks. Context applies only to the
/// agent that asks for it. An embedding program may run an agent without a name, which then has the same
/// hooks as the root agent.
pub(crate) fn read(
    report: &mut Report,
    agent: &Entry,
    is_root: bool,
    written: &[HookDeclaration],
    wired: &mut Vec<HookDeclaration>,
) {
    // The reader of agents reports a value that is not a mapping.
    if agent.value.as_table().is_none() {
        return;
    }
    let Some(fields) = Fields::any(report, &agent.value, "an agent", Empty::Absent) else {
        return;
    };
    for flag in FLAGS {
        let Some(args) = flag.arguments(report, &fields) else {
            continue;
        };
        let entry = fields.entry(flag.key);
        let span = entry.map_or(agent.key_span, |entry| entry.key_span);
        for event in flag.events {
            let is_for_all = is_root && (flag.audience == Audience::Every || is_gate(*event));
            let hook = FlagHook {
                agent: Some(agent.key.as_str()).filter(|_| !is_for_all),
                includes_unnamed: is_root && !is_for_all,
                flag,
                args: &args,
                event: *event,
            };
            let mut known = written.iter().chain(wired.iter());
            if !known.any(|declaration| hook.is(declaration)) {
                wired.push(hook.declaration(&agent.key, span));
            }
        }
    }
}

impl Flag {
    /// Returns the arguments of the built-in if the agent turns it on.
    fn arguments(&self, report: &mut Report, fields: &Fields<'_>) -> Option<Vec<String>> {
        let is_on = match self.switch {
            Switch::True => fields.boolean(report, self.key) == Some(true),
            Switch::UnlessFalse => fields.boolean(report, self.key) != Some(false),
            Switch::Always => true,
            Switch::Enabled => {
                let node = &fields.entry(self.key)?.value;
                if node.as_table().is_none() {
                    return wrong(report, self.key, node, "a mapping with `enabled`");
                }
                let cache = Fields::any(report, node, self.key, Empty::Absent)?;
                cache.boolean(report, "enabled") == Some(true)
            }
            Switch::Files { depth } => {
                let mut args = fields.texts(report, self.key)?;
                if args.is_empty() {
                    return None;
                }
                let entry = fields.entry(depth);
                let depth = entry.and_then(|entry| read_count(report, depth, &entry.value));
                args.extend(depth.map(|depth| format!("--depth={depth}")));
                return Some(args);
            }
        };
        is_on.then(Vec::new)
    }
}

fn is_gate(event: EventKind) -> bool {
    event.info().class == EventClass::Gate
}

/// One built-in on one event.
struct FlagHook<'a> {
    /// The agent that the hook applies to; `None` is every agent.
    agent: Option<&'a str>,
    /// Whether it also applies to agents to which the embedding program gave no name.
    includes_unnamed: bool,
    flag: &'a Flag,
    args: &'a [String],
    event: EventKind,
}

impl FlagHook<'_> {
    /// Returns the definition that the same hook would have if a person had written it for `agent`.
    fn definition(&self, agent: Option<&str>) -> Definition {
        Definition::of("docker-agent")
            .list("args", self.args)
            .field("agent", agent)
            .field("type", Some("builtin"))
            .field("command", Some(self.flag.builtin))
    }

    /// Returns whether `declaration` is the same hook, either for this agent or for every agent.
    fn is(&self, declaration: &HookDeclaration) -> bool {
        let is_of_event = declaration
            .events
            .iter()
            .any(|event| event.name == EventName::Known(self.event));
        is_of_event
            && declaration.matcher.is_everything()
            && [None, self.agent]
                .into_iter()
                .any(|agent| declaration.definition == self.definition(agent))
    }

    /// Creates the hook that a key of the agent `owner` stands for.
    fn declaration(&self, owner: &str, span: Span) -> HookDeclaration {
        let (event, builtin) = (self.event.info().name, self.flag.builtin);
        let event = DeclaredEvent {
            name: EventName::Known(self.event),
            span,
            id: format!("{owner}.{event}.{builtin}"),
            on_error: is_gate(self.event).then_some(OnError::Block),
        };
        let action = HookAction::Builtin {
            name: builtin.to_owned(),
            args: self.args.to_vec(),
        };
        HookDeclaration {
            agent: self.agent.map(str::to_owned),
            includes_unnamed: self.includes_unnamed,
            ..HookDeclaration::of_agent_file(event, action, self.definition(self.agent))
        }
    }
}
