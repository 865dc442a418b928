//! pi's events: their names, their fields, and what their handlers may return.

use tenterhook_engine::EventKind;

use super::{field_readers, field_writers};
use crate::object::{END_REASONS, Field, START_REASONS, directory, made, renamed, same, worded};

/// An event of pi.
#[derive(Debug)]
pub struct PiEvent {
    /// pi's name for the event.
    pub name: &'static str,
    /// The event of the catalogue.
    pub kind: EventKind,
    pub(super) fields: &'static [Field],
    pub(super) answer: Answer,
}

/// What handlers of an event may return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Nothing; a returned value is ignored.
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

/// Sources of input for which pi has no word of its own. The first row maps pi's own word, for reading back.
const INPUT_SOURCES: &[(&str, &str)] = &[
    ("extension", "extension"),
    ("cron", "extension"),
    ("subagent", "extension"),
    ("goal", "extension"),
];

const MESSAGE: &[Field] = &[made(
    "message",
    field_writers::message,
    field_readers::message,
)];
const NOTHING: &[Field] = &[];

/// Every event of pi: first the documented ones in the order of its document, then the ones that are only
/// in its source code.
pub const EVENTS: &[PiEvent] = &[
    answered(
        "input",
        EventKind::UserInput,
        &[
            same("text"),
            made("images", field_writers::images, field_readers::images),
            worded("source", "source", INPUT_SOURCES),
        ],
        Answer::Input,
    ),
    answered(
        "before_agent_start",
        EventKind::BeforeAgentStart,
        &[
            same("prompt"),
            made("images", field_writers::images, field_readers::images),
            renamed("systemPrompt", "system_prompt"),
        ],
        Answer::BeforeAgentStart,
    ),
    watched("agent_start", EventKind::AgentStart, NOTHING),
    watched(
        "agent_end",
        EventKind::AgentEnd,
        &[made(
            "messages",
            field_writers::messages,
            field_readers::messages,
        )],
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
        &[made(
            "messages",
            field_writers::messages,
            field_readers::messages,
        )],
        Answer::Context,
    ),
    watched(
        "turn_end",
        EventKind::TurnEnd,
        &[
            renamed("turnIndex", "turn_index"),
            made("message", field_writers::message, field_readers::message),
            made(
                "toolResults",
                field_writers::tool_results,
                field_readers::tool_results,
            ),
        ],
    ),
    watched("message_start", EventKind::MessageStart, MESSAGE),
    watched(
        "message_update",
        EventKind::MessageUpdate,
        &[
            made("message", field_writers::message, field_readers::message),
            made(
                "assistantMessageEvent",
                field_writers::delta,
                field_readers::delta,
            ),
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
            made("args", field_writers::args, field_readers::args),
            made(
                "partialResult",
                field_writers::partial_result,
                field_readers::partial_result,
            ),
        ],
    ),
    watched(
        "tool_execution_end",
        EventKind::ToolExecutionEnd,
        &[
            renamed("toolCallId", "tool_use_id"),
            renamed("toolName", "tool_name"),
            made("result", field_writers::result, field_readers::result),
            made(
                "isError",
                field_writers::is_error,
                field_readers::call_is_error,
            ),
        ],
    ),
    answered(
        "tool_result",
        EventKind::PostToolUse,
        &[
            renamed("toolCallId", "tool_use_id"),
            renamed("toolName", "tool_name"),
            renamed("input", "tool_input"),
            made(
                "content",
                field_writers::result_content,
                field_readers::result_content,
            ),
            made(
                "details",
                field_writers::result_details,
                field_readers::result_details,
            ),
            made("isError", field_writers::is_error, field_readers::is_error),
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
            made(
                "preparation",
                field_writers::compaction,
                field_readers::compaction,
            ),
            made(
                "branchEntries",
                field_writers::branch_entries,
                field_readers::branch_entries,
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
                field_writers::compaction_entry,
                field_readers::compaction_entry,
            ),
            renamed("fromExtension", "from_hook"),
            same("reason"),
        ],
    ),
    answered(
        "session_before_tree",
        EventKind::SessionBeforeTree,
        &[made(
            "preparation",
            field_writers::tree,
            field_readers::tree,
        )],
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
                field_writers::summary_entry,
                field_readers::summary_entry,
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
            made("model", field_writers::model, field_readers::model),
            made(
                "previousModel",
                field_writers::previous_model,
                field_readers::previous_model,
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
