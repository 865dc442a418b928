//! Extensions with an agent and a real worker: their tools, their commands and their requests.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenterhook_agent::extension::{
    CommandEnd, ForeignCommand, ForeignTool, ScriptHost, Spelling, add_script_tool,
};
use tenterhook_agent::frontend::{Approval, ApprovalRequest, Frontend, ScriptQuestion};
use tenterhook_agent::{AgentConfig, CancellationToken, Models, Permissions, RunEnd, Toolbox};
use tenterhook_engine::event::{ToolExecutionUpdate, ToolInputTransform};
use tenterhook_engine::{Effect, HookId, HookSpec, JsonObject, Role};
use tenterhook_providers::{ExtensionProviders, ModelClients, Provider, Scripted};
use tenterhook_runners::worker::{
    Lease, Registered, Script, ScriptServer, Worker, WorkerHandler, node,
};
use tenterhook_systems::pi::{self, Pi};

use futures_util::future::{self, BoxFuture};

use crate::stage::{Stage, tool_texts};

/// The spelling of pi.
const SPELLING: Spelling = Spelling {
    entry: pi::entry,
    tool: pi::tool_name,
    own_tool: pi::own_tool_name,
    replaced: pi::replaced_tool,
    replaced_input: pi::replaced_input,
};

/// An extension in a worker, with its hooks in the engine.
pub(crate) struct Loaded {
    pub(crate) host: Arc<ScriptHost>,
    worker: Worker,
    lease: Lease,
    registered: Registered,
}

impl Loaded {
    pub(crate) async fn new(stage: &Stage, has_ui: bool, text: &str) -> Self {
        let flags = JsonObject::from_iter([("loud".to_owned(), true.into())]);
        let host = Arc::new(ScriptHost::new(has_ui, flags, SPELLING));
        let path = stage.path().join("extension.ts");
        std::fs::write(&path, text).unwrap();
        let worker = node(stage.path()).hosted_by(Arc::clone(&host) as _);
        let script = Script {
            path,
            api: "pi",
            approved: None,
        };
        let (_, registered) = worker.load(&script).await.unwrap();
        let lease = worker.expect(&script, registered.hooks.clone(), None).await;
        for (place, hook) in registered.hooks.iter().enumerate() {
            let event = Pi::event(&hook.event).unwrap();
            let handler = WorkerHandler::leased(
                worker.clone(),
                (lease.clone(), place),
                event.dialect(),
                &*hook.name,
            );
            stage.engine.register(HookSpec {
                policy: event.dialect().policy(event.kind.info(), None),
                ..HookSpec::new(
                    event.kind,
                    HookId::new(format!("{}{place}", hook.name)),
                    Arc::new(handler),
                )
            });
        }
        Self {
            host,
            worker,
            lease,
            registered,
        }
    }

    pub(crate) fn toolbox(&self) -> Toolbox {
        let tools = self.registered.tools.iter().cloned();
        tools.fold(Toolbox::standard(), |toolbox, tool| {
            let tool = ForeignTool::of_script(self.script(), tool).unwrap();
            add_script_tool(toolbox, tool, &SPELLING)
        })
    }

    fn script(&self) -> Arc<dyn ScriptServer> {
        self.worker.script(self.lease.clone())
    }

    /// Returns the models that the extension provides. `clients` knows the user's own.
    pub(crate) fn providers(&self, clients: ModelClients) -> Arc<ExtensionProviders> {
        let (worker, lease) = (self.worker.clone(), self.lease.clone());
        let providers = self.registered.providers.clone();
        let scripts = [(providers, worker, lease)];
        Arc::new(ExtensionProviders::new(Arc::new(clients), scripts))
    }

    /// Returns the warnings of the extension.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.registered.warnings
    }

    fn commands(&self) -> Vec<ForeignCommand> {
        let commands = self.registered.commands.iter().cloned();
        commands
            .map(|command| {
                ForeignCommand::of_script(self.script(), command, Path::new("extension.ts"))
            })
            .collect()
    }
}

/// A user who answers the questions of scripts.
struct Answers;

impl Frontend for Answers {
    fn is_interactive(&self) -> bool {
        true
    }

    fn approve<'a>(&'a self, _request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(future::ready(Approval::AllowOnce))
    }

    fn question<'a>(&'a self, question: &'a ScriptQuestion) -> BoxFuture<'a, Option<String>> {
        let answer = match question {
            ScriptQuestion::Confirm { .. } => "yes".to_owned(),
            ScriptQuestion::Select { options, .. } => options[1].clone(),
            ScriptQuestion::Input { title, .. } => format!("{title}!"),
            ScriptQuestion::Editor { text, .. } => format!("{text}!"),
            _ => return Box::pin(future::ready(None)),
        };
        Box::pin(future::ready(Some(answer)))
    }
}

