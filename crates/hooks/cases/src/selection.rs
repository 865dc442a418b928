//! Which cases a call runs.

use std::path::{Path, PathBuf};

use tenterhook_hookfile::{LoadError, Problem, is_cases_file};

use crate::call::TestedHooks;
use crate::cases_file::{CasesFile, HookCase};
use crate::find::{
    CasesFileError, cases_file_of, cases_files_below, find_cases_files, hooks_of, working_dir_of,
};

/// The cases of one file that run.
#[derive(Debug)]
pub struct SelectedCases {
    /// The test file.
    pub path: PathBuf,
    /// The path of the test file, for messages.
    pub shown: String,
    /// The hooks that it tests.
    pub hooks: TestedHooks,
    /// The directory that the hooks run in.
    pub cwd: PathBuf,
    /// The cases.
    pub cases: Vec<HookCase>,
}

/// Why no cases can run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// Neither the project nor the user has a folder of hooks.
    #[error("no test cases: neither this project nor your configuration has a folder of hooks")]
    NoFolders,
    /// The folders have no test files.
    #[error("no test cases: no file `*.cases.yaml` in {}", .folders.join(", "))]
    NoFiles {
        /// The folders that were searched, in backticks.
        folders: Vec<String>,
    },
    /// A hook has no test file next to it.
    #[error("`{}` has no test cases", .hook.display())]
    NoCases {
        /// The hook.
        hook: PathBuf,
    },
    /// A file that the call names does not exist.
    #[error("`{}` does not exist", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// No case has a name that contains the text.
    #[error("no case has a name that contains `{text}`")]
    NoMatch {
        /// The text.
        text: String,
    },
    /// The test file of the named hook also tests other hooks.
    #[error("`{}` does not only test `{}`: its key `hooks` names others", .cases.display(), .hook.display())]
    OtherHooks {
        /// The test file.
        cases: PathBuf,
        /// The hook that the call names.
        hook: PathBuf,
    },
    /// Test files are invalid.
    #[error(transparent)]
    Invalid(#[from] LoadError),
    /// The hooks of a test file cannot be tested.
    #[error(transparent)]
    Hooks(#[from] CasesFileError),
}

impl SelectionError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoFolders | Self::NoFiles { .. } => {
                "`tenterhook init` writes a first guard with test cases".to_owned()
            }
            Self::NoCases { hook } => {
                let stem = hook.file_stem().unwrap_or_default().to_string_lossy();
                format!("write them into `{stem}.cases.yaml` next to it")
            }
            Self::Missing { .. } => {
                "name a test file, a hook with a test file next to it, or a folder".to_owned()
            }
            Self::NoMatch { .. } => "leave `--filter` out to run all".to_owned(),
            Self::OtherHooks { cases, .. } => format!(
                "to run those hooks too, name the test file: `tenterhook test {}`",
                cases.display()
            ),
            Self::Hooks(CasesFileError::NoHooks { .. } | CasesFileError::SeveralHooks { .. }) => {
                "name the hooks at the top of the file: `hooks: guard.py`".to_owned()
            }
            Self::Hooks(CasesFileError::Outside { .. }) => {
                "a test file can only test hooks of its own project".to_owned()
            }
            Self::Invalid(_)
            | Self::Hooks(CasesFileError::Missing { .. } | CasesFileError::Folder { .. }) => {
                return None;
            }
        })
    }

    /// Returns whether the error is in a file and not in the arguments.
    pub const fn is_of_file(&self) -> bool {
        matches!(self, Self::Invalid(_) | Self::Hooks(_))
    }
}

/// A test file, and the hook if the argument named the hook instead of the test file.
struct FoundFile {
    path: PathBuf,
    /// The only hook that may run.
    hook: Option<PathBuf>,
}

impl SelectedCases {
    /// Reads the named test files and selects cases by their names. If none are named, it reads all test files of the
    /// project around `start`, and then all in `user`, the user's configuration folder.
    ///
    /// # Errors
    /// Fails if there are no cases, a test file is invalid, or its hooks cannot be tested.
    pub fn select(
        named: &[PathBuf],
        filter: Option<&str>,
        start: &Path,
        user: Option<&Path>,
    ) -> Result<Vec<Self>, SelectionError> {
        let mut found: Vec<FoundFile> = Vec::new();
        if named.is_empty() {
            for path in of_layers(start, user)? {
                add(&mut found, FoundFile { path, hook: None });
            }
        }
        for path in named {
            for next in of_path(path)? {
                add(&mut found, next);
            }
        }
        let mut selected = Vec::new();
        for (found, file) in read(&found)? {
            let hooks = hooks_of(&file)?;
            if let Some(hook) = &found.hook {
                refuse_other_hooks(hook, &found.path, &hooks)?;
            }
            let is_wanted = |case: &HookCase| filter.is_none_or(|text| case.name.contains(text));
            let cases: Vec<HookCase> = file.cases.into_iter().filter(is_wanted).collect();
            if !cases.is_empty() {
                selected.push(Self {
                    path: found.path.clone(),
                    shown: shown_path(&found.path, start),
                    cwd: working_dir_of(&found.path),
                    hooks,
                    cases,
                });
            }
        }
        match filter {
            Some(text) if selected.is_empty() => Err(SelectionError::NoMatch {
                text: text.to_owned(),
            }),
            _ => Ok(selected),
        }
    }

