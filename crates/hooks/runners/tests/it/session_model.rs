//! A model of sessions, restarts and ends, which a real worker must match after every step.
//!
//! The script reads its rules when a session starts and drops them when the session ends. The model states what the
//! script handles, in which order, and how each gate judges.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::{Value, json};
use tempfile::TempDir;
use tenterhook_engine::event::{
    PreToolUse, SessionEnd, SessionEndReason, SessionSource, SessionStart, TurnEnd,
};
use tenterhook_engine::{
    Dispatcher, Engine, EventKind, HookSpec, OnError, Origin, Policy, SessionId,
};
use tenterhook_process::{Command, Program};
use tenterhook_runners::worker::{Host, Lease, NoHost, Refusal, Script, Worker, WorkerHandler};
use tenterhook_systems::native::Native;

/// A worker with one script. Its guard denies while it has the rules of the session.
const WORKER: &str = r"
import json, os, sys
HOOKS = ['session_start', 'session_end', 'pre_tool_use', 'turn_end']
rules = set()
def handle(event):
    name, session = event['hook_event_name'], event['session_id']
    with open('DIR/handled', 'a') as log:
        log.write(f'{name} {session}\n')
    if name == 'session_start':
        if os.path.exists('DIR/broken'):
            raise ValueError('no rules')
        rules.add(session)
    elif name == 'session_end':
        rules.discard(session)
    elif name == 'turn_end':
        os._exit(3)
    elif session in rules:
        return {'decision': 'deny', 'reason': 'guarded'}
def answer(method, params):
    if method == 'initialize':
        return {'protocol_version': 1}
    if method == 'script/load':
        return {'hooks': [{'name': name, 'event': name} for name in HOOKS]}
    return handle(params['event']) if method == 'event/handle' else {}
for line in sys.stdin:
    message = json.loads(line)
    try:
        result = {'result': answer(message['method'], message['params'])}
    except ValueError as error:
        result = {'error': {'code': 1, 'message': str(error)}}
    if 'id' in message:
        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], **result}), flush=True)
    if message['method'] == 'shutdown':
        break
";

/// The kinds of the hooks, in the order of `HOOKS`.
const KINDS: [EventKind; 4] = [
    EventKind::SessionStart,
    EventKind::SessionEnd,
    EventKind::PreToolUse,
    EventKind::TurnEnd,
];

/// Two sessions, and a subagent that works for the first one.
const SESSIONS: [&str; 3] = ["s1", "s2", "helper"];

/// Returns the session that the starts of `session` are kept with.
fn conversation(session: &str) -> &str {
    if session == "helper" { "s1" } else { session }
}

/// A program whose session `s1` has a subagent.
#[derive(Debug)]
struct Agent;

impl Host for Agent {
    like_no_host!(has_ui flags script_session on_output add);

    fn is_strict(&self) -> bool {
        false
    }

