//! Extensions of pi that draw their own components at a terminal.

use std::fs;
use std::process::Command;

use crate::client::Client;
use crate::stage::{Test, eventually};
use crate::terminal::{Sitting, run};

fn with(extension: &str) -> Test {
    run()
        .file("extension.mjs", extension)
        .args(["-e", "extension.mjs"])
}

/// Ends a session at its prompt.
fn leave(sitting: Sitting) {
    leave_with(sitting, 0);
}

/// Ends a session in which something failed.
fn leave_with(sitting: Sitting, status: u32) {
    sitting.press("\u{4}");
    assert_eq!(sitting.end().1, status);
}

/// A tool that lets the user choose, with pi's components.
const CHOOSES: &str = r#"
import { Container, Input, SelectList, Text, matchesKey } from "@mariozechner/pi-tui";
import { DynamicBorder } from "@mariozechner/pi-coding-agent";
export default function (pi) {
  pi.registerTool({
    name: "choose", description: "Lets the user choose", parameters: { type: "object" },
    execute: async (_id, _params, _signal, _update, ctx) => {
      if (ctx.hasUI && ctx.mode !== "tui") return { content: [{ type: "text", text: `drawn in ${ctx.mode}` }] };
      const chosen = await ctx.ui.custom((tui, theme, _keys, done) => {
        const items = ["tea", "コーヒー"].map((value) => ({ value, label: value }));
        const list = new SelectList(items, 5, { selectedText: (text) => theme.fg("accent", text) });
        const input = new Input();
        list.onSelect = ({ value }) => done(`${value} ${input.getValue()}`);
        const box = new Container();
        for (const part of [new DynamicBorder(), new Text(theme.bold("Drink?"), 0, 0), list, input]) box.addChild(part);
        return {
          render: (width) => box.render(width),
          invalidate: () => box.invalidate(),
          handleInput(data) {
            const isOfList = ["up", "down", "enter"].some((key) => matchesKey(data, key));
            (isOfList ? list : input).handleInput(data);
            tui.requestRender();
          },
        };
      });
      return { content: [{ type: "text", text: `chosen: ${chosen}` }] };
    },
  });
}
"#;

const CALL: &str = "turns: [{tool_calls: [{name: choose}]}, {text: Enjoy it.}]";

#[test]
fn a_component_is_drawn_below_the_output_and_its_value_reaches_the_tool() {
    let sitting = Sitting::start(with(CHOOSES).args(["--yes"]).script(CALL));
    sitting.until_prompt("");
    sitting.press("thirsty\r");
    let border = "─".repeat(80);
    let drawn = sitting.until_asked("\n  コーヒー\n>");
    assert!(
        drawn.contains(&format!("● choose\n{border}\nDrink?\n→ tea\n")),
        "{drawn}"
    );
    sitting.press("\u{1b}[B");
    sitting.until(|screen| screen.ends_with("  tea\n→ コーヒー\n>"));
    sitting.press("hot日x\u{7f}!");
    sitting.until(|screen| screen.ends_with("> hot日!"));
    sitting.press("\u{1b}[D\u{1b}[Dvery \r");
    let screen = sitting.until(|screen| screen.ends_with("Enjoy it.\n>"));
    assert!(
        screen.contains("● choose\n    chosen: コーヒー hotvery 日!\nEnjoy it."),
        "{screen}"
    );
    assert!(!screen.contains("Drink?"), "{screen}");
    leave(sitting);
}

#[test]
fn a_key_that_was_pressed_before_the_drawing_does_not_reach_it() {
    let busy = "hooks: [{event: pre_tool_use, command: touch busy; until test -e go; do sleep 0.01; done}]";
    let sitting = Sitting::start(with(CHOOSES).args(["--yes"]).script(CALL).hooks(busy));
    sitting.until_prompt("");
    sitting.press("thirsty\r");
    let work = sitting.folder.path().join("work");
    eventually(|| work.join("busy").exists().then_some(()));
    sitting.press("early\r");
    fs::write(work.join("go"), "").unwrap();
    sitting.until_asked("\n  コーヒー\n>");
    sitting.press("\r");
    sitting.until(|screen| screen.contains("chosen: tea \n") || screen.contains("chosen: tea\n"));
    sitting.until_prompt("early");
    sitting.press("\u{3}");
    sitting.until_prompt("");
    leave(sitting);
}

