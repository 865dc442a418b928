//! The file of approvals: its format, and how it is read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tenterhook_files::read_whole;

use crate::error::TrustError;
use crate::file_owner::{check_owner, current_user};
use crate::record::ApprovalRecord;

/// The version of the format that is written.
pub(crate) const VERSION: u32 = 3;
/// The oldest version that can be read. Its approvals lack the hook file, the root and the
/// identity of the repository. Approvals of versions 1 and 2 cover only the sources of an extension.
const OLDEST_VERSION: u32 = 1;
/// The content of the file of approvals.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Book {
    pub(crate) version: u32,
    pub(crate) user: u32,
    pub(crate) projects: BTreeMap<PathBuf, Vec<ApprovalRecord>>,
    /// The questions to which the user answered: leave it as it is.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) kept: BTreeSet<Kept>,
}

/// A project whose approvals do not apply in a folder, and the user chose to leave it so.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    /// The folder for which the approvals were given.
    pub(crate) project: PathBuf,
    /// The folder in which their gates deny.
    pub(crate) here: PathBuf,
}

/// Reads the file of approvals in a folder. A missing file means that there are no approvals.
pub(crate) fn read_book(dir: &Path) -> Result<Book, TrustError> {
    let path = dir.join("trust.json");
    let empty = || Book {
        version: VERSION,
        user: current_user(),
        ..Book::default()
    };
    if !dir.exists() || fs::symlink_metadata(&path).is_err() {
        return Ok(empty());
    }
    check_owner(dir)?;
    check_owner(&path)?;
    let (bytes, _) = read_whole(&path).map_err(|source| TrustError::file(&path, source))?;
    let invalid = |problem: String| TrustError::Invalid {
        path: path.clone(),
        problem,
    };
    let book: Book = serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
    if !(OLDEST_VERSION..=VERSION).contains(&book.version) {
        return Err(invalid(format!(
            "version {}, expected {OLDEST_VERSION} to {VERSION}",
            book.version
        )));
    }
    if book.user != current_user() {
        return Err(invalid(format!(
            "they belong to user {}, expected user {}",
            book.user,
            current_user()
        )));
    }
    Ok(book)
}
