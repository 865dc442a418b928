//! What extensions see of the messages of a conversation, and what they can ask about the session, with a real worker.

use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook_agent::{
    Agent, AgentConfig, CancellationToken, Permissions, RunEnd, SessionStore, UserCommand,
};
use tenterhook_engine::Role;
use tenterhook_engine::event::{BeforeLlmCall, SessionSource};

use crate::extension::Loaded;
use crate::stage::Stage;

fn sessions(stage: &Stage) -> SessionStore {
    SessionStore::of_project(&stage.path().join("data"), stage.path())
}

fn agent(stage: &Stage, loaded: &Loaded, script: &str) -> Agent {
    config(stage, loaded, script)
        .build(stage.engine.clone())
        .unwrap()
}

fn config(stage: &Stage, loaded: &Loaded, script: &str) -> AgentConfig {
    AgentConfig {
        toolbox: loaded.toolbox(),
        permissions: Permissions::new().yes(true),
        scripts: Some(Arc::clone(&loaded.host)),
        sessions: Some(sessions(stage)),
        ..stage.config(script)
    }
}

async fn say(agent: &mut Agent, text: &str) -> RunEnd {
    agent.prompt(text, &CancellationToken::new()).await.end
}

/// Returns the JSON lines that the extension wrote to the file `seen`, and removes the file.
fn seen(stage: &Stage) -> Vec<Value> {
    let path = stage.path().join("seen");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// An extension that sends messages and logs what its handlers and getters show of them.
const SENDER: &str = r#"
import * as fs from "node:fs";
const log = (value: unknown) => fs.appendFileSync("seen", JSON.stringify(value) + "\n");
export default function (pi: any) {
  pi.on("before_agent_start", () => ({
    message: { customType: "plan", content: "be brief", display: true, details: { step: 1 } },
  }));
  pi.on("turn_end", async (event: any) => {
    if (event.turnIndex > 0) return;
    await pi.sendMessage(
      { customType: "note", content: "only for the model", display: false, details: ["a"] },
      { deliverAs: "followUp" },
    );
  });
  pi.on("context", (event: any) => {
    log(event.messages.map(({ role, customType, display, details, content }: any) => ({ role, customType, display, details, content })));
  });
  pi.on("session_start", (event: any, ctx: any) => {
    const sent = ctx.sessionManager.getEntries().filter((entry: any) => entry.type === "custom_message");
    log(sent.map(({ customType, display, details, content }: any) => ({ customType, display, details, content })));
  });
}
"#;

#[tokio::test]
async fn a_message_of_an_extension_keeps_its_type_and_details() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, SENDER).await;
    let mut agent = agent(&stage, &loaded, "turns: [{text: one}, {text: two}]");
    assert_eq!(say(&mut agent, "go").await, RunEnd::Completed);
    let plan = json!({"customType": "plan", "display": true, "details": {"step": 1}, "content": "be brief"});
    let note = json!({
        "customType": "note", "display": false, "details": ["a"], "content": "only for the model",
    });
    let custom = |message: &Value| {
        let mut message = message.clone();
        message["role"] = "custom".into();
        message
    };
    let logged = seen(&stage);
    assert_eq!(logged[0], json!([]));
    let roles: Vec<&Value> = logged[2].as_array().unwrap().iter().collect();
    assert_eq!(roles.len(), 4, "{roles:?}");
    assert_eq!(roles[0]["role"], "user");
    assert_eq!(*roles[1], custom(&plan));
    assert_eq!(roles[2]["role"], "assistant");
    assert_eq!(*roles[3], custom(&note));
    // The model reads both as the user's words, without the details.
    let sent = &stage.all::<BeforeLlmCall>()[1].messages;
    let sent: Vec<(Role, &str)> = sent
        .iter()
        .filter(|message| message.role != Role::System)
        .map(|message| (message.role, message.content.as_str()))
        .collect();
    assert_eq!(
        sent,
        [
            (Role::User, "go"),
            (Role::User, "be brief"),
            (Role::Assistant, "one"),
            (Role::User, "only for the model"),
        ]
    );
    let shown = stage.human.screen();
    let shown: Vec<&String> = shown
        .iter()
        .filter(|line| line.starts_with("message"))
        .collect();
    assert_eq!(shown, ["message plan be brief"]);

    // A resumed session and a fork have the same messages.
    let id = agent.session().id().clone();
    let leaf = agent.session().leaf().unwrap().clone();
    agent.fork(&leaf, &CancellationToken::new()).await.unwrap();
    assert_eq!(seen(&stage), [json!([plan, note])]);
    agent
        .end_session(tenterhook_engine::event::SessionEndReason::Quit)
        .await;
    let mut resumed = AgentConfig {
        session: Some(sessions(&stage).read(&id).unwrap().session),
        sessions: None,
        ..config(&stage, &loaded, "turns: [{text: three}]")
    }
    .build(stage.engine.clone())
    .unwrap();
    resumed.start_session(SessionSource::Resume).await;
    assert_eq!(seen(&stage), [json!([plan, note])]);
}

