//! Extensions of pi and the user: what they display and ask, and what they send while the agent is idle.

use std::fs;

use serde_json::{Value, json};

use crate::client::Client;
use crate::stage::Test;
use crate::terminal::{Sitting, run};

/// A guard that uses the whole user interface before it reads its rules.
const GUARD: &str = r#"
export default function (pi) {
  let rules = [];
  pi.on("session_start", async (_event, { ui, mode, isProjectTrusted }) => {
    const { theme } = ui;
    const known = ui.getAllThemes().map(({ name }) => name);
    const selected = [ui.setTheme(known[0]), ui.setTheme(ui.getTheme("light")), ui.setTheme("neon")];
    if (selected.map(({ success }) => success).join() !== "true,true,false") throw new Error("themes");
    ui.setStatus("guard", theme.bg("selectedBg", theme.fg("accent", theme.bold("on"))));
    ui.setWidget("rules", ["one rule"]);
    ui.setWidget("drawn", (_tui, theme) => ({ render: (width) => [theme.italic(`${width} columns`)] }));
    ui.setWidget("undrawn", () => ({}), { placement: "belowEditor" });
    ui.setTitle("guarded");
    ui.setWorkingMessage("judging");
    ui.setEditorText("hello");
    ui.pasteToEditor("!");
    ui.notify("ready", "warning");
    ui.onTerminalInput(() => {})();
    for (const unseen of ["setFooter", "setHeader", "setEditorComponent", "addAutocompleteProvider",
      "setWorkingVisible", "setWorkingIndicator", "setHiddenThinkingLabel", "setToolsExpanded"]) ui[unseen](() => {});
    const read = [ui.getEditorComponent(), ui.getToolsExpanded(), ui.getEditorText()];
    if (read.join() !== ",false,hello!") throw new Error(`read ${read}`);
    if (mode !== "rpc" || typeof isProjectTrusted !== "function") throw new Error("context");
    rules = [/rm -rf/];
  });
  pi.registerMessageRenderer("note", () => undefined);
  pi.registerEntryRenderer("note", () => undefined);
  pi.on("tool_call", (event) => {
    if (rules.some((rule) => rule.test(event.input.command))) return { block: true, reason: "a rule" };
  });
}
"#;

fn with(extension: &str) -> Test {
    run()
        .file("extension.mjs", extension)
        .args(["-e", "extension.mjs"])
}

fn is_ui(message: &Value) -> bool {
    message["method"] == "ui"
}

#[test]
fn a_guard_that_uses_the_whole_interface_guards_and_a_program_sees_what_it_displays() {
    let mut client = Client::start(with(GUARD).args(["--yes"]).script(
        "turns: [{tool_calls: [{name: shell, arguments: {cmd: rm -rf victim}}]}, {text: done}]",
    ));
    let mut shown = || client.until(is_ui)["params"].clone();
    for expected in [
        json!({"kind": "status", "key": "guard", "text": "on"}),
        json!({"kind": "widget", "key": "rules", "lines": ["one rule"], "placement": "above"}),
        json!({"kind": "widget", "key": "drawn", "lines": ["80 columns"], "placement": "above"}),
        json!({"kind": "widget", "key": "undrawn", "lines": null, "placement": "below"}),
        json!({"kind": "title", "text": "guarded"}),
        json!({"kind": "working_message", "text": "judging"}),
        json!({"kind": "editor_text", "text": "hello", "replaces": true}),
        json!({"kind": "editor_text", "text": "!", "replaces": false}),
        json!({"kind": "notice", "level": "warning", "message": "ready"}),
    ] {
        assert_eq!(shown(), expected);
    }
    client.ask(1, "prompt", json!({"text": "go"}));
    let ended = client.event("tool_execution_end");
    assert!(ended["result"].to_string().contains("a rule"), "{ended}");
    client.answer_to(1);
    assert_eq!(client.end().status, 0);
}

