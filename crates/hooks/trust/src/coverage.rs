//! Finds every file that an extension needs: its folder, and the packages of the project that it imports. The same
//! search finds the folder of a script that a command names, without packages from elsewhere.
//!
//! | found | covered |
//! |---|---|
//! | a file of the extension's folder | yes, except in `.git` |
//! | a file that a script imports by a relative path | yes |
//! | a package that a script imports, in a `node_modules` folder of the project | the whole package, and the packages that its `package.json` names |
//! | a link whose target is covered | as a link |
//! | a link whose target is not covered | an error; in the folder of a script, no |
//! | a link to a missing file, a socket, a pipe | no |
//!
//! The copies have the layout of the project. So an import that Node.js resolves in the project resolves
//! to the corresponding copy.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tenterhook_files::{FolderWalk, WalkError, hex_digest, may_execute};

use crate::covered_file::CoveredFile;
use crate::file_memory::{FileMemory, FileStamp};
use crate::parallel::map_parallel;
use crate::project::{is_hook_folder, normalized, plain_join, shown};

/// The largest number of files that one approval of an extension covers.
const MAX_COVERED_FILES: usize = 10_000;
/// The largest total size of these files, in bytes.
const MAX_COVERED_BYTES: u64 = 256 << 20;
/// The largest number of files that the approvals of all extensions of one folder cover together.
const MAX_FILES_TOGETHER: usize = 40_000;
/// The largest total size of these files, in bytes.
const MAX_BYTES_TOGETHER: u64 = 1 << 30;
/// The largest number of imports of one extension that are looked up.
const MAX_IMPORTS: usize = 50_000;
/// How many entries are counted for the message about too many files.
const MAX_COUNTED: usize = 100_000;
/// The size of the largest script that is searched for imports, in bytes.
const MAX_SCRIPT: u64 = 4 << 20;
/// The file name extensions of scripts that may import packages.
const SCRIPTS: [&str; 8] = ["ts", "mts", "cts", "tsx", "js", "mjs", "cjs", "jsx"];
/// The file name extensions of hook files and settings, and the beginnings of their names.
const FORMATS: [&str; 4] = ["json", "toml", "yaml", "yml"];
const HOOK_FILES: [&str; 3] = ["config", "hooks", "settings"];
/// What an import may leave out at the end of a path. The first existing file counts.
const ENDS: [&str; 12] = [
    "",
    ".ts",
    ".mts",
    ".cts",
    ".tsx",
    ".js",
    ".mjs",
    ".cjs",
    ".json",
    "/index.ts",
    "/index.js",
    "/index.mjs",
];

/// The folder of an extension, or a folder that several extensions of a single file share.
#[derive(Debug)]
pub struct ExtensionFolder {
    dir: PathBuf,
    /// Files and folders in it that belong to other extensions. Only those that a script imports are
    /// covered.
    left_out: BTreeSet<PathBuf>,
    /// Whether it is the folder of a script that a command names. It may also have hook files and logs, which are
    /// not covered.
    is_of_script: bool,
    /// The entries of a folder that several extensions share, which is walked only once.
    walked: OnceLock<Result<Arc<[Walked]>, CoverageError>>,
}

impl ExtensionFolder {
    /// Describes the folder of one extension.
    pub const fn own(dir: PathBuf) -> Self {
        Self {
            dir,
            left_out: BTreeSet::new(),
            is_of_script: false,
            walked: OnceLock::new(),
        }
    }

    /// Describes the folder of a script that a command names.
    pub(crate) fn of_script(dir: PathBuf) -> Self {
        Self {
            is_of_script: true,
            ..Self::own(dir)
        }
    }

    /// Describes a folder of extensions that are single files. They may load its files, except those in
    /// `left_out`, which belong to other extensions.
    pub fn shared(dir: PathBuf, left_out: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            left_out: left_out.into_iter().collect(),
            ..Self::own(dir)
        }
    }

    fn is_shared(&self) -> bool {
        !self.left_out.is_empty()
    }
}

/// What the extensions of one folder may cover together. It bounds the time, the memory and the copies of a
/// project with many extensions.
#[derive(Debug, Default)]
pub struct CoverageBudget {
    files: AtomicUsize,
    bytes: AtomicU64,
}

