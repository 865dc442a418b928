//! `tenterhook run`: agents cannot do what their agent file forbids, whatever rules and `--yes` say.

use crate::stage::{Ran, Test};

/// Runs an agent that calls every tool that writes, and one that reads.
fn try_everything(agents: &str) -> Ran {
    run(
        agents,
        "\
turns:
  - tool_calls: [{name: write_file, arguments: {path: written, content: a}}]
  - tool_calls: [{name: shell, arguments: {cmd: touch ran}}]
  - tool_calls: [{name: edit_file, arguments: {path: kept, old_text: old, new_text: new}}]
  - tool_calls: [{name: read_file, arguments: {path: kept}}]
  - text: done
",
    )
}

fn run(agents: &str, script: &str) -> Ran {
    Test::new()
        .args([
            "run",
            "go",
            "--yes",
            "--no-journal",
            "--hooks",
            "agents.yaml",
        ])
        .file("agents.yaml", agents)
        .file("kept", "old\n")
        .file("secret/key", "hidden\n")
        .file("open/note", "seen\n")
        .script(script)
        .run()
}

fn assert_unchanged(ran: &Ran) {
    assert!(!ran.path("work/written").exists(), "{}", ran.stdout);
    assert!(!ran.path("work/ran").exists(), "{}", ran.stdout);
    let kept = std::fs::read_to_string(ran.path("work/kept")).unwrap();
    assert_eq!(kept, "old\n");
}

fn assert_shows(ran: &Ran, parts: &[&str]) {
    for part in parts {
        assert!(ran.stdout.contains(part), "`{part}` in {}", ran.stdout);
    }
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
}

#[test]
fn an_agent_with_readonly_writes_no_file_and_runs_no_command() {
    for agents in [
        "agents: {root: {readonly: true}}",
        "agents: {root: {readonly: true, toolsets: [{type: filesystem}, {type: shell}]}}",
        "agents: {root: {toolsets: [{type: filesystem, readonly: true}]}}",
        "agents: {root: {use_toolsets: [files]}}\ntoolsets: {files: {type: filesystem, readonly: true}}",
    ] {
        let ran = try_everything(agents);
        assert_unchanged(&ran);
        assert_shows(
            &ran,
            &[
                "The tool `write_file` is disabled.",
                "The tool `shell` is disabled.",
                "The tool `edit_file` is disabled.",
                "● read_file kept\n    old\n",
            ],
        );
    }
}

#[test]
fn an_agent_with_readonly_cannot_have_a_subagent_write() {
    for subagent in [
        "",
        "  helper: {toolsets: [{type: shell}, {type: filesystem}]}\n",
    ] {
        let ran = run(
            &format!("agents:\n  root: {{readonly: true}}\n{subagent}"),
            "\
turns:
  - tool_calls: [{name: transfer_task, arguments: {agent: helper, task: write}}]
  - {for: helper, tool_calls: [{name: shell, arguments: {cmd: touch ran}}]}
  - {for: helper, tool_calls: [{name: write_file, arguments: {path: written, content: a}}]}
  - {for: helper, text: no}
  - text: done
",
        );
        assert_unchanged(&ran);
        assert_shows(
            &ran,
            &[
                "helper: shell touch ran\n    The tool `shell` is disabled.",
                "The tool `write_file` is disabled.",
            ],
        );
    }
}

#[test]
fn a_subagent_with_readonly_writes_nothing_while_the_root_agent_does() {
    let ran = run(
        "agents:\n  root: {toolsets: [{type: shell}]}\n  reader: {readonly: true}\n",
        "\
turns:
  - tool_calls: [{name: transfer_task, arguments: {agent: reader, task: write}}]
  - {for: reader, tool_calls: [{name: shell, arguments: {cmd: touch ran}}]}
  - {for: reader, text: no}
  - tool_calls: [{name: shell, arguments: {cmd: touch root_ran}}]
  - text: done
",
    );
    assert_unchanged(&ran);
    assert!(ran.path("work/root_ran").exists());
}

#[test]
fn a_hook_cannot_give_a_readonly_agent_a_tool_back() {
    let ran = run(
        "\
agents:
  root:
    readonly: true
    hooks:
      pre_tool_use: {hooks: {type: command, command: 'echo {\\\"permission_decision\\\": \\\"allow\\\"}'}}
",
        "turns:\n  - tool_calls: [{name: shell, arguments: {cmd: touch ran}}]\n  - text: done\n",
    );
    assert_unchanged(&ran);
    assert_shows(&ran, &["The tool `shell` is disabled."]);
}

#[test]
fn write_file_does_not_write_into_a_folder_of_deny_list() {
    let ran = try_everything("agents: {root: {toolsets: [{type: filesystem, deny_list: ['.']}]}}");
    assert_unchanged(&ran);
    assert!(!ran.stdout.contains("    old"), "{}", ran.stdout);
    assert!(
        ran.stdout
            .contains("outside the folders that this agent may use")
    );
}