const TODO: &str = r#"
import * as fs from "node:fs";
const log = (value: unknown) => fs.appendFileSync("seen", JSON.stringify(value) + "\n");
export default function (pi: any) {
  let todos: string[] = [];
  pi.on("session_start", (event: any, ctx: any) => {
    for (const entry of ctx.sessionManager.getBranch()) {
      const message = entry.type === "message" ? entry.message : undefined;
      if (message?.role === "toolResult" && message.toolName === "todo") todos = message.details.todos;
      if (message?.role === "assistant") {
        const { api, provider, model, usage, stopReason } = message;
        log({ api, provider, model, usage, stopReason });
      }
    }
    log(todos);
  });
  pi.registerTool({
    name: "todo", description: "Keeps a list",
    parameters: { type: "object", properties: { add: { type: "string" } }, required: ["add"] },
    execute: async (id: string, params: any) => {
      todos = [...todos, params.add];
      return { content: [{ type: "text", text: `${todos.length} todos` }], details: { todos } };
    },
  });
  pi.on("message_end", (event: any) => {
    const { role, toolName, details } = event.message;
    if (role === "toolResult") log({ toolName, details });
  });
}
"#;

#[tokio::test]
async fn an_extension_restores_its_state_from_stored_tool_results() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, TODO).await;
    let script = r"
context_window: 1000
price: { input: 1, output: 2 }
turns:
  - tool_calls: [{ name: todo, arguments: { add: milk } }]
    usage: { input_tokens: 1000, output_tokens: 500 }
  - text: done
";
    let mut agent = agent(&stage, &loaded, script);
    assert_eq!(say(&mut agent, "go").await, RunEnd::Completed);
    let milk = json!({"todos": ["milk"]});
    assert_eq!(
        seen(&stage),
        [json!([]), json!({"toolName": "todo", "details": milk})]
    );
    let id = agent.session().id().clone();
    drop(agent);
    let mut resumed = AgentConfig {
        session: Some(sessions(&stage).read(&id).unwrap().session),
        sessions: None,
        ..config(&stage, &loaded, "turns: [{text: again}]")
    }
    .build(stage.engine.clone())
    .unwrap();
    resumed.start_session(SessionSource::Resume).await;
    let logged = seen(&stage);
    assert_eq!(
        logged[0],
        json!({
            "api": "openai-completions", "provider": "scripted", "model": "play", "stopReason": "toolUse",
            "usage": {
                "input": 1000, "output": 500, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 1500,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.002},
            },
        })
    );
    assert_eq!(logged[1]["stopReason"], "stop");
    assert_eq!(logged[1]["usage"]["totalTokens"], 0);
    assert_eq!(logged[2], json!(["milk"]));
}

const PRUNER: &str = r#"
import * as fs from "node:fs";
const log = (value: unknown) => fs.appendFileSync("seen", JSON.stringify(value) + "\n");
export default function (pi: any) {
  pi.on("context", (event: any) => {
    log(event.messages.map((message: any) => [message.role, message.summary ?? message.command ?? message.output]));
    return { messages: event.messages.slice(-1) };
  });
}
"#;