/// An extension with its own editor.
const EDITS: &str = r#"
export default function (pi) {
  pi.on("session_start", (_event, { ui }) => {
    ui.setEditorComponent(undefined);
    for (let time = 0; time < 2; time += 1) {
      ui.setEditorComponent(() => ({ render: () => [] }));
      ui.addAutocompleteProvider((current) => current);
    }
    ui.notify("ready", "info");
  });
}
"#;

#[test]
fn an_editor_of_an_extension_is_reported_once_as_not_supported() {
    let mut client = Client::start(with(EDITS).script("turns: []"));
    let mut shown = || client.until(is_ui)["params"].clone();
    for (level, message) in [
        (
            "warning",
            "`ctx.ui.setEditorComponent` is not supported here: prompts are written in the line editor",
        ),
        (
            "warning",
            "`ctx.ui.addAutocompleteProvider` is not supported here: the line editor completes commands and paths",
        ),
        ("info", "ready"),
    ] {
        let expected = json!({"kind": "notice", "level": level, "message": message});
        assert_eq!(shown(), expected);
    }
    assert_eq!(client.end().status, 0);
}

/// A tool that needs to draw, and commands with dialogs.
const ASKS: &str = r#"
import * as fs from "node:fs";
export default function (pi) {
  pi.registerTool({
    name: "choose", description: "Lets the user choose", parameters: { type: "object" },
    execute: async (_id, _params, _signal, _update, ctx) => {
      const choice = await ctx.ui.custom(() => ({ render: () => [] }));
      return { content: [{ type: "text", text: choice ?? "User cancelled" }] };
    },
  });
  pi.registerCommand("timed", { handler: async (_args, ctx) => {
    fs.appendFileSync("said", `${await ctx.ui.confirm("Sure?", "really", { timeout: 20 })}\n`);
    fs.appendFileSync("said", `${await ctx.ui.select("Which?", ["a"], { signal: AbortSignal.abort() })}\n`);
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 20);
    fs.appendFileSync("said", `${await ctx.ui.input("Name?", "none", { signal: controller.signal })}\n`);
    fs.appendFileSync("said", `${JSON.stringify(await ctx.ui.editor("Text?", "one\ntwo"))}\n`);
  } });
}
"#;

#[test]
fn a_tool_that_cannot_draw_fails_instead_of_reporting_a_cancellation() {
    let mut client = Client::start(
        with(ASKS)
            .args(["--yes"])
            .script("turns: [{tool_calls: [{name: choose}]}, {text: done}]"),
    );
    client.ask(1, "prompt", json!({"text": "go"}));
    let ended = client.event("tool_execution_end");
    let text = ended["result"].to_string();
    assert!(
        text.contains("`ctx.ui.custom` is not supported here"),
        "{text}"
    );
    client.answer_to(1);
    assert_eq!(client.end().status, 0);
}

#[test]
fn a_question_ends_for_the_program_when_its_time_is_up_or_its_signal_is_aborted() {
    let mut client = Client::start(with(ASKS).script("turns: []"));
    client.ask(1, "prompt", json!({"text": "/timed"}));
    for title in ["Sure?", "Name?"] {
        let asked = client.until(|it| it["method"] == "question");
        assert_eq!(asked["params"]["title"], title);
        let cancelled = client.until(|it| it["method"] == "cancel");
        assert_eq!(cancelled["params"]["id"], asked["id"]);
    }
    let asked = client.until(|it| it["method"] == "question");
    assert_eq!(
        asked["params"],
        json!({"kind": "editor", "title": "Text?", "text": "one\ntwo"})
    );
    let answer = json!({"answer": "one\n2"});
    client.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
    client.answer_to(1);
    let ran = client.end();
    assert_eq!(
        ran.file("said"),
        "false\nundefined\nundefined\n\"one\\n2\"\n"
    );
}

