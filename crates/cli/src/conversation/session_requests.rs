//! Applies the session requests of scripts, such as to resume another session.

use tenterhook_agent::CancellationToken;
use tenterhook_agent::extension::{
    CommandEnd, CommandFailure, ForeignCommand, PendingRequest, SessionRequest,
};

use super::record::ConversationRecord;
use super::state::Conversation;
use tenterhook_protocol::escape::escape_indented;
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::output;

/// The maximum number of session requests that are applied in a row. The limit stops scripts whose requests cause
/// more requests.
const MAX_IN_A_ROW: usize = 64;

impl Conversation<'_> {
    /// Runs a command of an extension, and applies session requests while it runs.
    pub(super) async fn run_with_session_requests(
        &mut self,
        command: &ForeignCommand,
        line: &str,
        cancel: &CancellationToken,
        record: &mut ConversationRecord,
    ) -> Result<CommandEnd, CommandFailure> {
        let (session, cwd) = (
            self.agent.session().id().clone(),
            self.agent.cwd().to_owned(),
        );
        let mut running = Box::pin(command.run(line, (&session, &cwd), cancel));
        let scripts = std::sync::Arc::clone(&self.scripts);
        loop {
            let pending = tokio::select! {
                // `next_request` also notices when no one waits for requests any longer, so it must be polled first.
                biased;
                pending = scripts.next_request() => pending,
                end = &mut running => return end,
            };
            self.apply_session_request(pending, record).await;
        }
    }

    /// Applies the session requests that scripts made while something else was running.
    pub(super) async fn apply_session_requests(&mut self, record: &mut ConversationRecord) {
        for _ in 0..MAX_IN_A_ROW {
            let Some(pending) = self.scripts.take_request() else {
                return;
            };
            self.apply_session_request(pending, record).await;
        }
    }

    /// Applies a session request of a script.
    pub(super) async fn apply_session_request(
        &mut self,
        pending: PendingRequest,
        record: &mut ConversationRecord,
    ) {
        if pending.request == SessionRequest::Reload {
            self.reload_all().await;
            return pending.complete();
        }
        let text = match &pending.request {
            SessionRequest::GoTo(entry, _) => {
                Some(format!("The conversation continues at entry {entry}."))
            }
            SessionRequest::Compact(_) => Some("Compacted the conversation.".to_owned()),
            SessionRequest::New
            | SessionRequest::Resume(_)
            | SessionRequest::Fork(_)
            | SessionRequest::Reload
            | _ => None,
        };
        let cancel = self.interrupts.token();
        self.terminal
            .wait_for("waiting for a script's session request");
        let done = self.agent.apply_request(pending, &cancel).await;
        self.terminal.end_open_line();
        match done {
            Ok(()) => {
                let led = || {
                    format!(
                        "A script switched to session {}.",
                        self.agent.session().id()
                    )
                };
                self.terminal
                    .print_line(&escape_indented(&text.unwrap_or_else(led), 4));
            }
            Err(_) if cancel.is_cancelled() => record.note(Exit::Interrupted),
            Err(error) => {
                let text = tenterhook_engine::error_chain(&error);
                output::note(format_args!(
                    "A script's session request failed, and nothing was changed: {}",
                    escape_indented(&text, 4)
                ));
            }
        }
    }
}
