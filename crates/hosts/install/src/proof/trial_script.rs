//! What the model of a trial requests.

use std::path::Path;

use tenterhook_systems::host::HostAgent;

use crate::proof::canary::{
    COMMAND, EDITED, PROCESSES, PROJECT_GUARD, PROJECT_HOOKS, PROMPT, RAN, SHELL_ID,
    SUBAGENT_PROMPT, UNINSTALLED,
};
use crate::proof::model_server::{ModelScript, ScriptedAction, ScriptedTurn};

/// A command that ends when the subagent has run its command, or after a while. Some agents end their subagents when they end.
const AWAIT_SUBAGENT: &str =
    "n=0; while [ ! -e ran.txt ] && [ $n -lt 50 ]; do sleep 0.2; n=$((n+1)); done";

/// What the model of a trial requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialScript {
    /// A command that prints a line and writes a file, in so many answers.
    Command(usize),
    /// The tool of an MCP server with a `command`. It writes the same file.
    ServerTool,
    /// A subagent that runs the command.
    Subagent,
    /// A command that tries to uninstall Tenterhook, and then runs the command.
    Uninstall,
    /// A command that removes all hooks of the user's hook file, and then the command.
    EditGuard,
    /// A command that rewrites the script of the project's guard and removes all hooks of the project's hook file, and
    /// then the command.
    EditProjectGuard,
}

impl TrialScript {
    /// Returns the turns of the model. `tenterhook` is the program.
    pub(crate) fn turns(self, host: &HostAgent, tenterhook: &Path) -> ModelScript {
        let mut script = ModelScript {
            prompt: PROMPT.to_owned(),
            final_text: "The script has ended.".to_owned(),
            ..ModelScript::default()
        };
        script.turns = match self {
            Self::Command(turns) => vec![shell(COMMAND); turns],
            Self::ServerTool => vec![turn(ScriptedAction::Mcp {
                command: format!("touch {RAN}"),
            })],
            Self::Subagent => {
                script.subagent_turns = vec![shell(COMMAND)];
                let delegate = turn(ScriptedAction::Delegate {
                    prompt: SUBAGENT_PROMPT.to_owned(),
                });
                vec![delegate, shell(AWAIT_SUBAGENT)]
            }
            Self::Uninstall => vec![shell(&uninstall(host, tenterhook))],
            Self::EditGuard => {
                let edit = remove_hooks("\"$HOME/.config/tenterhook/hooks.json\"");
                vec![shell(&edit), shell(COMMAND)]
            }
            Self::EditProjectGuard => {
                let (guard, _) = PROJECT_GUARD;
                let edit = format!("echo 'exit 0' > {guard} && {}", remove_hooks(PROJECT_HOOKS));
                vec![shell(&edit), shell(COMMAND)]
            }
        };
        script
    }
}

/// Returns a command that removes all hooks of a hook file.
fn remove_hooks(file: &str) -> String {
    format!("printf '{{\"version\":1,\"hooks\":[]}}' > {file} && : > {EDITED}")
}

/// Returns a command that uninstalls Tenterhook, and then lists all processes. Some agents refuse lines that contain the
/// output of a command.
fn uninstall(host: &HostAgent, tenterhook: &Path) -> String {
    let (program, host) = (tenterhook.display(), host.name);
    format!(
        "'{program}' uninstall {host} > {UNINSTALLED} 2>&1; echo \"status $?\" >> {UNINSTALLED}; \
         echo $$ > {SHELL_ID}; cat /proc/[0-9]*/stat > {PROCESSES} 2> /dev/null; {COMMAND}"
    )
}

fn shell(command: &str) -> ScriptedTurn {
    turn(ScriptedAction::Shell {
        command: command.to_owned(),
    })
}

fn turn(action: ScriptedAction) -> ScriptedTurn {
    ScriptedTurn {
        text: "I will run the command.".to_owned(),
        actions: vec![action],
    }
}
