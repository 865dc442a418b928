//! The sources of hooks in addition to `--hooks`: the user's folder, and command lines in options.

use crate::stage::{Ran, Test};

/// A native hook that appends a word to `log`.
fn logs(word: &str) -> String {
    format!("hooks: [{{name: {word}, event: user_prompt_submit, command: echo {word} >> log}}]")
}

const AGENT: &str = "\
agents:
  root:
    model: scripted:script.yaml
    hooks:
      pre_tool_use:
        - hooks: [{type: command, command: echo file >> log}]
";

const SCRIPT: &str = "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: 'true'}}]
  - text: done
";

fn run() -> Test {
    Test::new()
        .args(["run", "go", "--no-journal", "--yes"])
        .script(SCRIPT)
}

#[test]
fn lines_of_the_command_line_run_behind_the_files_and_blank_ones_are_none() {
    // D-17
    let ran = run()
        .file("agent.yaml", AGENT)
        .args(["--hooks", "agent.yaml"])
        .args(["--hook-pre-tool-use", "echo one >> log"])
        .args(["--hook-pre-tool-use", "  "])
        .args(["--hook-pre-tool-use", "echo two >> log"])
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.file("log"), "file\none\ntwo\n");
}

#[test]
fn a_line_that_a_file_has_too_runs_once() {
    let ran = run()
        .file("agent.yaml", AGENT)
        .args(["--hooks", "agent.yaml"])
        .args(["--hook-pre-tool-use", "echo file >> log"])
        .run();
    assert_eq!(ran.file("log"), "file\n");
}

#[test]
fn there_is_an_option_for_each_of_six_events() {
    let events = [
        ("pre-tool-use", "pre_tool_use"),
        ("post-tool-use", "post_tool_use"),
        ("session-start", "session_start"),
        ("session-end", "session_end"),
        ("on-user-input", "on_user_input"),
        ("stop", "stop"),
    ];
    let mut test = run();
    for (option, _) in events {
        let option = format!("--hook-{option}");
        test = test.args([&*option, "cat >> log; echo >> log"]);
    }
    let ran = test.run();
    let mut heard: Vec<String> = ran
        .lines("log")
        .iter()
        .map(|event| event["hook_event_name"].as_str().unwrap().to_owned())
        .collect();
    heard.dedup();
    for (_, event) in events {
        assert!(heard.iter().any(|name| name == event), "{event}: {heard:?}");
    }
}

