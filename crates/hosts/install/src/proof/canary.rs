//! The hooks of each run of a proof.
//!
//! A canary hook leaves a file in the folder `$PROOF`, so that a proof can tell a hook that denied from an agent that
//! never called it.

use std::path::Path;

use serde_json::{Value, json};

/// The prompt of every run.
pub(crate) const PROMPT: &str = "Follow the script of the proof.";
/// The prompt of a subagent.
pub(crate) const SUBAGENT_PROMPT: &str = "Run the command of the subagent.";
/// The command that the scripted model requests. Its output, [`OUTPUT`], is not part of its text.
pub(crate) const COMMAND: &str = "printf 'ran-%s\\n' ok > ran.txt && cat ran.txt";
/// What [`COMMAND`] prints.
pub(crate) const OUTPUT: &str = "ran-ok";
/// The file that [`COMMAND`] writes into the work folder.
pub(crate) const RAN: &str = "ran.txt";
/// The file that the rewritten command writes into the work folder.
pub(crate) const REWRITTEN: &str = "rewritten.txt";
/// The file in the work folder that shows that the guard was edited.
pub(crate) const EDITED: &str = "edited.txt";
/// The file in the work folder with what `tenterhook uninstall` printed.
pub(crate) const UNINSTALLED: &str = "uninstall.txt";
/// The file in the work folder with the process id of the agent's shell.
pub(crate) const SHELL_ID: &str = "shell.txt";
/// The file in the work folder with all processes, as Linux describes them.
pub(crate) const PROCESSES: &str = "processes.txt";
/// The file that a hook leaves about a call of the main agent.
pub(crate) const BY_MAIN: &str = "by-main";
/// The file that a hook leaves about a call of a subagent.
pub(crate) const BY_SUBAGENT: &str = "by-subagent";
/// The file that a hook of a gate leaves in the log folder.
pub(crate) const JUDGED: &str = "judged";
/// The reason of a denial.
pub(crate) const REASON: &str = "tenterhook-proof-reason";
/// The text that replaces the result of the command.
pub(crate) const REPLACEMENT: &str = "tenterhook-proof-result";
/// The message that keeps the agent working.
pub(crate) const FOLLOW_UP: &str = "tenterhook-proof-continue";
/// The start of the texts that hooks add for the model. The name of the event follows.
pub(crate) const CONTEXT: &str = "tenterhook-proof-context-";

/// A hook of a proof.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CanaryHook {
    event: &'static str,
    /// The shell line. `$PROOF` is the log folder.
    command: &'static str,
    /// The seconds after which the hook has failed.
    timeout: u32,
    /// The tool that the hook is for, or all.
    matcher: Option<&'static str>,
}

/// The events whose arrival the first run shows. Each hook leaves a file with the name of its event.
pub(crate) const WATCH: &[CanaryHook] = &[
    hook("session_start", ": > \"$PROOF/session_start\""),
    hook("pre_tool_use", ": > \"$PROOF/pre_tool_use\""),
    hook("post_tool_use", ": > \"$PROOF/post_tool_use\""),
];
const DENIAL: CanaryHook = hook(
    "pre_tool_use",
    r#": > "$PROOF/judged"; echo '{"decision":"deny","reason":"tenterhook-proof-reason"}'"#,
);
pub(crate) const DENY: &[CanaryHook] = &[DENIAL];
pub(crate) const ASK: &[CanaryHook] = &[hook(
    "pre_tool_use",
    r#": > "$PROOF/judged"; echo '{"decision":"ask","reason":"tenterhook-proof-reason"}'"#,
)];
pub(crate) const REWRITE: &[CanaryHook] = &[hook(
    "pre_tool_use",
    r#": > "$PROOF/judged"; echo '{"updated_input":{"cmd":"echo yes > rewritten.txt"}}'"#,
)];
/// A guard of shell commands.
pub(crate) const DENY_SHELL: &[CanaryHook] = &[CanaryHook {
    matcher: Some("shell"),
    ..DENIAL
}];
/// A shell line that allows everything but [`COMMAND`].
const DENIAL_OF_COMMAND: &str = r#"case $(cat) in *ran.txt*) : > "$PROOF/judged"; echo '{"decision":"deny","reason":"tenterhook-proof-reason"}' ;; esac"#;
/// A guard that allows everything but [`COMMAND`].
pub(crate) const DENY_COMMAND: &[CanaryHook] = &[hook("pre_tool_use", DENIAL_OF_COMMAND)];
/// The same guard, as a script of the project.
pub(crate) const RUN_PROJECT_GUARD: &[CanaryHook] =
    &[hook("pre_tool_use", "sh .tenterhook/guard.sh")];