#[test]
fn a_question_at_a_terminal_ends_when_its_time_is_up_and_a_text_is_edited() {
    for terminal in ["xterm-256color", "dumb"] {
        let sitting = Sitting::start(with(ASKS).variable("TERM", terminal).script("turns: []"));
        sitting.until_prompt("");
        sitting.press("/timed\r");
        sitting.until(|screen| screen.matches("The question was withdrawn.").count() == 2);
        sitting.until(|screen| screen.contains("Text?"));
        sitting.until(|screen| {
            let last = screen.lines().last().unwrap_or_default();
            last.ends_with("text:") || last.ends_with("two")
        });
        // Wait until keys count as the answer.
        let question = if terminal == "dumb" { "text:" } else { "two" };
        sitting.answer(question, if terminal == "dumb" { "\r" } else { "!\r" });
        sitting.until_prompt("");
        let said = fs::read_to_string(sitting.folder.path().join("work/said")).unwrap();
        let text = if terminal == "dumb" {
            "one\\ntwo"
        } else {
            "one\\ntwo!"
        };
        assert_eq!(said, format!("false\nundefined\nundefined\n\"{text}\"\n"));
        sitting.press("\u{4}");
        assert_eq!(sitting.end().1, 0, "{terminal}");
    }
}

/// An extension that displays things and prompts the agent when a file appears.
const WATCHES: &str = r#"
import * as fs from "node:fs";
export default function (pi) {
  pi.on("session_start", (_event, ctx) => {
    ctx.ui.setTitle("watched \x1b]0;evil\x07");
    const timer = setInterval(() => {
      if (!fs.existsSync("go")) return;
      clearInterval(timer);
      fs.writeFileSync("text", ctx.ui.getEditorText());
      pi.sendMessage({ customType: "file", content: "from the watcher", display: true }, { triggerTurn: true });
    }, 5);
  });
  pi.on("turn_start", (_event, ctx) => ctx.ui.setStatus("watch", "\x1b[31mseen\x1b[0m\x1b[2J"));
  pi.registerCommand("draft", { handler: async (_args, ctx) => {
    ctx.ui.setEditorText("a draft");
    ctx.ui.setWidget("list", ["first", "second"]);
  } });
}
"#;

#[test]
fn what_an_extension_sends_while_the_user_types_starts_a_run_and_keeps_the_line() {
    let sitting = Sitting::start(with(WATCHES).script("turns: [{text: I see.}, {text: Yes.}]"));
    sitting.until_prompt("");
    sitting.press("half a li");
    sitting.until_prompt("half a li");
    let work = sitting.folder.path().join("work");
    fs::write(work.join("go"), "").unwrap();
    let screen = sitting.until(|screen| screen.ends_with("seen\n> half a li"));
    assert!(
        screen.contains("[file] from the watcher\nI see.\n"),
        "{screen}"
    );
    assert_eq!(fs::read_to_string(work.join("text")).unwrap(), "half a li");
    sitting.press("ne\r");
    sitting.until(|screen| screen.contains("> half a line\nYes.\n"));
    sitting.until_prompt("");
    sitting.press("/draft\r");
    sitting.until(|screen| screen.ends_with("first\nsecond\nseen\n> a draft"));
    sitting.press("\u{3}");
    sitting.until_prompt("");
    sitting.press("\u{4}");
    assert_eq!(sitting.end().1, 0);
}

#[test]
fn what_an_extension_sends_while_the_agent_is_idle_starts_a_run_for_a_program() {
    let mut client = Client::start(with(WATCHES).script("turns: [{text: I see.}, {text: Yes.}]"));
    client.event("session_start");
    fs::write(client.running.path("work/go"), "").unwrap();
    let submitted = client.event("user_prompt_submit");
    assert_eq!(submitted["prompt"], "from the watcher");
    client.event("agent_settled");
    client.ask(1, "prompt", json!({"text": "go"}));
    let runs = client.answer_to(1)["result"]["runs"].clone();
    assert_eq!(runs[0]["response"], "Yes.");
    assert_eq!(client.end().status, 0);
}

#[test]
fn what_an_extension_sends_at_the_end_of_a_run_is_done_before_the_program_ends() {
    let ran = with(
        r#"
export default function (pi) {
  let ends = 0;
  pi.on("agent_end", async () => {
    await new Promise((wake) => setTimeout(wake, 20));
    ends += 1;
    if (ends === 1) pi.sendUserMessage("and again");
    const options = { triggerTurn: true, deliverAs: "followUp" };
    if (ends === 2) pi.sendMessage({ customType: "x", content: "once more", display: true }, options);
  });
}
"#,
    )
    .args(["go"])
    .script("turns: [{text: one}, {text: two}, {text: three}]")
    .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(
        ran.stdout, "one\n> and again\ntwo\n[x] once more\nthree\n",
        "{}",
        ran.stderr
    );
}

