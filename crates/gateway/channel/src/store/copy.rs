//! A copy of everything that is stored, while the store is used.

use std::path::Path;

use redb::{Key, ReadTransaction, ReadableTable as _, TableDefinition, Value, WriteTransaction};

use super::file::StoreFile;
use super::record::StoreError;
use super::tables::{
    CHATS, DOCUMENTS, FRAMES, Failure, INBOX, Limits, META, OUTBOX, SEEN, SEEN_BY_AGE, SESSIONS,
};

/// Writes what a snapshot has into a new store in a folder.
pub(super) fn copy_into(
    folder: &Path,
    limits: Limits,
    snapshot: &ReadTransaction,
) -> Result<(), StoreError> {
    let copy = StoreFile::open(folder, limits)?;
    let transaction = copy.begin_write().map_err(Failure::Storage)?;
    let tables = [
        copy_table(snapshot, &transaction, INBOX),
        copy_table(snapshot, &transaction, SEEN),
        copy_table(snapshot, &transaction, SEEN_BY_AGE),
        copy_table(snapshot, &transaction, FRAMES),
        copy_table(snapshot, &transaction, OUTBOX),
        copy_table(snapshot, &transaction, CHATS),
        copy_table(snapshot, &transaction, SESSIONS),
        copy_table(snapshot, &transaction, DOCUMENTS),
        copy_table(snapshot, &transaction, META),
    ];
    for copied in tables {
        copied?;
    }
    transaction
        .commit()
        .map_err(|error| Failure::Storage(error.into()))?;
    Ok(())
}

fn copy_table<K: Key + 'static, V: Value + 'static>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    table: TableDefinition<'_, K, V>,
) -> Result<(), Failure> {
    let source = from.open_table(table)?;
    let mut target = to.open_table(table)?;
    for entry in source.iter()? {
        let (key, value) = entry?;
        target.insert(key.value(), value.value())?;
    }
    Ok(())
}
