//! The calls of one worker that are not over, in one table.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::oneshot;

use super::refusal::Refusal;
use super::script_sessions::EndInProgress;

/// How many calls may be unanswered at once.
const MAX_CALLS: usize = 1 << 16;
/// How many calls may wait behind a call that asks the user something.
const MAX_BEHIND: usize = 1_024;

/// The request that calls a model.
pub(super) const MODEL_CALL: &str = "model/call";

/// The notifications by which a worker reports the output of a call so far.
pub(super) const UPDATES: [&str; 2] = ["tool/update", "provider/update"];

/// The answer of a worker, or its error message.
pub(super) type Reply = Result<Bytes, String>;

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
    /// The end of a session that the call reports. It is in progress until the process has answered or ended.
    pub(super) session_end: Option<EndInProgress>,
}

/// The calls that are not over, by their ids.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    /// The last call that was made before the last message arrived.
    heard_at: u64,
    open: HashMap<u64, OpenCall>,
}

/// A call that the process has not answered.
pub(super) struct OpenCall {
    /// Receives the answer. `None` once no one waits for it any more.
    caller: Option<oneshot::Sender<Reply>>,
    notes: CallNotes,
    /// The number of open questions and model calls during which the call does not time out.
    pub(super) questions: u32,
}

impl OpenCall {
    /// Ends the call: the end of a session that it reports is over before the caller learns it. Returns the caller.
    pub(super) fn finish(self) -> Option<oneshot::Sender<Reply>> {
        let Self { caller, notes, .. } = self;
        drop(notes);
        caller
    }
}

/// A question of a call to the user, or its model call.
#[derive(Debug)]
pub(super) struct Question {
    /// The call that asks.
    pub(super) call: u64,
    /// Whether the user is asked. Otherwise a model is.
    pub(super) is_for_user: bool,
    /// The call, and the calls that wait behind it.
    waiting: Vec<u64>,
}

impl Calls {
    /// Adds a call. Returns its id and the receiver of its answer, or `None` if there are too many.
    pub(super) fn begin(&mut self, notes: CallNotes) -> Option<(u64, oneshot::Receiver<Reply>)> {
        if self.open.len() >= MAX_CALLS {
            return None;
        }
        self.last += 1;
        let (sender, receiver) = oneshot::channel();
        let call = OpenCall {
            caller: Some(sender),
            notes,
            questions: 0,
        };
        self.open.insert(self.last, call);
        Some((self.last, receiver))
    }

    /// Records that the process sent a message.
    pub(super) fn note_message(&mut self) {
        self.heard_at = self.last;
    }

    /// Returns whether the process has sent nothing since at least the last two calls were made.
    pub(super) fn is_silent(&self) -> bool {
        self.last - self.heard_at > 1
    }

    /// Returns whether a call was ever made.
    pub(super) fn was_made(&self, id: u64) -> bool {
        (1..=self.last).contains(&id)
    }

    /// Removes an answered call. Returns `None` for a second answer.
    pub(super) fn answer(&mut self, id: u64) -> Option<OpenCall> {
        self.open.remove(&id)
    }

    /// Gives a call up, and returns it if it was not answered. The process may still answer it late: the call stays in the
    /// table if `awaits_late_answers`, or if it reports the end of a session.
    pub(super) fn give_up(&mut self, id: u64, awaits_late_answers: bool) -> Option<OpenCall> {
        let mut call = self.open.remove(&id)?;
        let session_end = call.notes.session_end.take();
        if awaits_late_answers || session_end.is_some() {
            let overdue = OpenCall {
                caller: None,
                notes: CallNotes {
                    session_end,
                    ..CallNotes::default()
                },
                questions: 0,
            };
            self.open.insert(id, overdue);
        }
        Some(call)
    }

    /// Removes all calls, because the process has ended.
    pub(super) fn take_all(&mut self) -> Vec<OpenCall> {
        self.open.drain().map(|(_, call)| call).collect()
    }

    /// Returns whether someone waits for the answer of a call.
    pub(super) fn is_pending(&self, id: u64) -> bool {
        self.open.get(&id).is_some_and(|call| call.caller.is_some())
    }

    /// Returns whether the process has not answered a call yet that was given up.
    pub(super) fn is_overdue(&self, id: u64) -> bool {
        self.open.get(&id).is_some_and(|call| call.caller.is_none())
    }

    /// Returns whether the call is asking the user something, or a model.
    pub(super) fn is_asking(&self, id: u64) -> bool {
        self.open.get(&id).is_some_and(|call| call.questions > 0)
    }

    /// Returns the session of the call during which the process makes a request.
    pub(super) fn session_of(&self, parent: &Value) -> Option<String> {
        self.find(parent)?.notes.session.clone()
    }

    /// Returns who receives the output of a call so far.
    pub(super) fn updates_of(&self, call: &Value) -> Option<Updates> {
        self.find(call)?.notes.updates.clone()
    }

    /// Returns why a request that only running tools may make is refused.
    pub(super) fn check_tool(&self, method: &str, parent: &Value) -> Option<Refusal> {
        if !parent.as_u64().is_some_and(|id| self.is_pending(id)) {
            return Some(no_tool_call(parent));
        }
        let is_tool = self.updates_of(parent).is_some();
        (!is_tool).then(|| Refusal::Unavailable(format!("only a tool can request `{method}`")))
    }

    /// Records a question or a model call. The call that makes it is in its parameters, or it is the parent of the
    /// request.
    pub(super) fn open_question(
        &mut self,
        method: &str,
        params: &Value,
        parent: &Value,
    ) -> Option<Question> {
        let call = params.get("call").unwrap_or(parent).as_u64()?;
        let behind = params.get("behind").and_then(Value::as_array);
        let behind = behind.into_iter().flatten().filter_map(Value::as_u64);
        let mut waiting: Vec<u64> = behind.take(MAX_BEHIND).collect();
        waiting.push(call);
        waiting.sort_unstable();
        waiting.dedup();
        waiting.retain(|id| self.is_pending(*id));
        for id in &waiting {
            if let Some(call) = self.open.get_mut(id) {
                call.questions += 1;
            }
        }
        Some(Question {
            call,
            is_for_user: method != MODEL_CALL,
            waiting,
        })
    }

    /// Records that a question or a model call is over.
    pub(super) fn close_question(&mut self, question: &Question) {
        for id in &question.waiting {
            if let Some(call) = self.open.get_mut(id) {
                call.questions = call.questions.saturating_sub(1);
            }
        }
    }

    fn find(&self, id: &Value) -> Option<&OpenCall> {
        self.open.get(&id.as_u64()?)
    }
}

/// Returns the refusal of a request that does not belong to a running tool.
pub(super) fn no_tool_call(parent: &Value) -> Refusal {
    Refusal::Invalid(format!(
        "`parentId` is {parent}, expected the id of a tool call that is not answered yet"
    ))
}

impl fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenCall")
            .field("is_awaited", &self.caller.is_some())
            .field("questions", &self.questions)
            .finish_non_exhaustive()
    }
}
