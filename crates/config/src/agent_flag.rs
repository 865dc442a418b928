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

/// One row of the table.
struct Flag {
    /// The key of the agent; for what is always on, the name for people.
    key: &'static str,
    switch: Switch,
    builtin: &'static str,
    events: &'static [EventKind],
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
        events: &[EventKind::TurnStart],
    },
    Flag {
        key: "add_prompt_files",
        switch: Switch::Arguments,
        builtin: "add_prompt_files",
        events: &[EventKind::TurnStart],
    },
    Flag {
        key: "add_environment_info",
        switch: Switch::True,
        builtin: "add_environment_info",
        events: &[EventKind::SessionStart],
    },
    Flag {
        key: "redact_secrets",
        switch: Switch::UnlessFalse,
        builtin: "redact_secrets",
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
        events: &[EventKind::ToolResponseTransform, EventKind::SessionEnd],
    },
    Flag {
        key: "cache",
        switch: Switch::Enabled,
        builtin: "cache_response",
        events: &[EventKind::Stop],
    },
];

/// Adds the hooks that the keys of an agent stand for to `wired`, without those that are there already or that
/// somebody wrote.
///
/// Gates of the root agent are for every agent, as its written hooks are; context is for the agent that asks for it.
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
            let wire = Wire {
                agent: &agent.key,
                is_root,
                flag,
                args: &args,
                event: *event,
            };
            let mut known = written.iter().chain(wired.iter());
            if !known.any(|draft| wire.is(draft)) {
                wired.push(wire.draft(span));
            }
        }
    }
}

impl Flag {
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

/// One built-in on one event.
struct Wire<'a> {
    agent: &'a str,
    is_root: bool,
    flag: &'a Flag,
    args: &'a [String],
    event: EventKind,
}

impl Wire<'_> {
    fn is_gate(&self) -> bool {
        self.event.info().class == EventClass::Gate
    }

    /// Returns the agent that the hook is for; `None` is all.
    fn audience(&self) -> Option<&str> {
        (!(self.is_root && self.is_gate())).then_some(self.agent)
    }

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
            && [None, Some(self.agent)]
                .into_iter()
                .any(|agent| draft.definition == self.definition(agent))
    }

    fn draft(&self, span: Span) -> Draft {
        let (event, builtin) = (self.event.info().name, self.flag.builtin);
        let event = DraftEvent {
            name: EventName::Known(self.event),
            span,
            id: format!("{}.{event}.{builtin}", self.agent),
            on_error: self.is_gate().then_some(OnError::Block),
        };
        let action = Action::Builtin {
            name: builtin.to_owned(),
            args: self.args.to_vec(),
        };
        Draft {
            agent: self.audience().map(str::to_owned),
            ..Draft::of_agent_file(event, action, self.definition(self.audience()))
        }
    }
}
