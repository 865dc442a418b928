//! Compares the files of a hook with the files that the user approved before.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use crate::copies::inside_copies;
use crate::covered_file::CoveredFile;
use crate::digest::hex_digest;
use crate::item::ApprovalItem;
use crate::private_file::read_whole;
use crate::record::ApprovedFile;
use crate::store::Approvals;

/// How the files of a hook differ from the approved files.
#[derive(Debug)]
pub struct ItemChanges {
    /// The files that do not belong to an installed package.
    pub files: Vec<FileChange>,
    /// The installed packages.
    pub packages: Vec<PackageChange>,
    /// Approved files and packages that the hook no longer has.
    pub gone: Vec<PathBuf>,
}

/// A file of a hook, compared with the approved one.
#[derive(Debug)]
pub struct FileChange {
    /// Its path, relative to the project if it is in it.
    pub path: PathBuf,
    /// The path after following symbolic links, if that is another one.
    pub target: Option<PathBuf>,
    /// The SHA-256 of its bytes.
    pub sha256: String,
    /// Its size in bytes.
    pub size: u64,
    /// How it differs, in a few words.
    pub change: &'static str,
    /// Whether its bytes and its target are those that were approved.
    pub is_same: bool,
    bytes: Option<Arc<[u8]>>,
    now: PathBuf,
    copy: Option<PathBuf>,
}

/// An installed package, compared with the approved one.
#[derive(Debug)]
pub struct PackageChange {
    /// Its folder.
    pub folder: PathBuf,
    /// The number of its files.
    pub files: usize,
    /// Their total size in bytes.
    pub size: u64,
    /// The files that are new or changed.
    pub changed: Vec<PathBuf>,
}

impl FileChange {
    /// Returns the bytes of the file, if they are at most `limit` long and still those that would be
    /// approved.
    pub fn new_bytes(&self, limit: usize) -> Option<Arc<[u8]>> {
        if self.bytes.is_some() {
            return self.bytes.clone();
        }
        if usize::try_from(self.size).map_or(true, |size| size > limit) {
            return None;
        }
        let (bytes, _) = read_whole(&self.now).ok()?;
        (hex_digest(&bytes) == self.sha256).then(|| bytes.into())
    }

    /// Returns the approved bytes. `None` if it was not approved, or if the copy is missing.
    pub fn old_bytes(&self) -> Option<Vec<u8>> {
        let (bytes, _) = read_whole(self.copy.as_ref()?).ok()?;
        Some(bytes)
    }
}

impl PackageChange {
    /// Returns whether all of its files are new or changed.
    pub const fn is_new(&self) -> bool {
        self.changed.len() == self.files
    }

    /// Returns how it differs, in a few words.
    pub fn change(&self) -> String {
        match self.changed.len() {
            0 => "unchanged".to_owned(),
            _ if self.is_new() => "new".to_owned(),
            changed => format!("{changed} of them new or changed"),
        }
    }
}

/// A file of a hook, for programs.
#[derive(Debug, Serialize)]
pub struct ListedFile<'a> {
    path: String,
    target: String,
    sha256: &'a str,
    executable: bool,
}

impl ApprovalItem {
    /// Returns all files that its approval covers.
    pub fn listed_files(&self) -> impl Iterator<Item = ListedFile<'_>> {
        let covered = self.covered.iter();
        let covered = covered.map(|it| (&it.path, &it.target, &it.sha256, it.is_executable));
        let own = self.files.iter();
        let own = own.map(|it| (&it.path, &it.target, &it.sha256, it.is_executable));
        let all = own.chain(covered);
        all.map(|(path, target, sha256, executable)| ListedFile {
            path: path.display().to_string(),
            target: target.display().to_string(),
            sha256,
            executable,
        })
    }
}

/// What both kinds of files have.
struct Compared<'a> {
    path: &'a Path,
    target: &'a Path,
    sha256: &'a str,
    is_executable: bool,
}

impl<'a> From<&'a ApprovedFile> for Compared<'a> {
    fn from(file: &'a ApprovedFile) -> Self {
        Self {
            path: &file.path,
            target: &file.target,
            sha256: &file.sha256,
            is_executable: file.is_executable,
        }
    }
}

