//! Files and folders, handled with the same care everywhere.
//!
//! | you want to | use |
//! |---|---|
//! | replace a file, so that no one ever finds half of it | [`replace_file`], [`write_private`], [`UnfinishedFile`] |
//! | keep a folder or a file from other users | [`make_private`], [`close_to_others`], [`claim_private`], [`private_options`] |
//! | be the only process that does something | [`FileLock`] |
//! | know whether content changed | [`hex_digest`], [`HashingReader`] |
//! | read a file that others can replace | [`read_whole`], [`open_itself`] |
//! | list a folder, or search the folders below it | [`entries`], [`readable_entries`], [`FolderWalk`] |
//!
//! This crate decides nothing: what a file contains and who may write it is the business of its callers.
//!
//! ```
//! use std::time::Duration;
//!
//! use tenterhook_files::{FileLock, lock_file, write_private};
//!
//! # let home = tempfile::tempdir()?;
//! # let folder = home.path().join("state");
//! let path = folder.join("settings.json");
//! write_private(&path, b"{}", 0o600)?;
//! let lock = FileLock::wait(lock_file(&folder.join("lock"))?, Duration::from_secs(5))?;
//! let _lock = lock.ok_or("another process changes the settings")?;
//! write_private(&path, b"{\"strict\":true}", 0o600)?;
//! assert_eq!(std::fs::read(&path)?, b"{\"strict\":true}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod content_hash;
mod lock;
mod private;
mod regular_file;
mod unfinished_file;
mod walk;

pub use content_hash::{HashingReader, hex, hex_digest};
pub use lock::{FileLock, is_locked, lock_file};
pub use private::{claim_private, close_to_others, make_private, private_options};
pub use regular_file::{may_execute, open_itself, read_whole};
pub use unfinished_file::{
    Durability, UnfinishedFile, is_unfinished, replace_file, sync_folder, write_private,
};
pub use walk::{FolderWalk, WalkError, entries, readable_entries};