impl CoverageBudget {
    fn spend(&self, files: usize, bytes: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn allows(&self, files: usize, bytes: u64) -> bool {
        let total = (
            self.files.load(Ordering::Relaxed).saturating_add(files),
            self.bytes.load(Ordering::Relaxed).saturating_add(bytes),
        );
        total.0 <= MAX_FILES_TOGETHER && total.1 <= MAX_BYTES_TOGETHER
    }
}

/// Returns the modules that a script imports, as it names them.
pub type FindImports = fn(&str) -> Vec<String>;

/// A search for the files that an extension needs.
#[derive(Debug, Clone, Copy)]
pub struct CoverageSearch<'a> {
    /// The project, without symbolic links.
    pub project: &'a Path,
    /// The folder of the extension.
    pub folder: &'a ExtensionFolder,
    /// The file that is started or loaded. It is not part of the result.
    pub entry: &'a Path,
    /// What is known about these files.
    pub memory: &'a FileMemory,
    /// Finds the imports of a script.
    pub imports: FindImports,
    /// The files that were approved before. If given, no other file is read: the search ends with
    /// [`CoverageError::Differs`] at the first file that the metadata shows to be another one.
    pub approved: Option<&'a ApprovedFiles>,
    /// What all extensions of the folder may cover together.
    pub budget: &'a CoverageBudget,
}

/// The files of an approval of an extension, by their paths in the project.
#[derive(Debug, Default)]
pub struct ApprovedFiles(HashMap<PathBuf, CoveredFile>);

impl ApprovedFiles {
    /// Collects the files of an approval. `own` has the files that are named, as they are now.
    pub(crate) fn new(
        covered: Vec<CoveredFile>,
        own: impl IntoIterator<Item = CoveredFile>,
    ) -> Self {
        let files = covered.into_iter().chain(own);
        Self(files.map(|file| (file.path.clone(), file)).collect())
    }

    /// Returns whether some of the files are in a folder or below it.
    pub(crate) fn has_below(&self, dir: &Path) -> bool {
        self.0.keys().any(|path| path.starts_with(dir))
    }

    /// Returns the approved file at a path, if the metadata can be of that file.
    fn like(&self, path: &Path, metadata: &Metadata) -> Option<&CoveredFile> {
        let file = self.0.get(path)?;
        let is_like = file.link.is_none()
            && file.size == metadata.len()
            && file.is_executable == may_execute(metadata);
        is_like.then_some(file)
    }
}

/// The reason why the files of an extension cannot be approved.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CoverageError {
    /// The extension, or all extensions of its folder together, have too many files, bytes or imports.
    #[error("{problem}")]
    TooMuch {
        /// What there is too much of, and the limit.
        problem: String,
        /// What the user can do about it.
        hint: &'static str,
    },
    /// A file is not what was approved.
    #[error("`{}` differs from what was approved", escape(.path))]
    Differs {
        /// The file.
        path: PathBuf,
    },
    /// A link leads to a file that the approval does not cover.
    #[error(
        "`{}` is a link to `{}`, which is not part of the extension",
        escape(.link), escape(.target)
    )]
    LinkLeaves {
        /// The link.
        link: PathBuf,
        /// Its target.
        target: PathBuf,
    },
    /// A file or folder cannot be read.
    #[error("`{}` cannot be read: {source}", escape(.path))]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: Arc<io::Error>,
    },
}

/// Returns a path as one line that a terminal does not act on, because its author may be an attacker.
fn escape(path: &Path) -> String {
    let shown = path.display().to_string();
    let escaped = shown.chars().map(|character| match character {
        '\'' | '"' | '\\' => character.to_string(),
        other => other.escape_debug().to_string(),
    });
    escaped.collect()
}

/// What the user can do about an extension that is too large.
const MAKE_SMALLER: &str =
    "remove packages and files that the extension does not need, or bundle it into one file";
/// What the user can do about a folder whose extensions are too large together.
const SEPARATE: &str = "give each extension a folder of its own, and remove packages and files that none of them needs";

impl CoverageError {
    /// Returns what the user can do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::TooMuch { hint, .. } => hint,
            Self::Differs { .. } => "approve the extension again with `tenterhook trust`",
            Self::LinkLeaves { .. } => {
                "replace the link with the file or folder itself, or remove it"
            }
            Self::Unreadable { .. } => "make it readable, or remove it",
        }
    }
}

/// An entry of a folder, or of a folder below it.
#[derive(Debug)]
enum Walked {
    File(PathBuf, Box<Metadata>),
    Link(PathBuf),
}

/// A file or link that was found.
enum Found {
    /// The file, once it was read.
    File(Option<Box<CoveredFile>>),
    /// The target without links.
    Link(PathBuf),
}