impl<'a> From<&'a CoveredFile> for Compared<'a> {
    fn from(file: &'a CoveredFile) -> Self {
        Self {
            path: &file.path,
            target: &file.target,
            sha256: &file.sha256,
            is_executable: file.is_executable,
        }
    }
}

impl ItemChanges {
    /// Compares an item with its approval. Without one, everything is new.
    pub fn of(item: &ApprovalItem, approvals: &Approvals) -> Self {
        let before = approvals.before(item);
        // If the list is damaged, its files are shown as new.
        let list = before.and_then(|before| approvals.covered(before).ok());
        let own = before.into_iter().flat_map(|before| &before.files);
        let covered = list.iter().flatten();
        let known = own.map(Compared::from).chain(covered.map(Compared::from));
        let known: HashMap<&Path, Compared<'_>> = known.map(|file| (file.path, file)).collect();
        let copies = before.map(|before| approvals.copies_of(&item.project, before));
        let compare = |file: &Compared<'_>, size: u64, bytes: Option<&Arc<[u8]>>| {
            let before = known.get(file.path);
            let (is_same, change) = describe_change(before, file);
            let now = item.project.join(file.path);
            let copies = copies.as_ref().filter(|_| before.is_some());
            FileChange {
                path: file.path.to_owned(),
                target: (file.target != now).then(|| file.target.to_owned()),
                sha256: file.sha256.to_owned(),
                size,
                change,
                is_same,
                bytes: bytes.cloned(),
                copy: copies.map(|copies| copies.join(inside_copies(file.path))),
                now,
            }
        };
        let mut files = Vec::new();
        let mut packages: BTreeMap<PathBuf, PackageChange> = BTreeMap::new();
        let mut current = BTreeSet::new();
        for file in &item.files {
            current.insert(file.path.as_path());
            let size = u64::try_from(file.bytes.len()).unwrap_or(u64::MAX);
            let approved = ApprovedFile::from(file);
            files.push(compare(&Compared::from(&approved), size, Some(&file.bytes)));
        }
        for file in &item.covered {
            current.insert(file.path.as_path());
            let Some(folder) = package_of(&file.path) else {
                files.push(compare(&Compared::from(file), file.size, None));
                continue;
            };
            let package = packages.entry(folder.clone()).or_insert(PackageChange {
                folder,
                files: 0,
                size: 0,
                changed: Vec::new(),
            });
            package.files += 1;
            package.size += file.size;
            let file = Compared::from(file);
            let before = known.get(file.path);
            if before.is_none_or(|before| !is_equal(before, &file)) {
                package.changed.push(file.path.to_owned());
            }
        }
        let gone = known.keys().filter(|path| !current.contains(*path));
        let gone = gone.map(|path| match package_of(path) {
            Some(folder) if !packages.contains_key(&folder) => folder,
            Some(_) | None => path.to_path_buf(),
        });
        let gone: BTreeSet<PathBuf> = gone.collect();
        Self {
            files,
            packages: packages.into_values().collect(),
            gone: gone.into_iter().collect(),
        }
    }
}

fn is_equal(before: &Compared<'_>, now: &Compared<'_>) -> bool {
    before.sha256 == now.sha256
        && before.target == now.target
        && before.is_executable == now.is_executable
}

/// Returns whether a file has the approved bytes, and describes the difference.
fn describe_change(before: Option<&Compared<'_>>, now: &Compared<'_>) -> (bool, &'static str) {
    let Some(before) = before else {
        return (false, "new");
    };
    if before.sha256 != now.sha256 || before.target != now.target {
        return (false, "changed");
    }
    let change = match (before.is_executable, now.is_executable) {
        (false, true) => "same bytes, now executable",
        (true, false) => "same bytes, no longer executable",
        (true, true) | (false, false) => "unchanged",
    };
    (true, change)
}

/// Returns the folder of the installed package that a file belongs to, in the outermost `node_modules`.
fn package_of(path: &Path) -> Option<PathBuf> {
    let mut parts = path.iter();
    let above = parts.by_ref().take_while(|part| *part != "node_modules");
    let mut folder: PathBuf = above.collect();
    let name = parts.next()?;
    folder.push("node_modules");
    folder.push(name);
    if name.as_encoded_bytes().starts_with(b"@") {
        folder.extend(parts.next());
    }
    Some(folder)
}
