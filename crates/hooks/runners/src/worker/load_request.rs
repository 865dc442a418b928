//! The request to load a script.

use serde::Serialize;
use serde_json::json;

use super::connection::Connection;
use super::error::WorkerError;
use super::host::Host;
use super::script::{Registered, Script};
use super::supervisor::ask;

/// The source of a script that the host has read in advance.
#[derive(Debug, Serialize)]
pub(super) struct ReadSource {
    /// The source without types.
    pub(super) code: String,
    /// The state of the file before it was read. A worker must not use the source of another state.
    pub(super) version: String,
}

/// Asks a worker to load a script under a number. Returns what the script registers.
pub(super) async fn request_load(
    connection: &Connection,
    number: usize,
    script: &Script,
    source: Option<&ReadSource>,
    host: &dyn Host,
) -> Result<Registered, WorkerError> {
    let params = json!({
        "script": number,
        "path": script.path.to_string_lossy(),
        "api": script.api,
        "flags": host.flags(),
        "approved": script.approved,
        "source": source,
    });
    let call = |message: String| WorkerError::Call { message };
    let answer = ask(connection, "script/load", &params)
        .await
        .map_err(call)?;
    serde_json::from_slice(&answer)
        .map_err(|error| call(format!("invalid answer to `script/load`: {error}")))
}
