//! Scripts whose worker ends during a session: they hear the start of the session again before anything else.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook_engine::event::{
    PreToolUse, SessionEnd, SessionEndReason, SessionSource, SessionStart, TurnEnd, UserInput,
};
use tenterhook_engine::{Decision, SessionId};
use tenterhook_process::CancellationToken;
use tenterhook_runners::worker::{Host, Lease, NoHost, Refusal, ScriptServer, WorkerError};

use crate::stage::Stage;

/// Prepares its rules when a session starts, and drops them when it ends. It allows everything without rules.
const GUARD: &str = r#"
import fs from "node:fs";
export default (pi) => {
  let rules;
  pi.on("session_start", async (event, ctx) => {
    fs.appendFileSync("DIR/heard", `${event.reason} ${ctx.sessionManager.getSessionId() ?? ""}\n`);
    if (fs.existsSync("DIR/broken")) throw new Error("no rules");
    if (fs.existsSync("DIR/stuck")) await new Promise(() => {});
    if (fs.existsSync("DIR/fatal")) process.exit(4);
    pi.appendEntry("prepared", {});
    pi.sendMessage({ customType: "rules", content: "there are rules", display: true });
    ctx.ui.notify("the rules are read");
    rules = ["rm"];
  });
  pi.on("session_shutdown", async () => {
    rules = undefined;
    fs.appendFileSync("DIR/ended", "ended\n");
    while (fs.existsSync("DIR/hold")) await new Promise((resolve) => setTimeout(resolve, 5));
  });
  pi.on("tool_call", ({ input }) => rules?.includes(input.command) ? { block: true, reason: "guarded" } : undefined);
  pi.on("input", ({ text }) => rules?.includes(text) ? { action: "handled" } : undefined);
  pi.registerCommand("rules", { handler: async () => { if (!rules) throw new Error("no rules"); } });
};
"#;

/// Ends the worker.
const CRASH: &str = "export default (pi) => { pi.on('turn_end', () => { process.exit(3); }); };";

/// A program that records the requests of its scripts.
#[derive(Debug, Default)]
struct Recorder {
    asked: Mutex<Vec<String>>,
    /// The beginning of the names of the subagents that work for `s1`.
    subagent: Option<&'static str>,
    is_strict: bool,
    /// Whether scripts have a state for each session.
    has_states: bool,
}

impl Recorder {
    fn count(&self, method: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|asked| *asked == method).count()
    }
}

impl Host for Recorder {
    like_no_host!(flags on_output add);

    fn has_ui(&self) -> bool {
        true
    }

    fn is_strict(&self) -> bool {
        self.is_strict
    }

    fn script_session(&self, session: &str) -> Option<String> {
        self.has_states.then(|| format!("{session}#0"))
    }

    fn main_session(&self, session: &str) -> Option<String> {
        let is_subagent = self.subagent.is_some_and(|name| session.starts_with(name));
        is_subagent.then(|| "s1".to_owned())
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        let level = params["level"].as_str().unwrap_or_default();
        let asked = format!("{method} {level}").trim_end().to_owned();
        self.asked.lock().unwrap().push(asked);
        if method == "session/read" {
            return NoHost.answer(method, params);
        }
        Box::pin(std::future::ready(Ok(json!({}))))
    }
}

async fn stage(host: &Arc<Recorder>) -> Stage {
    let stage = Stage::of_node().hosted_by(Arc::clone(host) as _);
    stage.add_leased("pi", "guard.js", GUARD).await;
    stage.add_leased("pi", "crash.js", CRASH).await;
    stage
}

async fn start(stage: &Stage) {
    let _started = stage.hooks().dispatch(SessionStart::default()).await;
}

/// Lets a script end the worker.
async fn crash(stage: &Stage) {
    let before = stage.worker.pid().await;
    assert!(before.is_some());
    let _ended = stage.hooks().dispatch(TurnEnd::new()).await;
    assert_eq!(stage.worker.pid().await, None);
}

