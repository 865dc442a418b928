//! Checks whether a program speaks the worker protocol. Each step of the conversation states what
//! it expects.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tenterhook_engine::{EventKind, EventName};
use tenterhook_process::{CancellationToken, Command, Companion};
use tokio::time::{Instant, timeout};

use super::calls::CallNotes;
use super::connection::Connection;
use super::error::WorkerError;
use super::host::NoHost;
use super::protocol::{PROTOCOL_VERSION, hello};
use super::requests::{Requests, Sender};
use super::script::ScriptHook;
use super::scripts::LateScripts;
use super::wire::Wire;

/// How long one step may take.
const STEP: Duration = Duration::from_secs(10);
/// The id of a call that was never made.
const UNKNOWN_CALL: u64 = 4_000_000_000;

/// How many calls are made at once.
const CONCURRENT_CALLS: usize = 16;

/// One step of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckStep {
    /// What the worker should do.
    pub what: &'static str,
    /// What is wrong, or `None` if the step passed.
    pub problem: Option<String>,
}

/// Talks to a worker from its start to its end, then starts a second one and closes its input.
/// Returns early if a step fails that all later steps need.
///
/// # Panics
/// Panics outside a tokio runtime with I/O and time enabled.
pub async fn check(command: &Command, script: &Path, api: &str) -> Vec<CheckStep> {
    let mut steps = Vec::new();
    let sender = Sender::Scripts(Arc::new(LateScripts::none()));
    let requests = Requests::new(Arc::new(NoHost), sender);
    let connection = match Connection::start("worker", 1, command, Wire::WORKER, &requests) {
        Ok(connection) => connection,
        Err(problem) => {
            note(&mut steps, "it starts", Err(problem));
            return steps;
        }
    };
    note(&mut steps, "it starts", Ok(()));
    let hello = ask(&connection, "initialize", &hello(false)).await;
    let separates_sessions = hello.and_then(|answer| check_hello(&answer));
    note(
        &mut steps,
        "it answers `initialize` with the protocol version",
        separates_sessions.clone().map(|_| ()),
    );
    let Ok(separates_sessions) = separates_sessions else {
        return steps;
    };
    let hooks = check_script(&connection, &mut steps, script, api).await;
    if let Some(hook) = hooks.first().filter(|_| separates_sessions) {
        check_sessions(&connection, &mut steps, hook.0).await;
    }
    check_replay(&connection, &mut steps, &hooks, separates_sessions).await;
    check_refusals(&connection, &mut steps, hooks.len()).await;
    let asked = connection.ask_to_end(STEP).await;
    let over = timeout(STEP, connection.over()).await;
    let over = over.map_err(|_| format!("it is still running {} seconds later", STEP.as_secs()));
    note(
        &mut steps,
        "it answers `shutdown` and ends",
        asked.and(over),
    );
    note(
        &mut steps,
        "it ends when its input is closed",
        check_closing(command).await,
    );
    steps
}

/// Loads a script and calls its first hook. Returns the events of its hooks, with their positions.
async fn check_script(
    connection: &Connection,
    steps: &mut Vec<CheckStep>,
    script: &Path,
    api: &str,
) -> Vec<(usize, EventName)> {
    let params = json!({"script": 0, "path": script.to_string_lossy(), "api": api});
    let loaded = ask(connection, "script/load", &params).await;
    let hooks = loaded.and_then(|answer| check_hooks(&answer));
    note(
        steps,
        "it answers `script/load` with hooks of known events",
        hooks.clone().map(|_| ()),
    );
    let missing = json!({"script": 1, "path": "/nowhere/at/all", "api": api});
    let missing = refused(ask(connection, "script/load", &missing).await);
    note(steps, "it answers a missing script with an error", missing);
    let hooks = hooks.unwrap_or_default();
    if let Some((hook, _)) = hooks.first() {
        let call = json!({"script": 0, "hook": hook, "event": {}});
        note(
            steps,
            "it answers `event/handle`",
            answered(connection, &call).await,
        );
        note(
            steps,
            "it answers many concurrent calls",
            all_answered(connection, &vec![call; CONCURRENT_CALLS]).await,
        );
    }
    hooks
}

/// Begins two sessions, calls a hook in both, and ends one of them, for a worker that keeps a state for each.
async fn check_sessions(connection: &Connection, steps: &mut Vec<CheckStep>, hook: usize) {
    note(
        steps,
        "it answers `script/begin` of two sessions",
        match begin(connection, "first").await {
            Ok(()) => begin(connection, "second").await,
            failed => failed,
        },
    );
    let calls: Vec<_> = ["first", "second"]
        .into_iter()
        .cycle()
        .take(CONCURRENT_CALLS)
        .map(|session| json!({"script": 0, "hook": hook, "event": {}, "session": session}))
        .collect();
    note(
        steps,
        "it answers concurrent calls of two sessions",
        all_answered(connection, &calls).await,
    );
    connection.end_session("first").await;
    note(
        steps,
        "it answers `script/begin` of a session again after `$/session_end`",
        begin(connection, "first").await,
    );
    note(
        steps,
        "it answers calls of both sessions after it",
        all_answered(connection, &calls).await,
    );
}

