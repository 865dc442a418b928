//! Which repository an approval is bound to.

use serde::{Deserialize, Serialize};

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
