//! What one page shows.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::hook_details::HookDetails;
use crate::hook_list::HookList;
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
    hooks: Arc<HookList>,
    details: Option<Arc<HookDetails>>,
    gateway: Option<Arc<dyn InspectedGateway>>,
}

impl Inspector {
    /// Creates an inspector of records.
    pub fn new(source: InspectedSource, log: Arc<RecordLog>) -> Self {
        Self {
            source,
            log,
            hooks: Arc::default(),
            details: None,
            gateway: None,
        }
    }

    /// Adds the list of the hooks in force.
    #[must_use]
    pub fn with_hooks(self, hooks: Arc<HookList>) -> Self {
        Self { hooks, ..self }
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

    pub(crate) fn hooks(&self) -> &Arc<HookList> {
        &self.hooks
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
