//! Where hooks are looked for when nobody names a file.
//!
//! | layer | hook files | folders of executables and scripts |
//! |---|---|---|
//! | system | `hooks.yaml`, `hooks.d/` of the system's folder | `hooks/` of it |
//! | user | the same of the user's configuration folder | `hooks/` of it, those of other systems in the home |
//! | project | the same of `.tenterhook/`, from the repository's root down to the working directory | `.tenterhook/hooks`, those of other systems |
//!
//! A folder above the working directory in which hooks were approved is a project too, whatever is in it now.
//!
//! A hook file may end in `.yaml`, `.yml`, `.toml` or `.json`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tenterhook::Layer;

use crate::broken::Fault;
use crate::disabled::DisabledSources;
use crate::link::dead_link;
use crate::project::{Project, TENTERHOOK};
use crate::trust::Trust;

/// The folder of hook files, and, with an extension, the one hook file beside it.
const HOOKS: [&str; 2] = ["hooks.d", "hooks"];
/// What a hook file may be called at its end. Other files of the folder are none.
const EXTENSIONS: [&str; 4] = ["yaml", "yml", "toml", "json"];

/// The places where hooks are looked for. None of them has to exist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layers {
    /// The folder that is managed for every user of the machine.
    pub system: Option<PathBuf>,
    /// The user's configuration folder.
    pub user: Option<PathBuf>,
    /// The user's home, where other systems' global hooks are.
    pub home: Option<PathBuf>,
    /// The directory that the agent works in.
    pub start: Option<PathBuf>,
}

impl Layers {
    /// Returns the folders of the project that bring hooks, outermost first.
    pub fn projects(&self) -> Vec<Project> {
        self.start
            .as_deref()
            .map_or_else(Vec::new, Project::folders)
    }

    /// Returns the folders of the project that bring hooks, and those above the working directory in which hooks were approved,
    /// outermost first. Approvals are found by the path alone, so no change to a project hides them.
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

    /// Returns the hook files in the order in which their hooks run: system, user, project; in each `hooks.yaml` or
    /// its like, then those of `hooks.d` in the byte order of their names. A folder that cannot be read stands among the
    /// files, so that loading them fails: hooks that are not found guard nothing. A file of the project that is gone is
    /// among them where one of its hooks was approved.
    pub fn hook_files(&self, trust: &Trust) -> Vec<(PathBuf, Layer)> {
        let system = self.system.iter().map(|dir| (dir.clone(), Layer::System));
        let user = self.user.iter().map(|dir| (dir.clone(), Layer::User));
        let mut files = Vec::new();
        for (dir, layer) in system.chain(user) {
            files.extend(files_of(&dir).into_iter().map(|file| (file, layer)));
        }
        for project in self.approved_projects(trust) {
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

/// The hook files of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookFiles {
    /// The files and what their hooks belong to, in the order in which they run; each once.
    pub files: Vec<(PathBuf, Layer)>,
    /// Files that are there for all calls, whether they were named or not.
    pub own: Vec<PathBuf>,
    /// Files that were named more than once.
    pub twice: Vec<PathBuf>,
}

impl Layers {
    /// Returns the hook files of the layers and those that a call names. Whoever names a file of the project answers for it, so
    /// it needs no approval then.
    pub fn hook_files_and(
        &self,
        named: &[PathBuf],
        disabled: &DisabledSources,
        trust: &Trust,
    ) -> HookFiles {
        let own = self.hook_files(trust);
        let approved: BTreeSet<PathBuf> = self
            .approved_projects(trust)
            .iter()
            .flat_map(|project| approved_files(&project.dir, trust))
            .collect();
        // An approved file that was replaced with a link is not the file that the link leads to: its hooks stay in force.
        let whole = |path: &PathBuf| {
            let found = fs::canonicalize(path).ok();
            let found = found.filter(|_| !approved.contains(path));
            found.unwrap_or_else(|| path.clone())
        };
        let explicit: BTreeSet<PathBuf> = named.iter().map(whole).collect();
        // What a call names itself is in force, whatever the project's approvals and the list of disabled files say.
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

/// Returns the hook files of a project whose hooks were approved.
fn approved_files(project: &Path, trust: &Trust) -> BTreeSet<PathBuf> {
    let approved = trust
        .approvals()
        .map(|approvals| approvals.approved(project));
    let sources = approved
        .into_iter()
        .flatten()
        .map(|approved| &approved.source);
    // Executables and scripts have a folder as their source, and no hook file stands beside them.
    let files = sources.filter(|source| {
        let folder = source
            .parent()
            .and_then(Path::file_name)
            .unwrap_or_default();
        has_extension(source) && (folder == TENTERHOOK || folder == HOOKS[0])
    });
    files.map(|source| project.join(source)).collect()
}

/// Adds the approved hook files that are gone, in the order in which hook files count.
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
    // A link that stands for a folder is reported when it is read as a file.
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

/// Says whether something is there, also where it cannot be looked at.
pub(crate) fn is_there(path: &Path) -> bool {
    let found = fs::symlink_metadata(path);
    let is_absent =
        |error: io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    !found.is_err_and(is_absent)
}

fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        // As in docker-agent, folders in `hooks.d` are passed over, whatever they are called.
        let is_folder = entry.file_type()?.is_dir();
        let is_hidden = path
            .file_name()
            .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        let is_named_so = has_extension(&path) || misnamed(&path).is_some();
        if is_named_so && !is_hidden && !is_folder {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Says whether a path ends as a hook file does.
pub(crate) fn has_extension(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}

/// Returns the files of a configuration folder whose name differs from that of its hook file in upper and lower case only.
fn misnamed_in(config: &Path) -> Vec<PathBuf> {
    // The hook files of a folder that cannot be listed are still found by their names.
    let entries = fs::read_dir(config).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
    let paths = files.map(|entry| entry.path());
    let mut found: Vec<PathBuf> = paths.filter(|path| misnamed(path).is_some()).collect();
    found.sort();
    found
}

/// Returns the fault of a file that has the name of a hook file but for upper and lower case: nobody would find its hooks.
pub(crate) fn misnamed(path: &Path) -> Option<Fault> {
    let [folder, file] = HOOKS;
    let name = path.file_name()?.to_str()?;
    let extension = path.extension()?.to_str()?;
    let lower = extension.to_ascii_lowercase();
    if !EXTENSIONS.contains(&lower.as_str()) {
        return None;
    }
    let stem = name.strip_suffix(extension)?.strip_suffix('.')?;
    let is_below = path.parent().and_then(Path::file_name) == Some(OsStr::new(folder));
    let expected = match (is_below, stem.eq_ignore_ascii_case(file)) {
        (true, _) => format!("{stem}.{lower}"),
        (false, true) => format!("{file}.{lower}"),
        (false, false) => return None,
    };
    (name != expected).then(|| {
        Fault::from("the file is not loaded under this name")
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
            let hint = misnamed(Path::new(path)).and_then(|fault| fault.hint);
            let rename = expected.map(|name| format!("rename it to `{name}`"));
            assert_eq!(hint, rename, "{path}");
        }
    }
}
