//! Channels over which people talk to an agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::JsonObject;
use crate::catalogue::event;

/// One part of a message in a channel.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessagePart {
    /// What it is: `text`, `audio`, `image`, `file` …
    pub kind: String,
    /// The text, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The media type, such as `audio/ogg`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The bytes in base 64, or where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// What else the channel says of it.
    #[serde(default, skip_serializing_if = "JsonObject::is_empty")]
    pub metadata: JsonObject,
}

event! {
    /// The gateway started.
    GatewayStart = "gateway_start", Observer, Parallel
    {
        /// Its channels.
        channel_ids: Vec<String>,
    }
}

event! {
    /// The gateway stopped.
    GatewayStop = "gateway_stop", Observer, Parallel
    {
        /// Its channels.
        channel_ids: Vec<String>,
    }
}

event! {
    /// A channel is about to connect.
    ChannelConnect = "channel_connect", Gate, Series, subject channel_id, honours [Block]
    {
        /// The channel.
        channel_id: String,
    }
}

event! {
    /// A channel disconnected.
    ChannelDisconnect = "channel_disconnect", Observer, Parallel, subject channel_id
    {
        /// The channel.
        channel_id: String,
    }
}

event! {
    /// A message arrived. A block goes back to the channel as an error message.
    MessageReceive = "message_receive", Gate, Series, subject channel_id, honours [Block]
    {
        /// The channel.
        channel_id: String,
        /// The conversation in the channel.
        #[serde(default)]
        chat_id: String,
        /// Who wrote it.
        #[serde(default)]
        user_id: String,
        /// The text.
        #[serde(default)]
        text: String,
        /// All parts.
        #[serde(default)]
        parts: Vec<MessagePart>,
    }
    rewrites {
        replace replace_text => text,
        replace replace_parts => parts,
    }
}

event! {
    /// An answer is about to be sent.
    MessageSend = "message_send", Observer, Series, subject channel_id
    {
        /// The channel.
        channel_id: String,
        /// The conversation in the channel.
        #[serde(default)]
        chat_id: String,
        /// What it answers.
        #[serde(default)]
        input_text: String,
        /// The answer.
        #[serde(default)]
        response_text: String,
        /// The question was spoken.
        #[serde(default)]
        is_voice: bool,
    }
    collects {
        /// A part to send with the answer.
        part, parts(Vec<MessagePart>),
    }
}

event! {
    /// The writer cancelled.
    MessageCancel = "message_cancel", Observer, Parallel, subject channel_id
    {
        /// The channel.
        channel_id: String,
        /// The conversation in the channel.
        #[serde(default)]
        chat_id: String,
    }
}

event! {
    /// A channel failed.
    GatewayError = "gateway_error", Observer, Parallel, subject channel_id
    {
        /// The channel.
        channel_id: String,
        /// What went wrong.
        error: String,
    }
}