#[test]
fn ctrl_c_closes_a_drawing_and_interrupts_the_run() {
    let sitting = Sitting::start(with(CHOOSES).args(["--yes"]).script(CALL));
    sitting.until_prompt("");
    sitting.press("thirsty\r");
    sitting.until_asked("\n  コーヒー\n>");
    sitting.press("\u{3}");
    let screen = sitting.until(|screen| {
        screen.contains("The run ended: it was interrupted") && screen.ends_with('>')
    });
    assert!(!screen.contains("Drink?"), "{screen}");
    leave_with(sitting, 130);
}

/// Commands that draw badly.
const DRAWS: &str = r#"
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { BorderedLoader } from "@mariozechner/pi-coding-agent";
export default function (pi) {
  const command = (name, factory, options) => pi.registerCommand(name, { handler: async (_args, ctx) => {
    try {
      ctx.ui.notify(`got ${await ctx.ui.custom(factory(ctx), options)}`);
    } catch (error) {
      ctx.ui.notify(`failed: ${error.message}`);
    }
  } });
  const quits = (done) => (data) => { if (data === "q") done("q"); };
  command("bomb", () => (tui, _theme, _keys, done) => {
    let frame = 0;
    const timer = setInterval(() => { for (let at = 0; at < 1000; at += 1) tui.requestRender(); }, 0);
    return {
      render: () => [`bomb ${frame += 1}`, ...Array(5000).fill("x".repeat(10_000))],
      handleInput: quits(done), dispose: () => clearInterval(timer),
    };
  });
  command("flood", () => (tui, _theme, _keys, done) => {
    for (let at = 0; at < 50; at += 1) process.stdout.write(`line ${at}\n`);
    return { render: () => ["[flood]"], handleInput: quits(done) };
  });
  command("evil", () => (_tui, _theme, _keys, done) => ({
    render: () => ["\x1b[2J\x1b[H\x1b]0;title\x07a\x1b[31mred", "b\x08\x1b[12", "c\nd\u202ee", "\x9b2J"], handleInput: quits(done),
  }));
  command("size", () => (tui, _theme, _keys, done) => ({
    render: (width) => ["=".repeat(width), `${width} x ${tui.terminal.rows}`], handleInput: quits(done),
  }));
  command("throws", () => () => { throw new Error("no component"); });
  command("breaks", () => () => ({ render: () => ["[breaks]"], handleInput() { throw new Error("no key"); } }));
  command("dies", () => () => { fs.writeFileSync("pid", `${process.pid}`); return { render: () => ["alive"] }; });
  command("hangs", () => () => ({ render: () => ["[hangs]"], handleInput() { for (;;); } }));
  command("loads", () => (tui, theme, _keys, done) => {
    const loader = new BorderedLoader(tui, theme, "Thinking");
    loader.onAbort = () => done(`aborted ${loader.signal.aborted}`);
    return loader;
  });
  command("lends", () => (tui, _theme, _keys, done) => {
    tui.stop();
    const { status } = spawnSync("/bin/sh", ["-c", "test -t 0 && test -t 1 && echo ready && read line && echo \"<$line>\" && exit 3"], { stdio: "inherit" });
    tui.start();
    return { render: () => [`status ${status}`], handleInput: quits(done) };
  });
  command("stops", () => (tui, _theme, _keys, done) => {
    tui.start();
    tui.stop();
    tui.stop();
    done("stopped");
    tui.stop();
    tui.start();
    return { render: () => [] };
  });
  command("keeps", () => (tui) => {
    tui.stop();
    spawnSync("/bin/sh", ["-c", "stty raw -echo; echo $PPID > pid; echo kept; sleep 300"], { stdio: "inherit" });
    return { render: () => [] };
  });
  command("asks", (ctx) => (tui, _theme, _keys, done) => {
    let answer = "none";
    return {
      render: () => [`answer: ${answer}`],
      async handleInput(data) {
        if (data === "q") return done(answer);
        answer = await ctx.ui.confirm("Sure?", "really");
        tui.requestRender();
      },
    };
  });
  command("over", () => (tui, _theme, _keys, done) => ({
    render: (width) => [`[over ${width}]`], handleInput: quits(done),
  }), { overlay: true, overlayOptions: { anchor: "bottom-right", width: 20, margin: 1 } });
}
"#;

