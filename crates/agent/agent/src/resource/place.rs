//! The places of templates and skills, who provides them, and why a file cannot be used.

use std::fmt;
use std::path::{Path, PathBuf};

/// Who provides a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceSource {
    /// The user.
    User,
    /// Hooks of `resources_discover`.
    Hooks,
    /// The project that the agent works in.
    Project {
        /// The project's folder. Links out of it are not followed.
        root: PathBuf,
    },
}

impl fmt::Display for ResourceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Hooks => "hooks",
            Self::Project { .. } => "project",
        })
    }
}

/// A folder or file to read. It need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourcePlace {
    /// The folder or file.
    pub path: PathBuf,
    /// Who provides it.
    pub source: ResourceSource,
}

/// The places of templates and skills. If two places of the same source have a file of the same name, the first place
/// wins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourcePlaces {
    /// The places of templates.
    pub prompts: Vec<ResourcePlace>,
    /// The places of skills.
    pub skills: Vec<ResourcePlace>,
}

impl ResourcePlaces {
    /// Adds the paths that hooks name. A relative path starts from `cwd`.
    pub fn add_from_hooks(&mut self, prompts: Vec<PathBuf>, skills: Vec<PathBuf>, cwd: &Path) {
        let place = |path: PathBuf| ResourcePlace {
            path: cwd.join(path),
            source: ResourceSource::Hooks,
        };
        self.prompts.extend(prompts.into_iter().map(place));
        self.skills.extend(skills.into_iter().map(place));
    }
}

/// A file that cannot be used, or not as intended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceProblem {
    /// The file or folder.
    pub path: PathBuf,
    /// The line, if the problem is in one line.
    pub line: Option<u64>,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for ResourceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.problem)
    }
}
