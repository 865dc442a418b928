//! The sources that scripts and programs of a folder may load: the files next to them and in subfolders.
//! An extension of a project needs more: every file of its folder, and the packages that it imports.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tenterhook_files::hex_digest;
use tenterhook_process::is_executable;
use tenterhook_trust::{
    ApprovalItem, CoverageBudget, CoveredFile, ExtensionFolder, add, sources_below,
};

use super::extension_files::has_prefix;
use super::hook_folder::HookFolder;

/// The sources that files of a folder may load. They are read at most once, when the first file needs them.
#[derive(Debug)]
pub(super) struct LoadableSources {
    sources: Vec<PathBuf>,
    pub(super) has_too_many: bool,
    files: OnceCell<Result<Vec<CoveredFile>, String>>,
    /// The folder of an extension that needs an approval. Its files are found separately.
    pub(super) extension: Option<ExtensionSources>,
}

/// Where the files of an extension that needs an approval are found.
#[derive(Debug, Clone)]
pub(super) struct ExtensionSources {
    pub(super) folder: Rc<ExtensionFolder>,
    /// What the extensions of one folder may cover together.
    pub(super) budget: Rc<CoverageBudget>,
}

impl LoadableSources {
    /// Finds the sources next to the hooks of a folder.
    pub(super) fn of_folder(folder: &HookFolder) -> Self {
        let is_needed = folder.project.is_some() || folder.kind.scripts.is_some();
        let is_hook = |path: &Path| match folder.kind.extension_programs() {
            Some(programs) => has_prefix(programs, path),
            None => is_executable(path) || folder.kind.language(path).is_some(),
        };
        let is_own = |path: &Path| path.parent() == Some(&folder.dir) && is_hook(path);
        Self::new(is_needed.then_some(&folder.dir), |path| !is_own(path))
    }

    /// Describes the files of an extension that needs an approval.
    pub(super) fn of_extension(extension: ExtensionSources) -> Self {
        Self {
            extension: Some(extension),
            ..Self::new(None, |_| false)
        }
    }

    /// Finds the wanted sources in a folder and below it.
    pub(super) fn new(dir: Option<&Path>, is_wanted: impl Fn(&Path) -> bool) -> Self {
        let sources = dir.map(|dir| sources_below(dir, is_wanted));
        Self {
            has_too_many: matches!(sources, Some(None)),
            sources: sources.flatten().unwrap_or_default(),
            files: OnceCell::new(),
            extension: None,
        }
    }

    /// Returns a digest of all sources.
    pub(super) fn digest(&self, base: &Path) -> Result<String, String> {
        Ok(digest_sources(self.files(base)?))
    }

    /// Returns the sources, with paths relative to `base`.
    pub(super) fn files(&self, base: &Path) -> Result<&[CoveredFile], String> {
        let files = self.files.get_or_init(|| {
            let mut files = Vec::new();
            for path in &self.sources {
                add(&mut files, path, base)?;
            }
            Ok(files)
        });
        files.as_deref().map_err(Clone::clone)
    }
}

/// Returns a digest of the approved files other than the hook itself.
pub(super) fn digest_approved(item: &ApprovalItem) -> String {
    digest_sources(item.files.iter().skip(1).chain(&item.covered))
}

/// Returns a digest of sources.
pub(super) fn digest_sources<'a>(files: impl IntoIterator<Item = &'a CoveredFile>) -> String {
    let mut text = String::new();
    for file in files {
        text.push_str(&file.sha256);
        text.push_str(&file.path.to_string_lossy());
        // No path contains it, so two files cannot be read as one.
        text.push('\0');
    }
    hex_digest(text.as_bytes())
}
