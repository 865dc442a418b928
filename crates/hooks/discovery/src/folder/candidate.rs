//! A file of a folder on its way to becoming a hook.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tenterhook_engine::{EventName, Layer};
use tenterhook_hookfile::SourceProblem;
use tenterhook_process::Command;
#[cfg(feature = "workers")]
use tenterhook_runners::worker::Registered;
use tenterhook_systems::hook_folder::FolderKind;
use tenterhook_trust::{
    ApprovalItem, DivergedHook, Divergence, Project, TrustState, search_path_in,
    search_path_outside,
};

use super::found_file::{FileState, FoundFile};
use super::language::Language;

/// A file that may become a hook.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) found: FoundFile,
    /// The path that is executed: the file, or its approved copy.
    pub(super) run: PathBuf,
    /// The folder with the approved copies, if it runs from there.
    pub(super) copies: Option<PathBuf>,
    /// The SHA-256 of its bytes. If it needs no approval, combined with the sources that it may load.
    /// Empty if nothing was read.
    pub(super) sha256: String,
    /// The SHA-256 of the sources that it may load. Empty if they were not read.
    pub(super) sources_sha256: String,
    /// The version of the interpreter of an executable script. Empty for other files.
    pub(super) interpreter: String,
    /// The item to approve, and whether it is approved. If an approved version is in force,
    /// this is the current content of the project.
    pub(super) item: Option<(ApprovalItem, TrustState)>,
    /// How the project differs from the approval, and whether the approved version is in force.
    pub(super) diverged: Option<DivergedHook>,
    /// The event of an untrusted file, if an older version of it declared one.
    pub(super) known_event: Option<EventName>,
    /// The language, if it is a script that a worker serves.
    pub(super) language: Option<Language>,
    /// Whether it should run: it is not a file of a project, or a version of it was approved. It may
    /// still be broken.
    pub(super) is_in_force: bool,
    /// Whether it needs a worker of its own.
    pub(super) is_isolated: bool,
    /// What a script registers in addition to hooks.
    #[cfg(feature = "workers")]
    pub(super) registered: Registered,
    pub(super) project: Option<Project>,
    /// The search path of its process, if that differs from the search path of this process.
    pub(super) search_path: Option<OsString>,
    /// The folder of the sources that it may load.
    #[cfg_attr(
        not(feature = "workers"),
        expect(dead_code, reason = "only scripts are loaded again")
    )]
    pub(super) source_folder: Option<PathBuf>,
    pub(super) step: Step,
}

/// Whether the state of a candidate is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It may run but has not been probed yet.
    Pending,
    /// Its state is final.
    Final,
}

impl Candidate {
    /// Creates the candidate of a file that was not read yet.
    pub(super) fn new(found: FoundFile) -> Self {
        Self {
            run: found.path.clone(),
            copies: None,
            found,
            sha256: String::new(),
            sources_sha256: String::new(),
            interpreter: String::new(),
            item: None,
            diverged: None,
            known_event: None,
            language: None,
            is_in_force: true,
            is_isolated: false,
            #[cfg(feature = "workers")]
            registered: Registered::default(),
            project: None,
            search_path: None,
            source_folder: None,
            step: Step::Pending,
        }
    }

    /// Returns the project that the file belongs to.
    pub(super) fn project(&self) -> Option<&Project> {
        self.project.as_ref()
    }

    /// Makes a command find its programs where this candidate may find them.
    pub(super) fn with_search_path(&self, command: Command) -> Command {
        match &self.search_path {
            Some(search) => command.env("PATH", search),
            None => command,
        }
    }

    /// Sets the final state.
    pub(super) fn set_state(&mut self, state: FileState) {
        self.found.state = state;
        self.step = Step::Final;
    }

    /// Marks the file as broken.
    pub(super) fn fail(&mut self, problem: SourceProblem) {
        let problem = match &self.diverged {
            Some(hook) => of_approved_version(hook, problem),
            None => problem,
        };
        let problem = problem.into_problem_of_copy(&self.found.path, &self.run);
        self.set_state(FileState::Broken {
            problem: Box::new(problem),
        });
    }

    /// Returns the name that only one file of a system may have.
    pub(super) fn unique_name(&self) -> Option<(&'static FolderKind, String)> {
        // No file can replace a hook of the machine.
        let is_shadowed = self.found.layer != Layer::System && self.found.kind.has_unique_names;
        is_shadowed.then(|| (self.found.kind, self.found.name.clone()))
    }

    /// Returns a string that identifies the content of the file and of the sources that it may load.
    pub(super) fn version(&self) -> String {
        format!("{}{}", self.sha256, self.sources_sha256)
    }
}

/// The interpreters that scripts are served with.
pub(super) const INTERPRETERS: [&str; 2] = ["node", "python3"];

/// Sets the search paths of the candidates that may run. A program that an agent wrote into the project, which
/// is its working folder, must not run as a part of a guard.
pub(super) fn set_search_paths(candidates: &mut [Candidate], directory: &Path) {
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    let mut known = HashMap::new();
    let pending = candidates.iter_mut();
    for candidate in pending.filter(|candidate| candidate.step == Step::Pending) {
        let project = candidate.project.as_ref();
        let search = known
            .entry(project.map(|project| project.dir.clone()))
            .or_insert_with(|| match project {
                Some(project) => search_path_outside(project, &INTERPRETERS),
                None => search_path_in(directory, &INTERPRETERS),
            });
        candidate.search_path.clone_from(search);
    }
}

/// Explains that a problem is in the approved version of a file, not in the file as it is now.
fn of_approved_version(hook: &DivergedHook, problem: SourceProblem) -> SourceProblem {
    let name = &hook.approved.name;
    let (difference, hint) = match hook.divergence {
        Divergence::Missing => (
            "the project no longer contains the approved file",
            format!("end the approval with `tenterhook trust --revoke '{name}'`"),
        ),
        Divergence::Changed
        | Divergence::Moved
        | Divergence::OtherRepository
        | Divergence::OtherFolder { .. } => (
            "the file has changed since",
            format!("approve the file as it is now: `tenterhook trust '{name}'`"),
        ),
    };
    SourceProblem {
        message: format!(
            "the approved version of `{name}` cannot be loaded, and {difference}: {}",
            problem.message
        ),
        hint: Some(hint),
        ..problem
    }
}
