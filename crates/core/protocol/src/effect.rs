//! What one handler answers, typed by the event.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde_json::Value;

use crate::any_effect::AnyEffect;
use crate::catalogue::{Event, Supplies};
use crate::honours;
use crate::message::Message;
use crate::permission::Permission;

/// What one handler answers to event `E`. By default, the handler has no opinion, which costs no
/// allocation.
///
/// Only the methods that make sense for `E` compile.
///
/// ```
/// use tenterhook_protocol::Effect;
/// use tenterhook_protocol::event::{PreToolUse, TurnStart};
///
/// let _: Effect<PreToolUse> = Effect::deny("no sudo here");
/// let _: Effect<PreToolUse> = Effect::ask("it publishes your work").context("the branch is protected");
/// let _: Effect<TurnStart> = Effect::none();
/// ```
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

/// A handler that returns nothing has no opinion.
impl<E> From<()> for Effect<E> {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl<E: Event> Effect<E> {
    /// Creates an effect without an opinion.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a notice for the user. The model does not see it.
    #[must_use]
    pub fn notice(mut self, text: impl Into<String>) -> Self {
        self.parts().notices.push(text.into());
        self
    }

    /// Removes the type parameter. Returns `None` if the handler has no opinion.
    pub fn into_any(self) -> Option<Box<AnyEffect>> {
        self.parts
    }

    fn parts(&mut self) -> &mut AnyEffect {
        self.parts.get_or_insert_default()
    }

    /// Adds a new value for a field. A value that cannot be represented in JSON becomes null, which
    /// the engine then rejects for any field that is not optional.
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
    /// Allows the operation without a question, unless another hook asks or denies.
    pub fn allow() -> Self {
        Self::permission(Permission::Allow, None)
    }

    /// Leaves the decision to the user.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self::permission(Permission::Ask, Some(reason.into()))
    }

    /// Denies the operation. The model sees the reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::permission(Permission::Deny, Some(reason.into()))
    }

    /// Adds a line to the question that the user may be asked. If two hooks add the same key, the
    /// last one counts.
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
    /// Stops the operation. The reason is shown to the user, or to the model if it made the
    /// request.
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
    /// Adds a user message that keeps the agent working.
    #[must_use]
    pub fn follow_up(mut self, text: impl Into<String>) -> Self {
        self.parts().follow_up.push(text.into());
        self
    }
}

impl<E: honours::Handled> Effect<E> {
    /// Declares that the hook did the work itself, so the host must not do it.
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
    /// Supplies the finished product, so the host does not create one.
    pub fn supply(product: &E::Product) -> Self {
        let mut effect = Self::default();
        effect.parts().supply = serde_json::to_value(product).ok();
        effect
    }
}