/// The hook file of the project, below the work folder.
pub(crate) const PROJECT_HOOKS: &str = ".tenterhook/hooks.json";
/// The script of [`RUN_PROJECT_GUARD`], and its text.
pub(crate) const PROJECT_GUARD: (&str, &str) = (".tenterhook/guard.sh", DENIAL_OF_COMMAND);
/// Notes which agent calls [`COMMAND`].
pub(crate) const NOTE_AGENT: &[CanaryHook] = &[hook(
    "pre_tool_use",
    r#"event=$(cat); case $event in *ran-%s*) case $event in *'"invoked_by":"subagent"'*) : > "$PROOF/by-subagent" ;; *) : > "$PROOF/by-main" ;; esac ;; esac"#,
)];
pub(crate) const ADD_CONTEXT: &[CanaryHook] = &[
    hook(
        "session_start",
        r#"echo '{"additional_context":"tenterhook-proof-context-session_start"}'"#,
    ),
    hook(
        "user_prompt_submit",
        r#"echo '{"additional_context":"tenterhook-proof-context-user_prompt_submit"}'"#,
    ),
    hook(
        "pre_tool_use",
        r#"echo '{"additional_context":"tenterhook-proof-context-pre_tool_use"}'"#,
    ),
    hook(
        "post_tool_use",
        r#"echo '{"additional_context":"tenterhook-proof-context-post_tool_use"}'"#,
    ),
];
pub(crate) const REPLACE_RESULT: &[CanaryHook] = &[hook(
    "tool_response_transform",
    r#"echo '{"updated_tool_response":"tenterhook-proof-result"}'"#,
)];
pub(crate) const BLOCK_PROMPT: &[CanaryHook] = &[hook(
    "user_prompt_submit",
    r#": > "$PROOF/judged"; echo '{"decision":"block","reason":"tenterhook-proof-reason"}'"#,
)];
pub(crate) const CONTINUE_ONCE: &[CanaryHook] = &[hook(
    "stop",
    r#"[ -e "$PROOF/judged" ] && exit 0; : > "$PROOF/judged"; echo '{"effect":{"follow_up":["tenterhook-proof-continue"]}}'"#,
)];
pub(crate) const CONTINUE_ALWAYS: &[CanaryHook] = &[hook(
    "stop",
    r#"echo '{"effect":{"follow_up":["tenterhook-proof-continue"]}}'"#,
)];
pub(crate) const CRASH: &[CanaryHook] =
    &[hook("pre_tool_use", ": > \"$PROOF/judged\"; kill -9 $$")];
pub(crate) const HANG: &[CanaryHook] = &[CanaryHook {
    event: "pre_tool_use",
    command: ": > \"$PROOF/judged\"; sleep 600",
    timeout: 2,
    matcher: None,
}];
/// The parent of a hook's process is the daemon.
pub(crate) const KILL_DAEMON: &[CanaryHook] = &[hook(
    "pre_tool_use",
    ": > \"$PROOF/judged\"; kill -9 $PPID; sleep 600",
)];

const fn hook(event: &'static str, command: &'static str) -> CanaryHook {
    CanaryHook {
        event,
        command,
        timeout: 10,
        matcher: None,
    }
}

/// Returns the text of the hook file `hooks.json`. `log` is the folder for the files of the hooks.
pub(crate) fn hook_file(hooks: &[CanaryHook], log: &Path) -> String {
    let hooks: Vec<Value> = hooks
        .iter()
        .map(|hook| {
            let mut entry = json!({
                "event": hook.event,
                "command": hook.command,
                "timeout": hook.timeout,
                "env": { "PROOF": log },
            });
            if let (Some(matcher), Some(entry)) = (hook.matcher, entry.as_object_mut()) {
                entry.insert("matcher".to_owned(), matcher.into());
            }
            entry
        })
        .collect();
    json!({ "version": 1, "hooks": hooks }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_in_the_hooks_are_the_ones_that_are_looked_for() {
        let texts = [
            (DENY, REASON),
            (ASK, REASON),
            (BLOCK_PROMPT, REASON),
            (REPLACE_RESULT, REPLACEMENT),
            (CONTINUE_ONCE, FOLLOW_UP),
            (CONTINUE_ALWAYS, FOLLOW_UP),
            (DENY_COMMAND, REASON),
            (DENY_COMMAND, RAN),
            (RUN_PROJECT_GUARD, PROJECT_GUARD.0),
            (NOTE_AGENT, BY_MAIN),
            (NOTE_AGENT, BY_SUBAGENT),
            (REWRITE, REWRITTEN),
        ];
        for (hooks, text) in texts {
            assert!(hooks[0].command.contains(text), "{hooks:?}");
        }
        for hook in ADD_CONTEXT {
            assert!(hook.command.contains(&format!("{CONTEXT}{}", hook.event)));
        }
        for hooks in [
            DENY,
            DENY_COMMAND,
            ASK,
            REWRITE,
            BLOCK_PROMPT,
            CONTINUE_ONCE,
            CRASH,
            HANG,
            KILL_DAEMON,
        ] {
            assert!(hooks[0].command.contains(&format!("$PROOF/{JUDGED}\"")));
        }
        assert!(COMMAND.contains(RAN) && !COMMAND.contains(OUTPUT));
    }
}