/// Starts a session, and runs a command that draws.
fn draw(command: &str, is_drawn: impl Fn(&str) -> bool) -> Sitting {
    let sitting = Sitting::start(with(DRAWS).script("turns: [{text: still here}]"));
    sitting.until_prompt("");
    sitting.press(&format!("/{command}\r"));
    sitting.until(is_drawn);
    sitting.until_asked("");
    sitting
}

#[test]
fn frames_without_end_neither_pile_up_nor_leave_the_screen() {
    let sitting = draw("bomb", |screen| screen.contains("bomb 1"));
    let long = "x".repeat(80);
    let screen = sitting.until(|screen| !screen.contains("bomb 1\n") && screen.contains("bomb "));
    let lines: Vec<&str> = screen.lines().collect();
    assert!(lines[0].starts_with("bomb "), "{screen}");
    assert!(lines[1..].iter().all(|line| *line == long), "{screen}");
    sitting.press("q");
    sitting.until(|screen| screen.ends_with("note: got q\n>"));
    leave(sitting);
}

#[test]
fn output_that_arrives_during_a_drawing_stands_above_it() {
    let sitting = draw("flood", |screen| screen.ends_with("[flood]"));
    sitting.until(|screen| screen.ends_with("line 49\n[flood]"));
    sitting.press("q");
    sitting.until(|screen| screen.ends_with("line 49\nnote: got q\n>"));
    leave(sitting);
}

#[test]
fn a_drawing_cannot_control_the_terminal() {
    let sitting = draw("evil", |screen| screen.contains("ared"));
    let screen = sitting.until(|_| true);
    assert!(
        screen.ends_with("> /evil\nared\nb\\u{8}\\u{1b}[12\nc\\nd\\u{202e}e\n\\u{9b}2J"),
        "{screen}"
    );
    sitting.press("q");
    sitting.until(|screen| screen.ends_with("note: got q\n>"));
    leave(sitting);
}

#[test]
fn a_screen_that_is_released_and_never_taken_back_does_not_fail() {
    let sitting = Sitting::start(with(DRAWS).script("turns: [{text: still here}]"));
    sitting.until_prompt("");
    sitting.press("/stops\r");
    sitting.until(|screen| screen.contains("note: got stopped"));
    sitting.until_prompt("");
    leave(sitting);
}

#[test]
fn a_drawing_follows_the_size_of_the_screen() {
    let sitting = draw("size", |screen| screen.ends_with("80 x 40"));
    sitting.resize(30, 60);
    let screen = sitting.until(|screen| screen.ends_with("60 x 30"));
    assert!(
        screen.contains(&format!("\n{}\n", "=".repeat(60))),
        "{screen}"
    );
    assert!(!screen.contains("80 x 40"), "{screen}");
    sitting.press("q");
    sitting.until(|screen| screen.ends_with("note: got q\n>"));
    leave(sitting);
}

#[test]
fn an_overlay_has_its_place_on_a_screen_of_its_own() {
    let sitting = draw("over", |screen| screen.contains("[over 20]"));
    let screen = sitting.until(|_| true);
    let expected = format!("{}{}[over 20]", "\n".repeat(38), " ".repeat(59));
    assert_eq!(screen, expected);
    sitting.press("q");
    sitting.until(|screen| screen.ends_with("> /over\nnote: got q\n>"));
    leave(sitting);
}

#[test]
fn a_component_that_throws_closes_its_drawing() {
    for (command, drawn, message) in [
        ("throws", "failed: no component\n>", "no component"),
        ("breaks", "[breaks]", "no key"),
    ] {
        let sitting = Sitting::start(with(DRAWS).script("turns: []"));
        sitting.until_prompt("");
        sitting.press(&format!("/{command}\r"));
        sitting.until(|screen| screen.ends_with(drawn));
        if command == "breaks" {
            sitting.until_asked("");
            sitting.press("x");
        }
        let expected = format!("> /{command}\nnote: failed: {message}\n>");
        sitting.until(|screen| screen.ends_with(&expected));
        leave(sitting);
    }
}

