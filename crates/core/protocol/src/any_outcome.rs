//! The combined effects of one event, of any type.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::JsonObject;
use crate::id::HookId;
use crate::message::Message;
use crate::permission::Permission;

/// A hook that failed, and what the engine did about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// The hook that failed.
    pub hook: HookId,
    /// What went wrong.
    pub cause: String,
    /// Whether the hook belongs to a gate and the operation continued despite the failure.
    pub let_through: bool,
}

/// The outcome of the dispatch of any event.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AnyOutcome {
    /// The number of hooks that ran. 0 means that no hook matched. A hook without an opinion
    /// counts. A skipped hook and a function that subscribes to every event do not. If one tool call
    /// stands for several operations, each hook counts once for each operation.
    pub hooks_run: u32,
    /// The strongest permission that a hook gave.
    pub permission: Permission,
    /// The first reason for that permission, in configured order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_reason: Option<String>,
    /// The first hook that gave that permission, in configured order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_by: Option<HookId>,
    /// The reason of the first block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// The first hook that blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<HookId>,
    /// What the user can do if the denial or the block was wrong: the end of a sentence that begins with "the
    /// user can".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The payload fields that hooks changed, in the order of their first change.
    pub rewritten: Vec<String>,
    /// Texts for the model, in configured order. Empty texts are omitted.
    pub context: Vec<String>,
    /// Messages for the model.
    pub inject: Vec<Message>,
    /// User messages that keep the agent working.
    pub follow_up: Vec<String>,
    /// Whether a hook did the work itself.
    pub handled: bool,
    /// The first product that a hook supplied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supply: Option<Value>,
    /// Items that hooks added to the event's lists.
    pub collect: JsonObject,
    /// The reason of the first request to end the agent run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_run: Option<String>,
    /// The first hook that requested to end the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_stopped_by: Option<HookId>,
    /// Texts for the user.
    pub notices: Vec<String>,
    /// Annotations for the question that the user is asked. If hooks add the same key, the last one
    /// counts.
    pub metadata: JsonObject,
    /// The first hook whose failure withheld the event's result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld_by: Option<HookId>,
    /// The hooks that failed, in configured order.
    pub failures: Vec<Failure>,
}