fn call(cmd: &str) -> PreToolUse {
    let input = json!({ "cmd": cmd });
    PreToolUse::new("shell").with_tool_input(input.as_object().unwrap().clone())
}

/// Returns why a call of the shell is stopped.
async fn reason(stage: &Stage, cmd: &str) -> Option<String> {
    let outcome = stage.hooks().dispatch(call(cmd)).await;
    outcome.decision().reason().map(str::to_owned)
}

async fn heard(stage: &Stage) -> usize {
    stage.written("heard").await.lines().count()
}

#[tokio::test]
async fn a_guard_has_its_rules_again_after_its_worker_ended() {
    let host = Arc::new(Recorder::default());
    let stage = stage(&host).await;
    start(&stage).await;
    assert_eq!(reason(&stage, "rm").await.as_deref(), Some("guarded"));
    for restarts in 1..=2 {
        crash(&stage).await;
        assert_eq!(reason(&stage, "rm").await.as_deref(), Some("guarded"));
        assert_eq!(reason(&stage, "ls").await, None);
        assert_eq!(heard(&stage).await, 1 + restarts);
    }
    // What the handler did to the session, and showed, is not done again.
    for method in ["session/append", "session/send", "ui/notify info"] {
        assert_eq!(host.count(method), 1, "{method}");
    }
    assert_eq!(host.count("ui/notify error"), 0);
}

#[tokio::test]
async fn many_calls_at_once_wait_for_one_repeated_start() {
    let host = Arc::new(Recorder::default());
    let stage = stage(&host).await;
    start(&stage).await;
    crash(&stage).await;
    let calls = (0..8).map(|_| reason(&stage, "rm"));
    for reason in futures_util::future::join_all(calls).await {
        assert_eq!(reason.as_deref(), Some("guarded"));
    }
    assert_eq!(heard(&stage).await, 2);
}

#[tokio::test]
async fn a_command_of_a_script_runs_after_the_repeated_start() {
    let stage = Stage::of_node().hosted_by(Arc::new(Recorder::default()) as _);
    let guard = stage.add_leased("pi", "guard.js", GUARD).await;
    stage.add_leased("pi", "crash.js", CRASH).await;
    start(&stage).await;
    crash(&stage).await;
    let script = stage.worker.script(guard);
    let (within, never) = (crate::AMPLE, CancellationToken::new());
    script
        .run_command(("rules", ""), "s1", within, &never)
        .await
        .unwrap();
}

// A gate whose failure the system would let pass denies too, because the script could not judge.
#[tokio::test]
async fn gates_deny_if_the_script_cannot_prepare_again() {
    let host = Arc::new(Recorder::default());
    let stage = stage(&host).await;
    start(&stage).await;
    crash(&stage).await;
    fs::write(stage.path("broken"), "").unwrap();
    for _ in 0..2 {
        let reason = reason(&stage, "ls").await.unwrap();
        for part in [
            "`guard.js`",
            "its worker or session ended",
            "`session_start` failed",
            "no rules",
            "begin a new session",
        ] {
            assert!(reason.contains(part), "{reason}");
        }
    }
    let hello = UserInput::new("hello".to_owned());
    let input = stage.hooks().dispatch(hello).await;
    assert!(matches!(input.decision(), Decision::Stop { .. }));
    assert_eq!(heard(&stage).await, 2);
    assert_eq!(host.count("ui/notify error"), 1);
    let hooks = stage.problems();
    assert!(hooks.iter().any(|it| it.contains("no rules")), "{hooks:?}");
    // A new session prepares the script.
    fs::remove_file(stage.path("broken")).unwrap();
    let next = SessionStart::new(SessionSource::New).with_previous_session(SessionId::from("s1"));
    let _started = stage.hooks_of("s2").dispatch(next).await;
    let judged = stage.hooks_of("s2").dispatch(call("ls")).await;
    assert!(matches!(judged.decision(), Decision::Proceed));
    let judged = stage.hooks_of("s2").dispatch(call("rm")).await;
    assert_eq!(judged.decision().reason(), Some("guarded"));
}

