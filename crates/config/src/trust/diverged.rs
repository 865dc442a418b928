//! Approved hooks that changed in the project or are gone.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use tenterhook::{EventName, HookSpec, Layer, Source};

use super::judge::deny;
use super::{Approvals, Approved};

/// How a project differs from what was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Divergence {
    /// The project has another version of the hook.
    Changed,
    /// It stands elsewhere among the hooks of its file, so it would run before or after others than approved.
    Moved,
    /// The project does not have the hook: it was removed, renamed or is broken.
    Missing,
    /// The folder is not in the repository that it was in when the hook was approved.
    OtherRepository,
    /// The hook was approved in another folder with the same repository.
    OtherFolder {
        /// The folder that stands for the approved one here.
        here: PathBuf,
    },
}

/// An approved hook that changed in the project or is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DivergedHook {
    /// The folder of the project that the approval is for.
    pub project: PathBuf,
    /// What was approved.
    pub approved: Approved,
    /// How the project differs.
    pub divergence: Divergence,
    /// Why the approved version cannot run, so that its gates deny. `None`: it is in force.
    pub denies: Option<String>,
}

impl DivergedHook {
    pub(crate) fn new(
        project: &Path,
        approved: &Approved,
        divergence: Divergence,
        denies: Option<String>,
    ) -> Self {
        Self {
            project: project.to_owned(),
            approved: approved.clone(),
            divergence,
            denies,
        }
    }

    /// Returns the hook file, or the folder of the executable or script, that the approval is for.
    pub fn source(&self) -> PathBuf {
        self.project.join(&self.approved.source)
    }

    /// Returns the folder in which the approval does not fit: the project here.
    pub fn here(&self) -> &Path {
        match &self.divergence {
            Divergence::OtherFolder { here } => here,
            Divergence::Changed
            | Divergence::Moved
            | Divergence::Missing
            | Divergence::OtherRepository => &self.project,
        }
    }

    /// Says whether the approval is for another path or another repository, which is for the user to settle.
    pub fn is_displaced(&self) -> bool {
        match self.divergence {
            Divergence::OtherRepository | Divergence::OtherFolder { .. } => true,
            Divergence::Changed | Divergence::Moved | Divergence::Missing => false,
        }
    }

    /// Returns the hooks that deny instead of this one.
    pub(crate) fn denials(&self) -> Vec<HookSpec> {
        let source = Source {
            layer: Layer::Project,
            path: Some(self.source()),
            line: None,
        };
        self.denials_of(&source, None)
    }

    /// Returns the hooks that deny instead of this one, as hooks of a source. `event` is one that it is known to be for beyond
    /// the record of the approval.
    pub(crate) fn denials_of(&self, source: &Source, event: Option<EventName>) -> Vec<HookSpec> {
        let Some(reason) = &self.denies else {
            return Vec::new();
        };
        let events = self.approved.events.iter().cloned().chain(event);
        deny(&self.approved.name, events.collect(), source, reason)
    }
}

impl Serialize for DivergedHook {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown<'a> {
            name: &'a str,
            source: String,
            project: String,
            divergence: &'a Divergence,
            in_force: bool,
            reason: Option<&'a str>,
        }
        let shown = Shown {
            name: &self.approved.name,
            source: self.approved.source.display().to_string(),
            project: self.project.display().to_string(),
            divergence: &self.divergence,
            in_force: self.denies.is_none(),
            reason: self.denies.as_deref(),
        };
        shown.serialize(serializer)
    }
}

/// Returns why the gates of an approval deny that does not fit where its project is now.
pub(crate) fn displaced_reason(name: &str, problem: &str) -> String {
    format!(
        "the approval of the hook `{name}` does not fit: {problem}; settle it with `tenterhook trust --accept` or `tenterhook trust --revoke`"
    )
}

/// Returns why the gates of an approved hook deny that cannot run as it was approved.
pub(crate) fn unrunnable_reason(name: &str, problem: &str) -> String {
    format!(
        "the approved version of the hook `{name}` cannot run: {problem}; look at the hook with `tenterhook trust --show` and approve it again, or use `tenterhook trust --revoke`"
    )
}

/// Returns the approvals of another copy of the repository that the work is in, with the hooks that deny for them. A hook that
/// is approved here too has settled it.
pub fn displaced(approvals: &Approvals) -> Vec<(DivergedHook, Vec<HookSpec>)> {
    let mut found = Vec::new();
    for (project, here) in approvals.elsewhere() {
        let is_here = |approved: &Approved| {
            let mut known = approvals.approved(here).iter();
            known.any(|known| known.source == approved.source && known.name == approved.name)
        };
        let missing = approvals.approved(project).iter();
        for approved in missing.filter(|approved| !is_here(approved)) {
            let problem = format!(
                "it was approved in `{}`, and `{}` is another folder",
                project.display(),
                here.display()
            );
            let hook = DivergedHook::new(
                project,
                approved,
                Divergence::OtherFolder {
                    here: here.to_owned(),
                },
                Some(displaced_reason(&approved.name, &problem)),
            );
            let denials = hook.denials();
            found.push((hook, denials));
        }
    }
    found
}
