//! Sources of hooks that are in force but cannot be loaded.
//!
//! Every loader reports such a source as a [`BrokenSource`]. A guard that cannot be loaded has failed.
//! Functions that return hooks therefore return an error in this case, unless the caller asks for the
//! remaining hooks.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tenterhook_engine::Layer;

use crate::problem::{Problem, Severity, lossy};
use crate::source::SourceText;
use crate::source_problem::SourceProblem;

/// A source of hooks that is in force but cannot be loaded: a hook file, a file in a folder of hooks, or
/// a whole folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BrokenSource {
    /// The file or folder.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// The layer that its hooks would belong to.
    pub layer: Layer,
    /// The hook system that it is written for: `tenterhook`, `docker-agent`, `kodelet`, `operator`,
    /// `morphix` or `pi`.
    pub system: &'static str,
    /// The problems of the source, including warnings, in the order of the file.
    pub problems: Vec<Problem>,
    /// Whether the problems are in the approved version of a file that the project has changed since. An
    /// edit of the file does not solve them; an approval of its new version may.
    #[serde(skip)]
    pub is_outdated: bool,
}

impl BrokenSource {
    /// Creates a broken source with a single problem.
    pub fn of(path: &Path, layer: Layer, system: &'static str, problem: SourceProblem) -> Self {
        Self {
            path: path.to_owned(),
            layer,
            system,
            problems: vec![problem.into_problem(path)],
            is_outdated: false,
        }
    }

    /// Returns the first error. Warnings are skipped.
    pub fn first_error(&self) -> Option<&Problem> {
        let mut problems = self.problems.iter();
        problems.find(|problem| problem.severity == Severity::Error)
    }
}

/// The error of a load in which sources of hooks are in force but cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}", self.summary())]
pub struct LoadError {
    /// All problems of the load, file by file and in the order of each file. They include warnings, even
    /// for files that can be loaded.
    pub problems: Vec<Problem>,
    /// The sources that cannot be loaded, each with its own problems.
    pub broken: Vec<BrokenSource>,
}

impl From<Vec<BrokenSource>> for LoadError {
    fn from(broken: Vec<BrokenSource>) -> Self {
        let problems = broken.iter().flat_map(|source| source.problems.clone());
        Self {
            problems: problems.collect(),
            broken,
        }
    }
}

impl LoadError {
    /// Creates the error of a load that failed before it reached a source.
    pub fn without_source(message: String) -> Self {
        let source = SourceText::new(Path::new(""), "");
        Self {
            problems: vec![Problem::new(Severity::Error, &source, None, message)],
            broken: Vec::new(),
        }
    }

    /// Renders every problem together with the line that it is on. Show this text to your user. The
    /// `Display` form only counts the problems, and `Debug`, which Rust prints if `main` returns the
    /// error, is not for users.
    pub fn render(&self, coloured: bool) -> String {
        let problems = self.problems.iter().map(|problem| problem.render(coloured));
        problems.collect::<Vec<_>>().join("\n\n")
    }

    /// Returns what the user can do about the sources with the command line, one sentence for each kind of
    /// source.
    pub fn remedies(&self) -> Vec<String> {
        let (outdated, current): (Vec<&BrokenSource>, Vec<&BrokenSource>) =
            self.broken.iter().partition(|source| source.is_outdated);
        // Each problem names its file already, so the remedy for a single file does not repeat the path.
        let paths_of = |layers: &[Layer]| -> Vec<&Path> {
            let sources = current.iter();
            let sources = sources.filter(|source| layers.contains(&source.layer));
            sources.map(|source| source.path.as_path()).collect()
        };
        let own = match paths_of(&[Layer::User, Layer::Project]).as_slice() {
            [] => None,
            [path] => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                Some(format!(
                    "fix the file, or run without its hooks: `tenterhook disable '{}'`",
                    name.to_string_lossy().replace('\'', r"'\''")
                ))
            }
            _ => Some(
                "fix these files, or run without the hooks of one: `tenterhook disable PATH`"
                    .to_owned(),
            ),
        };
        let outdated = (!outdated.is_empty()).then(|| {
            "approve changed files with `tenterhook trust`, end approvals with `tenterhook trust --revoke NAME`, or \
             run without the hooks of a file: `tenterhook disable PATH`"
                .to_owned()
        });
        let named = match paths_of(&[Layer::Explicit, Layer::Code]).as_slice() {
            [] => None,
            [_] => Some("fix the file, or remove it from the command line".to_owned()),
            _ => Some("fix these files, or remove them from the command line".to_owned()),
        };
        let managed = match paths_of(&[Layer::System]).as_slice() {
            [] => None,
            [_] => Some("ask the administrator of this machine to fix the file".to_owned()),
            _ => Some("ask the administrator of this machine to fix these files".to_owned()),
        };
        let all = own.into_iter().chain(outdated).chain(named).chain(managed);
        all.collect()
    }

    fn summary(&self) -> String {
        let errors = self
            .problems
            .iter()
            .filter(|problem| problem.severity == Severity::Error);
        let mut paths: Vec<_> = errors.clone().map(|problem| &problem.path).collect();
        paths.dedup();
        let count = match errors.count() {
            1 => "1 problem".to_owned(),
            count => format!("{count} problems"),
        };
        match paths.as_slice() {
            [path] => format!("{count} in `{}`", path.display()),
            paths => format!("{count} in {} files", paths.len()),
        }
    }
}
