//! `tenterhook run` with prompts from stdin, subagents and compaction.

use serde_json::Value;

use crate::stage::Test;

#[test]
fn each_line_of_stdin_is_a_prompt_of_one_session() {
    let ran = Test::new()
        .args(["run", "--no-journal"])
        .stdin("one\n\n  two\n/quit\nthree\n")
        .script("turns: [{text: first}, {text: second}]")
        .hooks(
            "hooks:\n  - {event: user_prompt_submit, command: cat >> prompts.log; echo >> prompts.log}\n  \
             - {event: [session_start, session_end], command: cat >> session.log; echo >> session.log}\n",
        )
        .run();
    assert_eq!(ran.all(), ("first\nsecond\n", "", 0));
    let prompts = ran.lines("prompts.log");
    let texts: Vec<&Value> = prompts.iter().map(|event| &event["prompt"]).collect();
    assert_eq!(texts, ["one", "two"]);
    let session = ran.lines("session.log");
    assert_eq!(session.len(), 2);
    assert_eq!(session[0]["session_id"], prompts[1]["session_id"]);
}

#[test]
fn the_user_compacts_the_conversation() {
    let ran = Test::new()
        .args(["run", "--no-journal"])
        .stdin("/compact\nhello\n/compact\nwhat did I say?\n")
        .script("turns: [{text: hi}, {summary: The user said hello.}, {text: you said hello}]")
        .hooks(
            "hooks:\n  - {event: after_compaction, command: cat > compacted.json}\n  \
             - {event: before_llm_call, command: cat > asked.json}\n",
        )
        .run();
    assert_eq!(ran.stderr, "Not compacted: there is nothing to compact\n");
    assert!(
        ran.stdout.starts_with("hi\nCompacted a conversation of "),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.ends_with("you said hello\n"), "{}", ran.stdout);
    let compacted: Value = serde_json::from_str(&ran.file("compacted.json")).unwrap();
    assert_eq!(compacted["summary"], "The user said hello.");
    let asked = ran.file("asked.json");
    assert!(asked.contains("The user said hello."), "{asked}");
    assert_eq!(ran.status, 0);
}

