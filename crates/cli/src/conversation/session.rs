//! Runs a conversation from its first prompt to the end of its session.

use tenterhook_agent::Frontend as _;
use tenterhook_engine::event::SessionEndReason;

use super::format::Format;
use super::record::ConversationRecord;
use super::slash_command::command_name;
use super::state::Conversation;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::editor::Entered;
use tenterhook_terminal::output::{self, style, styled};

impl Conversation<'_> {
    /// Runs the conversation, and closes the session however it ends. Without `prompt`, prompts come from stdin.
    pub(crate) async fn run(mut self, prompt: Option<&str>) -> Result<Exit, CliError> {
        let mut record = ConversationRecord::default();
        self.warn_of_shadowed_commands();
        if self.terminal.is_interactive() && prompt.is_none() {
            self.interrupts.outlive();
        }
        let cancel = self.interrupts.token();
        let is_started = tokio::select! {
            biased;
            () = cancel.cancelled() => false,
            () = self.agent.start_session(self.source) => true,
        };
        self.report_resources();
        match (prompt, self.program.take_caller()) {
            _ if !is_started => record.note(Exit::Interrupted),
            (Some(prompt), _) => self.handle_line(prompt, &mut record).await,
            (None, Some(caller)) => Box::pin(self.serve(caller, &mut record)).await,
            (None, None) => self.run_prompts(&mut record).await,
        }
        let session = self.agent.session().id().clone();
        self.terminal.end_open_line();
        self.agent.end_session(SessionEndReason::Quit).await;
        self.terminal.end_open_line();
        let report = record.report(&session);
        match self.format {
            Format::Json => output::json(&report),
            Format::Jsonl => self.program.report(&report).await,
            Format::Text | Format::Answer | Format::Rpc => {}
        }
        self.program.finish().await;
        match record.broken.or_else(|| self.terminal.take_read_error()) {
            Some(error) => {
                Err(CliError::new(Exit::Failed, "cannot read standard input").cause(&error))
            }
            None => Ok(record.exit.unwrap_or(Exit::Done)),
        }
    }

    /// Handles every line of stdin as a prompt or a command.
    async fn run_prompts(&mut self, record: &mut ConversationRecord) {
        if self.terminal.is_interactive() {
            let text = "`/help` shows the commands; Ctrl-D ends the session.";
            self.terminal.print_line(&styled(style::QUIET, text));
        }
        loop {
            let Some(input) = self.next_input(record).await else {
                return;
            };
            match input.as_deref() {
                Some("") => {}
                None => {
                    self.reload().await;
                    self.run_script_prompts(record).await;
                }
                Some(line) => {
                    // `/reload` must end the session for the old hooks before new ones are loaded, so it loads them
                    // itself.
                    if command_name(line) != Some("reload") {
                        self.reload().await;
                    }
                    self.handle_line(line, record).await;
                }
            }
            if self.is_over || self.scripts.is_over() {
                return;
            }
            if self.interrupts.is_interrupted() {
                if !self.terminal.is_interactive() {
                    return;
                }
                self.interrupts.go_on();
            }
        }
    }

    /// Waits for the user's next line. Returns `Some(None)` if scripts have work for the agent first, and `None` at the
    /// end of the session.
    async fn next_input(&self, record: &mut ConversationRecord) -> Option<Option<String>> {
        self.update_completions();
        let mut was_pressed = false;
        loop {
            let cancel = self.interrupts.token();
            let entered = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    if self.terminal.has_editor() || !self.interrupts.go_on_at_prompt() {
                        record.note(Exit::Interrupted);
                        return None;
                    }
                    // The terminal has discarded the line that was being typed.
                    Ok(Entered::Interrupted)
                }
                entered = self.terminal.read_prompt() => entered,
                () = self.scripts.has_work() => return Some(None),
            };
            match entered {
                Ok(Entered::Line(line)) => return Some(Some(line.trim().to_owned())),
                Ok(Entered::Cleared) => was_pressed = false,
                Ok(Entered::Interrupted) if was_pressed => {
                    record.note(Exit::Interrupted);
                    return None;
                }
                Ok(Entered::Interrupted) => {
                    was_pressed = true;
                    self.terminal
                        .print_line("Press Ctrl-C again or Ctrl-D to end the session.");
                }
                Ok(Entered::End) => return None,
                Err(error) => {
                    record.broken = Some(error);
                    return None;
                }
            }
        }
    }
}
