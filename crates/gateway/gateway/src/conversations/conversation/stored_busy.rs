//! What `/busy` has chosen for a session key. It outlives the conversation, which ends when it is idle.

use serde_json::json;
use tenterhook_channel::chat::SessionKey;
use tenterhook_channel::settings::BusyMode;
use tenterhook_channel::store::{DocumentKind, Store};

/// Returns the stored mode. If it cannot be read, the mode of the settings applies.
pub(super) async fn read(store: &Store, key: &SessionKey) -> Option<BusyMode> {
    let stored = store.document(DocumentKind::Busy, &key.0).await;
    serde_json::from_value(stored.ok()??).ok()
}

/// Stores a mode. If that fails, the mode counts until the conversation ends.
pub(super) async fn write(store: &Store, key: &SessionKey, mode: BusyMode) {
    let mode = Some(json!(mode));
    let _stored = store.set_document(DocumentKind::Busy, &key.0, mode).await;
}
