//! Where records of what hooks did are kept.

use std::fs;

use serde_json::{Value, json};

use crate::stage::{Ran, Test, json_lines};

const HOOKS: &str =
    "hooks: [{name: watch, event: [turn_start, turn_end], command: cat > seen.json}]";

fn run(args: &[&str]) -> Ran {
    let ran = Test::new()
        .args(["run", "go"])
        .args(args.iter().copied())
        .script("turns: [{text: hello}]")
        .hooks(HOOKS)
        .run();
    assert_eq!(ran.all(), ("hello\n", "", 0));
    ran
}

fn watched() -> Vec<Value> {
    ["turn_start", "turn_end"]
        .map(|event| {
            [
                json!(["run", event, "watch"]),
                json!(["dispatch", event, null]),
            ]
        })
        .concat()
}

fn short(records: &[Value]) -> Vec<Value> {
    let of_turn = records
        .iter()
        .filter(|record| record["event"].as_str().unwrap().starts_with("turn_"));
    of_turn
        .map(|record| json!([record["record"], record["event"], record["hook"]]))
        .collect()
}

#[test]
fn by_default_the_journal_is_the_days_file_in_the_users_state_folder() {
    let ran = run(&[]);
    let folder = ran.path("state/tenterhook/journal");
    let files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let name = files[0].file_name().into_string().unwrap();
    let shape: String = name
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert_eq!(shape, "0000-00-00.jsonl");
    let records = json_lines(&fs::read_to_string(files[0].path()).unwrap());
    assert!(records.iter().all(Value::is_object));
    assert_eq!(short(&records), watched());
}

#[test]
fn without_a_state_folder_the_journal_is_in_the_home_folder() {
    let ran = Test::new()
        .args(["run", "go"])
        .variable("XDG_STATE_HOME", "")
        .script("turns: [{text: hello}]")
        .hooks(HOOKS)
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.path("home/.local/state/tenterhook/journal").is_dir());
    assert!(!ran.path("state/tenterhook").exists());
}

#[test]
fn a_journal_of_ones_own_is_appended_to() {
    let ran = Test::new()
        .args(["fire", "turn_start", "--journal", "own.jsonl"])
        .event(r#"{"turn_index": 0, "started_at_ms": 0}"#)
        .file("own.jsonl", "{\"kept\":true}\n")
        .hooks(HOOKS)
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let records = ran.lines("own.jsonl");
    assert_eq!(records[0], json!({"kept": true}));
    assert_eq!(short(&records[1..]), watched()[..2]);
    assert!(!ran.path("state/tenterhook").exists());
}

#[test]
fn no_journal_writes_nothing() {
    let ran = run(&["--no-journal"]);
    assert!(!ran.path("state/tenterhook").exists());
    assert!(ran.path("work/seen.json").exists());
}
