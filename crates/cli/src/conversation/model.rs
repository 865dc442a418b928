//! The commands that choose the model and how much it thinks.

use tenterhook_agent::{SelectError, ThinkingLevel};

use super::record::ConversationRecord;
use super::state::Conversation;
use tenterhook_protocol::escape::{escape_indented, escape_line};
use tenterhook_setup::exit::Exit;

impl Conversation<'_> {
    /// Shows the current model and the names of the available models.
    pub(super) fn show_models(&self) {
        let now = escape_line(&self.agent.model().to_string());
        let names = self.agent.models().iter();
        let names: Vec<String> = names
            .map(|name| format!("`{}`", escape_line(name)))
            .collect();
        self.terminal.print_line(&format!(
            "The model is {now}. Available: {}.",
            names.join(", ")
        ));
    }

    /// Switches to the named model, or to the next one in the list.
    pub(super) async fn choose_model(&mut self, name: &str, record: &mut ConversationRecord) {
        let chosen = match name {
            "next" => self.agent.next_model().await,
            name => self.agent.set_model(name).await,
        };
        self.terminal.end_open_line();
        match chosen {
            Ok(is_other) => {
                let now = escape_line(&self.agent.model().to_string());
                let is = if is_other { "is now" } else { "is already" };
                self.terminal.print_line(&format!("The model {is} {now}."));
            }
            Err(error) => {
                let exit = match error {
                    SelectError::Unknown { .. } | SelectError::Only(_) => Exit::Usage,
                    SelectError::Open(_) | SelectError::Interrupted(_) | _ => Exit::Failed,
                };
                let text = escape_indented(&error.to_string(), 4);
                self.report_failure(
                    record,
                    exit,
                    format!("The model was not changed: {text}; `/model` shows the models"),
                );
            }
        }
    }

    /// Shows how much the model thinks, and the available levels.
    pub(super) fn show_thinking(&self) {
        let now = self.agent.thinking();
        let now = now.map_or("the model service's default", ThinkingLevel::as_str);
        let levels = ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ");
        self.terminal.print_line(&format!(
            "The thinking level is {now}. Available: {levels}."
        ));
    }

    /// Sets how much the model thinks.
    pub(super) async fn choose_thinking(&mut self, level: &str, record: &mut ConversationRecord) {
        let level: ThinkingLevel = match level.parse() {
            Ok(level) => level,
            Err(error) => {
                let text = escape_line(&error.to_string());
                let text = format!("The thinking level was not changed: {text}");
                return self.report_failure(record, Exit::Usage, text);
            }
        };
        let is_other = self.agent.set_thinking(level).await;
        self.terminal.end_open_line();
        let is = if is_other { "is now" } else { "is already" };
        self.terminal
            .print_line(&format!("The thinking level {is} {level}."));
    }
}
