//! Session requests of scripts. They are queued when they arrive, and applied when the agent does nothing else.
//!
//! A command that sends a request gets the answer when the request is done, because the program that runs the command
//! applies requests meanwhile. Any other script gets an answer at once. Otherwise a hook could wait for a request
//! that waits for the hook, and both would wait forever.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_protocol::EntryId;
use tenterhook_runners::worker::Refusal;
use tokio::sync::{Notify, oneshot};

use crate::leave_branch::LeaveBranch;

/// The maximum number of requests that may wait.
const MAX_REQUESTS: usize = 64;

/// A session request of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionRequest {
    /// Begin a new session.
    New,
    /// Resume the stored session whose id begins with this text.
    Resume(String),
    /// Continue in a copy of the session, cut at an entry.
    Fork(EntryId),
    /// Continue at another entry of the session.
    GoTo(EntryId, LeaveBranch),
    /// Replace the conversation with a summary.
    Compact(Option<String>),
    /// Reload hooks, templates and skills. The program that embeds the agent does this.
    Reload,
}

/// A request, and the answer that a script may wait for.
#[derive(Debug)]
pub struct PendingRequest {
    /// The request.
    pub request: SessionRequest,
    answer: Option<oneshot::Sender<Result<Value, String>>>,
    /// A flag to set before the answer, if the program waits for the next request afterwards. The script may send
    /// that request before the program waits again.
    serving: Option<Arc<AtomicBool>>,
}

impl PendingRequest {
    /// Reports that the request is done.
    pub fn complete(self) {
        self.answer(Ok(json!({ "cancelled": false })));
    }

    /// Refuses the request. A script that waits for it gets the reason.
    pub fn refuse(self, reason: &str) {
        self.answer(Err(reason.to_owned()));
    }

    pub(crate) fn answer(self, answer: Result<Value, String>) {
        if let Some(serving) = &self.serving {
            serving.store(true, Ordering::Release);
        }
        if let Some(waiting) = self.answer {
            // The script may have stopped waiting.
            waiting.send(answer).ok();
        }
    }
}

/// The requests of all scripts.
#[derive(Debug, Default)]
pub(crate) struct SessionRequests {
    waiting: Mutex<VecDeque<PendingRequest>>,
    came: Notify,
    /// Whether the program applies requests as they arrive.
    is_serving: Arc<AtomicBool>,
}

impl SessionRequests {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<PendingRequest>> {
        self.waiting.lock()
    }

    pub(crate) fn take(&self) -> Option<PendingRequest> {
        self.waiting().pop_front()
    }

    /// Waits for the next request. A script that sends a request meanwhile gets the answer when the request is done.
    pub(crate) async fn next(&self) -> PendingRequest {
        let _serving = ServingRequests::of(&self.is_serving);
        loop {
            if let Some(pending) = self.take() {
                return PendingRequest {
                    serving: Some(Arc::clone(&self.is_serving)),
                    ..pending
                };
            }
            self.came.notified().await;
        }
    }

    /// Queues a request, and returns the answer for its script.
    pub(crate) async fn submit(&self, request: SessionRequest) -> Result<Value, Refusal> {
        // A compaction may be waited for, because the script's own code does not block on it: a callback reports its
        // end.
        let waits = matches!(request, SessionRequest::Compact(_))
            || self.is_serving.load(Ordering::Acquire);
        let (sender, receiver) = oneshot::channel();
        let pending = PendingRequest {
            request,
            answer: waits.then_some(sender),
            serving: None,
        };
        {
            let mut waiting = self.waiting();
            if waiting.len() == MAX_REQUESTS {
                return Err(Refusal::Failed(format!(
                    "too many session requests are waiting; the limit is {MAX_REQUESTS}"
                )));
            }
            // A waiting script occupies one of the slots that a worker has for requests.
            let is_compaction =
                |pending: &PendingRequest| matches!(pending.request, SessionRequest::Compact(_));
            if is_compaction(&pending) && waiting.iter().any(is_compaction) {
                return Err(Refusal::Failed(
                    "a compaction is already waiting".to_owned(),
                ));
            }
            waiting.push_back(pending);
        }
        self.came.notify_one();
        if !waits {
            return Ok(json!({ "cancelled": false }));
        }
        match receiver.await {
            Ok(answer) => answer.map_err(Refusal::Failed),
            Err(_) => Err(Refusal::Failed("the session is over".to_owned())),
        }
    }
}

