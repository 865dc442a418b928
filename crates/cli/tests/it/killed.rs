//! After `kill -9` of the program, no process that it started is alive.

use std::fs;
use std::process::Command;

use crate::stage::{Running, Test, eventually, is_alive};

/// A shell line that writes its process id to `NAME.pid` and the id of a background child to `NAME-child.pid`. Then
/// it runs for a long time and ignores SIGTERM.
fn endless(name: &str) -> String {
    format!(
        "trap '' TERM; sleep 300 & echo $! > {name}-child.pid; echo $$ > {name}.pid; while :; do sleep 300; done"
    )
}

/// A run whose agent calls the shell with each of these lines.
fn run_of(lines: &[&str]) -> Test {
    let calls: Vec<_> = lines
        .iter()
        .map(|line| {
            format!(
                "  - tool_calls: [{{name: shell, arguments: {{cmd: {line:?}, timeout: 600}}}}]\n"
            )
        })
        .collect();
    Test::new()
        .args(["run", "go", "--yes", "--no-journal"])
        .script(&format!("turns:\n{}  - text: never\n", calls.concat()))
}

/// Waits until every file has the id of a live process. Then kills the program, and waits until those processes and
/// the program's guard process are gone.
fn kill_and_watch(running: Running, names: &[&str]) {
    let mut pids: Vec<String> = names
        .iter()
        .map(|name| {
            eventually(|| {
                let pid = running.line_of(&format!("{name}.pid"));
                is_alive(&pid).then_some(pid)
            })
        })
        .collect();
    pids.push(guard_of(&running));
    running.signal("KILL");
    for pid in &pids {
        eventually(|| (!is_alive(pid)).then_some(()));
    }
    // No process holds its outputs open either, so this ends.
    assert_eq!(running.finish().status, -1);
}

fn guard_of(running: &Running) -> String {
    let found = Command::new("pgrep")
        .args(["-P", &running.pid().to_string(), "-f", "tenterhook-guard"])
        .output()
        .unwrap();
    let pid = String::from_utf8(found.stdout).unwrap().trim().to_owned();
    assert!(pid.parse::<u32>().is_ok(), "one guard, found `{pid}`");
    pid
}

#[test]
fn after_kill_9_no_command_hook_is_alive() {
    let hooks = "hooks: [{event: pre_tool_use, command: sh ./hook.sh, timeout: 600}]";
    let running = Test::new()
        .args(["fire", "pre_tool_use", "--no-journal"])
        .file("hook.sh", &endless("hook"))
        .hooks(hooks)
        .event(r#"{"tool_name": "shell", "tool_input": {"cmd": "ls"}}"#)
        .start();
    kill_and_watch(running, &["hook", "hook-child"]);
}

#[test]
fn after_kill_9_no_tool_is_alive() {
    let running = run_of(&["sh ./tool.sh; true"])
        .file("tool.sh", &endless("tool"))
        .start();
    kill_and_watch(running, &["tool", "tool-child"]);
}

#[test]
fn after_kill_9_no_tool_is_alive_that_left_its_group() {
    for starter in ["timeout 600", "setsid"] {
        let running = run_of(&[&format!("{starter} sh ./tool.sh; true")])
            .file("tool.sh", &endless("tool"))
            .start();
        kill_and_watch(running, &["tool", "tool-child"]);
    }
}

#[test]
fn after_kill_9_no_background_job_is_alive() {
    let running = run_of(&[
        "sh ./job.sh > /dev/null 2>&1 &",
        "echo $$ > tool.pid; sleep 600; true",
    ])
    .file("job.sh", &endless("job"))
    .start();
    kill_and_watch(running, &["job", "job-child", "tool"]);
}

#[test]
fn after_kill_9_no_job_of_a_background_subshell_is_alive_that_left_its_group() {
    let running = run_of(&[
        "(setsid sh ./job.sh; true) > /dev/null 2>&1 &",
        "echo $$ > tool.pid; sleep 600; true",
    ])
    .file("job.sh", &endless("job"))
    .start();
    kill_and_watch(running, &["job", "job-child", "tool"]);
}

#[test]
fn the_guard_is_gone_before_the_program_is() {
    let running =
        run_of(&["echo $$ > tool.pid; until [ -e go ]; do sleep 0.05; done; true"]).start();
    let tool = eventually(|| {
        let pid = running.line_of("tool.pid");
        is_alive(&pid).then_some(pid)
    });
    let guard = guard_of(&running);
    fs::write(running.work().join("go"), "").unwrap();
    assert_eq!(running.finish().status, 0);
    // Nothing waits here for the remaining processes. They belong to the init process now, which may not reap them.
    assert!(!fs::exists(format!("/proc/{guard}")).unwrap());
    assert!(!is_alive(&tool));
}

#[test]
fn a_background_job_ends_with_the_program_that_ends_by_itself() {
    let job = "sh ./job.sh > /dev/null 2>&1 & until [ -e job.pid ]; do sleep 0.05; done";
    let ran = run_of(&[job]).file("job.sh", &endless("job")).run();
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
    for name in ["job.pid", "job-child.pid"] {
        let pid = ran.file(name).trim().to_owned();
        eventually(|| (!is_alive(&pid)).then_some(()));
    }
}

#[test]
fn after_kill_9_no_worker_is_alive() {
    let python = "import os, subprocess, time\nfrom tenterhook import on\n@on('session_start')\ndef hang(event):\n    \
                  child = subprocess.Popen(['sleep', '300'])\n    \
                  open('python-child.pid', 'w').write(f'{child.pid}\\n')\n    \
                  open('python.pid', 'w').write(f'{os.getpid()}\\n')\n";
    let node = "import { on } from 'tenterhook';\nimport { spawn } from 'node:child_process';\n\
                import { writeFileSync } from 'node:fs';\n\
                on('session_start', {}, function hang(event) {\n  \
                const child = spawn('sleep', ['300'], { stdio: 'ignore' });\n  \
                writeFileSync('node-child.pid', `${child.pid}\\n`);\n  \
                writeFileSync('node.pid', `${process.pid}\\n`);\n});\n";
    let test = run_of(&["echo $$ > tool.pid; sleep 600; true"]);
    let folder = test.work().join("../config/hooks");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("hang.py"), python).unwrap();
    fs::write(folder.join("hang.mjs"), node).unwrap();
    let names = ["python", "python-child", "node", "node-child", "tool"];
    kill_and_watch(test.start(), &names);
}

