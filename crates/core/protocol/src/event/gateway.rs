//! Events of a gateway and its channels, over which people talk to an agent.

use serde::{Deserialize, Serialize};

use crate::JsonObject;
use crate::event_macro::event;
use crate::wire_enum::wire_enum;

/// One part of a message in a channel.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MessagePart {
    /// The type of the part: `text`, `audio`, `image`, `file` …
    pub kind: String,
    /// The text, if the part is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The media type, such as `audio/ogg`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The content in base64, or the location of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Other data about the part that the channel provides.
    #[serde(default, skip_serializing_if = "JsonObject::is_empty")]
    pub metadata: JsonObject,
}

/// Returns the text of a message: its text parts, joined by line ends. Hooks that read only the text see what the parts
/// say.
fn text_of(parts: &[MessagePart]) -> String {
    let texts = parts.iter().filter(|part| part.kind == "text");
    let texts: Vec<&str> = texts.filter_map(|part| part.text.as_deref()).collect();
    texts.join("\n")
}

wire_enum! {
    /// Why a gateway stops.
    pub enum GatewayStopReason {
        /// A user stopped it, or the machine shuts down.
        #[default] Shutdown = "shutdown",
        /// It cannot continue, for example because its store failed.
        Failed = "failed",
    }
}

wire_enum! {
    /// Why a channel was disconnected.
    pub enum ChannelDisconnectReason {
        /// The gateway stops.
        #[default] Shutdown = "shutdown",
        /// The channel was not connected: it had failed, and waited for its next attempt.
        Failed = "failed",
        /// The channel was removed from the settings, or switched off.
        Removed = "removed",
    }
}

wire_enum! {
    /// What a sender may do in a channel.
    pub enum SenderRole {
        /// May talk, approve calls and use every command.
        Owner = "owner",
        /// May talk and use the commands of a conversation.
        Member = "member",
        /// May talk.
        #[default] Guest = "guest",
    }
}

wire_enum! {
    /// What a message that leaves the gateway is.
    pub enum DeliveryKind {
        /// The last answer of a turn.
        #[default] Answer = "answer",
        /// Text that the agent writes before a tool call.
        Intermediate = "intermediate",
        /// A part that a hook or a tool sends in addition to the answer.
        Extra = "extra",
        /// The report of an error.
        Error = "error",
        /// The output of a command of the user.
        Command = "command",
    }
}

wire_enum! {
    /// Why an answer was cancelled.
    pub enum MessageCancelReason {
        /// The sender, or another member of the conversation, stopped it.
        #[default] User = "user",
        /// A newer message of the conversation took its place.
        Interrupt = "interrupt",
        /// The gateway stops.
        Shutdown = "shutdown",
    }
}

event! {
    /// Fires when the gateway has started.
    GatewayStart = "gateway_start", Observer, Parallel, not before_model
    {
        /// The ids of the gateway's channels that run, or that will be tried again.
        channel_ids: Vec<String>,
    }
}

event! {
    /// Fires before the gateway cancels what its channels do.
    GatewayStop = "gateway_stop", Observer, Parallel, not before_model
    {
        /// The ids of the gateway's channels.
        channel_ids: Vec<String>,
        /// Why it stops.
        #[serde(default)]
        reason (with_reason): GatewayStopReason,
    }
}

event! {
    /// Fires before a channel connects. It fires once for each channel, not again when a lost
    /// connection returns.
    ChannelConnect = "channel_connect", Gate, Series, subject channel_id, not before_model, honours [Block]
    {
        /// The channel's id.
        channel_id: String,
        /// The kind of the channel: `web`, `telegram`, `command` …
        #[serde(default)]
        kind (with_kind): String,
        /// The account that the channel uses at its service, if that is known already.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account (with_account): Option<String>,
    }
}

event! {
    /// Fires when a channel has disconnected.
    ChannelDisconnect = "channel_disconnect", Observer, Parallel, subject channel_id, not before_model
    {
        /// The channel's id.
        channel_id: String,
        /// Why it was disconnected.
        #[serde(default)]
        reason (with_reason): ChannelDisconnectReason,
    }
}

