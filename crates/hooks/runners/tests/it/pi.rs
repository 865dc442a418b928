//! pi's extensions: the examples of its document, and its conformance cases.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook_engine::event::{
    AgentEnd, AgentStart, BeforeAgentStart, BeforeCompaction, CompactionPreparation, Context,
    ForkPosition, InputSource, MessageEnd, ModelSelect, PostToolUse, PreToolUse, ProviderRequest,
    ResourcesDiscover, SessionBeforeFork, SessionBeforeSwitch, SessionBeforeTree, SessionStart,
    ToolExecutionEnd, TreePreparation, TurnEnd, UserBash, UserInput,
};
use tenterhook_engine::{ContentBlock, Image, JsonObject, Message, Role, ToolCall, ToolResult};
use tenterhook_process::CancellationToken;
use tenterhook_runners::worker::{Host, Refusal, ScriptToolCall, WorkerError};
use tokio::sync::Semaphore;

use crate::stage::Stage;

const API: &str = "pi";

/// An extension with one handler for each body, in order.
fn extension(event: &str, bodies: &[&str]) -> String {
    let handlers: Vec<String> = bodies
        .iter()
        .map(|body| format!("  pi.on('{event}', async (event, ctx) => {{ {body} }});"))
        .collect();
    let handlers = handlers.join("\n");
    format!(
        "import * as fs from 'node:fs';\nconst say = (text) => fs.appendFileSync('DIR/said', text + '\\n');\n\
         export default function (pi) {{\n{handlers}\n}}\n"
    )
}

async fn stage(event: &str, bodies: &[&str]) -> Stage {
    let stage = Stage::of_node();
    stage.add(API, "a.js", &extension(event, bodies)).await;
    stage
}

fn object(value: &Value) -> JsonObject {
    value.as_object().unwrap().clone()
}

fn call(tool: &str, input: &Value) -> PreToolUse {
    PreToolUse::new(tool.to_owned())
        .with_tool_use_id("c1")
        .with_tool_input(object(input))
}

fn shell(cmd: &str) -> PreToolUse {
    call("shell", &json!({ "cmd": cmd }))
}

fn done(result: ToolResult) -> PostToolUse {
    PostToolUse::new("shell")
        .with_tool_use_id("c1")
        .with_tool_input(object(&json!({ "cmd": "ls" })))
        .with_result(result)
}

fn input(text: &str, images: Option<Vec<Image>>, source: InputSource) -> UserInput {
    UserInput::new(text.to_owned())
        .with_images(images)
        .with_source(source)
}

fn image(data: &str) -> Image {
    Image::new("image/png", data.to_owned())
}

// The document's examples of `tool_call`: blocking, and telling tools apart, in TypeScript with the
// import that they have.
const TOOL_CALLS: &str = r#"
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { isToolCallEventType } from "@mariozechner/pi-coding-agent";
import * as fs from "node:fs";

enum Mode { Strict, Lenient }
const mode: Mode = Mode.Strict;

export default function (pi: ExtensionAPI) {
  pi.on("tool_call", async (event, ctx) => {
    if (isToolCallEventType("bash", event)) {
      const command: string = event.input.command;
      if (command.startsWith("sudo ")) return { block: true, reason: "Not allowed in read-only mode" };
    }
    if (isToolCallEventType("write", event)) {
      if (event.input.path.endsWith(".env")) return { block: true, reason: `no secrets: ${event.input.content}` };
    }
    // Custom tools need explicit type params:
    if (isToolCallEventType<"my_tool", { action: string }>("my_tool", event)) {
      if (mode === Mode.Strict && event.input.action === "drop") return { block: true };
    }
  });
}
"#;

// P14, P15: a block stops the call with its reason, or with a default reason. Guards for pi's tools
// see our tools of the same kind.
#[tokio::test]
async fn the_guards_of_pi_s_document_block_calls() {
    let stage = Stage::of_node();
    stage.add(API, "guard.ts", TOOL_CALLS).await;
    for (event, stopped) in [
        (shell("sudo ls"), Some("Not allowed in read-only mode")),
        (shell("ls"), None),
        (
            call("write_file", &json!({ "path": "a/.env", "content": "KEY" })),
            Some("no secrets: KEY"),
        ),
        (
            call("my_tool", &json!({ "action": "drop" })),
            Some("stopped by a hook"),
        ),
        (call("my_tool", &json!({ "action": "keep" })), None),
    ] {
        let said = format!("{event:?}");
        let outcome = stage.hooks().dispatch(event).await;
        assert!(outcome.failures().is_empty(), "{said}: {outcome:?}");
        assert_eq!(outcome.decision().reason(), stopped, "{said}");
    }
}

// P13, P14, P15: the first block ends the event; a handler that throws blocks with the error; an
// invalid result is a failure, which blocks too.
#[tokio::test]
async fn handlers_of_tool_call_block_in_order_and_by_failing() {
    let block = "return { block: true, reason: 'not here' }";
    for (bodies, stopped) in [
        (&[block, "say('asked')"][..], Some("not here")),
        (&["return { block: true }"], Some("stopped by a hook")),
        (&["return {}", block], Some("not here")),
        (&["return { block: false, reason: 'no' }"], None),
        (&["throw new Error('x')"], Some("a.js:4: Error: x")),
        (
            &["return 'yes'"],
            Some("a handler of `tool_call` returned \"yes\""),
        ),
        (&["event.input = 7"], Some("`event.input` was changed to 7")),
        (&["return { input: { command: 'other' } }"], None),
    ] {
        let stage = stage("tool_call", bodies).await;
        let outcome = stage.hooks().dispatch(shell("ls")).await;
        let found = outcome.decision().reason().map(str::to_owned);
        match stopped {
            Some(stopped) => {
                let found = found.unwrap_or_default();
                assert!(found.contains(stopped), "{bodies:?}: {found}");
            }
            None => assert_eq!(found, None, "{bodies:?}"),
        }
        assert!(!stage.path("said").exists(), "{bodies:?}");
        assert!(outcome.into_rewritten().is_none(), "{bodies:?}");
    }
}

