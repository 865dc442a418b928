//! Keys of an agent that stand for built-ins: `add_date: true` is a hook of every turn.
//!
//! | key | on | built-in | events |
//! |---|---|---|---|
//! | `add_date` | where it is true | `add_date` | `turn_start` |
//! | `add_prompt_files` | where it lists files | `add_prompt_files` | `turn_start` |
//! | `add_environment_info` | where it is true | `add_environment_info` | `session_start` |
//! | `redact_secrets` | unless it is false | `redact_secrets` | `tool_input_transform`, `before_llm_call`, `tool_response_transform` |
//! | `snapshot` | where it is true | `snapshot` | `session_start`, `turn_start`, `turn_end`, `session_end` |
//! | none | always | `limit_large_tool_results` | `tool_response_transform`, `session_end` |
//! | `cache` | where it has `enabled: true` | `cache_response` | `stop` |
//!
//! The order is that of the rows: results lose their secrets before a large one goes to a file.

use tenterhook::{EventClass, EventKind, EventName, OnError};

use crate::draft::{Action, Definition, Draft, DraftEvent};
use crate::fields::{Empty, Fields, wrong};
use crate::report::Report;
use crate::source::Span;
use crate::tree::Entry;

/// The name of an agent that an embedder gave none.
const UNNAMED: &str = "";

/// One row of the table.
struct Flag {
    /// The key of the agent; for what is always on, the name for people.
    key: &'static str,
    switch: Switch,
    builtin: &'static str,
    audience: Audience,
    events: &'static [EventKind],
}

/// The agents that the built-in of the root agent is for. That of another agent is for this agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    /// Every agent: it protects what all of them exchange.
    Every,
    /// The root agent and agents without a name: it adds something that another agent did not ask for. Its gates are
    /// for every agent all the same.
    Root,
}

/// What turns a built-in on.
#[derive(Clone, Copy)]
enum Switch {
    /// `true`.
    True,
    /// Anything but `false`.
    UnlessFalse,
    /// A list of arguments with something in it.
    Arguments,
    /// A mapping with `enabled: true`.
    Enabled,
    /// Nothing has to.
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
        switch: Switch::Arguments,
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

/// Adds the hooks that the keys of an agent stand for to `wired`, without those that are there already or that
/// somebody wrote.
///
/// Gates of the root agent are for every agent, as its written hooks are; context is for the agent that asks for it.
/// An embedder may run an agent without a name, which then has what the root agent has.
pub(crate) fn read(
    report: &mut Report,
    agent: &Entry,
    is_root: bool,
    written: &[Draft],
    wired: &mut Vec<Draft>,
) {
    // What is no mapping is the agent's own business.
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
            for audience in flag.audiences(*event, &agent.key, is_root) {
                let wire = Wire {
                    agent: audience,
                    flag,
                    args: &args,
                    event: *event,
                };
                let mut known = written.iter().chain(wired.iter());
                if !known.any(|draft| wire.is(draft)) {
                    wired.push(wire.draft(&agent.key, span));
                }
            }
        }
    }
}

impl Flag {
    /// Returns the agents that the built-in is for on an event, one hook each; `None` is every agent.
    fn audiences<'a>(
        &self,
        event: EventKind,
        agent: &'a str,
        is_root: bool,
    ) -> Vec<Option<&'a str>> {
        if !is_root {
            vec![Some(agent)]
        } else if self.audience == Audience::Every || is_gate(event) {
            vec![None]
        } else {
            vec![Some(agent), Some(UNNAMED)]
        }
    }

    /// Returns the arguments of the built-in where the agent has it.
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
            Switch::Arguments => {
                let args = fields.texts(report, self.key)?;
                return (!args.is_empty()).then_some(args);
            }
        };
        is_on.then(Vec::new)
    }
}

fn is_gate(event: EventKind) -> bool {
    event.info().class == EventClass::Gate
}

/// One built-in on one event.
struct Wire<'a> {
    /// The agent that the hook is for; `None` is every agent.
    agent: Option<&'a str>,
    flag: &'a Flag,
    args: &'a [String],
    event: EventKind,
}

impl Wire<'_> {
    /// Returns the definition that the same hook has where a person wrote it for `agent`.
    fn definition(&self, agent: Option<&str>) -> String {
        Definition::of("docker-agent")
            .list("args", self.args)
            .field("agent", agent)
            .field("type", Some("builtin"))
            .field("command", Some(self.flag.builtin))
            .into_text()
    }

    /// Says whether `draft` is the same hook, for this agent at least.
    fn is(&self, draft: &Draft) -> bool {
        let is_of_event = draft
            .events
            .iter()
            .any(|event| event.name == EventName::Known(self.event));
        is_of_event
            && draft.matcher.is_everything()
            && [None, self.agent]
                .into_iter()
                .any(|agent| draft.definition == self.definition(agent))
    }

    /// Makes the hook that a key of the agent `owner` stands for.
    fn draft(&self, owner: &str, span: Span) -> Draft {
        let (event, builtin) = (self.event.info().name, self.flag.builtin);
        let prefix = match self.agent {
            Some(UNNAMED) => "unnamed",
            _ => owner,
        };
        let event = DraftEvent {
            name: EventName::Known(self.event),
            span,
            id: format!("{prefix}.{event}.{builtin}"),
            on_error: is_gate(self.event).then_some(OnError::Block),
        };
        let action = Action::Builtin {
            name: builtin.to_owned(),
            args: self.args.to_vec(),
        };
        Draft {
            agent: self.agent.map(str::to_owned),
            ..Draft::of_agent_file(event, action, self.definition(self.agent))
        }
    }
}