const GREETER: &str = r#"
export default function (pi: any) {
  pi.registerTool({
    name: "greet", description: "Greets somebody",
    parameters: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    async execute(id: string, params: { name: string }) {
      if (params.name === "nobody") throw new Error("nobody is here");
      return { content: [{ type: "text", text: (pi.getFlag("loud") ? "HELLO " : "hello ") + params.name }], details: { id } };
    },
  });
  pi.registerFlag("loud", { type: "boolean" });
  pi.on("tool_result", (event: any) => {
    if (event.toolName === "greet") return { content: [...event.content, { type: "text", text: event.details?.id ?? "none" }] };
  });
}
"#;

#[tokio::test]
async fn the_model_calls_a_tool_of_an_extension_like_any_other() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, GREETER).await;
    let script = r"
turns:
  - tool_calls: [{id: c7, name: greet, arguments: {name: ada}}]
  - tool_calls: [{name: greet, arguments: {}}]
  - tool_calls: [{name: greet, arguments: {name: nobody}}]
  - text: done
";
    let permissions = Permissions::new().allow("greet".parse().unwrap());
    let (agent, report) = stage
        .play_with(script, |config| AgentConfig {
            toolbox: loaded.toolbox(),
            permissions,
            scripts: Some(Arc::clone(&loaded.host)),
            ..config
        })
        .await;
    assert_eq!(report.end, RunEnd::Completed);
    let texts = tool_texts(&agent);
    assert_eq!(texts[0], "HELLO ada\nc7");
    assert!(
        texts[1].contains("\"name\" is a required property"),
        "{texts:?}"
    );
    assert!(texts[2].contains("nobody is here"), "{texts:?}");
    // A tool of an extension needs approval, like every tool that may change something.
    let (agent, _) = stage
        .play_with(script, |config| AgentConfig {
            toolbox: loaded.toolbox(),
            ..config
        })
        .await;
    assert!(
        tool_texts(&agent)[0].contains("approval"),
        "{:?}",
        tool_texts(&agent)
    );
}

#[tokio::test]
async fn arguments_that_a_hook_changed_are_checked_against_the_schema_too() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, GREETER).await;
    stage.engine.on(|_: &ToolInputTransform| {
        let changed = json!({"name": ["ada"]});
        Effect::<ToolInputTransform>::none().patch_input(changed.as_object().unwrap().clone())
    });
    let script = "turns: [{tool_calls: [{name: greet, arguments: {name: ada}}]}, {text: done}]";
    let (agent, _) = stage
        .play_with(script, |config| AgentConfig {
            toolbox: loaded.toolbox(),
            ..config
        })
        .await;
    assert_eq!(
        tool_texts(&agent),
        [
            "The tool call was rejected by a tool_input_transform hook. Reason: the hook left invalid arguments for `greet`: \
          at `/name`: [\"ada\"] is not of type \"string\""
        ]
    );
}

#[tokio::test]
async fn a_tool_whose_schema_is_none_is_not_made_and_says_why() {
    let stage = Stage::empty();
    let text = GREETER.replace("type: \"string\"", "type: \"text\"");
    let loaded = Loaded::new(&stage, false, &text).await;
    let tool = loaded.registered.tools[0].clone();
    let made = ForeignTool::of_script(loaded.script(), tool);
    let problem = made.map(drop).unwrap_err().to_string();
    assert!(
        problem.starts_with(
            "tool `greet` has an invalid JSON Schema: at `/properties/name/type`: \"text\""
        ),
        "{problem}"
    );
}

const SLOW: &str = r#"
export default function (pi: any) {
  pi.registerTool({
    name: "count", description: "Counts", parameters: { type: "object", properties: {} },
    async execute(id: string, params: unknown, signal: unknown, onUpdate: any) {
      onUpdate({ content: [{ type: "text", text: "one" }], details: { n: 1 } });
      await new Promise((go) => (pi.goOn = go));
      setTimeout(() => onUpdate({ content: [{ type: "text", text: "late" }] }), 0);
      return "two";
    },
  });
  pi.on("tool_execution_update", (event: any) => {
    if (event.partialResult.details.n === 1) pi.goOn();
  });
}
"#;

#[tokio::test]
async fn a_tool_of_an_extension_tells_what_it_has_so_far() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, SLOW).await;
    let script = "turns: [{tool_calls: [{name: count}]}, {text: done}]";
    let (agent, _) = stage
        .play_with(script, |config| {
            let permissions = Permissions::new().yes(true);
            AgentConfig {
                toolbox: loaded.toolbox(),
                permissions,
                ..config
            }
        })
        .await;
    assert_eq!(tool_texts(&agent), ["two"]);
    let partial = stage.only::<ToolExecutionUpdate>().partial_result;
    assert_eq!(partial.joined_text(), "one");
    assert_eq!(partial.details.unwrap()["n"], 1);
}

