//! Puts back what the files of sessions lack after a loss of power.

use futures_util::future::join_all;
use tenterhook_agent::SessionTail;
use tenterhook_channel::store::{DocumentKind, Store};
use tenterhook_protocol::error_chain;

/// Restores the files from the tails in the store, before agents open them. Returns what cannot be restored.
pub async fn restore_session_tails(store: &Store) -> Vec<String> {
    let tails = match store.documents(DocumentKind::SessionTail).await {
        Ok(tails) => tails,
        Err(error) => return vec![format!("cannot read the ends of sessions: {error}")],
    };
    let restoring = tokio::task::spawn_blocking(move || {
        let mut problems = Vec::new();
        let mut restored = Vec::new();
        for (key, value) in tails {
            let tail = serde_json::from_value::<SessionTail>(value);
            let tail = tail.map_err(|error| error.to_string());
            let done = tail.and_then(|tail| tail.restore().map_err(|error| error_chain(&error)));
            match done {
                Ok(()) => restored.push(key),
                Err(cause) => problems.push(format!(
                    "cannot restore the end of the session of `{key}`: {cause}"
                )),
            }
        }
        (restored, problems)
    });
    let (restored, mut problems) = match restoring.await {
        Ok(done) => done,
        Err(error) => return vec![format!("restoring the ends of sessions crashed: {error}")],
    };
    let kind = DocumentKind::SessionTail;
    let removing = restored
        .iter()
        .map(|key| store.set_document(kind, key, None));
    let removed = join_all(removing).await;
    problems.extend(
        removed
            .into_iter()
            .filter_map(Result::err)
            .map(|error| error.to_string()),
    );
    problems
}
