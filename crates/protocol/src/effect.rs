//! What one handler answers.

use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::JsonObject;
use crate::capability::{Capability, honours};
use crate::catalogue::{Event, Supplies};
use crate::message::Message;
use crate::permission::{Permission, Verdict};

/// An answer of any event, as it stands on the wire.
///
/// Which keys an event honours is in its row of the catalogue; the engine refuses the others.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AnyEffect {
    /// Allow, ask or deny.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<Verdict>,
    /// Stop the operation, with the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// New values for fields of the payload.
    #[serde(skip_serializing_if = "JsonObject::is_empty")]
    pub rewrite: JsonObject,
    /// Text for the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
    /// Whole messages for the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inject: Vec<Message>,
    /// User messages that keep the agent going.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub follow_up: Vec<String>,
    /// The hook did the work itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub handled: bool,
    /// A finished product instead of the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supply: Option<Value>,
    /// Items for the event's lists, each an array.
    #[serde(skip_serializing_if = "JsonObject::is_empty")]
    pub collect: JsonObject,
    /// End the agent run after this step, with the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_run: Option<String>,
    /// Text for the human only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Annotations for the question that the user is asked.
    #[serde(skip_serializing_if = "JsonObject::is_empty")]
    pub metadata: JsonObject,
}

impl AnyEffect {
    /// Says whether the effect changes nothing and says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Sets the permission.
    pub fn set_permission(&mut self, permission: Permission, reason: Option<String>) {
        self.permission = Some(Verdict { permission, reason });
    }

    /// Returns the capabilities that the effect makes use of.
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

    /// Says whether the effect stops the operation: a deny or a block.
    pub fn is_stop(&self) -> bool {
        self.block.is_some()
            || self
                .permission
                .as_ref()
                .is_some_and(|v| v.permission == Permission::Deny)
    }
}

/// What one handler answers to event `E`. The default is no opinion, and costs no allocation.
///
/// The methods that make sense for `E` exist; the others do not compile.
pub struct Effect<E> {
    parts: Option<Box<AnyEffect>>,
    event: PhantomData<fn() -> E>,
}

impl<E> Default for Effect<E> {
    fn default() -> Self {
        Self {
            parts: None,
            event: PhantomData,
        }
    }
}

impl<E> fmt::Debug for Effect<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.parts {
            Some(parts) => parts.fmt(f),
            None => f.write_str("no opinion"),
        }
    }
}

impl<E> Clone for Effect<E> {
    fn clone(&self) -> Self {
        Self {
            parts: self.parts.clone(),
            event: PhantomData,
        }
    }
}

/// A handler that answers nothing has no opinion.
impl<E> From<()> for Effect<E> {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl<E: Event> Effect<E> {
    /// Makes an effect of no opinion.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a text for the human; the model does not see it.
    #[must_use]
    pub fn notice(mut self, text: impl Into<String>) -> Self {
        self.parts().notices.push(text.into());
        self
    }

    /// Gives up the type; an effect of no opinion is `None`.
    pub fn into_any(self) -> Option<Box<AnyEffect>> {
        self.parts
    }

    fn parts(&mut self) -> &mut AnyEffect {
        self.parts.get_or_insert_default()
    }

    /// Adds a new value for a field. A value without a JSON form becomes null, which the engine then
    /// refuses as the wrong type of any field that is not optional.
    pub(crate) fn rewriting<T: Serialize>(mut self, field: &str, value: &T) -> Self {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        self.parts().rewrite.insert(field.to_owned(), value);
        self
    }

    /// Adds an item to one of the event's lists.
    pub(crate) fn collecting<T: Serialize>(mut self, list: &str, value: &T) -> Self {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        let items = self
            .parts()
            .collect
            .entry(list)
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(items) = items {
            items.push(value);
        }
        self
    }
}

impl<E: honours::Permission> Effect<E> {
    /// Lets the operation go on without a question, unless another hook says ask or deny.
    pub fn allow() -> Self {
        Self::permission(Permission::Allow, None)
    }

    /// Leaves the operation to the user.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self::permission(Permission::Ask, Some(reason.into()))
    }

    /// Denies the operation; the model is told the reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::permission(Permission::Deny, Some(reason.into()))
    }

    /// Adds a line to the question that the user may be asked. Of two hooks with one key the last one counts.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, text: impl Into<String>) -> Self {
        let text = Value::String(text.into());
        self.parts().metadata.insert(key.into(), text);
        self
    }

    fn permission(permission: Permission, reason: Option<String>) -> Self {
        let mut effect = Self::default();
        effect.parts().set_permission(permission, reason);
        effect
    }
}

impl<E: honours::Block> Effect<E> {
    /// Stops the operation.
    pub fn block(reason: impl Into<String>) -> Self {
        let mut effect = Self::default();
        effect.parts().block = Some(reason.into());
        effect
    }
}

impl<E: honours::Context> Effect<E> {
    /// Adds text for the model.
    #[must_use]
    pub fn context(mut self, text: impl Into<String>) -> Self {
        self.parts().context.push(text.into());
        self
    }
}

impl<E: honours::Inject> Effect<E> {
    /// Adds a message for the model.
    #[must_use]
    pub fn inject(mut self, message: Message) -> Self {
        self.parts().inject.push(message);
        self
    }
}

impl<E: honours::FollowUp> Effect<E> {
    /// Adds a user message that keeps the agent going.
    #[must_use]
    pub fn follow_up(mut self, text: impl Into<String>) -> Self {
        self.parts().follow_up.push(text.into());
        self
    }
}

impl<E: honours::Handled> Effect<E> {
    /// Says that the hook did the work itself.
    pub fn handled() -> Self {
        let mut effect = Self::default();
        effect.parts().handled = true;
        effect
    }
}

impl<E: honours::StopRun> Effect<E> {
    /// Ends the agent run after this step.
    #[must_use]
    pub fn stop_run(mut self, reason: impl Into<String>) -> Self {
        self.parts().stop_run = Some(reason.into());
        self
    }
}

impl<E: Supplies> Effect<E> {
    /// Supplies the finished product.
    pub fn supply(product: &E::Product) -> Self {
        let mut effect = Self::default();
        effect.parts().supply = serde_json::to_value(product).ok();
        effect
    }
}
