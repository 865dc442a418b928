//! Project hooks run only after the user approved them, and an approved hook stays in force.
//!
//! | state | meaning | what runs |
//! |---|---|---|
//! | trusted | approved as it is now | the approved copy of its files |
//! | untrusted | never approved in this project | nothing |
//! | changed | approved, and different now | the version that was approved, from its copies |
//! | displaced | approved for another repository | nothing; its gates deny |
//!
//! An approval is for one [`Item`]: a hook's definition, and the bytes of every file of the project that it names.
//! It counts for one project folder, one repository and one user. A file is opened and read once, what was read is
//! compared, and a trusted hook runs a private copy of these bytes, never the file of the project. So neither a race nor
//! an agent that edits its own guards changes what runs.
//!
//! An approved hook that the project has changed or does not have any more is a [`DivergedHook`]. It is loaded from the
//! copies by the same loader as any other hook. Where that fails, its gates deny.

mod diverged;
mod interpreter;
mod item;
mod judge;
mod plain;
mod repository;
mod search_path;
mod store;
mod variables;
mod words;

pub use diverged::{DivergedHook, Divergence, displaced};
pub use item::{Item, ItemFile};
pub use judge::Brought;
pub use repository::RepositoryIdentity;
pub use store::{Approvals, Approved, ApprovedFile, TrustError};

pub(crate) use diverged::{displaced_reason, unrunnable_reason};
pub(crate) use interpreter::{
    check_interpreter, in_search_path, interpreter_version, missing_interpreter,
};
pub(crate) use item::{hex_digest, read_whole};
pub(crate) use judge::{below, denials, deny, judge, restore};
pub(crate) use store::{check_owner, inside_copies, write_private};
pub(crate) use words::{
    Ground, NamedFiles, Rebased, add, mentioned, sources_below, too_many_beside,
};

use std::sync::Arc;

use serde::Serialize;

/// Whether something that a repository brings may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustState {
    /// It was approved as it is now.
    Trusted,
    /// It was never approved in this project.
    Untrusted,
    /// It was approved, and is different now.
    Changed,
    /// It was approved while another repository was in this folder.
    Displaced,
}

impl TrustState {
    /// Returns the spelling for people and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
            Self::Changed => "changed",
            Self::Displaced => "displaced",
        }
    }
}

/// Who says which hooks of the project layer run.
#[derive(Debug, Clone, Default)]
pub enum Trust {
    /// The caller, by naming the file: everything runs.
    #[default]
    Caller,
    /// The user, by approving hooks.
    Approved(Arc<Approvals>),
}

impl Trust {
    /// Nobody: nothing of the project layer runs.
    pub fn nobody() -> Self {
        Self::Approved(Arc::new(Approvals::none()))
    }

    /// Returns the approvals, where they decide.
    pub(crate) fn approvals(&self) -> Option<&Approvals> {
        match self {
            Self::Caller => None,
            Self::Approved(approvals) => Some(approvals),
        }
    }
}