#[tokio::test]
async fn a_start_that_fails_as_it_did_before_leaves_the_script_as_it_was() {
    for is_strict in [false, true] {
        let host = Arc::new(Recorder {
            is_strict,
            ..Recorder::default()
        });
        let stage = stage(&host).await;
        fs::write(stage.path("broken"), "").unwrap();
        start(&stage).await;
        assert_eq!(reason(&stage, "ls").await.is_some(), is_strict);
        crash(&stage).await;
        assert_eq!(reason(&stage, "ls").await.is_some(), is_strict);
        assert_eq!(heard(&stage).await, 2);
    }
}

#[tokio::test]
async fn a_start_that_ends_the_worker_again_is_given_up() {
    let stage = stage(&Arc::new(Recorder::default())).await;
    start(&stage).await;
    crash(&stage).await;
    fs::write(stage.path("fatal"), "").unwrap();
    for _ in 0..4 {
        let reason = reason(&stage, "ls").await.unwrap();
        assert!(reason.contains("lacks what it prepared"), "{reason}");
    }
    assert_eq!(heard(&stage).await, 3);
}

#[tokio::test]
async fn a_start_that_does_not_finish_again_stops_gates() {
    let host = Arc::new(Recorder::default());
    let stage = Stage::of_node().hosted_by(Arc::clone(&host) as _);
    stage
        .add_within("pi", "guard.js", GUARD, Duration::from_secs(2))
        .await;
    stage.add_leased("pi", "crash.js", CRASH).await;
    start(&stage).await;
    crash(&stage).await;
    // The worker runs again, so that only the start takes time.
    let other = UserInput::new("hello".to_owned());
    while stage.worker.pid().await.is_none() {
        let _judged = stage.hooks_of("other").dispatch(other.clone()).await;
    }
    fs::write(stage.path("stuck"), "").unwrap();
    let reason = reason(&stage, "ls").await.unwrap();
    assert!(reason.contains("`session_start`"), "{reason}");
}

#[tokio::test]
async fn a_subagent_waits_for_the_start_of_the_session_that_it_works_for() {
    let host = Arc::new(Recorder {
        subagent: Some("helper"),
        ..Recorder::default()
    });
    let stage = stage(&host).await;
    start(&stage).await;
    crash(&stage).await;
    let judged = stage.hooks_of("helper").dispatch(call("rm")).await;
    assert_eq!(judged.decision().reason(), Some("guarded"));
    assert_eq!(heard(&stage).await, 2);
}

#[tokio::test]
async fn a_session_that_is_over_is_not_started_again() {
    let host = Arc::new(Recorder::default());
    let stage = stage(&host).await;
    start(&stage).await;
    let next = SessionStart::new(SessionSource::New).with_previous_session(SessionId::from("s1"));
    let _started = stage.hooks_of("s2").dispatch(next).await;
    crash(&stage).await;
    let judged = stage.hooks_of("s2").dispatch(call("rm")).await;
    assert_eq!(judged.decision().reason(), Some("guarded"));
    assert_eq!(stage.written("heard").await, "startup \nnew \nnew \n");
    // Neither is one that the host has ended.
    stage.worker.end_session("s2").await;
    crash(&stage).await;
    let judged = stage.hooks_of("s2").dispatch(call("ls")).await;
    assert!(matches!(judged.decision(), Decision::Proceed));
    assert_eq!(heard(&stage).await, 3);
}

/// Reports the end of the session, as any program of the agent can.
async fn forge_end(stage: &Stage, lease: &Lease) {
    let end = SessionEnd::new(SessionEndReason::Quit);
    let _ended = stage.hooks().dispatch(end).await;
    lease.end_session("s1");
}

