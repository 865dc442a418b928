//! Remembers data that a service wants back with its own tool calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tenterhook_protocol::EventId;

/// The tool calls of the conversation by id, each with the data that the service wants back with it. Only the service
/// understands the data, so it is not stored in the session.
#[derive(Clone, Default)]
pub(super) struct KnownCalls(Arc<Mutex<BTreeMap<String, Option<Vec<String>>>>>);

impl KnownCalls {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Option<Vec<String>>>> {
        self.0.lock()
    }

    /// Returns the id for a new call. If a service sends no ids, the library numbers the calls, starting again in each
    /// answer. An id that is already in use is therefore replaced with a fresh one.
    pub(super) fn adopt(&self, id: String, signatures: Option<Vec<String>>) -> String {
        let mut known = self.lock();
        let is_usable = !id.is_empty() && !known.contains_key(&id);
        let id = if is_usable {
            id
        } else {
            format!("call_{}", EventId::generate())
        };
        known.insert(id.clone(), signatures);
        id
    }

    /// Returns the data of a call. A call that another process made is added without data.
    pub(super) fn signatures(&self, id: &str) -> Option<Vec<String>> {
        self.lock().entry(id.to_owned()).or_default().clone()
    }
}
