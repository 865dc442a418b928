//! Tools that an extension registers after it was loaded.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenterhook_agent::{AgentConfig, AgentRestrictions, CancellationToken, Permissions};
use tenterhook_engine::Effect;
use tenterhook_engine::event::{BeforeAgentStart, PreToolUse, ToolSelection};

use crate::extension::Loaded;
use crate::stage::{Stage, tool_texts};

/// Registers tools when the session starts, in a tool, and in an event.
const LATE: &str = r#"
import { appendFileSync } from "node:fs";
import { createBashTool } from "@mariozechner/pi-coding-agent";
export default function (pi: any) {
  const log = (text: string) => appendFileSync("log", `${text}\n`);
  const echo = (name: string) => pi.registerTool({
    name, description: `Echoes as ${name}`,
    parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    execute: async (_id: string, { text }: any) => ({ content: [{ type: "text", text: `${name}: ${text}` }] }),
  });
  pi.on("session_start", () => {
    echo("first");
    log(pi.getAllTools().map((tool: any) => tool.name).includes("first"));
    try {
      pi.registerTool({ name: "bad", description: "", parameters: { type: "thing" }, execute() {} });
    } catch (error: any) {
      log(error.message.split(":")[0]);
    }
  });
  pi.on("tool_result", (event: any) => {
    if (event.toolName !== "first") return;
    pi.setActiveTools(["first"]);
    echo("second");
    pi.registerTool({ ...createBashTool(process.cwd()), execute: async () => ({ content: [{ type: "text", text: "replaced" }] }) });
    log(pi.getActiveTools());
  });
}
"#;

fn log(stage: &Stage) -> String {
    std::fs::read_to_string(stage.path().join("log")).unwrap()
}

#[tokio::test]
async fn a_tool_that_is_registered_late_is_offered_with_the_next_request_and_guarded() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, LATE).await;
    stage.engine.on(|event: &PreToolUse| {
        let input = serde_json::Value::from(event.tool_input.clone()).to_string();
        if input.contains("forbidden") {
            Effect::<PreToolUse>::deny("a guard")
        } else {
            Effect::<PreToolUse>::none()
        }
    });
    let script = r"
turns:
  - tool_calls: [{name: first, arguments: {text: a}}]
  - tool_calls: [{name: second, arguments: {text: b}}]
  - tool_calls: [{name: second, arguments: {text: forbidden}}]
  - tool_calls: [{name: second, arguments: {}}]
  - tool_calls: [{name: shell, arguments: {cmd: forbidden}}]
  - tool_calls: [{name: shell, arguments: {cmd: ls}}]
  - tool_calls: [{name: bad, arguments: {}}]
  - text: done
";
    let (agent, _) = stage
        .play_with(script, |config| AgentConfig {
            toolbox: loaded.toolbox(),
            permissions: Permissions::new().yes(true),
            scripts: Some(Arc::clone(&loaded.host)),
            ..config
        })
        .await;
    let texts = tool_texts(&agent);
    assert_eq!(&texts[..2], ["first: a", "second: b"]);
    assert!(texts[2].contains("a guard"), "{texts:?}");
    assert!(
        texts[3].contains("\"text\" is a required property"),
        "{texts:?}"
    );
    assert!(texts[4].contains("a guard"), "{texts:?}");
    assert_eq!(texts[5], "replaced");
    assert!(texts[6].contains("Unknown tool `bad`"), "{texts:?}");
    let offered = stage.all::<ToolSelection>();
    assert!(offered[0].tools.contains(&"first".to_owned()));
    assert!(!offered[0].tools.contains(&"second".to_owned()));
    assert!(offered[1].tools.contains(&"second".to_owned()));
    let invalid = "tool `bad` has an invalid JSON Schema";
    assert_eq!(log(&stage), format!("true\n{invalid}\nfirst,second,bash\n"));
}

#[tokio::test]
async fn a_tool_of_an_extension_that_is_reloaded_is_removed() {
    let stage = Stage::empty();
    let once = LATE.replace(
        "echo(\"first\");",
        "if (!pi.seen) echo(\"first\"); pi.seen = true;",
    );
    let loaded = Loaded::new(&stage, false, &once).await;
    let config = AgentConfig {
        toolbox: loaded.toolbox(),
        permissions: Permissions::new().yes(true),
        scripts: Some(Arc::clone(&loaded.host)),
        ..stage.config("turns: [{text: one}, {text: two}, {text: three}]")
    };
    let mut agent = config.build(stage.engine.clone()).unwrap();
    let never = CancellationToken::new();
    agent.prompt("one", &never).await;
    agent.new_session(&never).await.unwrap();
    agent.prompt("two", &never).await;
    agent.reload(std::future::ready(())).await;
    agent.prompt("three", &never).await;
    let offered = stage.all::<ToolSelection>();
    let has = |nth: usize| offered[nth].tools.contains(&"first".to_owned());
    assert_eq!([has(0), has(1), has(2)], [true, true, false]);
}

#[tokio::test]
async fn a_tool_that_a_hook_has_disabled_stays_disabled_when_a_script_registers_it() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, LATE).await;
    stage.engine.on(|_: &BeforeAgentStart| {
        Effect::<BeforeAgentStart>::none().disable_tool("second".to_owned())
    });
    let script = r"
turns:
  - tool_calls: [{name: first, arguments: {text: a}}]
  - tool_calls: [{name: second, arguments: {text: b}}]
  - text: done
";
    let (agent, _) = stage
        .play_with(script, |config| AgentConfig {
            toolbox: loaded.toolbox(),
            permissions: Permissions::new().yes(true),
            scripts: Some(Arc::clone(&loaded.host)),
            ..config
        })
        .await;
    let offered = stage.all::<ToolSelection>();
    assert!(!offered[1].tools.contains(&"second".to_owned()));
    let texts = tool_texts(&agent);
    assert!(!texts[1].contains("second: b"), "{texts:?}");
}

#[tokio::test]
async fn a_read_only_agent_does_not_get_a_tool_that_is_only_called_transfer_task() {
    let stage = Stage::empty();
    let text = LATE.replace("echo(\"first\");", "echo(\"transfer_task\");");
    let loaded = Loaded::new(&stage, false, &text).await;
    let restrictions = AgentRestrictions {
        read_only: true,
        ..AgentRestrictions::default()
    };
    let script = r"
turns:
  - tool_calls: [{name: transfer_task, arguments: {text: a}}]
  - text: done
";
    let (agent, _) = stage
        .play_with(script, |config| AgentConfig {
            toolbox: loaded.toolbox(),
            permissions: Permissions::new().yes(true),
            scripts: Some(Arc::clone(&loaded.host)),
            restrictions: BTreeMap::from([("root".to_owned(), Arc::new(restrictions))]),
            ..config
        })
        .await;
    let texts = tool_texts(&agent);
    assert!(!texts[0].contains("transfer_task: a"), "{texts:?}");
}
