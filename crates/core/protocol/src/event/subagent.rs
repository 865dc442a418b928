//! Events of tasks that an agent gives to other agents.

use crate::event_macro::event;
use crate::id::{SessionId, TaskId};
use crate::wire_enum::wire_enum;

wire_enum! {
    /// How a subagent's task ended.
    pub enum SubagentStatus {
        /// It returned a result.
        #[default] Completed = "completed",
        /// An error ended the task.
        Failed = "failed",
        /// The task was cancelled.
        Cancelled = "cancelled",
    }
}

event! {
    /// Fires when a subagent has been given a task. The event belongs to the parent's session.
    SubagentStart = "subagent_start", Observer, Parallel, subject label, not before_model
    {
        /// The task's id.
        task_id: TaskId,
        /// The subagent's name.
        label: String,
        /// The task.
        #[serde(default)]
        task (with_task): String,
    }
}

event! {
    /// Fires when a subagent has finished its task. The event belongs to the parent's session.
    SubagentStop = "subagent_stop", Observer, Parallel, subject label, not before_model
    {
        /// The task's id.
        task_id: TaskId,
        /// The subagent's name.
        label: String,
        /// The task.
        #[serde(default)]
        task (with_task): String,
        /// How the task ended.
        #[serde(default)]
        status (with_status): SubagentStatus,
        /// The subagent's last answer. It may be empty if the task failed.
        #[serde(default)]
        result (with_result): String,
        /// The subagent's session.
        child_session_id: SessionId,
        /// The parent's session.
        parent_session_id: SessionId,
    }
}
