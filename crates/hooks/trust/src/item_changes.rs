//! Compares the files of a hook with the files that the user approved before.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tenterhook_files::{hex_digest, read_whole};

use crate::copy_map::inside_copies;
use crate::covered_file::CoveredFile;
use crate::item::ApprovalItem;
use crate::store::Approvals;

const UNCHANGED: &str = "unchanged";

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
    pub fn new_bytes(&self, limit: usize) -> Option<Vec<u8>> {
        if usize::try_from(self.size).map_or(true, |size| size > limit) {
            return None;
        }
        let (bytes, _) = read_whole(&self.now).ok()?;
        (hex_digest(&bytes) == self.sha256).then_some(bytes)
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
            0 => UNCHANGED.to_owned(),
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
        let all = self.files.iter().chain(&self.covered);
        all.map(|file| ListedFile {
            path: file.path.display().to_string(),
            target: file.target.display().to_string(),
            sha256: &file.sha256,
            executable: file.is_executable,
        })
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
        let known = own.chain(covered).map(|file| (file.path.as_path(), file));
        let known: HashMap<&Path, &CoveredFile> = known.collect();
        let copies = before.map(|before| approvals.copies_of(&item.project, before));
        let compare = |file: &CoveredFile| {
            let before = known.get(file.path.as_path()).copied();
            let (is_same, change) = describe_change(before, file);
            let now = item.project.join(&file.path);
            let copies = copies.as_ref().filter(|_| before.is_some());
            FileChange {
                path: file.path.clone(),
                target: (file.target != now).then(|| file.target.clone()),
                sha256: file.sha256.clone(),
                size: file.size,
                change,
                is_same,
                copy: copies.map(|copies| copies.join(inside_copies(&file.path))),
                now,
            }
        };
        let mut files: Vec<FileChange> = item.files.iter().map(compare).collect();
        let mut packages: BTreeMap<PathBuf, PackageChange> = BTreeMap::new();
        for file in &item.covered {
            let Some(folder) = package_of(&file.path) else {
                files.push(compare(file));
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
            let before = known.get(file.path.as_path()).copied();
            if describe_change(before, file) != (true, UNCHANGED) {
                package.changed.push(file.path.clone());
            }
        }
        let current = item.files.iter().chain(&item.covered);
        let current: HashSet<&Path> = current.map(|file| file.path.as_path()).collect();
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

/// Returns whether a file has the approved bytes, and describes the difference.
fn describe_change(before: Option<&CoveredFile>, now: &CoveredFile) -> (bool, &'static str) {
    let Some(before) = before else {
        return (false, "new");
    };
    if before.sha256 != now.sha256 || before.target != now.target {
        return (false, "changed");
    }
    let change = match (before.is_executable, now.is_executable) {
        (false, true) => "same bytes, now executable",
        (true, false) => "same bytes, no longer executable",
        (true, true) | (false, false) => UNCHANGED,
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
