//! Locates folders of hooks: the paths that the systems declare, below the folders of the layers.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tenterhook_engine::Layer;
use tenterhook_hookfile::SourceProblem;
use tenterhook_hookfile::link::{dead_link, dead_target};
use tenterhook_systems::SYSTEMS;
use tenterhook_systems::hook_folder::{
    FolderBase, FolderKind, FolderLocation, FolderPath, MAX_FILES, Selection,
};
use tenterhook_trust::{Project, Trust};

use super::hook_folder::HookFolder;
use super::load_problem::{too_many_files_in_folder, unreadable};
use crate::layers::Layers;
use tenterhook_systems::folder_name::FolderName;

/// The selected members of collections such as workspaces.
#[derive(Debug, Clone, Default)]
pub(super) struct Selections(Vec<(&'static str, FolderName)>);

impl Selections {
    /// Selects a member of a collection. `None` selects its default.
    pub(super) fn set(&mut self, selection: &Selection, name: Option<FolderName>) {
        self.0.retain(|(known, _)| *known != selection.name);
        self.0.extend(name.map(|name| (selection.name, name)));
    }

    /// Returns the selected member of a collection.
    fn selected(&self, selection: &Selection) -> Option<&FolderName> {
        let mut known = self.0.iter();
        let found = known.find(|(known, _)| *known == selection.name);
        found.map(|(_, name)| name)
    }

    /// Returns the name of the member in use: the selected one, or the default.
    fn in_use(&self, selection: &Selection) -> &str {
        self.selected(selection)
            .map_or(selection.default, FolderName::as_str)
    }

    /// Returns whether a path in a project may have hooks in force: it is not in an unselected member of a
    /// collection.
    pub(super) fn allow(&self, source: &Path) -> bool {
        let mut selections = locations()
            .filter(|(_, location)| location.bases.contains(&FolderBase::Project))
            .filter_map(|(_, location)| location.selection());
        selections.all(|selection| {
            let below = source.strip_prefix(selection.collection);
            below.map_or(true, |below| below.starts_with(self.in_use(selection)))
        })
    }
}

/// The folders to scan.
#[derive(Debug, Default)]
pub(super) struct LocatedFolders {
    pub(super) folders: Vec<HookFolder>,
    /// One warning for each selected member that does not exist.
    pub(super) warnings: Vec<String>,
    /// Folders that exist but cannot be read.
    pub(super) broken: Vec<(HookFolder, SourceProblem)>,
}

/// Returns every location with the kind of its folders, in order of precedence below one base.
fn locations() -> impl Iterator<Item = (&'static FolderKind, &'static FolderLocation)> {
    let mut systems = SYSTEMS.to_vec();
    systems.sort_by_key(|system| system.folder_rank);
    let kinds = systems.into_iter().flat_map(|system| system.folders);
    kinds.flat_map(|kind| kind.locations.iter().map(|location| (*kind, location)))
}

/// Returns the folders of layers in order of precedence.
pub(super) fn locate_folders(
    layers: &Layers,
    selections: &Selections,
    trust: &Trust,
) -> LocatedFolders {
    let home = layers
        .home
        .as_ref()
        .map(|home| fs::canonicalize(home).unwrap_or_else(|_| home.clone()));
    let mut locator = FolderLocator {
        located: LocatedFolders::default(),
        home: home.as_deref(),
        selections,
        trust,
    };
    locator.add_base(FolderBase::Machine, layers.system.as_deref(), Layer::System);
    locator.add_base(FolderBase::HomeBeforeProjects, locator.home, Layer::User);
    let projects = layers.approved_projects(trust);
    // The project nearest to the working directory has precedence.
    for project in projects.iter().rev() {
        locator.add_project(project);
    }
    locator.warn_of_missing(&projects);
    locator.add_base(FolderBase::User, layers.user.as_deref(), Layer::User);
    locator.add_base(FolderBase::Home, locator.home, Layer::User);
    locator.located
}

/// Returns the folders of a home whose subfolders may have hooks.
pub(super) fn home_collections(home: &Path) -> Vec<PathBuf> {
    let in_home = [FolderBase::Home, FolderBase::HomeBeforeProjects];
    let locations = locations()
        .filter(|(_, location)| location.bases.iter().any(|base| in_home.contains(base)));
    let collections = locations.filter_map(|(_, location)| match location.path {
        FolderPath::Fixed(_) => None,
        FolderPath::Selected(selection) => Some(selection.collection),
        FolderPath::Each { collection, .. } => Some(collection),
    });
    let mut collections: Vec<PathBuf> = collections.map(|path| home.join(path)).collect();
    collections.dedup();
    collections
}

/// Locates folders. Collects those that were found so far.
struct FolderLocator<'a> {
    located: LocatedFolders,
    home: Option<&'a Path>,
    selections: &'a Selections,
    trust: &'a Trust,
}

impl FolderLocator<'_> {
    /// Adds the folders below one base of a layer that needs no approval.
    fn add_base(&mut self, base: FolderBase, dir: Option<&Path>, layer: Layer) {
        let Some(dir) = dir else {
            return;
        };
        for (kind, location) in locations().filter(|(_, it)| it.bases.contains(&base)) {
            let folder = HookFolder {
                dir: dir.to_owned(),
                prefix: String::new(),
                layer,
                kind,
                project: None,
                file: None,
            };
            let selected = location.selection().and_then(|selection| {
                let name = self.selections.selected(selection)?;
                Some((selection, name))
            });
            if let Some((selection, name)) = selected {
                let member = dir.join(selection.collection).join(name.as_str());
                if !member.is_dir() {
                    let warning = (selection.missing)(name.as_str(), &member);
                    self.located.warnings.push(warning);
                }
            }
            self.add(&folder, location.path);
        }
    }

    /// Adds the folders of a project.
    fn add_project(&mut self, project: &Project) {
        let is_home = self.home == Some(&*project.dir);
        for (kind, FolderLocation { bases, path }) in locations() {
            // If the project is the home folder, these hooks are the user's own.
            let is_users = is_home && bases.contains(&FolderBase::Home);
            if !bases.contains(&FolderBase::Project) || is_users {
                continue;
            }
            let folder = HookFolder {
                dir: project.dir.clone(),
                prefix: String::new(),
                layer: Layer::Project,
                kind,
                project: Some(project.clone()),
                file: None,
            };
            self.add(&folder, *path);
        }
    }

    /// Warns about selected members that no project has.
    fn warn_of_missing(&mut self, projects: &[Project]) {
        let in_projects =
            locations().filter(|(_, location)| location.bases.contains(&FolderBase::Project));
        for selection in in_projects.filter_map(|(_, location)| location.selection()) {
            let Some(name) = self.selections.selected(selection) else {
                continue;
            };
            let member = Path::new(selection.collection).join(name.as_str());
            if !projects.iter().any(|it| it.dir.join(&member).is_dir()) {
                let warning = (selection.missing)(name.as_str(), &member);
                self.located.warnings.push(warning);
            }
        }
    }

    /// Adds the folders with one path below `base.dir`.
    fn add(&mut self, base: &HookFolder, path: FolderPath) {
        let at = |path: PathBuf, prefix: String| HookFolder {
            dir: base.dir.join(path),
            prefix,
            ..base.clone()
        };
        match path {
            FolderPath::Fixed(path) => self.located.folders.push(at(path.into(), String::new())),
            FolderPath::Selected(selection) => {
                let name = self.selections.in_use(selection);
                let dir = Path::new(selection.collection).join(name);
                let folder = at(dir.join(selection.below), format!("{name}/"));
                self.located.folders.push(folder);
            }
            FolderPath::Each {
                collection,
                below,
                prefix,
            } => {
                for member in self.members(&at(collection.into(), String::new()), collection) {
                    let name = member.file_name().unwrap_or_default().to_string_lossy();
                    let prefix = prefix(&name);
                    self.located.folders.push(at(member.join(below), prefix));
                }
            }
        }
    }

    /// Returns the members of a collection, in the byte order of their names: those that exist, and those with approved
    /// hooks. Links to members are followed.
    fn members(&mut self, collection: &HookFolder, path: &str) -> Vec<PathBuf> {
        let dir = &collection.dir;
        let entries = match fs::read_dir(dir) {
            Err(error) if error.kind() == ErrorKind::NotFound && dead_link(dir).is_none() => {
                Ok(Vec::new())
            }
            read => read.and_then(|entries| {
                let entries = entries.take(MAX_FILES);
                entries.collect::<io::Result<Vec<_>>>()
            }),
        };
        let mut fail = |dir: PathBuf, problem: SourceProblem| {
            let folder = HookFolder {
                dir,
                ..collection.clone()
            };
            self.located.broken.push((folder, problem));
        };
        match (&entries, dead_link(dir)) {
            (Err(_), Some(link)) => fail(link.clone(), dead_target(&link)),
            (Err(error), None) => fail(dir.clone(), unreadable(error)),
            (Ok(entries), _) if entries.len() >= MAX_FILES => {
                fail(dir.clone(), too_many_files_in_folder());
            }
            (Ok(_), _) => {}
        }
        let mut members = Vec::new();
        for path in entries.into_iter().flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default();
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            if path.is_dir() {
                members.push(path);
            } else if path.is_symlink() && !is_hidden {
                let problem = dead_target(&path);
                fail(path, problem);
            }
        }
        if let Some(project) = &collection.project {
            members.extend(self.approved_members(project, path));
        }
        members.sort();
        members.dedup();
        members
    }

    /// Returns the members of a collection in a project that have approved hooks. They need not exist.
    fn approved_members(&self, project: &Project, collection: &str) -> Vec<PathBuf> {
        let approved = self
            .trust
            .approvals()
            .map(|approvals| approvals.approved(&project.dir));
        let sources = approved.into_iter().flatten().map(|it| &it.source);
        let below = sources.filter_map(|source| source.strip_prefix(collection).ok());
        let names = below.filter_map(|below| below.components().next());
        let dir = project.dir.join(collection);
        names.map(|name| dir.join(name)).collect()
    }
}
