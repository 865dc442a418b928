//! Folders of executables as a user sees them: `list`, `run` and `explain`.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::stage::Test;

const SCRIPT: &str = "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: echo secret}}]
  - text: done
";

const SH: &str = "#!/bin/sh
[ \"$1\" = hook ] && { echo before_tool_call; exit; }
cat > sh.json
";

const PYTHON: &str = "#!/usr/bin/env python3
import json, sys
if sys.argv[1] == 'hook':
    print('after_tool_call')
    sys.exit()
event = json.load(sys.stdin)
output = event['tool_output']
output['metadata']['output'] = output['metadata']['output'].replace('secret', 'REDACTED')
print(json.dumps({'output': output}))
";

const NODE: &str = "#!/usr/bin/env node
if (process.argv[2] === 'hook') {
  console.log('agent_stop');
} else {
  const event = JSON.parse(require('fs').readFileSync(0, 'utf8'));
  require('fs').writeFileSync('node.json', JSON.stringify(event));
}
";

/// A program without an interpreter.
const COMPILED: &str = r#"
use std::io::Read;
fn main() {
    if std::env::args().nth(1).as_deref() == Some("hook") {
        println!("user_message_send");
        return;
    }
    let mut event = String::new();
    std::io::stdin().read_to_string(&mut event).unwrap();
    std::fs::write("compiled.json", event).unwrap();
}
"#;

/// Creates a user whose global folder has a hook in each of four languages.
fn four_languages() -> Test {
    let test = Test::new()
        .executable("../home/.kodelet/hooks/in-sh", SH)
        .executable("../home/.kodelet/hooks/in-python", PYTHON)
        .executable("../home/.kodelet/plugins/org@repo/hooks/in-node", NODE)
        .file("compiled.rs", COMPILED);
    let compiled = test.work().join("../home/.kodelet/hooks/compiled");
    let built = Command::new("rustc")
        .arg(test.work().join("compiled.rs"))
        .arg("-o")
        .arg(compiled)
        .status();
    assert!(built.unwrap().success());
    test
}

#[test]
fn executables_of_a_folder_are_listed() {
    let ran = four_languages().args(["list"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for part in [
        "  1  compiled  ",
        "  1  org/repo/in-node  ",
        "  1  in-sh  ",
        "  1  in-python  ",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let json = ran.again(["list", "--json"]).run().json();
    let hooks = json["hooks"].as_array().unwrap();
    let find = |id: &str| hooks.iter().find(|hook| hook["id"] == id).unwrap();
    for (id, event) in [
        ("compiled", "user_prompt_submit"),
        ("in-sh", "pre_tool_use"),
        ("in-python", "post_tool_use"),
        ("org/repo/in-node", "stop"),
    ] {
        let hook = find(id);
        assert_eq!(
            (&hook["event"], &hook["trust"]),
            (&event.into(), &"user".into())
        );
        assert_eq!(hook["source"]["layer"], "user");
    }
}

// K-H21: the model, the session and the screen get the result as a hook changed it.
#[test]
fn executables_of_a_folder_run_in_a_session() {
    let ran = four_languages()
        .args(["run", "go", "--yes", "--no-journal"])
        .script(SCRIPT)
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let json = |name: &str| -> Value { serde_json::from_str(&ran.file(name)).unwrap() };
    assert_eq!(json("compiled.json")["message"], "go");
    let called = json("sh.json");
    assert_eq!(called["event"], "before_tool_call");
    assert_eq!(called["tool_input"]["command"], "echo secret");
    assert_eq!(called["invoked_by"], "main");
    let stopped = json("node.json");
    assert_eq!(stopped["conv_id"], called["conv_id"]);
    let messages = stopped["messages"].to_string();
    assert!(messages.contains("REDACTED"), "{messages}");
}

#[test]
fn the_same_start_asks_no_executable_again() {
    let asks = "#!/bin/sh\n[ \"$1\" = hook ] && echo x >> \"$HOME/asked\" && echo turn_end\n";
    let ran = Test::new()
        .executable("../home/.kodelet/hooks/hook", asks)
        .args(["list"])
        .run();
    assert_eq!(
        ran.again(["list"])
            .run()
            .path("home/asked")
            .metadata()
            .unwrap()
            .len(),
        2
    );
}

/// Creates folders with one executable for each reason to run or not to run.
fn folders_of_every_kind() -> Test {
    let hook = |event: &str| format!("#!/bin/sh\n[ \"$1\" = hook ] && echo {event}\n");
    let test = Test::new()
        .executable("../home/.kodelet/hooks/guard", &hook("before_tool_call"))
        .executable("../home/.kodelet/hooks/other", &hook("turn_end"))
        .executable("../home/.kodelet/hooks/off.disable", &hook("turn_end"))
        .executable(
            "../home/.kodelet/hooks/broken",
            "#!/bin/sh\necho oh no >&2; exit 3\n",
        )
        .executable(
            "../home/.kodelet/plugins/o@r/hooks/guard",
            &hook("before_tool_call"),
        )
        .executable("../config/hooks/guard", &hook("pre_tool_use"))
        .executable(".kodelet/hooks/guard", &hook("before_tool_call"))
        .executable(".kodelet/hooks/late", &hook("before_tool_call"))
        .executable("../home/.kodelet/hooks/late", &hook("before_tool_call"))
        .executable(".kodelet/hooks/README.md", "text");
    let readme = test.work().join(".kodelet/hooks/README.md");
    fs::set_permissions(&readme, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    test
}

#[test]
fn explain_says_of_every_file_why_it_runs_or_not() {
    let test = folders_of_every_kind();
    let ran = test.args(["trust", "late"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let ran = ran
        .again([
            "explain",
            "pre_tool_use",
            "--tool",
            "read_file",
            "--color",
            "never",
        ])
        .hooks("hooks: [{name: shells, event: pre_tool_use, matcher: shell, command: 'true'}]")
        .run();
    let expected = [
        "+  guard        runs: executable [DIR]/config/hooks/guard",
        "+  late         runs: executable .kodelet/hooks/late, sees `file_read {\"file_path\":\"<path>\"}`",
        "+  guard        runs: executable [DIR]/home/.kodelet/hooks/guard",
        "+  o/r/guard    runs: executable [DIR]/home/.kodelet/plugins/o@r/hooks/guard",
        "-  shells       its matcher `shell` does not match `read_file`",
        "-  README.md    not executable",
        "-  guard        untrusted: never approved in this project",
        "-  broken       broken: the executable was called with `hook` to print the name of its event, but it ended with exit status 3: oh no",
        "-  late         shadowed by [DIR]/work/.kodelet/hooks/late",
        "-  off.disable  disabled by its name",
        "-  other        runs for turn_end, not for this event",
        "pre_tool_use of `read_file`: 4 hooks would run, 7 would not.",
    ];
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{}", ran.stdout);
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{expected}\n{}", ran.stdout);
    }
    assert_eq!(ran.status, 3, "one of them is broken");
}

#[test]
fn explain_shows_under_which_name_a_hook_sees_the_tool() {
    let ran = folders_of_every_kind().args(["trust", "late"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let ran = ran
        .again(["explain", "pre_tool_use", "--tool", "read_file", "--json"])
        .run();
    assert_eq!(ran.status, 3);
    let json = ran.json();
    assert_eq!(json["broken"].as_array().unwrap().len(), 1);
    let runs = json["hooks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|hook| hook["runs"] == true);
    let seen: Vec<&Value> = runs.map(|hook| &hook["sees"]["tool"]).collect();
    assert_eq!(
        seen,
        [
            &Value::Null,
            &"file_read".into(),
            &"file_read".into(),
            &"file_read".into()
        ]
    );
    // A tool is known under the name of every system.
    let ran = ran
        .again([
            "explain",
            "pre_tool_use",
            "--tool",
            "bash",
            "--color",
            "never",
        ])
        .run();
    assert!(
        ran.stdout.contains("pre_tool_use of `shell`: "),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("sees `bash {\"command\":\"<cmd>\"}`"),
        "{}",
        ran.stdout
    );
}

#[test]
fn explain_refuses_what_no_matcher_looks_at() {
    for (args, message) in [
        (
            ["explain", "turn_start", "--tool", "bash"],
            "`turn_start` is not a tool event",
        ),
        (
            ["explain", "turn_start", "--subject", "x"],
            "`turn_start` has no subject for matchers",
        ),
    ] {
        let ran = Test::new().args(args).run();
        let (stderr, status) = ran.refusal();
        assert!(stderr.contains(message) && status == 64, "{stderr}");
    }
}
