//! Loads the approved hooks of a hook file from their approved copies.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use tenterhook_engine::{EventClass, HookSpec, Layer};
use tenterhook_hookfile::{HookDeclaration, Problem, Report, Severity, SourceText, read_imported};
use tenterhook_trust::{
    ApprovalRecord, Approvals, DivergedHook, Divergence, HookOrder, Project, displaced_reason,
    restore, unrunnable_reason,
};

use crate::build::build;
use crate::options::LoadOptions;

/// An approved hook, loaded from its approved copy.
pub(crate) struct RestoredHook {
    pub(crate) hook: DivergedHook,
    /// Its hooks, or hooks that deny in its place.
    pub(crate) specs: Vec<HookSpec>,
    /// Whether a key of an agent, such as `redact_secrets`, declared it.
    pub(crate) is_wired: bool,
    /// Why it does not run, if no denial can replace it because it works on results.
    pub(crate) absent: Option<String>,
}

/// Returns whether a hook was approved for an event that passes on a result and cannot be denied.
fn watches_results(approved: &ApprovalRecord) -> bool {
    approved.events.iter().any(|event| {
        let info = event.info();
        info.hands_on_result() && info.class != EventClass::Gate
    })
}

/// The approved versions of one hook file. Each version is read at most once.
pub(crate) struct ApprovedCopies<'a> {
    path: PathBuf,
    project: Project,
    /// The hook file, relative to the project.
    source: PathBuf,
    /// The variables of the file's hooks, if another file imports it.
    variables: Vec<(String, String)>,
    approvals: &'a Approvals,
    options: &'a LoadOptions,
    /// The content of each version, by its digest.
    read: HashMap<String, Result<FileCopy, String>>,
    /// The hooks that have moved in the file since their approval.
    moved: BTreeSet<String>,
}

/// An approved version of a hook file.
struct FileCopy {
    source: SourceText,
    /// The hooks that were not loaded yet, and whether a key of an agent declared each.
    declarations: Vec<(HookDeclaration, bool)>,
}

impl<'a> ApprovedCopies<'a> {
    /// Returns the approved versions of a file, if approvals decide about its layer.
    pub(crate) fn of(
        path: &Path,
        variables: &[(String, String)],
        layer: Layer,
        options: &'a LoadOptions,
    ) -> Option<Self> {
        let approvals = options.approvals(layer)?;
        let (project, source) = Project::of_file(path);
        Some(Self {
            path: path.to_owned(),
            project,
            source,
            variables: variables.to_vec(),
            approvals,
            options,
            read: HashMap::new(),
            moved: BTreeSet::new(),
        })
    }

