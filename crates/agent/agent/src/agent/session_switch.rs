//! Switches from one session to another, and from one branch of a session to another.
//!
//! ```text
//! session_before_switch | session_before_fork (block) → session_end → session_switch | session_fork → session_start
//! session_before_tree (block) → session_tree
//! ```
//!
//! If a hook blocks a switch, nothing changes, not even files.

use tenterhook_protocol::event::{
    ForkPosition, SessionBeforeFork, SessionBeforeSwitch, SessionBeforeTree, SessionEndReason,
    SessionEntry, SessionFork, SessionSource, SessionSwitch, SessionTree, SwitchReason,
    TreePreparation,
};
use tenterhook_protocol::{
    Decision, EntryId, GateEvent, Message, Outcome, Role, SessionId, message_extra,
};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::compaction::{CompactionError, INSTRUCTION, SummarySource};
use crate::config::fresh_session;
use crate::leave_branch::LeaveBranch;
use crate::sessions::{
    Session, SessionError, SessionStore, UnfinishedLine, UnknownEntry, entry_kind::MESSAGE,
};

/// Why a switch to another session or branch failed. Nothing has changed then.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionSwitchError {
    /// A hook blocked the switch.
    #[error("a {event} hook blocked it: {reason}")]
    Blocked {
        /// The event whose hook blocked it.
        event: &'static str,
        /// The hook's reason.
        reason: String,
    },
    /// The switch was cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// The session has no such entry.
    #[error(transparent)]
    UnknownEntry(#[from] UnknownEntry),
    /// The session to switch to cannot be used.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The session to switch to is the current one.
    #[error("`{0}` is already the current session")]
    Current(SessionId),
    /// The branch to leave could not be summarised.
    #[error("the branch could not be summarised")]
    Summary(#[source] CompactionError),
    /// The agent does not store sessions, so it cannot switch to another one.
    #[error("this agent does not store sessions")]
    NotStored,
}

/// The result of a switch to another point of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionSwitched {
    /// The user's message before which the conversation now continues, so that the user can rewrite it.
    pub words: Option<String>,
}

/// Where a conversation continues: after an entry, or before a message of the user.
struct Cut {
    position: ForkPosition,
    leaf: Option<EntryId>,
    words: Option<String>,
}

impl Cut {
    fn at(entry: &SessionEntry) -> Self {
        // Summaries, shell commands and messages of extensions also have the role of the user, but the user did not
        // write them.
        let message = entry.message.as_ref().filter(|message| {
            entry.kind == MESSAGE && !message.extra.contains_key(message_extra::KIND)
        });
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

/// Reads on a blocking thread, because a session may be long.
async fn off_the_runtime<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, SessionError> + Send + 'static,
) -> Result<T, SessionError> {
    let reading = tokio::task::spawn_blocking(read);
    reading.await.map_err(SessionError::interrupted)?
}

impl Agent {
    /// Ends this session and begins a new one.
    ///
    /// # Errors
    ///
    /// Fails if a hook blocks it.
    pub async fn new_session(
        &mut self,
        cancel: &CancellationToken,
    ) -> Result<(), SessionSwitchError> {
        self.start_session(SessionSource::Startup).await;
        let reason = SwitchReason::New;
        self.may_switch(reason, None, cancel).await?;
        let next = fresh_session();
        let previous = self.replace(next, SessionEndReason::New).await;
        self.arrive(reason, SessionSource::New, previous).await;
        Ok(())
    }

    /// Returns the id of the stored session whose id is `id`, or begins with it.
    ///
    /// # Errors
    ///
    /// Fails if there is no such session, or if there are several.
    pub fn find_session(&self, id: &str) -> Result<SessionId, SessionSwitchError> {
        Ok(self.stored()?.find(id)?)
    }

    /// Ends this session and resumes a stored one. Returns the last line of its file if the line is incomplete.
    ///
    /// # Errors
    ///
    /// Fails if there is no such session, if a hook blocks it, if another process has the session open, and if its
    /// file is damaged.
    pub async fn resume(
        &mut self,
        id: &SessionId,
        cancel: &CancellationToken,
    ) -> Result<Option<UnfinishedLine>, SessionSwitchError> {
        self.start_session(SessionSource::Startup).await;
        if id == self.session().id() {
            return Err(SessionSwitchError::Current(id.clone()));
        }
        // Hooks are only asked about a session that can be read.
        let sessions = self.stored()?.clone();
        let (looked, wanted) = (sessions.clone(), id.clone());
        off_the_runtime(move || looked.read(&wanted).map(drop)).await?;
        let reason = SwitchReason::Resume;
        self.may_switch(reason, Some(id.clone()), cancel).await?;
        let wanted = id.clone();
        let opened = off_the_runtime(move || sessions.open(&wanted)).await?;
        let previous = self.replace(opened.session, SessionEndReason::Resume).await;
        self.arrive(reason, SessionSource::Resume, previous).await;
        Ok(opened.unfinished_line)
    }

