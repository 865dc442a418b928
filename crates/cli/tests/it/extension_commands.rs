//! Commands of extensions that the user runs while the agent works.

use std::fs;

use serde_json::{Value, json};

use crate::client::Client;
use crate::stage::Test;
use crate::terminal::{Sitting, run};

/// An extension whose commands end a tool's work, fail, or wait for the agent.
const COMMANDS: &str = r#"
import * as fs from "node:fs";
export default function (pi) {
  pi.on("input", (event) => fs.appendFileSync("inputs", `${event.text}\n`));
  pi.registerCommand("release", { handler: async (args, ctx) => fs.writeFileSync("go", `${args} ${ctx.isIdle()}`) });
  pi.registerCommand("turn", { handler: async (args) => { pi.sendUserMessage(args, { deliverAs: "steer" }); } });
  pi.registerCommand("fail", { handler: async () => { throw new Error("no luck"); } });
  pi.registerCommand("anew", { handler: async (_args, ctx) => {
    fs.writeFileSync("waits", "");
    await ctx.waitForIdle();
    fs.writeFileSync("made", JSON.stringify(await ctx.newSession()));
  } });
}
"#;

/// The agent works until the file `go` exists.
const WORKS: &str = r#"turns:
  - tool_calls: [{name: shell, arguments: {cmd: "until test -e go; do sleep 0.01; done"}}]
  - text: one
  - text: two
"#;

fn working() -> Test {
    run()
        .file("extension.mjs", COMMANDS)
        .args(["-e", "extension.mjs", "--yes"])
        .script(WORKS)
}

/// Returns the answers to two requests, which may come in any order.
fn answers(client: &mut Client, ids: [u64; 2]) -> [Value; 2] {
    let is_answer = |it: &Value| it.get("method").is_none();
    let is_one = |it: &Value| ids.iter().any(|id| it["id"] == *id);
    let mut both = [(); 2].map(|()| client.until(|it| is_answer(it) && is_one(it)));
    both.sort_by_key(|it| ids.iter().position(|id| it["id"] == *id));
    both
}

// P31
#[test]
fn a_program_runs_commands_of_extensions_while_the_agent_works() {
    let mut client = Client::start(working());
    client.ask(1, "prompt", json!({"text": "go"}));
    client.event("tool_execution_start");
    client.ask(2, "prompt", json!({"text": "/fail"}));
    let failed = client.answer_to(2)["error"]["message"].to_string();
    assert!(
        failed.contains("command `/fail`") && failed.contains("no luck"),
        "{failed}"
    );
    for method in ["steer", "follow_up"] {
        client.ask(3, method, json!({"text": "/release"}));
        let refused = client.answer_to(3)["error"].clone();
        assert_eq!(refused["code"], -32602);
        assert_eq!(
            refused["message"],
            "`/release` is a command of an extension, so it cannot wait; `prompt` runs it at once"
        );
    }
    client.ask(4, "prompt", json!({"text": "/turn left"}));
    assert_eq!(client.answer_to(4)["result"], json!({"runs": []}));
    client.ask(5, "prompt", json!({"text": "/release it"}));
    let [released, run] = answers(&mut client, [5, 1]);
    assert_eq!(released["result"], json!({"runs": []}));
    assert_eq!(run["result"]["runs"][0]["response"], "one");
    // What a command sends reaches the model with the next request.
    client.ask(6, "get_messages", json!({}));
    let messages = client.answer_to(6)["result"]["messages"].clone();
    let texts: Vec<_> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["content"])
        .collect();
    assert_eq!(
        [texts[0], texts[3], texts[4]],
        ["go", "left", "one"],
        "{messages}"
    );
    let ran = client.end();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.file("go"), "it false");
    // A command of an extension is not input.
    assert_eq!(ran.file("inputs"), "go\nleft\n");
}

#[test]
fn a_command_that_waits_for_the_agent_leads_the_session_afterwards() {
    let mut client = Client::start(working());
    client.ask(1, "get_state", json!({}));
    let session = client.answer_to(1)["result"]["session_id"].clone();
    client.ask(2, "prompt", json!({"text": "go"}));
    client.event("tool_execution_start");
    client.ask(3, "prompt", json!({"text": "/anew"}));
    let work = client.running.work();
    crate::stage::eventually(|| work.join("waits").exists().then_some(()));
    fs::write(work.join("go"), "").unwrap();
    let [run, command] = answers(&mut client, [2, 3]);
    assert_eq!(run["result"]["runs"][0]["response"], "one");
    assert_eq!(command["result"], json!({"runs": []}));
    client.ask(4, "get_state", json!({}));
    assert_ne!(client.answer_to(4)["result"]["session_id"], session);
    let ran = client.end();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.file("made"), r#"{"cancelled":false}"#);
}

#[test]
fn a_command_that_is_typed_while_the_agent_works_runs_at_once_and_other_lines_wait() {
    for terminal in ["xterm-256color", "dumb"] {
        let sitting = Sitting::start(working().variable("TERM", terminal));
        sitting.until_prompt("");
        sitting.press("go\r");
        sitting.until(|screen| screen.contains("until test -e go"));
        sitting.press("and then\r");
        sitting.press("/release it\r");
        let screen = sitting.until(|screen| screen.contains("two"));
        let places = ["\n> /release it\n", "\none\n", "\n> and then\n", "\ntwo"].map(|text| {
            let place = screen.find(text);
            place.unwrap_or_else(|| panic!("`{text}` is missing on {terminal}:\n{screen}"))
        });
        assert!(places.is_sorted(), "{terminal}: {screen}");
        sitting.until_prompt("");
        sitting.press("\u{4}");
        let (_, status, folder) = sitting.end();
        assert_eq!(status, 0);
        let read = |name: &str| fs::read_to_string(folder.path().join("work").join(name)).unwrap();
        assert_eq!(read("go"), "it false");
        assert_eq!(read("inputs"), "go\nand then\n");
    }
}

#[test]
fn an_interrupt_drops_the_lines_that_were_typed_while_the_agent_worked() {
    let sitting = Sitting::start(working());
    sitting.until_prompt("");
    sitting.press("go\r");
    sitting.until(|screen| screen.contains("until test -e go"));
    sitting.press("and then\r/fail\r");
    sitting.until(|screen| screen.contains("no luck"));
    sitting.press("\u{3}");
    sitting.until(|screen| screen.contains("it was interrupted"));
    sitting.until_prompt("");
    sitting.press("\u{4}");
    let (screen, _, folder) = sitting.end();
    assert!(!screen.contains("> and then"), "{screen}");
    let inputs = fs::read_to_string(folder.path().join("work/inputs")).unwrap();
    assert_eq!(inputs, "go\n");
}
