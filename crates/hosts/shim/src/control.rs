//! Requests of commands to the daemon, as JSON.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::client::{ClientError, ask};
use crate::descriptor::Patience;
use crate::frame::{DaemonAnswer, DaemonRequest};
use crate::launch::Launcher;
use crate::place::DaemonPlace;

/// Why a command got no answer.
#[derive(Debug)]
pub struct DaemonCallError(ClientError);

impl DaemonCallError {
    /// Returns whether the reason is that no daemon runs.
    pub fn is_not_running(&self) -> bool {
        matches!(self.0, ClientError::NotRunning)
    }
}

impl fmt::Display for DaemonCallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for DaemonCallError {}

/// Sends a request to the daemon that runs, and returns its answer. Blocks the thread.
///
/// # Errors
/// Fails if no daemon runs, or if it does not answer in time.
pub fn call(
    place: &DaemonPlace,
    json: Vec<u8>,
    wait: Duration,
) -> Result<Vec<u8>, DaemonCallError> {
    request(place, json, wait, None)
}

/// Does the same as [`call`], but starts the daemon if none runs. `directory` is the folder of a project,
/// whose programs are not trusted.
///
/// # Errors
/// Fails if the daemon cannot be started, or if it does not answer in time.
pub fn call_or_start(
    place: &DaemonPlace,
    json: Vec<u8>,
    wait: Duration,
    directory: &Path,
) -> Result<Vec<u8>, DaemonCallError> {
    request(place, json, wait, Some(Launcher::new(directory)))
}

fn request(
    place: &DaemonPlace,
    json: Vec<u8>,
    wait: Duration,
    launcher: Option<Launcher<'_>>,
) -> Result<Vec<u8>, DaemonCallError> {
    let message = DaemonRequest::Control(json).write();
    let mut patience = Patience::until(Instant::now() + wait);
    match ask(place, &message, launcher, &mut patience).map_err(DaemonCallError)? {
        DaemonAnswer::Control(json) => Ok(json),
        DaemonAnswer::Print(_) | DaemonAnswer::Retry => Err(DaemonCallError(ClientError::Ended)),
    }
}
