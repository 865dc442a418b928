//! docker-agent's events: their names, and their keys for the fields of the catalogue's events.

use tenterhook_protocol::EventKind;

/// An event of docker-agent.
#[derive(Debug)]
pub struct DockerEvent {
    /// docker-agent's name for the event.
    pub name: &'static str,
    /// The event of the catalogue.
    pub kind: EventKind,
    /// Whether its configuration is a list of matcher entries instead of a list of hooks.
    pub has_matcher: bool,
    /// The keys that it has in addition to the keys of all events.
    pub(crate) fields: &'static [Field],
}

/// One key of an event.
#[derive(Debug)]
pub(crate) struct Field {
    /// docker-agent's key.
    pub(crate) key: &'static str,
    /// The source of its value.
    pub(crate) from: From,
}

/// The source of a value.
#[derive(Debug)]
pub(crate) enum From {
    /// The payload's field with this name.
    Payload(&'static str),
    /// The messages in the payload's field with this name, in docker-agent's form.
    Messages(&'static str),
    /// The text of the tool result.
    ResultText,
    /// Whether the tool result is an error.
    ResultIsError,
    /// This fixed text.
    Text(&'static str),
    /// The text of the notification about the limit of iterations.
    IterationCap,
    /// The payload's field with this name, translated to docker-agent's words.
    Worded(&'static str, &'static [Word]),
}

/// A word of the catalogue, and docker-agent's word for it.
type Word = (&'static str, &'static str);

/// How a turn ended, or what was decided about a tool call. Only words that differ are listed.
const CANCELLED: &[Word] = &[("cancelled", "canceled")];

/// Who or what decided about a tool call. Only words that differ are listed.
const APPROVAL_SOURCES: &[Word] = &[
    ("rule_allow", "team_permissions_allow"),
    ("rule_deny", "team_permissions_deny"),
    ("session_allow", "session_permissions_allow"),
    ("mode_yes", "yolo"),
    ("user_approved_session", "user_approved_tool"),
    ("context_cancelled", "context_canceled"),
];

const fn field(key: &'static str) -> Field {
    renamed(key, key)
}

const fn renamed(key: &'static str, payload: &'static str) -> Field {
    Field {
        key,
        from: From::Payload(payload),
    }
}

const fn worded(key: &'static str, payload: &'static str, words: &'static [Word]) -> Field {
    Field {
        key,
        from: From::Worded(payload, words),
    }
}

const TOOL_CALL: &[Field] = &[
    field("tool_name"),
    field("tool_use_id"),
    field("tool_input"),
];
const CATEGORISED_CALL: &[Field] = &[
    field("tool_name"),
    field("tool_use_id"),
    field("tool_input"),
    field("tool_category"),
];

const fn matched(name: &'static str, kind: EventKind, fields: &'static [Field]) -> DockerEvent {
    DockerEvent {
        name,
        kind,
        has_matcher: true,
        fields,
    }
}

const fn flat(name: &'static str, kind: EventKind, fields: &'static [Field]) -> DockerEvent {
    DockerEvent {
        name,
        kind,
        has_matcher: false,
        fields,
    }
}

/// Every event of docker-agent: first the documented ones in the order of its document, then the events
/// of its newest version.
pub const EVENTS: &[DockerEvent] = &[
    matched("pre_tool_use", EventKind::PreToolUse, TOOL_CALL),
    matched(
        "post_tool_use",
        EventKind::PostToolUse,
        &[
            field("tool_name"),
            field("tool_use_id"),
            field("tool_input"),
            Field {
                key: "tool_response",
                from: From::ResultText,
            },
            Field {
                key: "tool_error",
                from: From::ResultIsError,
            },
        ],
    ),
    matched(
        "permission_request",
        EventKind::PermissionRequest,
        TOOL_CALL,
    ),
    flat("session_start", EventKind::SessionStart, &[field("source")]),
    flat(
        "user_prompt_submit",
        EventKind::UserPromptSubmit,
        &[field("prompt")],
    ),
    flat("turn_start", EventKind::TurnStart, &[]),
    flat(
        "turn_end",
        EventKind::TurnEnd,
        &[worded("reason", "reason", CANCELLED)],
    ),
    flat(
        "before_llm_call",
        EventKind::BeforeLlmCall,
        &[
            field("model_id"),
            field("iteration"),
            Field {
                key: "messages",
                from: From::Messages("messages"),
            },
        ],
    ),
    flat(
        "after_llm_call",
        EventKind::AfterLlmCall,
        &[
            field("model_id"),
            field("last_user_message"),
            renamed("stop_response", "response"),
            field("usage"),
            field("cost"),
        ],
    ),
    flat("session_end", EventKind::SessionEnd, &[field("reason")]),
    flat("pre_compact", EventKind::PreCompact, &[field("source")]),
    flat(
        "subagent_stop",
        EventKind::SubagentStop,
        &[
            renamed("session_id", "child_session_id"),
            renamed("agent_name", "label"),
            renamed("stop_response", "result"),
            field("parent_session_id"),
        ],
    ),
    flat("on_user_input", EventKind::WaitingForUser, &[]),
    flat(
        "stop",
        EventKind::Stop,
        &[
            renamed("stop_response", "response"),
            field("last_user_message"),
        ],
    ),
    flat(
        "notification",
        EventKind::Notification,
        &[
            renamed("notification_level", "level"),
            renamed("notification_message", "message"),
        ],
    ),
    flat(
        "on_error",
        EventKind::AgentError,
        &[
            Field {
                key: "notification_level",
                from: From::Text("error"),
            },
            renamed("notification_message", "error"),
        ],
    ),
    flat(
        "on_max_iterations",
        EventKind::MaxIterations,
        &[
            Field {
                key: "notification_level",
                from: From::Text("warning"),
            },
            Field {
                key: "notification_message",
                from: From::IterationCap,
            },
        ],
    ),
    flat(
        "before_compaction",
        EventKind::BeforeCompaction,
        &[
            field("input_tokens"),
            field("output_tokens"),
            field("context_limit"),
            renamed("compaction_reason", "reason"),
        ],
    ),
    flat(
        "after_compaction",
        EventKind::AfterCompaction,
        &[
            field("input_tokens"),
            field("output_tokens"),
            field("context_limit"),
            renamed("compaction_reason", "reason"),
            field("summary"),
        ],
    ),
    matched(
        "tool_response_transform",
        EventKind::ToolResponseTransform,
        &[
            field("tool_name"),
            field("tool_use_id"),
            field("tool_input"),
            field("tool_category"),
            field("tool_response"),
            renamed("tool_error", "is_error"),
        ],
    ),
    matched(
        "tool_input_transform",
        EventKind::ToolInputTransform,
        CATEGORISED_CALL,
    ),
    matched("tool_guard", EventKind::ToolGuard, CATEGORISED_CALL),
    flat(
        "user_steering_messages_submit",
        EventKind::UserSteeringSubmit,
        &[renamed("steering_messages", "messages")],
    ),
    flat(
        "user_followup_submit",
        EventKind::UserFollowupSubmit,
        &[field("prompt")],
    ),
    flat(
        "on_agent_switch",
        EventKind::AgentSwitch,
        &[
            field("from_agent"),
            field("to_agent"),
            renamed("agent_switch_kind", "kind"),
            field("from_agent_models"),
        ],
    ),
    flat(
        "on_session_resume",
        EventKind::SessionLimitResume,
        &[
            field("previous_max_iterations"),
            field("new_max_iterations"),
        ],
    ),
    flat(
        "on_tool_approval_decision",
        EventKind::ToolApprovalDecision,
        &[
            field("tool_name"),
            field("tool_use_id"),
            field("tool_input"),
            worded("approval_decision", "decision", CANCELLED),
            worded("approval_source", "source", APPROVAL_SOURCES),
        ],
    ),
    flat(
        "worktree_create",
        EventKind::WorktreeCreate,
        &[
            field("worktree_path"),
            field("worktree_branch"),
            field("worktree_source_dir"),
        ],
    ),
];

/// Returns docker-agent's row for an event of the catalogue.
pub(crate) fn row(kind: EventKind) -> Option<&'static DockerEvent> {
    EVENTS.iter().find(|event| event.kind == kind)
}

/// Returns whether the event takes `instruction_context`.
pub(super) fn takes_instructions(kind: EventKind) -> bool {
    matches!(kind, EventKind::SessionStart | EventKind::TurnStart)
}

/// Returns whether plain text that a hook prints on this event is context for the model.
pub(super) fn takes_plain_text(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::SessionStart
            | EventKind::UserPromptSubmit
            | EventKind::UserSteeringSubmit
            | EventKind::UserFollowupSubmit
            | EventKind::TurnStart
            | EventKind::PreCompact
            | EventKind::WorktreeCreate
    )
}
