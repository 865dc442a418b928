//! Approved hooks of a hook file, loaded from the copies that were kept of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tenterhook::{HookSpec, Layer};

use super::{LoadOptions, approvals, read_drafts};
use crate::draft::{Context, Draft};
use crate::problem::{Problem, Severity};
use crate::project::Project;
use crate::report::Report;
use crate::source::Source;
use crate::trust::{
    Approvals, Approved, DivergedHook, Divergence, displaced_reason, restore, unrunnable_reason,
};

/// An approved hook that was loaded as it was approved.
pub(super) struct Restored {
    pub(super) hook: DivergedHook,
    /// Its hooks, or those that deny instead.
    pub(super) specs: Vec<HookSpec>,
    /// A key of an agent stands for it.
    pub(super) is_wired: bool,
}

/// The approved versions of one hook file. Each version is read once, however many of its hooks are loaded.
pub(super) struct ApprovedCopies<'a> {
    path: PathBuf,
    project: Project,
    /// The hook file, below the project.
    source: PathBuf,
    approvals: &'a Approvals,
    options: &'a LoadOptions,
    /// What each version says, by its digest.
    read: HashMap<String, Result<Copy, String>>,
}

/// An approved version of a hook file.
struct Copy {
    source: Source,
    /// The hooks that were not loaded yet, and whether keys of agents stand for them.
    drafts: Vec<(Draft, bool)>,
}

impl<'a> ApprovedCopies<'a> {
    /// Returns the approved versions of a file, if approvals decide about its layer.
    pub(super) fn of(path: &Path, layer: Layer, options: &'a LoadOptions) -> Option<Self> {
        let approvals = approvals(layer, options)?;
        let (project, source) = Project::of_file(path);
        Some(Self {
            path: path.to_owned(),
            project,
            source,
            approvals,
            options,
            read: HashMap::new(),
        })
    }

    pub(super) const fn approvals(&self) -> &'a Approvals {
        self.approvals
    }

    /// Loads the approved hooks of the file whose names are not among these, in the order of the file that was approved.
    pub(super) fn load_all_but(&mut self, names: &[String]) -> Vec<Restored> {
        let approved = self.approvals.approved(&self.project.dir).iter();
        let missing: Vec<&Approved> = approved
            .filter(|approved| approved.source == self.source && !names.contains(&approved.name))
            .collect();
        let mut restored: Vec<Restored> = missing
            .into_iter()
            .map(|approved| self.load(approved, Divergence::Missing))
            .collect();
        restored.sort_by_key(|restored| {
            let first = restored.specs.first();
            first.and_then(|spec| spec.source.line)
        });
        restored
    }

    /// Loads an approved hook. Where that is not possible, its gates deny.
    pub(super) fn load(&mut self, approved: &Approved, divergence: Divergence) -> Restored {
        let objection = self.approvals.objection(&self.project.dir, approved);
        let (divergence, restored) = if let Some(problem) = objection {
            let reason = displaced_reason(&approved.name, &problem);
            (Divergence::OtherRepository, Err(reason))
        } else {
            let restored = self.restore(approved);
            let reason = |problem: String| unrunnable_reason(&approved.name, &problem);
            (divergence, restored.map_err(reason))
        };
        let dir = &self.project.dir;
        match restored {
            Ok((specs, is_wired)) => Restored {
                hook: DivergedHook::new(dir, approved, divergence, None),
                specs,
                is_wired,
            },
            Err(reason) => {
                let hook = DivergedHook::new(dir, approved, divergence, Some(reason));
                Restored {
                    specs: hook.denials(),
                    hook,
                    is_wired: false,
                }
            }
        }
    }

    /// Makes the hooks of an approved definition, and says whether a key of an agent stands for them.
    fn restore(&mut self, approved: &Approved) -> Result<(Vec<HookSpec>, bool), String> {
        let (source, mut draft, is_wired) = self.draft(approved)?;
        let item = self.approvals.restore(&self.project.dir, approved)?;
        let context = Context {
            layer: Layer::Project,
            options: self.options,
        };
        restore(self.approvals, item, approved, &mut draft)?;
        let mut report = Report::new(source);
        let specs = draft.build(&mut report, &context);
        match first_error(report) {
            Some(error) => Err(error),
            None => Ok((specs, is_wired)),
        }
    }

    /// Returns the definition of an approved hook.
    fn draft(&mut self, approved: &Approved) -> Result<(Source, Draft, bool), String> {
        let Some(sha256) = &approved.hook_file else {
            return Err(
                "it was approved by an older version of tenterhook, which kept no copy of its definition"
                    .to_owned(),
            );
        };
        let (path, approvals) = (&self.path, self.approvals);
        let copy = self.read.entry(sha256.clone());
        let copy = copy.or_insert_with(|| Copy::read(path, approvals, approved));
        let copy = copy.as_mut().map_err(|problem| problem.clone())?;
        let is_approved = |(draft, _): &(Draft, bool)| {
            let first = draft.events.first();
            first.is_some_and(|event| event.id == approved.name)
        };
        let place = copy.drafts.iter().position(is_approved);
        let place = place.ok_or("the approved copy of its hook file does not have it")?;
        let (draft, is_wired) = copy.drafts.swap_remove(place);
        Ok((copy.source.clone(), draft, is_wired))
    }
}

impl Copy {
    fn read(path: &Path, approvals: &Approvals, approved: &Approved) -> Result<Self, String> {
        let text = approvals.hook_text(approved);
        let text = text.ok_or("the approved copy of its hook file is gone or damaged")?;
        let source = Source::new(path, &text);
        let mut report = Report::new(source.clone());
        let read = read_drafts(&mut report, path, &text);
        if let Some(error) = first_error(report) {
            return Err(error);
        }
        let drafts = read.drafts.into_iter().map(|draft| (draft, false));
        let wired = read.wired.into_iter().map(|draft| (draft, true));
        Ok(Self {
            source,
            drafts: drafts.chain(wired).collect(),
        })
    }
}

fn first_error(report: Report) -> Option<String> {
    let mut problems = report.into_problems().into_iter();
    let is_error = |problem: &Problem| problem.severity == Severity::Error;
    problems.find(is_error).map(|problem| problem.message)
}
