//! The hooks of one file, and the rules for replacing them when the file changes.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenterhook_engine::{HookSpec, Layer};

use super::change::{Change, ChangeKind, StayReason};
use crate::folder::{FileState, FoundFile};
use crate::loaded::Loaded;
use tenterhook_hookfile::BrokenSource;
use tenterhook_trust::{Approvals, DivergedHook, ProjectHook, TrustState};

/// The hooks of one file.
#[derive(Debug)]
pub(super) struct Unit {
    path: PathBuf,
    layer: Layer,
    /// Identifies the content of the file when these hooks were loaded.
    version: String,
    /// Identifies newer content that was reported but did not replace these hooks, and how it was reported.
    seen: Option<(String, ChangeKind)>,
    /// Why the file could not be loaded.
    problem: Option<String>,
    pub(super) specs: Vec<HookSpec>,
    pub(super) wired: Vec<HookSpec>,
    /// The hooks that need an approval.
    project_hooks: Vec<ProjectHook>,
    /// Approved hooks that the project changed or no longer has.
    diverged: Vec<DivergedHook>,
}

/// Decides about files that have changed.
#[derive(Debug)]
pub(super) struct Rules {
    /// The approvals, if they decide. Approved hooks stay in force.
    pub(super) approvals: Option<Arc<Approvals>>,
    /// Whether the user requested a reload, so that hooks may be removed.
    pub(super) is_asked: bool,
}

/// Groups hooks by file. Also returns the hooks that belong to no loaded file.
pub(super) fn of(loaded: &Loaded, found: Vec<FoundFile>) -> (Vec<Unit>, Vec<HookSpec>) {
    let mut units: Vec<Unit> = Vec::new();
    for file in &loaded.files {
        let mut broken = loaded.broken.iter().chain(&loaded.untrusted);
        let broken = broken.find(|broken| broken.path == file.path);
        let error = broken.and_then(BrokenSource::first_error);
        units.push(Unit {
            problem: error.map(|problem| problem.message.clone()),
            ..Unit::new(&file.path, file.layer, file.sha256.clone())
        });
    }
    for file in found {
        let problem = if let FileState::Broken { problem } = &file.state {
            Some(problem.message.clone())
        } else {
            None
        };
        units.push(Unit {
            problem,
            ..Unit::new(&file.path, file.layer, file.version)
        });
    }
    let places = Places::of(&units);
    for hook in &loaded.project_hooks {
        let item = &hook.item;
        let place = places.of_project(&item.project.join(&item.source), &item.name);
        if let Some(unit) = place.and_then(|place| units.get_mut(place)) {
            unit.project_hooks.push(hook.clone());
        }
    }
    for hook in &loaded.diverged {
        let place = places.of_project(&hook.source(), &hook.approved.name);
        if let Some(unit) = place.and_then(|place| units.get_mut(place)) {
            unit.diverged.push(hook.clone());
        }
    }
    for spec in &loaded.wired {
        // Their layer is `Code`, so only the path can be compared.
        let path = spec.source.path.as_deref();
        let mut files = units.iter_mut().take(loaded.files.len());
        if let Some(unit) = files.find(|unit| Some(&*unit.path) == path) {
            unit.wired.push(spec.clone());
        }
    }
    let mut others = Vec::new();
    for spec in &loaded.specs {
        let source = &spec.source;
        let place = source.path.as_deref();
        let place = place.and_then(|path| places.find(path, source.layer));
        match place.and_then(|place| units.get_mut(place)) {
            Some(unit) => unit.specs.push(spec.clone()),
            None => others.push(spec.clone()),
        }
    }
    (units, others)
}

/// The index of each file's unit.
struct Places(HashMap<(PathBuf, Layer), usize>);

impl Places {
    fn of(units: &[Unit]) -> Self {
        let mut places = HashMap::new();
        for (place, unit) in units.iter().enumerate() {
            places
                .entry((unit.path.clone(), unit.layer))
                .or_insert(place);
        }
        Self(places)
    }

