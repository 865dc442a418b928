//! Ctrl-C, SIGTERM and SIGHUP at every point of the program's work.

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
    assert_eq!(turn_end["reason"], "cancelled");
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
    assert_eq!(ran.json()["end"], "cancelled");
    assert_eq!(ran.status, 130);
    eventually(|| (!is_alive(&pid)).then_some(()));
    assert!(ran.file("session_end.json").contains("session_end"));
}

#[test]
fn an_interrupt_ends_the_command_of_a_recipe() {
    let recipe = "Look. {{bash \"sh\" \"-c\" \"echo $$ > recipe.pid; exec sleep 300\"}}\n";
    let running = Test::new()
        .file("look.md", recipe)
        .args(["run", "--recipe", "./look.md", "--recipe-commands"])
        .args(["--no-journal"])
        .script("turns: [{text: never}]")
        .start();
    let pid = running.line_of("recipe.pid");
    running.interrupt();
    let ran = running.finish();
    assert_eq!(ran.status, 130, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stdout, "");
    eventually(|| (!is_alive(&pid)).then_some(()));
}

#[test]
fn every_signal_ends_the_hooks_of_a_fired_event() {
    for signal in ["INT", "TERM", "HUP"] {
        let running = Test::new()
            .args(["fire", "stop", "--no-journal"])
            .hooks("hooks: [{event: stop, command: \"sleep 300 & echo $! > hook.pid; wait\"}]")
            .start();
        let pid = running.line_of("hook.pid");
        running.signal(signal);
        let ran = running.finish();
        assert_eq!(ran.status, 130, "{signal}: {}{}", ran.stdout, ran.stderr);
        eventually(|| (!is_alive(&pid)).then_some(()));
    }
}

#[test]
fn every_signal_ends_a_run_in_good_order() {
    for signal in ["TERM", "HUP"] {
        let running = Test::new()
            .args(["run", "go", "--yes", "--no-journal"])
            .script(
                "turns: [{tool_calls: [{name: shell, arguments: {cmd: \"echo $$ > tool.pid; sleep 300\"}}]}]",
            )
            .hooks("hooks: [{event: session_end, command: touch ended}]")
            .start();
        let pid = running.line_of("tool.pid");
        running.signal(signal);
        let ran = running.finish();
        assert_eq!(ran.status, 130, "{signal}: {}{}", ran.stdout, ran.stderr);
        eventually(|| (!is_alive(&pid)).then_some(()));
        assert!(ran.path("work/ended").exists(), "{signal}");
    }
}

#[test]
fn a_second_signal_gives_up_the_hooks_of_the_end() {
    let running = Test::new()
        .args(["run", "go", "--no-journal"])
        .script("turns: [{text: never}]")
        .hooks(
            "hooks:\n  - {event: session_start, command: echo $$ > start.pid; sleep 300}\n  \
             - {event: session_end, command: echo $$ > end.pid; sleep 300}\n",
        )
        .start();
    let first = running.line_of("start.pid");
    running.interrupt();
    let last = running.line_of("end.pid");
    assert!(!is_alive(&first) || is_alive(&last));
    running.interrupt();
    let ran = running.finish();
    assert_eq!(ran.status, 130, "{}{}", ran.stdout, ran.stderr);
    for pid in [first, last] {
        eventually(|| (!is_alive(&pid)).then_some(()));
    }
}

#[test]
fn prompts_behind_an_interrupted_one_are_not_asked() {
    let running = Test::new()
        .args(["run", "--yes", "--no-journal", "--json"])
        .stdin("one\ntwo\n")
        .script(
            "turns:\n  - tool_calls: [{name: shell, arguments: {cmd: \"echo $$ > tool.pid; sleep 300\"}}]\n  \
             - text: never\n",
        )
        .start();
    running.line_of("tool.pid");
    running.interrupt();
    let ran = running.finish();
    let report = ran.json();
    assert_eq!(report["runs"].as_array().unwrap().len(), 1);
    assert_eq!(report["end"], "cancelled");
    assert_eq!(ran.status, 130);
}

#[test]
fn a_signal_ends_a_session_that_waits_for_a_prompt() {
    let (running, stdin) = Test::new()
        .args(["run", "--no-journal", "--json"])
        .script("turns: [{text: hi}]")
        .hooks(
            "hooks:\n  - {event: session_start, command: echo started > started}\n  \
             - {event: session_end, command: touch ended}\n",
        )
        .start_with_open_stdin();
    running.line_of("started");
    running.signal("TERM");
    let ran = running.finish();
    drop(stdin);
    assert_eq!(ran.json()["end"], Value::Null);
    assert_eq!(ran.status, 130);
    assert!(ran.path("work/ended").exists());
}

#[test]
fn a_signal_ends_the_wait_for_an_input() {
    let (running, stdin) = Test::new()
        .args(["fire", "stop", "--no-journal", "--input", "-"])
        .start_with_open_stdin();
    // A signal before the program listens also ends it, with the system's status.
    std::thread::sleep(std::time::Duration::from_millis(500));
    running.interrupt();
    let ran = running.finish();
    drop(stdin);
    assert_eq!(ran.refusal(), ("error: interrupted\n", 130));
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    let running = Test::new().args(["demo"]).start();
    let tmp = running.path("tmp");
    eventually(|| std::fs::read_dir(&tmp).unwrap().next()).unwrap();
    running.signal("TERM");
    let ran = running.finish();
    assert_eq!(ran.status, 130, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(std::fs::read_dir(tmp).unwrap().count(), 0);
}
