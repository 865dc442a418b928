//! Assembles the result of a search from its candidates.

use std::sync::Arc;

use tenterhook_engine::{Dialect, EventName, HookSpec};
use tenterhook_hookfile::BrokenSource;
#[cfg(feature = "command")]
use tenterhook_runners::CommandHandler;
use tenterhook_systems::hook_folder::SystemEvent;
#[cfg(feature = "command")]
use tenterhook_systems::tools;
#[cfg(feature = "command")]
use tenterhook_trust::below;
use tenterhook_trust::{ProjectHook, deny};

use super::candidate::Candidate;
use super::event_names::executable_event;
use super::folder_hooks::FolderHooks;
use super::found_file::FileState;
use super::hook_spec::source;
#[cfg(feature = "command")]
use super::hook_spec::spec;
use super::processes::{FolderProcesses, ScriptVersions};
use super::scan::ScannedFolders;
#[cfg(not(feature = "command"))]
use crate::runner_feature::RunnerFeature;

/// Which files get hooks that deny, because their own hooks do not run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Denials {
    /// Files of the project that no one approved.
    pub(super) for_untrusted: bool,
    /// Files in force that cannot be loaded.
    pub(super) for_broken: bool,
}

/// Returns the problem of a file that cannot be loaded.
fn broken_source(candidate: &Candidate) -> Option<BrokenSource> {
    let FileState::Broken { problem } = &candidate.found.state else {
        return None;
    };
    Some(BrokenSource {
        path: candidate.found.path.clone(),
        layer: candidate.found.layer,
        system: candidate.found.kind.system,
        problems: vec![(**problem).clone()],
        is_outdated: candidate.diverged.is_some(),
    })
}

/// Builds the hooks of every candidate, and reports the files that cannot run.
pub(super) async fn assemble(
    scanned: ScannedFolders,
    processes: &FolderProcesses,
    denials: Denials,
) -> FolderHooks {
    let mut discovered = FolderHooks {
        warnings: scanned.warnings,
        broken: scanned.broken,
        untrusted: scanned.untrusted,
        ..FolderHooks::default()
    };
    let mut versions = ScriptVersions::default();
    for candidate in scanned.candidates {
        discovered.specs.extend(hooks_of_file(&candidate, denials));
        let added = processes.add_hooks(&candidate, &mut versions, &mut discovered);
        added.await;
        if candidate.is_in_force {
            discovered.broken.extend(broken_source(&candidate));
        } else {
            discovered.untrusted.extend(broken_source(&candidate));
        }
        let version = candidate.version();
        let mut found = candidate.found;
        found.version = version;
        let runs = found.state.is_in_force();
        if let Some((item, state)) = candidate.item {
            found.version.push_str(&item.digest());
            let mut events: Vec<EventName> = found.state.events().into_iter().cloned().collect();
            events.extend(candidate.known_event);
            let hook = ProjectHook::new(item, state, events);
            discovered.project_hooks.push(ProjectHook {
                is_approved_in_force: runs && candidate.diverged.is_some(),
                ..hook
            });
        }
        // A file that is disabled or shadowed would not run in its approved version either.
        let is_left_out = matches!(
            found.state,
            FileState::TurnedOff | FileState::Shadowed { .. }
        );
        let diverged = candidate.diverged.filter(|_| !is_left_out);
        discovered.diverged.extend(diverged);
        discovered.files.push(found);
    }
    discovered
}

/// Builds the hooks of a file, or the hooks that deny in its place.
fn hooks_of_file(candidate: &Candidate, denials: Denials) -> Vec<HookSpec> {
    let found = &candidate.found;
    match &found.state {
        FileState::Hook { declared, .. } => {
            // The name was already read when the file declared it.
            let Ok(SystemEvent { event, dialect, .. }) = executable_event(found.kind, declared)
            else {
                return Vec::new();
            };
            executable_hook(candidate, event, dialect)
        }
        FileState::Untrusted | FileState::Changed if denials.for_untrusted => denials_of(candidate),
        FileState::Denied { .. } => {
            let events = candidate.known_event.clone();
            let hook = candidate.diverged.iter();
            hook.flat_map(|hook| hook.denials_of(&source(found), events.clone()))
                .collect()
        }
        FileState::Broken { problem } if denials.for_broken && candidate.is_in_force => {
            let reason = format!("`{}` cannot be loaded: {}", found.name, problem.message);
            deny(&found.name, Vec::new(), &source(found), &reason)
        }
        FileState::Untrusted
        | FileState::Changed
        | FileState::Script { .. }
        | FileState::Shadowed { .. }
        | FileState::Disabled
        | FileState::TurnedOff
        | FileState::NotExecutable
        | FileState::Broken { .. } => Vec::new(),
    }
}

/// Builds the hook of an executable.
#[cfg(feature = "command")]
fn executable_hook(
    candidate: &Candidate,
    event: EventName,
    dialect: Arc<dyn Dialect>,
) -> Vec<HookSpec> {
    let found = &candidate.found;
    let text = candidate.project().map_or_else(
        || found.path.display().to_string(),
        |project| below(&found.path, &project.dir),
    );
    let policy = dialect.policy(event.info(), None);
    let tools = tools::of_hooks(&*dialect);
    let handler = CommandHandler::executable(&candidate.run, text, dialect);
    let handler = match &candidate.search_path {
        Some(search) => handler.search_path(search),
        None => handler,
    };
    let spec = spec(found, event, Arc::new(handler), policy);
    vec![HookSpec { tools, ..spec }]
}

/// Builds a hook that denies in place of an executable, because this program cannot run executables.
#[cfg(not(feature = "command"))]
fn executable_hook(
    candidate: &Candidate,
    event: EventName,
    _dialect: Arc<dyn Dialect>,
) -> Vec<HookSpec> {
    let found = &candidate.found;
    let reason = RunnerFeature::Command
        .problem(&found.name)
        .unwrap_or_default();
    deny(&found.name, vec![event], &source(found), &reason)
}

/// Returns the hooks that deny in place of an unapproved file.
fn denials_of(candidate: &Candidate) -> Vec<HookSpec> {
    let Some((_, state)) = &candidate.item else {
        return Vec::new();
    };
    let found = &candidate.found;
    let events = candidate.known_event.iter().cloned().collect();
    deny(&found.name, events, &source(found), &state.denial_reason())
}