const STATEFUL: &str = r#"
import * as fs from "node:fs";
export default function (pi: any) {
  pi.on("before_agent_start", (event: any, ctx: any) => {
    const entries = ctx.sessionManager.getBranch();
    const kept = entries.filter((e: any) => e.type === "custom").map((e: any) => e.data.n);
    pi.appendEntry("my-state", { n: kept.length + 1 });
    pi.setActiveTools(["read"]);
    const facts = [event.systemPrompt.length > 20, kept.join("+"), ctx.isIdle(), ctx.hasPendingMessages(), ctx.model.id, pi.getAllTools().length, pi.getActiveTools().join()];
    fs.appendFileSync("facts", facts.join(" ") + "\n");
    return { systemPrompt: "short" };
  });
  pi.on("turn_end", async (event: any, ctx: any) => {
    if (event.turnIndex === 0) await pi.sendUserMessage("and then?", { deliverAs: "followUp" });
  });
}
"#;

// P27: each prompt starts from the agent's own system prompt.
#[tokio::test]
async fn extensions_keep_state_in_the_session_and_give_the_agent_more_to_do() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, STATEFUL).await;
    let script = "turns: [{text: one}, {text: two}, {text: three}, {text: four}]";
    let mut agent = AgentConfig {
        scripts: Some(Arc::clone(&loaded.host)),
        ..stage.config(script)
    }
    .build(stage.engine.clone())
    .unwrap();
    let cancel = CancellationToken::new();
    let report = agent.prompt("go", &cancel).await;
    assert_eq!((report.response.as_str(), report.turns), ("two", 2));
    let report = agent.prompt("again", &cancel).await;
    assert_eq!(report.response, "four");
    let said = agent.session().messages().into_iter();
    let said: Vec<String> = said
        .filter(|message| message.role == Role::User)
        .map(|message| message.content)
        .collect();
    assert_eq!(said, ["go", "and then?", "again", "and then?"]);
    let notes = agent.session().entries().iter();
    let notes: Vec<&Value> = notes
        .filter(|entry| entry.kind == "custom")
        .filter_map(|entry| entry.data.as_ref())
        .collect();
    assert_eq!(
        notes,
        [
            &json!({ "customType": "my-state", "data": { "n": 1 } }),
            &json!({ "customType": "my-state", "data": { "n": 2 } }),
        ]
    );
    let facts = std::fs::read_to_string(stage.path().join("facts")).unwrap();
    assert_eq!(
        facts,
        "true  false false play 6 read\ntrue 1 false false play 6 read\n"
    );
}

const COMMANDS: &str = r#"
export default function (pi: any) {
  pi.registerCommand("plan", { description: "Plans", handler: async (args: string, ctx: any) => {
    if (!ctx.hasUI) throw new Error("nobody to ask");
    const sure = await ctx.ui.confirm("Plan", "Sure?");
    const which = await ctx.ui.select("Which?", ["a", "b"]);
    const name = await ctx.ui.input("Name");
    await pi.sendUserMessage(`${args} ${sure} ${which} ${name}`);
  } });
  pi.registerCommand("stop", { handler: async (args: string, ctx: any) => { ctx.shutdown(); } });
  pi.on("turn_start", async (event: any, ctx: any) => { if (pi.getFlag("loud")) ctx.abort(); });
  pi.registerFlag("loud", { type: "boolean" });
}
"#;

#[tokio::test]
async fn commands_ask_the_user_and_start_the_agent() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, true, COMMANDS).await;
    let model = Scripted::parse(
        "play",
        "turns: [{tool_calls: [{name: list_directory}]}, {text: two}]",
    );
    let mut agent = AgentConfig {
        model: Some(Arc::new(model.unwrap())),
        frontend: Arc::new(Answers),
        scripts: Some(Arc::clone(&loaded.host)),
        ..AgentConfig::default()
    }
    .build(stage.engine.clone())
    .unwrap();
    let cancel = CancellationToken::new();
    let commands = loaded.commands();
    let at = (agent.session().id(), Path::new("/"));
    let end = commands[0].run("/plan all of it", at, &cancel).await;
    assert_eq!(end, Ok(CommandEnd::Done));
    let prompt = loaded.host.take_prompt();
    assert_eq!(prompt.unwrap().text, "all of it true b Name!");
    assert!(loaded.host.take_prompt().is_none());
    // A run that a handler aborts ends like a run that the user cancels.
    let report = agent.prompt("go", &cancel).await;
    assert_eq!(report.end, RunEnd::Cancelled);
    assert!(!cancel.is_cancelled());
    let at = (agent.session().id(), Path::new("/"));
    assert_eq!(
        commands[1].run("/stop", at, &cancel).await,
        Ok(CommandEnd::Done)
    );
    let began = std::time::Instant::now();
    while !loaded.host.is_over() {
        assert!(began.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    drop(agent);
    let error = commands[0]
        .run("/plan", (&"s".into(), Path::new("/")), &cancel)
        .await;
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("command `/plan`: "), "{error}");
}

