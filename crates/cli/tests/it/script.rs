//! Python and JavaScript hooks in a folder, served by workers, as a user sees them.

use std::fs;
use std::io::Write as _;

use crate::stage::{Ran, Test, eventually};

const PYTHON: &str = "import os
from tenterhook import deny, on

@on('pre_tool_use', matcher='shell')
def guard(event):
    if 'rm' in event.tool_input['cmd']:
        return deny('python says no')
";

const NODE: &str = "import { on, patch } from 'tenterhook';

on('pre_tool_use', { matcher: 'shell' }, function humane(event) {
  if (event.tool_input.cmd === 'ls') return patch({ tool_input: { cmd: 'ls -h' } });
});
";

const SHELL: &str = "hooks: [{name: log, event: post_tool_use, command: cat >> log; echo >> log}]";

const SESSION: &str = "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: rm -rf x}}]
  - tool_calls: [{name: shell, arguments: {cmd: ls}}]
  - text: done
";

/// A user whose hooks folder has a script in each language.
fn scripts() -> Test {
    let test = Test::new();
    let folder = test.work().join("../config/hooks");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("guard.py"), PYTHON).unwrap();
    fs::write(folder.join("humane.mjs"), NODE).unwrap();
    test
}

#[test]
fn a_shell_a_python_and_a_node_hook_guard_one_session() {
    let ran = scripts()
        .args(["run", "go", "--yes", "--no-journal"])
        .hooks(SHELL)
        .script(SESSION)
        .run();
    assert_eq!(
        (ran.stdout.lines().last(), ran.status),
        (Some("done"), 0),
        "{}",
        ran.stderr
    );
    let log = ran.lines("log");
    let responses: Vec<_> = log
        .iter()
        .map(|event| event["tool_response"].as_str().unwrap())
        .collect();
    assert!(responses[0].contains("python says no"), "{responses:?}");
    assert_eq!(log[1]["tool_input"]["cmd"], "ls -h");
}