// Arguments that a handler changes in place are what the tool runs with, and what later handlers see.
#[tokio::test]
async fn arguments_changed_in_place_are_rewritten_under_our_names() {
    for (event, body, expected) in [
        (
            shell("ls"),
            "event.input.command += ' -h'",
            json!({ "cmd": "ls -h" }),
        ),
        (
            call(
                "edit_file",
                &json!({ "path": "a", "old_text": "x", "new_text": "y" }),
            ),
            "const [edit] = event.input.edits; edit.newText = edit.oldText",
            json!({ "path": "a", "old_text": "x", "new_text": "x" }),
        ),
        (
            call("bash", &json!({ "command": "ls" })),
            "event.input.command = 'pwd'",
            json!({ "command": "pwd" }),
        ),
    ] {
        let sees = "if (event.toolCallId !== 'c1' || 'hostTool' in event) throw new Error(JSON.stringify(event))";
        let stage = stage("tool_call", &[body, sees]).await;
        let outcome = stage.hooks().dispatch(event).await;
        assert!(outcome.failures().is_empty(), "{body}: {outcome:?}");
        let rewritten = outcome.into_rewritten().unwrap();
        assert_eq!(Value::from(rewritten.tool_input), expected, "{body}");
    }
}

// P1, P2, P3, P4, P5, P6, P7: input passes unchanged, is changed, keeps its images, or is handled;
// a handler that throws changes nothing.
#[tokio::test]
async fn input_is_passed_on_changed_or_handled() {
    let append =
        |mark: &str| format!("return {{ action: 'transform', text: event.text + '{mark}' }}");
    let (one, two) = (append("[1]"), append("[2]"));
    let replaced = "return { action: 'transform', text: 'new', images: [{ type: 'image', data: 'B', mimeType: 'image/png' }] }";
    for (bodies, text, images, handled) in [
        (&[][..], None, None, false),
        (&["return undefined"], None, None, false),
        (&["return { action: 'continue' }"], None, None, false),
        (&[&*one], Some("X[1]"), Some("A"), false),
        (&[replaced], Some("new"), Some("B"), false),
        (&[&*one, &*two], Some("X[1][2]"), Some("A"), false),
        (
            &["return { action: 'handled' }", "say('asked')"],
            None,
            None,
            true,
        ),
        (
            &["throw new Error('boom')", &*one],
            Some("X[1]"),
            Some("A"),
            false,
        ),
    ] {
        let stage = stage("input", bodies).await;
        let event = input("X", Some(vec![image("A")]), InputSource::Interactive);
        let outcome = stage.hooks().dispatch(event).await;
        assert_eq!(outcome.is_handled(), handled, "{bodies:?}");
        assert_eq!(outcome.decision().reason(), None, "{bodies:?}");
        let throws = bodies.iter().filter(|body| body.contains("boom")).count();
        assert_eq!(outcome.failures().len(), throws, "{bodies:?}");
        assert!(!stage.path("said").exists(), "{bodies:?}");
        let rewritten = outcome.into_rewritten();
        let found = rewritten.as_ref().map(|event| &*event.text);
        assert_eq!(found, text, "{bodies:?}");
        let found = rewritten.and_then(|event| event.images);
        let expected = images.map(|data| vec![image(data)]);
        assert_eq!(found, expected, "{bodies:?}");
    }
    let stage = stage("input", &["say(`${event.type} ${event.source}`)"]).await;
    for source in [
        InputSource::Interactive,
        InputSource::Rpc,
        InputSource::Extension,
        InputSource::Cron,
    ] {
        let outcome = stage.hooks().dispatch(input("x", None, source)).await;
        assert!(outcome.failures().is_empty());
    }
    let said = stage.written("said").await;
    assert_eq!(
        said,
        "input interactive\ninput rpc\ninput extension\ninput extension\n"
    );
}

fn conversation() -> Vec<Message> {
    vec![
        Message::user("a secret"),
        Message::assistant("I look")
            .with_reasoning("hm")
            .with_tool_calls(vec![ToolCall::new("c1", "shell", json!({ "cmd": "ls" }))]),
        Message::tool("c1".into(), "no such file", true),
        Message::system("be brief"),
    ]
}

// P8, P29: messages that are returned, or changed in place, go to later handlers and to the model;
// a handler that throws is one failure.
#[tokio::test]
async fn context_is_filtered_and_comes_back_as_it_was() {
    let shape = "const [user, assistant, result, host] = event.messages;
        const seen = [user.role, user.content[0].text, assistant.content.map((block) => block.type).join(), \
          assistant.content[2].name, assistant.content[2].arguments.command, result.role, result.toolName, result.isError, host.role];
        if (seen.join(' ') !== 'user a secret thinking,text,toolCall bash ls toolResult bash true custom') throw new Error(seen.join(' '))";
    for (bodies, kept, failures) in [
        (&[shape][..], None, 0),
        (
            &["return { messages: event.messages }"],
            Some(vec![0, 1, 2, 3]),
            0,
        ),
        (
            &["return { messages: event.messages.filter((m) => m.role !== 'user') }"],
            Some(vec![1, 2, 3]),
            0,
        ),
        (
            &[
                "event.messages.pop()",
                "if (event.messages.length !== 3) throw new Error('unseen')",
            ],
            Some(vec![0, 1, 2]),
            0,
        ),
        (&["throw new Error('boom')"], None, 1),
        (&["return { messages: [{ role: 'nobody' }] }"], None, 1),
    ] {
        let stage = stage("context", bodies).await;
        let messages = conversation();
        let outcome = stage.hooks().dispatch(Context::new(messages.clone())).await;
        assert_eq!(
            outcome.failures().len(),
            failures,
            "{bodies:?}: {outcome:?}"
        );
        let expected = kept.map(|kept: Vec<usize>| {
            kept.into_iter()
                .map(|place| messages[place].clone())
                .collect::<Vec<_>>()
        });
        let found = outcome
            .into_rewritten()
            .map(|event| event.messages.into_vec());
        assert_eq!(found, expected, "{bodies:?}");
    }
    let injects = "return { messages: [...event.messages, { role: 'user', content: 'and this', timestamp: 0 }] }";
    let stage = stage("context", &[injects]).await;
    let outcome = stage.hooks().dispatch(Context::default()).await;
    let found = outcome.into_rewritten().unwrap().messages;
    assert_eq!(*found, [Message::user("and this")]);
}

