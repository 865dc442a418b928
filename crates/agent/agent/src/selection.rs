//! Selects the model and how much it thinks.
//!
//! A selection applies from the next turn on. Unless nothing changed, it is recorded as an entry of the session, so
//! that a resumed session keeps it, and sent as an event.

use std::sync::Arc;

use crate::sessions::entry_kind::{MODEL_CHANGE, THINKING_LEVEL_CHANGE};
use crate::sessions::{RecordedModel, RecordedSelection, thinking_level_change};
use serde_json::Value;
use tenterhook_protocol::event::{
    ModelSelect, ModelSelectSource, NotificationLevel, ThinkingLevelSelect,
};
use tenterhook_providers::ThinkingLevel;

use crate::agent_session::AgentSession;
use crate::hooks::Hooks;
use crate::models::{SelectError, SelectedModel};
use crate::state::AgentState;

/// Selects a model or thinking level, records it in the session and sends it to hooks.
pub(crate) struct SelectionChange<'a, R: FnMut(&'static str, Value)> {
    pub(crate) state: &'a AgentState,
    pub(crate) hooks: &'a Hooks,
    /// Stores a session entry with a kind and data.
    pub(crate) record: R,
}

impl<R: FnMut(&'static str, Value)> SelectionChange<'_, R> {
    /// Finds the model called `name`, or the next model in the list if `name` is `None`.
    async fn find_model(&self, name: Option<&str>) -> Result<SelectedModel, SelectError> {
        let models = &self.state.config.models;
        let now = self.state.selected();
        let name = match name {
            Some(name) => name.to_owned(),
            None => models.after(&now.name)?,
        };
        let provider = models.find(&name).await?;
        Ok(SelectedModel {
            name,
            provider,
            ..now
        })
    }

    /// Selects a model. Returns the id of the previous model, unless it is the same.
    fn select_model(&self, chosen: &SelectedModel) -> Option<String> {
        let mut now = self.state.lock_selected();
        let previous = now.id();
        now.name.clone_from(&chosen.name);
        now.provider = Arc::clone(&chosen.provider);
        (previous != chosen.id()).then_some(previous)
    }

    /// Selects the model called `name`, or the next model in the list if `name` is `None`. Returns whether the model
    /// changed.
    pub(crate) async fn model(
        &mut self,
        name: Option<&str>,
        source: ModelSelectSource,
    ) -> Result<bool, SelectError> {
        let chosen = self.find_model(name).await?;
        let Some(previous) = self.select_model(&chosen) else {
            return Ok(false);
        };
        if source != ModelSelectSource::Restore {
            (self.record)(MODEL_CHANGE, chosen.model_change());
        }
        let build = || {
            ModelSelect::new(chosen.id())
                .with_previous_model(previous)
                .with_source(source)
        };
        self.hooks.announce(build).await;
        Ok(true)
    }

    /// Selects a thinking level. Returns whether the level changed.
    pub(crate) async fn thinking(&mut self, level: ThinkingLevel, is_new: bool) -> bool {
        let previous = self.state.lock_selected().thinking.replace(level);
        if previous == Some(level) {
            return false;
        }
        if is_new {
            (self.record)(THINKING_LEVEL_CHANGE, thinking_level_change(level.as_str()));
        }
        let build = || {
            ThinkingLevelSelect::new(level.as_str().to_owned())
                .with_previous_level(previous.map(|level| level.as_str().to_owned()))
        };
        self.hooks.announce(build).await;
        true
    }
}

impl AgentSession {
    pub(crate) async fn select_model(
        &mut self,
        name: Option<&str>,
        source: ModelSelectSource,
    ) -> Result<bool, SelectError> {
        let session = &mut self.session;
        let mut change = SelectionChange {
            state: &self.state,
            hooks: &self.hooks,
            record: |kind, data| session.append_entry(kind, data),
        };
        change.model(name, source).await
    }

    pub(crate) async fn select_thinking(&mut self, level: ThinkingLevel, is_new: bool) -> bool {
        let session = &mut self.session;
        let mut change = SelectionChange {
            state: &self.state,
            hooks: &self.hooks,
            record: |kind, data| session.append_entry(kind, data),
        };
        change.thinking(level, is_new).await
    }

    /// Selects the model and the thinking level that the session records.
    pub(crate) async fn restore_selection(&mut self) {
        let recorded = RecordedSelection::of(self.session.entries());
        if let Some(RecordedModel { name, id }) = recorded.model
            && id != self.state.selected().id()
        {
            let restored = self
                .select_model(Some(&name), ModelSelectSource::Restore)
                .await;
            if let Err(error) = restored {
                let now = self.state.selected().id();
                let text = format!("the session continues with `{now}` instead of `{id}`: {error}");
                self.hooks
                    .notify(NotificationLevel::Warning, "model_not_restored", &text)
                    .await;
            }
        }
        let level = recorded.thinking_level.and_then(|level| level.parse().ok());
        if let Some(level) = level {
            self.select_thinking(level, false).await;
        }
    }

    /// Records the selection if the branch records another one. The selection may have been made in another session,
    /// or on another branch.
    pub(crate) fn record_selection(&mut self) {
        let recorded = RecordedSelection::of(self.session.entries());
        let selected = self.state.selected();
        let initial = &self.state.initial_model;
        let said = recorded
            .model
            .map_or_else(|| initial.id(), |model| model.id);
        if said != selected.id() {
            self.session
                .append_entry(MODEL_CHANGE, selected.model_change());
        }
        let said = recorded.thinking_level.and_then(|level| level.parse().ok());
        let said = said.or(initial.thinking);
        if let Some(level) = selected.thinking
            && said != Some(level)
        {
            let data = thinking_level_change(level.as_str());
            self.session.append_entry(THINKING_LEVEL_CHANGE, data);
        }
    }
}