impl CoverageSearch<'_> {
    /// Returns the files in the order of their paths. Unchanged files are not read.
    ///
    /// # Errors
    /// Fails if the files are too many or too large, if one cannot be read, or if a link leads out of them.
    pub fn run(&self) -> Result<Vec<CoveredFile>, CoverageError> {
        let dir = &self.folder.dir;
        let real = fs::canonicalize(dir).map_err(|source| self.unreadable(dir, source))?;
        let mut state = Search {
            given: self,
            real,
            found: BTreeMap::new(),
            walked: BTreeSet::new(),
            imported: HashSet::new(),
            pending: Vec::new(),
            bytes: 0,
        };
        let result = state.find();
        match result {
            // One file more than was approved is a difference.
            Err(CoverageError::TooMuch { .. }) if self.approved.is_some() => {
                return Err(self.differs(dir));
            }
            _ if self.approved.is_none() => self.budget.spend(state.found.len(), state.bytes),
            Ok(()) | Err(_) => {}
        }
        result?;
        state.finish()
    }

    fn unreadable(&self, path: &Path, source: io::Error) -> CoverageError {
        CoverageError::Unreadable {
            path: shown(path, self.project),
            source: Arc::new(source),
        }
    }

    fn differs(&self, path: &Path) -> CoverageError {
        CoverageError::Differs {
            path: shown(path, self.project),
        }
    }

    /// Returns a file and what it imports, without reading it if it is unchanged. If approved files are given, only
    /// a file with the size of an approved file is read, and only text with its digest is searched for imports.
    fn contents(
        &self,
        path: &Path,
        metadata: &Metadata,
    ) -> Result<(CoveredFile, Vec<String>), CoverageError> {
        let own = shown(path, self.project);
        let known = self.memory.originals.get(&own);
        let stamp = FileStamp::of(metadata);
        let approved = self.approved.and_then(|all| all.like(&own, metadata));
        let is_approved = |sha256: &str| {
            self.approved.is_none() || approved.is_some_and(|file| file.sha256 == sha256)
        };
        let known = known.filter(|known| stamp == Some(known.stamp) && is_approved(&known.sha256));
        if let Some(known) = known {
            let file = CoveredFile {
                path: own,
                target: path.to_owned(),
                sha256: known.sha256.clone(),
                size: metadata.len(),
                is_executable: may_execute(metadata),
                known: Some(known.clone()),
                ..CoveredFile::default()
            };
            return Ok((file, known.imports.clone()));
        }
        let names_modules = self.is_script(path) || is_package_description(path);
        let text_limit = if names_modules { MAX_SCRIPT } else { 0 };
        let limit = approved.map_or(MAX_COVERED_BYTES, |file| file.size);
        let read = CoveredFile::scan(path, own, limit, text_limit);
        let (mut file, text) = read.map_err(|source| self.unreadable(path, source))?;
        if !is_approved(&file.sha256) {
            return Err(self.differs(path));
        }
        let imports = match text {
            Some(text) if is_package_description(path) => dependencies(&text),
            Some(text) if names_modules => (self.imports)(&text),
            Some(_) | None => Vec::new(),
        };
        if let Some(known) = &mut file.known {
            known.imports.clone_from(&imports);
        }
        Ok((file, imports))
    }

    /// Returns whether a file is a script of the extension, and not of an installed package.
    fn is_script(&self, path: &Path) -> bool {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| SCRIPTS.contains(&extension))
            && !shown(path, self.project).iter().any(|part| part == MODULES)
    }
}

/// The state of a search.
struct Search<'a> {
    given: &'a CoverageSearch<'a>,
    /// The extension's folder without links.
    real: PathBuf,
    found: BTreeMap<PathBuf, Found>,
    /// The folders that are covered as a whole.
    walked: BTreeSet<PathBuf>,
    /// The imports that were looked up, each with the folder of the importing file.
    imported: HashSet<(PathBuf, String)>,
    /// Files that were found but not read yet.
    pending: Vec<(PathBuf, Metadata)>,
    bytes: u64,
}