    fn find(&self, path: &Path, layer: Layer) -> Option<usize> {
        self.0.get(&(path.to_owned(), layer)).copied()
    }

    /// Returns the unit of a project's hook, given its source and its name. The source may be a folder.
    fn of_project(&self, source: &Path, name: &str) -> Option<usize> {
        let own = self.find(source, Layer::Project);
        own.or_else(|| self.find(&source.join(name), Layer::Project))
    }
}

const fn stays(because: StayReason) -> ChangeKind {
    ChangeKind::Stays { because }
}

/// Replaces the previous units with new ones, according to the rules. Also returns the changes.
pub(super) fn merge(
    before: Vec<Unit>,
    now: Vec<Unit>,
    rules: &Rules,
    is_in_force: impl Fn(&Path) -> bool,
) -> (Vec<Unit>, Vec<Change>) {
    let places = Places::of(&before);
    let mut before: Vec<Option<Unit>> = before.into_iter().map(Some).collect();
    let mut changes = Vec::new();
    let mut merged: Vec<Unit> = Vec::new();
    for unit in now {
        let place = places.find(&unit.path, unit.layer);
        let old = place.and_then(|place| before.get_mut(place)?.take());
        let named = |old: &Unit| old.layer == Layer::Explicit;
        let (unit, kind) = match old {
            Some(old) if named(&old) => (old, None),
            old => unit.after(old, rules),
        };
        changes.extend(kind.map(|kind| unit.change(kind)));
        merged.push(unit);
    }
    for (place, old) in before.into_iter().enumerate() {
        let Some(old) = old else {
            continue;
        };
        if old.layer == Layer::Explicit {
            merged.insert(place.min(merged.len()), old);
        } else if !old.is_empty() && is_in_force(&old.path) && old.is_still_approved(rules) {
            let (old, kind) = old.kept(String::new(), ChangeKind::Waits { goes_on: true });
            changes.extend(kind.map(|kind| old.change(kind)));
            merged.insert(place.min(merged.len()), old);
        } else if !rules.is_asked && old.is_own() && is_in_force(&old.path) {
            // No content of a file has an empty version.
            let (old, kind) = old.kept(String::new(), stays(StayReason::Gone));
            changes.extend(kind.map(|kind| old.change(kind)));
            merged.insert(place.min(merged.len()), old);
        } else {
            changes.push(old.change(ChangeKind::Removed));
        }
    }
    (merged, changes)
}

impl Unit {
    fn new(path: &Path, layer: Layer, version: String) -> Self {
        Self {
            path: path.to_owned(),
            layer,
            version,
            seen: None,
            problem: None,
            specs: Vec::new(),
            wired: Vec::new(),
            project_hooks: Vec::new(),
            diverged: Vec::new(),
        }
    }

    /// Returns whether it has hooks and none of them needs an approval.
    fn is_own(&self) -> bool {
        self.project_hooks.is_empty()
            && self.diverged.is_empty()
            && !(self.specs.is_empty() && self.wired.is_empty())
    }

    /// Keeps hooks although their file has changed, and reports this once per version.
    fn kept(self, now: String, kind: ChangeKind) -> (Self, Option<ChangeKind>) {
        let is_new = self.seen.as_ref().is_none_or(|(seen, _)| *seen != now);
        let unit = Self {
            seen: Some((now, kind.clone())),
            ..self
        };
        (unit, is_new.then_some(kind))
    }

    /// Returns the change that did not replace these hooks, if the file has changed since they were loaded.
    pub(super) fn pending(&self) -> Option<Change> {
        let (_, kind) = self.seen.as_ref()?;
        Some(self.change(kind.clone()))
    }

    /// Returns whether it has neither hooks nor a problem.
    pub(super) fn is_empty(&self) -> bool {
        self.specs.is_empty()
            && self.wired.is_empty()
            && self.project_hooks.is_empty()
            && self.problem.is_none()
    }

