//! Builds the hooks of scripts, and collects their tools, commands and flags.

use std::sync::Arc;

use tenterhook_engine::{HookSpec, Matcher};
use tenterhook_runners::worker::{
    Lease, Registered, ScriptHook, ScriptInForce, Worker, WorkerHandler,
};
use tenterhook_systems::tools;

use super::candidate::Candidate;
use super::event_names::script_event;
use super::folder_hooks::{FolderHooks, FoundScript};
use super::found_file::{FileState, FoundHook};
use super::hook_spec::{hook_id, spec};
use super::script_version::ScriptVersions;
use super::script_workers::{ScriptWorkers, script};

/// Adds the hooks, tools, commands and flags of a script.
pub(super) async fn add_script(
    candidate: &Candidate,
    workers: &ScriptWorkers,
    versions: &mut ScriptVersions,
    discovered: &mut FolderHooks,
) {
    let (FileState::Script { hooks, .. }, Some(language)) =
        (&candidate.found.state, candidate.language)
    else {
        return;
    };
    let Registered {
        tools,
        commands,
        flags,
        providers,
        warnings,
        hooks: _,
    } = candidate.registered.clone();
    let file = &candidate.found.name;
    let warnings = warnings
        .iter()
        .map(|warning| format!("`{file}`: {warning}"));
    discovered.warnings.extend(warnings);
    let adds = [tools.len(), commands.len(), flags.len(), providers.len()];
    if hooks.is_empty() && adds.iter().all(|count| *count == 0) {
        return;
    }
    let worker = workers.of(language, candidate).await;
    let expected = hooks.iter().map(|hook| ScriptHook {
        name: hook.name.clone(),
        event: hook.declared.clone(),
        matcher: hook.matcher.clone(),
        priority: hook.priority,
    });
    let version = versions.of(candidate);
    let expected = expected.collect();
    let lease = worker.expect(&script(candidate), expected, version).await;
    let specs = hooks
        .iter()
        .enumerate()
        .filter_map(|(place, hook)| script_hook_spec(candidate, (place, hook), &worker, &lease));
    discovered.specs.extend(specs);
    let is_free =
        |kind, name: &str, discovered: &mut FolderHooks| discovered.claim_name(file, kind, name);
    let tools = tools
        .into_iter()
        .filter(|it| is_free("tool", &it.name, discovered));
    let tools = tools.collect();
    let commands = commands
        .into_iter()
        .filter(|it| is_free("command", &it.name, discovered));
    let commands = commands.collect();
    let providers = providers
        .into_iter()
        .filter(|it| is_free("provider", &it.name, discovered));
    let providers = providers.collect();
    discovered.scripts.push(FoundScript {
        name: file.clone(),
        path: candidate.found.path.clone(),
        in_force: Arc::new(ScriptInForce::new(worker.script(lease.clone()))),
        worker,
        lease,
        tools,
        commands,
        flags,
        providers,
    });
}

/// Builds one hook of a script.
fn script_hook_spec(
    candidate: &Candidate,
    (place, hook): (usize, &FoundHook),
    worker: &Worker,
    lease: &Lease,
) -> Option<HookSpec> {
    let found = &candidate.found;
    let FileState::Script { hooks, .. } = &found.state else {
        return None;
    };
    // The name was already read when the script registered its hooks.
    let declared = script_event(found.kind, &hook.declared).ok()?;
    let dialect = declared.dialect;
    let text = format!("{} {}", found.name, hook.name);
    let policy = dialect.policy(hook.event.info(), None);
    let tools = tools::of_hooks(&*dialect);
    let handler = WorkerHandler::leased(worker.clone(), (lease.clone(), place), dialect, text);
    let matcher = hook.matcher.as_deref().map(Matcher::parse);
    Some(HookSpec {
        id: hook_id(&found.name, hooks, place),
        matcher: matcher
            .and_then(Result::ok)
            .unwrap_or_else(Matcher::everything),
        priority: hook.priority,
        tools,
        ..spec(found, hook.event.clone(), Arc::new(handler), policy)
    })
}
