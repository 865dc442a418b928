//! What calls have so far, before their answers: who wants to know it, and who says it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::host::Refusal;

/// Hears what a call has so far. It must not block: nothing else is read meanwhile. The error is what is wrong with it.
pub(super) type Updates = Arc<dyn Fn(Value) -> Result<(), String> + Send + Sync>;

/// The notification by which a worker says what a call has so far.
pub(super) const UPDATE: &str = "tool/update";

/// The calls whose progress somebody wants to know.
#[derive(Default)]
pub(super) struct Watched(Mutex<HashMap<u64, Updates>>);

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

impl Watched {
    fn calls(&self) -> MutexGuard<'_, HashMap<u64, Updates>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watch(&self, call: u64, updates: Updates) {
        self.calls().insert(call, updates);
    }

    pub(super) fn forget(&self, call: u64) {
        self.calls().remove(&call);
    }

    fn of(&self, call: &Value) -> Option<Updates> {
        self.calls().get(&call.as_u64()?).cloned()
    }

    /// Hands on what a notification says, as long as somebody waits for the call. One that cannot be read is no news.
    pub(super) fn hear(&self, params: Value) {
        if let Some(updates) = params.get("call").and_then(|call| self.of(call)) {
            let _unread = updates(params);
        }
    }

    /// Hands on what a request says that belongs to a call.
    pub(super) fn tell(&self, parent: &Value, params: Value) -> Result<(), Refusal> {
        let updates = self.of(parent).ok_or_else(|| {
            Refusal::Invalid(format!(
                "`parentId` is {parent}, expected the id of a tool call that is not answered yet"
            ))
        })?;
        updates(params).map_err(Refusal::Invalid)
    }
}
