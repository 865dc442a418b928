//! `tenterhook run`: rules, `--yes` and hooks decide about a tool call when no one can be asked.

use crate::stage::{Test, without_denial_id};

/// Returns whether the model's command ran, and the text that a person saw.
fn write_something(args: &[&str], hooks: &str) -> (bool, String) {
    let ran = Test::new()
        .args(["run", "go", "--no-journal"])
        .args(args.iter().copied())
        .script(
            "turns:\n  - tool_calls: [{name: shell, arguments: {cmd: touch ran}}]\n  - text: done\n",
        )
        .hooks(hooks)
        .run();
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
    (
        ran.path("work/ran").exists(),
        without_denial_id(&ran.stdout),
    )
}

fn denied(reason: &str) -> (bool, String) {
    let text = format!("● shell touch ran\n  denied{reason}\ndone\n");
    (false, text)
}

fn allowed() -> (bool, String) {
    (
        true,
        "● shell touch ran\n    [no output]\ndone\n".to_owned(),
    )
}

/// The message if only a person could have allowed a call.
const UNANSWERED: &str = ": it needs approval and no one is there to give it; to allow it, pass `--allow shell` or `--yes`";

const NO_HOOKS: &str = "hooks: []";

#[test]
fn nobody_agrees_where_nobody_is() {
    assert_eq!(write_something(&[], NO_HOOKS), denied(UNANSWERED));
}

#[test]
fn a_rule_allows_what_it_matches() {
    assert_eq!(write_something(&["--allow", "shell"], NO_HOOKS), allowed());
    assert_eq!(
        write_something(&["--allow", "shell(cmd=touch *)"], NO_HOOKS),
        allowed()
    );
    assert_eq!(
        write_something(
            &["--allow", "shell(cmd=ls *)", "--allow", "read_file"],
            NO_HOOKS
        ),
        denied(UNANSWERED)
    );
}

#[test]
fn yes_is_an_answer_to_every_question() {
    assert_eq!(write_something(&["--yes"], NO_HOOKS), allowed());
}

#[test]
fn a_rule_that_denies_beats_yes_and_rules_that_allow() {
    let rule = ["--yes", "--allow", "shell", "--deny", "shell(cmd=touch *)"];
    assert_eq!(
        write_something(&rule, NO_HOOKS),
        denied(": the permission rule `shell(cmd=touch *)` denies it")
    );
}

#[test]
fn a_hook_that_denies_beats_yes_and_rules_that_allow() {
    for event in ["tool_guard", "pre_tool_use"] {
        let hooks = format!(
            "hooks: [{{name: guard, event: {event}, command: \"echo not here >&2; exit 2\"}}]"
        );
        for args in [&["--yes"][..], &["--allow", "shell"]] {
            assert_eq!(
                write_something(args, &hooks),
                denied(&format!(
                    " by hook `guard` ({event}): not here\n    \
                     If this was wrong, the user can run `tenterhook allow [ID] --once`."
                ))
            );
        }
    }
}

#[test]
fn a_hook_that_asks_is_not_answered_by_yes() {
    let hooks = r#"hooks: [{name: careful, event: pre_tool_use, command: "echo '{\"decision\":\"ask\"}'"}]"#;
    let (has_run, text) = write_something(&["--yes"], hooks);
    assert!(!has_run, "{text}");
    assert!(text.contains("  denied"), "{text}");
}

#[test]
fn a_hook_answers_in_the_place_of_the_user() {
    let hooks = r#"hooks: [{name: proxy, event: permission_request, command: "echo '{\"decision\":\"allow\"}'"}]"#;
    assert_eq!(write_something(&[], hooks), allowed());
}

#[test]
fn a_guard_that_breaks_denies_whatever_the_rules_say() {
    let hooks = "hooks: [{name: guard, event: tool_guard, command: exit 1}]";
    let (has_run, text) = write_something(&["--yes", "--allow", "shell"], hooks);
    assert!(!has_run, "{text}");
    assert!(
        text.contains("hook \"guard\": exited with status 1"),
        "{text}"
    );
}

#[test]
fn a_rule_that_can_match_nothing_is_refused_or_warned_of() {
    let run = |rule: &[&str]| {
        Test::new()
            .args(["run", "go", "--no-journal"])
            .args(rule.iter().copied())
            .script("turns: [{text: done}]")
            .run()
    };
    let tools = "`shell`, `read_file`, `write_file`, `edit_file`, `list_directory`, `search`, `transfer_task`, `run_background_agent`, `list_background_agents`, `view_background_agent`, `stop_background_agent`";
    for flag in ["--deny", "--ask"] {
        let expected = format!("error: the rule `shel` matches no tool, expected one of {tools}\n");
        assert_eq!(run(&[flag, "shel"]).refusal(), (expected.as_str(), 64));
    }
    let ran = run(&["--allow", "shell(command=ls)"]);
    let expected = "warning: the rule `shell(command=ls)` names the argument `command`, which its tool does not have, \
                    expected one of `cmd`, `cwd`, `timeout`\n";
    assert_eq!(ran.all(), ("done\n", expected, 0));
}

#[test]
fn a_tool_is_run_again_where_the_call_says_so() {
    let run = |attempts: &str| {
        Test::new()
            .args(["run", "go", "--no-journal", "--yes", "--attempts", attempts])
            .script(
                "turns:\n  - tool_calls: [{name: shell, arguments: {cmd: 'test -e ran || { touch ran; exit 3; }'}}]\n  - text: done\n",
            )
            .run()
    };
    let ran = run("shell=2");
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
    assert!(ran.stdout.contains("[no output]"), "{}", ran.stdout);
    let refused = run("fly=2");
    assert_eq!(refused.status, 64);
    assert!(
        refused.stderr.contains("unknown tool `fly`")
            && refused.stderr.contains("available: `shell`, `read_file`"),
        "{}",
        refused.stderr
    );
}
