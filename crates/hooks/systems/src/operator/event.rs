//! Operator's events: their names, their fields, and what their handlers may return.

use tenterhook_engine::EventKind;

use super::{field_readers, field_writers};
use crate::object::{END_REASONS, Field, START_REASONS, directory, made, renamed, same, worded};

/// An event of Operator.
#[derive(Debug)]
pub struct OperatorEvent {
    /// Operator's name for the event.
    pub name: &'static str,
    /// The event of the catalogue.
    pub kind: EventKind,
    /// The name of the dialect. It differs for two events that correspond to one event of the catalogue,
    /// so that the engine writes each of them separately.
    pub(super) written_as: &'static str,
    pub(super) fields: &'static [Field],
    pub(super) answer: Answer,
}

/// What handlers of an event may return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Nothing; a returned value is ignored.
    None,
    ToolCall,
    ToolResult,
    Context,
    BeforeAgentStart,
    BeforeSwitch,
    BeforeFork,
    BeforeCompact,
    BeforeTree,
    Input,
    Receive,
    Send,
    MessageEnd,
    Connect,
    Discover,
}

impl Answer {
    /// Returns the class of the result object.
    pub(super) const fn class(self) -> Option<&'static str> {
        Some(match self {
            Self::None => return None,
            Self::ToolCall => "ToolCallEventResult",
            Self::ToolResult => "ToolResultEventResult",
            Self::Context => "ContextEventResult",
            Self::BeforeAgentStart => "BeforeAgentStartEventResult",
            Self::BeforeSwitch => "SessionBeforeSwitchResult",
            Self::BeforeFork => "SessionBeforeForkResult",
            Self::BeforeCompact => "SessionBeforeCompactResult",
            Self::BeforeTree => "SessionBeforeTreeResult",
            Self::Input => "InputEventResult",
            Self::Receive => "MessageReceiveResult",
            Self::Send => "MessageSendResult",
            Self::MessageEnd => "MessageEndEventResult",
            Self::Connect => "ChannelConnectResult",
            Self::Discover => "ResourcesDiscoverResult",
        })
    }
}

const fn watched(name: &'static str, kind: EventKind, fields: &'static [Field]) -> OperatorEvent {
    answered(name, kind, fields, Answer::None)
}

const fn answered(
    name: &'static str,
    kind: EventKind,
    fields: &'static [Field],
    answer: Answer,
) -> OperatorEvent {
    OperatorEvent {
        name,
        kind,
        written_as: "operator",
        fields,
        answer,
    }
}

const QUEUES: &[(&str, &str)] = &[("follow_up", "followup")];

const MESSAGE: &[Field] = &[same("message")];
const NOTHING: &[Field] = &[];

