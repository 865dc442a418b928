//! What there is to choose from: commands, models, and how much a model thinks.

use serde_json::{Value, json};
use tenterhook_agent::{SelectError, ThinkingLevel};

use super::super::Conversation;
use super::super::command::TABLE;
use super::wire::Failure;
use crate::safe::safe_line;

/// Returns the error of a model that was not chosen.
fn not_chosen(error: &SelectError) -> Failure {
    match error {
        SelectError::Unknown { .. } | SelectError::Only(_) => {
            Failure::invalid_params(&error.to_string())
        }
        SelectError::Open(_) | SelectError::Interrupted(_) | _ => {
            Failure::failed(&tenterhook::error_chain(error))
        }
    }
}

impl Conversation<'_> {
    /// Returns every command that a prompt may begin with.
    pub(super) fn commands_for_program(&self) -> Value {
        let own = TABLE.iter().map(|row| {
            json!({"name": row.name, "forms": row.forms, "description": row.does, "source": "tenterhook"})
        });
        let brought = self.commands.iter().flat_map(|command| {
            command.names.iter().map(|name| {
                json!({
                    "name": name,
                    "forms": [""],
                    "description": safe_line(&command.description),
                    "source": "extension",
                })
            })
        });
        let resources = self.agent.resources();
        let templates = resources.templates().iter();
        let templates = templates.filter(|template| !self.has_command(&template.name));
        let templates = templates.map(|template| {
            json!({
                "name": template.name,
                "forms": [template.argument_hint.as_deref().map(safe_line).unwrap_or_default()],
                "description": safe_line(&template.description),
                "source": "template",
                "from": template.bringer.to_string(),
            })
        });
        let skills = resources.skills().iter().map(|skill| {
            json!({
                "name": format!("skill:{}", skill.name),
                "forms": [""],
                "description": safe_line(&skill.description),
                "source": "skill",
                "from": skill.bringer.to_string(),
            })
        });
        let all = own.chain(brought).chain(templates).chain(skills);
        json!({"commands": all.collect::<Vec<_>>()})
    }

    /// Returns the models that are listed, and the one that answers.
    pub(super) fn models_for_program(&self) -> Value {
        json!({"model": self.agent.model().to_string(), "models": self.agent.models()})
    }

    /// Chooses the model of that name, or the next one.
    pub(super) async fn select_model(&mut self, name: Option<&str>) -> Result<Value, Failure> {
        let chosen = match name {
            Some(name) => self.agent.set_model(name).await,
            None => self.agent.next_model().await,
        };
        let is_other = chosen.map_err(|error| not_chosen(&error))?;
        Ok(json!({"model": self.agent.model().to_string(), "changed": is_other}))
    }

    /// Chooses how much the model thinks.
    pub(super) async fn select_thinking(&mut self, level: &str) -> Result<Value, Failure> {
        let level: ThinkingLevel = level
            .parse()
            .map_err(|error| Failure::invalid_params(&format!("{error}")))?;
        let is_other = self.agent.set_thinking(level).await;
        Ok(json!({"thinking_level": level.as_str(), "changed": is_other}))
    }
}