#[test]
fn write_file_does_not_write_outside_of_allow_list() {
    let ran = try_everything(
        "agents: {root: {toolsets: [{type: filesystem, allow_list: [/nonexistent]}]}}",
    );
    assert_unchanged(&ran);
    assert!(!ran.stdout.contains("    old"), "{}", ran.stdout);
}

#[test]
fn every_file_tool_stays_within_its_folders() {
    let ran = run(
        "agents: {root: {toolsets: [{type: filesystem, allow_list: ['.'], deny_list: [secret]}]}}",
        "\
turns:
  - tool_calls: [{name: read_file, arguments: {path: open/../secret/key}}]
  - tool_calls: [{name: list_directory, arguments: {path: secret}}]
  - tool_calls: [{name: list_directory, arguments: {path: ..}}]
  - tool_calls: [{name: edit_file, arguments: {path: secret/key, old_text: hidden, new_text: b}}]
  - tool_calls: [{name: search, arguments: {pattern: hidden, path: secret}}]
  - tool_calls: [{name: search, arguments: {pattern: 'hidden|seen'}}]
  - text: done
",
    );
    let refusals = ran
        .stdout
        .matches("outside the folders that this agent may use");
    assert_eq!(refusals.count(), 5, "{}", ran.stdout);
    assert_shows(&ran, &["open/note:1: seen"]);
    assert!(!ran.stdout.contains("key:1"), "{}", ran.stdout);
    let key = std::fs::read_to_string(ran.path("work/secret/key")).unwrap();
    assert_eq!(key, "hidden\n");
}

#[test]
fn a_subagent_is_held_to_the_folders_of_the_agent_that_it_works_for() {
    let ran = run(
        "\
agents:
  root: {toolsets: [{type: filesystem, deny_list: [secret]}]}
  helper: {toolsets: [{type: filesystem}]}
",
        "\
turns:
  - tool_calls: [{name: transfer_task, arguments: {agent: helper, task: read}}]
  - {for: helper, tool_calls: [{name: read_file, arguments: {path: secret/key}}]}
  - {for: helper, text: no}
  - text: done
",
    );
    assert_shows(&ran, &["outside the folders that this agent may use"]);
    assert!(!ran.stdout.contains("hidden"), "{}", ran.stdout);
}

#[test]
fn a_repeated_call_ends_the_run_where_the_file_says() {
    let call = "  - tool_calls: [{name: read_file, arguments: {path: kept}}]\n";
    let script = format!("turns:\n{}  - text: done\n", call.repeat(3));
    let ran = run("agents: {root: {max_consecutive_tool_calls: 2}}", &script);
    assert_ne!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
    let all = format!("{}{}", ran.stdout, ran.stderr);
    assert!(
        all.contains("repeated the same call to `read_file`"),
        "{all}"
    );
    let ran = run("agents: {root: {}}", &script);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn a_file_with_a_budget_does_not_run() {
    let ran = run(
        "budget: {max_cost: 1}\nagents: {root: {}}",
        "turns: [{text: done}]",
    );
    assert_eq!((ran.stdout.as_str(), ran.status), ("", 3));
    assert!(
        ran.stderr.contains("`budget` restricts the agent"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_misspelt_permission_does_not_run() {
    let ran = run(
        "permisions: {deny: [shell]}\nagents: {root: {}}",
        "turns:\n  - tool_calls: [{name: shell, arguments: {cmd: touch ran}}]\n  - text: done\n",
    );
    assert_eq!((ran.stdout.as_str(), ran.status), ("", 3));
    assert!(
        ran.stderr.contains("did you mean `permissions`?"),
        "{}",
        ran.stderr
    );
    assert!(!ran.path("work/ran").exists());
}

/// A rule for a tool that exists here, but under another name or without that argument.
#[test]
fn a_deny_rule_that_misses_its_tool_does_not_run() {
    for rule in [
        "shell:command=*",
        "shell:Cmd=*",
        "bash",
        "Write_File",
        "search_files_content",
    ] {
        let ran = run(
            &format!("permissions: {{deny: ['{rule}']}}\nagents: {{root: {{}}}}"),
            "turns:\n  - tool_calls: [{name: shell, arguments: {cmd: touch ran}}]\n  - text: done\n",
        );
        assert_eq!(ran.status, 3, "{rule}: {}", ran.stderr);
        assert!(!ran.path("work/ran").exists(), "{rule}");
    }
}

#[test]
fn an_agent_without_a_name_has_redaction_of_results() {
    let ran = Test::new()
        .args(["fire", "tool_response_transform", "--hooks", "agents.yaml", "--json"])
        .file("agents.yaml", "agents: {root: {}}")
        .event(
            r#"{"tool_name": "shell", "tool_category": "shell", "tool_response": "ghp_0123456789abcdefghijABCDEFGHIJ012345"}"#,
        )
        .run();
    assert!(!ran.stdout.contains("\"ghp_0123456789"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("REDACTED"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}