    fn main_session(&self, session: &str) -> Option<String> {
        (session == "helper").then(|| "s1".to_owned())
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        NoHost.answer(method, params)
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// The session starts, or starts once more.
    Start(&'static str),
    /// A tool is called.
    Call(&'static str),
    /// The session ends, and the host says that it cannot continue.
    End(&'static str),
    /// The end of the session is reported, although it may continue.
    ForgedEnd(&'static str),
    /// The worker ends after an answer.
    Restart,
    /// The worker is killed during a call.
    Kill,
    /// From now on, a start of a session fails or succeeds.
    Break(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let session = || prop::sample::select(&SESSIONS[..]);
    prop_oneof![
        4 => session().prop_map(Step::Start),
        6 => session().prop_map(Step::Call),
        1 => prop::sample::select(&SESSIONS[..2]).prop_map(Step::End),
        3 => session().prop_map(Step::ForgedEnd),
        3 => Just(Step::Restart),
        1 => Just(Step::Kill),
        2 => any::<bool>().prop_map(Step::Break),
    ]
}

/// A start that the script has received.
#[derive(Debug, Clone)]
struct ModelStart {
    session: &'static str,
    /// Whether it failed the first time, so that the script worked without its rules.
    failed_first: bool,
    state: ModelState,
    /// Whether the script received an end of the session afterwards.
    has_ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelState {
    /// No process has handled it.
    Unheard,
    /// This process has handled it, perhaps with a failure.
    Handled { process: u32, has_failed: bool },
    /// This process could not handle it again.
    Lost { process: u32 },
}

/// What the script is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Start,
    End,
    Judgement,
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Allowed,
    Guarded,
    /// The script lacks its rules, so it was not asked.
    NotReady,
}

/// What a session and its process must look like.
#[derive(Debug, Default)]
struct Model {
    handled: String,
    process: u32,
    is_running: bool,
    is_broken: bool,
    /// The rules in the memory of the process.
    rules: BTreeSet<&'static str>,
    starts: BTreeMap<&'static str, Vec<ModelStart>>,
    /// The conversations that were reported as over.
    over: BTreeSet<&'static str>,
}

impl Model {
    fn run(&mut self) {
        if !self.is_running {
            self.process += 1;
            self.is_running = true;
            self.rules.clear();
        }
    }

    fn stop(&mut self) {
        self.is_running = false;
    }

    fn handle(&mut self, event: &str, session: &str) {
        self.handled.extend([event, " ", session, "\n"]);
    }

    /// Handles a start. Returns whether it failed.
    fn prepare(&mut self, session: &'static str) -> bool {
        self.handle("session_start", session);
        if !self.is_broken {
            self.rules.insert(session);
        }
        self.is_broken
    }

    /// Repeats what the process lacks before a call, except for earlier starts of a session that starts. Returns
    /// whether the script can be called.
    fn restore(&mut self, session: &'static str, asked: Asked) -> bool {
        let name = conversation(session);
        let Some(mut starts) = self.starts.remove(name) else {
            return true;
        };
        let mut needed = starts
            .iter_mut()
            .filter(|start| asked != Asked::Start || start.session != session);
        let is_ready = needed.all(|start| self.restore_one(start, asked));
        self.starts.insert(name, starts);
        is_ready
    }

    /// Repeats a start that the process lacks. Returns whether the script can be called.
    fn restore_one(&mut self, start: &mut ModelStart, asked: Asked) -> bool {
        let process = self.process;
        match start.state {
            ModelState::Handled { process: by, .. }
                if by == process && (asked == Asked::End || !start.has_ended) =>
            {
                return true;
            }
            ModelState::Lost { process: by } if by == process => return false,
            ModelState::Unheard | ModelState::Handled { .. } | ModelState::Lost { .. } => {}
        }
        let has_failed = self.prepare(start.session);
        if has_failed && !start.failed_first {
            start.state = ModelState::Lost { process };
            return false;
        }
        start.has_ended = false;
        start.state = ModelState::Handled {
            process,
            has_failed,
        };
        true
    }

    fn start(&mut self, session: &'static str) {
        self.run();
        self.over.remove(conversation(session));
        let is_ready = self.restore(session, Asked::Start);
        let mut start = ModelStart {
            session,
            failed_first: false,
            state: ModelState::Unheard,
            has_ended: false,
        };
        if is_ready {
            start.failed_first = self.prepare(session);
            start.state = ModelState::Handled {
                process: self.process,
                has_failed: start.failed_first,
            };
        }
        let starts = self.starts.entry(conversation(session)).or_default();
        starts.retain(|start| start.session != session);
        starts.push(start);
    }

    fn call(&mut self, session: &'static str) -> Verdict {
        self.run();
        if !self.restore(session, Asked::Judgement) {
            return Verdict::NotReady;
        }
        self.handle("pre_tool_use", session);
        if self.rules.contains(session) {
            Verdict::Guarded
        } else {
            Verdict::Allowed
        }
    }

    fn end(&mut self, session: &'static str) {
        self.run();
        if self.restore(session, Asked::End) {
            self.handle("session_end", session);
            self.rules.remove(session);
        }
        let starts = self.starts.get_mut(conversation(session));
        for start in starts.into_iter().flatten() {
            start.has_ended |= start.session == session;
        }
    }

    /// Returns whether an open conversation cannot rely on the script.
    fn has_problem(&self) -> bool {
        let open = self
            .starts
            .iter()
            .filter(|(name, _)| !self.over.contains(*name));
        open.flat_map(|(_, starts)| starts).any(|start| {
            matches!(
                start.state,
                ModelState::Lost { .. }
                    | ModelState::Handled {
                        has_failed: true,
                        ..
                    }
            )
        })
    }
}

/// A worker with its script, and an engine with the hooks.
struct System {
    dir: TempDir,
    worker: Worker,
    lease: Lease,
    engine: Engine,
}

impl System {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("worker.py");
        let text = WORKER.replace("DIR", dir.path().to_str().unwrap());
        fs::write(&path, text).unwrap();
        let argv = [
            "python3".into(),
            "-I".into(),
            "-S".into(),
            path.clone().into_os_string(),
        ];
        let worker = Worker::new("model", Command::new(Program::exec(argv)));
        let worker = worker.hosted_by(Arc::new(Agent));
        let script = Script {
            path,
            api: "tenterhook",
            approved: None,
        };
        let (_, registered) = worker.load(&script).await.unwrap();
        let lease = worker.expect(&script, registered.hooks, None).await;
        let engine = Engine::new();
        for (hook, kind) in KINDS.into_iter().enumerate() {
            let handler =
                WorkerHandler::leased(worker.clone(), (lease.clone(), hook), Native::new(), "hook");
            engine.register(HookSpec {
                policy: Policy::new(OnError::Warn, "test"),
                ..HookSpec::new(kind, kind.info().name, Arc::new(handler))
            });
        }
        Self {
            dir,
            worker,
            lease,
            engine,
        }
    }

    fn hooks(&self, session: &str) -> Dispatcher {
        self.engine.dispatcher(Origin::new(session, "/w"))
    }

    /// Starts a session with an event of 6 MiB, two of which can be kept.
    async fn start_large(&self, session: &str) {
        let previous = SessionId::from("x".repeat(6 << 20).as_str());
        let start = SessionStart::new(SessionSource::New).with_previous_session(previous);
        let _started = self.hooks(session).dispatch(start).await;
    }

    async fn call(&self, session: &str) -> Verdict {
        let input = json!({ "cmd": "rm" }).as_object().unwrap().clone();
        let call = PreToolUse::new("shell").with_tool_input(input);
        let outcome = self.hooks(session).dispatch(call).await;
        match outcome.decision().reason() {
            None => Verdict::Allowed,
            Some("guarded") => Verdict::Guarded,
            Some(reason) => {
                assert!(reason.contains("begin a new session"), "{reason}");
                Verdict::NotReady
            }
        }
    }

    async fn end(&self, session: &str) {
        let end = SessionEnd::new(SessionEndReason::Quit);
        let _ended = self.hooks(session).dispatch(end).await;
    }

    fn handled(&self) -> String {
        fs::read_to_string(self.dir.path().join("handled")).unwrap_or_default()
    }

    fn has_problem(&self) -> bool {
        self.engine
            .hooks()
            .iter()
            .any(|hook| hook.problem.is_some())
    }
}

/// Does one step with the worker and with the model.
async fn take(step: Step, system: &System, model: &mut Model) {
    match step {
        Step::Start(session) => {
            let start = SessionStart::default();
            let _started = system.hooks(session).dispatch(start).await;
            model.start(session);
        }
        Step::Call(session) => {
            assert_eq!(system.call(session).await, model.call(session));
        }
        Step::End(session) => {
            system.end(session).await;
            system.worker.end_session(session).await;
            model.end(session);
            model.starts.remove(session);
        }
        Step::ForgedEnd(session) => {
            system.end(session).await;
            system.lease.end_session(session);
            model.end(session);
            if model.starts.contains_key(conversation(session)) {
                model.over.insert(conversation(session));
            }
        }
        Step::Restart => {
            system.worker.shutdown().await;
            model.stop();
        }
        Step::Kill => {
            let _ended = system.hooks("other").dispatch(TurnEnd::new()).await;
            model.run();
            model.handle("turn_end", "other");
            model.stop();
        }
        Step::Break(is_broken) => {
            let path = system.dir.path().join("broken");
            if is_broken {
                fs::write(path, "").unwrap();
            } else if path.exists() {
                fs::remove_file(path).unwrap();
            }
            model.is_broken = is_broken;
        }
    }
}

async fn compare(steps: Vec<Step>) {
    let system = System::new().await;
    let mut model = Model::default();
    model.run();
    let mut kills = 0;
    for step in steps {
        // After the third failure in a row, a worker is not restarted for a while.
        if matches!(step, Step::Kill) {
            kills += 1;
            if kills > 2 {
                continue;
            }
        }
        take(step, &system, &mut model).await;
        assert_eq!(system.handled(), model.handled, "after {step:?}");
        assert_eq!(system.has_problem(), model.has_problem(), "after {step:?}");
    }
    system.worker.shutdown().await;
}

proptest! {
    #![proptest_config(Config { cases: 32, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_script_has_what_it_prepared_whatever_happens_to_its_worker_and_its_sessions(
        steps in prop::collection::vec(step(), 1..24),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(compare(steps));
    }
}

#[tokio::test]
async fn gates_deny_in_a_session_whose_start_is_not_kept_because_there_are_too_many() {
    let system = System::new().await;
    for session in ["s1", "s2"] {
        system.start_large(session).await;
    }
    assert_eq!(system.call("never-started").await, Verdict::Allowed);
    system.start_large("s3").await;
    for restarts in 0..2 {
        for session in ["s1", "s2", "helper"] {
            let expected = if session == "helper" {
                Verdict::Allowed
            } else {
                Verdict::Guarded
            };
            assert_eq!(system.call(session).await, expected, "{session} {restarts}");
        }
        // It is unknown whether a session without a start had one.
        for session in ["s3", "never-started"] {
            let verdict = system.call(session).await;
            assert_eq!(verdict, Verdict::NotReady, "{session} {restarts}");
        }
        system.worker.shutdown().await;
    }
    // A session that is over makes room. If it continues nevertheless, its gates deny.
    system.lease.end_session("s2");
    system.start_large("s3").await;
    assert_eq!(system.call("s3").await, Verdict::Guarded);
    assert_eq!(system.call("s2").await, Verdict::NotReady);
    // The start of a subagent that is not kept counts for its session too.
    system.start_large("helper").await;
    for session in ["s1", "helper"] {
        assert_eq!(system.call(session).await, Verdict::NotReady, "{session}");
    }
    assert_eq!(system.call("s3").await, Verdict::Guarded);
}
