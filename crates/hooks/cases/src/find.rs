//! Finds test files, and the hooks that each of them tests.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tenterhook_discovery::Layers;
use tenterhook_hookfile::{EXTENSIONS, has_extension, is_cases_file};
use tenterhook_process::is_executable;
use tenterhook_systems::SYSTEMS;
use tenterhook_systems::hook_folder::MAX_FILES;
use tenterhook_trust::repository_root;

use crate::call::TestedHooks;
use crate::cases_file::{CasesFile, HooksUnderTest};

/// How deep below a folder of a hook system test files may be: `plugins/NAME/hooks` is three deep.
const MAX_DEPTH: usize = 3;

/// Why the hooks of a test file cannot be tested.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CasesFileError {
    /// The test file has no hook next to it.
    #[error("no hook file or script `{}` is next to `{}`", .stem, .path.display())]
    NoHooks {
        /// The test file.
        path: PathBuf,
        /// The name that the hook would have, without its extension.
        stem: String,
    },
    /// Several hooks next to the file have its name.
    #[error("several files next to `{}` may be its hook: {}", .path.display(), quoted(.found))]
    SeveralHooks {
        /// The test file.
        path: PathBuf,
        /// The names of the matching files.
        found: Vec<String>,
    },
    /// The file names a hook outside of its project.
    #[error("`{}` names `{}`, which is outside of `{}`", .path.display(), .hooks.display(), .project.display())]
    Outside {
        /// The test file.
        path: PathBuf,
        /// The hook, as the file names it.
        hooks: PathBuf,
        /// The project.
        project: PathBuf,
    },
    /// The file names a hook that cannot be opened.
    #[error("`{}` names `{}`, which cannot be opened", .path.display(), .hooks.display())]
    Missing {
        /// The test file.
        path: PathBuf,
        /// The hook, as the file names it.
        hooks: PathBuf,
        /// What the system reports.
        source: io::Error,
    },
    /// A folder cannot be read.
    #[error("cannot read the folder `{}`", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system reports.
        source: io::Error,
    },
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Returns the test files of the project around a directory, sorted by their paths, and the folders that were
/// searched.
pub fn find_cases_files(start: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let layers = Layers {
        start: Some(start.to_owned()),
        ..Layers::default()
    };
    let marks = || SYSTEMS.iter().flat_map(|system| system.project_marks);
    let projects = layers.projects();
    let folders = projects
        .iter()
        .flat_map(|project| marks().map(|mark| project.dir.join(mark)));
    let searched: Vec<PathBuf> = folders.filter(|folder| folder.is_dir()).collect();
    let mut found: Vec<PathBuf> = searched
        .iter()
        .flat_map(|folder| cases_files_below(folder))
        .collect();
    found.sort();
    found.dedup();
    (found, searched)
}

/// Returns the test files of a folder, up to three levels below it, sorted by their paths. Searches no hidden
/// folders except the folders of hook systems, such as `.tenterhook`. Skips `node_modules`.
pub(crate) fn cases_files_below(folder: &Path) -> Vec<PathBuf> {
    let marks = SYSTEMS.iter().flat_map(|system| system.project_marks);
    let mut found = Vec::new();
    search(folder, MAX_DEPTH, &mut found);
    for mark in marks {
        search(&folder.join(mark), MAX_DEPTH, &mut found);
    }
    found.sort();
    found.dedup();
    found
}

/// Adds the test files of a folder and its subfolders.
fn search(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .take(MAX_FILES)
    {
        let path = entry.path();
        let name = entry.file_name();
        let is_passed_over = name.as_encoded_bytes().starts_with(b".") || name == "node_modules";
        // Links to folders are not followed: they could lead round in a circle.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_passed_over {
            continue;
        }
        if is_folder && depth > 0 {
            search(&path, depth - 1, found);
        } else if !is_folder && is_cases_file(&path) {
            found.push(path);
        }
    }
}

/// Returns the test file next to a hook, if there is one.
pub(crate) fn cases_file_of(hook: &Path) -> Option<PathBuf> {
    let stem = hook.file_stem()?.to_string_lossy();
    let mut names = EXTENSIONS
        .iter()
        .map(|extension| hook.with_file_name(format!("{stem}.cases.{extension}")));
    names.find(|path| path.is_file())
}

/// Returns the directory that the hooks of a file run in: its project. That is the folder with `.tenterhook` or the folder of
/// another hook system that the file is in, else the root of its repository, else the file's own folder.
pub(crate) fn working_dir_of(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(&path);
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let mut marks = SYSTEMS.iter().flat_map(|system| system.project_marks);
    let of_mark = |mark: &&str| {
        let mut above = folder.ancestors();
        above.find(|dir| folder.starts_with(dir.join(mark)))
    };
    marks
        .find_map(of_mark)
        .or_else(|| repository_root(&folder))
        .unwrap_or(&folder)
        .to_owned()
}

/// Returns the hooks that a test file tests. They are always in the project of the file.
///
/// # Errors
/// Fails if there is no such hook, if several hooks have the name, or if the file names a hook outside
/// of its project.
pub fn hooks_of(file: &CasesFile) -> Result<TestedHooks, CasesFileError> {
    match &file.hooks {
        HooksUnderTest::Project => Ok(TestedHooks::Project),
        HooksUnderTest::SameName => Ok(TestedHooks::Files(vec![hook_next_to(&file.path)?])),
        HooksUnderTest::Files(named) => {
            let files = named.iter().map(|hooks| within_project(&file.path, hooks));
            Ok(TestedHooks::Files(files.collect::<Result<_, _>>()?))
        }
    }
}

