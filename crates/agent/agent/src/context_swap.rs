//! The summaries with which recipe handlers replace conversations.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tenterhook_protocol::SessionId;
use tenterhook_runners::recipe::ContextSwapper;

/// Accepts summaries for the conversations of agents. An agent replaces its conversation with such a summary at the
/// end of the turn.
#[derive(Debug, Default)]
pub struct ContextSwaps {
    /// The current sessions, each with the summary that waits for it.
    sessions: Mutex<HashMap<SessionId, Option<String>>>,
}

impl ContextSwaps {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Option<String>>> {
        self.sessions.lock()
    }
}

/// The registration of one session. Summaries for it are accepted until this is dropped.
#[derive(Debug)]
pub(crate) struct SwapSlot {
    swaps: Arc<ContextSwaps>,
    session: SessionId,
}

impl SwapSlot {
    pub(crate) fn new(swaps: Arc<ContextSwaps>, session: SessionId) -> Self {
        swaps.lock().insert(session.clone(), None);
        Self { swaps, session }
    }

    /// Takes the summary that waits for this session. Returns `None` for any other session.
    pub(crate) fn take(&self, session: &SessionId) -> Option<String> {
        if *session != self.session {
            return None;
        }
        self.swaps.lock().get_mut(session)?.take()
    }
}

impl Drop for SwapSlot {
    fn drop(&mut self) {
        self.swaps.lock().remove(&self.session);
    }
}

impl ContextSwapper for ContextSwaps {
    fn swap_context(&self, session: &SessionId, summary: &str) -> Result<(), String> {
        match self.lock().get_mut(session) {
            Some(waiting) => {
                *waiting = Some(summary.to_owned());
                Ok(())
            }
            None => Err("thread does not support context swapping".to_owned()),
        }
    }
}
