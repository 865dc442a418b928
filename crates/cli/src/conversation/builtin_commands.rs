//! Commands that the conversation runs itself: the user's shell commands, names, labels and the list of hooks.

use tenterhook_agent::{UserCommand, UserCommandError};
use tenterhook_engine::EntryId;

use super::record::ConversationRecord;
use super::state::Conversation;
use tenterhook_protocol::escape::{escape_indented, escape_line, escape_untrusted};
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::output::table::{self, Cell};
use tenterhook_terminal::output::{self, style};

impl Conversation<'_> {
    /// Runs a shell command of the user and shows its output.
    pub(super) async fn run_for_user(
        &mut self,
        command: UserCommand,
        record: &mut ConversationRecord,
    ) {
        let cancel = self.interrupts.token();
        self.terminal.wait_for("waiting for the command");
        let ran = self.agent.run_command(command, &cancel).await;
        self.terminal.end_open_line();
        let error = match ran {
            Ok(ran) => {
                let Some(result) = ran.result else { return };
                self.terminal
                    .print_lines(result.output.lines().map(escape_untrusted));
                match result.exit_code {
                    _ if result.cancelled => {
                        record.note(Exit::Interrupted);
                        output::note("The command was cancelled");
                    }
                    Some(0) => {}
                    Some(status) => {
                        output::note(format_args!("The command ended with status {status}"));
                    }
                    None => output::note("The command was ended by a signal"),
                }
                return;
            }
            Err(error) => error,
        };
        let exit = match error {
            UserCommandError::Cancelled => Exit::Interrupted,
            UserCommandError::Empty => Exit::Usage,
            UserCommandError::Start(_) | _ => Exit::Failed,
        };
        let text = tenterhook_engine::error_chain(&error);
        let text = format!("The command was not run: {}", escape_indented(&text, 4));
        self.report_failure(record, exit, text);
    }

    /// Gives the session a name.
    pub(super) async fn name_session(&mut self, name: &str) {
        self.agent.name_session(name).await;
        self.terminal.end_open_line();
        let name = self.agent.session().name().unwrap_or_default();
        self.terminal
            .print_line(&format!("The session is named `{}`.", escape_line(name)));
    }

    /// Gives an entry a label, or removes it.
    pub(super) async fn label_entry(
        &mut self,
        entry: &EntryId,
        label: Option<&str>,
        record: &mut ConversationRecord,
    ) {
        if let Err(error) = self.agent.label(entry, label).await {
            let text = escape_line(&error.to_string());
            let text = format!("Nothing was changed: {text}; `/tree` shows the entries");
            self.report_failure(record, Exit::Usage, text);
        }
    }

    /// Shows the hooks that are in force, one event per line.
    pub(super) fn show_hooks(&self) {
        let hooks = self.engine.hooks();
        let rows: Vec<Vec<Cell>> = hooks
            .chunk_by(|a, b| a.event == b.event)
            .map(|hooks| {
                let event = hooks.first().and_then(|hook| hook.event.as_ref());
                let event = event.map_or("every event", |event| event.as_str());
                let names = hooks.iter().map(|hook| match &hook.problem {
                    Some(_) => format!("{} (broken)", hook.id),
                    None => hook.id.to_string(),
                });
                let names: Vec<String> = names.collect();
                vec![
                    (event.to_owned(), style::NAME),
                    table::plain(escape_line(&names.join(", "))),
                ]
            })
            .collect();
        if rows.is_empty() {
            self.terminal.print_line("No hooks.");
        } else {
            self.terminal.print_lines(table::lines(&rows));
        }
    }
}
