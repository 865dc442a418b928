//! When each event fires.
//!
//! The sentences describe what the reference agent does (`crates/agent/agent`, and the sequence of a tool
//! call in the engine). A test compares the column `by` with the sources, so that this list
//! includes every event that the agent fires.

use tenterhook_engine::EventKind;
use tenterhook_engine::EventKind as E;

/// Who fires an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FiredBy {
    /// `tenterhook run`.
    Run,
    /// `tenterhook gateway run`, which fires the events of [`FiredBy::Run`] too.
    Gateway,
    /// Programs that embed the engine.
    Embedders,
}

/// One row of the table.
#[derive(Debug)]
struct Firing {
    kind: EventKind,
    by: FiredBy,
    when: &'static str,
}

const fn run(kind: EventKind, when: &'static str) -> Firing {
    Firing {
        kind,
        by: FiredBy::Run,
        when,
    }
}

const fn gateway(kind: EventKind, when: &'static str) -> Firing {
    Firing {
        kind,
        by: FiredBy::Gateway,
        when,
    }
}

const fn embedders(kind: EventKind, when: &'static str) -> Firing {
    Firing {
        kind,
        by: FiredBy::Embedders,
        when,
    }
}

/// One row for each event, in the order of the catalogue.
static FIRINGS: &[Firing] = &[
    run(
        E::SessionDirectoryResolve,
        "Once, before the session is created or opened, if sessions are stored.",
    ),
    run(
        E::SessionStart,
        "When a session begins: before the first prompt, after a switch to another session, after a fork, and \
         after hooks were reloaded. A subagent's session fires its own.",
    ),
    run(
        E::ResourcesDiscover,
        "When a session begins, right after `session_start`, and again after a reload. The agent then loads \
         prompt templates and skills from its own folders and from the folders that hooks add.",
    ),
    run(
        E::SessionBeforeSwitch,
        "When the user asks for a new session or for a stored one, before anything changes.",
    ),
    run(
        E::SessionSwitch,
        "After the switch: `session_end` of the old session comes before it, `session_start` of the new one \
         after it.",
    ),
    run(
        E::SessionBeforeFork,
        "When the user asks for a copy of the session that continues at an earlier entry, before the copy is \
         made.",
    ),
    run(
        E::SessionFork,
        "After the copy was made: `session_end` of the old session comes before it, `session_start` of the \
         copy after it.",
    ),
    run(
        E::SessionBeforeTree,
        "When the user asks to move to another entry of the session, before anything changes.",
    ),
    run(
        E::SessionTree,
        "After the move, when the session is stored.",
    ),
    run(
        E::SessionInfoChange,
        "When the user or a script gives the session another name.",
    ),
    run(
        E::SessionEnd,
        "When the program ends, before another session replaces this one, before hooks are reloaded, and at \
         the end of a subagent's session.",
    ),
    run(
        E::PreCompact,
        "First, when a compaction is due: the user asked for one, the context is nearly full, or the model \
         rejected a context that was too long.",
    ),
    run(
        E::BeforeCompaction,
        "After `pre_compact`, if no hook blocked it.",
    ),
    run(
        E::CompactionStart,
        "After `before_compaction`, if no hook blocked it. The model writes the summary next, unless a hook \
         supplied one.",
    ),
    run(
        E::AfterCompaction,
        "When the summary has replaced the messages that it covers.",
    ),
    run(
        E::CompactionFailed,
        "When the model wrote no summary, when the compaction was cancelled, or when a hook stopped the \
         model call.",
    ),
    run(
        E::UserInput,
        "For every prompt and every message that is queued for the agent, before templates and skills are \
         expanded and before the message is stored.",
    ),
    run(
        E::UserPromptSubmit,
        "Once for each prompt, after templates are expanded and the message is stored, before the run \
         starts. If a hook blocks it, the message is removed from the session.",
    ),
    run(
        E::UserSteeringSubmit,
        "When messages that the user sent during a run are handed to the model, between two turns.",
    ),
    run(
        E::UserFollowupSubmit,
        "When the agent is about to finish and follow-up messages are waiting, once for each message.",
    ),
    run(
        E::UserBash,
        "When the user runs a shell command with `!command` or `!!command`, before it runs. Permission rules \
         do not apply to it, because the user typed it.",
    ),
    run(
        E::WaitingForUser,
        "When the agent asks for approval for a tool call, when it reaches the limit of model calls, and when \
         it waits for the next prompt.",
    ),
    run(
        E::QueueUpdate,
        "Each time a message is added to a queue or taken out of it.",
    ),
    run(
        E::BeforeAgentStart,
        "At the start of each run, after `user_prompt_submit`.",
    ),
    run(
        E::AgentStart,
        "After `before_agent_start`, before the first turn.",
    ),
    run(
        E::AgentEnd,
        "At the end of each run, whether the model finished, the user cancelled it, a hook stopped it or an \
         error ended it.",
    ),
    run(
        E::Stop,
        "When the model's answer has no tool calls, before the turn ends. It fires again after each follow-up.",
    ),
    run(
        E::AgentError,
        "When a model call fails for good, a hook stops the run, or the model repeats the same tool call. \
         The `notification` with the same text comes first.",
    ),
    run(
        E::MaxIterations,
        "When a run has reached its limit of model calls. Next, the user is asked whether it may continue.",
    ),
    run(
        E::SavePoint,
        "After new entries of the session were written to disk: at the end of each turn and run, and after \
         changes between runs.",
    ),
    run(
        E::AgentSettled,
        "After `agent_end`, when the agent is done with a prompt. `waiting_for_user` follows.",
    ),
    run(
        E::RetryStart,
        "When a model call failed with an error that may be temporary, before the pause and the next attempt.",
    ),
    run(
        E::RetryEnd,
        "After each attempt that `retry_start` announced.",
    ),
    run(
        E::Notification,
        "When the agent shows a message to the user, for example about an error, the limit of model calls, a failed \
         compaction, an unusable template or a session that cannot be stored.",
    ),
    run(
        E::AgentSwitch,
        "When the agent gives a task to a subagent and waits for it (`transfer_task`), and when the subagent is \
         done (`transfer_task_return`). Background tasks do not fire it.",
    ),
    run(
        E::SessionLimitResume,
        "After `max_iterations`, if the user allows more model calls.",
    ),
    run(
        E::TurnStart,
        "At the start of each turn, before the messages for the model are assembled.",
    ),
    run(
        E::Context,
        "Before each model call, including calls that write a summary. A change affects this call only; the \
         session keeps the original messages.",
    ),
    run(
        E::BeforeLlmCall,
        "After `context`, with the messages that hooks left there. It is the last event that can stop the \
         model call.",
    ),
    run(
        E::ToolSelection,
        "After `before_llm_call`, once for each turn.",
    ),
    run(
        E::ProviderRequest,
        "Just before the request goes to the provider, once for each attempt. It also fires for calls that \
         write a summary.",
    ),
    run(
        E::ProviderResponse,
        "When the provider has sent the status and the headers, before the body is read.",
    ),
    run(
        E::AfterLlmCall,
        "When the model's answer is complete, before it is stored and before its tool calls run.",
    ),
    run(
        E::MessageStart,
        "For every message that enters the conversation: a user message, a model answer (when its first part \
         arrives), and a tool result.",
    ),
    run(
        E::MessageUpdate,
        "Each time a part of the model's answer arrives.",
    ),
    run(
        E::MessageEnd,
        "For every complete message, before it is stored and shown. By then, the text of a streamed answer is \
         already on the screen.",
    ),
    run(
        E::TurnEnd,
        "At the end of each turn, exactly once, even after an error or a cancellation.",
    ),
    run(
        E::ToolsDisabled,
        "After `tool_execution_start`, if the tool exists but the model was not offered it. The call does \
         not run.",
    ),
    run(
        E::ToolExecutionStart,
        "First for every tool call in the model's answer.",
    ),
    run(
        E::ToolExecutionUpdate,
        "While a tool runs, when it has more output to show.",
    ),
    run(
        E::ToolExecutionEnd,
        "Last for every tool call: after it ran, was denied or was skipped.",
    ),
    run(
        E::ToolInputTransform,
        "Once for each tool call, before guards and rules judge it. Retries do not fire it again.",
    ),
    run(
        E::ToolGuard,
        "Before the permission rules judge a call, and again if a later hook changes the arguments.",
    ),
    run(
        E::PreToolUse,
        "After the permission rules, before the user is asked and before the tool runs.",
    ),
    run(
        E::PermissionRequest,
        "After `pre_tool_use`, if the call needs an approval that no rule and no hook has given. If no hook \
         answers, the user is asked.",
    ),
    run(
        E::PermissionDenied,
        "After `tool_approval_decision`, if the call was denied.",
    ),
    run(
        E::ToolApprovalDecision,
        "When it has been decided whether a call runs, before the call runs.",
    ),
    run(
        E::TokenBudgetExceeded,
        "When a call was allowed, but the session has used up its token budget. The call does not run.",
    ),
    run(
        E::ToolResponseTransform,
        "After the tool ran. If the call was denied or skipped, it fires for the text that the model gets \
         instead of a result.",
    ),
    run(
        E::PostToolUse,
        "After `tool_response_transform`, before the model gets the result. It also fires for denied calls. If \
         a tool is retried, it fires once, for the last attempt.",
    ),
    run(
        E::ToolError,
        "After `tool_response_transform`, for each attempt whose result is an error. Denied calls do not \
         fire it.",
    ),
    run(
        E::SubagentStart,
        "When an agent gives a task to a subagent, to wait for it or in the background, before the subagent \
         starts.",
    ),
    run(
        E::SubagentStop,
        "When the subagent is done, has failed or was cancelled.",
    ),
    run(
        E::ModelSelect,
        "When the user, a script or a resumed session selects another model. The next turn uses it.",
    ),
    run(
        E::ThinkingLevelSelect,
        "When the user, a script or a resumed session selects another level of thinking. The next turn uses it.",
    ),
    gateway(E::GatewayStart, "When the gateway is up."),
    gateway(
        E::GatewayStop,
        "Before the gateway cancels what its channels do, to shut down.",
    ),
    gateway(E::ChannelConnect, "Before the gateway connects a channel."),
    gateway(E::ChannelDisconnect, "After a channel was disconnected."),
    gateway(
        E::MessageReceive,
        "When a message arrives in a channel, before the agent gets it.",
    ),
    gateway(
        E::MessageDeliver,
        "Before text or a file leaves for a channel.",
    ),
    gateway(
        E::MessageSend,
        "When a turn is over and its last text was delivered.",
    ),
    gateway(
        E::MessageCancel,
        "When the person in the channel cancels the request.",
    ),
    gateway(E::GatewayError, "When a channel fails."),
    embedders(
        E::Setup,
        "When an agent prepares a project for its first use.",
    ),
    embedders(
        E::InstructionsLoaded,
        "When an agent has read an instruction file such as `AGENTS.md`.",
    ),
    embedders(
        E::Elicitation,
        "When a tool server asks the user a question, before the question is shown.",
    ),
    embedders(
        E::ElicitationResult,
        "When the user has answered, before the tool server gets the answer.",
    ),
    embedders(
        E::TeammateIdle,
        "When an agent of a team is about to stop for lack of work.",
    ),
    embedders(
        E::TaskCreated,
        "When a task is about to be added to a list of tasks.",
    ),
    embedders(
        E::TaskCompleted,
        "When a task is about to be marked as done.",
    ),
    embedders(
        E::ToolBatchEnd,
        "When all tool calls of one model answer are over, before the next model call.",
    ),
    embedders(
        E::ConfigChange,
        "When a configuration file is about to change during a session.",
    ),
    embedders(
        E::CwdChange,
        "When the agent's working directory has changed.",
    ),
    embedders(
        E::FileChange,
        "When a file that the agent watches has changed.",
    ),
    embedders(
        E::DirectoryAdded,
        "When a directory was added to the directories that the agent may use.",
    ),
    embedders(
        E::WorktreeCreate,
        "Before a Git worktree is created for an agent.",
    ),
    embedders(E::WorktreeRemove, "When a Git worktree is removed."),
    embedders(E::Interrupt, "When the user interrupts the agent."),
    embedders(
        E::PromptExpansion,
        "When the user calls a command, before it is expanded into its prompt.",
    ),
    embedders(E::MessageDisplay, "When a message is shown to the user."),
    embedders(E::PreModelSwitch, "Before another model is selected."),
    embedders(E::PostModelSwitch, "After another model was selected."),
    embedders(
        E::Custom,
        "When the program that defines it fires it. `tenterhook fire` can fire it too.",
    ),
];