// P25, P26, P27: prompts chain, messages add up behind each other, and an empty prompt is an empty prompt.
#[tokio::test]
async fn before_agent_start_chains_the_prompt_and_adds_messages() {
    let message = |text: &str| {
        format!(
            "return {{ message: {{ customType: 'my-extension', content: '{text}', display: true, details: {{ any: 'data' }} }}, \
             systemPrompt: event.systemPrompt + '+{text}' }}"
        )
    };
    let (a, b) = (message("a"), message("b"));
    let blocks = "return { message: { customType: 'x', content: [{ type: 'text', text: 'seen' }, { type: 'image', data: 'A', mimeType: 'image/png' }] } }";
    for (bodies, prompt, messages) in [
        (&[&*a, &*b][..], Some("base+a+b"), vec!["a", "b"]),
        (
            &["if (event.prompt !== 'do it') throw new Error(event.prompt)"],
            None,
            vec![],
        ),
        (&["return { systemPrompt: '' }"], Some(""), vec![]),
        (&[blocks], None, vec!["seen"]),
    ] {
        let stage = stage("before_agent_start", bodies).await;
        let outcome = stage
            .hooks()
            .dispatch(BeforeAgentStart::new("do it").with_system_prompt("base"))
            .await;
        assert!(outcome.failures().is_empty(), "{bodies:?}: {outcome:?}");
        let injected: Vec<_> = outcome
            .inject()
            .iter()
            .map(|message| &*message.content)
            .collect();
        assert_eq!(injected, messages, "{bodies:?}");
        assert!(
            outcome
                .inject()
                .iter()
                .all(|message| message.role == Role::User)
        );
        let found = outcome.into_rewritten().map(|event| event.system_prompt);
        assert_eq!(found.as_deref(), prompt, "{bodies:?}");
    }
}

fn texts(result: &ToolResult) -> Vec<&str> {
    result
        .content
        .iter()
        .filter_map(ContentBlock::as_text)
        .collect()
}

// P9, P10, P11, P12: results are patched one after another, errors too; what is not set stays.
#[tokio::test]
async fn results_of_tools_are_patched_one_after_another() {
    let append = |text: &str| {
        format!("return {{ content: [...event.content, {{ type: 'text', text: '{text}' }}] }}")
    };
    let (a, b) = (append("A"), append("B"));
    let both = "return { content: [{ type: 'text', text: 'A' }], details: { a: 1 } }";
    for (bodies, expected, details, is_error) in [
        (&[&*a, &*b][..], Some(vec!["base", "A", "B"]), None, false),
        (
            &[both, "return { isError: true }"],
            Some(vec!["A"]),
            Some(json!({ "a": 1 })),
            true,
        ),
        (&["return undefined"], None, None, false),
        (
            &["event.content[0].text = 'redacted'"],
            Some(vec!["redacted"]),
            None,
            false,
        ),
        (
            &["return { details: 7 }"],
            Some(vec!["base"]),
            Some(json!({ "value": 7 })),
            false,
        ),
        (
            &["throw new Error('boom')", &*a],
            Some(vec!["base", "A"]),
            None,
            false,
        ),
    ] {
        let stage = stage("tool_result", bodies).await;
        let outcome = stage.hooks().dispatch(done(ToolResult::text("base"))).await;
        let Some(event) = outcome.into_rewritten() else {
            assert_eq!(expected, None, "{bodies:?}");
            continue;
        };
        assert_eq!(texts(&event.result), expected.unwrap(), "{bodies:?}");
        assert_eq!(event.result.details.map(Value::from), details, "{bodies:?}");
        assert_eq!(event.result.is_error, is_error, "{bodies:?}");
    }
    let audit = "if (!event.isError || event.toolName !== 'bash' || event.input.command !== 'ls') throw new Error('?');
        return { content: [...event.content, { type: 'text', text: '\\n\\nAudit: logged' }], isError: false }";
    let stage = stage("tool_result", &[audit]).await;
    let outcome = stage
        .hooks()
        .dispatch(done(ToolResult::error("failed")))
        .await;
    let event = outcome.into_rewritten().unwrap();
    assert_eq!(texts(&event.result), ["failed", "\n\nAudit: logged"]);
    assert!(!event.result.is_error);
    let denied = done(ToolResult::error("denied")).with_blocked(true);
    let outcome = stage.hooks().dispatch(denied).await;
    assert!(
        outcome.into_rewritten().is_none(),
        "pi has no result of a denied call"
    );
}

