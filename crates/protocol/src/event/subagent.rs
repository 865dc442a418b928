//! Tasks given to other agents.

use crate::catalogue::event;
use crate::id::{SessionId, TaskId};
use crate::wire_enum::wire_enum;

wire_enum! {
    /// How a subagent's task ended.
    pub enum SubagentStatus {
        /// It has a result.
        #[default] Completed = "completed",
        /// An error ended it.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

event! {
    /// A subagent got a task. Fired on the parent.
    SubagentStart = "subagent_start", Observer, Parallel, subject label
    {
        /// The task's id.
        task_id: TaskId,
        /// The subagent's name.
        label: String,
        /// The task.
        #[serde(default)]
        task: String,
    }
}

event! {
    /// A subagent is done. Fired on the parent.
    SubagentStop = "subagent_stop", Observer, Parallel, subject label
    {
        /// The task's id.
        task_id: TaskId,
        /// The subagent's name.
        label: String,
        /// The task.
        #[serde(default)]
        task: String,
        /// How it ended.
        #[serde(default)]
        status: SubagentStatus,
        /// Its last answer; may be empty where it failed.
        #[serde(default)]
        result: String,
        /// The subagent's session.
        child_session_id: SessionId,
        /// The parent's session.
        parent_session_id: SessionId,
    }
}
