//! Lists folders, and the folders below them, with a limit.

use std::fs::{self, DirEntry, ReadDir};
use std::io;
use std::path::{Path, PathBuf};

/// Returns the entries of a folder. A folder that does not exist has none.
///
/// # Errors
/// Fails if the folder cannot be read. So does each entry that cannot be read.
pub fn entries(folder: &Path) -> io::Result<impl Iterator<Item = io::Result<DirEntry>> + use<>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
    .map(|read| read.into_iter().flatten())
}

/// Returns the entries of a folder that can be read now, for callers that need not know about the others.
pub fn readable_entries(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// Why a walk does not have every entry.
#[derive(Debug)]
pub enum WalkError {
    /// There are more entries than the walk may return. It has ended.
    TooMany,
    /// A folder cannot be read. The walk continues with the other folders.
    Unreadable {
        /// The folder.
        folder: PathBuf,
        /// What the system reports.
        source: io::Error,
    },
}

/// Returns the entries of a folder, and of the folders below it that the caller enters, in no particular order.
///
/// A link to a folder is an entry like every other one. Do not enter it: links can form a cycle.
///
/// ```
/// use tenterhook_files::FolderWalk;
///
/// # let home = tempfile::tempdir()?;
/// # std::fs::create_dir_all(home.path().join("a/b"))?;
/// # std::fs::write(home.path().join("a/b/c"), "")?;
/// let (mut walk, mut files) = (FolderWalk::below(home.path(), 1_000), 0);
/// while let Some(entry) = walk.next() {
///     let entry = entry.map_err(|error| format!("{error:?}"))?;
///     if entry.file_type()?.is_dir() {
///         walk.enter(entry.path());
///     } else {
///         files += 1;
///     }
/// }
/// assert_eq!(files, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FolderWalk {
    /// The folders that are still to be listed.
    ahead: Vec<PathBuf>,
    /// The folder that is being listed.
    folder: PathBuf,
    open: Option<ReadDir>,
    left: usize,
}

impl FolderWalk {
    /// Begins a walk that returns at most `max` entries.
    pub fn below(folder: &Path, max: usize) -> Self {
        Self {
            ahead: vec![folder.to_owned()],
            folder: PathBuf::new(),
            open: None,
            left: max,
        }
    }

    /// Lists a folder, too.
    pub fn enter(&mut self, folder: PathBuf) {
        self.ahead.push(folder);
    }

    fn unreadable(&self, source: io::Error) -> WalkError {
        WalkError::Unreadable {
            folder: self.folder.clone(),
            source,
        }
    }
}

impl Iterator for FolderWalk {
    type Item = Result<DirEntry, WalkError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.open.as_mut().and_then(Iterator::next) {
                let Some(left) = self.left.checked_sub(1) else {
                    self.ahead.clear();
                    self.open = None;
                    return Some(Err(WalkError::TooMany));
                };
                self.left = left;
                return Some(entry.map_err(|source| self.unreadable(source)));
            }
            self.folder = self.ahead.pop()?;
            match fs::read_dir(&self.folder) {
                Ok(open) => self.open = Some(open),
                Err(source) => {
                    self.open = None;
                    return Some(Err(self.unreadable(source)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_that_exists_and_is_no_file_has_entries() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(entries(home.path()).unwrap().count(), 1);
        assert_eq!(entries(&home.path().join("missing")).unwrap().count(), 0);
        assert!(entries(&file).is_err());
        assert_eq!(readable_entries(&file).count(), 0);
    }

    #[test]
    fn a_walk_ends_at_its_limit_and_goes_on_after_an_unreadable_folder() {
        let home = tempfile::tempdir().unwrap();
        for name in ["a/one", "b/two", "b/three"] {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let walk = |max: usize| {
            let mut walk = FolderWalk::below(home.path(), max);
            walk.enter(home.path().join("missing"));
            let (mut names, mut errors) = (Vec::new(), Vec::new());
            while let Some(entry) = walk.next() {
                match entry {
                    Ok(entry) => {
                        names.push(entry.file_name().into_string().unwrap());
                        if entry.file_type().unwrap().is_dir() {
                            walk.enter(entry.path());
                        }
                    }
                    Err(WalkError::Unreadable { folder, .. }) => {
                        errors.push(folder.file_name().unwrap().to_owned());
                    }
                    Err(WalkError::TooMany) => errors.push("too many".into()),
                }
            }
            names.sort();
            (names, errors)
        };
        let (names, errors) = walk(5);
        assert_eq!(names, ["a", "b", "one", "three", "two"]);
        assert_eq!(errors, ["missing"]);
        let (names, errors) = walk(4);
        assert_eq!(
            (names.len(), errors),
            (4, vec!["missing".into(), "too many".into()])
        );
    }
}
