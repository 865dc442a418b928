//! The stored form of an approval.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tenterhook_engine::EventName;

use crate::item_file::ItemFile;
use crate::named_path::NamedPath;
use crate::repository_identity::RepositoryIdentity;

/// One approval, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRecord {
    /// The file with the definition.
    pub source: PathBuf,
    /// The name of the hook in that file.
    pub name: String,
    /// The digest of the whole item.
    pub digest: String,
    /// The definition as people read it.
    pub definition: String,
    /// The files that the hook runs.
    pub files: Vec<ApprovedFile>,
    /// The SHA-256 of the list of the other files of an extension, which the store keeps. `None` if there
    /// are no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covered: Option<String>,
    /// The events of the hook. Empty for an executable that had not yet reported its events.
    #[serde(default)]
    pub events: Vec<EventName>,
    /// The time of the approval.
    pub approved_at: Timestamp,
    /// The root of the project's repository. `None` in approvals of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
    /// The SHA-256 of the hook file with the definition. The store keeps a copy of that file.
    /// `None` for executables and scripts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_file: Option<String>,
    /// The words of the hook that name files. The paths of the copies replace them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<NamedPath>,
    /// The repository of the project at the time of the approval.
    #[serde(default)]
    pub repository: RepositoryIdentity,
    /// Whether the other hooks of its hook file are in an order that was not approved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_out_of_order: bool,
}

/// A file whose bytes were approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovedFile {
    /// The path by which the hook names it.
    pub path: PathBuf,
    /// The file that this path led to.
    pub target: PathBuf,
    /// The SHA-256 of the bytes, in hexadecimal digits.
    pub sha256: String,
    /// Whether it may be executed.
    pub is_executable: bool,
}

impl From<&ItemFile> for ApprovedFile {
    fn from(file: &ItemFile) -> Self {
        Self {
            path: file.path.clone(),
            target: file.target.clone(),
            sha256: file.sha256.clone(),
            is_executable: file.is_executable,
        }
    }
}
