//! Handles a line from the user: a prompt, a shell command or a slash command.

use tenterhook_agent::extension::{CommandEnd, ForeignCommand};
use tenterhook_agent::{CancellationToken, LeaveBranch, UserCommand};

use super::record::ConversationRecord;
use super::running_commands::CommandRun;
use super::slash_command::{self, SlashCommand, SlashCommandKind, TABLE, command_name};
use super::state::Conversation;
use tenterhook_protocol::escape::{escape_indented, escape_line, escape_untrusted};
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::Terminal;
use tenterhook_terminal::output;
use tenterhook_terminal::output::style;
use tenterhook_terminal::output::table::{self, Cell};
use tenterhook_terminal::session_tree;

impl Conversation<'_> {
    /// Handles a prompt or a command, and then the prompts that scripts have queued.
    pub(super) async fn handle_line(&mut self, line: &str, record: &mut ConversationRecord) {
        if let Some(command) = UserCommand::read(line).filter(|_| self.has_shell) {
            self.run_for_user(command, record).await;
            return self.run_script_prompts(record).await;
        }
        let Some(name) = command_name(line) else {
            self.run_prompt(line, record).await;
            return self.run_script_prompts(record).await;
        };
        if let Some(row) = slash_command::find(name) {
            self.run_slash_command(row, line, record).await;
        } else {
            let has = |command: &&ForeignCommand| command.names.iter().any(|own| own == name);
            match self.commands.iter().find(has).cloned() {
                Some(command) => self.run_extension_command(&command, line, record).await,
                None if self.agent.resources().has(name) => self.run_prompt(line, record).await,
                None => self.report_unknown_command(name, record),
            }
        }
        if !self.is_over {
            self.run_script_prompts(record).await;
        }
    }

    /// Runs one of the conversation's own slash commands.
    pub(super) async fn run_slash_command(
        &mut self,
        row: &SlashCommand,
        line: &str,
        record: &mut ConversationRecord,
    ) {
        self.agent.add_script_entries();
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        match (row.kind, words.as_slice()) {
            (SlashCommandKind::Compact, instructions) => {
                self.compact(text_of(instructions), record).await;
            }
            (SlashCommandKind::New, []) => self.begin_anew(record).await,
            (SlashCommandKind::Resume, [id]) => self.resume(id, record).await,
            (SlashCommandKind::Fork, [entry]) => self.fork(&(*entry).into(), record).await,
            (SlashCommandKind::Tree, []) => self
                .terminal
                .print_lines(session_tree::lines(self.agent.session())),
            (SlashCommandKind::Tree, [entry]) => {
                self.go_to(&(*entry).into(), LeaveBranch::default(), record)
                    .await;
            }
            (SlashCommandKind::Tree, [entry, "summary", instructions @ ..]) => {
                let leaving = LeaveBranch {
                    instructions: text_of(instructions),
                    ..LeaveBranch::summarised()
                };
                self.go_to(&(*entry).into(), leaving, record).await;
            }
            (SlashCommandKind::Label, [entry, label @ ..]) => {
                self.label_entry(&(*entry).into(), text_of(label).as_deref(), record)
                    .await;
            }
            (SlashCommandKind::Name, [_, ..]) => self.name_session(&words.join(" ")).await,
            (SlashCommandKind::Hooks, []) => self.show_hooks(),
            (SlashCommandKind::Reload, []) => self.reload_all().await,
            (SlashCommandKind::Model, []) => self.show_models(),
            (SlashCommandKind::Model, [name]) => self.choose_model(name, record).await,
            (SlashCommandKind::Thinking, []) => self.show_thinking(),
            (SlashCommandKind::Thinking, [level]) => self.choose_thinking(level, record).await,
            (SlashCommandKind::Help, []) => self.show_help(),
            (SlashCommandKind::Quit, []) => self.is_over = true,
            _ => self.report_wrong_form(row, record),
        }
    }

    /// Reports the expected forms of a command.
    fn report_wrong_form(&self, row: &SlashCommand, record: &mut ConversationRecord) {
        let ways: Vec<String> = row.ways().map(|way| format!("`{way}`")).collect();
        let hint = match row.kind {
            SlashCommandKind::Fork | SlashCommandKind::Tree | SlashCommandKind::Label => {
                "; `/tree` shows the entries"
            }
            SlashCommandKind::Resume => "; `tenterhook sessions list` shows the sessions",
            SlashCommandKind::Model => "; `/model` shows the models",
            SlashCommandKind::Thinking => "; `/thinking` shows the levels",
            SlashCommandKind::Compact
            | SlashCommandKind::New
            | SlashCommandKind::Name
            | SlashCommandKind::Hooks
            | SlashCommandKind::Reload
            | SlashCommandKind::Help
            | SlashCommandKind::Quit => "",
        };
        let text = format!("Expected {}{hint}", ways.join(" or "));
        self.report_failure(record, Exit::Usage, text);
    }

    /// Shows every command.
    fn show_help(&self) {
        let own = TABLE.iter().flat_map(|row| {
            let ways = row.ways().enumerate();
            ways.map(|(nth, way)| (way, if nth == 0 { row.does } else { "" }.to_owned()))
        });
        let foreign = self.commands.iter().map(|command| {
            (
                escape_line(&command.to_string()),
                escape_line(&command.description),
            )
        });
        let rows: Vec<Vec<Cell>> = own
            .chain(foreign)
            .chain(self.resource_rows())
            .map(|(way, does)| vec![(way, style::NAME), table::plain(does)])
            .collect();
        self.terminal.print_lines(table::lines(&rows));
    }

    /// Runs a command of an extension.
    async fn run_extension_command(
        &mut self,
        command: &ForeignCommand,
        line: &str,
        record: &mut ConversationRecord,
    ) {
        let cancel = self.interrupts.token();
        let end = self
            .run_with_session_requests(command, line, &cancel, record)
            .await;
        let run = CommandRun {
            line: line.to_owned(),
            end,
        };
        if let Some(prompt) = report_command(run, self.terminal, &cancel, record) {
            self.run_prompt(prompt, record).await;
        }
    }

    /// Reports an unknown command.
    fn report_unknown_command(&self, name: &str, record: &mut ConversationRecord) {
        let foreign = self.commands.iter().map(ToString::to_string);
        let own = TABLE.iter().map(|row| format!("/{}", row.name));
        let names: Vec<String> = foreign
            .chain(self.resource_names())
            .chain(own)
            .map(|name| format!("`{}`", escape_untrusted(&name)))
            .collect();
        let text = format!(
            "Unknown command `/{}`. Available: {}.",
            escape_untrusted(name),
            names.join(", ")
        );
        self.report_failure(record, Exit::Usage, text);
    }
}

/// Shows how a command of an extension ended, and records a failure. Returns the prompt that the agent gets, if any.
pub(super) fn report_command(
    run: CommandRun,
    terminal: &Terminal,
    cancel: &CancellationToken,
    record: &mut ConversationRecord,
) -> Option<String> {
    terminal.end_open_line();
    match run.end {
        Ok(CommandEnd::Prompt(prompt)) => return Some(prompt),
        Ok(CommandEnd::Passed) => return Some(run.line),
        Ok(CommandEnd::Respond(text)) => {
            terminal.print_lines(text.lines().map(|line| escape_untrusted(line).clone()));
        }
        Ok(_) => {}
        Err(_) if cancel.is_cancelled() => record.note(Exit::Interrupted),
        Err(failure) => {
            record.note(Exit::Failed);
            let text = escape_indented(&failure.to_string(), 4);
            output::note(&text);
            record.problem = Some(text);
        }
    }
    None
}

/// Returns the words of a line as text, if there are any.
fn text_of(words: &[&str]) -> Option<String> {
    (!words.is_empty()).then(|| words.join(" "))
}
