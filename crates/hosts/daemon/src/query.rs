//! The requests that commands send to the daemon.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tenterhook_shim::control;
use tenterhook_shim::place::DaemonPlace;

use crate::requests::{ControlRequest, DaemonStatus, ReloadedProject};

/// How long to wait for an answer that needs no work.
const SHORT: Duration = Duration::from_secs(5);
/// How long to wait until all hooks are loaded again.
const LONG: Duration = Duration::from_mins(2);

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
/// Fails with a sentence for the user if the daemon does not answer.
pub fn query(place: &DaemonPlace) -> Result<Option<DaemonStatus>, String> {
    call(place, ControlRequest::Status, SHORT)
}

/// Replaces the hooks of all sessions by the current versions of their files. Returns `None` if no daemon
/// runs. Blocks the thread.
///
/// # Errors
/// Fails with a sentence for the user if the daemon refuses or does not answer.
pub fn reload(place: &DaemonPlace) -> Result<Option<Vec<ReloadedProject>>, String> {
    call(place, ControlRequest::Reload, LONG)
}

/// Ends the daemon after the events that are being handled. Returns whether one runs. Blocks the thread.
///
/// # Errors
/// Fails with a sentence for the user if the daemon refuses or does not answer.
pub fn stop(place: &DaemonPlace) -> Result<bool, String> {
    let stopped: Option<()> = call(place, ControlRequest::Stop, SHORT)?;
    Ok(stopped.is_some())
}

/// Starts the daemon if none runs, and returns what it does. `directory` is the folder of a project, whose
/// programs are not used. Blocks the thread.
///
/// # Errors
/// Fails with a sentence for the user if the daemon cannot be started.
pub fn start(place: &DaemonPlace, directory: &Path) -> Result<DaemonStatus, String> {
    let json = request(ControlRequest::Status)?;
    let answer = control::call_or_start(place, json, LONG, directory);
    read(&answer.map_err(|error| error.to_string())?)
}

fn call<T: DeserializeOwned>(
    place: &DaemonPlace,
    what: ControlRequest,
    wait: Duration,
) -> Result<Option<T>, String> {
    match control::call(place, request(what)?, wait) {
        Ok(answer) => read(&answer).map(Some),
        Err(error) if error.is_not_running() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn request(what: ControlRequest) -> Result<Vec<u8>, String> {
    serde_json::to_vec(&what).map_err(|error| error.to_string())
}

fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, String> {
    match serde_json::from_slice(answer) {
        Ok(Reply::Result(value)) => Ok(value),
        Ok(Reply::Error(text)) => Err(text),
        Err(error) => Err(format!("the daemon's answer cannot be read: {error}")),
    }
}
