//! Events of one agent run: from a prompt until the model has nothing left to do.

use serde::{Deserialize, Serialize};

use crate::content::Image;
use crate::event_macro::event;
use crate::message::{Message, Messages};
use crate::wire_enum::wire_enum;

wire_enum! {
    /// How an agent run ended.
    pub enum AgentEndReason {
        /// The model had nothing left to do.
        #[default] Completed = "completed",
        /// The run was cancelled.
        Aborted = "aborted",
        /// An error ended the run.
        Error = "error",
    }
}

wire_enum! {
    /// How serious a notification is.
    pub enum NotificationLevel {
        /// For information.
        #[default] Info = "info",
        /// Something that deserves attention.
        Warning = "warning",
        /// Something failed.
        Error = "error",
    }
}

event! {
    /// Fires just before a run starts. This is the last chance to change its prompt and tools.
    BeforeAgentStart = "before_agent_start", Observer, Series, honours [Inject]
    {
        /// The user's prompt.
        prompt: String,
        /// Images that came with the prompt.
        images (with_images): Option<Vec<Image>>,
        /// The system prompt. An empty string means an empty prompt, not the default one.
        #[serde(default)]
        system_prompt (with_system_prompt): String,
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
    /// Fires when a run has started.
    AgentStart = "agent_start", Observer, Parallel {}
}

event! {
    /// Fires when a run has ended.
    AgentEnd = "agent_end", Observer, Parallel, subject reason
    {
        /// The messages of this run.
        messages: Vec<Message>,
        /// How the run ended.
        #[serde(default)]
        reason (with_reason): AgentEndReason,
    }
}

event! {
    /// Fires when the model finishes without asking for a tool. A follow-up keeps the agent
    /// working. A hook that fails does not keep it working.
    Stop = "stop", Observer, Series, honours [FollowUp]
    {
        /// The conversation.
        #[serde(default)]
        messages (with_messages): Messages,
        /// The model's last answer.
        #[serde(default)]
        response (with_response): String,
        /// The user's last message.
        last_user_message (with_last_user_message): Option<String>,
        /// Whether the agent is still running because an earlier `stop` hook added a follow-up.
        #[serde(default)]
        stop_hook_active (with_stop_hook_active): bool,
    }
}

event! {
    /// Fires when an error occurs that the agent cannot recover from.
    AgentError = "agent_error", Observer, Parallel
    {
        /// What went wrong.
        error: String,
        /// Whether another attempt may succeed.
        #[serde(default)]
        retryable (with_retryable): bool,
    }
}

event! {
    /// Fires when the run reaches the iteration limit.
    MaxIterations = "max_iterations", Observer, Parallel
    {
        /// The limit, in iterations.
        limit: u32,
    }
}

event! {
    /// Fires when the session has been saved.
    SavePoint = "save_point", Observer, Parallel {}
}

event! {
    /// Fires when the agent is done and no messages are queued.
    AgentSettled = "agent_settled", Observer, Parallel {}
}

event! {
    /// Fires before a failed model call is retried.
    RetryStart = "retry_start", Observer, Parallel
    {
        /// The number of the attempt that follows, starting at 1.
        attempt: u32,
        /// The maximum number of retries.
        max_retries: u32,
    }
}

event! {
    /// Fires when a retry has ended.
    RetryEnd = "retry_end", Observer, Parallel
    {
        /// The number of the attempt, starting at 1.
        attempt: u32,
        /// Whether the attempt succeeded.
        success: bool,
        /// What went wrong, if the attempt failed.
        error (with_error): Option<String>,
    }
}

event! {
    /// Fires when there is something that the user may want to know.
    Notification = "notification", Observer, Parallel, subject level
    {
        /// How serious the notification is.
        level: NotificationLevel,
        /// The text of the notification.
        message: String,
        /// What the notification is about: `model_error`, `max_iterations`, `hook_blocked` …
        #[serde(default)]
        kind (with_kind): String,
    }
}

/// A model that is configured for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentModel {
    /// The provider, such as `openai` or `dmr`.
    pub provider: String,
    /// The provider's name for the model.
    pub model: String,
    /// The base URL of the provider, if one is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The endpoint that unloads the model from the provider's memory: a URL, or a path on the
    /// provider's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unload_api: Option<String>,
}

event! {
    /// Fires when another agent takes over.
    AgentSwitch = "agent_switch", Observer, Parallel, subject kind
    {
        /// The agent that was active.
        from_agent: String,
        /// The agent that is active now.
        to_agent: String,
        /// How the switch happened: `transfer_task`, `transfer_task_return`, `handoff` …
        kind: String,
        /// The models of the agent that was active, if the host configures models for each agent.
        #[serde(default)]
        from_agent_models (with_from_agent_models): Vec<AgentModel>,
    }
}

event! {
    /// Fires when the user lets the agent continue past the iteration limit.
    SessionLimitResume = "session_limit_resume", Observer, Parallel
    {
        /// The limit before, in iterations.
        previous_max_iterations: u32,
        /// The limit now, in iterations.
        new_max_iterations: u32,
    }
}
