//! What scripts want done with the session.

use tenterhook_agent::CancellationToken;
use tenterhook_agent::extension::{CommandEnd, CommandFailure, ForeignCommand, PendingWish, Wish};

use super::{Conversation, Record};
use crate::exit::Exit;
use crate::output;
use crate::safe::inset;

/// The most wishes of scripts that are granted in a row. Scripts whose wishes make more of them are stopped.
const MOST_IN_A_ROW: usize = 64;

impl Conversation<'_> {
    /// Runs a command of an extension, and does meanwhile what it wants done with the session.
    pub(super) async fn run_granting(
        &mut self,
        command: &ForeignCommand,
        line: &str,
        cancel: &CancellationToken,
        record: &mut Record,
    ) -> Result<CommandEnd, CommandFailure> {
        let (session, cwd) = (
            self.agent.session().id().clone(),
            self.agent.cwd().to_owned(),
        );
        let mut running = Box::pin(command.run(line, (&session, &cwd), cancel));
        let scripts = std::sync::Arc::clone(&self.scripts);
        loop {
            let pending = tokio::select! {
                // Who waits for wishes last says that nobody does any more, so it has to be the first to be asked.
                biased;
                pending = scripts.next_wish() => pending,
                end = &mut running => return end,
            };
            self.grant(pending, record).await;
        }
    }

    /// Does what scripts wanted done while something else was.
    pub(super) async fn grant_all(&mut self, record: &mut Record) {
        for _ in 0..MOST_IN_A_ROW {
            let Some(pending) = self.scripts.take_wish() else {
                return;
            };
            self.grant(pending, record).await;
        }
    }

    async fn grant(&mut self, pending: PendingWish, record: &mut Record) {
        if pending.wish == Wish::Reload {
            self.reload_all().await;
            return pending.granted();
        }
        let text = match &pending.wish {
            Wish::GoTo(entry, _) => Some(format!("The conversation goes on at entry {entry}.")),
            Wish::Compact(_) => Some("Compacted the conversation.".to_owned()),
            Wish::New | Wish::Resume(_) | Wish::Fork(_) | Wish::Reload | _ => None,
        };
        let cancel = self.interrupts.token();
        self.terminal.wait_for("waiting for what a script wants");
        let done = self.agent.grant(pending, &cancel).await;
        self.terminal.settle();
        match done {
            Ok(()) => {
                let led = || format!("A script leads session {} now.", self.agent.session().id());
                self.terminal.line(&inset(&text.unwrap_or_else(led), 4));
            }
            Err(_) if cancel.is_cancelled() => record.note(Exit::Interrupted),
            Err(error) => {
                let text = tenterhook::error_chain(&error);
                output::note(format_args!(
                    "A script wanted to lead the session: nothing is changed: {}",
                    inset(&text, 4)
                ));
            }
        }
    }
}
