//! Where hooks are looked for when nobody names a file.
//!
//! | layer | hook files | folders of executables and scripts |
//! |---|---|---|
//! | system | `hooks.yaml`, `hooks.d/` of the system's folder | `hooks/` of it |
//! | user | the same of the user's configuration folder | `hooks/` of it, those of other systems in the home |
//! | project | the same of `.tenterhook/`, from the repository's root down to the working directory | `.tenterhook/hooks`, those of other systems |
//!
//! A hook file may end in `.yaml`, `.yml`, `.toml` or `.json`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tenterhook::Layer;

use crate::disabled::DisabledSources;
use crate::project::{Project, TENTERHOOK};

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

    /// Returns the hook files in the order in which their hooks run: system, user, project; in each `hooks.yaml` or
    /// its like, then those of `hooks.d` in the byte order of their names. A folder that cannot be read stands among the
    /// files, so that loading them fails: hooks that are not found guard nothing.
    pub fn hook_files(&self) -> Vec<(PathBuf, Layer)> {
        let system = self.system.iter().map(|dir| (dir.clone(), Layer::System));
        let user = self.user.iter().map(|dir| (dir.clone(), Layer::User));
        let projects = self.projects().into_iter();
        let project = projects.map(|project| (project.dir.join(TENTERHOOK), Layer::Project));
        let mut files = Vec::new();
        for (dir, layer) in system.chain(user).chain(project) {
            files.extend(files_of(&dir).into_iter().map(|file| (file, layer)));
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
    pub fn hook_files_and(&self, named: &[PathBuf], disabled: &DisabledSources) -> HookFiles {
        let own = self.hook_files();
        let whole = |path: &PathBuf| fs::canonicalize(path).unwrap_or_else(|_| path.clone());
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

fn files_of(config: &Path) -> Vec<PathBuf> {
    let [folder, file] = HOOKS.map(|name| config.join(name));
    let named = EXTENSIONS.map(|extension| file.with_extension(extension));
    let mut files: Vec<PathBuf> = named.into_iter().filter(|path| is_there(path)).collect();
    match files_below(&folder) {
        Ok(below) => files.extend(below),
        Err(_) => files.push(folder),
    }
    files
}

/// Says whether something is there, also where it cannot be looked at.
fn is_there(path: &Path) -> bool {
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
        let is_named_so = path
            .extension()
            .and_then(OsStr::to_str)
            .is_some_and(|extension| EXTENSIONS.contains(&extension));
        if is_named_so && !is_hidden && !is_folder {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