fn firing(kind: EventKind) -> Option<&'static Firing> {
    FIRINGS.iter().find(|firing| firing.kind == kind)
}

/// Returns whether `tenterhook gateway run` fires the event: every event of `tenterhook run`, and the events of channels.
/// Only programs that embed the engine fire the other events.
pub fn is_fired_by_gateway(kind: EventKind) -> bool {
    firing(kind).is_some_and(|firing| firing.by != FiredBy::Embedders)
}

/// Returns whether `tenterhook run` fires the event.
pub fn is_fired_by_run(kind: EventKind) -> bool {
    firing(kind).is_some_and(|firing| firing.by == FiredBy::Run)
}

/// Returns the sentences that say when the event fires.
pub(crate) fn when(kind: EventKind) -> &'static str {
    firing(kind).map_or("", |firing| firing.when)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_event_has_one_row_in_the_order_of_the_catalogue() {
        let rows: Vec<EventKind> = FIRINGS.iter().map(|firing| firing.kind).collect();
        assert_eq!(rows, EventKind::ALL);
    }

    /// Adds every text of a folder of sources.
    fn read(folder: &Path, texts: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(&path, texts);
            } else {
                texts.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }

    /// Returns every name that the sources in these folders import from the module of events.
    fn imported(folders: &[&str]) -> BTreeSet<String> {
        let mut text = String::new();
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for folder in folders {
            read(&crates.join(folder), &mut text);
        }
        let parts = text.split("tenterhook_protocol::event::").skip(1);
        let names = parts.flat_map(|part| {
            let names = match part.strip_prefix('{') {
                Some(list) => list.split('}').next(),
                None => part.split(|c: char| !c.is_alphanumeric()).next(),
            };
            names.unwrap_or_default().split(',')
        });
        names.map(|name| name.trim().to_owned()).collect()
    }

    #[test]
    fn the_agent_fires_the_events_that_the_table_says() {
        let imported = imported(&["agent/agent/src", "core/engine/src/tool_call"]);
        for firing in FIRINGS {
            let is_imported = imported.contains(&format!("{:?}", firing.kind));
            assert_eq!(
                is_fired_by_run(firing.kind),
                is_imported,
                "{:?}",
                firing.kind
            );
        }
    }

    #[test]
    fn the_gateway_fires_the_events_that_the_table_says() {
        let imported = imported(&["gateway/gateway/src"]);
        for firing in FIRINGS.iter().filter(|firing| firing.by != FiredBy::Run) {
            let is_imported = imported.contains(&format!("{:?}", firing.kind));
            assert_eq!(
                is_fired_by_gateway(firing.kind),
                is_imported,
                "{:?}",
                firing.kind
            );
        }
    }
}
