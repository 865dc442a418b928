//! All effects of one dispatch, folded.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::JsonObject;
use crate::capability::honours;
use crate::catalogue::{Event, GateEvent, Supplies};
use crate::decision::Decision;
use crate::id::HookId;
use crate::message::Message;
use crate::permission::Permission;

/// A hook that failed, and what the engine did about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The hook.
    pub hook: HookId,
    /// What went wrong.
    pub cause: String,
    /// The hook stands on a gate and the operation went on all the same.
    pub let_through: bool,
}

/// The outcome of a dispatch of any event.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AnyOutcome {
    /// The strongest permission given.
    pub permission: Permission,
    /// The first reason of that permission in configured order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_reason: Option<String>,
    /// The hook that gave that permission first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_by: Option<HookId>,
    /// The first block and its reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// The hook that blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<HookId>,
    /// The payload's fields that hooks changed, in the order of their first change.
    pub rewritten: Vec<String>,
    /// Text for the model, in configured order, empty texts left out.
    pub context: Vec<String>,
    /// Messages for the model.
    pub inject: Vec<Message>,
    /// User messages that keep the agent going.
    pub follow_up: Vec<String>,
    /// A hook did the work itself.
    pub handled: bool,
    /// The first product supplied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supply: Option<Value>,
    /// Items for the event's lists.
    pub collect: JsonObject,
    /// The first request to end the agent run, with its reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_run: Option<String>,
    /// The hook that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_stopped_by: Option<HookId>,
    /// Text for the human.
    pub notices: Vec<String>,
    /// Annotations for the question that the user is asked; the last hook wins a key.
    pub metadata: JsonObject,
    /// The first hook whose failure withheld the event's result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld_by: Option<HookId>,
    /// Hooks that failed, in configured order.
    pub failures: Vec<Failure>,
}

/// The outcome of a dispatch of event `E`. An outcome in which nothing happened costs no allocation.
#[must_use = "an outcome may say that the operation must not happen"]
pub struct Outcome<E> {
    parts: Option<Box<Parts<E>>>,
}

struct Parts<E> {
    any: AnyOutcome,
    rewritten: Option<E>,
}

impl<E> Default for Outcome<E> {
    fn default() -> Self {
        Self { parts: None }
    }
}

impl<E> fmt::Debug for Outcome<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.parts {
            Some(parts) => parts.any.fmt(f),
            None => f.write_str("nothing"),
        }
    }
}

impl<E> Outcome<E> {
    /// Makes the outcome of a dispatch. `event` is kept if a hook changed it.
    pub fn new(any: AnyOutcome, event: E) -> Self {
        let rewritten = (!any.rewritten.is_empty()).then_some(event);
        if rewritten.is_none() && any == AnyOutcome::default() {
            return Self::default();
        }
        Self {
            parts: Some(Box::new(Parts { any, rewritten })),
        }
    }

    fn any(&self) -> Option<&AnyOutcome> {
        self.parts.as_deref().map(|parts| &parts.any)
    }

    fn list<T>(&self, select: impl FnOnce(&AnyOutcome) -> &Vec<T>) -> &[T] {
        self.any().map_or(&[], |any| select(any).as_slice())
    }
}

impl<E: Event> Outcome<E> {
    /// Returns the event as the hooks left it, if one of them changed it.
    pub fn rewritten(&self) -> Option<&E> {
        self.parts.as_deref()?.rewritten.as_ref()
    }

    /// Returns the event as the hooks left it, if one of them changed it.
    pub fn into_rewritten(self) -> Option<E> {
        self.parts?.rewritten
    }

    /// Returns the texts for the human.
    pub fn notices(&self) -> &[String] {
        self.list(|any| &any.notices)
    }

    /// Returns the hook whose failure withheld the event's result, if one did. [`rewritten`](Self::rewritten) then has a
    /// notice instead of the result. A host that keeps other forms of the same value must drop them too.
    pub fn withheld_by(&self) -> Option<&HookId> {
        self.any().and_then(|any| any.withheld_by.as_ref())
    }

    /// Returns the hooks that failed.
    pub fn failures(&self) -> &[Failure] {
        self.list(|any| &any.failures)
    }

    /// Gives up the type.
    pub fn into_any(self) -> AnyOutcome {
        self.parts.map(|parts| parts.any).unwrap_or_default()
    }

    /// Returns the items of one of the event's lists that have its type.
    pub(crate) fn collected<T: serde::de::DeserializeOwned>(&self, list: &str) -> Vec<T> {
        let items = self
            .any()
            .and_then(|any| any.collect.get(list))
            .and_then(Value::as_array);
        items
            .into_iter()
            .flatten()
            .filter_map(|item| serde_json::from_value(item.clone()).ok())
            .collect()
    }
}

impl<E: GateEvent> Outcome<E> {
    /// Returns what the host must do with the operation. This is the only way to read the verdict.
    pub fn decision(&self) -> Decision {
        self.any()
            .map_or(Decision::Proceed, |any| E::INFO.decision(any))
    }
}

impl<E: honours::Permission> Outcome<E> {
    /// Returns whether a hook allowed the operation, so that a host need not ask a person. Meaningful only where
    /// the [decision](Self::decision) is to proceed.
    pub fn is_allowed(&self) -> bool {
        self.any()
            .is_some_and(|any| any.permission == Permission::Allow)
    }

    /// Returns annotations for the question that the user is asked.
    pub fn metadata(&self) -> Option<&JsonObject> {
        self.any()
            .map(|any| &any.metadata)
            .filter(|metadata| !metadata.is_empty())
    }
}

impl<E: honours::Context> Outcome<E> {
    /// Returns the texts for the model.
    pub fn context(&self) -> &[String] {
        self.list(|any| &any.context)
    }
}

impl<E: honours::Inject> Outcome<E> {
    /// Returns the messages for the model.
    pub fn inject(&self) -> &[Message] {
        self.list(|any| &any.inject)
    }
}

impl<E: honours::FollowUp> Outcome<E> {
    /// Returns the user messages that keep the agent going.
    pub fn follow_up(&self) -> &[String] {
        self.list(|any| &any.follow_up)
    }
}

impl<E: honours::Handled> Outcome<E> {
    /// Says whether a hook did the work itself.
    pub fn is_handled(&self) -> bool {
        self.any().is_some_and(|any| any.handled)
    }
}

impl<E: honours::StopRun> Outcome<E> {
    /// Returns the reason to end the agent run after this step, if a hook asked for it.
    pub fn stop_run(&self) -> Option<&str> {
        self.any().and_then(|any| any.stop_run.as_deref())
    }
}

impl<E: Supplies> Outcome<E> {
    /// Returns the product that a hook supplied.
    pub fn supplied(&self) -> Option<E::Product> {
        let supply = self.any()?.supply.as_ref()?;
        serde_json::from_value(supply.clone()).ok()
    }
}