/// An extension with shortcuts.
const SHORTCUTS: &str = r#"
export default function (pi) {
  const handler = ({ ui }) => ui.notify(`pressed at ${ui.getEditorText()}`);
  pi.registerShortcut("ctrl+x", { description: "Says it", handler });
  pi.registerShortcut("ctrl+shift+.", { handler: (ctx) => ctx.ui.notify("typed") });
}
"#;

#[test]
fn a_shortcut_runs_while_the_user_types_and_is_a_command() {
    let sitting = Sitting::start(with(SHORTCUTS).script("turns: []"));
    sitting.until_prompt("");
    sitting.press("half");
    sitting.until_prompt("half");
    sitting.press("\u{18}");
    sitting.until(|screen| screen.ends_with("note: pressed at half\n> half"));
    sitting.press("\u{3}");
    sitting.until_prompt("");
    sitting.press("/key:ctrl-shift-x2e\r");
    sitting.until(|screen| screen.ends_with("note: typed\n>"));
    sitting.press("/help\r");
    sitting.until(|screen| {
        screen.contains("/key:ctrl-x") && screen.contains("Shortcut ctrl+x: Says it")
    });
    sitting.until_prompt("");
    sitting.press("\u{4}");
    assert_eq!(sitting.end().1, 0);
}

/// A guard that fails before it has its rules.
const BROKEN: &str = r#"
export default function (pi) {
  let rules;
  pi.on("session_start", () => { throw new Error("no rules"); });
  pi.on("tool_call", (event) => (rules ?? []).includes(event.input.command) ? { block: true } : undefined);
}
"#;

const TOUCH: &str =
    "turns: [{tool_calls: [{name: shell, arguments: {cmd: touch made}}]}, {text: done}]";

#[test]
fn a_guard_that_fails_when_the_session_starts_is_reported_and_denies_if_strict() {
    let warning = "so the other hooks of its script may not work: extension.mjs:4: Error: no rules";
    let ran = with(BROKEN).args(["go", "--yes"]).script(TOUCH).run();
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert!(ran.path("work/made").exists());
    let ran = with(BROKEN)
        .args(["go", "--yes", "--strict"])
        .script(TOUCH)
        .run();
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    let denial = "it failed when the session started: extension.mjs:4: Error: no rules";
    assert!(ran.stdout.contains(denial), "{}", ran.stdout);
    assert!(!ran.path("work/made").exists());
    let ran = with(BROKEN).stdin("/hooks\n").script(TOUCH).run();
    assert!(ran.stdout.contains("tool_call (broken)"), "{}", ran.stdout);
}

#[test]
fn an_extension_without_hooks_is_listed_with_what_it_adds() {
    let extension = r#"
export default function (pi) {
  pi.registerTool({ name: "hello", description: "", parameters: { type: "object" }, execute: () => "hello" });
  pi.registerCommand("greet", { handler() {} });
  pi.registerFlag("plan", { type: "boolean" });
}
"#;
    let list = |args: &[&str]| {
        let test = Test::new().file("extension.mjs", extension);
        let test = test.args(["list", "-e", "extension.mjs"]);
        test.args(args.iter().copied()).run()
    };
    let ran = list(&[]);
    let expected =
        "No hooks.\n\nextensions\n  extension.mjs  tools: hello; commands: /greet; flags: plan\n";
    assert_eq!(
        (ran.stdout.as_str(), ran.status),
        (expected, 0),
        "{}",
        ran.stderr
    );
    let added = json!([{
        "name": "extension.mjs", "tools": ["hello"], "commands": ["greet"], "flags": ["plan"], "providers": [],
    }]);
    assert_eq!(list(&["--json"]).json()["extensions"], added);
}
