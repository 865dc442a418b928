//! What hooks may answer to an event: one example for each part of an answer.
//!
//! An example is what a native command hook prints. If such hooks have a short key for something,
//! the example uses it. Everything else is below `effect`. A test reads every example with the real
//! dialect and checks it against the catalogue.

use serde::Serialize;
use serde_json::{Value, json};
use tenterhook_engine::{EventInfo, EventKind};
use tenterhook_protocol::capability::Capability;
use tenterhook_protocol::{ListInfo, RewriteInfo};

/// Something that hooks of an event may do, with an example answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnswerExample {
    /// The part of the effect: `permission`, `rewrite.text`, `collect.parts` …
    pub part: String,
    /// What it does.
    pub meaning: String,
    /// What a native command hook prints.
    pub answer: Value,
}

impl AnswerExample {
    fn new(part: impl Into<String>, meaning: &str, answer: Value) -> Self {
        Self {
            part: part.into(),
            meaning: meaning.to_owned(),
            answer,
        }
    }

    /// Creates an example of a part that has no short key.
    fn of_effect(part: &str, meaning: &str, value: &Value) -> Self {
        Self::new(part, meaning, json!({ "effect": { part: value } }))
    }
}

/// Returns an example of everything that hooks of the event may answer. The notice comes last.
pub(crate) fn answers(info: &EventInfo) -> Vec<AnswerExample> {
    let capabilities = info.capabilities.iter();
    let mut answers: Vec<AnswerExample> = capabilities
        .filter_map(|capability| of_capability(info, capability))
        .collect();
    answers.extend(info.rewrites.iter().map(|row| of_rewrite(info, row)));
    answers.extend(info.collects.iter().map(of_list));
    answers.extend(info.supplies.and_then(|_| of_product(info.kind)));
    answers.push(AnswerExample::new(
        "notices",
        "Shows a notice to the user. Hooks of every event may do this.",
        json!({ "system_message": "The build is still running." }),
    ));
    answers
}

fn of_capability(info: &EventInfo, capability: Capability) -> Option<AnswerExample> {
    let part = capability.as_str();
    let meaning = meaning_of(info, capability)?;
    Some(match capability {
        Capability::Permission => AnswerExample::new(
            part,
            meaning,
            json!({ "decision": "deny", "reason": "Deploy from the main branch only." }),
        ),
        Capability::Block => AnswerExample::new(
            part,
            meaning,
            json!({ "decision": "block", "reason": "The work tree has changes." }),
        ),
        Capability::Context => AnswerExample::new(
            part,
            meaning,
            json!({ "additional_context": "The tests run with `make check`." }),
        ),
        Capability::Inject => AnswerExample::of_effect(
            part,
            meaning,
            &json!([{ "role": "user", "content": "Answer in English." }]),
        ),
        Capability::FollowUp => {
            AnswerExample::of_effect(part, meaning, &json!(["Run the tests before you finish."]))
        }
        Capability::Handled => AnswerExample::of_effect(part, meaning, &json!(true)),
        Capability::StopRun => {
            AnswerExample::of_effect(part, meaning, &json!("Today's budget is used up."))
        }
        _ => return None,
    })
}

