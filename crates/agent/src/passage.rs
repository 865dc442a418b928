//! From one session to another, and from one branch of a session to another.
//!
//! ```text
//! session_before_switch | session_before_fork (block) → session_end → session_switch | session_fork → session_start
//! session_before_tree (block) → session_tree
//! ```
//!
//! What a hook blocks leaves everything as it was, the files too.

use tenterhook_protocol::event::{
    ForkPosition, SessionBeforeFork, SessionBeforeSwitch, SessionBeforeTree, SessionEndReason,
    SessionEntry, SessionFork, SessionSource, SessionSwitch, SessionTree, SwitchReason,
    TreePreparation,
};
use tenterhook_protocol::{Decision, EntryId, GateEvent, Message, Outcome, Role, SessionId};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, fresh_session};
use crate::compaction::{CompactionError, INSTRUCTION, Source};
use crate::session::{MESSAGE, NoEntry, Session, SessionError, Sessions, Torn};

/// A passage to another session or branch that did not come about. Everything is as it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PassageError {
    /// A hook does not want it.
    #[error("a {event} hook does not want it: {reason}")]
    Blocked {
        /// The event whose hook it was.
        event: &'static str,
        /// Why.
        reason: String,
    },
    /// It was cancelled.
    #[error("it was cancelled")]
    Canceled,
    /// The session has no such entry.
    #[error(transparent)]
    NoEntry(#[from] NoEntry),
    /// The session to go to cannot be used.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The session to go to is the one that is led.
    #[error("`{0}` is the session that is led already")]
    Current(SessionId),
    /// The branch that would be left could not be summarised.
    #[error("the branch is not summarised")]
    Summary(#[source] CompactionError),
    /// There are no stored sessions to go to.
    #[error("sessions are not stored here")]
    NotStored,
}

/// What came of a passage within the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Moved {
    /// The words of the user that the conversation stands before now, to be said anew.
    pub words: Option<String>,
}

/// How a branch of the conversation is left. The default is that the model is told nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leaving {
    /// The model is told a summary of the branch.
    pub is_summarised: bool,
    /// What the summary is to look at.
    pub instructions: Option<String>,
    /// The instructions take the place of the usual ones.
    pub replaces_instructions: bool,
    /// The label of where the conversation goes on. Without one the entry keeps its own.
    pub label: Option<String>,
}

impl Leaving {
    /// The model is told a summary of the branch.
    pub fn summarised() -> Self {
        Self {
            is_summarised: true,
            ..Self::default()
        }
    }
}

/// Where a conversation goes on: behind an entry, or before words of the user.
struct Cut {
    position: ForkPosition,
    leaf: Option<EntryId>,
    words: Option<String>,
}

impl Cut {
    fn at(entry: &SessionEntry) -> Self {
        // Summaries and commands of the user are told as the user's words, and are none.
        let message = entry.message.as_ref().filter(|_| entry.kind == MESSAGE);
        match message.filter(|message| message.role == Role::User) {
            Some(message) => Self {
                position: ForkPosition::Before,
                leaf: entry.parent_id.clone(),
                words: Some(message.content.clone()),
            },
            None => Self {
                position: ForkPosition::At,
                leaf: Some(entry.id.clone()),
                words: None,
            },
        }
    }
}

/// Reads what may be long where everything else goes on meanwhile.
async fn off_the_runtime<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, SessionError> + Send + 'static,
) -> Result<T, SessionError> {
    let reading = tokio::task::spawn_blocking(read);
    reading.await.map_err(SessionError::interrupted)?
}

impl Agent {
    /// Begins a new session in the place of this one.
    ///
    /// # Errors
    ///
    /// Fails if a hook does not want it.
    pub async fn new_session(&mut self, cancel: &CancellationToken) -> Result<(), PassageError> {
        self.start_session(SessionSource::Startup).await;
        let reason = SwitchReason::New;
        self.may_switch(reason, None, cancel).await?;
        let next = fresh_session();
        let previous = self.replace(next, SessionEndReason::New).await;
        self.arrive(reason, SessionSource::New, previous).await;
        Ok(())
    }

    /// Returns the stored session of that id, or the only one whose id begins so.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or several.
    pub fn find_session(&self, id: &str) -> Result<SessionId, PassageError> {
        Ok(self.stored()?.find(id)?)
    }

