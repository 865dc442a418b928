//! A word of a hook that names a file.

use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A word that names a file.
///
/// An approval stores it, so that the hook can use the approved copy even if the file is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPath {
    /// The part of the hook that the path of the copy replaces.
    #[serde(rename = "place")]
    pub(crate) location: PathLocation,
    /// The full path of the file.
    pub path: PathBuf,
    /// Whether the file exists.
    pub(crate) exists: bool,
    /// Whether it is covered because its folder is.
    pub(crate) is_in_folder: bool,
}

/// The position of a word in a hook. The approval stores these names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PathLocation {
    /// A part of a shell command line.
    Line(Range<usize>),
    /// A part of a word, in a list of arguments or in a plain command.
    Word(usize, Range<usize>),
    /// A part of the value of a variable.
    Variable(usize, Range<usize>),
    /// The approval covers the file, but no path is replaced.
    Nowhere,
}
