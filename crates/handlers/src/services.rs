//! What handlers need of the program that they run in.

use std::path::PathBuf;

/// What handlers need of the program that they run in. One value serves every hook of a load.
#[derive(Debug, Clone, Default)]
pub struct Services {
    /// The folder for what has to outlive a session, such as snapshots. Handlers that need one and have none
    /// refuse to be made.
    pub data_dir: Option<PathBuf>,
}
