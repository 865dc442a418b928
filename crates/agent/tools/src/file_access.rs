//! Helpers that every file tool uses first: they leave the async runtime, and check a path before opening it.

use std::fs::{self, Metadata};
use std::path::Path;

use crate::failure::ToolFailure;

/// Runs file work on a thread that may block.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolFailure> + Send + 'static,
) -> Result<T, ToolFailure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(ToolFailure::new(format!(
            "the tool stopped unexpectedly: {error}"
        ))),
    }
}

/// Returns the metadata of a regular file, or an error for anything else. Call it before opening the path: opening a
/// pipe waits for its other end, and reading a device may never end.
pub(crate) fn regular_file(action: &str, path: &Path) -> Result<Metadata, ToolFailure> {
    let metadata = fs::metadata(path).map_err(|error| ToolFailure::io(action, path, &error))?;
    if metadata.is_file() {
        Ok(metadata)
    } else {
        Err(ToolFailure::no_file(action, path))
    }
}
