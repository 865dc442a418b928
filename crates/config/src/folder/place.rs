//! Where folders of hooks are looked for.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tenterhook::Layer;

use super::scan::{MOST_FILES, too_many, unreadable};
use super::{HookFolder, Speaks, extension};
use crate::broken::Fault;
use crate::folder_name::FolderName;
use crate::layers::Layers;
use crate::link::{dead_link, dead_target};
use crate::project::{KODELET, MORPHIX, OPERATOR, PI, Project, TENTERHOOK, WORKSPACES};
use crate::trust::Trust;

/// The most entries of one folder of plugins.
const MAX_ENTRIES: usize = MOST_FILES;

/// The workspace that is meant where none is named.
const MAIN: &str = "main";
/// The profile that is meant where none is named.
const DEFAULT: &str = "default";

/// What was chosen of that of which there are several.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
    pub(super) workspace: Option<FolderName>,
    pub(super) profile: Option<FolderName>,
}

/// The folders that were found to be looked at.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) folders: Vec<HookFolder>,
    /// What was chosen and is not there.
    pub(super) warnings: Vec<String>,
    /// Folders that are there and cannot be looked at.
    pub(super) broken: Vec<(HookFolder, Fault)>,
}

/// Returns the folders of layers in the order in which they count.
pub(super) fn of_layers(layers: &Layers, choice: &Choice, trust: &Trust) -> Places {
    let mut places = Places::default();
    if let Some(dir) = &layers.system {
        places.add(dir.join("hooks"), Layer::System, Speaks::Tenterhook, None);
    }
    let home = layers
        .home
        .as_ref()
        .map(|home| fs::canonicalize(home).unwrap_or_else(|_| home.clone()));
    if let Some(home) = &home {
        places.add_profile(home, choice.profile.as_ref());
    }
    let projects = layers.approved_projects(trust);
    // The folder that is nearest to the work counts most.
    for project in projects.iter().rev() {
        let plugins = approved_plugins(project, trust);
        places.add_project(project, home.as_deref(), choice.workspace.as_ref(), plugins);
    }
    if let Some(name) = &choice.workspace {
        let has = |project: &Project| project.dir.join(WORKSPACES).join(name.as_str()).is_dir();
        if !projects.iter().any(has) {
            places.warnings.push(format!(
                "no project folder has a workspace `{name}`: there is no `{WORKSPACES}/{name}`"
            ));
        }
    }
    if let Some(dir) = &layers.user {
        places.add(dir.join("hooks"), Layer::User, Speaks::Tenterhook, None);
    }
    if let Some(home) = &home {
        let extensions = home.join(PI).join("agent/extensions");
        places.add(extensions, Layer::User, Speaks::Pi, None);
        places.add_kodelet(&home.join(KODELET), Layer::User, None, Vec::new());
    }
    places
}

/// Returns the folders of kodelet's plugins that have approved hooks in a project.
fn approved_plugins(project: &Project, trust: &Trust) -> Vec<PathBuf> {
    let approved = trust
        .approvals()
        .map(|approvals| approvals.approved(&project.dir));
    let plugins = Path::new(KODELET).join("plugins");
    let sources = approved
        .into_iter()
        .flatten()
        .map(|approved| &approved.source);
    let below = sources.filter_map(|source| source.strip_prefix(&plugins).ok());
    let names = below.filter_map(|below| below.components().next());
    names
        .map(|name| project.dir.join(&plugins).join(name))
        .collect()
}

/// Returns the folders of a home whose subfolders bring hooks.
pub(super) fn collections(home: &Path) -> [PathBuf; 2] {
    [
        home.join(KODELET).join("plugins"),
        home.join(OPERATOR).join("profiles"),
    ]
}

/// Says whether a folder of a project is looked at: of all workspaces one is.
pub(crate) fn is_in_force(source: &Path, workspace: Option<&FolderName>) -> bool {
    let Ok(below) = source.strip_prefix(WORKSPACES) else {
        return true;
    };
    below.starts_with(workspace.map_or(MAIN, FolderName::as_str))
}

impl Places {
    fn add(&mut self, dir: PathBuf, layer: Layer, speaks: Speaks, project: Option<&Project>) {
        self.add_named(dir, String::new(), layer, speaks, project);
    }

    fn add_named(
        &mut self,
        dir: PathBuf,
        prefix: String,
        layer: Layer,
        speaks: Speaks,
        project: Option<&Project>,
    ) {
        self.folders.push(HookFolder {
            dir,
            prefix,
            layer,
            speaks,
            project: project.cloned(),
        });
    }

