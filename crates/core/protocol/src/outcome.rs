//! The combined effects of one dispatch, typed by the event.

use std::fmt;

use serde_json::Value;

use crate::JsonObject;
use crate::any_outcome::{AnyOutcome, Failure};
use crate::catalogue::{Event, GateEvent, Supplies};
use crate::decision::Decision;
use crate::honours;
use crate::id::HookId;
use crate::message::Message;
use crate::permission::Permission;

/// The outcome of a dispatch of event `E`. An outcome without effects costs no allocation.
///
/// ```
/// use tenterhook_protocol::event::PreToolUse;
/// use tenterhook_protocol::{Decision, Outcome};
///
/// /// Returns the call to run, including the hooks' changes, or the reason not to run it.
/// fn follow(outcome: Outcome<PreToolUse>, asked: PreToolUse) -> Result<PreToolUse, String> {
///     match outcome.decision() {
///         Decision::Proceed => Ok(outcome.into_rewritten().unwrap_or(asked)),
///         Decision::Ask { reason, .. } | Decision::Stop { reason, .. } => Err(reason),
///     }
/// }
///
/// let unhooked = Outcome::default();
/// assert!(follow(unhooked, PreToolUse::default()).is_ok());
/// ```
#[must_use = "an outcome may say that the operation must not happen"]
pub struct Outcome<E> {
    parts: Option<Box<Parts<E>>>,
    /// Not part of the box, because hooks without an opinion run often and must not cost an
    /// allocation.
    hooks_run: u32,
}

struct Parts<E> {
    any: AnyOutcome,
    rewritten: Option<E>,
}

impl<E> Default for Outcome<E> {
    fn default() -> Self {
        Self {
            parts: None,
            hooks_run: 0,
        }
    }
}

impl<E> fmt::Debug for Outcome<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.parts {
            Some(parts) => parts.any.fmt(f),
            None => write!(f, "no effects from {} hooks", self.hooks_run),
        }
    }
}

impl<E> Outcome<E> {
    /// Creates the outcome of a dispatch. `event` is kept if a hook changed it.
    pub fn new(any: AnyOutcome, event: E) -> Self {
        let hooks_run = any.hooks_run;
        let rewritten = (!any.rewritten.is_empty()).then_some(event);
        let without_effects = AnyOutcome {
            hooks_run,
            ..AnyOutcome::default()
        };
        if rewritten.is_none() && any == without_effects {
            return Self::without_effects(hooks_run);
        }
        Self {
            parts: Some(Box::new(Parts { any, rewritten })),
            hooks_run,
        }
    }

    /// Creates the outcome of a dispatch in which `hooks_run` hooks ran and none had an opinion. It
    /// does not allocate.
    pub fn without_effects(hooks_run: u32) -> Self {
        Self {
            parts: None,
            hooks_run,
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
    /// Returns the event with the hooks' changes, or `None` if no hook changed it. The changes are
    /// there for every decision, also to ask or to stop.
    pub fn rewritten(&self) -> Option<&E> {
        self.parts.as_deref()?.rewritten.as_ref()
    }

    /// Returns the event with the hooks' changes, or `None` if no hook changed it. The changes are
    /// there for every decision, also to ask or to stop.
    pub fn into_rewritten(self) -> Option<E> {
        self.parts?.rewritten
    }

    /// Returns the number of hooks that ran. 0 means that no hook matched, so none judged the
    /// event.
    ///
    /// A hook without an opinion counts, and so does a hook that only watches. A skipped hook and a
    /// function that subscribes to every event do not count. If one tool call stands for several
    /// operations, each hook counts once for each operation.
    ///
    /// ```
    /// use tenterhook_protocol::Outcome;
    /// use tenterhook_protocol::event::PreToolUse;
    ///
    /// assert_eq!(Outcome::<PreToolUse>::default().hooks_run(), 0);
    /// ```
    pub fn hooks_run(&self) -> u32 {
        self.hooks_run
    }

    /// Returns the texts for the user.
    pub fn notices(&self) -> &[String] {
        self.list(|any| &any.notices)
    }

    /// Returns the hook whose failure withheld the event's result, if any.
    /// [`rewritten`](Self::rewritten) then contains a notice instead of the result. If the host
    /// keeps other copies of the result, it must drop them too.
    pub fn withheld_by(&self) -> Option<&HookId> {
        self.any().and_then(|any| any.withheld_by.as_ref())
    }

    /// Returns the hooks that failed.
    pub fn failures(&self) -> &[Failure] {
        self.list(|any| &any.failures)
    }

    /// Removes the type parameter.
    pub fn into_any(self) -> AnyOutcome {
        match self.parts {
            Some(parts) => parts.any,
            None => AnyOutcome {
                hooks_run: self.hooks_run,
                ..AnyOutcome::default()
            },
        }
    }

    /// Returns the items that were added to one of the event's lists. Items of another type are
    /// ignored.
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
    /// Returns whether a hook allowed the operation, so that the host does not need to ask a
    /// person. This only means something if the [decision](Self::decision) is to proceed.
    pub fn is_allowed(&self) -> bool {
        self.any()
            .is_some_and(|any| any.permission == Permission::Allow)
    }

    /// Returns the annotations for the question that the user is asked.
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
    /// Returns the user messages that keep the agent working.
    pub fn follow_up(&self) -> &[String] {
        self.list(|any| &any.follow_up)
    }
}

impl<E: honours::Handled> Outcome<E> {
    /// Returns whether a hook did the work itself.
    pub fn is_handled(&self) -> bool {
        self.any().is_some_and(|any| any.handled)
    }
}

impl<E: honours::StopRun> Outcome<E> {
    /// Returns the reason to end the agent run after this step, if a hook requested it.
    pub fn stop_run(&self) -> Option<&str> {
        self.any().and_then(|any| any.stop_run.as_deref())
    }
}

impl<E: Supplies> Outcome<E> {
    /// Returns the product that a hook supplied, if any.
    pub fn supplied(&self) -> Option<E::Product> {
        let supply = self.any()?.supply.as_ref()?;
        serde_json::from_value(supply.clone()).ok()
    }
}