// P20, P21, P22, P24: a compaction is cancelled or supplied; a handler that throws, or says
// nothing, leaves what was supplied.
#[tokio::test]
async fn sessions_are_kept_from_what_handlers_cancel() {
    let cancel = "return { cancel: true }";
    let supply = "if (!(event.signal instanceof AbortSignal)) throw new Error('no signal');
        return { compaction: { summary: 'My custom summary', firstKeptEntryId: event.preparation.firstKeptEntryId, tokensBefore: event.preparation.tokensBefore } }";
    let compaction = || {
        BeforeCompaction::default().with_preparation(CompactionPreparation {
            messages_to_summarize: vec![Message::user("a")],
            first_kept_entry_id: Some("e2".into()),
            tokens_before: 999,
            previous_summary: None,
        })
    };
    for (bodies, stops, summary) in [
        (&[cancel][..], true, None),
        (&[supply], false, Some("My custom summary")),
        (&[supply, "return {}"], false, Some("My custom summary")),
        (&["throw new Error('boom')"], false, None),
    ] {
        let stage = stage("session_before_compact", bodies).await;
        let outcome = stage.hooks().dispatch(compaction()).await;
        assert_eq!(
            outcome.decision().reason().is_some(),
            stops,
            "{bodies:?}: {outcome:?}"
        );
        let found = outcome.supplied();
        assert_eq!(found.as_deref(), summary, "{bodies:?}");
    }
    let stage = Stage::of_node();
    let text = "export default function (pi) {
      pi.on('session_before_switch', (event) => ({ cancel: event.reason === 'new' }));
      pi.on('session_before_fork', (event) => ({ skipConversationRestore: event.entryId === 'e1', cancel: event.entryId === 'e2' }));
      pi.on('session_before_tree', (event) => ({ summary: { summary: 'Custom branch summary' }, label: 'my-label', cancel: event.preparation.targetId === 'e2' }));
    }";
    stage.add(API, "a.js", text).await;
    let hooks = stage.hooks();
    let switch = hooks.dispatch(SessionBeforeSwitch::default()).await;
    assert!(switch.decision().reason().is_some());
    let fork = |id: &str| SessionBeforeFork::new(id, ForkPosition::default());
    assert!(
        hooks
            .dispatch(fork("e2"))
            .await
            .decision()
            .reason()
            .is_some()
    );
    let rewritten = hooks.dispatch(fork("e1")).await.into_rewritten().unwrap();
    assert!(rewritten.skip_conversation_restore);
    let tree = |id: &str| {
        SessionBeforeTree::new(TreePreparation {
            target_id: id.into(),
            ..TreePreparation::default()
        })
    };
    assert!(
        hooks
            .dispatch(tree("e2"))
            .await
            .decision()
            .reason()
            .is_some()
    );
    let outcome = hooks.dispatch(tree("e1")).await;
    assert_eq!(outcome.supplied().as_deref(), Some("Custom branch summary"));
    let rewritten = outcome.into_rewritten().unwrap();
    assert_eq!(rewritten.preparation.label.as_deref(), Some("my-label"));
}

// P28: a handler of `user_bash` gives the result itself, or says how commands are run; one that
// says nothing leaves it to the next.
#[tokio::test]
async fn commands_of_the_user_are_run_by_extensions() {
    let result = "return { result: { output: 'custom output', exitCode: 0, cancelled: false, truncated: false } }";
    let operations = "return { operations: { execute: (cmd) => `ran ${cmd} elsewhere` } }";
    let newer = "return { operations: { exec: async (cmd, cwd, { onData }) => { onData(Buffer.from('in ' + cmd)); return { exitCode: 3 }; } } }";
    for (bodies, output, code) in [
        (&[result][..], Some("custom output"), 0),
        (&[operations], Some("ran ls elsewhere"), 0),
        (&[newer], Some("in ls"), 3),
        (&["return {}", result], Some("custom output"), 0),
        (&["throw new Error('boom')"], None, 0),
    ] {
        let stage = stage("user_bash", bodies).await;
        let outcome = stage
            .hooks()
            .dispatch(UserBash::new("ls", "/").with_exclude_from_context(true))
            .await;
        let found = outcome
            .supplied()
            .map(|result| (result.output.clone(), result.exit_code));
        let expected = output.map(|output| (output.to_owned(), Some(code)));
        assert_eq!(found, expected, "{bodies:?}: {outcome:?}");
    }
}

/// The document's example of `resources_discover`.
const RESOURCES: &str = r#"
import { join } from "node:path";
export default function (pi: any) {
  pi.on("resources_discover", async (event, ctx) => {
    if (event.reason !== "startup" || event.cwd !== ctx.cwd) throw new Error(`${event.cwd} ${ctx.cwd}`);
    return {
      skillPaths: [join(__dirname, "skills", "SKILL.md")],
      promptPaths: [join(__dirname, "prompts", "my-template.md")],
      themePaths: [join(__dirname, "themes", "dark.json")],
    };
  });
}
"#;

#[tokio::test]
async fn resources_lie_beside_the_extension_that_brings_them() {
    let stage = Stage::of_node();
    stage.add(API, "kit/index.ts", RESOURCES).await;
    let outcome = stage.hooks().dispatch(ResourcesDiscover::default()).await;
    assert!(outcome.failures().is_empty(), "{outcome:?}");
    let kit = stage.path("kit");
    assert_eq!(outcome.skill_paths(), [kit.join("skills/SKILL.md")]);
    assert_eq!(outcome.prompt_paths(), [kit.join("prompts/my-template.md")]);
    assert_eq!(outcome.theme_paths(), [kit.join("themes/dark.json")]);
}

/// The document's example for each event that only informs.
const WATCHER: &str = r#"
import * as fs from "node:fs";
const say = (...words: unknown[]) => fs.appendFileSync("DIR/said", words.join(" ") + "\n");
export default function (pi: any) {
  pi.on("agent_start", async (event, ctx) => { await new Promise((r) => setTimeout(r, 30)); say(Object.keys(event)); });
  pi.on("agent_start", (event) => say("second"));
  pi.on("agent_end", (event) => say(event.type, event.messages.length));
  pi.on("turn_end", (event) => say(event.turnIndex, event.message.role, event.toolResults[0].toolName, event.toolResults[0].toolCallId));
  pi.on("tool_execution_end", (event) => say(event.toolName, event.result.content[0].text, event.isError));
  pi.on("model_select", (event) => say(event.model.provider, event.model.id, event.previousModel, event.source));
  pi.on("session_start", (event) => say(event.reason));
}
"#;