impl Search<'_> {
    /// Finds and reads all files.
    fn find(&mut self) -> Result<(), CoverageError> {
        self.check_limits(1)?;
        self.add_folder(&self.given.folder.dir)?;
        self.add_path(self.given.entry)?;
        while !self.pending.is_empty() {
            let batch = std::mem::take(&mut self.pending);
            self.read(&batch)?;
        }
        Ok(())
    }

    /// Adds every file of a folder and the folders below it.
    fn add_folder(&mut self, dir: &Path) -> Result<(), CoverageError> {
        if dir.ancestors().any(|above| self.walked.contains(above)) {
            return Ok(());
        }
        let folder = self.given.folder;
        let entries = if dir == folder.dir && folder.is_shared() {
            let walked = folder.walked.get_or_init(|| self.walk(dir));
            Arc::clone(walked.as_ref().map_err(CoverageError::clone)?)
        } else {
            self.walked.insert(dir.to_owned());
            self.walk(dir)?
        };
        let files = self.found.len() + entries.len();
        if files > MAX_COVERED_FILES {
            return Err(self.too_many(files));
        }
        for entry in &*entries {
            match entry {
                Walked::File(path, metadata) => self.add_file(path, metadata)?,
                Walked::Link(path) => self.add_link(path),
            }
        }
        self.check_limits(self.found.len())
    }

    /// Returns the files and links in a folder and the folders below it.
    fn walk(&self, dir: &Path) -> Result<Arc<[Walked]>, CoverageError> {
        let mut walk = FolderWalk::below(dir, MAX_COUNTED - 1);
        let mut walked = Vec::new();
        let mut files = 0;
        while let Some(entry) = walk.next() {
            let entry = entry.map_err(|error| match error {
                WalkError::TooMany => self.too_many(MAX_COUNTED),
                WalkError::Unreadable { folder, source } => self.given.unreadable(&folder, source),
            })?;
            let path = entry.path();
            if self.is_left_out(&path, dir) {
                continue;
            }
            let unreadable = |source| self.given.unreadable(&path, source);
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_dir() {
                walk.enter(path);
                continue;
            }
            files += 1;
            // Only the number matters then. A socket is not copied.
            if files > MAX_COVERED_FILES {
                continue;
            }
            if kind.is_symlink() {
                walked.push(Walked::Link(path));
            } else if kind.is_file() {
                let metadata = entry.metadata().map_err(unreadable)?;
                walked.push(Walked::File(path, Box::new(metadata)));
            }
        }
        if files > MAX_COVERED_FILES {
            return Err(self.too_many(files));
        }
        Ok(walked.into())
    }

    /// Returns whether a path below `dir` is left out. Scripts do not load files from `.git`, which can be
    /// large.
    fn is_left_out(&self, path: &Path, dir: &Path) -> bool {
        path.ends_with(".git")
            || (self.given.folder.is_of_script && changes_by_itself(path))
            || (dir == self.given.folder.dir && self.given.folder.left_out.contains(path))
    }

    fn check_limits(&self, files: usize) -> Result<(), CoverageError> {
        if files > MAX_COVERED_FILES {
            return Err(self.too_many(files));
        }
        if self.bytes > MAX_COVERED_BYTES {
            let found = format!("{} MiB", self.bytes.div_ceil(1 << 20));
            return Err(self.too_much(&found, &format!("{} MiB", MAX_COVERED_BYTES >> 20)));
        }
        if self.given.approved.is_none() && !self.given.budget.allows(files, self.bytes) {
            let problem = format!(
                "the extensions next to `{}` need more than {MAX_FILES_TOGETHER} files or {} MiB together",
                self.folder(),
                MAX_BYTES_TOGETHER >> 20
            );
            return Err(CoverageError::TooMuch {
                problem,
                hint: SEPARATE,
            });
        }
        Ok(())
    }

    fn too_many(&self, files: usize) -> CoverageError {
        let more = if files >= MAX_COUNTED {
            "more than "
        } else {
            ""
        };
        let found = format!("{more}{files} files");
        self.too_much(&found, &MAX_COVERED_FILES.to_string())
    }

    fn too_much(&self, found: &str, limit: &str) -> CoverageError {
        CoverageError::TooMuch {
            problem: format!(
                "`{}` and the packages that it imports have {found}; an approval covers at most {limit}",
                self.folder()
            ),
            hint: MAKE_SMALLER,
        }
    }

    /// Returns the folder of the extension for a message.
    fn folder(&self) -> String {
        escape(&shown(&self.given.folder.dir, self.given.project))
    }

    fn add_file(&mut self, path: &Path, metadata: &Metadata) -> Result<(), CoverageError> {
        if self.found.contains_key(path) {
            return Ok(());
        }
        let own = shown(path, self.given.project);
        let approved = self.given.approved;
        if approved.is_some_and(|approved| approved.like(&own, metadata).is_none()) {
            return Err(self.given.differs(path));
        }
        self.bytes = self.bytes.saturating_add(metadata.len());
        self.pending.push((path.to_owned(), metadata.clone()));
        self.found.insert(path.to_owned(), Found::File(None));
        Ok(())
    }

    /// Adds a link. A link to a missing file is left out: its copy would lead nowhere too.
    fn add_link(&mut self, path: &Path) {
        if let Ok(target) = fs::canonicalize(path) {
            let target = Found::Link(self.in_project(&target).unwrap_or(target));
            self.found.entry(path.to_owned()).or_insert(target);
        }
    }

    /// Returns the path of a file without links as the extension names it, if it is in the project.
    fn in_project(&self, real: &Path) -> Option<PathBuf> {
        if let Ok(below) = real.strip_prefix(&self.real) {
            return Some(plain_join(&self.given.folder.dir, below));
        }
        real.starts_with(self.given.project)
            .then(|| real.to_owned())
    }

    /// Adds a file or a link to a file, and its target.
    fn add_path(&mut self, path: &Path) -> Result<(), CoverageError> {
        let Some(target) = self.add_links(path)? else {
            return Ok(());
        };
        let metadata = fs::symlink_metadata(&target);
        let metadata = metadata.map_err(|source| self.given.unreadable(&target, source))?;
        if metadata.is_file() {
            self.add_file(&target, &metadata)?;
        }
        self.check_limits(self.found.len())
    }

    /// Adds the links of a path, and returns its target. Returns `None` if the entry itself is a link out
    /// of the project, because it is read through the link.
    fn add_links(&mut self, path: &Path) -> Result<Option<PathBuf>, CoverageError> {
        let real = fs::canonicalize(path);
        let real = real.map_err(|source| self.given.unreadable(path, source))?;
        let target = self.in_project(&real);
        if path == self.given.entry {
            return Ok(target);
        }
        let Some(target) = target else {
            return Err(self.leaves(path, &real));
        };
        let above = |path: &&Path| *path != self.given.project && *path != self.given.folder.dir;
        let parts: Vec<PathBuf> = path
            .ancestors()
            .take_while(above)
            .map(Path::to_owned)
            .collect();
        for part in parts {
            if part.is_symlink() {
                self.add_link(&part);
            }
        }
        Ok(Some(target))
    }

    /// Reads files, and adds what they import.
    fn read(&mut self, batch: &[(PathBuf, Metadata)]) -> Result<(), CoverageError> {
        let given = self.given;
        let read = map_parallel(batch, |(path, metadata)| given.contents(path, metadata));
        let mut imports = Vec::new();
        for ((path, _), read) in batch.iter().zip(read) {
            let (mut file, named) = read?;
            imports.extend(named.into_iter().map(|name| (path.clone(), name)));
            file.target = self.real_path(path);
            let found = Found::File(Some(Box::new(file)));
            self.found.insert(path.clone(), found);
        }
        for (path, name) in imports {
            self.add_import(&path, &name)?;
        }
        Ok(())
    }

    /// Adds what a file imports by `name`, if it is in the project.
    fn add_import(&mut self, from: &Path, name: &str) -> Result<(), CoverageError> {
        let dir = from.parent().unwrap_or(from);
        if !self.imported.insert((dir.to_owned(), name.to_owned())) {
            return Ok(());
        }
        if self.imported.len() > MAX_IMPORTS {
            let folder = self.folder();
            return Err(CoverageError::TooMuch {
                problem: format!("the scripts of `{folder}` have more than {MAX_IMPORTS} imports"),
                hint: MAKE_SMALLER,
            });
        }
        if name == "." || name == ".." || name.starts_with("./") || name.starts_with("../") {
            return match relative_import(dir, name) {
                Some(path) if path.starts_with(self.given.project) => self.add_path(&path),
                Some(_) | None => Ok(()),
            };
        }
        let Some(package) = package_name(name) else {
            return Ok(());
        };
        let in_project = dir
            .ancestors()
            .take_while(|dir| dir.starts_with(self.given.project));
        let folders = in_project.filter(|dir| !dir.ends_with(MODULES));
        let mut candidates = folders.map(|dir| dir.join(MODULES).join(&package));
        let Some(found) = candidates.find(|candidate| candidate.is_dir()) else {
            return Ok(());
        };
        let target = self.add_links(&found)?;
        target.map_or(Ok(()), |target| self.add_folder(&target))
    }

    /// Checks the links and returns the files.
    fn finish(self) -> Result<Vec<CoveredFile>, CoverageError> {
        let project = self.given.project;
        let mut covered = Vec::with_capacity(self.found.len());
        for (path, found) in &self.found {
            // The hook itself is read separately.
            if path == self.given.entry {
                continue;
            }
            match found {
                Found::File(Some(file)) => covered.push((**file).clone()),
                Found::File(None) => {}
                Found::Link(target) => {
                    if !self.has_copy(target) {
                        // A link to an empty folder is left out, as the folder is.
                        // A script does not find what is behind a link out of its folder.
                        let is_of_script = self.given.folder.is_of_script;
                        if is_of_script || target.ancestors().any(|dir| self.walked.contains(dir)) {
                            continue;
                        }
                        return Err(self.leaves(path, target));
                    }
                    let link = relative(path.parent().unwrap_or(path), target);
                    covered.push(CoveredFile {
                        path: shown(path, project),
                        target: self.real_path(target),
                        sha256: hex_digest(link.as_os_str().as_encoded_bytes()),
                        link: Some(link),
                        ..CoveredFile::default()
                    });
                }
            }
        }
        Ok(covered)
    }

    fn leaves(&self, link: &Path, target: &Path) -> CoverageError {
        CoverageError::LinkLeaves {
            link: shown(link, self.given.project),
            target: target.to_owned(),
        }
    }

    /// Returns whether the copies have a file or folder of the project. A folder is there if a file below
    /// it is.
    fn has_copy(&self, path: &Path) -> bool {
        let mut below = self.found.range(path.to_owned()..);
        let first = below.next();
        path.starts_with(self.given.project) && first.is_some_and(|(it, _)| it.starts_with(path))
    }

    fn real_path(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix(&self.given.folder.dir);
        below.map_or_else(|_| path.to_owned(), |below| plain_join(&self.real, below))
    }
}