const WITNESS: &str = r#"
import * as fs from "node:fs";
export default function (pi: any) {
  pi.on("message_end", async () => { await new Promise((r) => setTimeout(r, 50)); });
  pi.on("tool_call", (event: any, ctx: any) => {
    const last = ctx.sessionManager.getLeafEntry().message;
    fs.appendFileSync("seen", `${last.role} ${last.content.at(-1).id} ${event.toolCallId}\n`);
  });
}
"#;

// P16: a hook that judges a call sees the message with the call, however slow other hooks are.
#[tokio::test]
async fn a_handler_of_tool_call_sees_the_message_that_asks_for_it() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, WITNESS).await;
    let script = "turns: [{tool_calls: [{id: c7, name: list_directory}]}, {text: done}]";
    stage
        .play_with(script, |config| AgentConfig {
            scripts: Some(Arc::clone(&loaded.host)),
            ..config
        })
        .await;
    let seen = std::fs::read_to_string(stage.path().join("seen")).unwrap();
    assert_eq!(seen, "assistant c7 c7\n");
}

const TALKS: &str = r#"
export default function (pi: any) {
  pi.on("input", (event: any) => event.source === "extension" && event.text === "quietly" ? { action: "handled" } : undefined);
  pi.on("turn_end", async (event: any) => {
    if (event.turnIndex > 0) return;
    for (const text of ["a SECRET", "quietly", "louder"]) await pi.sendUserMessage(text, { deliverAs: "followUp" });
  });
}
"#;

// A message that a script sends for the user is judged like the user's own messages.
#[tokio::test]
async fn messages_of_scripts_pass_the_gates_of_input() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|event: &tenterhook_engine::event::UserInput| {
            if event.text.contains("SECRET") {
                Effect::<tenterhook_engine::event::UserInput>::block("no secrets")
            } else {
                Effect::none()
            }
        });
    let loaded = Loaded::new(&stage, false, TALKS).await;
    let (agent, report) = stage
        .play_with("turns: [{text: one}, {text: two}]", |config| AgentConfig {
            scripts: Some(Arc::clone(&loaded.host)),
            ..config
        })
        .await;
    assert_eq!(report.response, "two");
    let said = agent.session().messages().into_iter();
    let said: Vec<String> = said
        .filter(|message| message.role == Role::User)
        .map(|message| message.content)
        .collect();
    assert_eq!(said, ["go", "louder"]);
    assert_eq!(
        stage.field("user_input", "source"),
        ["interactive", "extension", "extension", "extension"]
    );
}

#[tokio::test]
async fn scripts_choose_the_model_and_the_level_for_the_next_turn() {
    const CHOOSER: &str = r#"
export default function (pi: any) {
  pi.on("turn_start", async (event: any) => {
    if (event.turnIndex > 0) return;
    const done = [
      await pi.setModel({ provider: "scripted", id: "two" }),
      await pi.setModel("nine"),
      pi.getThinkingLevel(),
    ];
    await pi.setThinkingLevel("high");
    const refused = await pi.setThinkingLevel("much").then(() => false, () => true);
    pi.appendEntry("done", [...done, pi.getThinkingLevel(), refused]);
  });
}
"#;
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, CHOOSER).await;
    let two = "name: two\nturns: [{text: I am two}]";
    let two: Arc<dyn Provider> = Arc::new(Scripted::parse("play", two).unwrap());
    let script = "turns: [{tool_calls: [{name: list_directory, arguments: {path: .}}]}]";
    let mut agent = AgentConfig {
        models: Models::fixed([("scripted/two".to_owned(), two)]),
        scripts: Some(Arc::clone(&loaded.host)),
        ..stage.config(script)
    }
    .build(stage.engine.clone())
    .unwrap();
    let report = agent.prompt("go", &CancellationToken::new()).await;
    assert_eq!(report.response, "I am two");
    let kinds = agent.session().entries().iter();
    let kinds: Vec<&str> = kinds
        .map(|entry| entry.kind.as_str())
        .filter(|kind| *kind != "message")
        .collect();
    assert_eq!(kinds, ["model_change", "thinking_level_change", "custom"]);
    let done = agent.session().entries().iter();
    let done = done.filter(|entry| entry.kind == "custom");
    let done: Vec<&Value> = done
        .map(|entry| &entry.data.as_ref().unwrap()["data"])
        .collect();
    assert_eq!(done, [&json!([true, false, "off", "high", true])]);
}