    /// Goes on with a stored session in the place of this one. Returns what of its file was not written to its end.
    ///
    /// # Errors
    ///
    /// Fails if there is no such session, if a hook does not want it, if another process has the session open, and if
    /// its file is damaged.
    pub async fn resume(
        &mut self,
        id: &SessionId,
        cancel: &CancellationToken,
    ) -> Result<Option<Torn>, PassageError> {
        self.start_session(SessionSource::Startup).await;
        if id == self.session().id() {
            return Err(PassageError::Current(id.clone()));
        }
        // A session that cannot be read is no question for hooks.
        let sessions = self.stored()?.clone();
        let (looked, wanted) = (sessions.clone(), id.clone());
        off_the_runtime(move || looked.read(&wanted).map(drop)).await?;
        let reason = SwitchReason::Resume;
        self.may_switch(reason, Some(id.clone()), cancel).await?;
        let wanted = id.clone();
        let opened = off_the_runtime(move || sessions.open(&wanted)).await?;
        let previous = self.replace(opened.session, SessionEndReason::Resume).await;
        self.arrive(reason, SessionSource::Resume, previous).await;
        Ok(opened.torn)
    }

    /// Goes on in a copy of this session: after an entry, or before it, if it is what the user said.
    ///
    /// # Errors
    ///
    /// Fails if there is no such entry, and if a hook does not want it.
    pub async fn fork(
        &mut self,
        entry: &EntryId,
        cancel: &CancellationToken,
    ) -> Result<Moved, PassageError> {
        self.start_session(SessionSource::Startup).await;
        let cut = self.cut_at(entry)?;
        let build = || SessionBeforeFork {
            entry_id: entry.clone(),
            position: cut.position,
            skip_conversation_restore: false,
        };
        let outcome = self.ask(build, cancel).await?;
        let rewritten = outcome.into_rewritten();
        let skips = rewritten.is_some_and(|event| event.skip_conversation_restore);
        let leaf = cut.leaf.filter(|_| !skips);
        let id = SessionId::generate();
        let next: Session = self.session().fork(id, leaf.as_ref())?;
        let previous = self.replace(next, SessionEndReason::Fork).await;
        let build = || SessionFork {
            entry_id: entry.clone(),
            previous_session: Some(previous.clone()),
        };
        self.stint.life.hooks.tell(build).await;
        self.begin_anew(SessionSource::Fork, previous.clone()).await;
        Ok(Moved { words: cut.words })
    }

    /// Goes on at another entry of the session: after it, or before it, if it is what the user said. The branch that
    /// is left stays in the tree; where the user wants it, the model is told a summary of it.
    ///
    /// # Errors
    ///
    /// Fails if there is no such entry, if a hook does not want it, and if the summary cannot be made.
    pub async fn go_to(
        &mut self,
        entry: &EntryId,
        leaving: Leaving,
        cancel: &CancellationToken,
    ) -> Result<Moved, PassageError> {
        self.start_session(SessionSource::Startup).await;
        let cut = self.cut_at(entry)?;
        let old_leaf = self.session().leaf().cloned();
        if old_leaf.as_ref() == Some(entry) {
            return Ok(Moved::default());
        }
        let is_summarised = leaving.is_summarised;
        let preparation = self.preparation(entry, leaving);
        let build = || SessionBeforeTree {
            preparation: preparation.clone(),
        };
        let outcome = self.ask(build, cancel).await?;
        let supplied = outcome.supplied().filter(|summary| !summary.is_empty());
        let preparation = outcome
            .into_rewritten()
            .map_or(preparation, |event| event.preparation);
        let from_hook = supplied.is_some() && is_summarised;
        let summary = match supplied {
            _ if !is_summarised => None,
            Some(supplied) => Some(supplied),
            None => self.summarise(&preparation, cancel).await?,
        };
        let life = &mut self.stint.life;
        let known = life.session.labels().remove(entry);
        life.session.go_to(cut.leaf.as_ref())?;
        let written =
            summary.map(|summary| life.session.remember_branch(&summary, old_leaf.as_ref()));
        if preparation.label != known {
            let labelled = written.as_ref().map_or(entry, |written| &written.id);
            life.session.label(labelled, preparation.label.as_deref())?;
        }
        life.reset_gauge();
        life.save().await;
        let new_leaf = life.session.leaf().cloned();
        let build = || SessionTree {
            new_leaf_id: new_leaf.unwrap_or_default(),
            old_leaf_id: old_leaf,
            summary_entry: written,
            from_hook,
        };
        life.hooks.tell(build).await;
        Ok(Moved { words: cut.words })
    }

