//! `tenterhook fire` with invalid input: the complete message and the exit status.

use crate::stage::Test;

/// The part of an error that lists all forms.
const FORMS: &str = ", or an event in the form of a hook system: native (`hook_event_name` and `event_id`), docker-agent (`hook_event_name` without \
                     `event_id`), kodelet (`event` and `conv_id`), kodelet-extension (`event` and `context` and `payload`), \
                     operator (`type`), morphix (`hook_point`), pi (`type`)";

fn refusal_of_event(name: &str) -> (String, i32) {
    let ran = Test::new().args(["fire", name, "--no-journal"]).run();
    let (message, status) = ran.refusal();
    (message.to_owned(), status)
}

fn refusal_of_input(text: &str) -> (String, i32) {
    let ran = Test::new()
        .args(["fire", "pre_tool_use", "--no-journal"])
        .event(text)
        .run();
    let (message, status) = ran.refusal();
    (message.to_owned(), status)
}

#[test]
fn an_unknown_event_comes_with_the_name_that_was_probably_meant() {
    let expected = |found: &str, meant: &str| {
        (
            format!("error: unknown event `{found}`\nhint: did you mean `{meant}`?\n"),
            2,
        )
    };
    for (found, meant) in [
        ("pre_tol_use", "pre_tool_use"),
        ("PreToolUse", "pre_tool_use"),
        ("pre-tool-use", "pre_tool_use"),
        ("SessionStart", "session_start"),
        ("on_error", "agent_error"),
        ("on_max_iterations", "max_iterations"),
        ("on_user_input", "waiting_for_user"),
        ("before_tool_call", "pre_tool_use"),
        ("message:receive", "message_receive"),
    ] {
        assert_eq!(refusal_of_event(found), expected(found, meant));
    }
}

#[test]
fn an_event_that_is_like_none_comes_with_the_rule_for_names_of_ones_own() {
    assert_eq!(
        refusal_of_event("zzz"),
        (
            "error: unknown event `zzz`\nhint: `tenterhook events` lists all events; your own are named `x-<vendor>.<name>`\n"
                .to_owned(),
            2
        )
    );
    assert_eq!(
        refusal_of_event("x-acme"),
        (
            "error: invalid event name `x-acme`: expected `x-<vendor>.<name>`, with only a-z, 0-9, `_` and `-` \
             in each part\nhint: `tenterhook events` lists all events; your own are named `x-<vendor>.<name>`\n"
                .to_owned(),
            2
        )
    );
}

#[test]
fn an_input_that_is_no_json_object_is_refused() {
    for (text, cause) in [
        (
            "{\"tool_name\":",
            "EOF while parsing a value at line 1 column 13",
        ),
        ("", "EOF while parsing a value at line 1 column 0"),
        (
            "[]",
            "invalid type: sequence, expected a JSON object at line 1 column 0",
        ),
        (
            "{\"tool_name\": shell}",
            "expected value at line 1 column 15",
        ),
    ] {
        let expected = format!(
            "error: `event.json` is not a JSON object\n  caused by: {cause}\nhint: pass the event's payload as an \
             object, such as `{{\"tool_name\": \"shell\"}}`\n"
        );
        assert_eq!(refusal_of_input(text), (expected, 2));
    }
}

#[test]
fn an_input_that_is_no_such_event_is_refused_with_the_fields_it_has() {
    let fields =
        "`tool_use_id`, `tool_name`, `tool_input`, `role`, `attempt`, `tool_category`, `extra`";
    let unknown = format!("unknown field `tool_inptu`, expected one of {fields}");
    for (text, cause) in [
        (
            r#"{"tool_name": "shell", "tool_inptu": {}}"#,
            unknown.as_str(),
        ),
        (
            r#"{"tool_input": {"cmd": "ls"}}"#,
            "missing field `tool_name`",
        ),
        (
            r#"{"tool_name": 5}"#,
            "`tool_name`: invalid type: integer `5`, expected a string",
        ),
    ] {
        let forms = if cause.starts_with("unknown field") {
            FORMS
        } else {
            ""
        };
        let expected = format!(
            "error: the input is not a `pre_tool_use` event\n  caused by: {cause}\nhint: expected the fields {fields}{forms}\n"
        );
        assert_eq!(refusal_of_input(text), (expected, 2));
    }
}

