//! pi's events: their names, their fields, and what their handlers may return.

use tenterhook::EventKind;

use super::{captured, write};
use crate::object::{END_REASONS, Field, START_REASONS, directory, made, renamed, same, worded};

/// An event of pi.
#[derive(Debug)]
pub struct PiEvent {
    /// pi's name.
    pub name: &'static str,
    /// The event of the catalogue.
    pub kind: EventKind,
    pub(super) fields: &'static [Field],
    pub(super) answer: Answer,
}

/// What handlers of an event may return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Nothing that counts.
    None,
    Directory,
    Discover,
    BeforeSwitch,
    BeforeFork,
    BeforeCompact,
    BeforeTree,
    Input,
    UserBash,
    BeforeAgentStart,
    Context,
    ProviderRequest,
    MessageEnd,
    ToolCall,
    ToolResult,
}

const fn watched(name: &'static str, kind: EventKind, fields: &'static [Field]) -> PiEvent {
    answered(name, kind, fields, Answer::None)
}

const fn answered(
    name: &'static str,
    kind: EventKind,
    fields: &'static [Field],
    answer: Answer,
) -> PiEvent {
    PiEvent {
        name,
        kind,
        fields,
        answer,
    }
}

/// Where input comes from, where pi has no word for it.
const INPUT_SOURCES: &[(&str, &str)] = &[
    ("extension", "extension"),
    ("cron", "extension"),
    ("subagent", "extension"),
    ("goal", "extension"),
];

const MESSAGE: &[Field] = &[made("message", write::message, captured::message)];
const NOTHING: &[Field] = &[];