async fn fire<E: tenterhook_engine::Event>(hooks: &tenterhook_engine::Dispatcher, event: E) {
    let outcome = hooks.dispatch(event).await;
    assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
}

// P23: handlers of one event run one after another, in the order in which they were registered.
#[tokio::test]
async fn events_that_only_tell_arrive_as_the_document_has_them() {
    let stage = Stage::of_node();
    stage.add(API, "watch.ts", WATCHER).await;
    let hooks = stage.hooks();
    fire(&hooks, AgentStart::new()).await;
    let end = AgentEnd::new(conversation());
    fire(&hooks, end).await;
    let turn = TurnEnd::new()
        .with_turn_index(2)
        .with_message(conversation().into_iter().nth(1))
        .with_tool_results(vec![ToolResult::text("ok")]);
    fire(&hooks, turn).await;
    let end = ToolExecutionEnd::new("shell", ToolResult::error("failed")).with_is_error(true);
    fire(&hooks, end).await;
    let select = ModelSelect::new("openai/gpt");
    fire(&hooks, select).await;
    fire(&hooks, SessionStart::default()).await;
    let said = stage.written("said").await;
    assert_eq!(
        said,
        "type\nsecond\nagent_end 4\n2 assistant bash c1\nbash failed true\nopenai gpt  set\nstartup\n"
    );
}

#[tokio::test]
async fn a_request_and_a_message_are_replaced() {
    let stage = stage(
        "before_provider_request",
        &["return { ...event.payload, seed: 1 }"],
    )
    .await;
    let outcome = stage
        .hooks()
        .dispatch(ProviderRequest::new(json!({ "model": "m" })))
        .await;
    let payload = outcome.into_rewritten().unwrap().payload;
    assert_eq!(payload, json!({ "model": "m", "seed": 1 }));
    let body =
        "return { message: { ...event.message, content: [{ type: 'text', text: 'other' }] } }";
    let stage = self::stage("message_end", &[body]).await;
    let message = Message::assistant("one");
    let outcome = stage.hooks().dispatch(MessageEnd::new(message)).await;
    let found = outcome.into_rewritten().unwrap().message;
    assert_eq!(found, Message::assistant("other"));
}

// P33: a file that cannot be loaded reports why, and on which line; other files are not affected.
#[tokio::test]
async fn an_extension_that_cannot_be_loaded_says_why() {
    let stage = Stage::of_node();
    for (name, text, message) in [
        (
            "a.js",
            "export default {};",
            "a.js exports no function by default",
        ),
        (
            "b.js",
            "export const x = 1;",
            "b.js exports no function by default",
        ),
        (
            "c.js",
            "export default () => {\n  throw new Error('late');\n};",
            "c.js:2: Error: late",
        ),
        (
            "d.ts",
            "const x: number = 1;\nlet y = ;\nexport default () => {};",
            "line 2: Unexpected token",
        ),
        (
            "e.js",
            "import 'nowhere';\nexport default () => {};",
            "Cannot find package 'nowhere'",
        ),
        (
            "f.ts",
            "interface A { a: number }\n\nexport default function (pi: any): void {\n  pi.on('input', 7 as any);\n}",
            "f.ts:4: TypeError: pi.on('input') got a number as its handler",
        ),
        (
            "g.js",
            "export default (pi) => pi.sendUserMessage('x');",
            "the session is not initialized",
        ),
    ] {
        let error = stage.load(API, name, text).await.unwrap_err().to_string();
        assert!(error.contains(message), "{name}: {error}");
    }
    let text = extension("input", &["return { action: 'handled' }"]);
    let hooks = stage.add(API, "good.js", &text).await;
    assert_eq!(hooks.len(), 1);
    let event = input("x", None, InputSource::Interactive);
    assert!(stage.hooks().dispatch(event).await.is_handled());
}

/// A program with a session, which records the requests that it gets.
#[derive(Debug, Default)]
struct Session {
    asked: Mutex<Vec<String>>,
}

impl Host for Session {
    like_no_host!(script_session main_session on_output add);

    fn is_strict(&self) -> bool {
        false
    }

    fn has_ui(&self) -> bool {
        true
    }

    fn flags(&self) -> JsonObject {
        object(&json!({ "plan": true }))
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        self.asked
            .lock()
            .unwrap()
            .push(format!("{method} {params}"));
        Box::pin(async move {
            match method {
                "ui/confirm" => {
                    // The user thinks longer than the timeout of the call.
                    tokio::time::sleep(Duration::from_millis(700)).await;
                    Ok(json!({ "answer": false }))
                }
                "model/call" => {
                    // The model takes longer than the timeout of the call.
                    tokio::time::sleep(Duration::from_millis(700)).await;
                    Ok(json!({ "message": { "role": "assistant", "content": "deny" } }))
                }
                "session/read" => Ok(json!({
                    "system_prompt": "be brief",
                    "entries": [
                        { "type": "message", "id": "1", "parentId": null },
                        { "type": "custom", "customType": "my-state", "data": { "n": 7 }, "id": "2", "parentId": "1" },
                    ],
                })),
                _ => Err(Refusal::Failed("not today".to_owned())),
            }
        })
    }
}