#[test]
fn a_worker_that_dies_or_hangs_while_it_draws_gives_the_terminal_back() {
    for command in ["dies", "hangs"] {
        let sitting = draw(command, |screen| {
            screen.ends_with("alive") || screen.ends_with("[hangs]")
        });
        if command == "dies" {
            let pid = fs::read_to_string(sitting.folder.path().join("work/pid")).unwrap();
            let killed = Command::new("kill").args(["-KILL", &pid]).status();
            assert!(killed.unwrap().success());
        } else {
            sitting.press("x\u{3}");
        }
        let screen = sitting.until(|screen| screen.ends_with("\n>"));
        assert!(
            !screen.contains("alive") && !screen.contains("[hangs]"),
            "{screen}"
        );
        sitting.press("go\r");
        sitting.until(|screen| screen.ends_with("still here\n>"));
        leave_with(sitting, if command == "dies" { 1 } else { 130 });
    }
}

#[test]
fn a_drawing_makes_room_for_a_question_of_its_component() {
    let sitting = draw("asks", |screen| screen.ends_with("answer: none"));
    sitting.press("x");
    sitting.answer("[y]es or [n]o:", "y\r");
    sitting.until_asked("answer: true");
    sitting.press("q");
    sitting.until(|screen| screen.ends_with("note: got true\n>"));
    leave(sitting);
}

#[test]
fn a_loader_moves_and_escape_aborts_its_work() {
    let sitting = draw("loads", |screen| screen.contains("⠋ Thinking"));
    sitting.until(|screen| screen.contains("⠙ Thinking"));
    sitting.press("\u{1b}");
    sitting.until(|screen| screen.ends_with("note: got aborted true\n>"));
    leave(sitting);
}

#[test]
fn a_program_that_an_extension_starts_gets_the_terminal_and_gives_it_back() {
    let sitting = Sitting::start(with(DRAWS).script("turns: [{text: still here}]"));
    sitting.until_prompt("");
    sitting.press("/lends\r");
    sitting.until(|screen| screen.ends_with("ready"));
    sitting.press("typed\r");
    sitting.until(|screen| screen.ends_with("ready\ntyped\n<typed>\nstatus 3"));
    sitting.until_asked("");
    sitting.press("q");
    sitting.until(|screen| screen.ends_with("<typed>\nnote: got q\n>"));
    leave(sitting);
}

#[test]
fn a_terminal_that_a_program_has_comes_back_when_the_worker_dies() {
    let sitting = Sitting::start(with(DRAWS).script("turns: [{text: still here}]"));
    sitting.until_prompt("");
    sitting.press("/keeps\r");
    sitting.until(|screen| screen.contains("kept"));
    let pid = fs::read_to_string(sitting.folder.path().join("work/pid")).unwrap();
    let killed = Command::new("kill").args(["-KILL", pid.trim()]).status();
    assert!(killed.unwrap().success());
    sitting.until(|screen| screen.ends_with("\n>"));
    sitting.press("go\r");
    sitting.until(|screen| screen.ends_with("still here\n>"));
    leave_with(sitting, 1);
}

#[test]
fn a_signal_that_ends_the_program_restores_the_terminal() {
    let sitting = draw("over", |screen| screen.contains("[over 20]"));
    sitting.signal("TERM");
    let (screen, status, _folder) = sitting.end();
    assert_eq!(status, 130, "{screen}");
    assert!(screen.contains("> /over"), "{screen}");
}

#[test]
fn a_program_and_a_simple_terminal_cannot_show_components() {
    let mut client = Client::start(with(DRAWS).script("turns: []"));
    client.ask(1, "prompt", serde_json::json!({"text": "/size"}));
    let told = client.until(|it| it["method"] == "ui")["params"]["message"].to_string();
    let expected =
        "failed: `ctx.ui.custom` is not supported here: components can be drawn only at a terminal";
    assert_eq!(told, format!("\"{expected}\""));
    client.answer_to(1);
    assert_eq!(client.end().status, 0);
    let sitting = Sitting::start(with(DRAWS).variable("TERM", "dumb").script("turns: []"));
    sitting.until_prompt("");
    sitting.press("/size\r");
    // The terminal wraps the line.
    sitting.until(|screen| screen.replace('\n', "").contains(expected) && screen.ends_with("\n>"));
    leave(sitting);
}