/// What a part does on events for which the general sentence is not specific enough.
const MEANINGS: &[(EventKind, Capability, &str)] = &[
    (
        EventKind::SessionStart,
        Capability::Context,
        "Adds text for the model. It stays in the session.",
    ),
    (
        EventKind::SessionBeforeSwitch,
        Capability::Block,
        "Stops the switch. The current session continues.",
    ),
    (
        EventKind::SessionBeforeFork,
        Capability::Block,
        "Stops the fork. The current session continues.",
    ),
    (
        EventKind::SessionBeforeTree,
        Capability::Block,
        "Stops the move. The conversation stays where it is.",
    ),
    (
        EventKind::PreCompact,
        Capability::Block,
        "Stops the compaction. The conversation stays as it is.",
    ),
    (
        EventKind::PreCompact,
        Capability::Context,
        "Adds text to the instructions for the summary.",
    ),
    (
        EventKind::BeforeCompaction,
        Capability::Block,
        "Stops the compaction. The conversation stays as it is.",
    ),
    (
        EventKind::UserInput,
        Capability::Block,
        "Drops the input and shows the reason.",
    ),
    (
        EventKind::UserInput,
        Capability::Handled,
        "Reports that the hook has handled the input. The agent does nothing with it.",
    ),
    (
        EventKind::UserPromptSubmit,
        Capability::Block,
        "Removes the message from the session and ends the run.",
    ),
    (
        EventKind::UserPromptSubmit,
        Capability::Context,
        UNTIL_NEXT_INPUT,
    ),
    (
        EventKind::UserSteeringSubmit,
        Capability::Block,
        "Removes the messages from the session and ends the run.",
    ),
    (
        EventKind::UserSteeringSubmit,
        Capability::Context,
        UNTIL_NEXT_INPUT,
    ),
    (
        EventKind::UserFollowupSubmit,
        Capability::Block,
        "Removes the message from the session and ends the run.",
    ),
    (
        EventKind::UserFollowupSubmit,
        Capability::Context,
        UNTIL_NEXT_INPUT,
    ),
    (
        EventKind::UserBash,
        Capability::Handled,
        "Reports that the hook has handled the command. The agent does not run it.",
    ),
    (
        EventKind::BeforeAgentStart,
        Capability::Inject,
        "Adds whole messages to the conversation, after the prompt.",
    ),
    (
        EventKind::TurnStart,
        Capability::Context,
        "Adds text for the model, for this turn only. It is not stored.",
    ),
    (
        EventKind::BeforeLlmCall,
        Capability::StopRun,
        "Stops the model call and ends the run.",
    ),
    (
        EventKind::ToolInputTransform,
        Capability::Block,
        "Denies the tool call. The model gets the reason.",
    ),
    (
        EventKind::ToolGuard,
        Capability::Permission,
        "Denies the call, or asks the user with `ask`. `allow` leaves the decision to rules, hooks and the user.",
    ),
    (
        EventKind::PreToolUse,
        Capability::Permission,
        "Denies the call, asks the user (`ask`), or allows it without a question (`allow`), unless a rule or \
         another hook asks.",
    ),
    (EventKind::ToolGuard, Capability::Block, LIKE_DENY),
    (EventKind::PreToolUse, Capability::Block, LIKE_DENY),
    (EventKind::PermissionRequest, Capability::Block, LIKE_DENY),
    (EventKind::PreToolUse, Capability::Context, AFTER_RESULTS),
    (EventKind::PreToolUse, Capability::StopRun, AFTER_CALL),
    (EventKind::PostToolUse, Capability::Context, AFTER_RESULTS),
    (EventKind::PostToolUse, Capability::StopRun, AFTER_CALL),
    (
        EventKind::PermissionRequest,
        Capability::Permission,
        "Answers instead of the user with `allow` or `deny`. `ask` asks the user after all, and so does `allow` \
         if a `tool_guard` hook or the host wants the user to decide.",
    ),
    (
        EventKind::ChannelConnect,
        Capability::Block,
        "Stops the channel from connecting.",
    ),
    (
        EventKind::MessageReceive,
        Capability::Block,
        "Drops the message. The channel gets the reason as an error message.",
    ),
    (
        EventKind::MessageDeliver,
        Capability::Block,
        "Withholds the message. The receiver gets a note that something was withheld.",
    ),
    (
        EventKind::ToolBatchEnd,
        Capability::Context,
        "Adds text for the model, after the tool results.",
    ),
];

const UNTIL_NEXT_INPUT: &str =
    "Adds text for the model, until the user sends another message. It is not stored.";
const LIKE_DENY: &str = "Denies the tool call, as `deny` does.";
const AFTER_RESULTS: &str =
    "Adds text for the model, after the tool results. It stays in the session.";
const AFTER_CALL: &str =
    "Ends the run after this tool call. Calls that have not started are skipped.";

fn meaning_of(info: &EventInfo, capability: Capability) -> Option<&'static str> {
    let mut special = MEANINGS.iter();
    let found = special.find(|(kind, of, _)| (*kind, *of) == (info.kind, capability));
    if let Some((_, _, meaning)) = found {
        return Some(meaning);
    }
    Some(match capability {
        Capability::Permission => {
            "Allows the operation, asks the user or denies it. `decision` is `allow`, `ask` or `deny`."
        }
        Capability::Block => "Stops the operation and gives the reason.",
        Capability::Context => "Adds text for the model.",
        Capability::Inject => "Adds whole messages for the model.",
        Capability::FollowUp => "Adds a user message, so that the agent continues with it.",
        Capability::Handled => "Reports that the hook has done the work itself.",
        Capability::StopRun => "Ends the run after this step.",
        _ => return None,
    })
}