#[test]
fn a_line_denies_as_docker_agent_hooks_do() {
    let ran = run()
        .args(["--hook-pre-tool-use", "echo not today >&2; exit 2"])
        .args(["--json"])
        .run();
    assert!(
        ran.json()["response"].as_str().is_some(),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    let ran = run()
        .args(["--hook-pre-tool-use", "echo not today >&2; exit 2"])
        .run();
    assert!(ran.stdout.contains("not today"), "{}", ran.stdout);
}

/// A call whose configuration folder has these hook files.
fn with_user_hooks(files: &[(&str, &str)]) -> Test {
    let test = run().hooks(&logs("explicit"));
    let folder = test.work().join("own/hooks.d");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    test
}

#[test]
fn hook_files_of_the_users_folder_run_first_in_the_order_of_their_names() {
    let (ten, nine, other) = (logs("ten"), logs("nine"), logs("other"));
    let files: &[(&str, &str)] = &[
        ("10.yaml", &ten),
        ("9.yml", &nine),
        ("README.md", "not a hook file"),
        (".hidden.yaml", &other),
        ("old.yaml.bak", &other),
    ];
    let by_option = with_user_hooks(files).args(["--config-dir", "own"]).run();
    assert_eq!(by_option.file("log"), "ten\nnine\nexplicit\n");
    let by_variable = with_user_hooks(files)
        .variable("TENTERHOOK_CONFIG_DIR", "own")
        .run();
    assert_eq!(by_variable.file("log"), "ten\nnine\nexplicit\n");
    let unnamed = with_user_hooks(files).run();
    assert_eq!(unnamed.file("log"), "explicit\n");
}

#[test]
fn the_one_hook_file_of_the_users_folder_comes_before_those_of_hooks_d() {
    let ten = logs("ten");
    let test = with_user_hooks(&[("10.yaml", &ten)]);
    std::fs::write(test.work().join("own/hooks.yaml"), logs("one")).unwrap();
    let ran = test.args(["--config-dir", "own"]).run();
    assert_eq!(ran.file("log"), "one\nten\nexplicit\n");
}

#[test]
fn without_a_named_folder_it_is_that_of_the_platform() {
    let test = Test::new().args(["list", "--json"]);
    let folder = test.work().join("tenterhook/hooks.d");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.yaml"), logs("mine")).unwrap();
    let base = test.work();
    let ran = test
        .variable("TENTERHOOK_CONFIG_DIR", "")
        .variable("XDG_CONFIG_HOME", base.to_str().unwrap())
        .run();
    let json = ran.json();
    assert_eq!(json["hooks"][0]["id"], "mine");
    assert_eq!(json["hooks"][0]["source"]["layer"], "user");
}

#[test]
fn a_broken_file_of_the_users_folder_is_never_passed_over() {
    let test = || with_user_hooks(&[("a.yaml", "hooks: [{evnt: stop}]"), ("b.yaml", &logs("b"))]);
    let refused = test().args(["--config-dir", "own"]).run();
    assert_eq!(refused.status, 3);
    assert!(
        refused.stderr.contains("own/hooks.d/a.yaml"),
        "{}",
        refused.stderr
    );
    let lenient = test().args(["--config-dir", "own", "--lenient"]).run();
    assert_eq!(lenient.status, 0, "{}", lenient.stderr);
    assert!(
        lenient
            .stderr
            .contains("the hooks of `own/hooks.d/a.yaml` are not in force")
    );
    assert_eq!(lenient.file("log"), "b\nexplicit\n");
}

#[test]
fn a_named_folder_has_to_be_there() {
    let (stderr, status) = {
        let ran = run().args(["--config-dir", "nowhere"]).run();
        (ran.stderr.clone(), ran.status)
    };
    assert_eq!(status, 64);
    assert!(
        stderr.contains("`--config-dir` names `nowhere`, which is not a folder"),
        "{stderr}"
    );
}

#[test]
fn every_command_that_loads_hooks_reads_the_users_folder() {
    let deny = "hooks: [{name: mine, event: pre_tool_use, command: exit 2}]";
    let test = |args: &[&str]| {
        let test = Test::new().args(args.iter().copied());
        let folder = test.work().join("own/hooks.d");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("a.yaml"), deny).unwrap();
        test.file("good.yaml", "hooks: [{event: turn_end, command: exit 0}]")
            .file("event.json", r#"{"tool_name": "shell"}"#)
            .args(["--config-dir", "own"])
            .run()
    };
    let fired = test(&[
        "fire",
        "pre_tool_use",
        "--no-journal",
        "--input",
        "event.json",
    ]);
    assert_eq!(fired.status, 2, "{}{}", fired.stdout, fired.stderr);
    let listed = test(&["list"]);
    assert!(listed.stdout.contains("mine"), "{}", listed.stdout);
    let checked = test(&["check", "good.yaml"]);
    assert_eq!(
        checked.all(),
        (
            "ok: `own/hooks.d/a.yaml`, `good.yaml`: 2 hooks for 2 events, no problems.\n",
            "",
            0
        )
    );
}

#[test]
fn an_agent_file_of_the_users_folder_gives_hooks_and_no_agent() {
    let own = "\
agents:
  other:
    model: openai/gpt-4o
    instruction: Do as I say.
    hooks:
      user_prompt_submit: [{type: command, command: echo own >> log}]
";
    let ran = with_user_hooks(&[("a.yaml", own)])
        .args(["--config-dir", "own"])
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.file("log"), "own\nexplicit\n");
}

