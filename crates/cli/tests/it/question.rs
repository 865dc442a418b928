//! Questions at a terminal: only keys that are pressed after a question answer it.

use std::fs;
use std::path::Path;

use crate::stage::{Test, eventually};
use crate::terminal::{Sitting, run};

/// Two calls that need approval.
const CALLS: &str = "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: touch one}}]
  - tool_calls: [{name: shell, arguments: {cmd: touch two}}]
  - text: done
";

/// A hook that keeps the agent busy before every call until the test lets it continue.
const BUSY: &str =
    "hooks: [{event: pre_tool_use, command: touch busy; until test -e go; do sleep 0.01; done}]";

/// Terminals with the line editor, and without.
const TERMINALS: [&str; 2] = ["xterm-256color", "dumb"];

/// Lets the agent request a tool call, and types while the agent is busy before the question.
fn type_ahead(terminal: &str, keys: &str) -> Sitting {
    let sitting = Sitting::start(run().variable("TERM", terminal).script(CALLS).hooks(BUSY));
    sitting.until_prompt("");
    sitting.press("start\r");
    let work = sitting.folder.path().join("work");
    eventually(|| work.join("busy").exists().then_some(()));
    sitting.press(keys);
    fs::write(work.join("go"), "").unwrap();
    sitting
}

fn has_run(folder: &Path, name: &str) -> bool {
    folder.join("work").join(name).exists()
}

#[test]
fn a_y_that_was_typed_ahead_does_not_answer_a_permission_question_and_is_in_the_next_prompt() {
    for terminal in TERMINALS {
        let sitting = type_ahead(terminal, "y\r");
        sitting.until_asked("run it?");
        assert!(!has_run(sitting.folder.path(), "one"), "{terminal}");
        sitting.press("n\r");
        sitting.until(|screen| screen.contains("denied by you"));
        sitting.answer("run it?", "y\r");
        sitting.until(|screen| screen.contains("done\n"));
        sitting.until_prompt("y");
        assert!(!has_run(sitting.folder.path(), "one"), "{terminal}");
        assert!(has_run(sitting.folder.path(), "two"), "{terminal}");
        sitting.press("\u{3}");
        sitting.until(|screen| screen.ends_with("\n>"));
        sitting.press("\u{4}");
        assert_eq!(sitting.end().1, 0, "{terminal}");
    }
}

#[test]
fn every_line_that_was_typed_while_the_agent_worked_is_sent() {
    for terminal in TERMINALS {
        let script = "turns: [{tool_calls: [{name: list_directory, arguments: {path: .}}]}, {text: first answer}, {text: second answer}, {text: third answer}]";
        let sitting = Sitting::start(run().variable("TERM", terminal).script(script).hooks(BUSY));
        sitting.until_prompt("");
        sitting.press("start\r");
        let work = sitting.folder.path().join("work");
        eventually(|| work.join("busy").exists().then_some(()));
        sitting.press("two\rthree\r");
        fs::write(work.join("go"), "").unwrap();
        sitting.until(|screen| screen.contains("third answer"));
        sitting.until_prompt("");
        sitting.press("\u{4}");
        assert_eq!(sitting.end().1, 0, "{terminal}");
    }
}

#[test]
fn half_a_line_and_half_an_escape_sequence_that_were_typed_ahead_do_not_answer() {
    for terminal in TERMINALS {
        for keys in ["y", "y\u{1b}[", "\u{1b}[200~y"] {
            let sitting = type_ahead(terminal, keys);
            sitting.answer("run it?", "\r");
            let screen = sitting.until(|screen| screen.contains("answer y, a, n or"));
            assert!(!has_run(sitting.folder.path(), "one"), "{screen}");
            sitting.answer("run it?", "n\r");
            sitting.until(|screen| screen.contains("touch two"));
            sitting.answer("run it?", "n\r");
            sitting.until_prompt("y");
            sitting.press("\u{3}");
            sitting.until(|screen| screen.ends_with("\n>"));
            sitting.press("\u{4}");
            assert_eq!(sitting.end().1, 0, "{keys:?}");
        }
    }
}

#[test]
fn a_block_with_line_ends_that_was_pasted_ahead_does_not_answer() {
    for terminal in TERMINALS {
        let sitting = type_ahead(terminal, "y\ry\ryes\r\u{1b}[200~y\ry\r\u{1b}[201~");
        sitting.answer("run it?", "n\r");
        sitting.until(|screen| screen.contains("touch two"));
        sitting.answer("run it?", "n\r");
        sitting.until(|screen| screen.contains("done\n"));
        sitting.until(|screen| {
            screen.contains("> y\n") && screen.ends_with("y\n… y") || screen.ends_with("y\ny")
        });
        for name in ["one", "two"] {
            assert!(!has_run(sitting.folder.path(), name), "{terminal}");
        }
        sitting.press("\u{3}");
        sitting.until(|screen| screen.ends_with("\n>"));
        sitting.press("\u{4}");
        assert_eq!(sitting.end().1, 0, "{terminal}");
    }
}

#[test]
fn a_block_that_is_pasted_at_a_question_answers_only_with_enter() {
    let sitting = Sitting::start(run().script(CALLS));
    sitting.until_prompt("");
    sitting.press("start\r");
    sitting.answer("run it?", "\u{1b}[200~y\r\u{1b}[201~");
    sitting.until(|screen| screen.contains("run it? y\n"));
    assert!(!has_run(sitting.folder.path(), "one"));
    sitting.press("\u{3}");
    sitting.answer("run it?", "n\r");
    sitting.until(|screen| screen.contains("touch two"));
    sitting.answer("run it?", "n\r");
    sitting.until_prompt("");
    assert!(!has_run(sitting.folder.path(), "one"));
    sitting.press("\u{4}");
    assert_eq!(sitting.end().1, 0);
}