#[test]
fn an_input_that_cannot_be_read_is_refused() {
    for (path, cause) in [
        ("missing.json", "No such file or directory (os error 2)"),
        (".", "Is a directory (os error 21)"),
    ] {
        let ran = Test::new()
            .args(["fire", "pre_tool_use", "--no-journal", "--input", path])
            .run();
        let expected = format!("error: cannot read `{path}`\n  caused by: {cause}\n");
        assert_eq!(ran.refusal(), (expected.as_str(), 2));
    }
}

#[test]
fn stdin_is_named_where_it_is_what_is_wrong() {
    let ran = Test::new()
        .args(["fire", "pre_tool_use", "--no-journal", "--input", "-"])
        .stdin("no")
        .run();
    let (message, status) = ran.refusal();
    assert!(
        message.starts_with("error: stdin is not a JSON object\n"),
        "{message}"
    );
    assert_eq!(status, 2);
}

#[test]
fn a_hook_file_that_does_not_exist_is_refused() {
    let ran = Test::new()
        .args(["fire", "stop", "--no-journal", "--hooks", "missing.yaml"])
        .run();
    let expected = "\
error: cannot read the hook file `missing.yaml`
  caused by: No such file or directory (os error 2)
hint: fix the file, or remove it from the command line
";
    assert_eq!(ran.refusal(), (expected, 3));
}

#[test]
fn a_journal_that_cannot_be_opened_is_refused_before_a_hook_runs() {
    let ran = Test::new()
        .args(["fire", "agent_start", "--journal", "taken/journal.jsonl"])
        .file("taken", "a file, no folder")
        .hooks("hooks: [{event: agent_start, command: touch ran}]")
        .run();
    let (message, status) = ran.refusal();
    assert!(message.starts_with("error: "), "{message}");
    assert!(
        message
            .ends_with("hint: name another file with `--journal FILE`, or pass `--no-journal`\n"),
        "{message}"
    );
    assert_eq!(status, 1);
    assert!(!ran.path("work/ran").exists());
}

#[test]
fn an_object_in_the_place_of_a_file_comes_with_the_way_to_give_it() {
    let object = r#"{"tool_name": "shell"}"#;
    let ran = Test::new()
        .args(["fire", "pre_tool_use", "--no-journal", "--input", object])
        .run();
    let (message, status) = ran.refusal();
    assert!(
        message.ends_with(
            "hint: `--input` takes a file name; to pass the object on stdin, use `--input -`\n"
        ),
        "{message}"
    );
    assert_eq!(status, 2);
}

#[test]
fn a_field_that_is_missing_for_want_of_an_input_comes_with_the_way_to_give_one() {
    assert_eq!(
        refusal_of_event("pre_tool_use"),
        (
            "error: the input is not a `pre_tool_use` event\n  caused by: missing field `tool_name`\nhint: pass the \
             event's payload with `--input FILE`, or on stdin with `--input -`; `--example` prints an example\n"
                .to_owned(),
            2
        )
    );
}

#[test]
fn an_agent_may_be_given_by_its_name_alone() {
    let ran = Test::new()
        .args(["fire", "pre_tool_use", "--no-journal", "--json"])
        .event(r#"{"tool_name": "shell", "agent": "reviewer"}"#)
        .run();
    assert_eq!(ran.json()["event"]["agent"]["name"], "reviewer");
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
    let (message, status) = refusal_of_input(r#"{"tool_name": "shell", "session_id": 5}"#);
    assert!(
        message.contains("caused by: `session_id`: invalid type: integer `5`"),
        "{message}"
    );
    assert_eq!(status, 2);
}