#[tokio::test]
async fn a_forged_end_of_a_session_does_not_take_the_rules_of_a_guard() {
    let host = Arc::new(Recorder::default());
    let stage = Stage::of_node().hosted_by(Arc::clone(&host) as _);
    let guard = stage.add_leased("pi", "guard.js", GUARD).await;
    stage.add_leased("pi", "crash.js", CRASH).await;
    start(&stage).await;
    // The same worker has handled the end.
    for repeated in 1..=2 {
        forge_end(&stage, &guard).await;
        for _ in 0..2 {
            assert_eq!(reason(&stage, "rm").await.as_deref(), Some("guarded"));
        }
        assert_eq!(heard(&stage).await, 1 + repeated);
    }
    assert_eq!(stage.written("ended").await.lines().count(), 2);
    // A new worker has heard neither the start nor the end.
    forge_end(&stage, &guard).await;
    crash(&stage).await;
    assert_eq!(reason(&stage, "rm").await.as_deref(), Some("guarded"));
    assert_eq!(heard(&stage).await, 4);
    forge_end(&stage, &guard).await;
    fs::write(stage.path("broken"), "").unwrap();
    let reason = reason(&stage, "ls").await.unwrap();
    for part in ["its worker or session ended", "no rules"] {
        assert!(reason.contains(part), "{reason}");
    }
}

#[tokio::test]
async fn a_gate_that_judges_while_its_script_handles_a_forged_end_denies() {
    let host = Arc::new(Recorder::default());
    let stage = Stage::of_node().hosted_by(Arc::clone(&host) as _);
    let guard = stage.add_leased("pi", "guard.js", GUARD).await;
    start(&stage).await;
    fs::write(stage.path("hold"), "").unwrap();
    tokio::join!(forge_end(&stage, &guard), async {
        stage.written("ended").await;
        let reason = reason(&stage, "ls").await.unwrap();
        assert!(reason.contains("while it judged"), "{reason}");
        fs::remove_file(stage.path("hold")).unwrap();
    });
    assert_eq!(reason(&stage, "ls").await, None);
    assert_eq!(reason(&stage, "rm").await.as_deref(), Some("guarded"));
}

#[tokio::test]
async fn while_a_script_may_still_handle_a_forged_end_its_gates_deny() {
    let host = Arc::new(Recorder::default());
    let stage = Stage::of_node().hosted_by(Arc::clone(&host) as _);
    let within = Duration::from_secs(2);
    let guard = stage.add_within("pi", "guard.js", GUARD, within).await;
    start(&stage).await;
    fs::write(stage.path("hold"), "").unwrap();
    forge_end(&stage, &guard).await;
    for _ in 0..2 {
        let reason = reason(&stage, "ls").await.unwrap();
        assert!(reason.contains("handled the end"), "{reason}");
    }
    // A start does not change that: the handler of the end may drop what the start prepares.
    start(&stage).await;
    let reason = reason(&stage, "ls").await.unwrap();
    assert!(reason.contains("handled the end"), "{reason}");
    fs::remove_file(stage.path("hold")).unwrap();
    assert_ready(&stage).await;
}