#[tokio::test]
async fn a_handler_that_prunes_messages_keeps_the_system_prompt() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, PRUNER).await;
    let mut agent = AgentConfig {
        instruction: "Never do that.".to_owned(),
        ..config(&stage, &loaded, "turns: [{text: one}, {text: two}]")
    }
    .build(stage.engine.clone())
    .unwrap();
    say(&mut agent, "go").await;
    say(&mut agent, "and now?").await;
    let roles = [
        json!([["user", null]]),
        json!([["user", null], ["assistant", null], ["user", null]]),
    ];
    assert_eq!(seen(&stage), roles);
    for (call, question) in stage.all::<BeforeLlmCall>().iter().zip(["go", "and now?"]) {
        let sent: Vec<&str> = call
            .messages
            .iter()
            .map(|message| message.content.as_str())
            .collect();
        assert_eq!(sent, ["Never do that.", question]);
    }
}

#[tokio::test]
async fn summaries_and_commands_of_the_user_have_their_own_roles() {
    let stage = Stage::empty();
    let text = PRUNER.replace("event.messages.slice(-1)", "event.messages");
    let loaded = Loaded::new(&stage, false, &text).await;
    let script = "turns: [{text: one}, {summary: what was said}, {text: two}]";
    let mut agent = agent(&stage, &loaded, script);
    let cancel = CancellationToken::new();
    say(&mut agent, "go").await;
    agent.compact(None, &cancel).await.unwrap();
    let command = UserCommand::read("!echo hello").unwrap();
    agent.run_command(command, &cancel).await.unwrap();
    say(&mut agent, "and now?").await;
    let logged = seen(&stage);
    assert_eq!(
        logged.last().unwrap(),
        &json!([
            ["compactionSummary", "what was said"],
            ["bashExecution", "echo hello"],
            ["user", null],
        ])
    );
    // The model still reads what each of them says.
    let calls = stage.all::<BeforeLlmCall>();
    let sent = &calls.last().unwrap().messages;
    let text: Vec<&str> = sent
        .iter()
        .filter(|message| message.role == Role::User)
        .map(|message| message.content.as_str())
        .collect();
    assert!(text[0].contains("replaced by this summary of it:\n\nwhat was said"));
    assert!(
        text[1].contains("echo hello") && text[1].contains("\nhello"),
        "{text:?}"
    );
}

const GETTERS: &str = r#"
import * as fs from "node:fs";
const log = (value: unknown) => fs.appendFileSync("seen", JSON.stringify(value) + "\n");
export default function (pi: any) {
  pi.on("agent_end", async (event: any, ctx: any) => {
    const session = ctx.sessionManager;
    const file = session.getSessionFile();
    const [first] = session.getEntries().filter((entry: any) => entry.type === "message");
    pi.setLabel(first.id, "start");
    pi.setActiveTools(["read"]);
    pi.setThinkingLevel("high");
    pi.setSessionName("mine");
    log({
      file: fs.existsSync(file) && file.startsWith(session.getSessionDir()),
      header: [session.getHeader().type, session.getHeader().id === session.getSessionId()],
      tree: session.getTree().map((node: any) => [node.entry.id, node.label, node.children.length]),
      label: session.getLabel(first.id),
      tools: pi.getActiveTools(),
      level: pi.getThinkingLevel(),
      name: [pi.getSessionName(), session.getSessionName()],
      usage: ctx.getContextUsage(),
      parameters: pi.getAllTools().every((tool: any) => tool.parameters.type === "object"),
      leaf: session.getLeafId() === session.getLeafEntry().id,
    });
    const model = ctx.modelRegistry.find("scripted", "play");
    process.env.ANTHROPIC_API_KEY = "canary";
    log({
      model: [model.id, model.provider, model.contextWindow],
      missing: ctx.modelRegistry.find("scripted", "nine") ?? null,
      all: ctx.modelRegistry.getAll().length,
      keys: [
        await ctx.modelRegistry.getApiKeyForProvider("anthropic"),
        (await ctx.modelRegistry.getApiKey(model)) ?? null,
        await ctx.modelRegistry.getApiKeyAndHeaders({ provider: "anthropic" }),
      ],
    });
  });
}
"#;

#[tokio::test]
async fn getters_answer_and_see_what_was_just_set() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, GETTERS).await;
    let script = r"
