//! Questions of scripts to the user, and their model calls. A call does not time out while its script waits for an
//! answer.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How many calls may wait behind a call that asks the user something.
const MAX_BEHIND: usize = 1_024;

/// The request that calls a model.
pub(super) const MODEL_CALL: &str = "model/call";

/// The calls whose scripts ask the user something, each with the number of its open questions.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions {
    by_call: Mutex<HashMap<u64, u32>>,
    /// Notified when a question was answered.
    answered: Notify,
}

impl OpenQuestions {
    /// Returns whether the script of a call is asking the user something.
    pub(super) fn has_call(&self, id: u64) -> bool {
        self.by_call.lock().contains_key(&id)
    }

    /// Records a question or a model call. The call that makes it is in its parameters, or it is the parent of the
    /// request. It is open until the returned value is dropped.
    pub(super) fn open(
        &self,
        method: &str,
        params: &Value,
        parent: &Value,
    ) -> Option<OpenQuestion<'_>> {
        let call = params.get("call").unwrap_or(parent).as_u64()?;
        let is_for_user = method != MODEL_CALL;
        let behind = params.get("behind").and_then(Value::as_array);
        let behind = behind.into_iter().flatten().filter_map(Value::as_u64);
        let mut behind: Vec<u64> = behind.take(MAX_BEHIND).collect();
        behind.push(call);
        behind.sort_unstable();
        behind.dedup();
        let mut by_call = self.by_call.lock();
        for call in &behind {
            *by_call.entry(*call).or_default() += 1;
        }
        Some(OpenQuestion {
            questions: self,
            call,
            is_for_user,
            behind,
        })
    }

    /// Waits for the deadline of a call. If its script is asking the user something at the deadline,
    /// waits for the answer first. After the answer, the full time limit of the call starts again.
    pub(super) async fn wait_for_deadline(&self, id: u64, mut deadline: Instant) {
        let within = deadline.saturating_duration_since(Instant::now());
        loop {
            sleep_until(deadline).await;
            loop {
                let mut answered = std::pin::pin!(self.answered.notified());
                answered.as_mut().enable();
                if !self.has_call(id) {
                    break;
                }
                answered.await;
                deadline = Instant::now() + within;
            }
            if deadline <= Instant::now() {
                return;
            }
        }
    }
}

/// An open question of a call to the user. Until it is dropped, neither this call nor the calls that
/// wait behind it time out.
pub(super) struct OpenQuestion<'a> {
    questions: &'a OpenQuestions,
    /// The call that asks.
    pub(super) call: u64,
    /// Whether the user is asked. Otherwise a model is.
    pub(super) is_for_user: bool,
    behind: Vec<u64>,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let mut by_call = self.questions.by_call.lock();
        for call in &self.behind {
            if let Some(questions) = by_call.get_mut(call) {
                *questions -= 1;
                if *questions == 0 {
                    by_call.remove(call);
                }
            }
        }
        self.questions.answered.notify_waiters();
    }
}
