//! What one handler answers, to an event of any type.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::JsonObject;
use crate::capability::Capability;
use crate::message::Message;
use crate::permission::{Permission, Verdict};

/// The answer to any event, as it is written in JSON.
///
/// The catalogue lists the keys that each event honours. The engine rejects all others.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AnyEffect {
    /// Allows or denies the operation, or asks the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<Verdict>,
    /// Stops the operation. The value is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// New values for fields of the payload.
    #[serde(skip_serializing_if = "JsonObject::is_empty")]
    pub rewrite: JsonObject,
    /// Texts for the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
    /// Complete messages for the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inject: Vec<Message>,
    /// User messages that keep the agent working.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub follow_up: Vec<String>,
    /// Whether the hook did the work itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub handled: bool,
    /// A finished product that replaces the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supply: Option<Value>,
    /// Items to add to the event's lists. Each value is an array.
    #[serde(skip_serializing_if = "JsonObject::is_empty")]
    pub collect: JsonObject,
    /// Ends the agent run after this step. The value is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_run: Option<String>,
    /// Texts for the user. The model does not see them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Annotations for the question that the user is asked.
    #[serde(skip_serializing_if = "JsonObject::is_empty")]
    pub metadata: JsonObject,
}

impl AnyEffect {
    /// Returns whether the effect is empty: the handler has no opinion and no notice.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Sets the permission.
    pub fn set_permission(&mut self, permission: Permission, reason: Option<String>) {
        self.permission = Some(Verdict { permission, reason });
    }

    /// Returns the capabilities that the effect uses.
    pub fn capabilities(&self) -> impl Iterator<Item = Capability> {
        [
            (Capability::Permission, self.permission.is_some()),
            (Capability::Block, self.block.is_some()),
            (Capability::Context, !self.context.is_empty()),
            (Capability::Inject, !self.inject.is_empty()),
            (Capability::FollowUp, !self.follow_up.is_empty()),
            (Capability::Handled, self.handled),
            (Capability::StopRun, self.stop_run.is_some()),
        ]
        .into_iter()
        .filter_map(|(capability, used)| used.then_some(capability))
    }

    /// Returns whether the effect stops the operation, by a deny or a block.
    pub fn is_stop(&self) -> bool {
        self.block.is_some()
            || self
                .permission
                .as_ref()
                .is_some_and(|v| v.permission == Permission::Deny)
    }
}
