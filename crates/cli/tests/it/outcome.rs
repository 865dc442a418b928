//! `tenterhook run`: how a run ends, as exit status, text and JSON.

use serde_json::json;

use crate::stage::{Ran, Test};

const TOOL_THEN_TEXT: &str = "\
turns:
  - text: I look.
    tool_calls:
      - { name: list_directory, arguments: { path: . } }
    usage: { input_tokens: 10, output_tokens: 4 }
  - text: There is a script.
    usage: { input_tokens: 20, output_tokens: 5 }
";

fn run(script: &str, args: &[&str]) -> Ran {
    Test::new()
        .args(["run", "go", "--no-journal"])
        .args(args.iter().copied())
        .script(script)
        .run()
}

#[test]
fn a_run_shows_text_calls_and_results() {
    let ran = run(TOOL_THEN_TEXT, &[]);
    let expected = "\
I look.
● list_directory .
    script.yaml
There is a script.
";
    assert_eq!(ran.all(), (expected, "", 0));
}

#[test]
fn a_run_in_json_is_one_object() {
    let ran = run(TOOL_THEN_TEXT, &["--json"]);
    let mut report = ran.json();
    assert!(report["session_id"].as_str().unwrap().len() > 8);
    report["session_id"] = "[ID]".into();
    let expected = json!({
        "session_id": "[ID]",
        "end": "completed",
        "reason": null,
        "response": "There is a script.",
        "turns": 2,
        "usage": {"input_tokens": 30, "output_tokens": 9, "cached_input_tokens": 0, "cached_write_tokens": 0},
        "cost": null,
        "runs": [{
            "prompt": "go",
            "end": "completed",
            "reason": null,
            "response": "There is a script.",
            "turns": 2,
            "usage": {"input_tokens": 30, "output_tokens": 9, "cached_input_tokens": 0, "cached_write_tokens": 0},
            "cost": null,
        }],
    });
    assert_eq!(report, expected);
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
}

#[test]
fn a_blocked_prompt_ends_the_run_before_the_model_is_asked() {
    let blocked = |args: &[&str]| {
        Test::new()
            .args(["run", "go", "--no-journal"])
            .args(args.iter().copied())
            .script(TOOL_THEN_TEXT)
            .hooks("hooks: [{name: nope, event: user_prompt_submit, command: \"echo not this >&2; exit 2\"}]")
            .run()
    };
    let ran = blocked(&[]);
    let (message, status) = ran.refusal();
    assert!(
        message == "error: message blocked by hook: not this\n",
        "{message}"
    );
    assert_eq!(status, 2);
    let ran = blocked(&["--json"]);
    let report = ran.json();
    assert_eq!(
        json!([report["end"], report["reason"], report["turns"]]),
        json!([
            "hook_blocked",
            "a user_prompt_submit hook stopped it: not this",
            0
        ])
    );
    assert_eq!(ran.status, 2);
}

#[test]
fn the_iteration_cap_ends_the_run() {
    let ran = run(TOOL_THEN_TEXT, &["--max-iterations", "1"]);
    assert_eq!(ran.stdout, "I look.\n● list_directory .\n    script.yaml\n");
    assert!(
        ran.stderr
            .ends_with("The run ended: the limit of 1 model calls was reached\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.status, 4);
    let ran = run(TOOL_THEN_TEXT, &["--max-iterations", "1", "--json"]);
    assert_eq!(ran.json()["end"], "max_iterations");
    assert_eq!(ran.status, 4);
}

#[test]
fn a_model_that_fails_ends_the_run() {
    let script = "turns: [{error: the service is gone}]";
    let ran = run(script, &[]);
    let (message, status) = ran.refusal();
    assert_eq!(message, "error: the service is gone\n");
    assert_eq!(status, 4);
    let ran = run(script, &["--json"]);
    let report = ran.json();
    assert_eq!(
        json!([report["end"], report["reason"]]),
        json!(["error", "the service is gone"])
    );
    assert_eq!(ran.status, 4);
}

#[test]
fn a_model_that_repeats_itself_is_stopped() {
    let script = "\
turns:
  - tool_calls: [{name: list_directory, arguments: {path: .}}]
    repeat: true
";
    let ran = run(script, &["--json"]);
    assert_eq!(ran.json()["end"], "loop_detected");
    assert_eq!(ran.status, 4);
}

#[test]
fn an_invalid_script_is_refused_with_its_place() {
    let unknown = "unknown key `txt`, expected one of text, reasoning, tool_calls, error, retryable, usage, for, \
                   summary, judge, repeat";
    for (script, message) in [
        (
            "turns:\n  - txt: hi\n",
            format!("error: script.yaml:2:5: {unknown}\n"),
        ),
        (
            "turns:\n  - text: hi\n  - {}\n",
            "error: script.yaml:3:5: the turn has none of `text`, `reasoning`, `tool_calls`, `error`, `summary`, `judge`\n"
                .to_owned(),
        ),
    ] {
        assert_eq!(run(script, &[]).refusal(), (message.as_str(), 3));
    }
}

#[test]
fn a_script_that_cannot_be_read_is_refused() {
    let ran = Test::new()
        .args(["run", "go", "--model", "scripted:missing.yaml"])
        .run();
    let expected = "error: cannot read the script `missing.yaml`\n  caused by: No such file or directory (os error 2)\n";
    assert_eq!(ran.refusal(), (expected, 3));
}

#[test]
fn a_run_without_a_model_says_how_to_choose_one() {
    let ran = Test::new().args(["run", "go"]).run();
    let (message, status) = ran.refusal();
    assert!(message.starts_with("error: no model given\n"), "{message}");
    assert!(message.contains("--model scripted:FILE"), "{message}");
    assert_eq!(status, 64);
}

#[test]
fn a_service_without_its_key_is_refused() {
    let ran = Test::new()
        .args(["run", "go", "--model", "openai:gpt-4o"])
        .run();
    let (message, status) = ran.refusal();
    assert!(
        message
            == "error: there is no key for `openai`: `OPENAI_API_KEY` is not set\nhint: set `OPENAI_API_KEY`, or try a \
                model without a key: `--model scripted:FILE`\n",
        "{message}"
    );
    assert_eq!(status, 1);
}

#[test]
fn a_folder_to_work_in_that_does_not_exist_is_refused() {
    let ran = run(TOOL_THEN_TEXT, &["--cwd", "nowhere"]);
    let expected = "error: `[DIR]/work/nowhere` is not a directory\nhint: name the folder to work in with `--cwd DIR`\n";
    assert_eq!(ran.refusal(), (expected, 64));
}
