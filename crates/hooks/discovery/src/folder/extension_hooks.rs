//! Builds the hooks of extensions, and collects their tools and commands.

use std::sync::Arc;

use tenterhook_engine::HookSpec;
use tenterhook_runners::worker::{ExtensionInForce, WorkerHandler};
use tenterhook_systems::hook_folder::SystemEvent;
use tenterhook_systems::tools;

use super::candidate::Candidate;
use super::extension_processes::ExtensionProcesses;
use super::folder_hooks::{FolderHooks, FoundExtension};
use super::found_file::FileState;
use super::hook_spec::{hook_id, spec};
use super::registered_state::subscriptions;
use super::script_version::ScriptVersions;

/// Adds the hooks, tools and commands that an extension registered.
pub(super) async fn add_extension(
    candidate: &Candidate,
    extensions: &ExtensionProcesses,
    versions: &mut ScriptVersions,
    discovered: &mut FolderHooks,
) {
    let FileState::Script { hooks, .. } = &candidate.found.state else {
        return;
    };
    let Some(programs) = candidate.found.kind.extension_programs() else {
        return;
    };
    let id = &candidate.found.name;
    let extension = extensions.of(programs, candidate);
    // The process was already asked, and keeps its registration.
    let Ok(registration) = extension.registration().await else {
        return;
    };
    if let Some(version) = versions.of(candidate) {
        extension.expect_version(version).await;
    }
    let specs = subscriptions(programs, &registration).enumerate();
    discovered
        .specs
        .extend(specs.map(|(place, (declared, subscription))| {
            let SystemEvent { event, dialect, .. } = declared;
            let policy = dialect.policy(event.info(), None);
            let text = format!("{id} {}", subscription.event);
            let tools = tools::of_hooks(&*dialect);
            let handler = WorkerHandler::of_extension(extension.clone(), dialect, text);
            HookSpec {
                id: hook_id(id, hooks, place),
                priority: subscription.priority,
                timeout: subscription.timeout(),
                tools,
                ..spec(&candidate.found, event, Arc::new(handler), policy)
            }
        }));
    let mut found = FoundExtension {
        id: id.clone(),
        path: candidate.found.path.clone(),
        in_force: Arc::new(ExtensionInForce::new(extension.clone())),
        extension,
        tools: Vec::new(),
        commands: Vec::new(),
    };
    for tool in &registration.tools {
        if discovered.claim_name(id, "tool", &tool.name) {
            found.tools.push(tool.clone());
        }
    }
    for command in &registration.commands {
        if discovered.claim_name(id, "command", &command.name) {
            found.commands.push(command.clone());
        }
    }
    discovered.extensions.push(found);
}