    /// Adds the folder of Operator's active profile.
    fn add_profile(&mut self, home: &Path, chosen: Option<&FolderName>) {
        let name = chosen.map_or(DEFAULT, FolderName::as_str);
        let dir = home.join(OPERATOR).join("profiles").join(name);
        if chosen.is_some() && !dir.is_dir() {
            self.warnings.push(format!(
                "Operator has no profile `{name}`: there is no `{}`",
                dir.display()
            ));
        }
        let prefix = format!("{name}/");
        self.add_named(
            dir.join("hooks"),
            prefix,
            Layer::User,
            Speaks::Operator,
            None,
        );
    }

    fn add_project(
        &mut self,
        project: &Project,
        home: Option<&Path>,
        workspace: Option<&FolderName>,
        plugins: Vec<PathBuf>,
    ) {
        let (dir, layer, own) = (&project.dir, Layer::Project, Some(project));
        self.add(
            dir.join(TENTERHOOK).join("hooks"),
            layer,
            Speaks::Tenterhook,
            own,
        );
        self.add(
            dir.join(OPERATOR).join("hooks"),
            layer,
            Speaks::Operator,
            own,
        );
        self.add(dir.join(MORPHIX), layer, Speaks::Morphix, own);
        let name = workspace.map_or(MAIN, FolderName::as_str);
        let hooks = dir.join(WORKSPACES).join(name).join("hooks");
        self.add_named(hooks, format!("{name}/"), layer, Speaks::Morphix, own);
        self.add(dir.join(PI).join("extensions"), layer, Speaks::Pi, own);
        // A home has the user's own.
        if home != Some(dir) {
            self.add_kodelet(&dir.join(KODELET), layer, own, plugins);
        }
    }

    /// Adds kodelet's folders: those of hooks, then those of extensions. `approved` are the folders of plugins with approved
    /// hooks, which need not be there.
    fn add_kodelet(
        &mut self,
        kodelet: &Path,
        layer: Layer,
        project: Option<&Project>,
        approved: Vec<PathBuf>,
    ) {
        let before = self.folders.len();
        self.add(kodelet.join("hooks"), layer, Speaks::Kodelet, project);
        self.add_plugins(kodelet, layer, project, approved);
        let hooks = self.folders.get(before..).unwrap_or_default();
        let extensions: Vec<HookFolder> = hooks.iter().map(extension::beside).collect();
        self.folders.extend(extensions);
    }

    /// Adds the hook folders of plugins, in the byte order of their names. Links to plugins are followed.
    fn add_plugins(
        &mut self,
        kodelet: &Path,
        layer: Layer,
        project: Option<&Project>,
        approved: Vec<PathBuf>,
    ) {
        let dir = kodelet.join("plugins");
        let entries = match fs::read_dir(&dir) {
            Err(error) if error.kind() == ErrorKind::NotFound && dead_link(&dir).is_none() => {
                Ok(Vec::new())
            }
            read => read.and_then(|entries| {
                let entries = entries.take(MAX_ENTRIES);
                entries.collect::<io::Result<Vec<_>>>()
            }),
        };
        let mut fail = |dir: PathBuf, fault: Fault| {
            let folder = HookFolder {
                dir,
                prefix: String::new(),
                layer,
                speaks: Speaks::Kodelet,
                project: project.cloned(),
            };
            self.broken.push((folder, fault));
        };
        match (&entries, dead_link(&dir)) {
            (Err(_), Some(link)) => fail(link.clone(), dead_target(&link)),
            (Err(error), None) => fail(dir, unreadable(error)),
            (Ok(entries), _) if entries.len() >= MAX_ENTRIES => fail(dir, too_many()),
            (Ok(_), _) => {}
        }
        let mut dirs = approved;
        for path in entries.into_iter().flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default();
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            if path.is_dir() {
                dirs.push(path);
            } else if path.is_symlink() && !is_hidden {
                let fault = dead_target(&path);
                fail(path, fault);
            }
        }
        dirs.sort();
        dirs.dedup();
        for dir in dirs {
            let Some(name) = dir.file_name() else {
                continue;
            };
            let prefix = format!("{}/", name.to_string_lossy().replacen('@', "/", 1));
            self.add_named(dir.join("hooks"), prefix, layer, Speaks::Kodelet, project);
        }
    }
}
