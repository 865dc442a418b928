//! Where hooks are found without naming a file.
//!
//! | layer | hook files | folders of executables and scripts |
//! |---|---|---|
//! | system | `hooks.yaml`, `hooks.d/` in the system's folder | `hooks/` in it |
//! | user | the same in the user's configuration folder | `hooks/` in it, folders of other systems in the home |
//! | project | the same in `.tenterhook/`, from the repository's root down to the working directory | `.tenterhook/hooks`, folders of other systems |
//!
//! A folder above the working directory that has approved hooks is a project too, even if it is empty now.
//!
//! A hook file may end in `.yaml`, `.yml`, `.toml` or `.json`. A file with test cases, `NAME.cases.yaml`, is not a
//! hook file. If it has no key `cases`, it may be a hook file with the wrong name, so it is a broken source.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tenterhook_engine::Layer;
use tenterhook_files::{entries, readable_entries};
use tenterhook_hookfile::{EXTENSIONS, has_extension, is_cases_file, misnamed_as_cases};

use crate::disabled::DisabledSources;
use crate::project::project_folders;
use tenterhook_hookfile::SourceProblem;
use tenterhook_hookfile::link::dead_link;
use tenterhook_trust::Trust;
use tenterhook_trust::{Project, TENTERHOOK, is_hook_folder};

/// The folder of hook files, and the name, without extension, of the hook file next to it.
const HOOKS: [&str; 2] = ["hooks.d", "hooks"];
/// The folders in which hooks are searched. They need not exist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layers {
    /// The folder that the administrator manages for every user of the machine.
    pub system: Option<PathBuf>,
    /// The user's configuration folder.
    pub user: Option<PathBuf>,
    /// The user's home, which contains the global hooks of other systems.
    pub home: Option<PathBuf>,
    /// The directory that the agent works in.
    pub start: Option<PathBuf>,
}

impl Layers {
    /// Returns the project folders with hooks, outermost first.
    pub fn projects(&self) -> Vec<Project> {
        self.start.as_deref().map_or_else(Vec::new, project_folders)
    }

    /// Returns the project folders with hooks, and folders above the working directory with approved
    /// hooks, outermost first. Approvals are found by path only, so no change of a project hides them.
    pub fn approved_projects(&self, trust: &Trust) -> Vec<Project> {
        let mut projects = self.projects();
        let (Some(start), Some(approvals)) = (&self.start, trust.approvals()) else {
            return projects;
        };
        let start = Project::of(start).dir;
        let approved = approvals.projects().filter(|dir| start.starts_with(dir));
        for dir in approved {
            if projects.iter().all(|project| project.dir != dir) {
                projects.push(Project::of(dir));
            }
        }
        projects.sort_by_key(|project| project.dir.components().count());
        projects
    }

    /// Returns the hook files in the order in which their hooks run: system, user, project.
    ///
    /// In each layer, `hooks.yaml` (or `.toml`, `.json`) comes first, then the files of `hooks.d` in the
    /// byte order of their names. A folder that cannot be read is returned like a file, so that loading
    /// fails instead of missing guards. A missing file of the project is included if one of its hooks was
    /// approved.
    pub fn hook_files(&self, trust: &Trust) -> Vec<(PathBuf, Layer)> {
        self.hook_files_of(&self.approved_projects(trust), trust)
    }

    fn hook_files_of(&self, projects: &[Project], trust: &Trust) -> Vec<(PathBuf, Layer)> {
        let system = self.system.iter().map(|dir| (dir.clone(), Layer::System));
        let user = self.user.iter().map(|dir| (dir.clone(), Layer::User));
        let mut files = Vec::new();
        for (dir, layer) in system.chain(user) {
            files.extend(files_of(&dir).into_iter().map(|file| (file, layer)));
        }
        for project in projects {
            let approved = approved_files(&project.dir, trust);
            let folder = project.dir.join(TENTERHOOK);
            // A file that replaced the folder contains no hook files. Approved ones are added below.
            let found = if folder.is_file() {
                Vec::new()
            } else {
                files_of(&folder)
            };
            let of_project = with_approved(found, approved);
            files.extend(of_project.into_iter().map(|file| (file, Layer::Project)));
        }
        files
    }
}