const ASKS: &str = r#"
export default function (pi) {
  pi.registerFlag("plan", { type: "boolean", default: false, description: "Plan only" });
  pi.on("tool_call", async (event, ctx) => {
    if (!ctx.hasUI) return { block: true, reason: "nobody to ask" };
    const ok = await ctx.ui.confirm("Dangerous!", `Allow ${event.input.command}?`);
    if (!ok) return { block: true, reason: `no, in ${ctx.getSystemPrompt()}` };
  });
  pi.on("before_agent_start", async (event, ctx) => {
    let n;
    for (const entry of ctx.sessionManager.getBranch()) {
      if (entry.type === "custom" && entry.customType === "my-state") n = entry.data.n;
    }
    const why = await pi.sendUserMessage("go on").catch((error) => error.message);
    return { systemPrompt: `${n} ${pi.getFlag("plan")} ${pi.getFlag("other")} ${why}` };
  });
}
"#;

// A question to the user does not count against the deadline of its call; requests that pi answers
// at once are answered at once.
#[tokio::test]
async fn extensions_ask_the_user_and_read_the_session() {
    let host = Arc::new(Session::default());
    let stage = Stage::of_node().hosted_by(Arc::clone(&host) as Arc<dyn Host>);
    let (number, registered) = stage.load(API, "a.js", ASKS).await.unwrap();
    assert_eq!(registered.flags[0].name, "plan");
    let event =
        json!({ "type": "tool_call", "toolName": "bash", "input": { "command": "rm -rf /" } });
    let answer = stage
        .worker
        .handle(
            (number, 0),
            event.to_string().as_bytes(),
            Duration::from_millis(400),
            &CancellationToken::new(),
        )
        .await
        .unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["result"]["reason"], "no, in be brief");
    stage.add(API, "a.js", ASKS).await;
    let outcome = stage.hooks().dispatch(BeforeAgentStart::default()).await;
    let rewritten = outcome.into_rewritten().unwrap();
    assert_eq!(rewritten.system_prompt, "7 true undefined not today");
    let asked = host.asked.lock().unwrap();
    assert!(asked[0].starts_with("ui/confirm"), "{asked:?}");
    assert!(asked[0].contains("Allow rm -rf /?"), "{asked:?}");
}

const JUDGES: &str = r#"
import { complete } from "@mariozechner/pi-ai";
export default function (pi) {
  pi.on("tool_call", async (event) => {
    const model = { provider: "corp", id: "small" };
    const { content } = await complete(model, { messages: [{ role: "user", content: event.input.command }] });
    if (content[0].text === "deny") return { block: true, reason: "the model denies it" };
  });
}
"#;

#[tokio::test]
async fn the_time_of_a_model_call_does_not_count_against_its_handler() {
    let host = Arc::new(Session::default());
    let stage = Stage::of_node().hosted_by(Arc::clone(&host) as Arc<dyn Host>);
    let (number, _) = stage.load(API, "a.js", JUDGES).await.unwrap();
    let event = json!({ "type": "tool_call", "toolName": "bash", "input": { "command": "ls" } });
    let answer = stage
        .worker
        .handle(
            (number, 0),
            event.to_string().as_bytes(),
            Duration::from_millis(400),
            &CancellationToken::new(),
        )
        .await
        .unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["result"]["reason"], "the model denies it");
    let asked = host.asked.lock().unwrap();
    assert!(asked[0].starts_with("model/call"), "{asked:?}");
}

const BRINGS: &str = r#"
import { Type } from "@sinclair/typebox";
import { StringEnum } from "@mariozechner/pi-ai";
import { shout } from "./voice";
export default function (pi: any) {
  pi.registerTool({
    name: "greet",
    label: "Greet",
    description: "Greets somebody",
    parameters: Type.Object({ name: Type.String(), how: Type.Optional(StringEnum(["loud", "low"])) }),
    async execute(id, params, signal, onUpdate, ctx) {
      if (params.name === "nobody") throw new Error("nobody is here");
      return { content: [{ type: "text", text: shout(params.name) }], details: { id } };
    },
  });
  pi.registerCommand("hello", { description: "Says hello", handler: async (args, ctx) => {
    if (args === "") throw new Error("to whom?");
    ctx.ui.notify(`hello ${args}`, "info");
  } });
}
"#;

#[tokio::test]
async fn tools_and_commands_of_an_extension_run() {
    let host = Arc::new(Session::default());
    let stage = Stage::of_node().hosted_by(Arc::clone(&host) as Arc<dyn Host>);
    stage.write(
        "voice.ts",
        "export const shout = (name: string): string => name.toUpperCase() + '!';",
    );
    let (script, registered) = stage.lease(API, "a.ts", BRINGS).await;
    let script = stage.worker.script(script);
    let [tool] = &registered.tools[..] else {
        panic!("{registered:?}");
    };
    assert_eq!(
        (&*tool.name, &*tool.description),
        ("greet", "Greets somebody")
    );
    assert_eq!(
        tool.parameters,
        json!({
            "type": "object",
            "properties": { "name": { "type": "string" }, "how": { "type": "string", "enum": ["loud", "low"] } },
            "required": ["name"],
        })
    );
    assert_eq!(registered.commands[0].name, "hello");
    let never = CancellationToken::new();
    let within = crate::AMPLE;
    let run = async |name: &str| {
        let input = json!({ "name": name });
        let call = ScriptToolCall {
            session: None,
            id: "c1",
            input: &input,
        };
        script.run_tool("greet", call, None, within, &never).await
    };
    let result = ToolResult::from(run("ada").await.unwrap());
    assert_eq!(result.joined_text(), "ADA!");
    assert_eq!(result.details, Some(object(&json!({ "id": "c1" }))));
    let failed = ToolResult::from(run("nobody").await.unwrap());
    assert!(failed.is_error);
    assert_eq!(failed.joined_text(), "nobody is here");
    let command = async |args: &str| {
        let ran = script.run_command(("hello", args), "s", within, &never);
        ran.await
    };
    command("ada").await.unwrap();
    let error = command("").await.unwrap_err().to_string();
    assert!(error.contains("to whom?"), "{error}");
    let asked = host.asked.lock().unwrap();
    assert!(asked[0].contains("hello ada"), "{asked:?}");
}