const MODULES: &str = "node_modules";

/// Returns whether a file or folder next to a script changes without a person who edits it, or is approved by
/// itself: a log, compiled Python, a hook file.
fn changes_by_itself(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let is_hook_file = || {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let in_hook_folder = path.parent().is_some_and(is_hook_folder);
        let is_settings = HOOK_FILES
            .iter()
            .any(|known| name.starts_with(known.as_bytes()));
        let is_one_of_many = || path.parent().is_some_and(|dir| dir.ends_with("hooks.d"));
        extension.is_some_and(|it| FORMATS.contains(&it))
            && ((in_hook_folder && is_settings) || is_one_of_many())
    };
    path.ends_with("__pycache__") || extension == Some("log") || is_hook_file()
}

/// Returns the existing file that a relative import means.
fn relative_import(dir: &Path, name: &str) -> Option<PathBuf> {
    let path = normalized(&dir.join(name));
    let with = |end: &str| {
        let mut path = path.clone().into_os_string();
        path.push(end);
        PathBuf::from(path)
    };
    // TypeScript sources import each other by the names of their compiled files.
    let compiled = path.extension().and_then(|extension| extension.to_str());
    let source = match compiled {
        Some("js") => Some(path.with_extension("ts")),
        Some("mjs") => Some(path.with_extension("mts")),
        Some("cjs") => Some(path.with_extension("cts")),
        Some(_) | None => None,
    };
    let mut candidates = ENDS.iter().map(|end| with(end)).chain(source);
    candidates.find(|candidate| candidate.is_file())
}

