//! Snapshots of a work tree's files, kept in a separate git repository.
//!
//! The user's repository is only read: the index, references and objects of the snapshots are in the data folder.
//! Files that git ignores, and nested repositories, are left out.

mod shadow;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::shadow::Shadow;

/// The largest new file that a snapshot includes, in bytes. Larger files are listed as skipped.
pub const MAX_NEW_FILE: u64 = 2 << 20;

/// The maximum number of checkpoints of one work tree. The oldest are removed first.
pub const MAX_CHECKPOINTS: usize = 500;

/// The maximum number of skipped files that a checkpoint lists.
const MAX_SKIPPED: usize = 20;

/// The state of a work tree's files at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The contents and executable bits, as the id of a git tree.
    pub(crate) tree: String,
    /// Permission bits that git does not store, by path. Files with the usual bits are not listed.
    pub(crate) modes: Modes,
    /// New files that are too large, and nested repositories, as paths in the work tree.
    pub skipped: Vec<String>,
}

impl State {
    /// Reports whether both states have the same files.
    pub fn is_same(&self, other: &Self) -> bool {
        self.tree == other.tree && self.modes == other.modes
    }
}

/// Unusual permission bits by path. Paths that are not valid UTF-8 are not included.
pub(crate) type Modes = BTreeMap<String, u32>;

/// Why a checkpoint was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A turn of an agent changed files.
    #[default]
    Turn,
    /// A tool call changed files.
    Tool,
    /// The user created it.
    Manual,
    /// An undo changed files; the checkpoint contains what it changed.
    Undo,
    /// A reset changed files; the checkpoint contains what it changed.
    Reset,
}

impl Kind {
    /// Returns the name that output and JSON use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Tool => "tool",
            Self::Manual => "manual",
            Self::Undo => "undo",
            Self::Reset => "reset",
        }
    }
}

/// The description that is stored with a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Note {
    /// Why it was created.
    #[serde(default)]
    pub kind: Kind,
    /// The user's name for it, or the name of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The session whose agent changed the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The checkpoints that this undo reverted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes: Vec<u64>,
}

/// A change of files that can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checkpoint {
    /// Its number, from 1.
    pub id: u64,
    /// Its description.
    #[serde(flatten)]
    pub note: Note,
    /// When it was created, in seconds since 1970.
    pub time: i64,
    /// How many files it changed.
    pub files: usize,
    /// Files that could not be included, at most 20 names.
    pub skipped: Vec<String>,
    /// Whether a later undo reverted it.
    pub is_undone: bool,
    /// The files before.
    #[serde(skip)]
    pub(crate) before: Held,
    /// The files after.
    #[serde(skip)]
    pub(crate) after: Held,
}

/// A stored state of the files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) tree: String,
    #[serde(default, skip_serializing_if = "Modes::is_empty")]
    pub(crate) modes: Modes,
}

/// How to restore files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RestoreOptions {
    /// Overwrite files that were changed later.
    pub force: bool,
    /// Change nothing; only report what would change.
    pub dry_run: bool,
}

/// The result of a restore, or of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Restored {
    /// The checkpoint that was created for this restore; `None` if nothing changed.
    pub checkpoint: Option<u64>,
    /// Files that got their old content or mode.
    pub written: Vec<PathBuf>,
    /// Files that were removed because they did not exist at the time.
    pub removed: Vec<PathBuf>,
}

/// The reasons why an operation on snapshots fails.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The directory is not in a git work tree.
    #[error("`{}` is not in a git work tree", dir.display())]
    NoWorkTree {
        /// The directory.
        dir: PathBuf,
    },
    /// Another process is using the snapshots of the work tree.
    #[error("the snapshots of this work tree are in use by another process")]
    Busy,
    /// The checkpoint does not exist.
    #[error("checkpoint {id} does not exist")]
    NoCheckpoint {
        /// The requested number.
        id: u64,
    },
    /// No change is left to undo.
    #[error("there is nothing to undo")]
    NothingToUndo,
    /// The restore would overwrite files that were changed later.
    #[error("{} changed since the checkpoint", plural(paths.len()))]
    Changed {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// A git command failed.
    #[error("{0}")]
    Git(String),
    /// A file could not be read or written.
    #[error("`{}`: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        problem: String,
    },
}

impl SnapshotError {
    fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            problem: error.to_string(),
        }
    }
}

fn plural(count: usize) -> String {
    match count {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    }
}
