//! One run of an agent: from a prompt until the model has nothing left to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue::event;
use crate::message::{Image, Message, Messages};
use crate::wire_enum::wire_enum;

wire_enum! {
    /// How an agent run ended.
    pub enum AgentEndReason {
        /// The model had nothing left to do.
        #[default] Completed = "completed",
        /// It was cancelled.
        Aborted = "aborted",
        /// An error ended it.
        Error = "error",
    }
}

wire_enum! {
    /// How serious a notification is.
    pub enum NotificationLevel {
        /// For information.
        #[default] Info = "info",
        /// Something to look at.
        Warning = "warning",
        /// Something failed.
        Error = "error",
    }
}

event! {
    /// A run is about to start: the last chance to change its prompt and tools.
    BeforeAgentStart = "before_agent_start", Observer, Series, honours [Inject]
    {
        /// The user's prompt.
        prompt: String,
        /// Images beside it.
        images: Option<Vec<Image>>,
        /// The system prompt. An empty one is an empty prompt.
        #[serde(default)]
        system_prompt: String,
    }
    rewrites {
        replace replace_system_prompt => system_prompt,
    }
    collects {
        /// A tool to enable for this run.
        enable_tool, enabled_tools(Vec<String>),
        /// A tool to disable for this run.
        disable_tool, disabled_tools(Vec<String>),
    }
}

event! {
    /// A run started.
    AgentStart = "agent_start", Observer, Parallel {}
}

event! {
    /// A run ended.
    AgentEnd = "agent_end", Observer, Parallel, subject reason
    {
        /// The messages of this run.
        messages: Vec<Message>,
        /// How it ended.
        #[serde(default)]
        reason: AgentEndReason,
    }
}

event! {
    /// The model finished without asking for a tool. Hooks that fail never keep the agent going.
    Stop = "stop", Observer, Series, honours [FollowUp]
    {
        /// The conversation.
        #[serde(default)]
        messages: Messages,
        /// The model's last answer.
        #[serde(default)]
        response: String,
        /// The last message of the user.
        last_user_message: Option<String>,
        /// The agent goes on because a stop hook asked for it.
        #[serde(default)]
        stop_hook_active: bool,
    }
}

event! {
    /// Something failed that the agent could not mend.
    AgentError = "agent_error", Observer, Parallel
    {
        /// What went wrong.
        error: String,
        /// Trying again may help.
        #[serde(default)]
        retryable: bool,
    }
}

event! {
    /// The iteration cap was reached.
    MaxIterations = "max_iterations", Observer, Parallel
    {
        /// The cap.
        limit: u32,
    }
}

event! {
    /// The session was stored.
    SavePoint = "save_point", Observer, Parallel {}
}

event! {
    /// The agent is done and nothing is queued.
    AgentSettled = "agent_settled", Observer, Parallel {}
}

event! {
    /// A failed model call is about to be tried again.
    RetryStart = "retry_start", Observer, Parallel
    {
        /// The attempt that comes next, from 1.
        attempt: u32,
        /// How many there may be.
        max_retries: u32,
    }
}

event! {
    /// A retry ended.
    RetryEnd = "retry_end", Observer, Parallel
    {
        /// The attempt.
        attempt: u32,
        /// It succeeded.
        success: bool,
        /// What went wrong, if it did not.
        error: Option<String>,
    }
}

event! {
    /// Something that a user may want to know of.
    Notification = "notification", Observer, Parallel, subject level
    {
        /// How serious it is.
        level: NotificationLevel,
        /// The text.
        message: String,
        /// What it is about: `model_error`, `max_iterations`, `hook_blocked` …
        #[serde(default)]
        kind: String,
    }
}

/// A model that an agent is configured with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentModel {
    /// The provider: `openai`, `dmr` …
    pub provider: String,
    /// The model, as the provider names it.
    pub model: String,
    /// Where the provider is reached, if that is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Where the provider is told to drop the model from its memory: a URL, or a path below the provider's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unload_api: Option<String>,
}

event! {
    /// Another agent takes over.
    AgentSwitch = "agent_switch", Observer, Parallel, subject kind
    {
        /// The agent that was active.
        from_agent: String,
        /// The agent that is active now.
        to_agent: String,
        /// How: `transfer_task`, `transfer_task_return`, `handoff` …
        kind: String,
        /// The models of the agent that was active, where agents have models of their own.
        #[serde(default)]
        from_agent_models: Vec<AgentModel>,
    }
}

event! {
    /// The user let the agent go on past the iteration cap.
    SessionLimitResume = "session_limit_resume", Observer, Parallel
    {
        /// The cap before.
        previous_max_iterations: u32,
        /// The cap now.
        new_max_iterations: u32,
    }
}
