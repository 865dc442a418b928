//! Hooks of the project in which an agent works, approved as its user would approve them.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tenterhook_discovery::{LoadOptions, load_file};
use tenterhook_engine::Layer;
use tenterhook_trust::{ApprovalItem, Approvals, Trust};

use crate::proof::canary::{PROJECT_GUARD, PROJECT_HOOKS};
use crate::proof::sandbox::Sandbox;

/// Writes the hook file and the guard of the project, and approves all of its hooks.
///
/// The program `tenterhook trust` refuses to run below a proof, because a proof is a program of Tenterhook.
pub(crate) fn write(sandbox: &Sandbox, hooks: &str) -> io::Result<()> {
    // Tenterhook finds the project by its real path.
    let work = sandbox.work().canonicalize()?;
    let (guard, text) = PROJECT_GUARD;
    for (path, text) in [(PROJECT_HOOKS, hooks), (guard, text)] {
        let file = work.join(path);
        fs::create_dir_all(file.parent().unwrap_or(&work))?;
        fs::write(file, text)?;
    }
    approve(&work, &sandbox.data()).map_err(io::Error::other)
}

fn approve(
    project: &Path,
    data: &Path,
) -> Result<(), Box<dyn std::error::Error + Send + Sync + 'static>> {
    let mut approvals = Approvals::open(data)?;
    let options = LoadOptions {
        directory: project.to_owned(),
        trust: Trust::Review(Arc::new(Approvals::open(data)?)),
        ..LoadOptions::of_process()
    };
    let loaded = load_file(&project.join(PROJECT_HOOKS), Layer::Project, &options)?;
    let hooks = loaded.project_hooks.into_iter();
    let items: Vec<ApprovalItem> = hooks.map(|hook| hook.item).collect();
    if items.is_empty() {
        return Err(format!("`{PROJECT_HOOKS}` has no hook to approve").into());
    }
    Ok(approvals.approve(&items)?)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use serde_json::json;
    use tenterhook_engine::event::PreToolUse;
    use tenterhook_engine::{Engine, Origin, Scope};
    use tenterhook_systems::HOSTS;

    use super::*;
    use crate::proof::canary::{self, COMMAND, EDITED, JUDGED, REASON};
    use crate::proof::model_server::ScriptedAction;
    use crate::proof::trial_script::TrialScript;

    #[tokio::test]
    async fn the_guard_of_a_project_still_denies_after_the_agent_has_rewritten_it() {
        let sandbox = Sandbox::create().unwrap();
        let hooks = canary::hook_file(canary::RUN_PROJECT_GUARD, &sandbox.log());
        write(&sandbox, &hooks).unwrap();
        let script = TrialScript::EditProjectGuard.turns(HOSTS[0], Path::new("tenterhook"));
        let ScriptedAction::Shell { command } = &script.turns[0].actions[0] else {
            panic!("the agent edits with a command");
        };
        let edit = Command::new("sh")
            .args(["-c", command])
            .current_dir(sandbox.work())
            .status();
        assert!(edit.unwrap().success() && sandbox.work().join(EDITED).exists());

        let work = sandbox.work().canonicalize().unwrap();
        let approvals = Approvals::open(&sandbox.data()).unwrap();
        let options = LoadOptions {
            directory: work.clone(),
            trust: Trust::Approved(Arc::new(approvals)),
            ..LoadOptions::of_process()
        };
        let loaded = load_file(&work.join(PROJECT_HOOKS), Layer::Project, &options).unwrap();
        let engine = Engine::builder().build();
        engine.scope(Scope::Global).replace(loaded.specs);
        let input = json!({ "cmd": COMMAND }).as_object().unwrap().clone();
        let call = PreToolUse::new("shell").with_tool_input(input);
        let outcome = engine
            .dispatcher(Origin::new("", work))
            .dispatch(call)
            .await;
        assert_eq!(outcome.decision().reason(), Some(REASON));
        assert!(sandbox.log().join(JUDGED).exists());
    }
}
