//! Approved hooks that the project changed or no longer has.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use tenterhook_engine::{EventName, HookSpec, Layer, Source};
use tenterhook_protocol::escape::escape_line;

use crate::denial::deny;
use crate::record::ApprovalRecord;
use crate::store::Approvals;

/// How a project differs from what was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Divergence {
    /// The project has a different version of the hook.
    Changed,
    /// The hook has moved among the hooks of its file, so they would run in an order that was not
    /// approved.
    Moved,
    /// The project does not have the hook: it was removed, renamed or is broken.
    Missing,
    /// The folder is not in the repository that it was in at the time of the approval.
    OtherRepository,
    /// The hook was approved in another copy of the same repository.
    OtherFolder {
        /// The folder here that corresponds to the approved one.
        here: PathBuf,
    },
}

/// An approved hook that the project changed or no longer has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DivergedHook {
    /// The project folder of the approval.
    pub project: PathBuf,
    /// The approval.
    pub approved: ApprovalRecord,
    /// How the project differs.
    pub divergence: Divergence,
    /// Why the approved version cannot run, so that its gates deny. `None` if it is in force.
    pub denies: Option<String>,
}

impl DivergedHook {
    /// Returns the name of the approved hook with its source. It is safe to print.
    pub fn shown_name(&self) -> String {
        let approved = &self.approved;
        escape_line(&format!(
            "{} of {}",
            approved.name,
            approved.source.display()
        ))
    }

    /// Describes an approved hook that the project does not have as approved.
    pub fn new(
        project: &Path,
        approved: &ApprovalRecord,
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

    /// Returns the approved hook file, or the folder of the approved executable or script.
    pub fn source(&self) -> PathBuf {
        self.project.join(&self.approved.source)
    }

    /// Returns the folder in which the approval does not apply: the current project.
    pub fn here(&self) -> &Path {
        if let Divergence::OtherFolder { here } = &self.divergence {
            return here;
        }
        &self.project
    }

    /// Returns whether the approval is for another folder or repository. The user has to decide then.
    pub fn is_displaced(&self) -> bool {
        let divergence = &self.divergence;
        matches!(
            divergence,
            Divergence::OtherRepository | Divergence::OtherFolder { .. }
        )
    }

    /// Returns the hooks that deny in place of this one.
    pub fn denials(&self) -> Vec<HookSpec> {
        let source = Source {
            layer: Layer::Project,
            path: Some(self.source()),
            line: None,
        };
        self.denials_of(&source, None)
    }

    /// Returns the hooks that deny in place of this one, as hooks of `source`. `event` is an event of
    /// the hook that its approval does not record.
    pub fn denials_of(&self, source: &Source, event: Option<EventName>) -> Vec<HookSpec> {
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
        struct Fields<'a> {
            name: &'a str,
            source: String,
            project: String,
            divergence: &'a Divergence,
            in_force: bool,
            reason: Option<&'a str>,
        }
        let fields = Fields {
            name: &self.approved.name,
            source: self.approved.source.display().to_string(),
            project: self.project.display().to_string(),
            divergence: &self.divergence,
            in_force: self.denies.is_none(),
            reason: self.denies.as_deref(),
        };
        fields.serialize(serializer)
    }
}

/// Returns the reason of a denial by a hook whose approval is for another folder or repository.
pub fn displaced_reason(name: &str, problem: &str) -> String {
    format!(
        "the approval of the hook `{name}` does not apply here: {problem}; use `tenterhook trust --accept` to make it apply, or `tenterhook trust --revoke` to withdraw it"
    )
}

/// Returns the reason of a denial by an approved hook that cannot run as approved.
pub fn unrunnable_reason(name: &str, problem: &str) -> String {
    format!(
        "the approved version of the hook `{name}` cannot run: {problem}; read the hook with `tenterhook trust --show` and approve it again, or withdraw the approval with `tenterhook trust --revoke`"
    )
}

/// Returns the hooks that were approved in another copy of the current repository. Their gates deny. Leaves out hooks
/// that are approved here too.
pub fn displaced_hooks(approvals: &Approvals) -> Vec<DivergedHook> {
    let mut found = Vec::new();
    for (project, here) in approvals.elsewhere() {
        for approved in approvals.approved(project) {
            if approvals
                .find(here, &approved.source, &approved.name)
                .is_some()
            {
                continue;
            }
            let problem = format!(
                "it was approved in `{}`, and `{}` is another folder",
                project.display(),
                here.display()
            );
            let here = here.to_owned();
            found.push(DivergedHook::new(
                project,
                approved,
                Divergence::OtherFolder { here },
                Some(displaced_reason(&approved.name, &problem)),
            ));
        }
    }
    found
}
