//! Runs prompts and compaction, and reports how they ended.

use std::io::IsTerminal as _;

use tenterhook_agent::Prompt;
use tenterhook_engine::message_extra;

use super::format::Format;
use super::record::{ConversationRecord, RunEnding, prompt_run};
use super::state::Conversation;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::warning::warn;
use tenterhook_terminal::output;
use tenterhook_terminal::output::escape::{escape_indented, escape_untrusted};
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

    /// Runs a prompt. An interrupt cancels the run and everything that it started.
    pub(super) async fn run_prompt(
        &mut self,
        prompt: impl Into<Prompt>,
        record: &mut ConversationRecord,
    ) {
        let prompt = prompt.into();
        let text = prompt.text.clone();
        self.terminal.take_error();
        self.terminal.wait_for("waiting for the model");
        let cancel = self.interrupts.token();
        let report = self.agent.prompt(prompt, &cancel).await;
        self.terminal.end_open_line();
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
        record.runs.push(prompt_run(&text, ending, report));
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
