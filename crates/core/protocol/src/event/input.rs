//! Events of what a user, or a program that acts as the user, sends to the agent.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::content::Image;
use crate::event_macro::event;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// Where an input comes from.
    pub enum InputSource {
        /// A person at a prompt.
        #[default] Interactive = "interactive",
        /// A program that uses a protocol such as JSON-RPC.
        Rpc = "rpc",
        /// An extension.
        Extension = "extension",
        /// A scheduled task.
        Cron = "cron",
        /// Another agent.
        Subagent = "subagent",
        /// A standing goal of the agent.
        Goal = "goal",
        /// A message in a channel of the gateway.
        Channel = "channel",
    }
}

wire_enum! {
    /// What the agent is waiting for.
    pub enum WaitReason {
        /// Approval of a tool call.
        ToolApproval = "tool_approval",
        /// The answer to a question of the agent.
        Question = "question",
        /// A decision on whether to continue past the iteration limit.
        MaxIterations = "max_iterations",
        /// The user's next message.
        #[default] Idle = "idle",
    }
}

wire_enum! {
    /// A queue of user messages for a running agent.
    pub enum QueueKind {
        /// Messages that the agent reads before its next step.
        #[default] Steering = "steering",
        /// Messages that the agent reads when it is done.
        FollowUp = "follow_up",
    }
}

/// The result of a command that the user ran.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct BashResult {
    /// The command's output.
    pub output: String,
    /// The exit status, if the command exited.
    pub exit_code: Option<i32>,
    /// Whether the command was cancelled.
    pub cancelled: bool,
    /// Whether the output was truncated.
    pub truncated: bool,
}

event! {
    /// Fires when an input arrives, before commands and templates are expanded.
    UserInput = "user_input", Gate, Series, subject source, honours [Handled, Block]
    {
        /// The text.
        text: String,
        /// Images that came with the text.
        images (with_images): Option<Vec<Image>>,
        /// Where the input comes from.
        #[serde(default)]
        source (with_source): InputSource,
    }
    rewrites {
        replace replace_text => text,
        replace replace_images => images,
    }
}

event! {
    /// Fires when a user message has been recorded, before it is sent to the model.
    UserPromptSubmit = "user_prompt_submit", Gate, Series, honours [Block, Context]
    {
        /// The message.
        prompt: String,
    }
}

event! {
    /// Fires before messages of the steering queue are sent to the model.
    UserSteeringSubmit = "user_steering_submit", Gate, Series, honours [Block, Context]
    {
        /// The messages in order.
        messages: Vec<String>,
    }
}

event! {
    /// Fires before a queued follow-up is sent to the model.
    UserFollowupSubmit = "user_followup_submit", Gate, Series, honours [Block, Context]
    {
        /// The message.
        prompt: String,
    }
}

event! {
    /// Fires when the user runs a shell command themselves.
    UserBash = "user_bash", Observer, Series, honours [Handled]
    {
        /// The command line.
        command: String,
        /// Whether the command and its output are kept from the model.
        #[serde(default)]
        exclude_from_context (with_exclude_from_context): bool,
        /// The directory in which the command runs.
        cwd: PathBuf,
    }
    rewrites {
        replace replace_command => command,
    }
    supplies BashResult
}

event! {
    /// Fires when the agent starts to wait for the user.
    WaitingForUser = "waiting_for_user", Observer, Parallel, subject reason
    {
        /// What the agent is waiting for.
        #[serde(default)]
        reason (with_reason): WaitReason,
    }
}

event! {
    /// Fires when a message was added to a queue or removed from one.
    QueueUpdate = "queue_update", Observer, Parallel, subject queue
    {
        /// The queue that changed.
        queue: QueueKind,
        /// The message that was added, if any.
        message (with_message): Option<String>,
        /// All messages in the queue now, in order.
        messages: Vec<String>,
    }
}
