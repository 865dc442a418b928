//! Runs prompts and compaction, and reports how they ended.

use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tenterhook_agent::{Prompt, RunReport};
use tenterhook_engine::message_extra;

use super::format::Format;
use super::line::report_command;
use super::record::{ConversationRecord, RunEnding, prompt_run};
use super::running_commands::{ExtensionCommands, MAX_RUNNING};
use super::state::Conversation;
use tenterhook_protocol::escape::{escape_indented, escape_untrusted};
use tenterhook_setup::exit::Exit;
use tenterhook_setup::warning::warn;
use tenterhook_terminal::output;
use tenterhook_terminal::output::plural::count;

/// The maximum number of script prompts that run after one line. The limit stops scripts that would keep the
/// agent going forever.
const MAX_IN_A_ROW: usize = 8;

impl Conversation<'_> {
    /// Runs the prompts that scripts have queued.
    pub(super) async fn run_script_prompts(&mut self, record: &mut ConversationRecord) {
        for _ in 0..MAX_IN_A_ROW {
            if self.scripts.is_over() {
                return;
            }
            if self.interrupts.is_interrupted() {
                // Otherwise an interrupt could not end a script that prompts the agent again and again.
                self.scripts.forget_prompts();
                return;
            }
            self.apply_session_requests(record).await;
            let Some(prompt) = self.scripts.take_prompt() else {
                return;
            };
            // A message of an extension that the user should see is shown when it is recorded.
            if !prompt.extra.contains_key(message_extra::KIND) {
                self.terminal
                    .print_line(&format!("> {}", escape_indented(&prompt.text, 2)));
            }
            self.run_prompt(prompt, record).await;
        }
        let forgotten = self.scripts.forget_prompts();
        if forgotten > 0 {
            let prompts = count(forgotten, "prompt");
            warn(format_args!(
                "scripts prompted the agent {MAX_IN_A_ROW} times in a row, so it stops now and drops {prompts}"
            ));
        }
    }

    /// Runs a prompt, and then the prompts of the commands that the user ran meanwhile. An interrupt cancels the run and
    /// everything that it started.
    pub(super) async fn run_prompt(
        &mut self,
        prompt: impl Into<Prompt>,
        record: &mut ConversationRecord,
    ) {
        let mut prompts = VecDeque::from([prompt.into()]);
        while let Some(prompt) = prompts.pop_front() {
            prompts.extend(self.run_one_prompt(prompt, record).await);
            if self.interrupts.is_interrupted() {
                return;
            }
        }
    }

    /// Runs a prompt, and the commands of extensions that the user types meanwhile. Returns the prompts of these
    /// commands.
    async fn run_one_prompt(
        &mut self,
        prompt: Prompt,
        record: &mut ConversationRecord,
    ) -> Vec<Prompt> {
        let text = prompt.text.clone();
        self.terminal.take_error();
        self.terminal.wait_for("waiting for the model");
        let cancel = self.interrupts.token();
        let commands = self.extension_commands();
        let mut running = FuturesUnordered::new();
        let mut prompts = Vec::new();
        let terminal = self.terminal;
        // If the program ends after this prompt, what is typed at the terminal is for the next program.
        let is_typed = self.interrupts.is_conversation();
        let report = {
            let mut run = Box::pin(self.agent.prompt(prompt, &cancel));
            loop {
                let has_room = running.len() < MAX_RUNNING;
                tokio::select! {
                    biased;
                    report = &mut run => break report,
                    Some(ended) = running.next() => {
                        prompts.extend(report_command(ended, terminal, &cancel, record));
                    }
                    line = terminal.typed_line(|line| has_room && commands.find(line).is_some()), if is_typed => {
                        terminal.print_line(&format!("> {}", escape_untrusted(&line)));
                        running.extend(commands.run(&line, &cancel));
                    }
                }
                terminal.wait_for("waiting for the model");
            }
        };
        self.terminal.end_open_line();
        if cancel.is_cancelled() {
            self.terminal.forget_typed_lines();
        }
        self.report_run(&text, report, record);
        while !running.is_empty() {
            let scripts = Arc::clone(&self.scripts);
            tokio::select! {
                // As for a command that runs alone: this must be polled first.
                biased;
                pending = scripts.next_request() => self.apply_session_request(pending, record).await,
                Some(ended) = running.next() => {
                    prompts.extend(report_command(ended, terminal, &cancel, record));
                }
            }
        }
        prompts.into_iter().map(Prompt::from).collect()
    }

    /// Returns the commands of extensions, for the current session.
    pub(super) fn extension_commands(&self) -> ExtensionCommands {
        let session = self.agent.session().id().clone();
        ExtensionCommands::new(&self.commands, session, self.agent.cwd().to_owned())
    }

    /// Shows how a run ended, and records it.
    fn report_run(&self, text: &str, report: RunReport, record: &mut ConversationRecord) {
        let ending = RunEnding::of(&report.end);
        record.note(ending.exit);
        let was_shown = self.terminal.take_error() && ending.is_shown_by_agent;
        if let Some(reason) = &ending.reason
            && matches!(self.format, Format::Text | Format::Answer)
            && !was_shown
        {
            output::note(format_args!(
                "The run ended: {}",
                escape_indented(reason, 4)
            ));
        }
        if self.format == Format::Answer && !report.response.is_empty() {
            let is_shown = std::io::stdout().is_terminal();
            let answer = report.response.trim_end_matches('\n');
            output::line(if is_shown {
                escape_untrusted(answer)
            } else {
                answer.to_owned()
            });
        }
        record.runs.push(prompt_run(text, ending, report));
    }

    pub(super) async fn compact(
        &mut self,
        instructions: Option<String>,
        record: &mut ConversationRecord,
    ) {
        let before = self.agent.context_tokens();
        self.terminal.wait_for("waiting for the summary");
        let cancel = self.interrupts.token();
        let compacted = self.agent.compact(instructions, &cancel).await;
        self.terminal.end_open_line();
        match compacted {
            _ if cancel.is_cancelled() => {
                record.note(Exit::Interrupted);
                output::note("Not compacted: it was interrupted");
            }
            Ok(_) => self
                .terminal
                .print_line(&format!("Compacted a conversation of {before} tokens.")),
            Err(error) => {
                let text = format!("Not compacted: {}", escape_indented(&error.to_string(), 4));
                output::note(&text);
                record.problem = Some(text);
            }
        }
    }
}
