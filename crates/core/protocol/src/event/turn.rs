//! Events of one turn: a model call and the tool calls that follow from it.

use serde_json::Value;

use crate::JsonObject;
use crate::event_macro::event;
use crate::message::{Message, Messages, ToolResult, Usage};
use crate::wire_enum::wire_enum;

wire_enum! {
    /// How a turn ended.
    pub enum TurnEndReason {
        /// The model finished.
        #[default] Normal = "normal",
        /// Another turn follows, for tool results or follow-ups.
        Continue = "continue",
        /// A steering message led to another turn.
        Steered = "steered",
        /// The model call failed.
        Error = "error",
        /// The run was cancelled.
        Cancelled = "cancelled" reads "canceled",
        /// A hook stopped the run.
        HookBlocked = "hook_blocked",
        /// The model repeated the same tool call.
        LoopDetected = "loop_detected",
    }
}

event! {
    /// Fires when a turn starts. Added context is only for this model call and is never stored.
    TurnStart = "turn_start", Observer, Parallel, honours [Context]
    {
        /// The position of the turn in the run, starting at 0.
        #[serde(default)]
        turn_index (with_turn_index): u32,
        /// When the turn started, in milliseconds since 1970-01-01 UTC.
        #[serde(default)]
        started_at_ms (with_started_at_ms): i64,
    }
}

event! {
    /// Fires when the messages for the model have been assembled.
    Context = "context", Observer, Series
    {
        /// The messages. Changes affect only this model call, not the stored conversation.
        messages: Messages,
    }
    rewrites {
        result replace_messages => messages,
    }
}

event! {
    /// Fires just before a model call.
    BeforeLlmCall = "before_llm_call", Gate, Series, subject model_id, not before_model, honours [StopRun]
    {
        /// The model, as `provider/model`.
        #[serde(default)]
        model_id (with_model_id): String,
        /// The number of the model call in this run, starting at 1.
        #[serde(default)]
        iteration (with_iteration): u32,
        /// The messages to send.
        #[serde(default)]
        messages (with_messages): Messages,
    }
    rewrites {
        result replace_messages => messages,
    }
}

event! {
    /// Fires when the host chooses the tools to offer to the model.
    ToolSelection = "tool_selection", Observer, Series, not before_model
    {
        /// The names of the tools.
        tools: Vec<String>,
    }
    rewrites {
        replace replace_tools => tools,
    }
}

event! {
    /// Fires before a request is sent to the provider, in the provider's own format.
    ProviderRequest = "provider_request", Observer, Series, not before_model
    {
        /// The body of the request.
        payload: Value,
    }
    rewrites {
        result replace_payload => payload,
    }
}

event! {
    /// Fires when the provider has answered.
    ProviderResponse = "provider_response", Observer, Parallel, not before_model
    {
        /// The HTTP status code.
        status: u16,
        /// The headers of the response.
        #[serde(default)]
        headers (with_headers): JsonObject,
    }
}

event! {
    /// Fires when a model call has succeeded, before its answer is stored.
    AfterLlmCall = "after_llm_call", Observer, Parallel, subject model_id, not before_model
    {
        /// The model, as `provider/model`.
        #[serde(default)]
        model_id (with_model_id): String,
        /// The text of the answer.
        #[serde(default)]
        response (with_response): String,
        /// The user's last message.
        last_user_message (with_last_user_message): Option<String>,
        /// The token counts, if the provider reported them.
        usage (with_usage): Option<Usage>,
        /// The price in US dollars, if known.
        cost (with_cost): Option<f64>,
    }
}

event! {
    /// Fires when a message begins.
    MessageStart = "message_start", Observer, Parallel
    {
        /// The part of the message that is known so far.
        message: Message,
    }
}

event! {
    /// Fires when text is added to a message.
    MessageUpdate = "message_update", Observer, Parallel, not before_model
    {
        /// The message so far.
        message: Message,
        /// The text that was added.
        delta: String,
    }
}

event! {
    /// Fires when a message is complete, before it is stored.
    MessageEnd = "message_end", Observer, Series
    {
        /// The message.
        message: Message,
    }
    rewrites {
        result replace_message => message,
    }
}

event! {
    /// Fires when a turn has ended, for whatever reason.
    TurnEnd = "turn_end", Observer, Series, subject reason
    {
        /// The position of the turn in the run, starting at 0.
        #[serde(default)]
        turn_index (with_turn_index): u32,
        /// The position of the turn in the session, starting at 1.
        #[serde(default)]
        turn_number (with_turn_number): u32,
        /// The model's message, if there is one.
        message (with_message): Option<Message>,
        /// The text of the message.
        #[serde(default)]
        response (with_response): String,
        /// The results of the turn's tool calls.
        #[serde(default)]
        tool_results (with_tool_results): Vec<ToolResult>,
        /// How the turn ended.
        #[serde(default)]
        reason (with_reason): TurnEndReason,
    }
}
