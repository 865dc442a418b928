//! A folder that is searched for hooks.

use std::path::{Path, PathBuf};

use tenterhook_engine::Layer;
use tenterhook_systems::hook_folder::{FolderFiles, FolderKind};
use tenterhook_trust::{Project, Trust};

/// A folder of executables, scripts or extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFolder {
    /// The folder. It need not exist.
    pub dir: PathBuf,
    /// The prefix of the names of its files: `org/repo/` for a plugin.
    pub prefix: String,
    /// The layer that its hooks belong to.
    pub layer: Layer,
    /// Its kind.
    pub kind: &'static FolderKind,
    /// The project that it belongs to. Hooks of a project need an approval.
    pub project: Option<Project>,
    /// The only file of the folder that is loaded, if a call names one. `None` means every file.
    pub file: Option<PathBuf>,
}

impl HookFolder {
    /// Returns whether the command line names it: a folder or a file of scripts.
    pub(super) fn is_named(&self) -> bool {
        self.layer == Layer::Explicit && matches!(self.kind.files, FolderFiles::Packages(_))
    }

    /// Returns the folder of the sources that a script may load: its own, or its package's. A file that
    /// the command line names has none, because unrelated files may be next to it. A program has none
    /// either.
    pub(super) fn sources_of(&self, path: &Path) -> Option<PathBuf> {
        let is_program = self.kind.extension_programs().is_some();
        if is_program || self.file.is_some() || (self.is_named() && self.dir == path) {
            return None;
        }
        let mut below = path.strip_prefix(&self.dir).ok()?.components();
        let first = below.next()?;
        Some(match below.next() {
            Some(_) => self.dir.join(first),
            None => self.dir.clone(),
        })
    }

    /// Returns the name of a file: its path below the folder.
    pub(super) fn name_of(&self, path: &Path) -> String {
        let base = if self.is_named() {
            self.dir.parent()
        } else {
            Some(self.dir.as_path())
        };
        let name = base.map_or(path, |base| path.strip_prefix(base).unwrap_or(path));
        name.to_string_lossy().into_owned()
    }
}

/// Returns whether the hooks of a folder are in force without an approval. Approved hooks of a project
/// run from their copies, even if the folder has changed.
pub(super) fn is_in_force(folder: &HookFolder, trust: &Trust) -> bool {
    folder.project.is_none() || trust.approvals().is_none()
}