    pub(crate) const fn approvals(&self) -> &'a Approvals {
        self.approvals
    }

    /// Returns the position of each hook in the approved order, by name. Empty if the file with this
    /// SHA-256 itself has the approved order, or if that order is unknown.
    pub(crate) fn places(&self, sha256: &str) -> HashMap<String, usize> {
        let ordered = self.approvals.ordered(&self.project.dir, &self.source);
        let other = ordered.filter(|it| it.hook_file.as_deref() != Some(sha256));
        let copy = other
            .and_then(|it| FileCopy::read(&self.path, &self.variables, self.approvals, it).ok());
        let declarations = copy.into_iter().flat_map(|copy| copy.declarations);
        let declarations = declarations.filter(|(_, is_wired)| !is_wired);
        let names = declarations
            .enumerate()
            .flat_map(|(place, (declaration, _))| {
                let events = declaration.events.into_iter();
                events.map(move |event| (event.id, place))
            });
        names.collect()
    }

    /// Finds the hooks that have moved relative to the approved order. `sha256` is the file's digest.
    pub(crate) fn compare(&mut self, declarations: &[HookDeclaration], sha256: &str) {
        let places = self.places(sha256);
        let approved = self.approvals.approved(&self.project.dir).iter();
        let approved: BTreeSet<&str> = approved
            .filter(|approved| approved.source == self.source)
            .map(|approved| approved.name.as_str())
            .collect();
        let named = declarations.iter().filter_map(|declaration| {
            let name = &declaration.events.first()?.id;
            let place = places
                .get(name)
                .filter(|_| approved.contains(name.as_str()))?;
            Some((name, *place))
        });
        let named: Vec<(&String, usize)> = named.collect();
        let mut highest = 0;
        let before = named.iter().map(|(_, place)| {
            let all_before = highest;
            highest = highest.max(*place);
            all_before
        });
        let before: Vec<usize> = before.collect();
        let mut lowest = usize::MAX;
        for ((name, place), highest) in named.iter().zip(before).rev() {
            if *place < highest || *place > lowest {
                self.moved.insert((*name).clone());
            }
            lowest = lowest.min(*place);
        }
    }

    /// Returns the position of a hook among the hooks of its file.
    pub(crate) fn order_of(&self, declaration: &HookDeclaration) -> HookOrder {
        let name = declaration.events.first().map(|event| &event.id);
        if name.is_some_and(|name| self.moved.contains(name)) {
            HookOrder::Moved
        } else if self.moved.is_empty() {
            HookOrder::AsApproved
        } else {
            HookOrder::NextToMoved
        }
    }

    /// Loads the approved hooks of the file except those with these names, in the approved order.
    pub(crate) fn load_all_but(&mut self, names: &[String]) -> Vec<RestoredHook> {
        let approved = self.approvals.approved(&self.project.dir).iter();
        let missing: Vec<&ApprovalRecord> = approved
            .filter(|approved| approved.source == self.source && !names.contains(&approved.name))
            .collect();
        let mut restored: Vec<RestoredHook> = missing
            .into_iter()
            .map(|approved| self.load(approved, Divergence::Missing))
            .collect();
        restored.sort_by_key(|restored| {
            let first = restored.specs.first();
            first.and_then(|spec| spec.source.line)
        });
        restored
    }

    /// Loads an approved hook. If that fails, its gates deny.
    pub(crate) fn load(
        &mut self,
        approved: &ApprovalRecord,
        divergence: Divergence,
    ) -> RestoredHook {
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
            Ok((specs, is_wired)) => RestoredHook {
                hook: DivergedHook::new(dir, approved, divergence, None),
                specs,
                is_wired,
                absent: None,
            },
            Err(reason) => {
                // In another repository, the user has to decide first.
                let is_unrunnable = divergence != Divergence::OtherRepository;
                let absent = (is_unrunnable && watches_results(approved)).then(|| reason.clone());
                let hook = DivergedHook::new(dir, approved, divergence, Some(reason));
                RestoredHook {
                    specs: hook.denials(),
                    hook,
                    is_wired: false,
                    absent,
                }
            }
        }
    }

    /// Builds the hooks of an approved definition, and returns whether a key of an agent declared them.
    fn restore(&mut self, approved: &ApprovalRecord) -> Result<(Vec<HookSpec>, bool), String> {
        let (source, declaration, is_wired) = self.declaration(approved)?;
        let restored = restore(self.approvals, &self.project.dir, approved, declaration)?;
        let mut report = Report::new(source);
        let specs = build(&mut report, self.options, &restored);
        match first_error(report) {
            Some(error) => Err(error),
            None => Ok((specs, is_wired)),
        }
    }

    /// Returns the definition of an approved hook.
    fn declaration(
        &mut self,
        approved: &ApprovalRecord,
    ) -> Result<(SourceText, HookDeclaration, bool), String> {
        let Some(sha256) = &approved.hook_file else {
            return Err(
                "it was approved with an older version of tenterhook, which did not keep a copy of its definition"
                    .to_owned(),
            );
        };
        let (path, variables, approvals) = (&self.path, &self.variables, self.approvals);
        let copy = self.read.entry(sha256.clone());
        let copy = copy.or_insert_with(|| FileCopy::read(path, variables, approvals, approved));
        let copy = copy.as_mut().map_err(|problem| problem.clone())?;
        let is_approved = |(declaration, _): &(HookDeclaration, bool)| {
            let first = declaration.events.first();
            first.is_some_and(|event| event.id == approved.name)
        };
        let place = copy.declarations.iter().position(is_approved);
        let place = place.ok_or("the approved copy of its hook file does not contain it")?;
        let (declaration, is_wired) = copy.declarations.swap_remove(place);
        Ok((copy.source.clone(), declaration, is_wired))
    }
}

impl FileCopy {
    fn read(
        path: &Path,
        variables: &[(String, String)],
        approvals: &Approvals,
        approved: &ApprovalRecord,
    ) -> Result<Self, String> {
        let text = approvals.hook_text(approved);
        let text = text.ok_or("the approved copy of its hook file is missing or damaged")?;
        let source = SourceText::new(path, &text);
        let mut report = Report::new(source.clone());
        let read = read_imported(&mut report, variables);
        if let Some(error) = first_error(report) {
            return Err(error);
        }
        let declarations = read
            .declarations
            .into_iter()
            .map(|declaration| (declaration, false));
        let wired = read
            .wired
            .into_iter()
            .map(|declaration| (declaration, true));
        Ok(Self {
            source,
            declarations: declarations.chain(wired).collect(),
        })
    }
}

fn first_error(report: Report) -> Option<String> {
    let mut problems = report.into_problems().into_iter();
    let is_error = |problem: &Problem| problem.severity == Severity::Error;
    problems.find(is_error).map(|problem| problem.message)
}
