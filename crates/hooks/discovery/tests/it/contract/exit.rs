//! Exit statuses, stdout and stderr of command hooks.

use serde_json::json;

use super::{Stage, says, sh};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finished_command_does_what_its_status_and_output_say() {
    // The text of the reason, or `None` if the operation continues.
    let gates: &[(&str, &str, Option<&str>)] = &[
        ("D-18", "echo test", None),
        ("D-19", "exit 2", Some("no reason was given")),
        ("D-20", "echo no >&2; exit 2", Some("no")),
        (
            "D-21",
            r#"echo '{"decision":"block","reason":"R"}'; exit 2"#,
            Some("no reason was given"),
        ),
        (
            "D-22",
            "exit 1",
            Some(
                "pre_tool_use hook failed to execute: hook \"pre_tool_use#1\": exited with status 1",
            ),
        ),
        (
            "D-22",
            "exit 127",
            Some(
                "pre_tool_use hook failed to execute: hook \"pre_tool_use#1\": exited with status 127",
            ),
        ),
        (
            "D-23",
            "kill -9 $$",
            Some(
                "pre_tool_use hook failed to execute: hook \"pre_tool_use#1\": killed by signal 9",
            ),
        ),
        (
            "D-25",
            r#"echo '{"decision":"block","reason":"Tool not allowed"}'"#,
            Some("Tool not allowed"),
        ),
        (
            "D-27",
            r#"printf '{"decision":'"#,
            Some(
                "pre_tool_use hook failed to execute: hook \"pre_tool_use#1\": invalid hook output: EOF while parsing a value at line 1 column 12",
            ),
        ),
        (
            "D-38",
            r#"echo '{"CONTINUE":false}'"#,
            Some("no reason was given"),
        ),
    ];
    for (case, line, expected) in gates {
        let stage = Stage::new("pre_tool_use", &[sh(line)]);
        let said = stage.fire("pre_tool_use").await;
        assert_eq!(said.stopped(), *expected, "{case}: {line}");
    }
    let stop = r#"echo '{"continue":false,"stop_reason":"b"}'"#;
    let stage = Stage::new("post_tool_use", &[sh(stop)]);
    assert_eq!(
        stage.fire("post_tool_use").await.stopped(),
        Some("b"),
        "D-26"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_on_an_event_that_does_not_fail_closed_is_told_and_passed_over() {
    // D-24, D-28
    for (event, line) in [
        ("post_tool_use", "exit 1"),
        ("session_start", r#"printf '{"decision":'"#),
    ] {
        let said = Stage::new(event, &[sh(line)]).fire(event).await;
        assert_eq!(said.stopped(), None, "{event}");
        assert_eq!(said.context(), "", "{event}");
        let line = format!("{event} hook failed to execute: hook \"{event}#1\": ");
        assert!(said.notices().starts_with(&line), "{}", said.notices());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_in_no_known_form_denies_on_a_gate() {
    for (case, stdout) in [
        ("D-29", "{} {}"),
        ("D-29", "{} done"),
        ("D-30", r#"{"decision":"approve"}"#),
        (
            "D-31",
            r#"{"hook_specific_output":{"permission_decision":"alow"}}"#,
        ),
        ("D-32", r#"{"continue":"false"}"#),
    ] {
        let stage = Stage::new("pre_tool_use", &[sh(&format!("echo '{stdout}'"))]);
        let said = stage.fire("pre_tool_use").await;
        let reason = said.stopped().unwrap_or_else(|| panic!("{case}: {stdout}"));
        assert!(reason.contains("invalid hook output"), "{case}: {reason}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_text_is_context_on_the_events_that_take_it_only() {
    for (case, event, expected) in [
        ("D-33", "session_start", "text"),
        ("D-33", "turn_start", "text"),
        ("D-33", "user_prompt_submit", "text"),
        ("D-33", "pre_compact", "text"),
        ("D-34", "post_tool_use", ""),
        ("D-34", "stop", ""),
        ("D-35", "before_llm_call", ""),
        ("D-35", "after_llm_call", ""),
        ("D-35", "on_error", ""),
        ("D-35", "notification", ""),
        ("D-35", "session_end", ""),
        ("D-35", "turn_end", ""),
        ("D-35", "before_compaction", ""),
        ("D-35", "after_compaction", ""),
    ] {
        let said = Stage::new(event, &[sh("echo '  text '")]).fire(event).await;
        assert_eq!(said.context(), expected, "{case}: {event}");
        assert_eq!(said.stopped(), None, "{case}: {event}");
        assert_eq!(said.notices(), "", "{case}: {event}");
    }
    for text in ["[]", "null"] {
        let stage = Stage::new("session_start", &[sh(&format!("echo '{text}'"))]);
        assert_eq!(stage.fire("session_start").await.context(), text, "D-36");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_response_clears_and_null_leaves_it() {
    // D-39
    for (value, expected) in [(json!(""), ""), (json!(null), "raw")] {
        let answer = json!({"hook_specific_output": {"updated_tool_response": value}});
        let stage = Stage::new("tool_response_transform", &[says(&answer)]);
        let said = stage.fire("tool_response_transform").await;
        assert_eq!(said.event["tool_response"], expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_hook_of_an_agent_file_can_only_be_heard() {
    // D-40
    for line in [
        "exit 2",
        r#"echo '{"decision":"block"}'"#,
        r#"echo '{"continue":false}'"#,
        r#"echo '{"permission_decision":"deny"}'"#,
    ] {
        let said = Stage::new("stop", &[sh(line)]).fire("stop").await;
        assert_eq!(said.stopped(), None, "{line}");
        assert!(said.any.follow_up.is_empty(), "{line}");
        assert!(
            said.notices().contains("the event cannot block"),
            "{line}: {}",
            said.notices()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_need_not_read_the_four_mebibytes_that_it_is_sent() {
    // D-41
    let stage = Stage::new("user_prompt_submit", &[sh("echo seen")]);
    let prompt = "p".repeat(4 << 20);
    let said = stage
        .fire_with("user_prompt_submit", &json!({"prompt": prompt}))
        .await;
    assert_eq!(said.context(), "seen");
    assert_eq!(said.any.failures, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_megabytes_of_context_are_cut_in_the_middle() {
    // D-42
    let line = r"printf start; head -c 20000000 /dev/zero | tr '\0' x; printf end";
    let said = Stage::new("turn_start", &[sh(line)])
        .fire("turn_start")
        .await;
    let context = said.context();
    assert!(context.len() < (1 << 20) + 1000, "{}", context.len());
    assert!(context.starts_with("startx") && context.ends_with("xend"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strict_output_denies_on_a_guard_that_says_what_it_may_not() {
    // D-43, D-44, D-45, D-46, D-48, D-49
    for (stdout, is_stopped) in [
        ("text", true),
        ("[]", true),
        ("null", true),
        ("", false),
        ("{}", false),
        (r#"{"colour":"red"}"#, true),
        (r#"{"hook_specific_output":{"colour":"red"}}"#, true),
        (
            r#"{"hook_specific_output":{"hook_event_name":"stop"}}"#,
            true,
        ),
        (
            r#"{"hook_specific_output":{"hook_event_name":"tool_guard"}}"#,
            false,
        ),
        (r#"{"updated_input":{"cmd":"rm"}}"#, true),
        (r#"{"suppress_output":true}"#, true),
        (r#"{"suppress_output":false}"#, false),
    ] {
        let mut hook = sh(&format!("printf '%s' '{stdout}'"));
        let lenient = Stage::new("tool_guard", &[hook.clone()]);
        assert_eq!(lenient.fire("tool_guard").await.stopped(), None, "{stdout}");
        hook["strict_output"] = json!(true);
        let strict = Stage::new("tool_guard", &[hook]);
        let said = strict.fire("tool_guard").await;
        assert_eq!(said.stopped().is_some(), is_stopped, "{stdout}");
        assert_eq!(said.event["tool_input"]["cmd"], "ls", "{stdout}");
    }
}
