//! Files that determine which hooks run. The agent's file tools change them only if the user agrees to that change.
//!
//! A path is judged twice: before the call, so that the user can be asked, and when the file is opened, because links
//! may have changed meanwhile. Paths are compared after links are followed, and files and folders also by their
//! identity. So a hard link, a renamed folder or a different case does not get around the protection.

use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::link::{follow, has_other_links};

/// How many entries of protected folders are searched for a file with hard links. If there are more, the file counts
/// as protected.
const MAX_ENTRIES: usize = 100_000;

/// Files and folders that the agent's file tools change only if the user agrees to that change, whatever rules, `--yes`
/// and hooks decide. If no one can be asked, they are not changed.
///
/// ```
/// use tenterhook_tools::ProtectedFiles;
/// let files = ProtectedFiles::new()
///     .add("/home/ada/.config/tenterhook", "Tenterhook's configuration")
///     .add("/home/ada/guard.yaml", "a file that `--hooks` names");
/// assert_eq!(files.reason("/home/ada/.config/tenterhook/../tenterhook/hooks.d/a.yaml".as_ref()),
///     Some("Tenterhook's configuration"));
/// assert_eq!(files.reason("/home/ada/notes.md".as_ref()), None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ProtectedFiles {
    entries: Vec<Protected>,
}

/// A protected file or folder.
#[derive(Debug, Clone)]
struct Protected {
    path: PathBuf,
    description: String,
    /// Where the path led when it was added.
    resolved: Option<PathBuf>,
    /// The file or folder that was there.
    id: Option<FileId>,
}

/// The identity of a file or folder, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl ProtectedFiles {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or a folder with everything in it. It need not exist. `description` names it in questions to the
    /// user. A relative path starts from the working directory of the process.
    #[must_use]
    pub fn add(mut self, path: impl AsRef<Path>, description: impl Into<String>) -> Self {
        let path = path.as_ref();
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let resolved = follow(&path);
        self.entries.push(Protected {
            id: resolved.as_deref().and_then(id_of_path),
            resolved,
            path,
            description: description.into(),
        });
        self
    }

    /// Returns the description of the protected file or folder that a change at this absolute path would affect, if
    /// any. This looks at the disk.
    pub fn reason(&self, path: &Path) -> Option<&str> {
        self.find(path).map(|found| found.description.as_str())
    }

    fn find(&self, path: &Path) -> Option<&Protected> {
        // A path in a cycle of links leads nowhere, so it is judged by its spelling.
        let target = follow(path).unwrap_or_else(|| path.to_owned());
        let at_name = |entry: &&Protected| entry.has_name(&target);
        self.entries
            .iter()
            .find(at_name)
            .or_else(|| self.find_ids(target.ancestors().filter_map(id_of_path)))
            .or_else(|| self.find_link(&fs::metadata(&target).ok()?))
    }

    /// Finds the entry that is one of these files and folders.
    fn find_ids(&self, ids: impl IntoIterator<Item = FileId>) -> Option<&Protected> {
        let known: Vec<(&Protected, Vec<FileId>)> = self
            .entries
            .iter()
            .map(|entry| (entry, entry.ids()))
            .collect();
        ids.into_iter().find_map(|id| {
            let entry = known.iter().find(|(_, ids)| ids.contains(&id));
            entry.map(|(entry, _)| *entry)
        })
    }

    /// Finds the entry that contains the same file under another name, through a hard link.
    fn find_link(&self, file: &Metadata) -> Option<&Protected> {
        let id = id_of_file_with_links(file)?;
        let mut left = MAX_ENTRIES;
        let has_link = |entry: &&Protected| entry.roots().any(|root| has_file(root, id, &mut left));
        let mut entries = self.entries.iter();
        entries.find(has_link)
    }
}

impl Protected {
    /// Returns the entry's paths: as written, where it led when it was added, and where it leads now.
    fn roots(&self) -> impl Iterator<Item = PathBuf> {
        let now = follow(&self.path);
        let at_start = self.resolved.clone();
        [Some(self.path.clone()), at_start, now]
            .into_iter()
            .flatten()
    }

    /// Reports whether a path is this one or below it. Case is ignored: on a disk that distinguishes it, this only
    /// causes an unnecessary question.
    fn has_name(&self, path: &Path) -> bool {
        let fold = |path: &Path| PathBuf::from(path.to_string_lossy().to_lowercase());
        let path = fold(path);
        self.roots().any(|root| path.starts_with(fold(&root)))
    }

    fn ids(&self) -> Vec<FileId> {
        let now = follow(&self.path).as_deref().and_then(id_of_path);
        self.id.into_iter().chain(now).collect()
    }
}

