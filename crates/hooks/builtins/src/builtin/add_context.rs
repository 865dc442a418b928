//! Gives the model text that is rendered from the event.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_engine::{Call, EventName, HandlerError};
use tenterhook_protocol::capability::Capability;
use tenterhook_protocol::{AnyEffect, EventKind};

use super::row::{Builtin, BuiltinConfig, EventRunner, context};
use tenterhook_runners::template::{MissingKey, Template, TemplateScope};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "add_context",
    events: EVENTS,
    arguments: "one or more templates",
    make: |setup| AddContext::new(setup).map(|run| Box::new(run) as Box<dyn EventRunner>),
};

/// Every event that accepts context. A test compares this list with the catalogue.
const EVENTS: &[EventKind] = &[
    EventKind::SessionStart,
    EventKind::PreCompact,
    EventKind::UserPromptSubmit,
    EventKind::UserSteeringSubmit,
    EventKind::UserFollowupSubmit,
    EventKind::TurnStart,
    EventKind::PreToolUse,
    EventKind::PostToolUse,
    EventKind::ToolBatchEnd,
    EventKind::WorktreeCreate,
    EventKind::PromptExpansion,
    EventKind::Custom,
];

/// The longest text of one template, in bytes. Context must stay bounded.
const TEXT_LIMIT: usize = 256 << 10;

struct AddContext {
    templates: Vec<Arc<Template>>,
}

impl AddContext {
    fn new(setup: &BuiltinConfig<'_>) -> Result<Self, String> {
        if setup.arguments.is_empty() {
            return Err("expected at least one template".to_owned());
        }
        let takes_context = |event: &&EventName| !event.info().honours(Capability::Context);
        if let Some(event) = setup.events.iter().find(takes_context) {
            return Err(format!("`{event}` accepts no context"));
        }
        let scope = TemplateScope::new(setup.dialect.clone(), setup.events);
        let templates = setup.arguments.iter().enumerate().map(|(index, text)| {
            let template = Template::parse(text, &scope, MissingKey::Failure, TEXT_LIMIT);
            template.map(Arc::new).map_err(|error| {
                let allowed = error.allowed.as_ref();
                let allowed = allowed.map(|allowed| format!("; available: {allowed}"));
                format!(
                    "cannot parse argument {index}: {error}{}",
                    allowed.unwrap_or_default()
                )
            })
        });
        let templates = templates.collect::<Result<_, _>>()?;
        Ok(Self { templates })
    }

    async fn render(&self, call: &Call) -> Result<AnyEffect, HandlerError> {
        let mut texts = Vec::new();
        for (index, template) in self.templates.iter().enumerate() {
            let text =
                template
                    .render_aside(&call.event)
                    .await
                    .map_err(|error| HandlerError::Other {
                        problem: format!("cannot render argument {index}: {error}"),
                    })?;
            if !text.trim().is_empty() {
                texts.push(text);
            }
        }
        Ok(if texts.is_empty() {
            AnyEffect::default()
        } else {
            context(texts.join("\n"))
        })
    }
}

impl EventRunner for AddContext {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(self.render(call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_that_takes_context_is_listed() {
        let taking: Vec<EventKind> = EventKind::ALL
            .iter()
            .copied()
            .filter(|kind| kind.info().honours(Capability::Context))
            .collect();
        assert_eq!(EVENTS, taking);
    }
}
