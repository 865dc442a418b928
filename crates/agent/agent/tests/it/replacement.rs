//! Extensions that replace a tool of the agent: the guards of the tool hold for the replacement.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use tenterhook_agent::frontend::Approval;
use tenterhook_agent::{
    AgentConfig, AgentRestrictions, FolderRestriction, Permissions, ProtectedFiles,
};
use tenterhook_engine::Effect;
use tenterhook_engine::event::{PreToolUse, ToolSelection};

use crate::extension::Loaded;
use crate::stage::{Stage, tool_texts};

/// Replaces tools of pi with the stand-ins, and records what they receive.
const REPLACES: &str = r#"
import { appendFileSync } from "node:fs";
import { createBashTool, createEditTool, createFindTool, createReadTool, createWriteTool } from "@mariozechner/pi-coding-agent";
export default function (pi: any) {
  const cwd = process.cwd();
  const made = [createBashTool, createEditTool, createFindTool, createReadTool, createWriteTool];
  for (const tool of made.map((make) => make(cwd))) {
    pi.registerTool({
      ...tool, description: `Replaced ${tool.name}`,
      async execute(id: string, params: any, signal: any, onUpdate: any) {
        appendFileSync("ran", `${tool.name} ${JSON.stringify(params)}\n`);
        return tool.execute(id, params, signal, onUpdate);
      },
    });
  }
  pi.on("tool_call", (event: any) => {
    appendFileSync("ran", `hook ${event.toolName} ${JSON.stringify(event.input)}\n`);
    if (event.input.command?.includes("forbidden")) return { block: true, reason: "a hook of pi" };
  });
}
"#;

fn ran(stage: &Stage) -> Vec<String> {
    let text = fs::read_to_string(stage.path().join("ran")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn yes() -> Permissions {
    Permissions::new().yes(true)
}

#[tokio::test]
async fn a_guard_of_the_shell_holds_when_an_extension_replaces_it() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, REPLACES).await;
    stage.engine.on(|event: &PreToolUse| {
        let line = event.tool_input.get("cmd").and_then(|cmd| cmd.as_str());
        if event.tool_name == "shell" && line.is_some_and(|line| line.contains("rm")) {
            Effect::<PreToolUse>::deny("no rm")
        } else {
            Effect::<PreToolUse>::none()
        }
    });
    let script = r"
turns:
  - tool_calls: [{name: shell, arguments: {cmd: rm x}}]
  - tool_calls: [{name: shell, arguments: {cmd: echo forbidden}}]
  - tool_calls: [{name: bash, arguments: {command: rm x}}]
  - tool_calls: [{name: shell, arguments: {cmd: rm x, command: ls}}]
  - tool_calls: [{name: shell, arguments: {cmd: ls, cwd: /}}]
  - tool_calls: [{name: shell, arguments: {cmd: echo hello, timeout: 9}}]
  - text: done
";
    let (agent, _) = stage
        .play_with(script, |config| AgentConfig {
            toolbox: loaded.toolbox(),
            permissions: yes(),
            ..config
        })
        .await;
    let texts = tool_texts(&agent);
    assert!(texts[0].contains("no rm"), "{texts:?}");
    assert!(texts[1].contains("a hook of pi"), "{texts:?}");
    assert!(texts[2].contains("Unknown tool `bash`"), "{texts:?}");
    assert!(
        texts[3].contains("unknown field `command`, expected one of `cmd`, `timeout`"),
        "{texts:?}"
    );
    assert!(texts[4].contains("unknown field `cwd`"), "{texts:?}");
    assert_eq!(texts[5], "hello\n");
    let offered = stage.all::<ToolSelection>().remove(0).tools;
    let expected = [
        "list_directory",
        "search",
        "shell",
        "edit_file",
        "find_files",
        "read_file",
        "write_file",
    ];
    assert_eq!(offered, expected);
    assert_eq!(
        ran(&stage),
        [
            r#"hook bash {"command":"rm x"}"#,
            r#"hook bash {"command":"echo forbidden"}"#,
            r#"hook bash {"command":"echo hello","timeout":9}"#,
            r#"bash {"command":"echo hello","timeout":9}"#,
        ]
    );
}

