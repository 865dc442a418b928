//! The commands by which a user goes from session to session, and from branch to branch.

use tenterhook::EntryId;
use tenterhook_agent::session::SessionError;
use tenterhook_agent::{Leaving, Moved, PassageError};

use super::{Conversation, Record};
use crate::exit::Exit;
use crate::safe::{inset, safe_line};
use crate::sessions;

impl Conversation<'_> {
    pub(super) async fn begin_anew(&mut self, record: &mut Record) {
        let cancel = self.interrupts.token();
        let done = self.agent.new_session(&cancel).await;
        if self.is_done(done, record).is_some() {
            self.say_session("is new");
        }
    }

    pub(super) async fn resume(&mut self, id: &str, record: &mut Record) {
        let cancel = self.interrupts.token();
        let found = self.agent.find_session(id);
        let done = match found {
            Ok(id) => self.agent.resume(&id, &cancel).await,
            Err(error) => Err(error),
        };
        if let Some(torn) = self.is_done(done, record) {
            sessions::warn_of(torn.as_ref());
            self.say_session("goes on");
        }
    }

    pub(super) async fn fork(&mut self, entry: &EntryId, record: &mut Record) {
        let cancel = self.interrupts.token();
        let done = self.agent.fork(entry, &cancel).await;
        if let Some(moved) = self.is_done(done, record) {
            self.say_session(&format!(
                "is a copy up to entry {}",
                safe_line(entry.as_str())
            ));
            self.say_words(&moved);
        }
    }

    pub(super) async fn go_to(&mut self, entry: &EntryId, leaving: Leaving, record: &mut Record) {
        if leaving.is_summarised {
            self.terminal.wait_for("waiting for the summary");
        }
        let cancel = self.interrupts.token();
        let done = self.agent.go_to(entry, leaving, &cancel).await;
        if let Some(moved) = self.is_done(done, record) {
            let entry = safe_line(entry.as_str());
            self.terminal
                .line(&format!("The conversation goes on at entry {entry}."));
            self.say_words(&moved);
        }
    }

    fn say_session(&self, what: &str) {
        let id = self.agent.session().id();
        self.terminal.line(&format!("Session {id} {what}."));
    }

    /// Shows the words that the conversation stands before now.
    fn say_words(&self, moved: &Moved) {
        if let Some(words) = &moved.words {
            self.terminal
                .line(&format!("You said there: {}", inset(words, 4)));
        }
    }

    /// Returns what was done, or says why nothing was.
    fn is_done<T>(&self, done: Result<T, PassageError>, record: &mut Record) -> Option<T> {
        self.terminal.settle();
        let error = match done {
            Ok(done) => return Some(done),
            Err(error) => error,
        };
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        let text = format!("{error}{}", cause.unwrap_or_default());
        let is_unnamed = matches!(
            error,
            PassageError::Session(SessionError::Unknown { .. } | SessionError::Ambiguous { .. })
        );
        let hint = if is_unnamed {
            "; `tenterhook sessions list` shows the sessions"
        } else if matches!(error, PassageError::NoEntry(_)) {
            "; `/tree` shows the entries"
        } else {
            ""
        };
        let text = format!("Nothing is changed: {}{hint}", inset(&text, 4));
        let exit = match error {
            PassageError::Blocked { .. } => Exit::Stopped,
            PassageError::Canceled => Exit::Interrupted,
            PassageError::NoEntry(_) | PassageError::Current(_) | PassageError::NotStored => {
                Exit::Usage
            }
            PassageError::Session(error) => sessions::exit_of(&error),
            PassageError::Summary(_) => Exit::Run,
            _ => Exit::Failed,
        };
        self.fail(record, exit, text);
        None
    }
}
