//! Sends requests to the gateway that runs.

use std::path::PathBuf;

use serde_json::Value;
use tenterhook_gateway::administration::administer_stored;
use tenterhook_gateway::control::{self, CONTROL_SOCKET, ControlError};
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::data_dir::data_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::interrupt::Interrupts;

/// The folder of the gateway's state in the data folder.
const FOLDER: &str = "gateway";

/// Returns the folder for everything that survives a restart of the gateway.
pub(super) fn state_folder() -> Result<PathBuf, CliError> {
    let data = data_dir().ok_or_else(|| {
        CliError::new(Exit::Failed, "cannot find a home folder for the gateway")
            .hint("set `TENTERHOOK_DATA_DIR` to a folder")
    })?;
    Ok(data.join(FOLDER))
}

/// Sends a request to the gateway that runs.
pub(super) async fn call(
    method: &str,
    params: Value,
    interrupts: &Interrupts,
) -> Result<Value, CliError> {
    requested(method, params, interrupts)
        .await?
        .map_err(|error| described(&error))
}

/// Sends a request to the gateway that runs. Returns `None` if none does.
pub(super) async fn call_if_running(
    method: &str,
    params: Value,
    interrupts: &Interrupts,
) -> Result<Option<Value>, CliError> {
    match requested(method, params, interrupts).await? {
        Ok(value) => Ok(Some(value)),
        Err(ControlError::NotRunning) => Ok(None),
        Err(error) => Err(described(&error)),
    }
}

/// Whether it is proven that the user gives a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proven {
    /// The passphrase was right.
    ByPassphrase,
    /// It is not.
    No,
}

/// Sends a request about tokens or admissions. Without a gateway that runs, changes its stored state.
pub(super) async fn administer(
    method: &str,
    params: Value,
    proven: Proven,
    interrupts: &Interrupts,
) -> Result<Value, CliError> {
    if let Some(value) = call_if_running(method, params.clone(), interrupts).await? {
        return Ok(value);
    }
    let mut params = params;
    if let Some(fields) = params.as_object_mut() {
        fields.remove("proof");
    }
    let method = (method, proven == Proven::ByPassphrase);
    administer_stored(&state_folder()?, method, &params)
        .await
        .map_err(|text| CliError::new(Exit::Failed, text))
}

async fn requested(
    method: &str,
    params: Value,
    interrupts: &Interrupts,
) -> Result<Result<Value, ControlError>, CliError> {
    let socket = state_folder()?.join(CONTROL_SOCKET);
    let token = interrupts.token();
    let answered = token.run_until_cancelled(control::call(&socket, method, params));
    answered
        .await
        .ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))
}

fn described(error: &ControlError) -> CliError {
    let shown = CliError::of(Exit::Failed, error);
    match error {
        ControlError::NotRunning => shown.hint("start a gateway with `tenterhook gateway run`"),
        ControlError::NoAnswer => shown.hint("see what it does in its own terminal or log"),
        ControlError::ForeignPeer { .. } => {
            shown.hint("set `TENTERHOOK_DATA_DIR` to a folder that only you can write to")
        }
        ControlError::Refused(_) | ControlError::Io { .. } | ControlError::Malformed(_) | _ => {
            shown
        }
    }
}

/// Returns the entries of a list in an answer.
pub(super) fn entries<'a>(answer: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    answer
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Returns a text in an answer, safe to print, or an empty text if the answer has none.
pub(super) fn text(value: &Value, name: &str) -> String {
    let text = value.get(name).and_then(Value::as_str);
    text.map(escape_line).unwrap_or_default()
}
