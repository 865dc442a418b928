//! The methods that list commands and models, and that choose the model and how much it thinks.

use serde_json::{Value, json};
use tenterhook_agent::{SelectError, ThinkingLevel};

use tenterhook_jsonrpc::RpcError;

use super::super::slash_command::TABLE;
use super::super::state::Conversation;
use tenterhook_protocol::escape::escape_line;

/// Returns the error of a model that could not be selected.
fn not_chosen(error: &SelectError) -> RpcError {
    match error {
        SelectError::Unknown { .. } | SelectError::Only(_) => {
            RpcError::invalid_params(&error.to_string())
        }
        SelectError::Open(_) | SelectError::Interrupted(_) | _ => {
            RpcError::failed(&tenterhook_engine::error_chain(error))
        }
    }
}

impl Conversation<'_> {
    /// Returns every command with which a prompt may begin.
    pub(super) fn commands_for_program(&self) -> Value {
        let own = TABLE.iter().map(|row| {
            json!({"name": row.name, "forms": row.forms, "description": row.does, "source": "tenterhook"})
        });
        let brought = self.commands.iter().flat_map(|command| {
            command.names.iter().map(|name| {
                json!({
                    "name": name,
                    "forms": [""],
                    "description": escape_line(&command.description),
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
                "forms": [template.argument_hint.as_deref().map(escape_line).unwrap_or_default()],
                "description": escape_line(&template.description),
                "source": "template",
                "from": template.source.to_string(),
            })
        });
        let skills = resources.skills().iter().map(|skill| {
            json!({
                "name": format!("skill:{}", skill.name),
                "forms": [""],
                "description": escape_line(&skill.description),
                "source": "skill",
                "from": skill.source.to_string(),
            })
        });
        let all = own.chain(brought).chain(templates).chain(skills);
        json!({"commands": all.collect::<Vec<_>>()})
    }

    /// Returns the current model and the available models.
    pub(super) fn models_for_program(&self) -> Value {
        json!({"model": self.agent.model().to_string(), "models": self.agent.models()})
    }

    /// Switches to the named model, or to the next one in the list.
    pub(super) async fn select_model(&mut self, name: Option<&str>) -> Result<Value, RpcError> {
        let chosen = match name {
            Some(name) => self.agent.set_model(name).await,
            None => self.agent.next_model().await,
        };
        let is_other = chosen.map_err(|error| not_chosen(&error))?;
        Ok(json!({"model": self.agent.model().to_string(), "changed": is_other}))
    }

    /// Sets how much the model thinks.
    pub(super) async fn select_thinking(&mut self, level: &str) -> Result<Value, RpcError> {
        let level: ThinkingLevel = level
            .parse()
            .map_err(|error| RpcError::invalid_params(&format!("{error}")))?;
        let is_other = self.agent.set_thinking(level).await;
        Ok(json!({"thinking_level": level.as_str(), "changed": is_other}))
    }
}
