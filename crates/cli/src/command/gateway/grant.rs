//! Sends requests that give someone rights, with a proof that the user gives them.

use crate::ancestry::proof_of_user;
use serde_json::{Value, json};
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::error::CliError;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;

use crate::command::gateway::client::{Proven, administer, call, call_if_running, entries, text};

/// Sends a request that gives rights. `action` names what only the user may do. With `is_stored`, the request changes the
/// stored state if no gateway runs.
pub(super) async fn give_rights(
    (method, is_stored): (&str, bool),
    action: &str,
    params: Value,
    interrupts: &Interrupts,
) -> Result<Value, CliError> {
    let send = async |params: Value, proven: Proven| {
        if is_stored {
            administer(method, params, proven, interrupts).await
        } else {
            call(method, params, interrupts).await
        }
    };
    if let Some(passphrase) = proof_of_user(action)? {
        let params = with_proof(&params, &json!({ "passphrase": passphrase }));
        return send(params, Proven::ByPassphrase).await;
    }
    let wanted = json!({ "method": method, "params": params });
    let begun = call_if_running("grant.begin", wanted, interrupts).await?;
    let Some(begun) = begun.filter(|begun| begun.get("request").is_some()) else {
        return send(params, Proven::No).await;
    };
    let asked: Vec<String> = entries(&begun, "asked")
        .filter_map(Value::as_str)
        .map(escape_line)
        .collect();
    output::note(format_args!(
        "Choose the number {} in the question that you get as the owner, within 5 minutes. It is asked in {}.",
        text(&begun, "number"),
        asked.join(", ")
    ));
    let request = begun.get("request").cloned().unwrap_or_default();
    let params = with_proof(&params, &json!({ "request": request }));
    loop {
        let answer = call(method, params.clone(), interrupts).await?;
        if answer.get("waiting") != Some(&Value::Bool(true)) {
            return Ok(answer);
        }
    }
}

fn with_proof(params: &Value, proof: &Value) -> Value {
    let mut params = params.clone();
    if let Some(fields) = params.as_object_mut() {
        fields.insert("proof".to_owned(), proof.clone());
    }
    params
}