    /// Has a model summarise the branch that is left. `None` is a branch that says nothing.
    async fn summarise(
        &self,
        preparation: &TreePreparation,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, PassageError> {
        let left = preparation.entries_to_summarize.iter();
        let messages: Vec<Message> = left.filter_map(|entry| entry.message.clone()).collect();
        if messages.is_empty() {
            return Ok(None);
        }
        let own = preparation.custom_instructions.as_deref();
        let (instruction, guidance) = match own {
            Some(own) if preparation.replace_instructions => (own, None),
            own => (INSTRUCTION, own.map(str::to_owned)),
        };
        let source = Source {
            messages: &messages,
            instruction,
        };
        let life = &self.stint.life;
        let hooks = life.hooks.for_run(cancel);
        let guidance: Vec<String> = guidance.into_iter().collect();
        let summary = life.summarise(source, &guidance, &hooks, cancel).await;
        summary.map(Some).map_err(|error| match error {
            CompactionError::Canceled => PassageError::Canceled,
            CompactionError::Blocked { event, reason } => PassageError::Blocked { event, reason },
            CompactionError::Nothing | CompactionError::Model(_) => PassageError::Summary(error),
        })
    }

    fn preparation(&self, target: &EntryId, leaving: Leaving) -> TreePreparation {
        let session = self.session();
        let common = session.common_ancestor(target);
        let left = session.entries().iter().rev();
        let mut left: Vec<SessionEntry> = left
            .take_while(|entry| Some(&entry.id) != common.as_ref())
            .cloned()
            .collect();
        left.reverse();
        TreePreparation {
            target_id: target.clone(),
            old_leaf_id: session.leaf().cloned(),
            common_ancestor_id: common,
            entries_to_summarize: left,
            user_wants_summary: leaving.is_summarised,
            custom_instructions: leaving.instructions,
            replace_instructions: leaving.replaces_instructions,
            label: leaving.label.or_else(|| session.labels().remove(target)),
        }
    }

    fn cut_at(&self, entry: &EntryId) -> Result<Cut, NoEntry> {
        let found = self.session().entry(entry);
        found.map(Cut::at).ok_or_else(|| NoEntry(entry.clone()))
    }

    fn stored(&self) -> Result<&Sessions, PassageError> {
        self.parts.sessions().ok_or(PassageError::NotStored)
    }

    async fn may_switch(
        &self,
        reason: SwitchReason,
        target: Option<SessionId>,
        cancel: &CancellationToken,
    ) -> Result<(), PassageError> {
        let build = || SessionBeforeSwitch {
            reason,
            target_session: target,
        };
        self.ask(build, cancel).await.map(drop)
    }

    /// Lets hooks stop what is about to happen.
    async fn ask<E: GateEvent>(
        &self,
        build: impl FnOnce() -> E,
        cancel: &CancellationToken,
    ) -> Result<Outcome<E>, PassageError> {
        let hooks = self.stint.life.hooks.for_run(cancel);
        let outcome = hooks.fire(build).await;
        if cancel.is_cancelled() {
            return Err(PassageError::Canceled);
        }
        match outcome.decision() {
            Decision::Proceed => Ok(outcome),
            // No one is asked about these events.
            Decision::Ask { reason, .. } | Decision::Stop { reason, .. } => {
                Err(PassageError::Blocked {
                    event: E::INFO.name,
                    reason,
                })
            }
        }
    }

    async fn arrive(&mut self, reason: SwitchReason, source: SessionSource, previous: SessionId) {
        let build = || SessionSwitch {
            reason,
            previous_session: Some(previous.clone()),
        };
        self.stint.life.hooks.tell(build).await;
        self.begin_anew(source, previous).await;
    }

    async fn begin_anew(&mut self, source: SessionSource, previous: SessionId) {
        self.begin(source, Some(previous)).await;
        self.stint.life.restore_selection().await;
        self.stint.life.save().await;
    }
}