#[test]
fn a_key_too_many_for_one_question_does_not_answer_the_next() {
    for terminal in TERMINALS {
        let sitting = Sitting::start(run().variable("TERM", terminal).script(CALLS));
        sitting.until_prompt("");
        sitting.press("start\r");
        sitting.answer("run it?", "y\ry\r");
        sitting.until(|screen| screen.contains("touch two"));
        sitting.until_asked("run it?");
        assert!(has_run(sitting.folder.path(), "one"), "{terminal}");
        assert!(!has_run(sitting.folder.path(), "two"), "{terminal}");
        sitting.press("n\r");
        sitting.until_prompt("y");
        assert!(!has_run(sitting.folder.path(), "two"), "{terminal}");
        sitting.press("\u{3}");
        sitting.until(|screen| screen.ends_with("\n>"));
        sitting.press("\u{4}");
        assert_eq!(sitting.end().1, 0, "{terminal}");
    }
}

/// An extension that asks in every way, and waits for the test before it does.
const ASKS: &str = r#"
import * as fs from "node:fs";
const sleep = (time) => new Promise((wake) => setTimeout(wake, time));
export default function (pi) {
  pi.registerCommand("ask", { description: "Asks", handler: async (args, ctx) => {
    fs.writeFileSync("busy", "");
    while (!fs.existsSync("go")) await sleep(10);
    fs.appendFileSync("said", `${await ctx.ui.confirm("Sure?", "really")}\n`);
    fs.appendFileSync("said", `${await ctx.ui.select("Which?", ["this", "that"])}\n`);
    fs.appendFileSync("said", `${await ctx.ui.input("Name?", "nobody")}\n`);
  } });
}
"#;

#[test]
fn what_was_typed_ahead_does_not_answer_the_questions_of_an_extension() {
    for terminal in TERMINALS {
        let sitting = Sitting::start(
            run()
                .variable("TERM", terminal)
                .args(["-e", "asks.mjs"])
                .file("asks.mjs", ASKS)
                .script("turns: []"),
        );
        sitting.until_prompt("");
        sitting.press("/ask\r");
        let work = sitting.folder.path().join("work");
        eventually(|| work.join("busy").exists().then_some(()));
        sitting.press("y\r2\rmallory\r");
        fs::write(work.join("go"), "").unwrap();
        // Each answer is followed by one key too many.
        sitting.answer("[y]es or [n]o:", "n\r2\r");
        sitting.answer("which one? Enter for none:", "1\rmallory\r");
        sitting.answer("answer:", "ada\r");
        sitting.until(|screen| {
            screen.ends_with("y\n2\nmallory\n2\nmallory") || screen.ends_with("… mallory")
        });
        let said = fs::read_to_string(work.join("said")).unwrap();
        assert_eq!(said, "false\nthis\nada\n", "{terminal}");
        sitting.press("\u{3}");
        sitting.until(|screen| screen.ends_with("\n>"));
        sitting.press("\u{4}");
        assert_eq!(sitting.end().1, 0, "{terminal}");
    }
}

#[test]
fn what_was_typed_ahead_approves_no_hook() {
    let hooks = "hooks:
  - {name: one, event: post_tool_use, command: ./.tenterhook/log.sh one}
  - {name: two, event: post_tool_use, command: ./.tenterhook/log.sh two}
";
    let test = Test::new()
        .args(["trust"])
        .executable(".tenterhook/log.sh", "#!/bin/sh\necho logged >> ran\n")
        .file(".tenterhook/hooks.yaml", hooks);
    fs::create_dir(test.work().join(".git")).unwrap();
    let sitting = Sitting::start_after(test, "y\ry\r");
    sitting.answer("Approve `one of .tenterhook/hooks.yaml`? [y/N]", "n\ry\r");
    sitting.answer("Approve `two of .tenterhook/hooks.yaml`? [y/N]", "n\r");
    let (screen, status, _folder) = sitting.end();
    assert!(
        screen.contains("Approved 0 hooks; 2 not approved."),
        "{screen}"
    );
    assert_eq!(status, 0);
}

#[test]
fn what_was_typed_ahead_disables_no_source() {
    let test = Test::new().args(["disable", "hooks.yaml"]);
    let config = test.work().join("../config/hooks.yaml");
    fs::write(
        config,
        "hooks: [{name: guard, event: pre_tool_use, command: exit 2}]",
    )
    .unwrap();
    let sitting = Sitting::start_after(test, "yes\r");
    sitting.answer("[y/N]", "n\r");
    let (screen, status, _folder) = sitting.end();
    assert!(screen.contains("Nothing was disabled."), "{screen}");
    assert_eq!(status, 0);
}

#[test]
fn an_answer_after_the_question_disables_a_source() {
    let test = Test::new().args(["disable", "hooks.yaml"]);
    let config = test.work().join("../config/hooks.yaml");
    fs::write(
        config,
        "hooks: [{name: guard, event: pre_tool_use, command: exit 2}]",
    )
    .unwrap();
    let sitting = Sitting::start(test);
    sitting.answer("[y/N]", "y\r");
    let (screen, _, _folder) = sitting.end();
    assert!(screen.contains("Disabled `"), "{screen}");
}