/// Every event of Operator: first the documented ones in the order of its document, then the ones that
/// are only in its source code.
pub const EVENTS: &[OperatorEvent] = &[
    watched(
        "session_start",
        EventKind::SessionStart,
        &[
            worded("reason", "source", START_REASONS),
            renamed("previous_session_file", "previous_session"),
        ],
    ),
    answered(
        "session_before_switch",
        EventKind::SessionBeforeSwitch,
        &[
            same("reason"),
            renamed("target_session_file", "target_session"),
        ],
        Answer::BeforeSwitch,
    ),
    answered(
        "session_before_fork",
        EventKind::SessionBeforeFork,
        &[same("entry_id"), same("position")],
        Answer::BeforeFork,
    ),
    answered(
        "session_before_compact",
        EventKind::BeforeCompaction,
        &[
            same("preparation"),
            same("branch_entries"),
            same("custom_instructions"),
        ],
        Answer::BeforeCompact,
    ),
    watched(
        "session_compact",
        EventKind::AfterCompaction,
        &[
            same("compaction_entry"),
            renamed("from_extension", "from_hook"),
        ],
    ),
    watched(
        "session_shutdown",
        EventKind::SessionEnd,
        &[
            worded("reason", "reason", END_REASONS),
            renamed("target_session_file", "target_session"),
        ],
    ),
    answered(
        "session_before_tree",
        EventKind::SessionBeforeTree,
        &[same("preparation")],
        Answer::BeforeTree,
    ),
    watched(
        "session_tree",
        EventKind::SessionTree,
        &[
            same("new_leaf_id"),
            same("old_leaf_id"),
            same("summary_entry"),
            renamed("from_extension", "from_hook"),
        ],
    ),
    answered(
        "input",
        EventKind::UserInput,
        &[same("text"), same("source")],
        Answer::Input,
    ),
    answered(
        "before_agent_start",
        EventKind::BeforeAgentStart,
        &[same("prompt"), same("system_prompt")],
        Answer::BeforeAgentStart,
    ),
    answered(
        "context",
        EventKind::Context,
        &[same("messages")],
        Answer::Context,
    ),
    watched("agent_start", EventKind::AgentStart, NOTHING),
    watched(
        "agent_end",
        EventKind::AgentEnd,
        &[same("messages"), same("reason")],
    ),
    watched("agent_error", EventKind::AgentError, &[same("error")]),
    watched("save_point", EventKind::SavePoint, NOTHING),
    watched("settled", EventKind::AgentSettled, NOTHING),
    watched(
        "turn_start",
        EventKind::TurnStart,
        &[
            same("turn_index"),
            made(
                "timestamp",
                field_writers::started_at,
                field_readers::started_at,
            ),
        ],
    ),
    watched(
        "turn_end",
        EventKind::TurnEnd,
        &[
            same("turn_index"),
            same("message"),
            made(
                "tool_results",
                field_writers::tool_results,
                field_readers::tool_results,
            ),
        ],
    ),
    watched("message_start", EventKind::MessageStart, MESSAGE),
    watched(
        "message_update",
        EventKind::MessageUpdate,
        &[made("message", field_writers::delta, field_readers::delta)],
    ),
    answered(
        "message_end",
        EventKind::MessageEnd,
        MESSAGE,
        Answer::MessageEnd,
    ),
    watched(
        "tool_execution_start",
        EventKind::ToolExecutionStart,
        &[made("tool_call", field_writers::call, field_readers::call)],
    ),
    watched(
        "tool_execution_update",
        EventKind::ToolExecutionUpdate,
        &[made(
            "partial_tool_result",
            field_writers::partial_result,
            field_readers::partial_result,
        )],
    ),
    watched(
        "tool_execution_end",
        EventKind::ToolExecutionEnd,
        &[made(
            "tool_result",
            field_writers::result,
            field_readers::result,
        )],
    ),
    watched(
        "tool_execution_failure",
        EventKind::ToolError,
        &[
            same("tool_name"),
            renamed("tool_call_id", "tool_use_id"),
            renamed("input", "tool_input"),
            same("error"),
        ],
    ),
    answered(
        "tool_call",
        EventKind::PreToolUse,
        &[
            renamed("tool_call_id", "tool_use_id"),
            same("tool_name"),
            renamed("input", "tool_input"),
        ],
        Answer::ToolCall,
    ),
    answered(
        "tool_result",
        EventKind::PostToolUse,
        &[
            renamed("tool_call_id", "tool_use_id"),
            same("tool_name"),
            renamed("input", "tool_input"),
            made(
                "content",
                field_writers::result_text,
                field_readers::result_text,
            ),
            made(
                "is_error",
                field_writers::result_is_error,
                field_readers::result_is_error,
            ),
        ],
        Answer::ToolResult,
    ),
    watched(
        "model_select",
        EventKind::ModelSelect,
        &[same("model"), same("previous_model"), same("source")],
    ),
    watched(
        "thinking_level_select",
        EventKind::ThinkingLevelSelect,
        &[same("level"), same("previous_level")],
    ),
    watched(
        "subagent_start",
        EventKind::SubagentStart,
        &[same("task_id"), same("label"), same("task")],
    ),
    watched(
        "subagent_end",
        EventKind::SubagentStop,
        &[
            same("task_id"),
            same("label"),
            same("status"),
            same("result"),
        ],
    ),
    watched(
        "gateway:startup",
        EventKind::GatewayStart,
        &[same("channel_ids")],
    ),
    watched(
        "gateway:stop",
        EventKind::GatewayStop,
        &[same("channel_ids"), same("reason")],
    ),
    answered(
        "channel:connect",
        EventKind::ChannelConnect,
        &[same("channel_id"), same("kind"), same("account")],
        Answer::Connect,
    ),
    watched(
        "channel:disconnect",
        EventKind::ChannelDisconnect,
        &[same("channel_id"), same("reason")],
    ),
    answered(
        "message:receive",
        EventKind::MessageReceive,
        &[
            same("channel_id"),
            same("chat_id"),
            same("user_id"),
            same("text"),
            made("parts", field_writers::parts, field_readers::parts),
            same("stt_enabled"),
            same("message_id"),
            same("thread_id"),
            same("reply_to"),
            same("is_direct"),
            same("is_voice"),
            same("role"),
            same("busy"),
            same("sender_name"),
        ],
        Answer::Receive,
    ),
    answered(
        "message:send",
        EventKind::MessageSend,
        &[
            same("channel_id"),
            same("chat_id"),
            same("input_text"),
            same("response_text"),
            same("is_voice"),
            same("tts_enabled"),
            same("message_ids"),
            same("user_id"),
            same("is_error"),
            same("audio_formats"),
        ],
        Answer::Send,
    ),
    watched(
        "message:cancel",
        EventKind::MessageCancel,
        &[
            same("channel_id"),
            same("chat_id"),
            same("user_id"),
            same("reason"),
        ],
    ),
    watched(
        "gateway:error",
        EventKind::GatewayError,
        &[
            same("channel_id"),
            same("error"),
            same("chat_id"),
            same("message_id"),
            same("code"),
            same("will_retry"),
        ],
    ),
    watched(
        "user_bash",
        EventKind::UserBash,
        &[same("command"), same("exclude_from_context"), same("cwd")],
    ),
    answered(
        "resources_discover",
        EventKind::ResourcesDiscover,
        &[directory("cwd"), same("reason")],
        Answer::Discover,
    ),
    watched(
        "retry_start",
        EventKind::RetryStart,
        &[same("attempt"), same("max_retries")],
    ),
    watched(
        "retry_end",
        EventKind::RetryEnd,
        &[same("attempt"), same("success"), same("error")],
    ),
    watched(
        "before_provider_request",
        EventKind::ProviderRequest,
        &[
            made(
                "model",
                field_writers::request_model,
                field_readers::request_model,
            ),
            made(
                "messages",
                field_writers::request_messages,
                field_readers::request_messages,
            ),
            made(
                "options",
                field_writers::request_options,
                field_readers::request_options,
            ),
        ],
    ),
    watched(
        "after_provider_response",
        EventKind::AfterLlmCall,
        &[renamed("model", "model_id"), same("response")],
    ),
    watched(
        "queue_update",
        EventKind::QueueUpdate,
        &[
            worded("queue", "queue", QUEUES),
            same("message"),
            same("messages"),
        ],
    ),
    watched(
        "compaction_start",
        EventKind::CompactionStart,
        &[same("tokens_before")],
    ),
    OperatorEvent {
        written_as: "operator compaction_end",
        ..watched(
            "compaction_end",
            EventKind::AfterCompaction,
            &[renamed("tokens_before", "input_tokens"), same("summary")],
        )
    },
];
