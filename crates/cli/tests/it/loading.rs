//! A guard that cannot be loaded has failed. This tests every kind of source, as a user sees it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::stage::{Ran, Test};

const SESSION: &str = "turns: [{text: done}]";

/// Writes a file into the test's folder, for example `config/hooks/guard.py`.
fn write(place: &Test, path: &str, text: &str, mode: u32) {
    let path = place.work().join("..").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
}

/// A user with one source of hooks.
fn with(path: &str, text: &str, mode: u32) -> Test {
    let place = Test::new();
    write(&place, path, text, mode);
    place
}

fn run(test: Test) -> Ran {
    run_with(test, &[])
}

fn run_with(test: Test, options: &[&str]) -> Ran {
    test.args(["run", "go", "--yes", "--no-journal"])
        .args(options.iter().copied())
        .script(SESSION)
        .run()
}

/// Runs the agent and fires an event with one broken source. Both refuse, and name the file, the problem and both
/// remedies.
fn refuses(path: &str, text: &str, mode: u32, problem: &str) {
    let fired = with(path, text, mode)
        .args(["fire", "pre_tool_use", "--no-journal"])
        .event(r#"{"tool_name": "shell", "tool_input": {"cmd": "ls"}}"#)
        .run();
    assert!(
        [2, 3].contains(&fired.status),
        "{path}: {} {}",
        fired.status,
        fired.stdout
    );
    let ran = run(with(path, text, mode));
    assert_eq!(ran.status, 3, "{path}: {}", ran.stdout);
    assert!(!ran.stdout.contains("done"), "{path}: the model was asked");
    let name = Path::new(path).file_name().unwrap().to_str().unwrap();
    for stderr in [&fired.stderr, &ran.stderr] {
        assert!(stderr.contains(problem), "{path}: {problem}\n{stderr}");
        assert!(stderr.contains(name), "{path}: {stderr}");
        assert!(stderr.contains("hint: fix the file"), "{path}: {stderr}");
        assert!(stderr.contains("tenterhook disable '"), "{path}: {stderr}");
    }
    let lenient = run_with(with(path, text, mode), &["--lenient"]);
    assert_eq!(lenient.status, 0, "{path}: {}", lenient.stderr);
    assert!(
        lenient.stderr.contains(problem),
        "{path}: {}",
        lenient.stderr
    );
    assert!(
        lenient.stderr.contains("are not in force"),
        "{path}: {}",
        lenient.stderr
    );
}

const PI: &str = "home/.pi/agent/extensions";
const OPERATOR: &str = "home/.operator/profiles/default/hooks";
const KODELET: &str = "home/.kodelet/hooks";

#[test]
fn a_script_with_a_syntax_error_refuses() {
    refuses(
        "config/hooks/guard.py",
        "x = 1\ndef x(:\n",
        0o644,
        "guard.py:2:1",
    );
    refuses(
        "config/hooks/guard.mjs",
        "const = 1;\n",
        0o644,
        "SyntaxError",
    );
    refuses(
        &format!("{OPERATOR}/guard.py"),
        "hooks = [\n",
        0o644,
        "SyntaxError",
    );
    let typescript = "export default (pi) => {\n  const x: number = ;\n};\n";
    refuses(&format!("{PI}/guard.ts"), typescript, 0o644, "guard.ts:2:3");
}

#[test]
fn a_script_with_a_missing_import_refuses() {
    refuses(
        "config/hooks/guard.py",
        "import nowhere\n",
        0o644,
        "No module named 'nowhere'",
    );
    let node = "import x from 'nowhere-to-be-found';\n";
    refuses("config/hooks/guard.mjs", node, 0o644, "nowhere-to-be-found");
    refuses(
        &format!("{OPERATOR}/guard.py"),
        "import nowhere\n",
        0o644,
        "No module named 'nowhere'",
    );
    let pi = "import x from 'nowhere-to-be-found';\nexport default (pi) => x(pi);\n";
    refuses(&format!("{PI}/guard.ts"), pi, 0o644, "nowhere-to-be-found");
}

#[test]
fn a_misspelt_event_refuses_and_says_what_was_meant() {
    let meant = |word: &str| format!("did you mean `{word}`?");
    let native = "from tenterhook import on\n@on('pre_tool_us')\ndef guard(event):\n    pass\n";
    refuses(
        "config/hooks/guard.py",
        native,
        0o644,
        &meant("pre_tool_use"),
    );
    let pi = "export default (pi) => {\n  pi.on('tool_cal', () => ({ block: true }));\n};\n";
    refuses(&format!("{PI}/guard.ts"), pi, 0o644, "guard.ts:2:10");
    refuses(&format!("{PI}/guard.ts"), pi, 0o644, &meant("tool_call"));
    let operator = "def guard(event):\n    pass\nhooks = [('tool_cal', guard)]\n";
    refuses(
        &format!("{OPERATOR}/guard.py"),
        operator,
        0o644,
        &meant("tool_call"),
    );
    let kodelet = "#!/bin/sh\necho before_tool_cal\n";
    refuses(
        &format!("{KODELET}/guard"),
        kodelet,
        0o755,
        &meant("before_tool_call"),
    );
    let yaml = "hooks: [{event: pre_tool_us, command: exit 2}]\n";
    refuses(
        "config/hooks.d/guard.yaml",
        yaml,
        0o644,
        &meant("pre_tool_use"),
    );
}

#[test]
fn an_extension_of_kodelet_that_subscribes_to_an_unknown_event_refuses() {
    let text = "#!/usr/bin/env python3\nimport json, sys\nlength = 0\nwhile True:\n    line = sys.stdin.readline().strip()\n    \
        if not line: break\n    if line.lower().startswith('content-length:'): length = int(line.split(':')[1])\n\
        message = json.loads(sys.stdin.read(length))\n\
        answer = json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': {'name': 'x', 'subscriptions': [{'event': 'tool.cal'}]}})\n\
        sys.stdout.write('Content-Length: %d\\r\\n\\r\\n%s' % (len(answer), answer))\nsys.stdout.flush()\nsys.stdin.read()\n";
    refuses(
        "home/.kodelet/extensions/kodelet-extension-guard",
        text,
        0o755,
        "did you mean `tool.call`?",
    );
}

#[test]
fn a_program_that_lost_its_executable_bit_refuses() {
    let guard = "#!/bin/sh\n[ \"$1\" = hook ] && echo before_tool_call\n";
    for path in [
        &format!("{KODELET}/guard"),
        "config/hooks/guard",
        "home/.kodelet/extensions/kodelet-extension-guard",
    ] {
        refuses(path, guard, 0o644, "is not executable");
        refuses(path, guard, 0o644, "chmod +x");
    }
    // A documentation page next to them does not.
    let ran = run(with(&format!("{KODELET}/README.md"), "# Hooks\n", 0o644));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn a_missing_interpreter_refuses() {
    let direct = "#!/nowhere/ruby\n";
    refuses(
        &format!("{KODELET}/guard"),
        direct,
        0o755,
        "its interpreter `/nowhere/ruby` was not found",
    );
    let by_env = "#!/usr/bin/env no-such-ruby\n";
    refuses(
        "config/hooks/guard",
        by_env,
        0o755,
        "its interpreter `no-such-ruby` was not found",
    );
    // Without Node.js in the search path.
    let bin = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/sh", bin.path().join("sh")).unwrap();
    let text = "import { on } from 'tenterhook';\non('pre_tool_use', () => {});\n";
    let ran =
        run(with("config/hooks/guard.mjs", text, 0o644)
            .variable("PATH", bin.path().to_str().unwrap()));
    assert_eq!(ran.status, 3);
    assert!(
        ran.stderr.contains("the interpreter `node` was not found"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_command_whose_program_or_interpreter_is_missing_refuses() {
    let argv = "hooks: [{event: pre_tool_use, argv: [no-such-guard]}]\n";
    refuses(
        "config/hooks.yaml",
        argv,
        0o644,
        "program `no-such-guard` was not found in `PATH`",
    );
    let shell = "hooks: [{event: pre_tool_use, command: exit 2, shell: pwsh}]\n";
    refuses("config/hooks.yaml", shell, 0o644, "pwsh");
}

// The documented guard calls `jq`. Without `jq`, the shell continues and the guard silently allows the call.
#[test]
fn a_missing_program_inside_of_a_shell_line_is_a_warning() {
    let text = "hooks: [{event: pre_tool_use, command: 'no-such-jq -e .x && exit 2; exit 0'}]\n";
    for args in [&["check"][..], &["list"]] {
        let ran = with("config/hooks.yaml", text, 0o644)
            .args(args.iter().copied())
            .run();
        let warned = ran
            .stderr
            .contains("warning: program `no-such-jq` was not found in `PATH`");
        assert!(warned, "{}", ran.stderr);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
    }
}

#[test]
fn a_load_of_more_than_five_seconds_loses_no_guard_and_slow_ones_load_at_once() {
    let slow = "import time\nfrom tenterhook import deny, on\ntime.sleep(6)\n@on('pre_tool_use')\ndef guard(event):\n    return deny('slow')\n";
    let test = with("config/hooks/a.py", slow, 0o644);
    for name in ["b.py", "c.py", "d.py"] {
        write(&test, &format!("config/hooks/{name}"), slow, 0o644);
    }
    let began = Instant::now();
    let ran = test.args(["list", "--json"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["hooks"].as_array().unwrap().len(), 4);
    assert!(
        began.elapsed() < Duration::from_secs(22),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_source_that_never_finishes_loading_refuses_after_its_deadline() {
    let python = "import time\ntime.sleep(600)\n";
    let node = "await new Promise((done) => setTimeout(done, 600000));\n";
    let executable = "#!/bin/sh\nexec sleep 600\n";
    let test = with("config/hooks/a.py", python, 0o644);
    write(&test, "config/hooks/b.mjs", node, 0o644);
    write(&test, "config/hooks/c", executable, 0o755);
    write(
        &test,
        "home/.kodelet/extensions/kodelet-extension-d",
        executable,
        0o755,
    );
    let ran = run_with(test, &["--load-timeout", "2"]);
    assert_eq!(ran.status, 3, "{}", ran.stdout);
    for name in ["a.py", "b.mjs", "hooks/c", "kodelet-extension-d"] {
        assert!(ran.stderr.contains(name), "{name}: {}", ran.stderr);
    }
    assert_eq!(
        ran.stderr.matches("within 2 s").count(),
        4,
        "{}",
        ran.stderr
    );
}

#[test]
fn a_source_of_the_project_that_was_never_approved_refuses_nothing() {
    for (path, text, mode) in [
        ("work/.tenterhook/hooks.yaml", "hoks: []\n", 0o644),
        ("work/.tenterhook/hooks/guard.py", "import nowhere\n", 0o644),
        (
            "work/.kodelet/hooks/guard",
            "#!/bin/sh\necho nothing\n",
            0o644,
        ),
        ("work/.kodelet/hooks/guard", "#!/nowhere/sh\n", 0o755),
    ] {
        let ran = run(with(path, text, mode));
        assert_eq!(ran.status, 0, "{path}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("not approved"),
            "{path}: {}",
            ran.stderr
        );
        let listed = with(path, text, mode).args(["list", "--json"]).run();
        assert_eq!(listed.status, 0, "{path}: {}", listed.stderr);
        let json = listed.json();
        let untrusted = json["untrusted"].as_array().unwrap().len();
        assert_eq!(
            untrusted + json["withheld"].as_array().unwrap().len(),
            1,
            "{path}: {json}"
        );
    }
}

#[test]
fn an_approved_source_of_the_project_that_cannot_be_loaded_any_more_is_in_force_as_approved() {
    let guard = "#!/bin/sh\n[ \"$1\" = hook ] && echo before_tool_call\nexit 0\n";
    let test = with("work/.kodelet/hooks/guard", guard, 0o755);
    let path = test.work().join(".kodelet/hooks/guard");
    let approved = test.args(["trust", "--all"]).run();
    assert_eq!(approved.status, 0, "{}", approved.stderr);
    fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let ran = run(approved.again([]));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("its approved version is in force"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_disabled_source_is_left_out_until_it_is_enabled_and_the_journal_says_so() {
    let test = with("config/hooks/guard.py", "import nowhere\n", 0o644);
    let refused = test.args(["disable", "guard.py"]).run();
    assert_eq!(refused.status, 64, "without a terminal no one can be asked");
    let ran = refused
        .again(["disable", "guard.py", "--yes", "--journal", "journal.jsonl"])
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stdout.starts_with("Disabled `"), "{}", ran.stdout);
    let records = ran.lines("journal.jsonl");
    assert_eq!(records[0]["record"], "source");
    assert_eq!(records[0]["action"], "disabled");
    assert!(
        records[0]["path"]
            .as_str()
            .unwrap()
            .ends_with("hooks/guard.py")
    );
    let ran = run(ran.again([]));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the hooks of a file are disabled"),
        "{}",
        ran.stderr
    );
    let listed = ran.again(["list", "--json"]).run();
    assert_eq!(listed.status, 0);
    assert_eq!(listed.json()["disabled"].as_array().unwrap().len(), 1);
    let enabled = listed.again(["enable", "guard.py", "--no-journal"]).run();
    assert_eq!(enabled.status, 0, "{}", enabled.stderr);
    let ran = run(enabled.again([]));
    assert_eq!(ran.status, 3, "{}", ran.stdout);
}

// An agent must not be able to remove its guards through its shell.
#[test]
fn a_command_of_the_agent_cannot_disable_a_source() {
    let guard = "from tenterhook import on\n@on('pre_tool_use')\ndef guard(event):\n    pass\n";
    let program = env!("CARGO_BIN_EXE_tenterhook");
    let session = format!(
        "turns:\n  - tool_calls: [{{name: shell, arguments: {{cmd: '{program} disable guard.py --yes 2> said; echo $? >> said'}}}}]\n  - text: done\n"
    );
    let ran = with("config/hooks/guard.py", guard, 0o644)
        .args(["run", "go", "--yes", "--no-journal"])
        .script(&session)
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let said = ran.file("said");
    assert!(
        said.contains("cannot disable hooks") && said.ends_with("64\n"),
        "{said}"
    );
    let listed = ran.again(["list", "--json"]).run();
    assert_eq!(listed.json()["disabled"].as_array().unwrap().len(), 0);
}

#[test]
fn a_name_that_no_source_has_disables_nothing() {
    let ran = with("config/hooks/guard.py", "import nowhere\n", 0o644)
        .args(["disable", "other.py", "--yes"])
        .run();
    assert_eq!(ran.status, 64);
    assert!(ran.stderr.contains("available: `"), "{}", ran.stderr);
}

#[test]
fn list_explain_and_check_show_what_is_broken_and_end_with_status_3() {
    let test = with("config/hooks/guard.py", "import nowhere\n", 0o644);
    write(
        &test,
        "config/hooks.yaml",
        "hooks: [{event: stop, command: cat}]\n",
        0o644,
    );
    let mut ran = test.args(["list"]).run();
    for args in [&["list"][..], &["explain", "stop"], &["check"]] {
        ran = ran.again(args.iter().copied()).run();
        assert_eq!(ran.status, 3, "{args:?}");
        assert!(
            ran.stderr.contains("No module named 'nowhere'"),
            "{args:?}: {}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("tenterhook disable '"),
            "{args:?}: {}",
            ran.stderr
        );
        ran = ran.again(args.iter().copied().chain(["--json"])).run();
        assert_eq!(ran.status, 3, "{args:?}");
        let json = ran.json();
        let broken = &json["broken"][0];
        assert_eq!(broken["system"], "tenterhook", "{json}");
        assert_eq!(broken["layer"], "user");
        assert_eq!(broken["problems"][0]["line"], 1);
    }
}

#[test]
fn check_without_arguments_checks_everything_in_force_and_warns_of_matchers_of_no_tool() {
    let guard = "from tenterhook import on\n@on('pre_tool_use', matcher='shel')\ndef guard(event):\n    pass\n";
    let ran = with("config/hooks/guard.py", guard, 0o644)
        .args(["check"])
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let warning =
        "the matcher `shel` of `guard.py:guard` matches no known tool; did you mean `shell`?";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert!(ran.stdout.contains("guard.py"), "{}", ran.stdout);
    assert!(
        ran.stdout.ends_with("1 hook for 1 event, 1 warning.\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_folder_of_hook_files_that_cannot_be_read_refuses() {
    let test = Test::new();
    fs::write(test.work().join("../config/hooks.d"), "a file").unwrap();
    let ran = run(test);
    assert_eq!(ran.status, 3, "{}", ran.stdout);
    assert!(ran.stderr.contains("hooks.d"), "{}", ran.stderr);
}

// `event.tool_nmae == 'shell'` must not quietly be false.
#[test]
fn a_misspelt_field_of_an_event_raises_in_python_and_the_gate_denies() {
    let guard = "from tenterhook import deny, on\n@on('pre_tool_use')\ndef guard(event):\n    \
                 assert event.agent_name is not None or event.recipe is None\n    if event.tool_nmae == 'shell':\n        return deny('no')\n";
    let ran = with("config/hooks/guard.py", guard, 0o644)
        .args(["fire", "pre_tool_use", "--no-journal"])
        .event(r#"{"tool_name": "shell", "tool_input": {"cmd": "ls"}}"#)
        .run();
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    let said = "the event has no field 'tool_nmae'; did you mean 'tool_name'?";
    assert!(
        ran.stdout.contains(said) || ran.stderr.contains(said),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

/// Replaces a folder of the test with a broken symbolic link.
fn dead_link(test: &Test, path: &str) {
    let path = test.work().join("..").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    if path.exists() {
        fs::remove_dir_all(&path).unwrap();
    }
    std::os::unix::fs::symlink("/nowhere-at-all", path).unwrap();
}

/// Runs `list`, `check`, `explain`, `fire` and `run` with the folders of the home directory. Each refuses, and names
/// the link and both remedies.
fn refuses_everywhere(mut test: Test, name: &str, problem: &str) {
    for args in [
        &["list"][..],
        &["check"],
        &["explain", "pre_tool_use"],
        &["fire", "pre_tool_use", "--no-journal"],
        &["run", "go", "--yes", "--no-journal"],
    ] {
        test = match args {
            ["fire", ..] => test.args(args.iter().copied()).event(CALL),
            ["run", ..] => test.args(args.iter().copied()).script(SESSION),
            args => test.args(args.iter().copied()),
        };
        let done = test.variable("TENTERHOOK_CONFIG_DIR", "").run();
        let expected: &[i32] = if args[0] == "fire" { &[2, 3] } else { &[3] };
        let stderr = &done.stderr;
        assert!(
            expected.contains(&done.status),
            "{name} {args:?}: {}\n{stderr}",
            done.status
        );
        assert!(!done.stdout.contains("done"), "{name}: the model was asked");
        assert!(stderr.contains(problem), "{name} {args:?}: {stderr}");
        assert!(stderr.contains(name), "{name} {args:?}: {stderr}");
        assert!(
            stderr.contains("tenterhook disable '"),
            "{name} {args:?}: {stderr}"
        );
        test = done.again([]);
    }
    // A link is one broken source, however many folders it should contain.
    let listed = test
        .args(["list", "--json"])
        .variable("TENTERHOOK_CONFIG_DIR", "")
        .run();
    let json = listed.json();
    assert_eq!(
        json["broken"].as_array().unwrap().len(),
        1,
        "{name}: {json}"
    );
}

const CALL: &str = r#"{"tool_name": "shell", "tool_input": {"cmd": "ls"}}"#;

#[test]
fn a_dead_link_in_the_place_of_a_folder_of_hooks_refuses() {
    for path in [
        "home/.config",
        "home/.config/tenterhook",
        "home/.config/tenterhook/hooks.d",
        "home/.config/tenterhook/hooks",
        "home/.kodelet",
        "home/.kodelet/hooks",
        "home/.kodelet/extensions",
        "home/.kodelet/plugins",
        "home/.kodelet/plugins/o@r",
        "home/.kodelet/plugins/o@r/hooks",
        "home/.operator",
        "home/.operator/profiles/default",
        "home/.pi",
        "home/.pi/agent/extensions",
        "home/.pi/agent/extensions/guard",
    ] {
        let test = Test::new();
        dead_link(&test, path);
        let name = Path::new(path).file_name().unwrap().to_str().unwrap();
        refuses_everywhere(test, name, "points to ");
    }
}

#[test]
fn a_link_to_a_file_in_the_place_of_a_plugin_refuses() {
    let test = with("home/plugin", "text", 0o644);
    let plugins = test.home().join(".kodelet/plugins");
    fs::create_dir_all(&plugins).unwrap();
    std::os::unix::fs::symlink(test.home().join("plugin"), plugins.join("o@r")).unwrap();
    refuses_everywhere(test, "o@r", "which is not a folder");
}

#[test]
fn a_folder_that_does_not_exist_has_no_hooks() {
    // Without a configuration folder in the home.
    let ran = run(Test::new().variable("TENTERHOOK_CONFIG_DIR", ""));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn a_dead_link_that_is_disabled_is_left_out() {
    let test = Test::new();
    dead_link(&test, "home/.kodelet");
    let link = test.home().join(".kodelet");
    let ran = test
        .args(["disable", link.to_str().unwrap(), "--yes", "--no-journal"])
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let ran = run(ran.again([]));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn a_dead_link_instead_of_an_approved_folder_of_the_project_leaves_its_hooks_in_force() {
    let guard = "#!/bin/sh\n[ \"$1\" = hook ] && echo before_tool_call\nexit 0\n";
    let yaml = "hooks: [{event: pre_tool_use, command: exit 2}]\n";
    let operator = "def guard(event):\n    pass\nhooks = [('tool_call', guard)]\n";
    for (file, text, mode, link) in [
        ("work/.kodelet/hooks/guard", guard, 0o755, "work/.kodelet"),
        (
            "work/.kodelet/hooks/guard",
            guard,
            0o755,
            "work/.kodelet/hooks",
        ),
        (
            "work/.kodelet/plugins/o@r/hooks/guard",
            guard,
            0o755,
            "work/.kodelet/plugins",
        ),
        (
            "work/.kodelet/plugins/o@r/hooks/guard",
            guard,
            0o755,
            "work/.kodelet/plugins/o@r",
        ),
        (
            "work/.tenterhook/hooks.d/g.yaml",
            yaml,
            0o644,
            "work/.tenterhook",
        ),
        (
            "work/.tenterhook/hooks.d/g.yaml",
            yaml,
            0o644,
            "work/.tenterhook/hooks.d",
        ),
        (
            "work/.operator/hooks/guard.py",
            operator,
            0o644,
            "work/.operator",
        ),
    ] {
        let test = with(file, text, mode);
        let approved = test.args(["trust", "--all"]).run();
        assert_eq!(approved.status, 0, "{link}: {}", approved.stderr);
        let test = approved.again(["list", "--json"]);
        dead_link(&test, link);
        let listed = test.run();
        assert_eq!(listed.status, 0, "{link}: {}", listed.stderr);
        let json = listed.json();
        assert_eq!(json["hooks"].as_array().unwrap().len(), 1, "{link}: {json}");
        assert_eq!(
            json["hooks"][0]["trust"], "approved, file missing",
            "{link}"
        );
        assert!(
            listed.stderr.contains("points to "),
            "{link}: {}",
            listed.stderr
        );
    }
}

#[test]
fn a_dead_link_of_a_project_that_was_never_approved_refuses_nothing() {
    for path in ["work/.tenterhook", "work/.kodelet", "work/core"] {
        let test = Test::new();
        dead_link(&test, path);
        let ran = run(test);
        assert_eq!(ran.status, 0, "{path}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("is not approved and cannot be loaded"),
            "{path}: {}",
            ran.stderr
        );
    }
}

#[test]
fn settings_that_are_no_mapping_refuse() {
    for (text, problem) in [
        ("settings: []\n", "`settings` cannot be a list"),
        ("settings: x\n", "`settings` cannot be the string `x`"),
        (
            "settings: [{hooks: {pre_tool_use: []}}]\n",
            "`settings` cannot be a list",
        ),
    ] {
        refuses("config/hooks.d/config.yaml", text, 0o644, problem);
        refuses(
            "config/hooks.d/config.yaml",
            text,
            0o644,
            "config.yaml:1:11",
        );
        refuses("config/hooks.d/config.yaml", text, 0o644, "a mapping");
    }
    let ran = run(with("config/hooks.d/config.yaml", "settings:\n", 0o644));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn a_hook_file_whose_name_is_in_other_letters_refuses() {
    let yaml = "hooks: [{event: pre_tool_use, command: exit 2}]\n";
    for (path, right) in [
        ("config/hooks.YAML", "hooks.yaml"),
        ("config/Hooks.yml", "hooks.yml"),
        ("config/hooks.d/g.YAML", "g.yaml"),
        ("config/hooks.d/g.Yml", "g.yml"),
    ] {
        refuses(path, yaml, 0o644, &format!("rename it to `{right}`"));
    }
}

#[test]
fn a_guard_hidden_behind_the_name_of_a_test_file_refuses() {
    let yaml = "hooks: [{event: pre_tool_use, command: exit 2}]\n";
    let json = r#"{"hooks": [{"event": "pre_tool_use", "command": "exit 2"}]}"#;
    let program = "#!/bin/sh\n[ \"$1\" = hook ] && echo before_tool_call && exit\nexit 2\n";
    for (path, text, mode, right) in [
        ("config/hooks.cases.yaml", yaml, 0o644, "hooks.yaml"),
        ("config/hooks.d/g.cases.yaml", yaml, 0o644, "g.yaml"),
        ("config/hooks.d/g.CASES.yml", yaml, 0o644, "g.yml"),
        ("config/hooks.d/g.cases.json", json, 0o644, "g.json"),
        // Without `cases`, text that cannot be parsed may be a hook file too.
        (
            "config/hooks.d/g.cases.yaml",
            "hooks: [{event: \n",
            0o644,
            "g.yaml",
        ),
        ("config/hooks/g.cases.yaml", yaml, 0o644, "g.yaml"),
        ("config/hooks/g.cases.yaml", program, 0o755, "g.yaml"),
        ("home/.kodelet/hooks/g.cases.yaml", program, 0o755, "g.yaml"),
        (
            "home/.kodelet/extensions/kodelet-extension-g.cases.yaml",
            program,
            0o755,
            "kodelet-extension-g.yaml",
        ),
    ] {
        refuses(path, text, mode, "no key `cases`");
        refuses(
            path,
            text,
            mode,
            &format!("rename it, for example to `{right}`"),
        );
    }
    let checked = with("config/hooks.d/g.cases.yaml", yaml, 0o644);
    let checked = checked.args(["check"]).run();
    assert_eq!(checked.status, 3, "{}", checked.stderr);
    assert!(
        checked.stderr.contains("g.cases.yaml"),
        "{}",
        checked.stderr
    );
    let linked = Test::new();
    dead_link(&linked, "config/hooks.d/g.cases.yaml");
    let ran = run(linked);
    assert_eq!(ran.status, 3, "{}", ran.stderr);
}

#[test]
fn test_files_next_to_hooks_refuse_nothing_even_with_mistakes() {
    let cases = "cases: [{name: a, tool: shell, input: {cmd: ls}, expect: {decision: proceed}}]\n";
    let test = with("config/hooks.d/g.cases.yaml", cases, 0o644);
    for (path, text) in [
        ("config/hooks.cases.yaml", cases),
        ("config/hooks.d/broken.cases.yaml", "cases: [{name: \n"),
        ("config/hooks.d/list.cases.toml", "[[cases]]\nname = 'a'\n"),
        ("config/hooks/g.cases.json", r#"{"cases": []}"#),
        ("config/hooks/.#g.cases.yaml", "x\n"),
        ("config/hooks.d/.g.cases.yaml", "x\n"),
        ("home/.kodelet/hooks/g.cases.yaml", cases),
    ] {
        write(&test, path, text, 0o644);
    }
    let ran = run(test);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
}

#[test]
fn a_test_file_without_cases_in_a_project_that_was_never_approved_is_a_warning() {
    let yaml = "hooks: [{event: pre_tool_use, command: exit 2}]\n";
    let ran = run(with("work/.tenterhook/hooks.d/g.cases.yaml", yaml, 0o644));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("no key `cases`"), "{}", ran.stderr);
}

#[test]
fn a_hook_file_in_the_folder_of_executables_refuses() {
    let yaml = "hooks: [{event: pre_tool_use, command: exit 2}]\n";
    let json = r#"{"pre_tool_use": [{"matcher": "shell", "hooks": [{"type": "command", "command": "exit 2"}]}]}"#;
    let toml = "[[hooks]]\nevent = 'pre_tool_use'\ncommand = 'exit 2'\n";
    let belongs = "move it to `hooks.d`";
    refuses("config/hooks/g.yaml", yaml, 0o644, belongs);
    refuses("config/hooks/g.YML", yaml, 0o644, belongs);
    refuses("config/hooks/g.json", json, 0o644, belongs);
    refuses("config/hooks/g.toml", toml, 0o644, belongs);
    // A file with a mistake is still the same kind of file.
    refuses("config/hooks/g.yaml", "hooks: [{event: \n", 0o644, belongs);
}

#[test]
fn a_script_whose_name_ends_in_other_letters_refuses() {
    let python = "from tenterhook import on\n@on('pre_tool_use')\ndef guard(event):\n    pass\n";
    let operator = "def guard(event):\n    pass\nhooks = [('tool_call', guard)]\n";
    for (path, right) in [
        ("config/hooks/g.PY", "g.py"),
        ("config/hooks/g.JS", "g.js"),
        ("config/hooks/g.Mjs", "g.mjs"),
        ("config/hooks/g.cts", "g.ts"),
        ("config/hooks/g.tsx", "g.ts"),
        ("config/hooks/g.jsx", "g.js"),
        ("config/hooks/g.pyi", "g.py"),
        ("home/.pi/agent/extensions/g.TS", "g.ts"),
    ] {
        refuses(path, python, 0o644, &format!("rename it to `{right}`"));
    }
    let path = format!("{OPERATOR}/g.PY");
    refuses(&path, operator, 0o644, "rename it to `g.py`");
}

#[test]
fn support_files_beside_hooks_refuse_nothing() {
    let guard = "import json\nfrom tenterhook import on\n@on('pre_tool_use')\ndef guard(event):\n    pass\n";
    let test = with("config/hooks/guard.py", guard, 0o644);
    for (path, text) in [
        ("config/hooks/guard.pyi", "def guard(event): ...\n"),
        ("config/hooks/README.md", "# Hooks\n"),
        ("config/hooks/LICENSE", "MIT\n"),
        ("config/hooks/notes.txt", "hooks: none\n"),
        ("config/hooks/g.yaml.disable", "hooks: []\n"),
        ("config/hooks/g.PY.disable", "x\n"),
        ("config/hooks/guard.PY~", "x\n"),
        ("config/hooks/.guard.PY.swp", "x\n"),
        ("config/hooks/.g.YAML", "hooks: []\n"),
        ("config/hooks/_lib.PY", "x = 1\n"),
        ("config/hooks/_view.tsx", "x\n"),
        ("config/hooks/types.d.cts", "x\n"),
        ("config/hooks/rules.yaml", "deny: [rm, sudo]\n"),
        ("config/hooks/allowed.json", r#"["ls"]"#),
        ("config/hooks/package.json", r#"{"name": "guards"}"#),
        (
            "config/hooks/tsconfig.json",
            "{\n  // comment\n  \"include\": [\"hooks/*.ts\"]\n}\n",
        ),
        ("config/hooks/__pycache__/guard.PY", "x\n"),
        ("config/hooks/node_modules/x/index.JSX", "x\n"),
        ("config/hooks.d/README.md", "# Hooks\n"),
        ("config/hooks.d/g.yaml~", "x\n"),
        ("config/hooks.d/.g.YAML", "x\n"),
        ("config/models.YAML", "x\n"),
        ("home/.kodelet/hooks/g.yaml", "hooks: []\n"),
        ("home/.kodelet/hooks/g.PY", "x = 1\n"),
        ("home/.pi/agent/extensions/view.tsx", "x\n"),
        ("home/.pi/agent/extensions/g.yaml", "hooks: []\n"),
    ] {
        write(&test, path, text, 0o644);
    }
    let ran = run(test);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let listed = ran.again(["list", "--json"]).run();
    assert_eq!(listed.json()["hooks"].as_array().unwrap().len(), 1);
}

#[test]
fn a_misnamed_file_of_the_project_that_was_never_approved_is_a_warning() {
    let morphix = "from morphix import hooks_registry\n";
    let yaml = "hooks: [{event: pre_tool_use, command: exit 2}]\n";
    for (path, text, right) in [
        ("work/core/hooks/g.PY", morphix, "g.py"),
        ("work/.operator/hooks/g.PY", "hooks = []\n", "g.py"),
        ("work/.tenterhook/hooks.YAML", yaml, "hooks.yaml"),
    ] {
        let ran = run(with(path, text, 0o644));
        assert_eq!(ran.status, 0, "{path}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("is not approved and cannot be loaded"),
            "{path}: {}",
            ran.stderr
        );
        let json = ran.again(["list", "--json"]).run().json();
        let hint = format!("rename it to `{right}`");
        assert_eq!(json["untrusted"][0]["problems"][0]["hint"], hint, "{json}");
    }
    // Other files in folders with such a common name do not belong to morphix.
    let ran = run(with("work/core/hooks/g.PY", "x = 1\n", 0o644));
    assert!(!ran.stderr.contains("g.PY"), "{}", ran.stderr);
}