/// Marks requests as applied on arrival until it is dropped.
struct ServingRequests<'a>(&'a AtomicBool);

impl<'a> ServingRequests<'a> {
    fn of(flag: &'a AtomicBool) -> Self {
        flag.store(true, Ordering::Release);
        Self(flag)
    }
}

impl Drop for ServingRequests<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The parameters of `session/lead`.
#[derive(Debug, Deserialize)]
pub(crate) struct SessionRequestParams {
    pub(crate) what: String,
    entry: Option<EntryId>,
    session: Option<String>,
    #[serde(default)]
    options: Option<LeaveOptions>,
}

/// How a script wants to leave a branch, as pi spells it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LeaveOptions {
    summarize: bool,
    custom_instructions: Option<String>,
    replace_instructions: bool,
    label: Option<String>,
}

impl SessionRequestParams {
    pub(crate) fn request(self) -> Result<SessionRequest, Refusal> {
        let missing = |what: &str| Refusal::Failed(format!("`{what}` is missing"));
        let options = self.options.unwrap_or_default();
        Ok(match self.what.as_str() {
            "new" => SessionRequest::New,
            "reload" => SessionRequest::Reload,
            "switch" => SessionRequest::Resume(self.session.ok_or_else(|| missing("session"))?),
            "fork" => SessionRequest::Fork(self.entry.ok_or_else(|| missing("entry"))?),
            "tree" => SessionRequest::GoTo(
                self.entry.ok_or_else(|| missing("entry"))?,
                LeaveBranch {
                    is_summarised: options.summarize,
                    instructions: options.custom_instructions,
                    replaces_instructions: options.replace_instructions,
                    label: options.label,
                },
            ),
            other => {
                return Err(Refusal::Failed(format!(
                    "unknown session request `{}`, expected `new`, `switch`, `fork`, `tree`, `reload` or `wait`",
                    other.escape_debug()
                )));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_says_where_the_session_is_led() {
        for (params, expected) in [
            (json!({ "what": "new" }), Ok(SessionRequest::New)),
            (json!({ "what": "reload" }), Ok(SessionRequest::Reload)),
            (
                json!({ "what": "switch", "session": "s" }),
                Ok(SessionRequest::Resume("s".to_owned())),
            ),
            (
                json!({ "what": "fork", "entry": "3" }),
                Ok(SessionRequest::Fork("3".into())),
            ),
            (
                json!({ "what": "tree", "entry": "3", "options": { "summarize": true, "customInstructions": "c", "label": "l" } }),
                Ok(SessionRequest::GoTo(
                    "3".into(),
                    LeaveBranch {
                        instructions: Some("c".to_owned()),
                        label: Some("l".to_owned()),
                        ..LeaveBranch::summarised()
                    },
                )),
            ),
            (json!({ "what": "tree" }), Err("`entry` is missing")),
            (json!({ "what": "switch" }), Err("`session` is missing")),
            (
                json!({ "what": "off" }),
                Err(
                    "unknown session request `off`, expected `new`, `switch`, `fork`, `tree`, `reload` or `wait`",
                ),
            ),
        ] {
            let parsed = SessionRequestParams::deserialize(&params).unwrap();
            match (parsed.request(), expected) {
                (Err(Refusal::Failed(found)), Err(expected)) => assert_eq!(found, expected),
                (found, expected) => assert_eq!(found.ok(), expected.ok(), "{params}"),
            }
        }
    }

    #[tokio::test]
    async fn nobody_waits_for_a_wish_that_nobody_grants_meanwhile() {
        let session_requests = SessionRequests::default();
        for _ in 0..MAX_REQUESTS {
            let told = session_requests.submit(SessionRequest::New).await.unwrap();
            assert_eq!(told, json!({ "cancelled": false }));
        }
        assert!(session_requests.submit(SessionRequest::New).await.is_err());
        while let Some(pending) = session_requests.take() {
            pending.complete();
        }
        let (told, ()) = tokio::join!(
            session_requests.submit(SessionRequest::Compact(None)),
            async {
                session_requests.next().await.answer(Err("no".to_owned()));
            }
        );
        assert!(matches!(told, Err(Refusal::Failed(why)) if why == "no"));
    }
}
