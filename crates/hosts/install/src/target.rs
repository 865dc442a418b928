//! One agent's hook configuration, for the user or one project.

use std::path::PathBuf;

use tenterhook_systems::host::HostAgent;
use tenterhook_systems::host::installation::{HookPlace, OwnFile, PlaceForm};

use crate::entry::NewEntry;
use crate::install_error::InstallError;
use crate::list_form::{EntryFn, ListForm};
use crate::machine::Machine;
use crate::plan::InstallScope;
use crate::record::RecordFolder;

/// One agent's hook configuration, for the user or one project.
#[derive(Debug)]
pub(crate) struct Target<'m> {
    pub(crate) machine: &'m Machine,
    pub(crate) host: &'static HostAgent,
    pub(crate) scope: InstallScope,
    place: HookPlace,
    /// The file, or the folder of files that belong to Tenterhook alone.
    pub(crate) base: PathBuf,
    /// The beginning of every command line.
    pub(crate) prefix: String,
}

impl<'m> Target<'m> {
    pub(crate) fn new(
        machine: &'m Machine,
        host: &'static HostAgent,
        scope: &InstallScope,
    ) -> Result<Self, InstallError> {
        let (place, name) = match scope {
            InstallScope::User => (host.installation.user, "a user"),
            InstallScope::Project(_) => (host.installation.project, "a project"),
        };
        let place = place.ok_or(InstallError::NoPlace {
            title: host.title,
            scope: name,
        })?;
        let base = match scope {
            InstallScope::User => machine.path(place.path, place.variable),
            InstallScope::Project(folder) => folder.join(place.path),
        };
        Ok(Self {
            machine,
            host,
            scope: scope.clone(),
            place,
            base,
            prefix: machine.line_prefix(host),
        })
    }

    /// Returns where the entries are, unless the files belong to Tenterhook alone.
    pub(crate) fn list(&self) -> Option<(ListForm, EntryFn)> {
        ListForm::of(&self.place.form)
    }

    /// Returns the entry of every event.
    pub(crate) fn entries(&self, entry: EntryFn) -> Vec<NewEntry> {
        let entries = self.host.events.iter().map(|event| {
            let command = format!("{}{}", self.prefix, event.name);
            NewEntry {
                event: event.name.to_owned(),
                value: entry(event, &command),
            }
        });
        entries.collect()
    }

    /// Returns the files that belong to Tenterhook alone, with their paths.
    pub(crate) fn own_files(&self) -> Vec<(PathBuf, OwnFile)> {
        let PlaceForm::Own { files } = &self.place.form else {
            return Vec::new();
        };
        let files = files(&self.machine.shim().display().to_string());
        let with_path = |file: OwnFile| {
            let path = if file.path.is_empty() {
                self.base.clone()
            } else {
                self.base.join(&file.path)
            };
            (path, file)
        };
        files.into_iter().map(with_path).collect()
    }

    /// Returns the mode of a new file. Others may read a project's files.
    pub(crate) const fn mode(&self, is_executable: bool) -> u32 {
        match (&self.scope, is_executable) {
            (InstallScope::User, false) => 0o600,
            (InstallScope::User, true) => 0o700,
            (InstallScope::Project(_), false) => 0o644,
            (InstallScope::Project(_), true) => 0o755,
        }
    }

    pub(crate) fn record_folder(&self) -> RecordFolder {
        RecordFolder::new(&self.machine.data, self.host.name, self.scope.project())
    }
}
