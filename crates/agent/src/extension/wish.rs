//! What scripts want done with the session: noted when they ask, and done when nothing else is.
//!
//! A command that waits for its wish is answered when that is done, because whoever runs the command grants wishes
//! meanwhile. Anybody else is answered at once: a hook that waited for the end of what waits for the hook would wait for
//! ever.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_handlers::worker::Refusal;
use tenterhook_protocol::EntryId;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::compaction::CompactionError;
use crate::passage::{Leaving, PassageError};

/// The most wishes that wait.
const MOST: usize = 64;

/// What a script wants done with the session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wish {
    /// Begin another session.
    New,
    /// Go on with a stored session whose id begins so.
    Resume(String),
    /// Go on in a copy of the session, cut at an entry.
    Fork(EntryId),
    /// Go on at another entry of the session.
    GoTo(EntryId, Leaving),
    /// Put a summary in the place of the conversation.
    Compact(Option<String>),
    /// Load hooks, templates and skills anew. Who leads the agent does that.
    Reload,
}

/// A wish, and whoever waits for it.
#[derive(Debug)]
pub struct PendingWish {
    /// What is wanted.
    pub wish: Wish,
    answer: Option<oneshot::Sender<Result<Value, String>>>,
    /// Set before the answer is given, where whoever grants the wish waits for the next one then: the script may ask for that
    /// before anybody waits.
    granting: Option<Arc<AtomicBool>>,
}

impl PendingWish {
    /// Says that the wish is granted.
    pub fn granted(self) {
        self.answer(Ok(json!({ "cancelled": false })));
    }

    fn answer(self, answer: Result<Value, String>) {
        if let Some(granting) = &self.granting {
            granting.store(true, Ordering::Release);
        }
        if let Some(waiting) = self.answer {
            // Nobody has to wait until the end.
            waiting.send(answer).ok();
        }
    }
}

/// The wishes of all scripts.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    waiting: Mutex<VecDeque<PendingWish>>,
    came: Notify,
    /// Somebody grants wishes as they come.
    is_granting: Arc<AtomicBool>,
}

impl Wishes {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<PendingWish>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self) -> Option<PendingWish> {
        self.waiting().pop_front()
    }

    /// Waits for the next wish. Whoever asks meanwhile is answered when the wish is granted.
    pub(super) async fn next(&self) -> PendingWish {
        let _granting = Granting::of(&self.is_granting);
        loop {
            if let Some(asked) = self.take() {
                return PendingWish {
                    granting: Some(Arc::clone(&self.is_granting)),
                    ..asked
                };
            }
            self.came.notified().await;
        }
    }

    /// Notes a wish. Returns what its script is told.
    pub(super) async fn ask(&self, wish: Wish) -> Result<Value, Refusal> {
        // Nobody waits in the script for a compaction: it is told of the end by a callback.
        let waits = matches!(wish, Wish::Compact(_)) || self.is_granting.load(Ordering::Acquire);
        let (sender, receiver) = oneshot::channel();
        let asked = PendingWish {
            wish,
            answer: waits.then_some(sender),
            granting: None,
        };
        {
            let mut waiting = self.waiting();
            if waiting.len() == MOST {
                return Err(Refusal::Failed(format!("{MOST} wishes wait already")));
            }
            // Whoever waits keeps a place of those that a worker has for requests.
            let is_compaction = |asked: &PendingWish| matches!(asked.wish, Wish::Compact(_));
            if is_compaction(&asked) && waiting.iter().any(is_compaction) {
                return Err(Refusal::Failed("a compaction waits already".to_owned()));
            }
            waiting.push_back(asked);
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

/// Says as long as it is kept that wishes are granted as they come.
struct Granting<'a>(&'a AtomicBool);

impl<'a> Granting<'a> {
    fn of(flag: &'a AtomicBool) -> Self {
        flag.store(true, Ordering::Release);
        Self(flag)
    }
}

impl Drop for Granting<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// What a script says with `session/lead`.
#[derive(Debug, Deserialize)]
pub(super) struct Lead {
    pub(super) what: String,
    entry: Option<EntryId>,
    session: Option<String>,
    #[serde(default)]
    options: Option<Options>,
}

/// How a script wants to leave a branch, as pi spells it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Options {
    summarize: bool,
    custom_instructions: Option<String>,
    replace_instructions: bool,
    label: Option<String>,
}

