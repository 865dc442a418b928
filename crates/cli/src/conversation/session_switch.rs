//! The commands that switch to another session or branch.

use tenterhook_agent::sessions::SessionError;
use tenterhook_agent::{LeaveBranch, SessionSwitchError, SessionSwitched};
use tenterhook_engine::EntryId;
use tenterhook_setup::session_store::warn_of;

use super::record::ConversationRecord;
use super::state::Conversation;
use tenterhook_protocol::escape::{escape_indented, escape_line};
use tenterhook_setup::exit::Exit;

impl Conversation<'_> {
    pub(super) async fn begin_anew(&mut self, record: &mut ConversationRecord) {
        let cancel = self.interrupts.token();
        let done = self.agent.new_session(&cancel).await;
        if self.is_done(done, record).is_some() {
            self.say_session("is new");
        }
    }

    pub(super) async fn resume(&mut self, id: &str, record: &mut ConversationRecord) {
        let cancel = self.interrupts.token();
        let found = self.agent.find_session(id);
        let done = match found {
            Ok(id) => self.agent.resume(&id, &cancel).await,
            Err(error) => Err(error),
        };
        if let Some(torn) = self.is_done(done, record) {
            warn_of(torn.as_ref());
            self.say_session("continues");
        }
    }

    pub(super) async fn fork(&mut self, entry: &EntryId, record: &mut ConversationRecord) {
        let cancel = self.interrupts.token();
        let done = self.agent.fork(entry, &cancel).await;
        if let Some(moved) = self.is_done(done, record) {
            self.say_session(&format!(
                "is a copy up to entry {}",
                escape_line(entry.as_str())
            ));
            self.say_words(&moved);
        }
    }

    pub(super) async fn go_to(
        &mut self,
        entry: &EntryId,
        leaving: LeaveBranch,
        record: &mut ConversationRecord,
    ) {
        if leaving.is_summarised {
            self.terminal.wait_for("waiting for the summary");
        }
        let cancel = self.interrupts.token();
        let done = self.agent.go_to(entry, leaving, &cancel).await;
        if let Some(moved) = self.is_done(done, record) {
            let entry = escape_line(entry.as_str());
            self.terminal
                .print_line(&format!("The conversation continues at entry {entry}."));
            self.say_words(&moved);
        }
    }

    fn say_session(&self, what: &str) {
        let id = self.agent.session().id();
        self.terminal.print_line(&format!("Session {id} {what}."));
    }

    /// Shows the user's message at which the conversation now continues, so that the user can rewrite it.
    fn say_words(&self, moved: &SessionSwitched) {
        if let Some(words) = &moved.words {
            self.terminal.print_line(&format!(
                "Your message there: {}",
                escape_indented(words, 4)
            ));
        }
    }

    /// Returns the result of a switch, or reports why it failed.
    fn is_done<T>(
        &self,
        done: Result<T, SessionSwitchError>,
        record: &mut ConversationRecord,
    ) -> Option<T> {
        self.terminal.end_open_line();
        let error = match done {
            Ok(done) => return Some(done),
            Err(error) => error,
        };
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        let text = format!("{error}{}", cause.unwrap_or_default());
        let is_unnamed = matches!(
            error,
            SessionSwitchError::Session(
                SessionError::Unknown { .. } | SessionError::Ambiguous { .. }
            )
        );
        let hint = if is_unnamed {
            "; `tenterhook sessions list` shows the sessions"
        } else if matches!(error, SessionSwitchError::UnknownEntry(_)) {
            "; `/tree` shows the entries"
        } else {
            ""
        };
        let text = format!("Nothing was changed: {}{hint}", escape_indented(&text, 4));
        let exit = match error {
            SessionSwitchError::Blocked { .. } => Exit::Stopped,
            SessionSwitchError::Cancelled => Exit::Interrupted,
            SessionSwitchError::UnknownEntry(_)
            | SessionSwitchError::Current(_)
            | SessionSwitchError::NotStored => Exit::Usage,
            SessionSwitchError::Session(error) => tenterhook_setup::session_store::exit_of(&error),
            SessionSwitchError::Summary(_) => Exit::Run,
            _ => Exit::Failed,
        };
        self.report_failure(record, exit, text);
        None
    }
}
