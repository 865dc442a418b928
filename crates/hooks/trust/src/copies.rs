//! The layout of the copies of approved files.

use std::path::{Component, Path, PathBuf};

/// Returns the relative path of a file's copy. `..` and `/` become folder names of their own, so that no
/// path leads out of the copies.
pub fn inside_copies(path: &Path) -> PathBuf {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            Component::ParentDir => Some("_parent".as_ref()),
            Component::RootDir => Some("_root".as_ref()),
            Component::Prefix(_) | Component::CurDir => None,
        })
        .collect()
}