    fn change(&self, kind: ChangeKind) -> Change {
        Change {
            path: self.path.clone(),
            kind,
        }
    }

    /// Returns a change if a hook needs an approval before its current version can run.
    fn waits(&self) -> Option<ChangeKind> {
        let is_other = |hook: &&ProjectHook| hook.state != TrustState::Trusted;
        let goes_on = !self.project_hooks.iter().any(ProjectHook::is_withheld);
        let waits = self.project_hooks.iter().find(is_other).is_some() || !self.diverged.is_empty();
        waits.then_some(ChangeKind::Waits { goes_on })
    }

    /// Returns whether a trusted hook of the previous unit would no longer run.
    fn lacks_of(&self, old: &Self) -> bool {
        let trusted = |unit: &Self| -> BTreeSet<String> {
            let trusted = unit
                .project_hooks
                .iter()
                .filter(|hook| hook.state == TrustState::Trusted);
            trusted.map(|hook| hook.item.digest()).collect()
        };
        self.problem.is_some() || !trusted(old).is_subset(&trusted(self))
    }

    /// Returns whether its trusted hooks are still approved.
    fn is_still_approved(&self, rules: &Rules) -> bool {
        let mut trusted = self
            .project_hooks
            .iter()
            .filter(|hook| hook.state == TrustState::Trusted)
            .peekable();
        let Some(approvals) = &rules.approvals else {
            return false;
        };
        trusted.peek().is_some()
            // The repository is not checked: moving it away must not remove hooks that are in force.
            && trusted.all(|hook| approvals.is_approved(&hook.item))
    }

    /// Returns the unit that replaces the previous one of the same file, and the change to report.
    fn after(self, old: Option<Self>, rules: &Rules) -> (Self, Option<ChangeKind>) {
        let Some(old) = old else {
            let kind = self.kind();
            return (self, kind);
        };
        if self.lacks_of(&old) && old.is_still_approved(rules) {
            return old.kept(self.version, ChangeKind::Waits { goes_on: true });
        }
        if self.is_like(&old) {
            return (Self { seen: None, ..old }, None);
        }
        if let Some(problem) = &self.problem
            && !(old.specs.is_empty() && old.wired.is_empty())
        {
            let problem = problem.clone();
            return old.kept(self.version, stays(StayReason::Broken { problem }));
        }
        if !rules.is_asked && old.is_own() {
            return old.kept(self.version, stays(StayReason::Changed));
        }
        let kind = self.kind().or_else(|| {
            let had_hooks = !old.specs.is_empty() || !old.wired.is_empty();
            had_hooks.then_some(ChangeKind::Removed)
        });
        (self, kind)
    }

    /// Returns whether neither the file nor its approvals have changed.
    fn is_like(&self, old: &Self) -> bool {
        let states = |unit: &Self| -> Vec<TrustState> {
            unit.project_hooks.iter().map(|hook| hook.state).collect()
        };
        let digests = |unit: &Self| -> Vec<String> {
            let digests = unit.project_hooks.iter().map(|hook| hook.item.digest());
            digests.collect()
        };
        let counts = |unit: &Self| (unit.specs.len(), unit.wired.len());
        let has_same_hooks = self.problem.is_some() || counts(self) == counts(old);
        self.version == old.version
            && self.problem == old.problem
            && has_same_hooks
            && states(self) == states(old)
            && digests(self) == digests(old)
    }

    /// Returns the change to report about a new or changed file, if it has hooks or a problem.
    fn kind(&self) -> Option<ChangeKind> {
        if let Some(problem) = &self.problem {
            return Some(ChangeKind::Failed {
                problem: problem.clone(),
                denies: !self.specs.is_empty(),
            });
        }
        if let Some(kind) = self.waits() {
            return Some(kind);
        }
        let hooks = self.specs.len() + self.wired.len();
        (hooks > 0).then_some(ChangeKind::Reloaded { hooks })
    }
}
