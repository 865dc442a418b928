//! What handlers need of the program that they run in.

use std::path::PathBuf;
use std::sync::Arc;

use crate::model::ModelClient;
use crate::recipe::ContextSwapper;
#[cfg(unix)]
use crate::worker::Host;

/// What handlers need of the program that they run in. One value serves every hook of a load.
#[derive(Debug, Clone, Default)]
pub struct Services {
    /// The folder for what has to outlive a session, such as snapshots. Handlers that need one and have none
    /// refuse to be made.
    pub data_dir: Option<PathBuf>,
    /// What asks models. Without it, model hooks can be made, and fail when they are called.
    pub model: Option<Arc<dyn ModelClient>>,
    /// What puts a summary in the place of a conversation. Without it, handlers that want to fail when they are called.
    pub context: Option<Arc<dyn ContextSwapper>>,
    /// What scripts may ask. Without it there is no session for them.
    #[cfg(unix)]
    pub scripts: Option<Arc<dyn Host>>,
}