#[test]
fn after_kill_9_no_prewarmed_command_is_alive() {
    // The hook reads its event at the end, so each instance ends when it gets an event.
    let hook = "trap '' TERM; sleep 300 > /dev/null 2>&1 & echo $! > hook-child.pid; echo $$ > hook.pid; \
                cat > /dev/null";
    let running = run_of(&["echo $$ > tool.pid; sleep 600; true"])
        .file("hook.sh", hook)
        .hooks("hooks: [{event: pre_tool_use, argv: [sh, hook.sh], prewarm: true}]")
        .start();
    // While the tool runs, the instance for the next event waits.
    kill_and_watch(running, &["tool", "hook", "hook-child"]);
}

#[test]
fn after_kill_9_no_extension_is_alive() {
    let extension = "#!/usr/bin/env python3
import json, os, subprocess, sys, time
os.chdir(os.environ['KODELET_EXTENSION_WORKSPACE_CWD'])
while True:
    head = sys.stdin.buffer.readline()
    if not head:
        time.sleep(300)
    sys.stdin.buffer.readline()
    message = json.loads(sys.stdin.buffer.read(int(head.split(b':')[1])))
    if message['method'] == 'extension.initialize':
        result = {'name': 'guard', 'subscriptions': [{'event': 'session.start'}]}
    elif message['method'] == 'extension.event.handle':
        child = subprocess.Popen(['sleep', '300'])
        open('extension-child.pid', 'w').write('%d\\n' % child.pid)
        open('extension.pid', 'w').write('%d\\n' % os.getpid())
        result = None
    else:
        continue
    body = json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}).encode()
    sys.stdout.buffer.write(b'Content-Length: %d\\r\\n\\r\\n' % len(body) + body)
    sys.stdout.buffer.flush()
";
    let running = run_of(&["echo $$ > tool.pid; sleep 600; true"])
        .executable(
            "../home/.kodelet/extensions/guard/kodelet-extension-guard",
            extension,
        )
        .start();
    kill_and_watch(running, &["extension", "extension-child", "tool"]);
}

#[test]
fn without_a_guard_process_no_hook_runs_and_a_gate_is_denied() {
    // The table of children cannot be written, so the program starts no child that could outlive it.
    let ran = Test::new()
        .args(["fire", "pre_tool_use", "--no-journal"])
        .hooks("hooks: [{event: pre_tool_use, command: touch ran}]")
        .event(r#"{"tool_name": "shell", "tool_input": {"cmd": "ls"}}"#)
        .after("ulimit -f 0")
        .run();
    assert_eq!(ran.status, 2, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("`ulimit -f`"), "{}", ran.stderr);
    assert!(!ran.path("work/ran").exists());
}