// Whatever a handler starts, prints or leaves unfinished, the worker keeps running and its scripts
// keep their state.
#[tokio::test]
async fn what_handlers_do_to_their_process_is_none_of_the_protocol_s() {
    for body in [
        "require('node:child_process').execSync('echo hi; cat', { stdio: 'inherit' })",
        "process.stdout.write('hi'); console.log('hi'); setTimeout(() => { throw new Error('later') }, 0)",
        "process.stdin.on('data', () => { throw new Error('what?') }).resume()",
        "Promise.reject(new Error('nobody looks'))",
    ] {
        let counts = format!(
            "globalThis.calls = (globalThis.calls ?? 0) + 1; {body}; return {{ block: true, reason: `${{globalThis.calls}} ${{'\u{1F600}'.slice(0, 1)}}` }}"
        );
        let stage = stage("tool_call", &[&counts]).await;
        for round in 1..=3 {
            let outcome = stage.hooks().dispatch(shell("ls")).await;
            let expected = format!("{round} \u{FFFD}");
            assert_eq!(
                outcome.decision().reason(),
                Some(&*expected),
                "{body}: {outcome:?}"
            );
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_handler_that_goes_on_after_its_time_ends_with_its_worker() {
    let body = "for (;;) { await new Promise((r) => setTimeout(r, 20)); fs.appendFileSync('DIR/ticks', 'x'); }";
    let stage = stage("tool_call", &[body]).await;
    let pid = stage.worker.pid().await.unwrap();
    let event = json!({ "type": "tool_call", "toolName": "bash", "input": {} }).to_string();
    let never = CancellationToken::new();
    let within = Duration::from_millis(200);
    let answer = stage
        .worker
        .handle((0, 0), event.as_bytes(), within, &never)
        .await;
    assert_eq!(answer.unwrap_err(), WorkerError::TimedOut);
    let began = Instant::now();
    let process = format!("/proc/{pid}");
    while std::path::Path::new(&process).exists() {
        assert!(began.elapsed() < crate::AMPLE, "it still runs");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_question_ends_with_the_call_that_asks_it() {
    /// Counts the questions that were asked and those that were given up, and answers none.
    #[derive(Debug)]
    struct Patient {
        asked: Arc<Semaphore>,
        given_up: Arc<Semaphore>,
    }
    impl Host for Patient {
        like_no_host!(flags script_session main_session on_output add);

        fn is_strict(&self) -> bool {
            false
        }

        fn has_ui(&self) -> bool {
            true
        }
        fn answer<'a>(
            &'a self,
            method: &'a str,
            _params: &'a Value,
        ) -> BoxFuture<'a, Result<Value, Refusal>> {
            struct Question(Arc<Semaphore>);
            impl Drop for Question {
                fn drop(&mut self) {
                    self.0.add_permits(1);
                }
            }
            let question = (method == "ui/confirm").then(|| {
                self.asked.add_permits(1);
                Question(Arc::clone(&self.given_up))
            });
            Box::pin(async move {
                if question.is_none() {
                    return Err(Refusal::Failed("not today".to_owned()));
                }
                std::future::pending().await
            })
        }
    }
    let [asked, given_up] = [(); 2].map(|()| Arc::new(Semaphore::new(0)));
    let stage = Stage::of_node().hosted_by(Arc::new(Patient {
        asked: Arc::clone(&asked),
        given_up: Arc::clone(&given_up),
    }));
    let awaits = "await ctx.ui.confirm('Sure?'); ";
    // The answer to the second request shows that the first one has reached the host.
    let leaves = "void ctx.ui.confirm('Sure?'); await pi.sendUserMessage('go on').catch(() => {})";
    stage
        .add(API, "a.js", &extension("tool_call", &[awaits, leaves]))
        .await;
    let event = json!({ "type": "tool_call", "toolName": "bash", "input": {} }).to_string();
    let cancel = CancellationToken::new();
    let within = Duration::from_mins(1);
    let call = stage
        .worker
        .handle((0, 0), event.as_bytes(), within, &cancel);
    let cancels = async {
        asked.acquire().await.unwrap().forget();
        cancel.cancel();
    };
    let (answer, ()) = tokio::join!(call, cancels);
    assert_eq!(answer.unwrap_err(), WorkerError::Cancelled);
    let never = CancellationToken::new();
    let answer = stage
        .worker
        .handle((0, 1), event.as_bytes(), within, &never)
        .await;
    assert!(answer.is_ok());
    let both = tokio::time::timeout(Duration::from_mins(1), given_up.acquire_many(2));
    both.await
        .expect("somebody is still asked")
        .unwrap()
        .forget();
}

#[tokio::test]
async fn sources_that_are_deep_are_read_or_refused_and_nothing_else() {
    let stage = Stage::of_node();
    let deep = format!("{}1{}", "(".repeat(3_000), ")".repeat(3_000));
    let chain = "\"a\"+".repeat(20_000);
    let ladder = "if (x) {} else ".repeat(5_000);
    for (name, source) in [
        ("a.ts", format!("const y: any = () => {deep};")),
        ("b.ts", format!("const y: any = () => {chain}\"a\";")),
        (
            "c.ts",
            format!("const y: any = (x: any) => {{ {ladder} ; }};"),
        ),
    ] {
        let text = format!("{source}\nexport default (pi: any) => {{}};");
        let _read_or_refused = stage.load(API, name, &text).await;
    }
    stage.add(API, "good.ts", TOOL_CALLS).await;
    let outcome = stage.hooks().dispatch(shell("sudo ls")).await;
    assert_eq!(
        outcome.decision().reason(),
        Some("Not allowed in read-only mode")
    );
}

#[tokio::test]
async fn modules_of_the_older_kind_load_and_load_again() {
    let stage = Stage::of_node();
    let text = |word: &str| {
        format!(
            "const {{ isToolCallEventType }} = require('@mariozechner/pi-coding-agent');\n\
             module.exports = (pi) => pi.on('tool_call', (event) => isToolCallEventType('bash', event) && {{ block: true, reason: '{word}' }});"
        )
    };
    for word in ["one", "two"] {
        let (number, _) = stage.load(API, "old.cjs", &text(word)).await.unwrap();
        let event = json!({ "type": "tool_call", "toolName": "bash", "input": {} }).to_string();
        let answer = stage
            .worker
            .handle(
                (number, 0),
                event.as_bytes(),
                crate::AMPLE,
                &CancellationToken::new(),
            )
            .await
            .unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["result"]["reason"], word);
    }
    let own =
        "const { deny, on } = require('tenterhook');\non('pre_tool_use', () => deny('old'));\n";
    let (_, registered) = stage.load("tenterhook", "own.cjs", own).await.unwrap();
    assert_eq!(registered.hooks.len(), 1);
}

#[tokio::test]
async fn a_worker_for_node_that_takes_too_much_memory_is_ended() {
    for wait in ["await new Promise((r) => setTimeout(r, 30))", ""] {
        let body = format!(
            "globalThis.kept = []; for (;;) {{ kept.push(Buffer.alloc(100 << 20, 1)); {wait} }}"
        );
        let stage = stage("tool_call", &[&body]).await;
        let outcome = stage.hooks().dispatch(shell("ls")).await;
        let decision = outcome.decision();
        let reason = decision.reason().unwrap();
        assert!(
            reason.contains("it used more than 2048 MiB of memory"),
            "{wait:?}: {reason}"
        );
    }
}

// JSON makes these `{}`, which is no opinion: the guard looked away.
#[tokio::test]
async fn a_result_of_tool_call_that_json_would_empty_blocks_the_call() {
    for (body, problem) in [
        ("return new Map([['block', true]]);", "returned a Map"),
        ("return new Error('no');", "returned an Error"),
        ("return NaN;", "returned NaN"),
        ("return 10n;", "returned a bigint"),
        (
            "return (async function* () { yield { block: true }; })();",
            "returned an AsyncGenerator",
        ),
        (
            "class Verdict { #block = true; } return new Verdict();",
            "returned a Verdict",
        ),
        (
            "class Verdict { get blocked() { return true; } } return new Verdict();",
            "the key `blocked`",
        ),
        ("return { block: () => true };", "a function as `block`"),
        (
            "class Verdict { get block() { return true; } get reason() { return 'of a getter'; } } return new Verdict();",
            "of a getter",
        ),
        (
            "class Verdict { constructor() { this.block = true; this.reason = 'of a class'; } } return new Verdict();",
            "of a class",
        ),
        (
            "return Object.create({ block: true, reason: 'inherited' });",
            "inherited",
        ),
    ] {
        let stage = stage("tool_call", &[body]).await;
        let outcome = stage.hooks().dispatch(shell("ls")).await;
        let decision = outcome.decision();
        let reason = decision.reason().unwrap_or("nothing");
        assert!(reason.contains(problem), "{body}: {reason}");
    }
}

#[tokio::test]
async fn a_result_of_tool_result_that_json_would_empty_is_a_failure() {
    let body = "return new Map([['content', []]]);";
    let stage = stage("tool_result", &[body]).await;
    let outcome = stage
        .hooks()
        .dispatch(done(ToolResult::text("secret")))
        .await;
    assert_eq!(outcome.failures().len(), 1, "{outcome:?}");
}

// What an earlier extension has started ends while the next one loads, so it must not hide what that one starts.
#[tokio::test]
async fn a_late_guard_is_noticed_while_work_of_another_extension_ends() {
    let stage = Stage::of_node();
    let first = "import { spawn } from 'node:child_process';
export default function (pi) {
  globalThis.child = spawn('sleep', ['60']);
  pi.on('turn_end', () => {});
}
";
    stage.load(API, "a.js", first).await.unwrap();
    let second = "import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
export default async function (pi) {
  globalThis.child.kill();
  await once(globalThis.child, 'close');
  readFile('/dev/null').then(() => pi.on('tool_call', () => ({ block: true })));
}
";
    let error = stage.load(API, "b.js", second).await.unwrap_err();
    let error = error.to_string();
    assert!(error.contains("registered a hook too late"), "{error}");
}

// A handler that came after loading was lost, and the extension went on without its guard.
#[tokio::test]
async fn an_extension_that_registers_a_handler_too_late_blocks_calls() {
    let stage = Stage::of_node();
    for (setup, problem) in [
        ("setTimeout(guard, 0);", "registered a hook too late"),
        (
            "(async () => { await new Promise(setImmediate); guard(); })();",
            "registered a hook too late",
        ),
        (
            "(async () => { throw new Error('no rules'); })();",
            "Error: no rules",
        ),
    ] {
        let text = format!(
            "export default function (pi) {{\n  const guard = () => pi.on('tool_call', () => ({{ block: true }}));\n  {setup}\n}}\n"
        );
        let error = stage.load(API, "a.js", &text).await.unwrap_err();
        assert!(error.to_string().contains(problem), "{setup}: {error}");
    }
    let later = "export default function (pi) {\n  pi.on('tool_call', () => {\n    \
                 try { pi.on('tool_call', () => ({ block: true })); } catch {}\n  });\n}\n";
    stage.add(API, "b.js", later).await;
    let hooks = stage.hooks();
    let first = hooks.dispatch(shell("ls")).await;
    assert_eq!(first.decision().reason(), None);
    let outcome = hooks.dispatch(shell("ls")).await;
    let decision = outcome.decision();
    let reason = decision.reason().unwrap_or("nothing");
    assert!(
        reason.contains("b.js registered a hook too late"),
        "{reason}"
    );
}
