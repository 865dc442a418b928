//! Ctrl-C while a tool runs.

use serde_json::Value;

use crate::stage::{Test, eventually, is_alive};

#[test]
fn an_interrupt_ends_the_tool_with_its_children_and_the_last_hooks_still_run() {
    let running = Test::new()
        .args(["run", "go", "--yes", "--no-journal"])
        .script(
            "\
turns:
  - tool_calls:
      - name: shell
        arguments: { cmd: \"sleep 300 & echo $! > child.pid; echo $$ > tool.pid; wait\" }
  - text: never
",
        )
        .hooks(
            "hooks:\n  - {event: turn_end, command: cat > turn_end.json}\n  \
             - {event: session_end, command: cat > session_end.json}\n",
        )
        .start();
    let pids = [running.line_of("tool.pid"), running.line_of("child.pid")];
    assert!(pids.iter().all(|pid| is_alive(pid)), "{pids:?}");
    running.interrupt();
    let ran = running.finish();
    assert_eq!(ran.status, 130, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.ends_with("The run ended: it was interrupted\n"),
        "{}",
        ran.stderr
    );
    for pid in &pids {
        eventually(|| (!is_alive(pid)).then_some(()));
    }
    let turn_end: Value = serde_json::from_str(&ran.file("turn_end.json")).unwrap();
    assert_eq!(turn_end["reason"], "canceled");
    let session_end: Value = serde_json::from_str(&ran.file("session_end.json")).unwrap();
    assert_eq!(session_end["hook_event_name"], "session_end");
}

#[test]
fn an_interrupt_ends_a_hook_that_is_being_waited_for() {
    let running = Test::new()
        .args(["run", "go", "--no-journal", "--json"])
        .script("turns: [{text: never}]")
        .hooks(
            "hooks:\n  - {event: user_prompt_submit, command: echo $$ > hook.pid; sleep 300}\n  \
             - {event: session_end, command: cat > session_end.json}\n",
        )
        .start();
    let pid = running.line_of("hook.pid");
    running.interrupt();
    let ran = running.finish();
    assert_eq!(ran.json()["end"], "canceled");
    assert_eq!(ran.status, 130);
    eventually(|| (!is_alive(&pid)).then_some(()));
    assert!(ran.file("session_end.json").contains("session_end"));
}