impl Lead {
    pub(super) fn wish(self) -> Result<Wish, Refusal> {
        let missing = |what: &str| Refusal::Failed(format!("`{what}` is missing"));
        let options = self.options.unwrap_or_default();
        Ok(match self.what.as_str() {
            "new" => Wish::New,
            "reload" => Wish::Reload,
            "switch" => Wish::Resume(self.session.ok_or_else(|| missing("session"))?),
            "fork" => Wish::Fork(self.entry.ok_or_else(|| missing("entry"))?),
            "tree" => Wish::GoTo(
                self.entry.ok_or_else(|| missing("entry"))?,
                Leaving {
                    is_summarised: options.summarize,
                    instructions: options.custom_instructions,
                    replaces_instructions: options.replace_instructions,
                    label: options.label,
                },
            ),
            other => {
                return Err(Refusal::Failed(format!(
                    "the session cannot be led to `{}`, expected `new`, `switch`, `fork`, `tree`, `reload` or `wait`",
                    other.escape_debug()
                )));
            }
        })
    }
}

/// A wish that was not granted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WishError {
    /// The session stays as it is.
    #[error(transparent)]
    Passage(#[from] PassageError),
    /// The conversation stays as it is.
    #[error(transparent)]
    Compaction(#[from] CompactionError),
}

impl WishError {
    /// Somebody did not want it, which is no failure.
    fn is_cancellation(&self) -> bool {
        matches!(
            self,
            Self::Passage(PassageError::Blocked { .. } | PassageError::Canceled)
        )
    }
}

impl Agent {
    /// Does what a script wants done, and tells it. [`Wish::Reload`] is not the agent's: that loads nothing.
    ///
    /// # Errors
    ///
    /// Fails as the operation does; everything is as it was then.
    pub async fn grant(
        &mut self,
        asked: PendingWish,
        cancel: &CancellationToken,
    ) -> Result<(), WishError> {
        let done = self.carry_out(&asked.wish, cancel).await;
        let answer = match &done {
            Ok(told) => Ok(told.clone()),
            Err(error) if error.is_cancellation() => Ok(json!({ "cancelled": true })),
            Err(error) => Err(tenterhook::error_chain(error)),
        };
        asked.answer(answer);
        done.map(drop)
    }

    async fn carry_out(
        &mut self,
        wish: &Wish,
        cancel: &CancellationToken,
    ) -> Result<Value, WishError> {
        let mut told = json!({ "cancelled": false });
        match wish {
            Wish::New => self.new_session(cancel).await?,
            Wish::Resume(id) => {
                let id = self.find_session(id)?;
                self.resume(&id, cancel).await?;
            }
            Wish::Fork(entry) => drop(self.fork(entry, cancel).await?),
            Wish::GoTo(entry, leaving) => drop(self.go_to(entry, leaving.clone(), cancel).await?),
            Wish::Compact(instructions) => {
                let compacted = self.compact(instructions.clone(), cancel).await?;
                told = json!({
                    "summary": compacted.summary,
                    "tokensBefore": compacted.tokens_before,
                });
            }
            Wish::Reload => {}
        }
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_says_where_the_session_is_led() {
        for (params, expected) in [
            (json!({ "what": "new" }), Ok(Wish::New)),
            (json!({ "what": "reload" }), Ok(Wish::Reload)),
            (
                json!({ "what": "switch", "session": "s" }),
                Ok(Wish::Resume("s".to_owned())),
            ),
            (
                json!({ "what": "fork", "entry": "3" }),
                Ok(Wish::Fork("3".into())),
            ),
            (
                json!({ "what": "tree", "entry": "3", "options": { "summarize": true, "customInstructions": "c", "label": "l" } }),
                Ok(Wish::GoTo(
                    "3".into(),
                    Leaving {
                        instructions: Some("c".to_owned()),
                        label: Some("l".to_owned()),
                        ..Leaving::summarised()
                    },
                )),
            ),
            (json!({ "what": "tree" }), Err("`entry` is missing")),
            (json!({ "what": "switch" }), Err("`session` is missing")),
            (
                json!({ "what": "off" }),
                Err(
                    "the session cannot be led to `off`, expected `new`, `switch`, `fork`, `tree`, `reload` or `wait`",
                ),
            ),
        ] {
            let lead = Lead::deserialize(&params).unwrap();
            match (lead.wish(), expected) {
                (Err(Refusal::Failed(found)), Err(expected)) => assert_eq!(found, expected),
                (found, expected) => assert_eq!(found.ok(), expected.ok(), "{params}"),
            }
        }
    }

    #[tokio::test]
    async fn nobody_waits_for_a_wish_that_nobody_grants_meanwhile() {
        let wishes = Wishes::default();
        for _ in 0..MOST {
            let told = wishes.ask(Wish::New).await.unwrap();
            assert_eq!(told, json!({ "cancelled": false }));
        }
        assert!(wishes.ask(Wish::New).await.is_err());
        while let Some(asked) = wishes.take() {
            asked.granted();
        }
        let (told, ()) = tokio::join!(wishes.ask(Wish::Compact(None)), async {
            wishes.next().await.answer(Err("no".to_owned()));
        });
        assert!(matches!(told, Err(Refusal::Failed(why)) if why == "no"));
    }
}
