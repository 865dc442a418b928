//! The requests that commands send to the daemon.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tenterhook_shim::control::{self, DaemonCallError};
use tenterhook_shim::place::DaemonPlace;
use thiserror::Error;

use crate::requests::{ControlRequest, DaemonStatus, ReloadedProject};

/// How long to wait for an answer that needs no work.
const SHORT: Duration = Duration::from_secs(5);
/// How long to wait until all hooks are loaded again.
const LONG: Duration = Duration::from_mins(2);

/// Why a request to the daemon failed. The text is a sentence for the user.
#[derive(Debug, Error)]
pub enum QueryError {
    /// The daemon did not answer.
    #[error(transparent)]
    NoAnswer(#[from] DaemonCallError),
    /// The daemon did not do it.
    #[error("{0}")]
    Refused(String),
    /// The request cannot be written, or the answer cannot be read.
    #[error("the daemon's answer cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

/// The answer of a daemon.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply<T> {
    Result(T),
    Error(String),
}

/// Returns what the daemon of a place does, or `None` if none runs. Blocks the thread.
///
/// # Errors
/// Fails if the daemon does not answer.
pub fn query(place: &DaemonPlace) -> Result<Option<DaemonStatus>, QueryError> {
    call(place, ControlRequest::Status, SHORT)
}

/// Replaces the hooks of all sessions by the current versions of their files. Returns `None` if no daemon
/// runs. Blocks the thread.
///
/// # Errors
/// Fails if the daemon refuses or does not answer.
pub fn reload(place: &DaemonPlace) -> Result<Option<Vec<ReloadedProject>>, QueryError> {
    call(place, ControlRequest::Reload, LONG)
}

/// Ends the daemon after the events that are being handled. Returns whether one runs. Blocks the thread.
///
/// # Errors
/// Fails if the daemon refuses or does not answer.
pub fn stop(place: &DaemonPlace) -> Result<bool, QueryError> {
    let stopped: Option<()> = call(place, ControlRequest::Stop, SHORT)?;
    Ok(stopped.is_some())
}

/// Starts the daemon if none runs, and returns what it does. `directory` is the folder of a project, whose
/// programs are not used. Blocks the thread.
///
/// # Errors
/// Fails if the daemon cannot be started.
pub fn start(place: &DaemonPlace, directory: &Path) -> Result<DaemonStatus, QueryError> {
    let json = serde_json::to_vec(&ControlRequest::Status)?;
    read(&control::call_or_start(place, json, LONG, directory)?)
}

fn call<T: DeserializeOwned>(
    place: &DaemonPlace,
    what: ControlRequest,
    wait: Duration,
) -> Result<Option<T>, QueryError> {
    match control::call(place, serde_json::to_vec(&what)?, wait) {
        Ok(answer) => read(&answer).map(Some),
        Err(error) if error.is_not_running() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, QueryError> {
    match serde_json::from_slice(answer)? {
        Reply::Result(value) => Ok(value),
        Reply::Error(text) => Err(QueryError::Refused(text)),
    }
}