#[tokio::test]
async fn a_replaced_tool_asks_when_the_tool_of_the_agent_asks() {
    let stage = Stage::attended([Approval::AllowOnce, Approval::Deny { reason: None }]);
    fs::write(stage.path().join("notes"), "one two").unwrap();
    let loaded = Loaded::new(&stage, false, REPLACES).await;
    let script = r"
turns:
  - tool_calls: [{name: read_file, arguments: {path: notes}}]
  - tool_calls: [{name: edit_file, arguments: {path: notes, old_text: two, new_text: '2'}}]
  - tool_calls: [{name: write_file, arguments: {path: secret/rules, content: x}}]
  - text: done
";
    let protected = ProtectedFiles::new().add(stage.path().join("secret"), "the rules");
    let (agent, _) = stage
        .play_with(script, |config| AgentConfig {
            toolbox: loaded.toolbox(),
            protected_files: Arc::new(protected),
            ..config
        })
        .await;
    let texts = tool_texts(&agent);
    assert_eq!(texts[0], "one two");
    assert_eq!(texts[1], "Successfully replaced text in notes.");
    assert!(texts[2].contains("rejected by the user"), "{texts:?}");
    let asked = stage.human.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked[0].starts_with("edit_file "), "{asked:?}");
    assert!(
        asked[1].contains("it changes the rules, which only the user may change"),
        "{asked:?}"
    );
    assert_eq!(
        fs::read_to_string(stage.path().join("notes")).unwrap(),
        "one 2"
    );
    assert!(!stage.path().join("secret").exists());
    let ran = ran(&stage);
    assert!(
        ran.contains(&r#"edit {"newText":"2","oldText":"two","path":"notes"}"#.to_owned())
            || ran.contains(&r#"edit {"path":"notes","oldText":"two","newText":"2"}"#.to_owned()),
        "{ran:?}"
    );
}

#[tokio::test]
async fn a_replaced_tool_does_not_lift_the_restrictions_of_an_agent() {
    let stage = Stage::empty();
    fs::write(stage.path().join("notes"), "one").unwrap();
    let loaded = Loaded::new(&stage, false, REPLACES).await;
    let script = r"
turns:
  - tool_calls: [{name: shell, arguments: {cmd: rm notes}}]
  - tool_calls: [{name: shell, arguments: {cmd: ls}}]
  - tool_calls: [{name: read_file, arguments: {path: notes}}]
  - text: done
";
    let restrictions = AgentRestrictions {
        commands: Some(["ls"].into_iter().collect()),
        folders: vec![FolderRestriction {
            tools: vec!["read_file".to_owned()],
            allow: vec!["elsewhere".into()],
            deny: Vec::new(),
        }],
        ..AgentRestrictions::default()
    };
    let (agent, _) = stage
        .play_with(script, |config| AgentConfig {
            toolbox: loaded.toolbox(),
            permissions: yes(),
            restrictions: BTreeMap::from([("root".to_owned(), Arc::new(restrictions))]),
            ..config
        })
        .await;
    let texts = tool_texts(&agent);
    assert!(
        texts[0].contains("`rm notes` is not one of the commands"),
        "{texts:?}"
    );
    assert!(texts[1].contains("notes"), "{texts:?}");
    assert!(
        texts[2].contains("cannot be limited to the folders"),
        "{texts:?}"
    );
}

/// Registers tools under the agent's own names. They only record what they receive.
const OWN_NAMES: &str = r#"
import { appendFileSync } from "node:fs";
export default function (pi: any) {
  const parameters = {
    type: "object",
    properties: { cmd: {}, script: {}, path: {}, content: {} },
  };
  for (const name of ["shell", "read_file", "write_file"]) {
    pi.registerTool({
      name, description: name, parameters,
      async execute(_id: string, params: any) {
        appendFileSync("ran", `${name} ${JSON.stringify(params)}\n`);
        return { content: [{ type: "text", text: "done" }], details: {} };
      },
    });
  }
}
"#;

#[tokio::test]
async fn a_tool_with_the_agent_s_own_name_escapes_no_guard_of_that_tool() {
    let stage = Stage::empty();
    let loaded = Loaded::new(&stage, false, OWN_NAMES).await;
    let script = r"
turns:
  - tool_calls: [{name: write_file, arguments: {path: secret, content: x}}]
  - tool_calls: [{name: read_file, arguments: {path: notes}}]
  - tool_calls: [{name: shell, arguments: {cmd: ls, script: sudo reboot}}]
  - tool_calls: [{name: shell, arguments: {cmd: ls}}]
  - text: done
";
    let protected = ProtectedFiles::new().add(stage.path().join("secret"), "the rules");
    let restrictions = AgentRestrictions {
        folders: vec![FolderRestriction {
            tools: vec!["read_file".to_owned()],
            allow: vec!["elsewhere".into()],
            deny: Vec::new(),
        }],
        ..AgentRestrictions::default()
    };
    let (agent, _) = stage
        .play_with(script, |config| AgentConfig {
            toolbox: loaded.toolbox(),
            permissions: yes(),
            protected_files: Arc::new(protected),
            restrictions: BTreeMap::from([("root".to_owned(), Arc::new(restrictions))]),
            ..config
        })
        .await;
    assert_eq!(
        ran(&stage),
        [r#"shell {"cmd":"ls"}"#],
        "{:?}",
        tool_texts(&agent)
    );
}