/// The hook files of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookFiles {
    /// The files with their layers, in the order in which their hooks run. Each file is listed once.
    pub files: Vec<(PathBuf, Layer)>,
    /// The files of the layers that were not named.
    pub own: Vec<PathBuf>,
    /// The files that were named more than once.
    pub twice: Vec<PathBuf>,
}

impl Layers {
    /// Returns the hook files of the layers and the named ones. A named file of the project needs no
    /// approval, because naming a file means to trust it.
    pub fn hook_files_and(
        &self,
        named: &[PathBuf],
        disabled: &DisabledSources,
        trust: &Trust,
    ) -> HookFiles {
        // Looked up only once, because it walks up from the working directory at every start.
        let projects = self.approved_projects(trust);
        let own = self.hook_files_of(&projects, trust);
        let approved: BTreeSet<PathBuf> = projects
            .iter()
            .flat_map(|project| approved_files(&project.dir, trust))
            .collect();
        // If a link replaced an approved file, it does not become the link's target: its approved hooks
        // stay in force.
        let whole = |path: &PathBuf| {
            let found = fs::canonicalize(path).ok();
            let found = found.filter(|_| !approved.contains(path));
            found.unwrap_or_else(|| path.clone())
        };
        let explicit: BTreeSet<PathBuf> = named.iter().map(whole).collect();
        // A named file is in force even if the project's approvals or the list of disabled files would
        // leave it out.
        let is_elsewhere = |(path, layer): &&(PathBuf, Layer)| {
            let is_in_force = *layer != Layer::Project && !disabled.contains(path, *layer);
            is_in_force || !explicit.contains(&whole(path))
        };
        let of_layers = own.iter().filter(is_elsewhere).cloned();
        let named = named.iter().map(|path| (path.clone(), Layer::Explicit));
        let mut seen = BTreeSet::new();
        let (files, twice) = of_layers
            .chain(named)
            // A disabled link to a file must not hide the file itself.
            .partition::<Vec<_>, _>(|(path, layer)| {
                disabled.contains(path, *layer) || seen.insert(whole(path))
            });
        let is_named = |path: &PathBuf| explicit.contains(&whole(path));
        HookFiles {
            files,
            own: own
                .into_iter()
                .map(|(path, _)| path)
                .filter(|path| !is_named(path))
                .collect(),
            twice: twice.into_iter().map(|(path, _)| path).collect(),
        }
    }
}

/// Returns the hook files of a project that have approved hooks.
fn approved_files(project: &Path, trust: &Trust) -> BTreeSet<PathBuf> {
    let approved = trust
        .approvals()
        .map(|approvals| approvals.approved(project));
    let sources = approved
        .into_iter()
        .flatten()
        .map(|approved| &approved.source);
    // The source of an executable or a script is a folder that never contains hook files.
    let files = sources.filter(|source| {
        let folder = source
            .parent()
            .and_then(Path::file_name)
            .unwrap_or_default();
        let is_imported = || {
            let mut parts = source
                .ancestors()
                .filter(|part| !part.ends_with(TENTERHOOK));
            parts.any(is_hook_folder)
        };
        has_extension(source) && (folder == TENTERHOOK || folder == HOOKS[0] || is_imported())
    });
    files.map(|source| project.join(source)).collect()
}

/// Adds the approved hook files that are missing, in the order in which hook files are loaded.
fn with_approved(mut files: Vec<PathBuf>, approved: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let before = files.len();
    files.extend(approved);
    let mut seen = BTreeSet::new();
    files.retain(|file| seen.insert(file.clone()));
    if files.len() > before {
        files.sort_by_key(|file| {
            let folder = file.parent().and_then(Path::file_name);
            (folder == Some(OsStr::new(HOOKS[0]))).then(|| file.clone())
        });
    }
    files
}