context_window: 1000
turns: [{text: one, usage: {input_tokens: 100, output_tokens: 50}}]
";
    let mut agent = agent(&stage, &loaded, script);
    say(&mut agent, "go").await;
    let logged = seen(&stage);
    assert_eq!(
        logged[0],
        json!({
            "file": true, "header": ["session", true], "tree": [["1", "start", 1]], "label": "start",
            "tools": ["read"], "level": "high", "name": ["mine", "mine"],
            "usage": {"tokens": 150, "contextWindow": 1000, "percent": 15}, "parameters": true, "leaf": true,
        })
    );
    assert_eq!(
        logged[1],
        json!({
            "model": ["play", "scripted", 1000], "missing": null, "all": 1,
            "keys": ["canary", "the-host-has-the-key", {"ok": true, "apiKey": "canary"}],
        })
    );
    agent.add_script_entries();
    let labels = agent.session().labels();
    assert_eq!(labels.into_values().collect::<Vec<_>>(), ["start"]);
}

const STREAM: &str = r#"
import * as fs from "node:fs";
export default function (pi: any) {
  pi.on("message_update", (event: any) => {
    const { type, contentIndex, delta, content, toolCall } = event.assistantMessageEvent;
    fs.appendFileSync("seen", JSON.stringify([type, contentIndex, delta ?? content ?? toolCall?.name ?? null]) + "\n");
  });
  pi.registerTool({
    name: "count", description: "Counts", parameters: { type: "object", properties: { to: { type: "number" } } },
    execute: async (id: string, params: any, signal: any, onUpdate: any) => {
      onUpdate({ content: [{ type: "text", text: "half" }] });
      return "all";
    },
  });
  pi.on("tool_execution_update", (event: any) => fs.appendFileSync("seen", JSON.stringify(event.args) + "\n"));
}
"#;

#[tokio::test]
async fn streamed_parts_have_a_beginning_and_an_end() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, STREAM).await;
    let script = r"
turns:
  - reasoning: hm
    text: let me see
    tool_calls: [{ name: count, arguments: { to: 3 } }]
  - text: done
";
    let mut agent = agent(&stage, &loaded, script);
    say(&mut agent, "go").await;
    let steps: Vec<Value> = seen(&stage);
    let kinds: Vec<String> = steps
        .iter()
        .filter(|step| step.is_array())
        .map(|step| format!("{} {}", step[0].as_str().unwrap(), step[1]))
        .collect();
    let mut kinds_once = kinds.clone();
    kinds_once.dedup();
    assert_eq!(
        kinds_once,
        [
            "thinking_start 0",
            "thinking_delta 0",
            "thinking_end 0",
            "text_start 1",
            "text_delta 1",
            "text_end 1",
            "toolcall_start 2",
            "toolcall_delta 2",
            "toolcall_end 2",
            "text_start 0",
            "text_delta 0",
            "text_end 0",
        ]
    );
    let of = |kind: &str| steps.iter().find(|step| step[0] == kind).unwrap()[2].clone();
    assert_eq!(of("thinking_end"), "hm");
    assert_eq!(of("text_end"), "let me see");
    assert_eq!(of("toolcall_delta"), r#"{"to":3}"#);
    assert_eq!(of("toolcall_end"), "count");
    assert!(steps.contains(&json!({"to": 3})), "{steps:?}");
}

const QUITTER: &str = r#"
export default function (pi: any) {
  pi.registerTool({
    name: "finish", description: "Ends the program", parameters: { type: "object", properties: {} },
    execute: async (id: string, params: any, signal: any, onUpdate: any, ctx: any) => {
      ctx.shutdown();
      return "bye";
    },
  });
}
"#;

#[tokio::test]
async fn a_tool_that_ends_the_program_lets_the_run_finish() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, QUITTER).await;
    let script = "turns: [{tool_calls: [{name: finish}]}, {text: all done}]";
    let mut agent = agent(&stage, &loaded, script);
    let report = agent.prompt("go", &CancellationToken::new()).await;
    assert_eq!(report.end, RunEnd::Completed);
    assert_eq!(report.response, "all done");
    assert!(loaded.host.is_over());
}
