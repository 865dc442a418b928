//! The services that handlers need from the program that runs them.

use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "model")]
use crate::model::ModelClient;
use crate::recipe::ContextSwapper;
#[cfg(all(unix, feature = "workers"))]
use crate::worker::Host;

/// The services that handlers need from the program that runs them. All hooks that are loaded
/// together share one value.
#[derive(Debug, Clone, Default)]
pub struct Services {
    /// The folder for data that outlives a session, such as snapshots. Without it, handlers that
    /// need such a folder cannot be made.
    pub data_dir: Option<PathBuf>,
    /// The client that asks models. Without it, model hooks can be made, but every call of them fails.
    #[cfg(feature = "model")]
    pub model: Option<Arc<dyn ModelClient>>,
    /// Replaces a conversation with a summary. Without it, handlers that try to do so fail.
    pub context: Option<Arc<dyn ContextSwapper>>,
    /// Answers the requests of scripts. Without it, scripts have no session.
    #[cfg(all(unix, feature = "workers"))]
    pub scripts: Option<Arc<dyn Host>>,
}
