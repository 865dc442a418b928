//! What the user, or a program in the user's place, gives the agent.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue::event;
use crate::message::Image;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// Where an input comes from.
    pub enum InputSource {
        /// A person at a prompt.
        #[default] Interactive = "interactive",
        /// A program over a protocol.
        Rpc = "rpc",
        /// An extension.
        Extension = "extension",
        /// A schedule.
        Cron = "cron",
        /// Another agent.
        Subagent = "subagent",
        /// A standing goal.
        Goal = "goal",
    }
}

wire_enum! {
    /// What the agent waits for.
    pub enum WaitReason {
        /// A tool call wants approval.
        ToolApproval = "tool_approval",
        /// The agent asked a question.
        Question = "question",
        /// The iteration cap was reached.
        MaxIterations = "max_iterations",
        /// The next message.
        #[default] Idle = "idle",
    }
}

wire_enum! {
    /// A queue of user messages for a running agent.
    pub enum QueueKind {
        /// Messages for the next step.
        #[default] Steering = "steering",
        /// Messages for when the agent is done.
        FollowUp = "follow_up",
    }
}

/// The result of a command that the user ran.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BashResult {
    /// What it printed.
    pub output: String,
    /// Its exit status, if it exited.
    pub exit_code: Option<i32>,
    /// It was cancelled.
    pub cancelled: bool,
    /// The output was cut.
    pub truncated: bool,
}

event! {
    /// An input arrived, before commands and templates are expanded.
    UserInput = "user_input", Gate, Series, subject source, honours [Handled, Block]
    {
        /// The text.
        text: String,
        /// Images beside it.
        images: Option<Vec<Image>>,
        /// Where it comes from.
        #[serde(default)]
        source: InputSource,
    }
    rewrites {
        replace replace_text => text,
        replace replace_images => images,
    }
}

event! {
    /// A user message was recorded and goes to the model next.
    UserPromptSubmit = "user_prompt_submit", Gate, Series, honours [Block, Context]
    {
        /// The message.
        prompt: String,
    }
}

event! {
    /// Messages of the steering queue go to the model next.
    UserSteeringSubmit = "user_steering_submit", Gate, Series, honours [Block, Context]
    {
        /// The messages in order.
        messages: Vec<String>,
    }
}

event! {
    /// A queued follow-up goes to the model next.
    UserFollowupSubmit = "user_followup_submit", Gate, Series, honours [Block, Context]
    {
        /// The message.
        prompt: String,
    }
}

event! {
    /// The user runs a command of their own.
    UserBash = "user_bash", Observer, Series, honours [Handled]
    {
        /// The command line.
        command: String,
        /// Neither command nor output go to the model.
        #[serde(default)]
        exclude_from_context: bool,
        /// Where it runs.
        cwd: PathBuf,
    }
    rewrites {
        replace replace_command => command,
    }
    supplies BashResult
}

event! {
    /// The agent waits for the user.
    WaitingForUser = "waiting_for_user", Observer, Parallel, subject reason
    {
        /// What it waits for.
        #[serde(default)]
        reason: WaitReason,
    }
}

event! {
    /// A message was queued or taken from a queue.
    QueueUpdate = "queue_update", Observer, Parallel, subject queue
    {
        /// The queue.
        queue: QueueKind,
        /// The message that was added, if one was.
        message: Option<String>,
        /// The queue now.
        messages: Vec<String>,
    }
}