/// Waits until calls of the session are judged, and checks that the guard has its rules.
async fn assert_ready(stage: &Stage) {
    let began = Instant::now();
    while let Some(reason) = reason(stage, "ls").await {
        assert!(began.elapsed() < crate::AMPLE, "{reason}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(reason(stage, "rm").await.as_deref(), Some("guarded"));
}

#[tokio::test]
async fn a_session_that_continues_after_a_slow_end_is_not_refused_any_more() {
    let host = Arc::new(Recorder::default());
    let stage = Stage::of_node().hosted_by(Arc::clone(&host) as _);
    let within = Duration::from_secs(1);
    let guard = stage.add_within("pi", "guard.js", GUARD, within).await;
    start(&stage).await;
    // The handler finishes late.
    fs::write(stage.path("hold"), "").unwrap();
    forge_end(&stage, &guard).await;
    assert!(reason(&stage, "ls").await.is_some());
    fs::remove_file(stage.path("hold")).unwrap();
    assert_ready(&stage).await;
    // The handler never finishes, so its worker is ended.
    let worker = stage.worker.pid().await;
    fs::write(stage.path("hold"), "").unwrap();
    forge_end(&stage, &guard).await;
    assert!(reason(&stage, "ls").await.is_some());
    assert_ready(&stage).await;
    assert_ne!(stage.worker.pid().await, worker);
}

#[tokio::test]
async fn an_end_that_is_cancelled_counts_until_its_handler_is_done() {
    let stage = stage(&Arc::new(Recorder::default())).await;
    start(&stage).await;
    fs::write(stage.path("hold"), "").unwrap();
    let hooks = stage.hooks();
    let end = hooks.dispatch(SessionEnd::new(SessionEndReason::Quit));
    tokio::select! {
        _ = end => panic!("the end is held"),
        _ = stage.written("ended") => {}
    }
    let reason = reason(&stage, "ls").await.unwrap();
    assert!(reason.contains("handled the end"), "{reason}");
    fs::remove_file(stage.path("hold")).unwrap();
    assert_ready(&stage).await;
}

#[tokio::test]
async fn a_start_that_names_another_session_does_not_take_the_rules_of_its_guard() {
    let stage = stage(&Arc::new(Recorder::default())).await;
    start(&stage).await;
    let next = SessionStart::new(SessionSource::New).with_previous_session(SessionId::from("s1"));
    let _started = stage.hooks_of("forged").dispatch(next).await;
    crash(&stage).await;
    assert_eq!(reason(&stage, "rm").await.as_deref(), Some("guarded"));
}

/// Adds a rule when a session is resumed.
const ADDING: &str = r#"
import fs from "node:fs";
export default (pi) => {
  let rules;
  pi.on("session_start", () => { rules = ["rm"]; fs.appendFileSync("DIR/heard", "startup\n"); });
  pi.on("session_start", () => { rules?.push("mv"); fs.appendFileSync("DIR/heard", "resume\n"); });
  pi.on("session_shutdown", () => { rules = []; });
  pi.on("tool_call", ({ input }) => rules?.includes(input.command) ? { block: true, reason: "guarded" } : undefined);
};
"#;

#[tokio::test]
async fn a_resumed_session_hears_its_starts_again_in_their_order() {
    let stage = Stage::of_node().hosted_by(Arc::new(Recorder::default()) as _);
    let (within, matchers) = (crate::AMPLE, ["startup", "resume"]);
    let script = ("guard.js", ADDING);
    let guard = stage.add_matching("pi", script, within, &matchers).await;
    stage.add_leased("pi", "crash.js", CRASH).await;
    start(&stage).await;
    forge_end(&stage, &guard).await;
    let resumed = SessionStart::new(SessionSource::Resume);
    let _started = stage.hooks().dispatch(resumed).await;
    for _ in 0..2 {
        for cmd in ["rm", "mv"] {
            assert_eq!(reason(&stage, cmd).await.as_deref(), Some("guarded"));
        }
        assert_eq!(reason(&stage, "ls").await, None);
        crash(&stage).await;
    }
    let heard = stage.written("heard").await;
    assert_eq!(heard, "startup\nresume\n".repeat(3));
}

#[tokio::test]
async fn a_script_that_handles_no_end_is_not_started_again_by_one() {
    let text = GUARD.replace("session_shutdown", "session_tree");
    let stage = Stage::of_node().hosted_by(Arc::new(Recorder::default()) as _);
    let guard = stage.add_leased("pi", "guard.js", &text).await;
    stage.add_leased("pi", "crash.js", CRASH).await;
    start(&stage).await;
    forge_end(&stage, &guard).await;
    assert_eq!(reason(&stage, "rm").await.as_deref(), Some("guarded"));
    assert_eq!(heard(&stage).await, 1);
    crash(&stage).await;
    assert_eq!(reason(&stage, "rm").await.as_deref(), Some("guarded"));
    assert_eq!(heard(&stage).await, 2);
}

#[tokio::test]
async fn a_start_during_which_the_worker_is_new_does_not_hide_the_earlier_one() {
    let host = Arc::new(Recorder::default());
    let stage = stage(&host).await;
    start(&stage).await;
    crash(&stage).await;
    fs::write(stage.path("stuck"), "").unwrap();
    let forged = stage.hooks();
    let forged = forged.dispatch(SessionStart::default());
    tokio::pin!(forged);
    tokio::select! {
        _ = &mut forged => panic!("the start is stuck"),
        () = async {
            while heard(&stage).await < 2 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            fs::remove_file(stage.path("stuck")).unwrap();
            let reason = reason(&stage, "rm").await;
            assert_eq!(reason.as_deref(), Some("guarded"));
        } => {}
    }
    assert_eq!(heard(&stage).await, 3);
}

#[tokio::test]
async fn a_script_that_heard_no_start_hears_none_again() {
    let stage = stage(&Arc::new(Recorder::default())).await;
    assert_eq!(reason(&stage, "rm").await, None);
    crash(&stage).await;
    assert_eq!(reason(&stage, "rm").await, None);
    assert!(!stage.path("heard").exists());
}

#[tokio::test]
async fn a_python_script_hears_the_start_again_too() {
    let guard = "\
from operator_use.program.hooks import types as t
rules = []
async def prepare(event):
    open('DIR/heard', 'a').write('heard\\n')
    rules.append('rm')
async def guard(event):
    if event.input['cmd'] in rules:
        return t.ToolCallEventResult(block=True, reason='guarded')
async def crash(event):
    import os
    os._exit(3)
hooks = [('session_start', prepare), ('tool_call', guard), ('turn_end', crash)]
";
    let stage = Stage::new();
    stage.add_leased("operator", "guard.py", guard).await;
    start(&stage).await;
    assert_eq!(reason(&stage, "rm").await.as_deref(), Some("guarded"));
    crash(&stage).await;
    assert_eq!(reason(&stage, "rm").await.as_deref(), Some("guarded"));
    assert_eq!(heard(&stage).await, 2);
}

/// Counts the states that it has had. A command keeps the worker from reading.
const STATES: &str = r#"
import fs from "node:fs";
const pause = new Int32Array(new SharedArrayBuffer(4));
let made = 0;
export default (pi) => {
  made += 1;
  pi.registerCommand("count", { handler: async () => { fs.writeFileSync("DIR/count", `${made}`); } });
  pi.registerCommand("skip", { handler: async () => {} });
  pi.registerCommand("block", { handler: async () => {
    fs.writeFileSync("DIR/blocked", "blocked");
    while (!fs.existsSync("DIR/go")) Atomics.wait(pause, 0, 0, 5);
  } });
};
"#;

/// A stage whose script has a state for each session, with the count of states, including the first one of no session.
async fn stage_of_states() -> (Stage, Arc<dyn ScriptServer>) {
    let host = Arc::new(Recorder {
        has_states: true,
        ..Recorder::default()
    });
    let stage = Stage::of_node().hosted_by(host as _);
    let (lease, _) = stage.lease("pi", "states.js", STATES).await;
    let script = stage.worker.script(lease);
    (stage, script)
}

async fn command(
    script: &dyn ScriptServer,
    command: (&str, &str),
    session: &str,
) -> Result<(), WorkerError> {
    let (within, never) = (Duration::from_mins(1), CancellationToken::new());
    script.run_command(command, session, within, &never).await
}

/// Fills the pipe to the worker, and all but a few bytes of the buffer behind it.
async fn fill(script: &dyn ScriptServer) -> [Result<(), WorkerError>; 2] {
    let (much, rest) = ("x".repeat(3 << 20), "x".repeat((1 << 20) - 140));
    let skip = async |args: &str| command(script, ("skip", args), "s2").await;
    tokio::join!(skip(&much), skip(&rest)).into()
}

/// Lets the other tasks of this thread work until they wait for the worker.
async fn halt() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Ends a session, once the pipe is full.
async fn end_session(stage: &Stage) {
    halt().await;
    stage.worker.end_session("s1#0").await;
}

#[tokio::test]
async fn a_worker_that_does_not_read_learns_later_that_a_session_is_over() {
    let (stage, script) = stage_of_states().await;
    command(&*script, ("count", ""), "s1").await.unwrap();
    assert_eq!(stage.written("count").await, "2");
    let (blocked, ()) = tokio::join!(command(&*script, ("block", ""), "s2"), async {
        stage.written("blocked").await;
        let (skipped, (), ()) =
            tokio::join!(fill(&*script), stage.worker.end_session("s1#0"), async {
                halt().await;
                halt().await;
                fs::write(stage.path("go"), "").unwrap();
            },);
        assert_eq!(skipped, [Ok(()), Ok(())]);
    });
    blocked.unwrap();
    // The state of the session is made anew.
    command(&*script, ("count", ""), "s1").await.unwrap();
    assert_eq!(stage.written("count").await, "4");
}

#[tokio::test]
async fn a_worker_that_never_reads_that_a_session_is_over_is_ended() {
    let (stage, script) = stage_of_states().await;
    let (blocked, ()) = tokio::join!(command(&*script, ("block", ""), "s2"), async {
        stage.written("blocked").await;
        let (skipped, ()) = tokio::join!(fill(&*script), end_session(&stage));
        assert!(skipped.iter().all(Result::is_err));
    });
    let error = blocked.unwrap_err().to_string();
    assert!(error.contains("did not read for 5 seconds"), "{error}");
    command(&*script, ("count", ""), "s1").await.unwrap();
    assert_eq!(stage.written("count").await, "2");
}

/// Makes its first two states at once: the state of no session, and the state of `s1`.
const SLOW: &str = r#"
import fs from "node:fs";
let made = 0;
export default async (pi) => {
  made += 1;
  if (made > 2 && fs.existsSync("DIR/broken")) throw new Error("no room");
  while (made > 2 && !fs.existsSync("DIR/ready")) await new Promise((resolve) => setTimeout(resolve, 5));
  pi.on("input", ({ text }) => text === "rm" ? { action: "handled" } : undefined);
};
"#;

/// Returns whether an input of a session reaches the agent.
async fn proceeds(stage: &Stage, session: &str, text: &str) -> bool {
    let input = UserInput::new(text.to_owned());
    let outcome = stage.hooks_of(session).dispatch(input).await;
    outcome.decision() == Decision::Proceed && !outcome.is_handled()
}

// pi lets an input pass if its handler fails. Here, there is no handler yet that could fail.
#[tokio::test]
async fn no_event_passes_a_gate_whose_state_for_the_session_is_missing() {
    let host = Arc::new(Recorder {
        has_states: true,
        ..Recorder::default()
    });
    let stage = Stage::of_node().hosted_by(host as _);
    let within = Duration::from_secs(2);
    stage.add_within("pi", "slow.js", SLOW, within).await;
    assert!(proceeds(&stage, "s1", "ls").await);
    let worker = stage.worker.pid().await;
    assert!(!proceeds(&stage, "s2", "ls").await, "it is not ready");
    fs::write(stage.path("broken"), "").unwrap();
    assert!(!proceeds(&stage, "s3", "ls").await, "it cannot be made");
    fs::write(stage.path("ready"), "").unwrap();
    fs::remove_file(stage.path("broken")).unwrap();
    for session in ["s1", "s2", "s3"] {
        assert!(proceeds(&stage, session, "ls").await, "{session}");
        assert!(!proceeds(&stage, session, "rm").await, "{session}");
    }
    // Sessions that are slow end no worker.
    assert_eq!(stage.worker.pid().await, worker);
}
