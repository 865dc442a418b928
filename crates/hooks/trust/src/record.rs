//! The stored form of an approval.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tenterhook_engine::EventName;

use crate::copy_map::NamedPath;
use crate::covered_file::CoveredFile;

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
    pub files: Vec<CoveredFile>,
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

/// The repository that an approval is bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepositoryIdentity {
    /// The approval was given before repositories were recorded. It is bound to its folder only.
    #[default]
    Unrecorded,
    /// The project was not in a repository.
    None,
    /// The project was in a repository without a commit. The approval is bound to its folder only, so that
    /// the first commit of a new project does not end it.
    NoCommit,
    /// The first commit of the repository: the commit where the chain of first parents of `HEAD` ends.
    FirstCommit(String),
}

impl RepositoryIdentity {
    /// Returns the first commit.
    pub fn first_commit(&self) -> Option<&str> {
        match self {
            Self::FirstCommit(commit) => Some(commit),
            Self::Unrecorded | Self::None | Self::NoCommit => None,
        }
    }

    /// Returns whether an approval applies only while the project is in the same repository, or in none.
    pub(crate) fn binds_to_repository(&self) -> bool {
        match self {
            Self::None | Self::FirstCommit(_) => true,
            Self::Unrecorded | Self::NoCommit => false,
        }
    }
}
