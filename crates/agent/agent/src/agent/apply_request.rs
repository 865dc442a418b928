//! Applies the session requests of scripts.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::agent::session_switch::SessionSwitchError;
use crate::compaction::CompactionError;
use crate::extension::{PendingRequest, SessionRequest};

/// The error of a session request that could not be applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionRequestError {
    /// A switch to another session or branch failed. The session does not change.
    #[error(transparent)]
    Switch(#[from] SessionSwitchError),
    /// A compaction failed. The conversation does not change.
    #[error(transparent)]
    Compaction(#[from] CompactionError),
}

impl SessionRequestError {
    /// Returns whether a hook blocked the request or the user cancelled it. Neither is a failure.
    fn is_cancellation(&self) -> bool {
        matches!(
            self,
            Self::Switch(SessionSwitchError::Blocked { .. } | SessionSwitchError::Cancelled)
        )
    }
}

impl Agent {
    /// Applies a session request of a script, and reports the result to the script. [`SessionRequest::Reload`] does
    /// nothing here, because reloading is the task of the program that embeds the agent.
    ///
    /// # Errors
    ///
    /// Fails if the requested operation fails. Then nothing changes.
    pub async fn apply_request(
        &mut self,
        pending: PendingRequest,
        cancel: &CancellationToken,
    ) -> Result<(), SessionRequestError> {
        let done = self.perform(&pending.request, cancel).await;
        let answer = match &done {
            Ok(result) => Ok(result.clone()),
            Err(error) if error.is_cancellation() => Ok(json!({ "cancelled": true })),
            Err(error) => Err(tenterhook_engine::error_chain(error)),
        };
        pending.answer(answer);
        done.map(drop)
    }

    async fn perform(
        &mut self,
        request: &SessionRequest,
        cancel: &CancellationToken,
    ) -> Result<Value, SessionRequestError> {
        let mut result = json!({ "cancelled": false });
        match request {
            SessionRequest::New => self.new_session(cancel).await?,
            SessionRequest::Resume(id) => {
                let id = self.find_session(id)?;
                self.resume(&id, cancel).await?;
            }
            SessionRequest::Fork(entry) => drop(self.fork(entry, cancel).await?),
            SessionRequest::GoTo(entry, leaving) => {
                drop(self.go_to(entry, leaving.clone(), cancel).await?);
            }
            SessionRequest::Compact(instructions) => {
                let compacted = self.compact(instructions.clone(), cancel).await?;
                result = json!({
                    "summary": compacted.summary,
                    "tokensBefore": compacted.tokens_before,
                });
            }
            SessionRequest::Reload => {}
        }
        Ok(result)
    }
}