    /// Returns a warning for each case that may be wrong, such as one with a misspelt tool.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.cases.iter().filter_map(|case| {
            let warning = case.warning.as_ref()?;
            Some(format!("{}:{}: {warning}", self.shown, case.line))
        })
    }

    /// Returns whether the cases are for all hooks of the project.
    pub fn has_project_hooks(&self) -> bool {
        self.hooks == TestedHooks::Project
    }
}

/// Returns a path for messages: relative to the working directory if the path is inside it.
pub(crate) fn shown_path(path: &Path, start: &Path) -> String {
    // A project is known by its path without links.
    let whole = start.canonicalize().unwrap_or_else(|_| start.to_owned());
    let below = [start, &whole]
        .into_iter()
        .find_map(|start| path.strip_prefix(start).ok());
    let below = below.filter(|path| !path.as_os_str().is_empty());
    below.unwrap_or(path).display().to_string()
}

/// Adds a test file. A file that several arguments name runs only once. It runs with all its hooks if one of the
/// arguments names the test file itself.
fn add(found: &mut Vec<FoundFile>, next: FoundFile) {
    let same = found
        .iter_mut()
        .find(|known| whole(&known.path) == whole(&next.path));
    match same {
        Some(known) => known.hook = known.hook.take().and(next.hook),
        None => found.push(next),
    }
}

/// Finds the test files of the project and of the user.
fn of_layers(start: &Path, user: Option<&Path>) -> Result<Vec<PathBuf>, SelectionError> {
    let (mut files, mut searched) = find_cases_files(start);
    if let Some(folder) = user.filter(|folder| folder.is_dir()) {
        files.extend(cases_files_below(folder));
        searched.push(folder.to_owned());
    }
    if files.is_empty() {
        let folders: Vec<String> = searched
            .iter()
            .map(|folder| format!("`{}`", shown_path(folder, start)))
            .collect();
        return Err(if folders.is_empty() {
            SelectionError::NoFolders
        } else {
            SelectionError::NoFiles { folders }
        });
    }
    let files = files.iter();
    Ok(files
        .map(|path| PathBuf::from(shown_path(path, start)))
        .collect())
}

/// Finds the test files that one argument names.
fn of_path(path: &Path) -> Result<Vec<FoundFile>, SelectionError> {
    if path.is_dir() {
        let files = cases_files_below(path);
        if files.is_empty() {
            let folders = vec![format!("`{}`", path.display())];
            return Err(SelectionError::NoFiles { folders });
        }
        let files = files.into_iter();
        return Ok(files.map(|path| FoundFile { path, hook: None }).collect());
    }
    let path = path.to_owned();
    if !path.exists() {
        return Err(SelectionError::Missing { path });
    }
    if is_cases_file(&path) {
        return Ok(vec![FoundFile { path, hook: None }]);
    }
    match cases_file_of(&path) {
        Some(cases) => Ok(vec![FoundFile {
            path: cases,
            hook: Some(path),
        }]),
        None => Err(SelectionError::NoCases { hook: path }),
    }
}

/// Refuses to run a hook other than the one that was named.
fn refuse_other_hooks(
    hook: &Path,
    cases: &Path,
    hooks: &TestedHooks,
) -> Result<(), SelectionError> {
    let is_named = |path: &PathBuf| whole(path) == whole(hook);
    if matches!(hooks, TestedHooks::Files(files) if files.iter().all(is_named)) {
        return Ok(());
    }
    Err(SelectionError::OtherHooks {
        cases: cases.to_owned(),
        hook: hook.to_owned(),
    })
}

/// Returns a path without links.
fn whole(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Reads test files. Reports the problems of all of them at once.
fn read(found: &[FoundFile]) -> Result<Vec<(&FoundFile, CasesFile)>, SelectionError> {
    let mut problems: Vec<Problem> = Vec::new();
    let mut read = Vec::new();
    for file in found {
        match CasesFile::read(&file.path) {
            Ok(cases) => read.push((file, cases)),
            Err(wrong) => problems.extend(wrong),
        }
    }
    if problems.is_empty() {
        return Ok(read);
    }
    Err(SelectionError::Invalid(LoadError {
        problems,
        broken: Vec::new(),
    }))
}