    /// Continues in a copy of this session, after an entry. If the entry is a message of the user, the copy ends
    /// before it.
    ///
    /// # Errors
    ///
    /// Fails if there is no such entry, and if a hook blocks it.
    pub async fn fork(
        &mut self,
        entry: &EntryId,
        cancel: &CancellationToken,
    ) -> Result<SessionSwitched, SessionSwitchError> {
        self.start_session(SessionSource::Startup).await;
        let cut = self.cut_at(entry)?;
        let build = || SessionBeforeFork::new(entry.clone(), cut.position);
        let outcome = self.ask(build, cancel).await?;
        let rewritten = outcome.into_rewritten();
        let skips = rewritten.is_some_and(|event| event.skip_conversation_restore);
        let leaf = cut.leaf.filter(|_| !skips);
        let id = SessionId::generate();
        let next: Session = self.session().fork(id, leaf.as_ref())?;
        let previous = self.replace(next, SessionEndReason::Fork).await;
        let build = || SessionFork::new(entry.clone()).with_previous_session(previous.clone());
        self.active.agent.hooks.announce(build).await;
        self.begin_anew(SessionSource::Fork, previous.clone()).await;
        Ok(SessionSwitched { words: cut.words })
    }

    /// Continues after another entry of the session. If the entry is a message of the user, the conversation
    /// continues before it. The old branch stays in the tree. If the user wants that, the model gets a summary of it.
    ///
    /// # Errors
    ///
    /// Fails if there is no such entry, if a hook blocks it, and if the summary cannot be created.
    pub async fn go_to(
        &mut self,
        entry: &EntryId,
        leaving: LeaveBranch,
        cancel: &CancellationToken,
    ) -> Result<SessionSwitched, SessionSwitchError> {
        self.start_session(SessionSource::Startup).await;
        let cut = self.cut_at(entry)?;
        let old_leaf = self.session().leaf().cloned();
        if old_leaf.as_ref() == Some(entry) {
            return Ok(SessionSwitched::default());
        }
        let is_summarised = leaving.is_summarised;
        let preparation = self.preparation(entry, leaving);
        let build = || SessionBeforeTree::new(preparation.clone());
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
        let agent = &mut self.active.agent;
        let known = agent.session.labels().remove(entry);
        agent.session.go_to(cut.leaf.as_ref())?;
        let written = summary.map(|summary| {
            agent
                .session
                .push_branch_summary(&summary, old_leaf.as_ref())
        });
        if preparation.label != known {
            let labelled = written.as_ref().map_or(entry, |written| &written.id);
            agent
                .session
                .label(labelled, preparation.label.as_deref())?;
        }
        agent.reset_context_usage();
        agent.save().await;
        let new_leaf = agent.session.leaf().cloned();
        let build = || {
            SessionTree::new(new_leaf.unwrap_or_default())
                .with_old_leaf_id(old_leaf)
                .with_summary_entry(written)
                .with_from_hook(from_hook)
        };
        agent.hooks.announce(build).await;
        Ok(SessionSwitched { words: cut.words })
    }

    /// Lets a model summarise the old branch. Returns `None` if the branch has no messages.
    async fn summarise(
        &self,
        preparation: &TreePreparation,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, SessionSwitchError> {
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
        let source = SummarySource {
            messages: &messages,
            instruction,
        };
        let agent = &self.active.agent;
        let hooks = agent.hooks.for_run(cancel);
        let guidance: Vec<String> = guidance.into_iter().collect();
        let summary = agent.summarise(source, &guidance, &hooks, cancel).await;
        summary.map(Some).map_err(|error| match error {
            CompactionError::Cancelled => SessionSwitchError::Cancelled,
            CompactionError::Blocked { event, reason } => {
                SessionSwitchError::Blocked { event, reason }
            }
            CompactionError::Nothing | CompactionError::Model(_) => {
                SessionSwitchError::Summary(error)
            }
        })
    }

    fn preparation(&self, target: &EntryId, leaving: LeaveBranch) -> TreePreparation {
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

    fn cut_at(&self, entry: &EntryId) -> Result<Cut, UnknownEntry> {
        let found = self.session().entry(entry);
        found
            .map(Cut::at)
            .ok_or_else(|| UnknownEntry(entry.clone()))
    }

    fn stored(&self) -> Result<&SessionStore, SessionSwitchError> {
        self.config()
            .sessions
            .as_ref()
            .ok_or(SessionSwitchError::NotStored)
    }

    async fn may_switch(
        &self,
        reason: SwitchReason,
        target: Option<SessionId>,
        cancel: &CancellationToken,
    ) -> Result<(), SessionSwitchError> {
        let build = || SessionBeforeSwitch::new(reason).with_target_session(target);
        self.ask(build, cancel).await.map(drop)
    }

    /// Lets hooks block a switch.
    async fn ask<E: GateEvent>(
        &self,
        build: impl FnOnce() -> E,
        cancel: &CancellationToken,
    ) -> Result<Outcome<E>, SessionSwitchError> {
        let hooks = self.active.agent.hooks.for_run(cancel);
        let outcome = hooks.fire(build).await;
        if cancel.is_cancelled() {
            return Err(SessionSwitchError::Cancelled);
        }
        match outcome.decision() {
            Decision::Proceed => Ok(outcome),
            // These events cannot ask the user, so a question blocks them.
            Decision::Ask { reason, .. } | Decision::Stop { reason, .. } => {
                Err(SessionSwitchError::Blocked {
                    event: E::INFO.name,
                    reason,
                })
            }
        }
    }

    async fn arrive(&mut self, reason: SwitchReason, source: SessionSource, previous: SessionId) {
        let build = || SessionSwitch::new(reason).with_previous_session(previous.clone());
        self.active.agent.hooks.announce(build).await;
        self.begin_anew(source, previous).await;
    }

    async fn begin_anew(&mut self, source: SessionSource, previous: SessionId) {
        self.begin(source, Some(previous)).await;
        self.active.agent.restore_selection().await;
        self.active.agent.save().await;
    }
}