/// Reports whether a folder contains the file, or is it. After `left` entries the search stops and counts as a match.
fn has_file(root: PathBuf, id: FileId, left: &mut usize) -> bool {
    let mut ahead = vec![root];
    while let Some(path) = ahead.pop() {
        let Some(remaining) = left.checked_sub(1) else {
            return true;
        };
        *left = remaining;
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if id_of(&metadata) == Some(id) {
            return true;
        }
        if metadata.is_dir() {
            let Ok(entries) = fs::read_dir(&path) else {
                return true;
            };
            ahead.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
    false
}

fn id_of_path(path: &Path) -> Option<FileId> {
    fs::metadata(path).ok().as_ref().and_then(id_of)
}

#[cfg(unix)]
#[expect(
    clippy::unnecessary_wraps,
    reason = "other systems identify files in other ways"
)]
fn id_of(metadata: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt as _;
    Some(FileId {
        device: metadata.dev(),
        inode: metadata.ino(),
    })
}

#[cfg(not(unix))]
fn id_of(_metadata: &Metadata) -> Option<FileId> {
    None
}

fn id_of_file_with_links(metadata: &Metadata) -> Option<FileId> {
    has_other_links(metadata).then(|| id_of(metadata)).flatten()
}

/// A protected file that a call would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedTarget {
    /// Where the call's path leads.
    pub target: PathBuf,
    /// The description of the protected file or folder.
    pub description: String,
}

/// Opens files for tools, except protected ones whose change the user did not approve.
#[derive(Debug, Clone, Default)]
pub struct WriteGuard {
    files: Arc<ProtectedFiles>,
    /// The resolved path of the protected file whose change the user approved.
    agreed: Option<PathBuf>,
}

impl WriteGuard {
    /// Creates a guard of these files. `agreed` is the resolved path of the protected file whose change is approved.
    pub fn new(files: Arc<ProtectedFiles>, agreed: Option<PathBuf>) -> Self {
        Self { files, agreed }
    }

    /// Returns the protected file that a call would change, if any. This looks at the disk.
    pub fn judge(&self, path: &Path) -> Option<ProtectedTarget> {
        let found = self.files.find(path)?;
        Some(ProtectedTarget {
            target: follow(path).unwrap_or_else(|| path.to_owned()),
            description: found.description.clone(),
        })
    }

    /// Checks that the file is not protected, or that the user approved its change. This looks at the disk.
    ///
    /// # Errors
    /// Fails if the file is protected and the user did not approve the change.
    pub fn check_change(&self, path: &Path) -> io::Result<()> {
        match self.judge(path) {
            Some(found) if self.agreed.as_ref() != Some(&found.target) => {
                Err(refused(&found.description))
            }
            _ => Ok(()),
        }
    }

    /// Creates the folders of a file, and writes the file in place, so that links, permissions and owner of an existing
    /// file are preserved.
    pub(crate) fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.check_change(path)?;
        let target =
            follow(path).ok_or_else(|| io::Error::other("it leads through too many links"))?;
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = self.open(&target)?;
        file.set_len(0)?;
        file.write_all(content)
    }

    /// Opens a file by its resolved path, and judges the opened file: since the path was judged, folders above it may
    /// have been renamed and replaced by links.
    #[cfg(unix)]
    fn open(&self, target: &Path) -> io::Result<File> {
        use rustix::fs::{CWD, Mode, OFlags, openat};

        let (Some(folder), Some(name)) = (target.parent(), target.file_name()) else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let folder = openat(CWD, folder, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        let is_agreed = self.agreed.as_deref() == Some(target);
        if !is_agreed {
            self.check(self.files.find_ids(ids_above(&folder)?))?;
        }
        // Opening a pipe would wait for its other end.
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&folder, name, flags, Mode::from_raw_mode(0o666))?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if !is_agreed {
            self.check(self.files.find_ids(id_of(&metadata)))?;
            self.check(self.files.find_link(&metadata))?;
        }
        Ok(file)
    }

    #[cfg(not(unix))]
    fn open(&self, target: &Path) -> io::Result<File> {
        File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(target)
    }

    #[cfg(unix)]
    #[expect(clippy::unused_self, reason = "it judges files of this guard")]
    fn check(&self, found: Option<&Protected>) -> io::Result<()> {
        match found {
            Some(found) => Err(refused(&found.description)),
            None => Ok(()),
        }
    }
}

