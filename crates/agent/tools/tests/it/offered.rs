//! The descriptions that models get must not change by accident, because agents' instructions and models rely on them.

use std::fmt::Write as _;

use serde_json::json;
use tenterhook_tools::{Agents, Toolbox, TransferTask, add_background_tools};

fn every_tool() -> Toolbox {
    let agents = || [("helper".to_owned(), "helps".to_owned())];
    let toolbox = Toolbox::standard().with(TransferTask::new(agents()));
    add_background_tools(toolbox, &agents().into_iter().collect::<Agents>())
}

/// Compares a text with a file of this folder. If the environment variable `UPDATE_OFFERED` is set, writes the file.
fn check_golden(file: &str, found: &str, expected: &str) {
    if std::env::var_os("UPDATE_OFFERED").is_some() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/");
        let written = std::fs::write(format!("{folder}{file}"), found);
        assert!(written.is_ok(), "{written:?}");
    } else {
        assert_eq!(found, expected);
    }
}

#[test]
fn names_descriptions_and_schemas_are_the_same_byte_by_byte() {
    let toolbox = every_tool();
    let specs: Vec<_> = toolbox
        .names()
        .map(|name| toolbox.spec(name).unwrap())
        .collect();
    let mut found = serde_json::to_string_pretty(&specs).unwrap();
    found.push('\n');
    check_golden("offered.json", &found, include_str!("offered.json"));
}

#[test]
fn invalid_arguments_are_answered_in_the_same_words() {
    let toolbox = every_tool();
    let mut found = String::new();
    for (name, input) in [
        ("shell", json!({})),
        ("shell", json!({"cmd": 1})),
        ("shell", json!({"cmd": " "})),
        ("shell", json!({"cmd": "ls", "timeout": 0})),
        ("shell", json!({"cmd": "ls", "timeout": 3601})),
        ("shell", json!({"cmd": "ls", "timeout": "soon"})),
        ("read_file", json!({"path": "a", "lines": 1})),
        ("write_file", json!({"path": "a"})),
        (
            "edit_file",
            json!({"path": "a", "old_text": "", "new_text": "b"}),
        ),
        (
            "edit_file",
            json!({"path": "a", "old_text": "b", "new_text": "b"}),
        ),
        ("list_directory", json!({"path": 1})),
        ("search", json!({"pattern": "("})),
        ("transfer_task", json!({"agent": "a", "task": "t"})),
        ("transfer_task", json!({"agent": "a"})),
        ("run_background_agent", json!({"agent": "a", "task": "t"})),
        ("list_background_agents", json!({"a": 1})),
        (
            "view_background_agent",
            json!({"task_id": "1", "wait": 601}),
        ),
        ("stop_background_agent", json!({})),
    ] {
        let tool = toolbox.get(name).unwrap();
        let error = tool.check(input.as_object().unwrap()).unwrap_err();
        writeln!(found, "{input}: {error}").unwrap();
    }
    check_golden("refused.txt", &found, include_str!("refused.txt"));
}
