//! Files of a work tree as they were, kept in a git repository of their own.
//!
//! The user's repository is only read: index, references and objects of the snapshots lie in a folder below the
//! folder for data. What git ignores, and nested repositories, are left alone.

mod shadow;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::shadow::Shadow;

/// The largest new file that is kept, in bytes. A larger one is named among what was skipped.
pub const LARGEST_NEW_FILE: u64 = 2 << 20;

/// The most checkpoints of one work tree; the oldest go first.
pub const MOST_CHECKPOINTS: usize = 500;

/// The most names that a checkpoint tells of what was skipped.
const MOST_SKIPPED: usize = 20;

/// The files of a work tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Content and executable bits, as git's tree.
    pub(crate) tree: String,
    /// Permission bits that git does not keep, by path: those that are neither the usual ones of a file nor of a
    /// program.
    pub(crate) modes: Modes,
    /// New files that are too large, and nested repositories, by their path in the work tree.
    pub skipped: Vec<String>,
}

impl State {
    /// Says whether the files are the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.tree == other.tree && self.modes == other.modes
    }
}

/// Unusual permission bits, by path in UTF-8. A path that is not UTF-8 has none here.
pub(crate) type Modes = BTreeMap<String, u32>;

/// How a checkpoint came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A turn of an agent changed files.
    #[default]
    Turn,
    /// A tool call changed files.
    Tool,
    /// A person asked for it.
    Manual,
    /// It holds what an undo changed.
    Undo,
    /// It holds what a reset changed.
    Reset,
}

impl Kind {
    /// Returns the word for people and JSON.
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

/// What a checkpoint says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Note {
    /// How it came about.
    #[serde(default)]
    pub kind: Kind,
    /// What a person called it, or the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The session whose agent changed the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The checkpoints that an undo took back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes: Vec<u64>,
}

/// A change of files that can be taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checkpoint {
    /// Its number, from 1.
    pub id: u64,
    /// What it says of itself.
    #[serde(flatten)]
    pub note: Note,
    /// When it was made, in seconds since 1970.
    pub time: i64,
    /// How many files it changed.
    pub files: usize,
    /// What could not be kept, at most 20 names.
    pub skipped: Vec<String>,
    /// A later undo took it back.
    pub is_undone: bool,
    /// The files before.
    #[serde(skip)]
    pub(crate) before: Held,
    /// The files after.
    #[serde(skip)]
    pub(crate) after: Held,
}

/// A state that a checkpoint holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) tree: String,
    #[serde(default, skip_serializing_if = "Modes::is_empty")]
    pub(crate) modes: Modes,
}

/// How a restore is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RestoreOptions {
    /// Overwrite what was changed since.
    pub force: bool,
    /// Change nothing; say what would be changed.
    pub dry_run: bool,
}

/// What a restore did, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Restored {
    /// The checkpoint that holds what was changed now; `None` where nothing was.
    pub checkpoint: Option<u64>,
    /// Files that got their old content or mode.
    pub written: Vec<PathBuf>,
    /// Files that were removed, since they did not exist then.
    pub removed: Vec<PathBuf>,
}

/// Why there is no snapshot.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The directory is in no work tree of git.
    #[error("`{}` is in no git work tree", dir.display())]
    NoWorkTree {
        /// The directory.
        dir: PathBuf,
    },
    /// Another process works on the snapshots of the work tree.
    #[error("the snapshots of this work tree are in use by another process")]
    Busy,
    /// There is no such checkpoint.
    #[error("there is no checkpoint {id}")]
    NoCheckpoint {
        /// What was asked for.
        id: u64,
    },
    /// There is nothing to take back.
    #[error("there is nothing to undo")]
    NothingToUndo,
    /// Files changed since then, and the restore would overwrite that.
    #[error("{} changed since", plural(paths.len()))]
    Changed {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// Git did not do its part.
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