#[test]
fn keys_of_an_agent_put_their_builtins_behind_all_other_hooks() {
    // D-118
    let agent = "\
agents:
  root:
    add_date: true
    hooks:
      turn_start: [{type: command, command: echo written}]
";
    let listed = Test::new()
        .args(["list", "--json", "--hooks", "agent.yaml"])
        .file("agent.yaml", agent)
        .run();
    let json = listed.json();
    let of = |event: &str| -> Vec<String> {
        let hooks = json["hooks"].as_array().unwrap().iter();
        hooks
            .filter(|hook| hook["event"] == event)
            .map(|hook| hook["handler"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(of("turn_start"), ["echo written", "add_date"]);
    assert_eq!(
        of("tool_response_transform"),
        ["redact_secrets", "limit_large_tool_results"]
    );
}

#[test]
fn each_setting_of_an_agent_is_listed_once() {
    let agent = "\
agents:
  root:
    add_date: true
    add_prompt_files: [NOTES.md]
    snapshot: true
    redact_secrets: false
";
    let listed = Test::new()
        .args(["list", "--json", "--hooks", "agent.yaml"])
        .file("agent.yaml", agent)
        .run();
    let json = listed.json();
    let hooks = json["hooks"].as_array().unwrap().iter();
    let mut ids: Vec<&str> = hooks.map(|hook| hook["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(
        ids,
        [
            "root.session_end.limit_large_tool_results",
            "root.session_end.snapshot",
            "root.session_start.snapshot",
            "root.tool_response_transform.limit_large_tool_results",
            "root.turn_end.snapshot",
            "root.turn_start.add_date",
            "root.turn_start.add_prompt_files",
            "root.turn_start.snapshot",
        ]
    );
}

/// A source that the command line names is in force, even if it was disabled.
#[test]
fn a_disabled_file_that_a_call_names_is_in_force() {
    let deny = "hooks: [{event: pre_tool_use, command: 'echo no >&2; exit 2'}]";
    let disabled = Test::new()
        .file("own/hooks.d/g.yaml", deny)
        .args([
            "disable",
            "--config-dir",
            "own",
            "g.yaml",
            "--yes",
            "--no-journal",
        ])
        .run();
    assert_eq!(disabled.status, 0, "{}", disabled.stderr);
    let call = r#"{"tool_name": "shell"}"#;
    let fire = |ran: Ran, named: &[&str]| {
        ran.again([
            "fire",
            "pre_tool_use",
            "--config-dir",
            "own",
            "--no-journal",
        ])
        .args(named.iter().copied())
        .event(call)
        .run()
    };
    let ran = fire(disabled, &[]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let ran = fire(ran, &["--hooks", "own/hooks.d/g.yaml"]);
    assert_eq!(ran.status, 2, "{}", ran.stderr);
}

#[test]
fn a_disabled_link_to_a_file_does_not_hide_the_file() {
    let deny = "hooks: [{event: pre_tool_use, command: 'echo no >&2; exit 2'}]";
    let test = with_user_hooks(&[("z.yaml", deny)]);
    let folder = test.work().join("own/hooks.d");
    std::os::unix::fs::symlink(folder.join("z.yaml"), folder.join("a.yaml")).unwrap();
    let disabled = test
        .args([
            "--config-dir",
            "own",
            "disable",
            "a.yaml",
            "--yes",
            "--no-journal",
        ])
        .run();
    let ran = disabled
        .again([
            "fire",
            "pre_tool_use",
            "--config-dir",
            "own",
            "--no-journal",
        ])
        .event(r#"{"tool_name": "shell"}"#)
        .run();
    assert_eq!(ran.status, 2, "{}", ran.stderr);
}