async fn begin(connection: &Connection, session: &str) -> Result<(), String> {
    let params = json!({"script": 0, "session": session});
    ask(connection, "script/begin", &params).await.map(|_| ())
}

/// Repeats the start of a session, for a script that has a hook of it.
async fn check_replay(
    connection: &Connection,
    steps: &mut Vec<CheckStep>,
    hooks: &[(usize, EventName)],
    separates_sessions: bool,
) {
    let start = EventName::Known(EventKind::SessionStart);
    let Some((hook, _)) = hooks.iter().find(|(_, event)| *event == start) else {
        return;
    };
    let mut call = json!({"script": 0, "hook": hook, "event": {}, "replay": true});
    if separates_sessions && let Some(call) = call.as_object_mut() {
        call.insert("session".to_owned(), json!("first"));
    }
    note(
        steps,
        "it answers a repeated `session_start`",
        answered(connection, &call).await,
    );
}

/// Makes calls that must fail.
async fn check_refusals(connection: &Connection, steps: &mut Vec<CheckStep>, hooks: usize) {
    let none = json!({"script": 0, "hook": hooks + 1, "event": {}});
    let none = refused(ask(connection, "event/handle", &none).await);
    note(steps, "it answers a missing hook with an error", none);
    let unknown = refused(ask(connection, "no/such/method", &json!({})).await);
    note(steps, "it answers an unknown method with an error", unknown);
    connection.cancel(UNKNOWN_CALL);
    let alive = refused(ask(connection, "no/such/method", &json!({})).await);
    note(steps, "it ignores `$/cancel` for an unknown call", alive);
}

fn note(steps: &mut Vec<CheckStep>, what: &'static str, result: Result<(), String>) {
    steps.push(CheckStep {
        what,
        problem: result.err(),
    });
}

async fn ask(connection: &Connection, method: &str, params: &Value) -> Result<Value, String> {
    let never = CancellationToken::new();
    let params = params.to_string();
    let deadline = Instant::now() + STEP;
    let request: (&str, &[&[u8]]) = (method, &[params.as_bytes()]);
    let answer = connection.call_once(request, CallNotes::default(), deadline, &never);
    match answer.await {
        Ok(answer) => serde_json::from_slice(&answer).map_err(|error| error.to_string()),
        Err(WorkerError::TimedOut) => Err(format!("no answer within {} seconds", STEP.as_secs())),
        Err(error) => Err(error.to_string()),
    }
}

/// Accepts any answer of a hook, even an error, because a hook may reject the empty event.
async fn answered(connection: &Connection, params: &Value) -> Result<(), String> {
    let answer = ask(connection, "event/handle", params).await;
    match connection.death() {
        Some(problem) => Err(problem),
        None => match answer {
            Err(problem) if problem.starts_with("no answer") => Err(problem),
            _ => Ok(()),
        },
    }
}

async fn all_answered(connection: &Connection, calls: &[Value]) -> Result<(), String> {
    let calls = calls.iter().map(|call| answered(connection, call));
    let answers = futures_util::future::join_all(calls).await;
    answers.into_iter().collect()
}

fn refused(answer: Result<Value, String>) -> Result<(), String> {
    match answer {
        Ok(answer) => Err(format!("it answered {answer}, expected an `error`")),
        Err(problem) if problem.starts_with("no answer") || problem.starts_with("worker `") => {
            Err(problem)
        }
        Err(_) => Ok(()),
    }
}

/// Returns whether the worker keeps a state for each session.
fn check_hello(answer: &Value) -> Result<bool, String> {
    match answer.get("protocol_version") {
        Some(version) if *version == PROTOCOL_VERSION => {}
        other => {
            return Err(format!(
                "`protocol_version` is {}, expected {PROTOCOL_VERSION}",
                other.unwrap_or(&Value::Null)
            ));
        }
    }
    match answer.get("sessions") {
        None => Ok(false),
        Some(Value::Bool(separates)) => Ok(*separates),
        Some(other) => Err(format!("`sessions` is {other}, expected true or false")),
    }
}

fn check_hooks(answer: &Value) -> Result<Vec<(usize, EventName)>, String> {
    let hooks: Vec<ScriptHook> =
        serde_json::from_value(answer.get("hooks").cloned().unwrap_or_default())
            .map_err(|error| format!("`hooks`: {error}"))?;
    if hooks.is_empty() {
        return Err("`hooks` is empty, expected at least one hook to call".to_owned());
    }
    let events = hooks.iter().enumerate().map(|(position, hook)| {
        let event = hook.event.parse::<EventName>();
        let event = event.map_err(|error| format!("hook `{}`: {error}", hook.name))?;
        Ok((position, event))
    });
    events.collect()
}

async fn check_closing(command: &Command) -> Result<(), String> {
    let (child, pipes) =
        Companion::start(command).map_err(|error| tenterhook_engine::error_chain(&error))?;
    drop(pipes.stdin);
    let began = Instant::now();
    child.end(STEP).await;
    // `end` returns before the time is over only if the process ended by itself.
    if began.elapsed() < STEP {
        Ok(())
    } else {
        Err(format!(
            "it is still running {} seconds later",
            STEP.as_secs()
        ))
    }
}
