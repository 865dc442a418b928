//! Summaries that take the place of conversations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenterhook_handlers::recipe::ContextSwapper;
use tenterhook_protocol::SessionId;

/// Takes summaries for the conversations of agents. An agent that was given it puts a summary in the place of its
/// conversation when the turn is over.
#[derive(Debug, Default)]
pub struct ContextSwaps {
    /// The sessions that are led now, each with the summary that waits for it.
    sessions: Mutex<HashMap<SessionId, Option<String>>>,
}

impl ContextSwaps {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Option<String>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one session: while it is there, summaries for the session are taken.
#[derive(Debug)]
pub(crate) struct Seat {
    swaps: Arc<ContextSwaps>,
    session: SessionId,
}

impl Seat {
    pub(crate) fn new(swaps: Arc<ContextSwaps>, session: SessionId) -> Self {
        swaps.lock().insert(session.clone(), None);
        Self { swaps, session }
    }

    /// Returns the summary that waits for this session; another session has none here.
    pub(crate) fn take(&self, session: &SessionId) -> Option<String> {
        if *session != self.session {
            return None;
        }
        self.swaps.lock().get_mut(session)?.take()
    }
}

impl Drop for Seat {
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