fn files_of(config: &Path) -> Vec<PathBuf> {
    let [folder, file] = HOOKS.map(|name| config.join(name));
    // A broken link in place of the folder is reported when it is read as a file.
    let link = dead_link(&folder);
    if let Some(link) = link.as_ref().filter(|link| **link != folder) {
        return vec![link.clone()];
    }
    let named = EXTENSIONS.map(|extension| file.with_extension(extension));
    let mut files: Vec<PathBuf> = named.into_iter().filter(|path| is_there(path)).collect();
    files.extend(misnamed_in(config));
    match files_below(&folder) {
        Ok(below) if link.is_none() => files.extend(below),
        Ok(_) | Err(_) => files.push(folder),
    }
    files
}

/// Returns whether a path exists. A path that cannot be examined counts as existing.
pub(crate) fn is_there(path: &Path) -> bool {
    let found = fs::symlink_metadata(path);
    let is_absent =
        |error: io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    !found.is_err_and(is_absent)
}

fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in entries(folder)? {
        let entry = entry?;
        let path = entry.path();
        // As in docker-agent, folders in `hooks.d` are ignored, even if their names end like hook files.
        let is_folder = entry.file_type()?.is_dir();
        let is_hidden = path
            .file_name()
            .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if is_hidden || is_folder {
            continue;
        }
        let is_hook_file = has_extension(&path) && !is_cases_file(&path);
        if is_hook_file || misnamed(&path).is_some() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the files of a configuration folder that have almost the name of a hook file.
fn misnamed_in(config: &Path) -> Vec<PathBuf> {
    // The hook files of a folder that cannot be listed are still found by their names.
    let files =
        readable_entries(config).filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
    let paths = files.map(|entry| entry.path());
    let mut found: Vec<PathBuf> = paths.filter(|path| misnamed(path).is_some()).collect();
    found.sort();
    found
}

/// Returns the problem of a file whose name differs from a hook file's only in case, or that has the name of
/// a file with test cases without being one. Its hooks would silently not be found.
pub(crate) fn misnamed(path: &Path) -> Option<SourceProblem> {
    let [folder, file] = HOOKS;
    let name = path.file_name()?.to_str()?;
    let is_below = path.parent().and_then(Path::file_name) == Some(OsStr::new(folder));
    if is_cases_file(path) {
        let stem = name.split('.').next()?;
        return (is_below || stem.eq_ignore_ascii_case(file))
            .then(|| misnamed_as_cases(path))
            .flatten();
    }
    let extension = path.extension()?.to_str()?;
    let lower = extension.to_ascii_lowercase();
    if !EXTENSIONS.contains(&lower.as_str()) {
        return None;
    }
    let stem = name.strip_suffix(extension)?.strip_suffix('.')?;
    let expected = match (is_below, stem.eq_ignore_ascii_case(file)) {
        (true, _) => format!("{stem}.{lower}"),
        (false, true) => format!("{file}.{lower}"),
        (false, false) => return None,
    };
    (name != expected).then(|| {
        SourceProblem::from("a file with this name is not loaded")
            .hint(format!("rename it to `{expected}`"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_other_letters_is_that_of_a_hook_file() {
        for (path, expected) in [
            ("config/hooks.YAML", Some("hooks.yaml")),
            ("config/Hooks.yml", Some("hooks.yml")),
            ("config/hooks.d/Guard.Toml", Some("Guard.toml")),
            ("config/hooks.yaml", None),
            ("config/hooks.d/Hooks.yaml", None),
            ("config/models.YAML", None),
            ("config/hooks.d/README.md", None),
            ("config/hooks.d/guard.yaml~", None),
            ("config/hooks.d/guard.YAML.disable", None),
        ] {
            let hint = misnamed(Path::new(path)).and_then(|problem| problem.hint);
            let rename = expected.map(|name| format!("rename it to `{name}`"));
            assert_eq!(hint, rename, "{path}");
        }
    }
}
