//! Compares the hooks of two loads of the same sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tenterhook_discovery::{FoundFile, Loaded};
use tenterhook_engine::journal::HookChanges;
use tenterhook_engine::{EventName, HookSpec, Layer};
use tenterhook_trust::TrustState;

/// Everything that a load has put in force.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HooksInForce {
    /// The hooks, each with the version of its source.
    hooks: BTreeMap<String, String>,
    /// The version of each file, also of files that have no hooks but tools or an agent.
    files: BTreeMap<PathBuf, String>,
}

impl HooksInForce {
    /// Returns what is in force after a load. `loaded` includes the hooks of folders.
    pub fn of(loaded: &Loaded, found: &[FoundFile]) -> Self {
        let approved = approved(loaded);
        let read = loaded.files.iter();
        let read = read.map(|file| (file.path.as_path(), file.sha256.as_str()));
        let found_versions = found.iter();
        let found_versions =
            found_versions.map(|file| (file.path.as_path(), file.version.as_str()));
        let versions: BTreeMap<&Path, &str> = read.chain(found_versions).collect();
        let version = |path: &Path| match approved.get(path) {
            Some(digests) => digests.iter().cloned().collect::<Vec<_>>().join(" "),
            None => versions.get(path).copied().unwrap_or_default().to_owned(),
        };
        let mut this = Self::default();
        for spec in &loaded.specs {
            let path = spec.source.path.as_deref();
            let version = path.map(version).unwrap_or_default();
            if let Some(path) = path {
                this.files.insert(path.to_owned(), version.clone());
            }
            // Hooks of the command line have no file.
            let version = Some(version).filter(|version| !version.is_empty());
            let version = version.or_else(|| spec.definition.clone());
            this.hooks
                .insert(describe(spec), version.unwrap_or_default());
        }
        let named = loaded.files.iter();
        let named = named.filter(|file| file.layer == Layer::Explicit && !file.is_disabled);
        let used = found.iter().filter(|file| file.state.is_in_force());
        let used = used.map(|file| &file.path);
        for path in named.map(|file| &file.path).chain(used) {
            this.files.insert(path.clone(), version(path));
        }
        this
    }

    /// Returns the hooks that differ from an earlier load, or `None` if the same is in force. There may be none if only
    /// files without hooks differ.
    pub fn changes_since(&self, before: &Self) -> Option<HookChanges> {
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
        Some(hooks)
    }
}

/// Returns the approvals of each project file: they decide what of it runs, whatever its content is now.
fn approved(loaded: &Loaded) -> BTreeMap<PathBuf, BTreeSet<String>> {
    let trusted = loaded.project_hooks.iter();
    let trusted = trusted.filter(|hook| hook.state == TrustState::Trusted);
    let trusted = trusted.map(|hook| {
        let file = hook.item.project.join(&hook.item.source);
        (file, &hook.item.name, hook.item.digest())
    });
    let diverged = loaded.diverged.iter().map(|hook| {
        let denies = hook.denies.as_deref().unwrap_or_default();
        let version = format!("{}{denies}", hook.approved.digest);
        (hook.source(), &hook.approved.name, version)
    });
    let mut approved: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for (source, name, version) in trusted.chain(diverged) {
        // The source of an executable or a script is its folder.
        for file in [source.join(name), source] {
            approved.entry(file).or_default().insert(version.clone());
        }
    }
    approved
}

/// Returns the name of a hook with its event and source.
fn describe(spec: &HookSpec) -> String {
    let event = spec.event.as_ref().map(EventName::as_str);
    let event = event.unwrap_or("every event");
    match &spec.source.path {
        Some(path) => format!("{} on {event} ({})", spec.id, path.display()),
        None => format!("{} on {event} ({})", spec.id, spec.source.layer.as_str()),
    }
}
