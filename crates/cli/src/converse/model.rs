//! The commands by which a user chooses the model that answers, and how much it thinks.

use tenterhook_agent::{SelectError, ThinkingLevel};

use super::{Conversation, Record};
use crate::exit::Exit;
use crate::safe::{inset, safe_line};

impl Conversation<'_> {
    /// Shows which model answers, and the names of those that are listed.
    pub(super) fn show_models(&self) {
        let now = safe_line(&self.agent.model().to_string());
        let names = self.agent.models().iter();
        let names: Vec<String> = names.map(|name| format!("`{}`", safe_line(name))).collect();
        self.terminal.line(&format!(
            "The model is {now}. There are {}.",
            names.join(", ")
        ));
    }

    /// Chooses the model of that name, or the next one.
    pub(super) async fn choose_model(&mut self, name: &str, record: &mut Record) {
        let chosen = match name {
            "next" => self.agent.next_model().await,
            name => self.agent.set_model(name).await,
        };
        self.terminal.settle();
        match chosen {
            Ok(is_other) => {
                let now = safe_line(&self.agent.model().to_string());
                let is = if is_other { "is now" } else { "is already" };
                self.terminal.line(&format!("The model {is} {now}."));
            }
            Err(error) => {
                let exit = match error {
                    SelectError::Unknown { .. } | SelectError::Only(_) => Exit::Usage,
                    SelectError::Open(_) | SelectError::Interrupted(_) | _ => Exit::Failed,
                };
                let text = inset(&error.to_string(), 4);
                self.fail(
                    record,
                    exit,
                    format!("Not chosen: {text}; `/model` shows the models"),
                );
            }
        }
    }

    /// Shows how much the model thinks, and which levels there are.
    pub(super) fn show_thinking(&self) {
        let now = self.agent.thinking();
        let now = now.map_or("what the service makes it", ThinkingLevel::as_str);
        let levels = ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ");
        self.terminal
            .line(&format!("The thinking level is {now}. There are {levels}."));
    }

    /// Chooses how much the model thinks.
    pub(super) async fn choose_thinking(&mut self, level: &str, record: &mut Record) {
        let level: ThinkingLevel = match level.parse() {
            Ok(level) => level,
            Err(error) => {
                let text = safe_line(&error.to_string());
                return self.fail(record, Exit::Usage, format!("Not chosen: {text}"));
            }
        };
        let is_other = self.agent.set_thinking(level).await;
        self.terminal.settle();
        let is = if is_other { "is now" } else { "is already" };
        self.terminal
            .line(&format!("The thinking level {is} {level}."));
    }
}