#[test]
fn a_hook_keeps_the_conversation_as_it_is() {
    let ran = Test::new()
        .args(["run", "--no-journal"])
        .stdin("hello\n/compact\n")
        .script("turns: [{text: hi}]")
        .hooks("hooks: [{event: pre_compact, command: \"echo not now >&2; exit 2\"}]")
        .run();
    assert_eq!(ran.stdout, "hi\n");
    assert!(
        ran.stderr
            .ends_with("Not compacted: a pre_compact hook blocked the compaction: not now\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.status, 0);
}

const AGENTS: &str = "\
agents:
  root:
    model: scripted:script.yaml
    sub_agents: [helper]
  helper:
    description: looks things up
    instruction: You look things up.
  stranger:
    description: is not asked
";

#[test]
fn an_agent_file_names_the_model_and_the_agents_that_take_tasks() {
    let ran = Test::new()
        .args(["run", "go", "--no-journal", "--hooks", "agents.yaml"])
        .file("agents.yaml", AGENTS)
        .file(
            "script.yaml",
            "\
turns:
  - tool_calls: [{name: transfer_task, arguments: {agent: helper, task: look it up}}]
  - for: helper
    tool_calls: [{name: list_directory, arguments: {path: .}}]
  - for: helper
    text: it is in the script
  - tool_calls: [{name: transfer_task, arguments: {agent: stranger, task: look it up}}]
  - text: found
",
        )
        .run();
    let expected = "\
● transfer_task {\"agent\":\"helper\",\"task\":\"look it up\"}
● helper: list_directory .
    agents.yaml
    script.yaml
it is in the script
    it is in the script
";
    assert!(ran.stdout.starts_with(expected), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("\"agent\":\"stranger\""),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.ends_with("\nfound\n"), "{}", ran.stdout);
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
}

#[test]
fn the_timeline_shows_every_hook_that_ran() {
    let ran = Test::new()
        .args(["run", "go", "--no-journal", "--timeline"])
        .script("turns: [{text: hi}]")
        .hooks(
            "hooks:\n  - {name: watch, event: turn_end, command: cat}\n  \
             - {name: context, event: user_prompt_submit, command: echo be brief}\n",
        )
        .run();
    for line in [
        "    user_prompt_submit  context         context [TIME]\n",
        "    turn_end            watch           no opinion [TIME]\n",
    ] {
        assert!(ran.stdout.contains(line), "{}", ran.stdout);
    }
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
}

#[test]
fn tools_work_in_the_folder_that_the_call_names() {
    let test = Test::new()
        .args(["run", "go", "--no-journal", "--yes", "--cwd", "below"])
        .script(
            "turns: [{tool_calls: [{name: shell, arguments: {cmd: touch here}}]}, {text: done}]",
        )
        .hooks("hooks: [{event: session_start, command: touch hooked}]");
    std::fs::create_dir(test.work().join("below")).unwrap();
    let ran = test.run();
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
    for name in ["below/here", "below/hooked"] {
        assert!(ran.path("work").join(name).exists(), "{name}");
    }
}

#[test]
fn several_prompts_in_json_are_one_object_and_the_worst_status() {
    let ran = Test::new()
        .args(["run", "--no-journal", "--json"])
        .stdin("one\n/compact\ntwo\n")
        .script("turns: [{error: the service is gone}, {summary: short}, {text: second}]")
        .run();
    let report = ran.json();
    let runs = report["runs"].as_array().unwrap();
    let ends: Vec<&Value> = runs.iter().map(|run| &run["end"]).collect();
    assert_eq!(ends, ["error", "completed"]);
    assert_eq!(report["response"], "second");
    assert_eq!(runs[0]["prompt"], "one");
    assert_eq!(ran.status, 4);
}

#[test]
fn a_session_without_prompts_in_json_is_one_object() {
    let ran = Test::new()
        .args(["run", "--no-journal", "--json"])
        .stdin("")
        .script("turns: [{text: hi}]")
        .run();
    let report = ran.json();
    assert_eq!(report["runs"], serde_json::json!([]));
    for key in ["end", "reason", "response", "turns", "usage"] {
        assert_eq!(report[key], Value::Null, "{key}");
    }
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
}

#[test]
fn a_prompt_that_is_no_text_is_an_error() {
    let ran = Test::new()
        .args(["run", "--no-journal"])
        .stdin_bytes(b"one\ntw\xff\nthree\n")
        .script("turns: [{text: first}, {text: second}]")
        .hooks("hooks: [{event: session_end, command: touch ended}]")
        .run();
    assert_eq!(
        ran.all(),
        (
            "first\n",
            "error: cannot read standard input\n  caused by: stream did not contain valid UTF-8\n",
            1
        )
    );
    assert!(ran.path("work/ended").exists());
}

#[test]
fn help_names_every_command_and_a_wrong_form_is_corrected() {
    let ran = Test::new()
        .args(["run", "--no-journal"])
        .stdin("/help\n/tree 1 2 3\n/quit\nnever asked\n")
        .script("turns: []")
        .run();
    let (stdout, stderr, status) = ran.all();
    for way in [
        "/compact [INSTRUCTIONS]",
        "/resume ID",
        "/tree ENTRY [summary [INSTRUCTIONS]]",
        "/quit",
    ] {
        assert!(
            stdout.contains(&format!("{way}  ")) || stdout.contains(&format!("{way}\n")),
            "{stdout}"
        );
    }
    assert_eq!(
        (stderr, status),
        (
            "Expected `/tree` or `/tree ENTRY [summary [INSTRUCTIONS]]`; `/tree` shows the entries\n",
            64
        )
    );
}

#[test]
fn an_unknown_command_is_no_prompt() {
    let ran = Test::new()
        .args(["run", "--no-journal"])
        .stdin("/compct\n/tmp/a is a path\n")
        .script("turns: [{text: first}]")
        .run();
    assert_eq!(
        ran.all(),
        (
            "first\n",
            "Unknown command `/compct`. Available: `/compact`, `/new`, `/resume`, `/fork`, `/tree`, `/model`, `/thinking`, `/label`, `/name`, `/hooks`, `/reload`, `/help`, `/quit`.\n",
            64
        )
    );
}

#[test]
fn a_root_agent_of_the_name_helper_has_a_helper_of_another_name() {
    let ran = Test::new()
        .args(["run", "go", "--no-journal", "--hooks", "agents.yaml"])
        .file(
            "agents.yaml",
            "agents: {helper: {model: \"scripted:script.yaml\"}}",
        )
        .file("script.yaml", "turns: [{text: done}]")
        .run();
    assert_eq!(ran.all(), ("done\n", "", 0));
}

#[test]
fn agents_have_the_tools_and_rules_of_their_file() {
    let ran = Test::new()
        .args(["run", "go", "--no-journal", "--hooks", "agents.yaml"])
        .file(
            "agents.yaml",
            "\
agents:
  root:
    model: scripted:script.yaml
    toolsets: [{type: shell}, {type: filesystem, tools: [read_file]}]
    sub_agents: [reader]
  reader:
    toolsets: [{type: filesystem}]
permissions:
  allow: [\"shell:cmd=echo *\"]
  deny: [\"read_file:path=*secret*\"]
",
        )
        .file(
            "script.yaml",
            "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: echo hello}}]
  - tool_calls: [{name: list_directory, arguments: {path: .}}]
  - tool_calls: [{name: transfer_task, arguments: {agent: reader, task: read}}]
  - for: reader
    tool_calls: [{name: shell, arguments: {cmd: echo no}}]
  - for: reader
    tool_calls: [{name: read_file, arguments: {path: secret.txt}}]
  - for: reader
    text: no
  - text: done
",
        )
        .run();
    for part in [
        "● shell echo hello\n    hello\n",
        "● list_directory .\n    The tool `list_directory` is disabled.\n",
        "● reader: shell echo no\n    The tool `shell` is disabled.\n",
        "● reader: read_file secret.txt\n  denied: the permission rule `read_file(path=*secret*)` denies it\n",
    ] {
        assert!(ran.stdout.contains(part), "`{part}` in {}", ran.stdout);
    }
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
}

#[test]
fn agents_work_in_the_background_where_their_file_gives_them_the_tools() {
    let ran = Test::new()
        .args([
            "run",
            "go",
            "--yes",
            "--no-journal",
            "--hooks",
            "agents.yaml",
        ])
        .file(
            "agents.yaml",
            "\
agents:
  root:
    model: scripted:script.yaml
    toolsets: [{type: background_agents, tools: [run_background_agent, list_background_agents]}]
    sub_agents: [helper, reader]
  helper:
    toolsets: [{type: shell}]
  reader:
    toolsets: [{type: filesystem}]
",
        )
        .file(
            "script.yaml",
            "\
turns:
  - tool_calls: [{name: run_background_agent, arguments: {agent: helper, task: tidy}}]
  - for: helper
    text: tidied
  - tool_calls: [{name: list_background_agents, arguments: {}}]
  - tool_calls: [{name: view_background_agent, arguments: {task_id: x}}]
  - tool_calls: [{name: transfer_task, arguments: {agent: reader, task: read}}]
  - for: reader
    tool_calls: [{name: list_background_agents, arguments: {}}]
  - for: reader
    text: no
  - text: done
",
        )
        .run();
    for part in [
        "    The task runs in the background as `",
        " helper ",
        "    The tool `view_background_agent` is disabled.\n",
        "● reader: list_background_agents\n    The tool `list_background_agents` is disabled.\n",
    ] {
        assert!(ran.stdout.contains(part), "`{part}` in {}", ran.stdout);
    }
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
}

#[test]
fn what_a_model_and_a_tool_print_does_not_move_the_cursor() {
    let ran = Test::new()
        .args(["run", "go", "--no-journal", "--yes", "--color", "always"])
        .script(
            "turns:\n  - text: \"a\\e[2Kb\"\n    tool_calls: [{name: shell, arguments: {cmd: \"printf 'c\\\\033[2Kd' #\\r● shell ls\"}}]\n  \
             - text: done\n",
        )
        .run();
    assert!(ran.stdout.contains("a\\u{1b}[2Kb"), "{}", ran.stdout);
    assert!(ran.stdout.contains("#\\r● shell ls"), "{}", ran.stdout);
    assert!(ran.stdout.contains("c\\u{1b}[2Kd"), "{}", ran.stdout);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}