/// Returns the name of the package that an import names. `None` if it names a built-in module or a URL.
fn package_name(import: &str) -> Option<PathBuf> {
    if import.contains(':') || import.starts_with(['/', '#', '.']) {
        return None;
    }
    let parts = if import.starts_with('@') { 2 } else { 1 };
    let name: PathBuf = import.split('/').take(parts).collect();
    let mut components = name.components();
    let is_name = components.all(|part| matches!(part, Component::Normal(_)));
    (is_name && name.components().count() == parts).then_some(name)
}

/// Returns whether a file is the `package.json` of an installed package.
fn is_package_description(path: &Path) -> bool {
    let is = |dir: Option<&Path>| dir.is_some_and(|dir| dir.ends_with(MODULES));
    let package = path.parent();
    let above = package.and_then(Path::parent);
    let is_scope = || {
        let name = above.and_then(Path::file_name);
        name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"@"))
            && is(above.and_then(Path::parent))
    };
    path.ends_with("package.json") && (is(above) || is_scope())
}

/// Returns the packages that a `package.json` names.
fn dependencies(text: &str) -> Vec<String> {
    const KEYS: [&str; 3] = ["dependencies", "optionalDependencies", "peerDependencies"];
    let description: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let lists = KEYS
        .iter()
        .filter_map(|key| description.as_ref()?.get(key)?.as_object());
    let names: BTreeSet<String> = lists.flat_map(|list| list.keys().cloned()).collect();
    names.into_iter().collect()
}

