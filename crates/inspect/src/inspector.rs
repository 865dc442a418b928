//! What one page shows.

use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook_builtins::secret::Redactor;

use crate::hook_details::HookDetails;
use crate::inspected_gateway::InspectedGateway;
use crate::record_log::RecordLog;

/// Where the records of a page come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InspectedSource {
    /// A gateway that runs.
    Gateway,
    /// A call of `tenterhook run`.
    Run,
    /// Files, by their names.
    Files(Vec<String>),
}

impl InspectedSource {
    /// Returns whether records may still arrive.
    pub(crate) fn is_live(&self) -> bool {
        !matches!(self, Self::Files(_))
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Run => "run",
            Self::Files(_) => "files",
        }
    }
}

/// What one page shows.
#[derive(Debug)]
pub struct Inspector {
    source: InspectedSource,
    log: Arc<RecordLog>,
    hooks: Option<Value>,
    details: Option<Arc<HookDetails>>,
    gateway: Option<Arc<dyn InspectedGateway>>,
}

impl Inspector {
    /// Creates an inspector of records.
    pub fn new(source: InspectedSource, log: Arc<RecordLog>) -> Self {
        Self {
            source,
            log,
            hooks: None,
            details: None,
            gateway: None,
        }
    }

    /// Adds the hooks in force, as `tenterhook list --json` prints them, without their secrets: a hook's command line
    /// may contain one.
    #[must_use]
    pub fn with_hooks(self, mut hooks: Value) -> Self {
        Redactor::shared().redact_value(&mut hooks);
        Self {
            hooks: Some(hooks),
            ..self
        }
    }

    /// Adds payloads and raw answers.
    #[must_use]
    pub fn with_details(self, details: Arc<HookDetails>) -> Self {
        Self {
            details: Some(details),
            ..self
        }
    }

    /// Adds the gateway whose state the page shows.
    #[must_use]
    pub fn with_gateway(self, gateway: Arc<dyn InspectedGateway>) -> Self {
        Self {
            gateway: Some(gateway),
            ..self
        }
    }

    /// Returns the records.
    pub fn log(&self) -> &Arc<RecordLog> {
        &self.log
    }

    pub(crate) fn source(&self) -> &InspectedSource {
        &self.source
    }

    pub(crate) fn hooks(&self) -> Option<&Value> {
        self.hooks.as_ref()
    }

    pub(crate) fn details(&self) -> Option<&HookDetails> {
        self.details.as_deref()
    }

    pub(crate) fn gateway(&self) -> Option<&Arc<dyn InspectedGateway>> {
        self.gateway.as_ref()
    }

    /// Describes the source for the page.
    pub(crate) fn describe(&self) -> Value {
        let counts = self.log.counts();
        let files = match &self.source {
            InspectedSource::Files(names) => names.as_slice(),
            InspectedSource::Gateway | InspectedSource::Run => &[],
        };
        json!({
            "live": self.source.is_live(),
            "kind": self.source.word(),
            "files": files,
            "payloads": self.details.is_some(),
            "payloads_lost": self.details().map_or(0, HookDetails::lost),
            "version": env!("CARGO_PKG_VERSION"),
            "kept": {"records": counts.kept, "limit": counts.limit, "dropped": counts.dropped},
            "unreadable": counts.unreadable,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record_log::LogLimits;

    #[test]
    fn a_token_in_the_command_line_of_a_hook_is_not_shown() {
        let token = format!("ghp_{}", "1x9QzP3vW7kB5nR2mT8yL4cF6dH0sJgA1x9Q");
        let log = Arc::new(RecordLog::new(LogLimits::LIVE, 1));
        let handler = format!("command curl -H 'authorization: Bearer {token}' localhost");
        let hooks = json!({ "hooks": [{ "name": "guard", "handler": handler }] });
        let inspector = Inspector::new(InspectedSource::Run, log).with_hooks(hooks);
        let shown = inspector.hooks().unwrap().to_string();
        assert!(shown.contains("guard") && shown.contains("curl"), "{shown}");
        assert!(!shown.contains("1x9Q"), "{shown}");
    }
}