fn refused(description: &str) -> io::Error {
    let text = format!(
        "it is part of {description}, which only the user may change, and the user was not asked"
    );
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

/// The flags for opening a folder to look at its parents. Linux allows that without the right to list the folder.
#[cfg(unix)]
const FOLDER: rustix::fs::OFlags = {
    use rustix::fs::OFlags;
    let flags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
    #[cfg(target_os = "linux")]
    let flags = flags.union(OFlags::PATH);
    flags
};

/// Returns the identities of an open folder and of all folders above it, whatever their names are.
#[cfg(unix)]
fn ids_above(folder: &rustix::fd::OwnedFd) -> io::Result<Vec<FileId>> {
    use rustix::fs::{Mode, openat};

    /// The largest depth of a folder.
    const MAX_DEPTH: usize = 1024;

    let mut at = folder.try_clone()?;
    let mut ids = Vec::new();
    for _ in 0..MAX_DEPTH {
        let id = id_of(&File::from(at.try_clone()?).metadata()?);
        let Some(id) = id.filter(|id| !ids.contains(id)) else {
            return Ok(ids);
        };
        ids.push(id);
        at = match openat(&at, "..", FOLDER, Mode::empty()) {
            Ok(above) => above,
            // Names were compared before. This check only finds folders that were renamed since, so it may stop here.
            Err(rustix::io::Errno::ACCESS) => return Ok(ids),
            Err(error) => return Err(error.into()),
        };
    }
    Err(io::Error::other("its folder is too deep"))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::{TempDir, tempdir};

    use super::*;

    /// A folder with protected files, and an agent's folder next to it.
    fn place() -> (TempDir, PathBuf, ProtectedFiles) {
        let dir = tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("config/hooks.d")).unwrap();
        fs::create_dir(root.join("work")).unwrap();
        fs::write(root.join("config/hooks.d/a.yaml"), "guard").unwrap();
        fs::write(root.join("named.yaml"), "guard").unwrap();
        let files = ProtectedFiles::new()
            .add(root.join("config"), "the configuration")
            .add(root.join("named.yaml"), "a named file");
        (dir, root, files)
    }

    #[test]
    fn a_protected_file_is_found_by_every_path_that_leads_to_it() {
        let (_dir, root, files) = place();
        symlink("../config", root.join("work/link")).unwrap();
        symlink("../named.yaml", root.join("work/named")).unwrap();
        symlink("../config/new", root.join("work/dangling")).unwrap();
        fs::hard_link(root.join("named.yaml"), root.join("work/hard")).unwrap();
        fs::hard_link(root.join("config/hooks.d/a.yaml"), root.join("work/deep")).unwrap();
        fs::write(root.join("work/one"), "").unwrap();
        fs::hard_link(root.join("work/one"), root.join("work/two")).unwrap();
        let (config, named) = (Some("the configuration"), Some("a named file"));
        for (path, expected) in [
            ("config/hooks.d/a.yaml", config),
            ("config/new/file", config),
            ("config", config),
            ("CONFIG/Hooks.yaml", config),
            ("work/../config/a", config),
            ("work/link/a", config),
            ("work/dangling", config),
            ("work/deep", config),
            ("named.yaml", named),
            ("work/named", named),
            ("work/hard", named),
            ("work/one", None),
            ("work/new", None),
            ("configuration", None),
        ] {
            assert_eq!(files.reason(&root.join(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_protected_folder_is_found_under_another_name() {
        let (_dir, root, files) = place();
        fs::rename(root.join("config"), root.join("moved")).unwrap();
        fs::rename(root.join("named.yaml"), root.join("work/renamed")).unwrap();
        for path in [
            "moved/hooks.d/a.yaml",
            "moved/new",
            "config/new",
            "work/renamed",
        ] {
            assert!(files.reason(&root.join(path)).is_some(), "{path}");
        }
    }

    #[test]
    fn the_target_of_a_protected_link_is_protected() {
        let (_dir, root, _) = place();
        fs::write(root.join("work/real"), "").unwrap();
        symlink("work/real", root.join("link")).unwrap();
        let files = ProtectedFiles::new().add(root.join("link"), "linked");
        assert_eq!(files.reason(&root.join("work/real")), Some("linked"));
    }

    #[test]
    fn a_protected_file_is_written_only_where_the_user_agreed_to() {
        let (_dir, root, files) = place();
        let files = Arc::new(files);
        let file = root.join("config/hooks.d/a.yaml");
        let error = WriteGuard::new(Arc::clone(&files), None)
            .write(&file, b"free")
            .unwrap_err();
        assert!(
            error.to_string().contains("the user was not asked"),
            "{error}"
        );
        let other = WriteGuard::new(Arc::clone(&files), Some(root.join("named.yaml")));
        other.write(&file, b"free").unwrap_err();
        assert_eq!(fs::read(&file).unwrap(), b"guard");
        let agreed = WriteGuard::new(files, Some(file.clone()));
        agreed.write(&file, b"free").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"free");
    }

    #[test]
    fn a_folder_that_becomes_a_link_or_a_hard_link_after_the_judgement_leads_nowhere() {
        let (_dir, root, files) = place();
        let guard = WriteGuard::new(Arc::new(files), None);
        // `open` receives a path that was judged harmless; meanwhile it leads elsewhere.
        symlink("../config", root.join("work/sub")).unwrap();
        guard.open(&root.join("work/sub/new")).unwrap_err();
        symlink("config", root.join("inner")).unwrap();
        guard.open(&root.join("inner/hooks.d/a.yaml")).unwrap_err();
        symlink("../named.yaml", root.join("work/final")).unwrap();
        guard.open(&root.join("work/final")).unwrap_err();
        fs::hard_link(root.join("named.yaml"), root.join("work/hard")).unwrap();
        guard.open(&root.join("work/hard")).unwrap_err();
        assert!(!root.join("config/new").exists());
        assert_eq!(fs::read(root.join("named.yaml")).unwrap(), b"guard");
        guard.open(&root.join("work/harmless")).unwrap();
    }
}