/// Returns the path from a folder to a file.
fn relative(dir: &Path, target: &Path) -> PathBuf {
    let shared = dir
        .components()
        .zip(target.components())
        .take_while(|(one, other)| one == other)
        .count();
    let up = dir.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(target.components().skip(shared)).collect()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::file_memory::KnownFile;

    /// A project, with an extension in `ext`.
    struct Project {
        _home: tempfile::TempDir,
        dir: PathBuf,
    }

    impl Project {
        /// Creates a project with these files, one a line: a path, a colon, and the text.
        fn new(files: &str) -> Self {
            let home = tempfile::tempdir().unwrap();
            let dir = fs::canonicalize(home.path()).unwrap().join("project");
            let project = Self { _home: home, dir };
            for line in files.lines().filter(|line| !line.trim().is_empty()) {
                let (path, text) = line.trim().split_once(':').unwrap();
                project.write(path, text.trim());
            }
            project
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn link(&self, path: &str, target: impl AsRef<Path>) {
            let path = self.dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, path).unwrap();
        }

        fn cover(&self, memory: &FileMemory) -> Result<Vec<CoveredFile>, CoverageError> {
            self.compare(memory, None, &CoverageBudget::default())
        }

        fn compare(
            &self,
            memory: &FileMemory,
            approved: Option<&ApprovedFiles>,
            budget: &CoverageBudget,
        ) -> Result<Vec<CoveredFile>, CoverageError> {
            let folder = ExtensionFolder::own(self.dir.join("ext"));
            CoverageSearch {
                project: &self.dir,
                folder: &folder,
                entry: &self.dir.join("ext/index.js"),
                memory,
                // Every word of a script is an import.
                imports: |text| text.split_whitespace().map(str::to_owned).collect(),
                approved,
                budget,
            }
            .run()
        }

        fn error(&self) -> String {
            let error = self.cover(&FileMemory::default()).unwrap_err();
            error.to_string()
        }

        /// Returns the files as if they had been approved.
        fn approved(&self) -> ApprovedFiles {
            let covered = self.cover(&FileMemory::default()).unwrap();
            let entry = Path::new("ext/index.js");
            let entry = CoveredFile::read(&self.dir.join(entry), entry).unwrap();
            ApprovedFiles::new(covered, Some(entry))
        }

        /// Returns the covered paths, each link with the path in its copy.
        fn paths(&self) -> Vec<String> {
            let covered = self.cover(&FileMemory::default()).unwrap();
            let shown = |file: CoveredFile| match file.link {
                Some(link) => format!("{} -> {}", file.path.display(), link.display()),
                None => file.path.display().to_string(),
            };
            covered.into_iter().map(shown).collect()
        }
    }

    #[test]
    fn a_folder_is_covered_without_its_repository_and_what_cannot_be_copied() {
        let project = Project::new(
            "
            ext/index.js:
            ext/a.md:
            ext/sub/.hidden:
            ext/.git/config:
            ext/sub/.git:
            other.md:
            ",
        );
        project.link("ext/lost", "missing");
        fs::create_dir(project.dir.join("ext/empty")).unwrap();
        project.link("ext/to-empty", "empty");
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            project.dir.join("ext/pipe"),
            rustix::fs::Mode::RUSR,
        )
        .unwrap();
        assert_eq!(project.paths(), ["ext/a.md", "ext/sub/.hidden"]);
    }

    #[test]
    fn packages_are_found_where_node_finds_them_with_what_they_need() {
        let project = Project::new(
            r#"
            ext/index.js: a @s/b/deep node:fs fs absent ./lib/x.js ../../outside
            ext/lib/x.ts: ../../top/y
            top/y.ts: c
            ext/node_modules/a/package.json: {"peerDependencies": {"d": "1"}}
            ext/node_modules/a/index.js: not-searched
            node_modules/a/index.js:
            node_modules/@s/b/package.json: {"dependencies": {"e": "1"}}
            node_modules/@s/b/node_modules/e/index.js:
            node_modules/@s/other/index.js:
            node_modules/c/index.js:
            node_modules/d/index.js:
            node_modules/e/index.js:
            node_modules/not-searched/index.js:
            "#,
        );
        assert_eq!(
            project.paths(),
            [
                "ext/lib/x.ts",
                "ext/node_modules/a/index.js",
                "ext/node_modules/a/package.json",
                "node_modules/@s/b/node_modules/e/index.js",
                "node_modules/@s/b/package.json",
                "node_modules/c/index.js",
                "node_modules/d/index.js",
                "top/y.ts",
            ]
        );
    }

    #[test]
    fn links_of_package_managers_are_kept_as_links() {
        let project = Project::new(
            r#"
            ext/index.js: a w
            node_modules/.pnpm/a@1/node_modules/a/package.json: {"dependencies": {"b": "1"}}
            node_modules/.pnpm/b@2/node_modules/b/index.js:
            node_modules/.pnpm/c@3/node_modules/c/index.js:
            packages/w/index.js:
            "#,
        );
        project.link("node_modules/a", ".pnpm/a@1/node_modules/a");
        project.link(
            "node_modules/.pnpm/a@1/node_modules/b",
            "../../b@2/node_modules/b",
        );
        project.link("node_modules/w", project.dir.join("packages/w"));
        assert_eq!(
            project.paths(),
            [
                "node_modules/.pnpm/a@1/node_modules/a/package.json",
                "node_modules/.pnpm/a@1/node_modules/b -> ../../b@2/node_modules/b",
                "node_modules/.pnpm/b@2/node_modules/b/index.js",
                "node_modules/a -> .pnpm/a@1/node_modules/a",
                "node_modules/w -> ../packages/w",
                "packages/w/index.js",
            ]
        );
    }

    #[test]
    fn links_that_lead_out_are_errors() {
        for target in ["../other", "../../..", "/etc/passwd", "sub/../../other"] {
            let project = Project::new(
                "
            ext/index.js:
            ext/sub/a:
            other:
            ",
            );
            project.link("ext/link", target);
            let error = project.error();
            assert!(
                error.starts_with("`ext/link` is a link to `/"),
                "{target}: {error}"
            );
        }
        let project = Project::new("ext/index.js: a");
        let outside = project.dir.with_file_name("outside");
        fs::create_dir_all(&outside).unwrap();
        project.link("node_modules/a", &outside);
        let error = project.error();
        assert!(
            error.starts_with("`node_modules/a` is a link to `/"),
            "{error}"
        );
    }

    #[test]
    fn a_folder_that_is_reached_by_a_link_is_covered_under_its_name() {
        let project = Project::new(
            "
            real/index.js: a
            real/b.md:
            real/sub/c.md:
            node_modules/a/index.js:
            ",
        );
        project.link("ext", "real");
        project.link("real/link", "sub");
        assert_eq!(
            project.paths(),
            [
                "ext/b.md",
                "ext/link -> sub",
                "ext/sub/c.md",
                "node_modules/a/index.js"
            ]
        );
    }

    #[test]
    fn too_many_bytes_are_an_error_that_names_them() {
        let project = Project::new("ext/index.js: a\nnode_modules/a/index.js:");
        let large = fs::File::create(project.dir.join("node_modules/a/data")).unwrap();
        large.set_len(MAX_COVERED_BYTES).unwrap();
        assert_eq!(
            project.error(),
            "`ext` and the packages that it imports have 257 MiB; an approval covers at most 256 MiB"
        );
    }

    #[test]
    fn what_is_known_is_not_read_again_until_it_changes() {
        let project = Project::new("ext/index.js:\next/x.js: a");
        project.write("node_modules/a/index.js", "");
        let path = project.dir.join("ext/x.js");
        let stamp = FileStamp::of(&fs::metadata(&path).unwrap()).unwrap();
        let known = KnownFile {
            stamp,
            sha256: "known".to_owned(),
            imports: Vec::new(),
        };
        let memory = FileMemory {
            originals: [(PathBuf::from("ext/x.js"), known)].into(),
            ..FileMemory::default()
        };
        let covered = project.cover(&memory).unwrap();
        assert_eq!(covered.len(), 1, "its imports are known too");
        assert_eq!(covered[0].sha256, "known");
        // A new file with the same name, size and time.
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "b").unwrap();
        fs::File::open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(project.cover(&memory).unwrap()[0].sha256, hex_digest(b"b"));
    }

    #[test]
    fn a_file_that_was_not_approved_is_not_read_after_the_approval() {
        // Reading one of these files would take longer than anyone waits.
        let huge = |path: &Path| fs::File::create(path).unwrap().set_len(1 << 42).unwrap();
        for planted in ["ext/planted.js", "ext/x.js", "node_modules/a/data"] {
            let project = Project::new(
                "
            ext/index.js: ./x.js a
            ext/x.js:
            node_modules/a/index.js:
            ",
            );
            let (memory, budget) = (FileMemory::default(), CoverageBudget::default());
            let approved = project.approved();
            let digests = |covered: Vec<CoveredFile>| -> Vec<(PathBuf, String)> {
                let covered = covered.into_iter();
                covered.map(|file| (file.path, file.sha256)).collect()
            };
            let before = project.compare(&memory, Some(&approved), &budget);
            let all = project.cover(&memory);
            assert_eq!(digests(before.unwrap()), digests(all.unwrap()));
            huge(&project.dir.join(planted));
            let error = project.compare(&memory, Some(&approved), &budget);
            assert_eq!(
                error.unwrap_err().to_string(),
                format!("`{planted}` differs from what was approved")
            );
        }
    }

    #[test]
    fn a_changed_file_of_the_same_size_is_not_searched_for_imports() {
        let project = Project::new(
            "
            ext/index.js: ./x.js
            ext/x.js: a
            node_modules/a/index.js:
            node_modules/b/index.js:
            ",
        );
        let approved = project.approved();
        project.write("ext/x.js", "b");
        let (memory, budget) = (FileMemory::default(), CoverageBudget::default());
        let error = project.compare(&memory, Some(&approved), &budget);
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "`ext/x.js` differs from what was approved");
    }

    #[test]
    fn the_extensions_of_a_folder_have_a_limit_together() {
        let project = Project::new("ext/index.js:\next/a.md:");
        for (files, bytes) in [(MAX_FILES_TOGETHER, 0), (0, MAX_BYTES_TOGETHER + 1)] {
            let budget = CoverageBudget::default();
            let memory = FileMemory::default();
            project.compare(&memory, None, &budget).unwrap();
            assert_eq!(budget.files.load(Ordering::Relaxed), 2);
            budget.spend(files, bytes);
            let error = project.compare(&memory, None, &budget).unwrap_err();
            assert_eq!(
                error.to_string(),
                "the extensions next to `ext` need more than 40000 files or 1024 MiB together"
            );
        }
    }

    #[test]
    fn a_name_with_control_characters_is_shown_on_one_line() {
        let project = Project::new("ext/index.js:");
        project.link("ext/a\u{1b}[31m\nb", "/etc");
        assert_eq!(
            project.error(),
            "`ext/a\\u{1b}[31m\\nb` is a link to `/etc`, which is not part of the extension"
        );
    }
}
