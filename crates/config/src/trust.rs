//! What a repository brings runs only after somebody approved it.
//!
//! | state | what it means | what happens |
//! |---|---|---|
//! | trusted | approved as it is now | it runs, from the copy of the files that was approved |
//! | untrusted | never approved in this project | it does not run |
//! | changed | approved, and something of it is different now | it does not run |
//!
//! An approval is for one [`Item`]: a hook's definition, and the bytes of every file of the project that it names.
//! It counts for one project folder and one user. What was hashed is what runs: a file is opened and read once, and a
//! trusted hook runs a private copy of these bytes, never the file of the project. So neither a race nor an agent
//! that edits its own guards changes what runs.

mod interpreter;
mod item;
mod judge;
mod plain;
mod store;
mod variables;
mod words;

pub use item::{Item, ItemFile};
pub use judge::{Brought, Gone, gone};
pub use store::{Approvals, Approved, ApprovedFile, TrustError};

pub(crate) use interpreter::{
    check_interpreter, in_search_path, interpreter_version, missing_interpreter,
};
pub(crate) use item::{hex_digest, read_whole};
pub(crate) use judge::{below, denials, deny, judge};
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
}

impl TrustState {
    /// Returns the spelling for people and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
            Self::Changed => "changed",
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
}
