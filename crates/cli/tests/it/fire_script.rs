//! `tenterhook fire --script`: the hooks of one file, of every system.

use crate::stage::{Ran, Test};

const NATIVE_PYTHON: &str = "\
from tenterhook import deny, on

@on('pre_tool_use', matcher='shell')
def guard(event):
    return deny('native python')
";
const NATIVE_JAVASCRIPT: &str =
    "import { deny, on } from 'tenterhook';\non('pre_tool_use', () => deny('native node'));\n";
const HOOK_FILE: &str =
    "hooks: [{name: g, event: pre_tool_use, command: \"echo hook file >&2; exit 2\"}]\n";
const AGENT_FILE: &str = "\
agents:
  root:
    model: openai/gpt-4o
    hooks:
      pre_tool_use: [{hooks: [{type: command, command: 'echo agent file >&2; exit 2'}]}]
";
const OPERATOR: &str = "\
from operator_use.program.hooks.types import ToolCallEvent, ToolCallEventResult

async def guard(event: ToolCallEvent):
    return ToolCallEventResult(block=True, reason='operator')

hooks = [('tool_call', guard)]
";
const MORPHIX: &str = "\
from core.hooks_registry import HookContext, hooks_registry

@hooks_registry.register('on_before_tool')
def note(ctx: HookContext) -> None:
    ctx.parameters['command'] = 'morphix'
";
const PI: &str = "\
import type { ExtensionAPI } from '@mariozechner/pi-coding-agent';

export default function (pi: ExtensionAPI) {
  pi.on('tool_call', async () => ({ block: true, reason: 'pi' }));
}
";
const KODELET: &str = "#!/bin/sh
if [ \"$1\" = hook ]; then echo before_tool_call; exit; fi
echo '{\"blocked\":true,\"reason\":\"kodelet\"}'
";

/// A call of `fire --script` on a file that is there. `mode` says whether it may be executed.
fn fire(name: &str, text: &str, is_executable: bool) -> Ran {
    let call = Test::new().args([
        "fire",
        "pre_tool_use",
        "--no-journal",
        "--script",
        name,
        "--tool",
        "shell",
        "--arg",
        "cmd=ls",
    ]);
    let call = if is_executable {
        call.executable(name, text)
    } else {
        call.file(name, text)
    };
    call.run()
}

#[test]
fn a_file_of_every_system_runs_without_an_approval() {
    for (name, text, is_executable, expected) in [
        ("guard.py", NATIVE_PYTHON, false, "native python"),
        ("guard.mjs", NATIVE_JAVASCRIPT, false, "native node"),
        ("guard.yaml", HOOK_FILE, false, "hook file"),
        ("agent.yaml", AGENT_FILE, false, "agent file"),
        ("guard.py", OPERATOR, false, "operator"),
        (".operator/hooks/guard.py", OPERATOR, false, "operator"),
        ("guard.ts", PI, false, "pi"),
        (".pi/extensions/g/index.ts", PI, false, "pi"),
        ("guard", KODELET, true, "kodelet"),
        (".kodelet/hooks/guard", KODELET, true, "kodelet"),
        (".tenterhook/hooks/guard.sh", KODELET, true, "kodelet"),
    ] {
        let ran = fire(name, text, is_executable);
        assert_eq!(ran.status, 2, "{name}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains(expected), "{name}: {}", ran.stdout);
    }
    for name in [
        "note.py",
        "core/hooks/note.py",
        "workspaces/a/hooks/note.py",
    ] {
        let ran = fire(name, MORPHIX, false);
        assert_eq!(ran.status, 0, "{name}: {}", ran.stderr);
        assert!(
            ran.stdout.contains("{\"cmd\":\"morphix\"}"),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn nothing_else_of_the_project_or_the_user_is_loaded() {
    let own = "hooks: [{event: pre_tool_use, command: touch ran}]";
    let test = Test::new()
        .file(".tenterhook/hooks.yaml", own)
        .file(".tenterhook/hooks/broken.py", "(")
        .file("../config/hooks.yaml", own)
        .file(
            "guard.yaml",
            "hooks: [{name: only, event: pre_tool_use, command: 'true'}]",
        );
    let ran = test
        .args([
            "fire",
            "pre_tool_use",
            "--no-journal",
            "--script",
            "guard.yaml",
        ])
        .args(["--tool", "shell"])
        .run();
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("(1 hook ran)"), "{}", ran.stdout);
    assert!(!ran.path("work/ran").exists());
}

#[test]
fn hooks_that_a_call_names_as_well_run_too() {
    let ran = Test::new()
        .args([
            "fire",
            "pre_tool_use",
            "--no-journal",
            "--script",
            "guard.py",
        ])
        .args(["--tool", "read_file", "--hooks", "more.yaml"])
        .file("guard.py", NATIVE_PYTHON)
        .file("more.yaml", HOOK_FILE)
        .run();
    assert_eq!(ran.status, 2);
    assert!(ran.stdout.contains("hook file"), "{}", ran.stdout);
}

#[test]
fn a_file_that_is_not_a_hook_refuses() {
    for (name, text, expected) in [
        ("README.md", "# read me", "the file is not a hook"),
        ("guard.py", "def guard(:\n", "SyntaxError"),
        ("guard.py", "x = 1\n", "register"),
        ("guard.sh", "#!/bin/sh\n", "chmod +x"),
        ("guard.yaml", "hoks: []\n", "did you mean `hooks`"),
    ] {
        let ran = fire(name, text, false);
        assert_eq!(ran.status, 2, "{name}: {}", ran.stdout);
        assert!(ran.stderr.contains(expected), "{name}: {}", ran.stderr);
    }
    let ran = Test::new()
        .args(["fire", "turn_start", "--no-journal", "--script", "gone.py"])
        .run();
    assert_eq!(ran.status, 3);
    assert!(
        ran.stderr.contains("the file does not exist"),
        "{}",
        ran.stderr
    );
}
