//! The groups of events. Each is a page of the reference, and a file in
//! `crates/core/protocol/src/event/`.

use tenterhook_engine::EventKind;

/// A group of events that follow one another in the catalogue.
#[derive(Debug)]
pub struct Group {
    /// The name of the page and of the source file.
    pub name: &'static str,
    /// The heading of the page.
    pub title: &'static str,
    /// What the events of the group have in common.
    pub introduction: &'static str,
    /// The first event. The group ends where the next one begins.
    first: EventKind,
}

const fn group(
    name: &'static str,
    first: EventKind,
    title: &'static str,
    introduction: &'static str,
) -> Group {
    Group {
        name,
        title,
        introduction,
        first,
    }
}

/// Every group, in the order of the catalogue.
pub static GROUPS: &[Group] = &[
    group(
        "session",
        EventKind::SessionDirectoryResolve,
        "Session events",
        "A session is one stored conversation. These events report where it is stored, when it begins and \
         ends, and when the user switches to another session, copies it or moves to another branch of it.",
    ),
    group(
        "compaction",
        EventKind::PreCompact,
        "Compaction events",
        "Compaction replaces a conversation that has become too long with a summary. The events fire in the \
         order of this page. At the end, either `after_compaction` or `compaction_failed` fires.",
    ),
    group(
        "input",
        EventKind::UserInput,
        "Input events",
        "These events cover everything that the user, or a program on the user's behalf, gives the agent: \
         prompts, queued messages and shell commands.",
    ),
    group(
        "agent",
        EventKind::BeforeAgentStart,
        "Run events",
        "A run starts with a prompt and ends when the model has nothing left to do. These events report its \
         start, its end and what goes wrong on the way.",
    ),
    group(
        "turn",
        EventKind::TurnStart,
        "Turn events",
        "A turn is one model call and the tool calls that follow from it. A run has one or more turns.",
    ),
    group(
        "tool",
        EventKind::ToolsDisabled,
        "Tool events",
        "One tool call fires several of these events, from the model's request to the result that the model \
         gets. [Events](../events.md#tool-calls-of-tenterhook-run) shows their order.",
    ),
    group(
        "subagent",
        EventKind::SubagentStart,
        "Subagent events",
        "A subagent is an agent that works on a task for another agent. Both events fire on the agent that \
         gave the task.",
    ),
    group(
        "model",
        EventKind::ModelSelect,
        "Model events",
        "These events fire when the user or a script selects another model or another level of thinking. \
         Neither event fires if nothing changes.",
    ),
    group(
        "gateway",
        EventKind::GatewayStart,
        "Gateway events",
        "A gateway connects an agent to channels, the places where people talk to it: a web page, Telegram, \
         a webhook. `tenterhook gateway run` fires these events, in addition to the events of the agent. `tenterhook run` \
         has no channels, so it does not.",
    ),
    group(
        "open",
        EventKind::Setup,
        "Events of other agents",
        "These events exist in other agents only. Their payload has no fixed fields: hooks get the keys that \
         the agent wrote. `tenterhook run` never fires them; a program that embeds the engine does, or \
         `tenterhook fire`.",
    ),
    group(
        "custom",
        EventKind::Custom,
        "User-defined events",
        "A program can define events of its own. It chooses the name, `x-<vendor>.<name>`, and the payload.",
    ),
];

impl Group {
    /// Returns the group of an event.
    #[expect(
        clippy::indexing_slicing,
        reason = "the table has rows, and the first group begins with the first event"
    )]
    pub fn of(kind: EventKind) -> &'static Self {
        let mut groups = GROUPS.iter().rev();
        let found = groups.find(|group| group.first.index() <= kind.index());
        found.unwrap_or(&GROUPS[0])
    }

    /// Returns the events of the group in the order of the catalogue.
    pub fn events(&self) -> impl Iterator<Item = EventKind> {
        let name = self.name;
        let all = EventKind::ALL.iter().copied();
        all.filter(move |kind| Self::of(*kind).name == name)
    }
}
