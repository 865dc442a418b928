//! One turn: a model call and what it leads to.

use serde_json::Value;

use crate::JsonObject;
use crate::catalogue::event;
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
        Canceled = "canceled",
        /// A hook stopped the run.
        HookBlocked = "hook_blocked",
        /// The model repeated the same tool call.
        LoopDetected = "loop_detected",
    }
}

event! {
    /// A turn starts. Context is for this model call only and is never stored.
    TurnStart = "turn_start", Observer, Parallel, honours [Context]
    {
        /// Position in the run, from 0.
        #[serde(default)]
        turn_index: u32,
        /// When it started, in milliseconds since 1970.
        #[serde(default)]
        started_at_ms: i64,
    }
}

event! {
    /// The messages for the model are assembled.
    Context = "context", Observer, Series
    {
        /// A copy of the messages.
        messages: Messages,
    }
    rewrites {
        result replace_messages => messages,
    }
}

event! {
    /// Just before a model call.
    BeforeLlmCall = "before_llm_call", Gate, Series, subject model_id, honours [StopRun]
    {
        /// `provider/model`.
        #[serde(default)]
        model_id: String,
        /// The call's number in this run, from 1.
        #[serde(default)]
        iteration: u32,
        /// What is about to be sent.
        #[serde(default)]
        messages: Messages,
    }
    rewrites {
        result replace_messages => messages,
    }
}

event! {
    /// The tools that the model is offered are chosen.
    ToolSelection = "tool_selection", Observer, Series
    {
        /// The tools' names.
        tools: Vec<String>,
    }
    rewrites {
        replace replace_tools => tools,
    }
}

event! {
    /// A request goes to the provider in the provider's own form.
    ProviderRequest = "provider_request", Observer, Series
    {
        /// The request's body.
        payload: Value,
    }
    rewrites {
        result replace_payload => payload,
    }
}

event! {
    /// The provider answered.
    ProviderResponse = "provider_response", Observer, Parallel
    {
        /// The HTTP status.
        status: u16,
        /// The response's headers.
        #[serde(default)]
        headers: JsonObject,
    }
}

event! {
    /// A model call succeeded; its answer is not stored yet.
    AfterLlmCall = "after_llm_call", Observer, Parallel, subject model_id
    {
        /// `provider/model`.
        #[serde(default)]
        model_id: String,
        /// The text of the answer.
        #[serde(default)]
        response: String,
        /// The last message of the user.
        last_user_message: Option<String>,
        /// Tokens, if the provider counted them.
        usage: Option<Usage>,
        /// The price in US dollars, if known.
        cost: Option<f64>,
    }
}

event! {
    /// A message begins.
    MessageStart = "message_start", Observer, Parallel
    {
        /// What is known of it.
        message: Message,
    }
}

event! {
    /// A message grows.
    MessageUpdate = "message_update", Observer, Parallel
    {
        /// The message so far.
        message: Message,
        /// What was added.
        delta: String,
    }
}

event! {
    /// A message is complete and is about to be stored.
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
    /// A turn ended, however it ended.
    TurnEnd = "turn_end", Observer, Series, subject reason
    {
        /// Position in the run, from 0.
        #[serde(default)]
        turn_index: u32,
        /// Position in the session, from 1.
        #[serde(default)]
        turn_number: u32,
        /// The model's message, if there is one.
        message: Option<Message>,
        /// Its text.
        #[serde(default)]
        response: String,
        /// The results of the tool calls.
        #[serde(default)]
        tool_results: Vec<ToolResult>,
        /// How it ended.
        #[serde(default)]
        reason: TurnEndReason,
    }
}
