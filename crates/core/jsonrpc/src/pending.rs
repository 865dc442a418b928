//! Calls that wait for answers.

use std::collections::HashMap;
use std::hash::Hash;

use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The unanswered calls of one connection, by their ids. Their number is limited.
#[derive(Debug)]
pub struct PendingCalls<K, T> {
    calls: Mutex<HashMap<K, oneshot::Sender<T>>>,
    max: usize,
}

/// The error for a call when the maximum number of calls is already waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("more than {max} calls are waiting for an answer")]
pub struct TooManyCalls {
    max: usize,
}

/// Why a wait for an answer ended without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// The deadline passed.
    TimedOut,
    /// The caller cancelled the call.
    Cancelled,
    /// The connection was closed.
    Closed,
}

impl<K: Hash + Eq, T> PendingCalls<K, T> {
    /// Creates an empty table that holds at most `max` calls.
    pub fn new(max: usize) -> Self {
        Self {
            calls: Mutex::default(),
            max,
        }
    }

    /// Adds a call, and returns the receiver of its answer.
    ///
    /// # Errors
    /// Fails if the table is full.
    pub fn begin(&self, id: K) -> Result<oneshot::Receiver<T>, TooManyCalls> {
        let mut calls = self.calls.lock();
        if calls.len() >= self.max {
            return Err(TooManyCalls { max: self.max });
        }
        let (sender, receiver) = oneshot::channel();
        calls.insert(id, sender);
        Ok(receiver)
    }

    /// Passes an answer to the caller. Returns `false` if the call was not pending, for example
    /// because it was already answered.
    pub fn answer(&self, id: &K, answer: T) -> bool {
        let caller = self.calls.lock().remove(id);
        caller.is_some_and(|caller| {
            // A caller that is gone removes its call itself.
            let _gone = caller.send(answer);
            true
        })
    }

    /// Removes a call. Returns whether it was still unanswered.
    pub fn withdraw(&self, id: &K) -> bool {
        self.calls.lock().remove(id).is_some()
    }

    /// Returns whether a call is still unanswered.
    pub fn is_pending(&self, id: &K) -> bool {
        self.calls.lock().contains_key(id)
    }

    /// Ends every call without an answer, because the connection was closed.
    pub fn close(&self) {
        self.calls.lock().clear();
    }
}

/// Waits for the answer of a call, until `deadline` completes or the call is cancelled. An answer
/// that is available at the deadline counts.
///
/// # Errors
/// Returns why there is no answer.
pub async fn wait_for_answer<T>(
    answer: impl Future<Output = Result<T, oneshot::error::RecvError>>,
    deadline: impl Future<Output = ()>,
    cancel: &CancellationToken,
) -> Result<T, NoAnswer> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(NoAnswer::Cancelled),
        answer = answer => answer.map_err(|_| NoAnswer::Closed),
        () = deadline => Err(NoAnswer::TimedOut),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn an_answer_goes_to_its_call_and_to_no_other() {
        let calls = PendingCalls::new(8);
        let (one, two) = (calls.begin(1).unwrap(), calls.begin(2).unwrap());
        assert!(calls.answer(&2, "two"));
        assert!(calls.answer(&1, "one"));
        assert!(!calls.answer(&1, "again"));
        let never = CancellationToken::new();
        assert_eq!(wait_for_answer(one, pending(), &never).await, Ok("one"));
        assert_eq!(wait_for_answer(two, ready(()), &never).await, Ok("two"));
    }

    #[tokio::test]
    async fn a_call_ends_at_its_deadline_when_it_is_cancelled_and_with_the_connection() {
        let calls: PendingCalls<u64, ()> = PendingCalls::new(8);
        let never = CancellationToken::new();
        let late = calls.begin(1).unwrap();
        let ended = wait_for_answer(late, ready(()), &never).await;
        assert_eq!(ended, Err(NoAnswer::TimedOut));
        assert!(calls.withdraw(&1) && !calls.withdraw(&1));
        let cancel = CancellationToken::new();
        cancel.cancel();
        let given_up = calls.begin(2).unwrap();
        let ended = wait_for_answer(given_up, pending(), &cancel).await;
        assert_eq!(ended, Err(NoAnswer::Cancelled));
        let lost = calls.begin(3).unwrap();
        calls.close();
        let ended = wait_for_answer(lost, pending(), &never).await;
        assert_eq!(ended, Err(NoAnswer::Closed));
        assert!(!calls.is_pending(&3));
    }

    #[test]
    fn no_more_calls_wait_than_are_allowed() {
        let calls: PendingCalls<u64, ()> = PendingCalls::new(2);
        let (_one, _two) = (calls.begin(1).unwrap(), calls.begin(2).unwrap());
        let refused = calls.begin(3).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "more than 2 calls are waiting for an answer"
        );
        assert!(calls.withdraw(&1));
        assert!(calls.begin(3).is_ok());
    }
}