/// Every event of pi, in the order of its document, then those that only its source has.
pub const EVENTS: &[PiEvent] = &[
    answered(
        "input",
        EventKind::UserInput,
        &[
            same("text"),
            made("images", write::images, captured::images),
            worded("source", "source", INPUT_SOURCES),
        ],
        Answer::Input,
    ),
    answered(
        "before_agent_start",
        EventKind::BeforeAgentStart,
        &[
            same("prompt"),
            made("images", write::images, captured::images),
            renamed("systemPrompt", "system_prompt"),
        ],
        Answer::BeforeAgentStart,
    ),
    watched("agent_start", EventKind::AgentStart, NOTHING),
    watched(
        "agent_end",
        EventKind::AgentEnd,
        &[made("messages", write::messages, captured::messages)],
    ),
    watched(
        "turn_start",
        EventKind::TurnStart,
        &[
            renamed("turnIndex", "turn_index"),
            renamed("timestamp", "started_at_ms"),
        ],
    ),
    answered(
        "context",
        EventKind::Context,
        &[made("messages", write::messages, captured::messages)],
        Answer::Context,
    ),
    watched(
        "turn_end",
        EventKind::TurnEnd,
        &[
            renamed("turnIndex", "turn_index"),
            made("message", write::message, captured::message),
            made("toolResults", write::tool_results, captured::tool_results),
        ],
    ),
    watched("message_start", EventKind::MessageStart, MESSAGE),
    watched(
        "message_update",
        EventKind::MessageUpdate,
        &[
            made("message", write::message, captured::message),
            made("assistantMessageEvent", write::delta, captured::delta),
        ],
    ),
    answered(
        "message_end",
        EventKind::MessageEnd,
        MESSAGE,
        Answer::MessageEnd,
    ),
    answered(
        "tool_call",
        EventKind::PreToolUse,
        &[
            renamed("toolCallId", "tool_use_id"),
            renamed("toolName", "tool_name"),
            renamed("input", "tool_input"),
        ],
        Answer::ToolCall,
    ),
    watched(
        "tool_execution_start",
        EventKind::ToolExecutionStart,
        &[
            renamed("toolCallId", "tool_use_id"),
            renamed("toolName", "tool_name"),
            renamed("args", "tool_input"),
        ],
    ),
    watched(
        "tool_execution_update",
        EventKind::ToolExecutionUpdate,
        &[
            renamed("toolCallId", "tool_use_id"),
            renamed("toolName", "tool_name"),
            made(
                "partialResult",
                write::partial_result,
                captured::partial_result,
            ),
        ],
    ),
    watched(
        "tool_execution_end",
        EventKind::ToolExecutionEnd,
        &[
            renamed("toolCallId", "tool_use_id"),
            renamed("toolName", "tool_name"),
            made("result", write::result, captured::result),
            made("isError", write::is_error, captured::call_is_error),
        ],
    ),
    answered(
        "tool_result",
        EventKind::PostToolUse,
        &[
            renamed("toolCallId", "tool_use_id"),
            renamed("toolName", "tool_name"),
            renamed("input", "tool_input"),
            made("content", write::result_content, captured::result_content),
            made("details", write::result_details, captured::result_details),
            made("isError", write::is_error, captured::is_error),
        ],
        Answer::ToolResult,
    ),
    watched(
        "session_start",
        EventKind::SessionStart,
        &[
            worded("reason", "source", START_REASONS),
            renamed("previousSessionFile", "previous_session"),
        ],
    ),
    answered(
        "session_before_switch",
        EventKind::SessionBeforeSwitch,
        &[
            same("reason"),
            renamed("targetSessionFile", "target_session"),
        ],
        Answer::BeforeSwitch,
    ),
    watched(
        "session_switch",
        EventKind::SessionSwitch,
        &[
            same("reason"),
            renamed("previousSessionFile", "previous_session"),
        ],
    ),
    answered(
        "session_before_fork",
        EventKind::SessionBeforeFork,
        &[renamed("entryId", "entry_id"), same("position")],
        Answer::BeforeFork,
    ),
    watched(
        "session_fork",
        EventKind::SessionFork,
        &[renamed("previousSessionFile", "previous_session")],
    ),
    answered(
        "session_before_compact",
        EventKind::BeforeCompaction,
        &[
            made("preparation", write::compaction, captured::compaction),
            made(
                "branchEntries",
                write::branch_entries,
                captured::branch_entries,
            ),
            renamed("customInstructions", "custom_instructions"),
            same("reason"),
        ],
        Answer::BeforeCompact,
    ),
    watched(
        "session_compact",
        EventKind::AfterCompaction,
        &[
            made(
                "compactionEntry",
                write::compaction_entry,
                captured::compaction_entry,
            ),
            renamed("fromExtension", "from_hook"),
            same("reason"),
        ],
    ),
    answered(
        "session_before_tree",
        EventKind::SessionBeforeTree,
        &[made("preparation", write::tree, captured::tree)],
        Answer::BeforeTree,
    ),
    watched(
        "session_tree",
        EventKind::SessionTree,
        &[
            renamed("newLeafId", "new_leaf_id"),
            renamed("oldLeafId", "old_leaf_id"),
            made(
                "summaryEntry",
                write::summary_entry,
                captured::summary_entry,
            ),
            renamed("fromExtension", "from_hook"),
        ],
    ),
    watched(
        "session_shutdown",
        EventKind::SessionEnd,
        &[
            worded("reason", "reason", END_REASONS),
            renamed("targetSessionFile", "target_session"),
        ],
    ),
    watched(
        "model_select",
        EventKind::ModelSelect,
        &[
            made("model", write::model, captured::model),
            made(
                "previousModel",
                write::previous_model,
                captured::previous_model,
            ),
            same("source"),
        ],
    ),
    answered(
        "resources_discover",
        EventKind::ResourcesDiscover,
        &[directory("cwd"), same("reason")],
        Answer::Discover,
    ),
    answered(
        "user_bash",
        EventKind::UserBash,
        &[
            same("command"),
            renamed("excludeFromContext", "exclude_from_context"),
            same("cwd"),
        ],
        Answer::UserBash,
    ),
    answered(
        "session_directory",
        EventKind::SessionDirectoryResolve,
        &[directory("cwd")],
        Answer::Directory,
    ),
    answered(
        "before_provider_request",
        EventKind::ProviderRequest,
        &[same("payload")],
        Answer::ProviderRequest,
    ),
    watched(
        "after_provider_response",
        EventKind::ProviderResponse,
        &[same("status"), same("headers")],
    ),
    watched(
        "thinking_level_select",
        EventKind::ThinkingLevelSelect,
        &[same("level"), renamed("previousLevel", "previous_level")],
    ),
    watched("agent_settled", EventKind::AgentSettled, NOTHING),
    watched(
        "session_compact_failed",
        EventKind::CompactionFailed,
        &[renamed("errorMessage", "error")],
    ),
    watched(
        "session_info_changed",
        EventKind::SessionInfoChange,
        &[same("name")],
    ),
];
