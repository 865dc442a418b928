//! The numbers of entries, and which entries are part of the tree.

use tenterhook_protocol::EntryId;
use tenterhook_protocol::event::SessionEntry;
use thiserror::Error;

use crate::sessions::entry_kind::{LABEL, LEAF, NAME};

/// The error for an id that no entry of the session has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the session has no entry `{0}`")]
pub struct UnknownEntry(pub EntryId);

/// The reasons why an entry cannot be the next one of a session.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum MisplacedEntry {
    #[error("has the id `{found}`, expected a number above {last}")]
    Id { found: EntryId, last: u64 },
    #[error("names {found} as its parent, expected {expected}, the leaf")]
    Parent { found: String, expected: String },
    #[error("refers to {0}, which is not an earlier entry")]
    Target(String),
}

/// Returns the number in an entry's id.
pub(crate) fn number(id: &EntryId) -> Option<u64> {
    id.as_str().parse().ok()
}

/// Returns whether an entry is part of the tree. All others are records next to it.
pub(crate) fn is_node(entry: &SessionEntry) -> bool {
    ![LEAF, LABEL, NAME].contains(&entry.kind.as_str())
}

/// Formats an optional id for an error message.
pub(crate) fn named(id: Option<&EntryId>) -> String {
    id.map_or_else(|| "none".to_owned(), |id| format!("`{id}`"))
}

/// Returns the entry that a leaf or label record refers to.
pub(crate) fn target_of(entry: &SessionEntry) -> Option<EntryId> {
    Some(entry.data.as_ref()?.get("entry")?.as_str()?.into())
}
