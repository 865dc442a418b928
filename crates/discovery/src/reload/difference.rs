//! Compares two loads of the same sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use tenterhook_engine::journal::HookChanges;
use tenterhook_engine::{HookSpec, Layer};

use super::unit::{self, Unit};
use crate::folder::FoundFile;
use crate::loaded::Loaded;

/// How a load differs from an earlier load of the same sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceChanges {
    /// The hooks that differ.
    pub hooks: HookChanges,
    /// Whether everything that was in force before is in force unchanged.
    pub only_adds: bool,
}

/// Everything that a load has put in force.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct InForce {
    /// The hooks, each with the version of its source.
    hooks: BTreeMap<String, String>,
    /// The version of each file, also of files that have no hooks but tools or an agent.
    files: BTreeMap<(PathBuf, String), String>,
}

impl InForce {
    /// Returns what is in force after a load. `loaded` includes the hooks of folders.
    pub(crate) fn of(loaded: &Loaded, found: &[FoundFile], lines: &[HookSpec]) -> Self {
        let (units, denials) = unit::of(loaded, found.to_vec());
        let named = loaded
            .files
            .iter()
            .filter(|file| file.layer == Layer::Explicit && !file.is_broken && !file.is_disabled);
        let found = found.iter().filter(|file| file.state.is_in_force());
        let used: BTreeSet<_> = named
            .map(|file| (&file.path, file.layer.as_str()))
            .chain(found.map(|file| (&file.path, file.layer.as_str())))
            .collect();
        let mut this = Self::default();
        for unit in &units {
            let version = unit.version_in_force();
            for spec in unit.specs.iter().chain(&unit.wired) {
                this.hooks.insert(describe(spec), version.clone());
            }
            let (path, layer) = unit.place();
            if has_hooks(unit) || used.contains(&(path, layer.as_str())) {
                let place = (path.clone(), layer.as_str().to_owned());
                this.files.insert(place, version);
            }
        }
        for spec in denials.iter().chain(lines) {
            this.hooks.insert(describe(spec), String::new());
        }
        this
    }

    /// Compares with an earlier load. Returns `None` if the same is in force.
    pub(crate) fn changes_since(&self, before: &Self) -> Option<SourceChanges> {
        if self == before {
            return None;
        }
        let mut hooks = HookChanges::default();
        for (hook, version) in &self.hooks {
            match before.hooks.get(hook) {
                None => hooks.added.push(hook.clone()),
                Some(old) if old != version => hooks.changed.push(hook.clone()),
                Some(_) => {}
            }
        }
        let is_gone = |hook: &&String| !self.hooks.contains_key(*hook);
        hooks.removed = before.hooks.keys().filter(is_gone).cloned().collect();
        let mut files = before.files.iter();
        let keeps_files = files.all(|(file, version)| self.files.get(file) == Some(version));
        let only_adds = keeps_files && hooks.changed.is_empty() && hooks.removed.is_empty();
        Some(SourceChanges { hooks, only_adds })
    }
}

fn has_hooks(unit: &Unit) -> bool {
    !(unit.specs.is_empty() && unit.wired.is_empty())
}

/// Returns the name of a hook with its event and source.
fn describe(spec: &HookSpec) -> String {
    let event = spec
        .event
        .as_ref()
        .map(tenterhook_engine::EventName::as_str);
    let event = event.unwrap_or("every event");
    let layer = spec.source.layer.as_str();
    match &spec.source.path {
        Some(path) => format!("{} on {event} ({})", spec.id, path.display()),
        None => format!("{} on {event} ({layer})", spec.id),
    }
}
