//! The sources of the hooks of a session.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tenterhook_hookfile::EXTENSIONS;
use tenterhook_trust::TENTERHOOK;

use crate::folder::{FolderSearch, is_script_or_program};
use crate::layers::Layers;
use crate::options::LoadOptions;

/// The sources of hooks, and the options that decide which hooks run.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The folders in which hook files are searched.
    pub layers: Layers,
    /// The hook files that the user named, for example on the command line.
    pub named: Vec<PathBuf>,
    /// The options of loading hook files.
    pub options: LoadOptions,
    /// The search for hooks in folders.
    pub search: FolderSearch,
    /// The folder for data from which approvals are read on every reload. If it is `None`, the approvals
    /// of the options stay in use.
    pub approvals: Option<PathBuf>,
}

impl Sources {
    /// Returns the hook files and folders of these layers.
    ///
    /// Hooks of folders run in the directory of the layers, or else in the directory of the options.
    pub fn new(layers: Layers, options: LoadOptions) -> Self {
        let directory = layers.start.as_ref().unwrap_or(&options.directory);
        Self {
            search: FolderSearch::of_layers(&layers).directory(directory.clone()),
            layers,
            named: Vec::new(),
            options,
            approvals: None,
        }
    }

    /// Reads approvals from this folder for data on every reload.
    #[must_use]
    pub fn with_approvals(mut self, data: impl Into<PathBuf>) -> Self {
        self.approvals = Some(data.into());
        self
    }

    /// Returns the folders and files from which hooks may come, whether they exist or not.
    pub fn places(&self) -> Vec<PathBuf> {
        let layers = &self.layers;
        let mut places: BTreeSet<PathBuf> = self.search.folder_paths().into_iter().collect();
        let own = [&layers.system, &layers.user]
            .into_iter()
            .flatten()
            .cloned();
        places.extend(own);
        let projects = layers.approved_projects(&self.options.trust).into_iter();
        places.extend(projects.map(|project| project.dir.join(TENTERHOOK)));
        places.extend(self.named.iter().cloned());
        let approvals = self.approvals.iter();
        places.extend(approvals.map(|dir| dir.join("trust")));
        places.into_iter().collect()
    }

    /// Adds a file that the user names to the other sources: a script, a program, or else a hook file.
    #[must_use]
    pub fn with_named(mut self, path: &Path) -> Self {
        if is_script_or_program(path) {
            self.search = self.search.file(path);
        } else {
            self.named.push(path.to_owned());
        }
        self
    }

    /// Adds the one file whose hooks the user wants to try: a hook file, or a script or an executable of any hook
    /// system. A file that the user names needs no approval.
    #[must_use]
    pub fn with_file(mut self, path: &Path) -> Self {
        let extension = path.extension().and_then(OsStr::to_str);
        let is_hook_file = extension.is_some_and(|extension| {
            let mut known = EXTENSIONS.iter();
            known.any(|known| known.eq_ignore_ascii_case(extension))
        });
        if is_hook_file {
            self.named.push(path.to_owned());
        } else {
            self.search = self.search.file(path);
        }
        self
    }
}