/// A sentence and an example value for each rewrite. A row with an event in the first column
/// applies to that event only.
fn rewrite_row(kind: EventKind, field: &str) -> Option<(&'static str, Value)> {
    Some(match (kind, field) {
        (EventKind::Custom, "payload") => (
            "Changes the payload: replaces the given keys and keeps all others.",
            json!({ "target": "staging" }),
        ),
        (_, "default_directory") => (
            "Stores sessions in another folder.",
            json!("/home/ada/sessions"),
        ),
        (_, "skip_conversation_restore") => (
            "Starts the copy without the conversation before the entry.",
            json!(true),
        ),
        (_, "custom_instructions") => (
            "Changes the instructions for the summary of the branch.",
            json!("Keep the names of the files."),
        ),
        (_, "replace_instructions") => (
            "Makes the instructions replace the default ones instead of adding to them.",
            json!(true),
        ),
        (_, "label") => ("Changes the label of the branch.", json!("second attempt")),
        (_, "text") => ("Replaces the text.", json!("Run the tests of the parser.")),
        (_, "images") => (
            "Replaces the images. An empty list removes them.",
            json!([]),
        ),
        (_, "command") => ("Runs another command instead.", json!("git status --short")),
        (_, "system_prompt") => (
            "Replaces the system prompt for this run.",
            json!("You are a careful engineer. Run the tests before you finish."),
        ),
        (_, "messages") => (
            "Replaces the messages that the model gets.",
            json!([{ "role": "user", "content": "Run the tests." }]),
        ),
        (_, "tools") => (
            "Replaces the list of tools that the model is offered.",
            json!(["read_file"]),
        ),
        (_, "payload") => (
            "Replaces the body of the request.",
            json!({ "model": "gpt-4o", "messages": [{ "role": "user", "content": "Run the tests." }] }),
        ),
        (_, "message") => (
            "Replaces the message. Its role stays the same.",
            json!({ "role": "assistant", "content": "The tests pass. The token was [redacted]." }),
        ),
        (_, "parts") => (
            "Replaces the parts of the message.",
            json!([{ "kind": "text", "text": "Is the build of the main branch green?" }]),
        ),
        (_, field) => return tool_rewrite_row(field),
    })
}

/// The rows of tool calls and their results.
fn tool_rewrite_row(field: &str) -> Option<(&'static str, Value)> {
    Some(match field {
        "tool_input" => (
            "Changes arguments: replaces the given keys and keeps all others.",
            json!({ "cmd": "ls" }),
        ),
        "whole_input" => (
            "Replaces all arguments: the tool gets only these.",
            json!({ "cmd": "ls" }),
        ),
        "tool_response" => (
            "Replaces the text of the result. An empty text removes it.",
            json!("[redacted]"),
        ),
        "content" => (
            "Replaces what the model sees of the result.",
            json!([{ "type": "text", "text": "[redacted]" }]),
        ),
        "details" => (
            "Replaces the structured data that hooks and the screen see.",
            json!({ "lines": 12 }),
        ),
        "is_error" => (
            "Changes whether the result counts as an error.",
            json!(true),
        ),
        "terminate" => (
            "Requests the end of the run. The run ends if the results of all tool calls of the message request it.",
            json!(true),
        ),
        _ => return None,
    })
}

fn of_rewrite(info: &EventInfo, row: &RewriteInfo) -> AnswerExample {
    let (meaning, value) = rewrite_row(info.kind, row.field).unwrap_or_default();
    let answer = match row.field {
        "tool_input" => json!({ "updated_input": value }),
        "tool_response" => json!({ "updated_tool_response": value }),
        field => json!({ "effect": { "rewrite": { field: value } } }),
    };
    AnswerExample::new(format!("rewrite.{}", row.field), meaning, answer)
}

fn list_row(name: &str) -> Option<(&'static str, Value)> {
    Some(match name {
        "skill_paths" => ("Adds a folder or file of skills.", json!("/srv/app/skills")),
        "prompt_paths" => (
            "Adds a folder or file of prompt templates.",
            json!("/srv/app/prompts"),
        ),
        "theme_paths" => ("Adds a folder or file of themes.", json!("/srv/app/themes")),
        "enabled_tools" => (
            "Gives the agent one more of the tools that the host knows, for this run.",
            json!("fetch"),
        ),
        "disabled_tools" => (
            "Takes a tool away from the agent, for this run.",
            json!("shell"),
        ),
        "parts" => (
            "Sends one more part with the answer.",
            json!({ "kind": "text", "text": "Sent by the build bot." }),
        ),
        _ => return None,
    })
}

fn of_list(list: &ListInfo) -> AnswerExample {
    let (meaning, item) = list_row(list.name).unwrap_or_default();
    let answer = json!({ "effect": { "collect": { list.name: [item] } } });
    AnswerExample::new(format!("collect.{}", list.name), meaning, answer)
}

fn of_product(kind: EventKind) -> Option<AnswerExample> {
    let mut rows = PRODUCTS.iter();
    let (_, meaning, product) = rows.find(|(of, _, _)| *of == kind)?;
    Some(AnswerExample::of_effect("supply", meaning, &product()))
}

/// Makes a finished product.
type Product = fn() -> Value;

/// The products that hooks may supply.
const PRODUCTS: &[(EventKind, &str, Product)] = &[
    (
        EventKind::BeforeCompaction,
        "Supplies the summary, so that no model has to write it.",
        || json!("The parser was fixed and its tests pass."),
    ),
    (
        EventKind::SessionBeforeTree,
        "Supplies the summary of the branch that the user leaves, so that no model has to write it.",
        || json!("A second parser was tried and given up."),
    ),
    (
        EventKind::UserBash,
        "Supplies the result of the command, so that it does not run.",
        || json!({ "output": "On branch main\n", "exit_code": 0 }),
    ),
];
