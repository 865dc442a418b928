//! The files in which journal records are stored.

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
    let is_of_turn = |record: &&Value| {
        let event = record["event"].as_str();
        event.is_some_and(|event| event.starts_with("turn_"))
    };
    let of_turn = records.iter().filter(is_of_turn);
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

/// A hook of Operator that prints, also something that must not be recorded.
const PRINTS: &str = "import logging
logging.getLogger(__name__).warning('loaded')

def done(event):
    print('Done with GH_TOKEN=TOKEN')
    logging.info('told')

hooks = [('agent_end', done)]
";

fn token() -> String {
    format!("ghp_{}", "1x9QzP3vW7kB5nR2mT8yL4cF6dH0sJgA1x9Q")
}

/// Returns what the hooks printed, according to the journal.
fn printed(ran: &Ran) -> Vec<String> {
    let records = ran.lines("own.jsonl");
    let of_output = records.iter().filter(|record| record["record"] == "output");
    let lines = of_output.map(|record| {
        assert_eq!(
            (&record["v"], &record["worker"]),
            (&json!(1), &json!("python"))
        );
        assert!(record["timestamp"].as_str().unwrap().starts_with("20"));
        record["line"].as_str().unwrap().to_owned()
    });
    lines.collect()
}

#[test]
fn what_hooks_print_is_in_the_journal_and_on_stderr_in_every_output_mode() {
    let test = Test::new();
    let folder = test.work().join(".operator/hooks");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("a.py"),
        PRINTS.replace("TOKEN=TOKEN", &format!("TOKEN={}", token())),
    )
    .unwrap();
    let mut ran = test.args(["trust", "--all"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for mode in [
        &[][..],
        &["--print"],
        &["--json"],
        &["--output-format", "jsonl"],
    ] {
        fs::remove_file(ran.path("work/own.jsonl")).ok();
        ran = ran
            .again(["run", "go", "--journal", "own.jsonl"])
            .args(mode.iter().copied())
            .script("turns: [{text: hello}]")
            .run();
        assert_eq!(ran.status, 0, "{mode:?}: {}", ran.stderr);
        let lines = printed(&ran);
        let [.., done, told] = &lines[..] else {
            panic!("{mode:?}: {lines:?}\n{}", ran.stderr);
        };
        assert!(
            done.starts_with("Done with GH_TOKEN="),
            "{mode:?}: {lines:?}"
        );
        assert_eq!(told, "INFO: told", "{mode:?}");
        assert!(
            lines.iter().any(|line| line == "loaded"),
            "{mode:?}: {lines:?}"
        );
        for shown in ["python: Done with GH_TOKEN=", "python: INFO: told"] {
            assert!(ran.stderr.contains(shown), "{mode:?}: {}", ran.stderr);
        }
        let journal = fs::read_to_string(ran.path("work/own.jsonl")).unwrap();
        for text in [&journal, &ran.stderr, &ran.stdout] {
            assert!(!text.contains("1x9QzP3vW7kB5nR2"), "{mode:?}: {text}");
        }
    }
    fs::remove_file(ran.path("work/own.jsonl")).unwrap();
    let ran = ran
        .again(["fire", "agent_end", "--json", "--journal", "own.jsonl"])
        .event(r#"{"messages": [], "reason": "completed"}"#)
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(printed(&ran).last().unwrap(), "INFO: told");
}