#[test]
fn scripts_are_listed_and_explained() {
    let ran = scripts().args(["list", "--json"]).run();
    let json = ran.json();
    let hooks: Vec<_> = json["hooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hook| (&hook["id"], &hook["kind"]))
        .collect();
    let expected = [
        ("guard.py:guard", "worker"),
        ("humane.mjs:humane", "worker"),
    ];
    let expected = expected.map(|(id, kind)| (id.into(), kind.into()));
    assert_eq!(hooks, expected.each_ref().map(|(id, kind)| (id, kind)));
    let ran = ran
        .again(["explain", "pre_tool_use", "--tool", "shell"])
        .run();
    assert!(ran.stdout.contains("+  guard.py:guard"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("runs: worker humane.mjs humane"),
        "{}",
        ran.stdout
    );
}

/// A morphix project with a file for all workspaces and a file for the workspace `lab`, both approved.
fn morphix() -> Ran {
    let source = "from core.hooks_registry import hooks_registry\n\n@hooks_registry.register('on_before_tool')\ndef note(ctx):\n    \
                open('log', 'a').write(__file__.split('/')[-1] + ' ' + ctx.workspace + '\\n')\n";
    let test = Test::new();
    for (folder, name) in [("core/hooks", "all.py"), ("workspaces/lab/hooks", "lab.py")] {
        let folder = test.work().join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), source).unwrap();
    }
    let ran = test
        .args(["trust", "--all", "--workspace", "lab"])
        .file(
            "script.yaml",
            "turns: [{tool_calls: [{name: shell, arguments: {cmd: ls}}]}, {text: done}]",
        )
        .file("event.json", r#"{"tool_name": "shell", "tool_input": {}}"#)
        .file(
            "lab.json",
            r#"{"tool_name": "shell", "tool_input": {}, "workspace": "lab"}"#,
        )
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    ran
}

#[test]
fn the_workspace_is_that_of_the_call_or_of_the_event() {
    const RUN: [&str; 6] = [
        "run",
        "go",
        "--yes",
        "--no-journal",
        "--model",
        "scripted:script.yaml",
    ];
    const FIRE: [&str; 4] = ["fire", "pre_tool_use", "--no-journal", "--input"];
    let mut ran = morphix();
    let rows: [(&[&str], &str, &str, &str); 6] = [
        (&RUN, "", "", "all.py main\n"),
        (&RUN, "--workspace=lab", "main", "all.py lab\nlab.py lab\n"),
        (&RUN, "", "lab", "all.py lab\nlab.py lab\n"),
        (&FIRE, "event.json", "", "all.py main\n"),
        (&FIRE, "event.json", "lab", "all.py lab\nlab.py lab\n"),
        (&FIRE, "lab.json", "main", "all.py lab\nlab.py lab\n"),
    ];
    for (args, more, variable, expected) in rows {
        let args = args
            .iter()
            .copied()
            .chain(Some(more).filter(|more| !more.is_empty()));
        ran = ran
            .again(args)
            .variable("TENTERHOOK_WORKSPACE", variable)
            .run();
        assert_eq!(
            ran.file("log"),
            expected,
            "{more} {variable}: {}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("is gone"), "{}", ran.stderr);
        fs::remove_file(ran.path("work/log")).unwrap();
    }
    let ran = ran.again(["list", "--workspace", "../lab"]).run();
    assert_eq!(ran.status, 64);
    let ran = ran
        .again(["list"])
        .variable("OPERATOR_PROFILE", "a/b")
        .run();
    let expected = "error: `a/b` is not a folder name, expected a name without `/`, `\\` or a leading dot\n\
                    hint: set `OPERATOR_PROFILE` to a valid name\n";
    assert_eq!(ran.refusal(), (expected, 64));
}

/// A project of morphix and of Operator, whose hooks import its packages.
const PACKAGES: [(&str, &str); 8] = [
    ("core/__init__.py", ""),
    ("core/config.py", "REASON = 'too many calls'\n"),
    ("core/security/__init__.py", ""),
    (
        "core/security/anti_distillation.py",
        "from core.config import REASON\n\ndef is_locked():\n    return REASON\n",
    ),
    (
        "core/hooks/distillation_guard.py",
        "from core.hooks_registry import HookContext, hooks_registry\n\
         from core.security.anti_distillation import is_locked\n\n\
         @hooks_registry.register('on_before_tool')\n\
         def guard(ctx: HookContext):\n    ctx.parameters['command'] += ' # ' + is_locked()\n",
    ),
    ("operator_use/__init__.py", ""),
    ("operator_use/settings.py", "MARK = ' says Operator'\n"),
    (
        ".operator/hooks/mark.py",
        "from operator_use.hooks.types import ToolCallEvent, ToolCallEventResult\n\
         from operator_use.settings import MARK\n\n\
         def mark(event: ToolCallEvent):\n    \
         return ToolCallEventResult(params={'cmd': event.input['cmd'] + MARK})\n\n\
         hooks = [('tool_call', mark)]\n",
    ),
];

#[test]
fn a_hook_that_imports_its_projects_package_runs_once_both_are_approved() {
    let test = Test::new();
    for (name, text) in PACKAGES {
        let path = test.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let fire = |ran: Ran| {
        ran.again(["fire", "pre_tool_use", "--no-journal", "--json"])
            .event(r#"{"tool_name": "shell", "tool_input": {"cmd": "ls"}}"#)
            .run()
    };
    let ran = fire(test.args(["list"]).run());
    assert_eq!(ran.json()["runs"], serde_json::json!([]), "{}", ran.stdout);
    let ran = ran.again(["trust", "--show"]).run();
    for covered in [
        "core/security/anti_distillation.py",
        "core/config.py",
        "operator_use/settings.py",
    ] {
        assert!(ran.stdout.contains(covered), "{covered}: {}", ran.stdout);
    }
    let ran = ran.again(["trust", "--all"]).run();
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
    let is_guarded = |ran: &Ran| {
        let expected = "ls says Operator # too many calls";
        assert!(
            ran.stdout.contains(expected),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
    };
    let ran = fire(ran);
    is_guarded(&ran);
    // What the hooks import is part of the approval.
    fs::write(ran.path("work/core/config.py"), "REASON = 'nothing'\n").unwrap();
    fs::remove_dir_all(ran.path("work/operator_use")).unwrap();
    let ran = fire(ran);
    is_guarded(&ran);
    assert!(
        ran.stderr.contains("differ from the project"),
        "{}",
        ran.stderr
    );
}

#[test]
fn an_approved_hook_does_not_import_what_its_approval_does_not_cover() {
    let source = "import importlib\nfrom core.hooks_registry import hooks_registry\n\
                importlib.import_module('core.' + 'other')\n\n\
                @hooks_registry.register('on_before_tool')\ndef guard(ctx):\n    pass\n";
    let test = Test::new();
    for (name, content) in [("core/hooks/guard.py", source), ("core/other.py", "")] {
        let path = test.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let ran = test.args(["trust", "--all"]).run();
    let expected = "No module named 'core.other'";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the files that its approval covers"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("/trust/"), "{}", ran.stderr);
}

#[test]
fn a_session_takes_what_is_saved_between_two_prompts() {
    let note = |version: &str| {
        format!(
            "from tenterhook import on\n@on('user_prompt_submit')\ndef note(event):\n    open('log', 'a').write('{version} ')\n"
        )
    };
    let test = Test::new();
    let folder = test.work().join("../config/hooks");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("note.py"), note("one")).unwrap();
    let (running, mut stdin) = test
        .args(["run", "--yes", "--no-journal"])
        .script("turns: [{text: first}, {text: second}, {text: third}, {text: fourth}]")
        .start_with_open_stdin();
    let log = running.path("work/log");
    let wait_for = |text: &str| {
        eventually(|| {
            fs::read_to_string(&log)
                .is_ok_and(|log| log == text)
                .then_some(())
        });
    };
    stdin.write_all(b"hello\n").unwrap();
    wait_for("one ");
    fs::write(folder.join("note.py"), note("two")).unwrap();
    fs::write(folder.join("other.py"), "import nowhere\n").unwrap();
    stdin.write_all(b"hello\n").unwrap();
    wait_for("one one ");
    // Hooks in force stay until a reload is requested.
    stdin.write_all(b"/reload\nhello\n").unwrap();
    wait_for("one one two ");
    fs::remove_file(folder.join("note.py")).unwrap();
    stdin.write_all(b"hello\n/quit\n").unwrap();
    let ran = running.finish();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.file("log"), "one one two two ");
    let expected = [
        "warning: note.py has changed; its previous version stays in force until you reload",
        "warning: the hooks of other.py are not in force: ModuleNotFoundError: No module named 'nowhere'",
        "reloaded note.py: 1 hook",
        "warning: note.py is gone; its hooks stay in force until you reload",
    ];
    let told: Vec<_> = ran
        .stderr
        .lines()
        .filter(|line| line.contains(".py"))
        .collect();
    assert_eq!(told, expected);
}

/// A minimal worker that implements the protocol.
const WORKER: &str = "import json, sys
for line in sys.stdin:
    message = json.loads(line)
    number, method, params = message.get('id'), message['method'], message.get('params', {})
    answer = {'error': {'code': -32601, 'message': 'no such thing'}}
    if method == 'initialize':
        answer = {'result': {'protocol_version': 1}}
    elif method == 'script/load' and params['script'] == 0:
        answer = {'result': {'hooks': [{'name': 'h', 'event': 'pre_tool_use'}]}}
    elif method == 'event/handle' and params['hook'] == 0:
        answer = {'result': None}
    elif method == 'shutdown':
        answer = {'result': {}}
    if number is not None:
        print(json.dumps({'jsonrpc': '2.0', 'id': number, **answer}), flush=True)
    if method == 'shutdown':
        break
";

#[test]
fn a_worker_of_ones_own_is_checked() {
    let check = ["worker", "check", "--script", "hooks.txt", "--", "python3"];
    let test = |program: &str| {
        Test::new()
            .args(check)
            .args([program])
            .file("hooks.txt", "")
            .file("worker.py", WORKER)
            .file(
                "other.py",
                &WORKER.replace("'protocol_version': 1", "'protocol_version': 2"),
            )
            .run()
    };
    let ran = test("worker.py");
    assert_eq!(ran.status, 0, "{}", ran.stdout);
    assert!(
        ran.stdout
            .ends_with("11 of 11 steps conform to `docs/reference/worker-protocol.md`.\n"),
        "{}",
        ran.stdout
    );
    let ran = test("other.py");
    assert_eq!(ran.status, 3);
    assert!(
        ran.stdout.contains("`protocol_version` is 2, expected 1"),
        "{}",
        ran.stdout
    );
    let ran = Test::new().args(check).run();
    assert!(
        ran.refusal().0.contains("hooks.txt` is not a regular file"),
        "{}",
        ran.stderr
    );
}

/// A worker that keeps a state for each session, until the host says that the session is over.
fn worker_with_sessions() -> String {
    let begins = "    elif method == 'script/begin' and params['session'] not in states:
        states.add(params['session'])
        answer = {'result': {}}
    elif method == '$/session_end':
        states.discard(params['session'])
    elif method == 'shutdown':
";
    WORKER
        .replacen("    elif method == 'shutdown':\n", begins, 1)
        .replacen(
            "import json, sys\n",
            "import json, sys\nstates = set()\n",
            1,
        )
        .replace(
            "'protocol_version': 1",
            "'protocol_version': 1, 'sessions': True",
        )
        .replace("'event': 'pre_tool_use'", "'event': 'session_start'")
}

#[test]
fn the_sessions_of_a_worker_are_checked() {
    let check = |program: &str| {
        Test::new()
            .args(["worker", "check", "--script", "hooks.txt"])
            .args(["--", "python3", "worker.py"])
            .file("hooks.txt", "")
            .file("worker.py", program)
            .run()
    };
    let worker = worker_with_sessions();
    let ran = check(&worker);
    assert_eq!(ran.status, 0, "{}", ran.stdout);
    assert!(ran.stdout.contains("16 of 16 steps"), "{}", ran.stdout);
    // It keeps the state of a session that is over.
    let ran = check(&worker.replace("states.discard(params['session'])", "pass"));
    assert_eq!(ran.status, 3);
    let again = "wrong it answers `script/begin` of a session again after `$/session_end`";
    assert!(ran.stdout.contains(again), "{}", ran.stdout);
    assert!(ran.stdout.contains("15 of 16 steps"), "{}", ran.stdout);
    // It names no value of `sessions` that the host knows.
    let ran = check(&worker.replace("'sessions': True", "'sessions': 'yes'"));
    assert_eq!(ran.status, 3);
    let found = "`sessions` is \"yes\", expected true or false";
    assert!(ran.stdout.contains(found), "{}", ran.stdout);
}

const OPERATOR: &str =
    "from operator_use.program.hooks.types import ToolCallEvent, ToolCallEventResult

async def guard(event: ToolCallEvent):
    if 'rm' in event.input.get('cmd', ''):
        return ToolCallEventResult(block=True, reason='operator says no')

hooks = [('tool_call', guard)]
";

#[test]
fn a_file_of_operator_guards_a_session_once_it_is_approved() {
    let test = Test::new();
    let folder = test.work().join(".operator/hooks");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("guard.py"), OPERATOR).unwrap();
    fs::write(folder.join("_helper.py"), "raise SystemExit\n").unwrap();
    let ran = test.args(["trust", "--show"]).run();
    let shown = |name: &str| {
        ran.stdout
            .matches(&format!(".operator/hooks/{name}  new"))
            .count()
    };
    assert_eq!(
        (shown("guard.py"), shown("_helper.py")),
        (1, 1),
        "{}",
        ran.stdout
    );
    let ran = ran.again(["trust", "--all"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let ran = ran
        .again(["run", "go", "--yes", "--no-journal"])
        .hooks(SHELL)
        .script(SESSION)
        .run();
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
    let response = &ran.lines("log")[0]["tool_response"];
    assert!(
        response.as_str().unwrap().contains("operator says no"),
        "{response}"
    );
    let ran = ran.again(["list"]).run();
    assert!(ran.stdout.contains("guard.py:guard"), "{}", ran.stdout);
}

const EXTENSION: &str = r#"
import * as fs from "node:fs";
export default function (pi: any) {
  const say = (text: string) => fs.appendFileSync("said", text + "\n");
  pi.registerFlag("plan", { type: "boolean", description: "Plans only" });
  pi.registerFlag("mode", { type: "string", default: "calm" });
  pi.registerTool({
    name: "greet", description: "Greets", parameters: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    execute: async (id: string, { name }: { name: string }) => ({ content: [{ type: "text", text: `hello ${name}` }] }),
  });
  pi.registerCommand("ask", { description: "Asks", handler: async (args: string, ctx: any) => {
    say(`command ${args} ${ctx.hasUI} ${await ctx.ui.confirm("Sure?", "really")}`);
    if (args === "") throw new Error("what about?");
    await pi.sendUserMessage(`tell me of ${args}`);
  } });
  pi.registerCommand("leave", { handler: async (args: string, ctx: any) => ctx.shutdown() });
  pi.on("input", (event: any) => say(`input ${event.text}`));
  pi.on("session_start", (event: any, ctx: any) => { say(`flags ${pi.getFlag("plan")} ${pi.getFlag("mode")}`); ctx.ui.notify("ready", "info"); });
}
"#;

// P31: a command of an extension is not an input, but a prompt from the command is.
#[test]
fn commands_and_flags_of_extensions_work_in_a_conversation() {
    let ran = Test::new()
        .args([
            "run", "--no-journal", "-e", "kit.ts", "--flag", "plan", "--flag", "mode=wild", "--allow", "greet",
        ])
        .file("kit.ts", EXTENSION)
        .script("turns: [{tool_calls: [{name: greet, arguments: {name: ada}}]}, {text: one}, {text: two}]")
        .stdin("/ask the sea\n/ask\nhi\n/asc\n/leave\nnever heard\n")
        .run();
    assert!(
        ran.stdout.contains("hello ada"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    assert!(
        ran.stdout.contains("one") && ran.stdout.contains("two"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("ready"), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("command `/ask`: kit.ts:13: Error: what about?"),
        "{}",
        ran.stderr
    );
    let none = "Unknown command `/asc`. Available: `/ask`, `/leave`, `/compact`, `/new`, `/resume`, `/fork`, `/tree`, `/model`, `/thinking`, `/label`, `/name`, `/hooks`, `/reload`, `/help`, `/quit`.";
    assert!(ran.stderr.contains(none), "{}", ran.stderr);
    assert_eq!(
        ran.file("said"),
        "flags true wild\ncommand the sea false false\ninput tell me of the sea\ncommand  false false\ninput hi\n"
    );
    assert_eq!(ran.status, 64, "{}", ran.stderr);
}

const MESSENGER: &str = r#"
export default function (pi: any) {
  pi.registerCommand("say", { handler: async () => {
    await pi.sendMessage({ customType: "note", content: "for both", display: true });
    await pi.sendMessage({ customType: "secret", content: "for the model", display: false });
  } });
  pi.registerCommand("mark", { handler: async (args: string, ctx: any) => {
    const [first] = ctx.sessionManager.getEntries();
    pi.setLabel(first.id, "start");
  } });
  pi.registerTool({
    name: "finish", description: "Ends the program", parameters: { type: "object", properties: {} },
    execute: async (id: string, params: any, signal: any, onUpdate: any, ctx: any) => {
      ctx.shutdown();
      return "bye";
    },
  });
}
"#;

#[test]
fn messages_and_labels_of_extensions_are_in_the_tree_and_a_tool_may_end_the_program() {
    let ran = Test::new()
        .args(["run", "--no-journal", "-e", "kit.ts", "--allow", "finish"])
        .file("kit.ts", MESSENGER)
        .script("turns: [{text: hello}, {tool_calls: [{name: finish}]}, {text: all done}]")
        .stdin("hi\n/say\n/mark\n/tree\nend it\nnever heard\n")
        .run();
    let shown = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.status, 0, "{shown}");
    assert!(ran.stdout.contains("[note] for both\n"), "{shown}");
    assert!(ran.stdout.contains("1 user: hi [start]\n"), "{shown}");
    assert!(ran.stdout.contains(" note: for both\n"), "{shown}");
    assert!(ran.stdout.contains(" secret\n"), "{shown}");
    assert!(!shown.contains("for the model"), "{shown}");
    assert!(ran.stdout.contains("all done"), "{shown}");
    assert!(!shown.contains("never heard"), "{shown}");
}

#[test]
fn a_flag_that_no_script_has_is_refused() {
    let run = |files: &[&str]| {
        let ran = Test::new()
            .args(["run", "go", "--no-journal", "--flag", "paln"])
            .args(files.iter().copied())
            .file("kit.ts", EXTENSION)
            .script("turns: [{text: one}]")
            .run();
        let (text, status) = ran.refusal();
        (text.to_owned(), status)
    };
    let (text, status) = run(&["-e", "kit.ts"]);
    assert!(text.contains("unknown flag `paln`"), "{text}");
    assert!(text.contains("available: `plan`, `mode`"), "{text}");
    assert_eq!(status, 64);
    assert!(run(&[]).0.contains("no script registers a flag"));
}

#[test]
fn what_scripts_print_is_shown() {
    let test = scripts().file(
        "../config/hooks/talk.py",
        "from tenterhook import on\n\n@on('pre_tool_use')\ndef talk(event):\n    print('python \\x1b[31mhere')\n",
    );
    let test = test.file(
        "../config/hooks/talk.mjs",
        "import { on } from 'tenterhook';\non('pre_tool_use', async () => { console.log('node here'); });\n",
    );
    let ran = test
        .args(["run", "go", "--yes", "--no-journal"])
        .script(
            "turns: [{tool_calls: [{name: shell, arguments: {cmd: 'sleep 0.5'}}]}, {text: done}]",
        )
        .run();
    for line in ["  python: python", "  node: node here"] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
}

#[test]
fn an_agent_cannot_change_the_guard_that_its_user_named() {
    let guard = "export default (pi: any) => { pi.on('tool_call', (event: any) => event.toolName === 'bash' ? { block: true, reason: 'GUARD' } : undefined); };";
    let other = "require('fs').writeFileSync('pwned', 'x'); export default (pi) => { pi.on('agent_end', () => {}); };";
    let script = format!(
        "turns:\n  - tool_calls: [{{name: write_file, arguments: {{path: guard.ts, content: {}}}}}]\n  - text: one\n  \
         - tool_calls: [{{name: shell, arguments: {{cmd: echo ran}}}}]\n  - text: two\n",
        serde_json::to_string(other).unwrap()
    );
    let ran = Test::new()
        .args(["run", "--no-journal", "--yes", "-e", "guard.ts"])
        .file("guard.ts", guard)
        .script(&script)
        .stdin("go\nagain\n")
        .run();
    assert!(ran.stdout.contains("GUARD"), "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stdout.contains("    ran"), "{}", ran.stdout);
    assert!(!ran.path("pwned").exists());
}

const LEADER: &str = r#"
import * as fs from "node:fs";
const say = (line: string) => fs.appendFileSync("said", line + "\n");
export default function (pi: any) {
  let blocks = false;
  let settle = () => {};
  const settled = new Promise<void>((resolve) => { settle = resolve; });
  pi.registerCommand("settle", { handler: () => settled });
  pi.on("session_before_switch", () => blocks ? { cancel: true } : undefined);
  pi.on("session_start", (event: any) => say(`start ${event.reason}`));
  pi.on("turn_end", (event: any, ctx: any) => {
    if (pi.getSessionName() === "busy") ctx.compact({ customInstructions: "short", onComplete: (done: any) => { say(`compacted ${done.summary}`); settle(); } });
  });
  pi.registerCommand("lead", { handler: async (args: string, ctx: any) => {
    await ctx.waitForIdle();
    const first = ctx.sessionManager.getSessionId();
    await pi.setSessionName("first");
    say(`tree ${(await ctx.navigateTree("1", { label: "begin" })).cancelled} ${ctx.sessionManager.getBranch().length}`);
    say(`fork ${(await ctx.fork("2")).cancelled} ${ctx.sessionManager.getSessionId() !== first} ${ctx.sessionManager.getEntries().length}`);
    say(`new ${(await ctx.newSession()).cancelled} ${ctx.sessionManager.getEntries().length}`);
    blocks = true;
    say(`blocked ${(await ctx.newSession()).cancelled}`);
    blocks = false;
    say(`switch ${(await ctx.switchSession(first)).cancelled} ${ctx.sessionManager.getSessionId() === first} ${pi.getSessionName()}`);
    await ctx.fork("99").catch((error: any) => say(`fork ${error.message}`));
    await ctx.newSession({ setup: () => {} }).catch((error: any) => say("setup refused"));
    await ctx.reload();
    await pi.setSessionName("busy");
    await pi.sendUserMessage("and now?");
  } });
}
"#;

#[test]
fn commands_of_scripts_lead_the_session_while_they_run() {
    let ran = Test::new()
        .args(["run", "--no-journal", "-e", "kit.ts"])
        .file("kit.ts", LEADER)
        .script("turns: [{text: hello, repeat: true}, {summary: in short}]")
        .stdin("hi\n/lead\n/settle\n/tree\n")
        .run();
    let expected = "\
start startup
tree false 0
start fork
fork false true 2
start new
new false 0
blocked true
start resume
switch false true first
fork the session has no entry `99`
setup refused
start reload
compacted in short
";
    assert_eq!(ran.file("said"), expected, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("[begin]"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("compaction: in short"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stderr
            .contains("nothing was changed: a session_before_switch hook blocked it"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

/// Two folders may each have a `_rules.py`; a guard must get its own.
#[test]
fn a_guard_does_not_get_a_module_of_another_folder() {
    let test = Test::new();
    let write = |path: &str, text: &str| {
        let path = test.work().join("..").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "config/hooks/_rules.py",
        "def bad(cmd): return 'rm' in cmd\n",
    );
    write(
        "config/hooks/guard.py",
        "from tenterhook import deny, on\n@on('pre_tool_use', matcher='shell')\ndef guard(event):\n    import _rules\n    if _rules.bad(event.tool_input['cmd']):\n        return deny('own rules')\n",
    );
    write(
        "home/.operator/profiles/default/hooks/_rules.py",
        "def bad(cmd): return False\n",
    );
    write(
        "home/.operator/profiles/default/hooks/a.py",
        "import _rules\nasync def start(event):\n    return None\nhooks = [('session_start', start)]\n",
    );
    let ran = test
        .args(["fire", "pre_tool_use", "--no-journal"])
        .event(r#"{"tool_name": "shell", "tool_input": {"cmd": "rm x"}}"#)
        .run();
    assert_eq!(ran.status, 2, "{}", ran.stdout);
    assert!(ran.stdout.contains("own rules"), "{}", ran.stdout);
}

/// The worker runs in the event's directory, where a project may have a file with the same relative name.
#[test]
fn a_relative_extension_is_not_that_of_the_directory_of_the_event() {
    let block = "export default (pi) => { pi.on('tool_call', () => ({ block: true, reason: 'my guard' })); };\n";
    let other = "export default (pi) => { pi.on('tool_call', () => undefined); };\n";
    let test = Test::new();
    for (folder, text) in [("ext", block), ("evil/ext", other)] {
        let folder = test.work().join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("g.mjs"), text).unwrap();
    }
    let cwd = test.work().join("evil");
    let event =
        serde_json::json!({ "cwd": cwd, "tool_name": "shell", "tool_input": { "cmd": "ls" } });
    let ran = test
        .args(["fire", "pre_tool_use", "--no-journal", "-e", "ext/g.mjs"])
        .event(&event.to_string())
        .run();
    assert_eq!(ran.status, 2, "{} {}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("my guard"), "{}", ran.stdout);
}

/// A guard that calls its helper, and records the id of its worker.
const GUARD_WITH_HELPER: &str = "import os
from tenterhook import deny, on
from _rules import is_bad

@on('pre_tool_use', matcher='shell')
def guard(event):
    open('pid', 'w').write(str(os.getpid()))
    if is_bad(event.tool_input['cmd']):
        return deny('the guard says no')
";

/// Runs a session in which the agent runs a command, and then twice a forbidden command. Returns the tool results.
fn after(command: &str) -> (Ran, Vec<String>) {
    let test = Test::new();
    let folder = test.work().join("../config/hooks");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("guard.py"), GUARD_WITH_HELPER).unwrap();
    let rules = "def is_bad(cmd):\n    return 'touch' in cmd\n";
    fs::write(folder.join("_rules.py"), rules).unwrap();
    let script = format!(
        "\
turns:
  - tool_calls: [{{name: shell, arguments: {{cmd: \"cd ../config/hooks; {command}; kill -9 $(cat $OLDPWD/pid)\"}}}}]
  - tool_calls: [{{name: shell, arguments: {{cmd: touch made}}}}]
  - tool_calls: [{{name: shell, arguments: {{cmd: touch made}}}}]
  - text: done
"
    );
    let ran = test
        .args(["run", "go", "--yes", "--no-journal"])
        .hooks(SHELL)
        .script(&script)
        .run();
    let answered = ran.lines("log");
    let answered = answered
        .iter()
        .map(|event| event["tool_response"].as_str().unwrap().to_owned());
    let answered = answered.collect();
    (ran, answered)
}

#[test]
fn a_guard_that_is_edited_before_its_worker_is_killed_denies_until_a_reload() {
    let evil = "echo 'from tenterhook import on' > guard.py; \
                printf '@on(\\\"pre_tool_use\\\", matcher=\\\"shell\\\")\\\\ndef guard(event): pass\\\\n' >> guard.py";
    for command in [
        evil,
        "echo 'is_bad = lambda cmd: False' > _rules.py",
        "mkdir _rules; echo 'is_bad = lambda cmd: False' > _rules/__init__.py",
        "rm guard.py",
    ] {
        let (ran, answered) = after(command);
        assert!(!ran.path("work/made").exists(), "{command}: {answered:?}");
        let last = answered.last().unwrap();
        assert!(last.contains("hook failed"), "{command}: {answered:?}");
        let shown = format!("{}{}", ran.stdout, ran.stderr);
        assert!(shown.contains("/reload"), "{command}: {shown}");
    }
}

#[test]
fn a_guard_that_did_not_change_guards_on_after_its_worker_is_killed() {
    let (ran, answered) = after("true");
    assert!(!ran.path("work/made").exists(), "{answered:?}");
    let last = answered.last().unwrap();
    assert!(last.contains("the guard says no"), "{answered:?}");
}