/// Returns the hook that is next to a test file and has the same name.
fn hook_next_to(path: &Path) -> Result<PathBuf, CasesFileError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let end = name.to_ascii_lowercase().rfind(".cases.");
    let stem = name.get(..end.unwrap_or_default()).unwrap_or_default();
    let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    let unreadable = |source| CasesFileError::Folder {
        path: folder.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let is_named = Path::new(&entry.file_name()).file_stem() == Some(stem.as_ref());
        let below = parent.map_or_else(PathBuf::new, Path::to_owned);
        let path = below.join(entry.file_name());
        if is_named && may_be_hook(&path) {
            found.push(path);
        }
    }
    found.sort();
    if found.len() > 1 {
        let name = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        return Err(CasesFileError::SeveralHooks {
            path: path.to_owned(),
            found: found.iter().map(name).collect(),
        });
    }
    found.pop().ok_or_else(|| CasesFileError::NoHooks {
        path: path.to_owned(),
        stem: stem.to_owned(),
    })
}

/// Returns whether a file may be a hook, judging by its name and its mode.
fn may_be_hook(path: &Path) -> bool {
    let kinds = || SYSTEMS.iter().flat_map(|system| system.folders);
    let is_script = || kinds().any(|kind| kind.language(path).is_some());
    path.is_file()
        && !is_cases_file(path)
        && (has_extension(path) || is_script() || is_executable(path))
}

/// Returns the path of a hook that a test file names. A link that leads out of the project counts as outside.
fn within_project(path: &Path, hooks: &Path) -> Result<PathBuf, CasesFileError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let hook = folder.join(hooks);
    let missing = |source| CasesFileError::Missing {
        path: path.to_owned(),
        hooks: hooks.to_owned(),
        source,
    };
    let whole = fs::canonicalize(&hook).map_err(missing)?;
    let project = working_dir_of(path);
    if whole.starts_with(&project) {
        return Ok(hook);
    }
    Err(CasesFileError::Outside {
        path: path.to_owned(),
        hooks: hooks.to_owned(),
        project,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        (home, root)
    }

    #[test]
    fn cases_files_are_found_in_the_folders_of_every_system() {
        let files = [
            ".kodelet/plugins/a@b/hooks/g.cases.yaml",
            ".operator/hooks/g.cases.json",
            ".pi/extensions/g/index.cases.yml",
            ".tenterhook/hooks/g.cases.yaml",
            ".tenterhook/hooks.cases.yaml",
            ".tenterhook/hooks.d/g.cases.toml",
            "core/hooks/g.cases.yaml",
            "workspaces/main/hooks/g.cases.yaml",
        ];
        let (_home, root) = tree(&files);
        let (_other, elsewhere) = tree(&["tests/g.cases.yaml", "node_modules/g.cases.yaml"]);
        fs::create_dir_all(root.join(".pi/node_modules")).unwrap();
        fs::write(root.join(".pi/node_modules/x.cases.yaml"), "").unwrap();
        let (found, searched) = find_cases_files(&root);
        assert_eq!(found, files.map(|file| root.join(file)));
        assert_eq!(searched.len(), 6);
        assert_eq!(find_cases_files(&elsewhere).0, Vec::<PathBuf>::new());
    }

    #[test]
    fn the_project_of_a_file_is_the_folder_around_the_hook_system() {
        let (_home, root) = tree(&[
            "p/.tenterhook/hooks/g.py",
            "p/tests/g.py",
            "core/hooks/g.py",
        ]);
        let dir = |path: &str| working_dir_of(&root.join(path));
        assert_eq!(dir("p/.tenterhook/hooks/g.cases.yaml"), root.join("p"));
        assert_eq!(dir("core/hooks/g.cases.yaml"), root);
        assert_eq!(dir("p/tests/g.cases.yaml"), root.join("p/tests"));
        fs::create_dir(root.join("p/.git")).unwrap();
        assert_eq!(dir("p/tests/g.cases.yaml"), root.join("p"));
    }

    #[test]
    fn the_hook_of_a_cases_file_has_its_name_and_is_in_its_project() {
        let (_home, root) = tree(&[
            "p/g.cases.yaml",
            "p/g.py",
            "p/g.md",
            "p/two.cases.yaml",
            "p/two.py",
            "p/two.ts",
            "p/none.cases.yaml",
            "evil.py",
        ]);
        let hooks = |name: &str, hooks| {
            hooks_of(&CasesFile {
                path: root.join(name),
                hooks,
                cases: Vec::new(),
            })
        };
        let found = hooks("p/g.cases.yaml", HooksUnderTest::SameName).unwrap();
        assert_eq!(found, TestedHooks::Files(vec![root.join("p/g.py")]));
        assert_eq!(
            cases_file_of(&root.join("p/g.py")),
            Some(root.join("p/g.cases.yaml"))
        );
        let two = hooks("p/two.cases.yaml", HooksUnderTest::SameName).unwrap_err();
        assert!(two.to_string().ends_with(": `two.py`, `two.ts`"), "{two}");
        let none = hooks("p/none.cases.yaml", HooksUnderTest::SameName);
        assert!(matches!(none, Err(CasesFileError::NoHooks { .. })));
        let named = |path: &str| HooksUnderTest::Files(vec![path.into()]);
        let outside = hooks("p/g.cases.yaml", named("../evil.py"));
        assert!(matches!(outside, Err(CasesFileError::Outside { .. })));
        let missing = hooks("p/g.cases.yaml", named("gone.py"));
        assert!(matches!(missing, Err(CasesFileError::Missing { .. })));
        assert!(hooks("p/g.cases.yaml", named("./two.py")).is_ok());
    }
}