event! {
    /// Fires when a message has arrived, also while the agent works. If a hook blocks it, the sender
    /// gets the reason as an error message.
    MessageReceive = "message_receive", Gate, Series, subject channel_id, not before_model, honours [Block]
    {
        /// The channel's id.
        channel_id: String,
        /// The conversation within the channel.
        #[serde(default)]
        chat_id (with_chat_id): String,
        /// The sender.
        #[serde(default)]
        user_id (with_user_id): String,
        /// The text of the message.
        #[serde(default)]
        text (with_text): String,
        /// All parts of the message. `metadata.reference` marks a reply, a forward or an edit.
        #[serde(default)]
        parts (with_parts): Vec<MessagePart>,
        /// The id that the channel gave the message.
        #[serde(default)]
        message_id (with_message_id): String,
        /// The thread or topic within the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread_id (with_thread_id): Option<String>,
        /// The message that this one replies to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to (with_reply_to): Option<String>,
        /// Whether the sender is alone with the agent.
        #[serde(default)]
        is_direct (with_is_direct): bool,
        /// Whether the message, as it arrived, has a part with audio.
        #[serde(default)]
        is_voice (with_is_voice): bool,
        /// What the sender may do.
        #[serde(default)]
        role (with_role): SenderRole,
        /// Whether the agent is working in this conversation.
        #[serde(default)]
        busy (with_busy): bool,
        /// The name that the sender chose. Anybody can choose any name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sender_name (with_sender_name): Option<String>,
        /// Whether speech is turned into text here, if that was decided for this message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stt_enabled (with_stt_enabled): Option<bool>,
    }
    rewrites {
        replace replace_text => text,
        replace replace_parts => parts,
    }
    derives { text = text_of(parts) }
}

event! {
    /// Fires before anything visible leaves the gateway: answers, text before tool calls, what
    /// hooks and tools send, errors, and output of commands. If a hook blocks it, the receiver gets a
    /// note that the message was withheld.
    MessageDeliver = "message_deliver", Gate, Series, subject channel_id, not before_model, honours [Block]
    {
        /// The channel's id.
        channel_id: String,
        /// The conversation within the channel.
        #[serde(default)]
        chat_id (with_chat_id): String,
        /// Who gets the message. It is empty if the message has no single receiver.
        #[serde(default)]
        user_id (with_user_id): String,
        /// What the message is.
        #[serde(default)]
        kind (with_kind): DeliveryKind,
        /// The text of the message.
        #[serde(default)]
        text (with_text): String,
        /// All parts of the message.
        #[serde(default)]
        parts (with_parts): Vec<MessagePart>,
        /// The ids of the messages that this one answers.
        #[serde(default)]
        in_reply_to (with_in_reply_to): Vec<String>,
    }
    rewrites {
        replace replace_text => text,
        replace replace_parts => parts,
    }
    derives { text = text_of(parts) }
}

event! {
    /// Fires once for each turn, after its last text was delivered. Hooks can add parts.
    MessageSend = "message_send", Observer, Series, subject channel_id, not before_model
    {
        /// The channel's id.
        channel_id: String,
        /// The conversation within the channel.
        #[serde(default)]
        chat_id (with_chat_id): String,
        /// The message that this one answers, as the hooks of `message_receive` left it.
        #[serde(default)]
        input_text (with_input_text): String,
        /// The text of the answer, as the hooks of `message_deliver` left it.
        #[serde(default)]
        response_text (with_response_text): String,
        /// Whether the question was a voice message.
        #[serde(default)]
        is_voice (with_is_voice): bool,
        /// The ids of the messages that this turn answered.
        #[serde(default)]
        message_ids (with_message_ids): Vec<String>,
        /// The sender of the question.
        #[serde(default)]
        user_id (with_user_id): String,
        /// Whether the turn failed, so that the answer is an error.
        #[serde(default)]
        is_error (with_is_error): bool,
        /// Whether answers are spoken here, if that was decided for this turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tts_enabled (with_tts_enabled): Option<bool>,
        /// The media types of audio that the channel can send, the best first.
        #[serde(default)]
        audio_formats (with_audio_formats): Vec<String>,
    }
    collects {
        /// A part to send with the answer.
        part, parts(Vec<MessagePart>),
    }
}

event! {
    /// Fires when an answer was cancelled.
    MessageCancel = "message_cancel", Observer, Parallel, subject channel_id, not before_model
    {
        /// The channel's id.
        channel_id: String,
        /// The conversation within the channel.
        #[serde(default)]
        chat_id (with_chat_id): String,
        /// Who cancelled it. It is empty if no one in the conversation did.
        #[serde(default)]
        user_id (with_user_id): String,
        /// Why it was cancelled.
        #[serde(default)]
        reason (with_reason): MessageCancelReason,
    }
}

event! {
    /// Fires when a channel, or the answer to a message, has failed.
    GatewayError = "gateway_error", Observer, Parallel, subject channel_id, not before_model
    {
        /// The channel's id.
        channel_id: String,
        /// What went wrong.
        error: String,
        /// The conversation in which it happened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chat_id (with_chat_id): Option<String>,
        /// The message that was affected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id (with_message_id): Option<String>,
        /// A word for the kind of failure, such as `conflict`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code (with_code): Option<String>,
        /// Whether the gateway will try again.
        #[serde(default)]
        will_retry (with_will_retry): bool,
    }
}
