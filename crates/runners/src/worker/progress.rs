//! The progress that calls report before their answers, and its listeners.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use super::refusal::Refusal;

/// Receives the output of a call so far. It must not block, because it runs on the task that reads
/// from the worker. The error describes what is wrong with the update.
pub(super) type Updates = Arc<dyn Fn(Value) -> Result<(), String> + Send + Sync>;

/// What is known about a call in addition to its request.
#[derive(Default)]
pub(super) struct CallNotes {
    /// Receives the output of the call so far.
    pub(super) updates: Option<Updates>,
    /// The session that the call belongs to. Requests that the process makes during the call belong to it too.
    pub(super) session: Option<String>,
}

impl CallNotes {
    /// Returns notes with a listener.
    pub(super) fn listening(updates: Option<Updates>) -> Self {
        Self {
            updates,
            session: None,
        }
    }
}

/// The notifications by which a worker reports the output of a call so far.
pub(super) const UPDATES: [&str; 2] = ["tool/update", "provider/update"];

/// The listeners for progress, by the id of the call.
#[derive(Default)]
pub(super) struct ProgressListeners(Mutex<HashMap<u64, Updates>>);

impl fmt::Debug for ProgressListeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressListeners")
    }
}

impl ProgressListeners {
    fn calls(&self) -> MutexGuard<'_, HashMap<u64, Updates>> {
        self.0.lock()
    }

    pub(super) fn add(&self, call: u64, updates: Updates) {
        self.calls().insert(call, updates);
    }

    pub(super) fn remove(&self, call: u64) {
        self.calls().remove(&call);
    }

    /// Returns whether a call is the call of a tool, because only these have listeners.
    pub(super) fn is_of_tool(&self, call: &Value) -> bool {
        self.of(call).is_some()
    }

    fn of(&self, call: &Value) -> Option<Updates> {
        self.calls().get(&call.as_u64()?).cloned()
    }

    /// Passes the parameters of a notification to the listener of its call. Invalid updates are ignored.
    pub(super) fn notify(&self, params: Value) {
        if let Some(updates) = params.get("call").and_then(|call| self.of(call)) {
            let _unread = updates(params);
        }
    }

    /// Passes the parameters of a request to the listener of the call that it belongs to.
    pub(super) fn update(&self, parent: &Value, params: Value) -> Result<(), Refusal> {
        let updates = self.of(parent).ok_or_else(|| {
            Refusal::Invalid(format!(
                "`parentId` is {parent}, expected the id of a tool call that is not answered yet"
            ))
        })?;
        updates(params).map_err(Refusal::Invalid)
    }
}
