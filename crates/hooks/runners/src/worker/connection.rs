//! The connection to one running worker. One task reads what it writes and writes what it reads; the state of the
//! conversation is in one struct.

use std::collections::{HashMap, HashSet};
use std::future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tenterhook_jsonrpc::{
    FrameReader, NoAnswer, PeerMessage, call_head, notification, wait_for_answer,
};
use tenterhook_process::{CancellationToken, Command, Companion, CompanionPipes, End};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::calls::{CallNotes, Calls, OpenCall, Question, UPDATES, no_tool_call};
use super::error::WorkerError;
use super::pipe::BufferedPipe;
use super::protocol::MAX_LINE;
use super::refusal::Refusal;
use super::requests::{self, Requests};
use super::stderr::Stderr;
use super::wire::Wire;

/// How many bytes are read at once.
const CHUNK: usize = 64 << 10;
/// How long a worker may take to end after it has closed its output.
const LAST_MOMENT: Duration = Duration::from_millis(500);
/// How long a worker may take to make room for the notification that a session is over.
const SESSION_END: Duration = Duration::from_secs(5);
/// How many lines of one process's stderr the host receives.
const MAX_HEARD: u32 = 10_000;
/// How many unanswered calls in a row it takes until a silent worker is killed.
const MAX_UNANSWERED: u32 = 2;

/// A running worker. Dropping it kills its process group.
#[derive(Debug)]
pub(super) struct Connection {
    shared: Arc<Shared>,
    pid: u32,
    began: Instant,
    /// Which process of its worker it is, counted from 1.
    number: u64,
}

#[derive(Debug)]
struct Shared {
    name: String,
    wire: Wire,
    requests: Requests,
    stdin: BufferedPipe,
    state: Mutex<State>,
    /// Notified when a call or a question is over.
    changed: Notify,
    ended: CancellationToken,
}

/// The state of the conversation.
#[derive(Debug, Default)]
struct State {
    calls: Calls,
    /// How many calls in a row were not answered in time.
    unanswered: u32,
    /// Whether the worker keeps a state for each session.
    separates_sessions: bool,
    /// The scripts that cannot be called, each with the reason.
    refusals: HashMap<usize, String>,
    /// The scripts that have a state for a session, by session.
    begun: HashMap<String, HashSet<usize>>,
    /// The last line that the worker printed on stderr.
    last_line: Option<String>,
    /// How many lines of stderr the host has received.
    heard: u32,
    /// Why the connection ended.
    death: Option<String>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Waits until a call is answered or given up.
    async fn call_is_over(&self, id: u64) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if !self.state().calls.is_pending(id) {
                return;
            }
            changed.await;
        }
    }

    /// Waits for the deadline of a call. If its script is asking the user something at the deadline,
    /// waits for the answer first. After the answer, the full time limit of the call starts again.
    async fn wait_for_deadline(&self, id: u64, mut deadline: Instant) {
        let within = deadline.saturating_duration_since(Instant::now());
        loop {
            sleep_until(deadline).await;
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                if !self.state().calls.is_asking(id) {
                    break;
                }
                changed.await;
                deadline = Instant::now() + within;
            }
            if deadline <= Instant::now() {
                return;
            }
        }
    }

    /// Gives up a call. Returns whether it was still unanswered.
    fn give_up(&self, id: u64) -> bool {
        let call = {
            let mut state = self.state();
            let awaits = self.wire.max_overrun.is_some();
            state.calls.give_up(id, awaits)
        };
        if call.as_ref().is_some_and(|call| call.questions > 0) {
            self.changed.notify_waiters();
        }
        call.is_some()
    }

    /// Returns why a request is refused: it names a session itself, or only running tools may make it.
    fn refusal_of(&self, method: &str, params: &Value, parent: &Value) -> Option<Refusal> {
        if !self.wire.names_sessions && params.get("session").is_some() {
            return Some(Refusal::Invalid(format!(
                "`{method}` names a `session`, expected only `parentId`: the id of the call that it belongs to"
            )));
        }
        if self.wire.of_tools != Some(method) {
            return None;
        }
        self.state().calls.check_tool(method, parent)
    }

    /// Kills the worker if it keeps working on a call that was given up. Otherwise the work would
    /// outlive its deadline.
    fn expect_end_of(self: &Arc<Self>, id: u64) {
        // Outside a runtime, no task is left to read the answer either.
        let (Some(max_overrun), Ok(runtime)) =
            (self.wire.max_overrun, tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let shared = Arc::clone(self);
        runtime.spawn(async move {
            let answered = timeout_at(Instant::now() + max_overrun, shared.ended.cancelled());
            if answered.await.is_err() && shared.state().calls.is_overdue(id) {
                shared.die(&format!(
                    "it kept working on a call for {} seconds after the call was cancelled",
                    max_overrun.as_secs()
                ));
            }
        });
    }

    /// Ends the connection: records the reason, fails all pending calls, and has the child killed.
    fn die(&self, problem: &str) {
        let calls = {
            let mut state = self.state();
            state.death.get_or_insert_with(|| problem.to_owned());
            state.calls.take_all()
        };
        self.ended.cancel();
        drop(calls);
    }

    /// Passes what has arrived on stderr to the host.
    fn hear(&self, stderr: &mut Stderr) {
        stderr.read_ready(|line| {
            let is_heard = {
                let mut state = self.state();
                state.last_line = Some(line.clone());
                state.heard = state.heard.saturating_add(1);
                state.heard <= MAX_HEARD
            };
            if is_heard {
                self.requests.host.on_output(&self.name, &line);
            }
        });
    }
}

impl State {
    /// Returns why the connection ended, with the last line that the worker printed on stderr.
    fn epitaph(&self) -> Option<String> {
        let problem = self.death.clone()?;
        Some(match &self.last_line {
            Some(line) => format!("{problem}; its last output: {line}"),
            None => problem,
        })
    }
}

impl Connection {
    pub(super) fn start(
        name: &str,
        number: u64,
        command: &Command,
        wire: Wire,
        requests: &Requests,
    ) -> Result<Self, String> {
        let (child, pipes) =
            Companion::start(command).map_err(|error| tenterhook_engine::error_chain(&error))?;
        let CompanionPipes {
            stdin,
            stdout,
            stderr,
        } = pipes;
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            wire,
            requests: requests.clone(),
            stdin: BufferedPipe::new(stdin),
            state: Mutex::default(),
            changed: Notify::new(),
            ended: CancellationToken::new(),
        });
        let pid = child.pid();
        tokio::spawn(serve(
            stdout,
            Stderr::new(stderr),
            child,
            Arc::clone(&shared),
        ));
        Ok(Self {
            shared,
            pid,
            began: Instant::now(),
            number,
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns which process of its worker it is.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns why the connection ended, or `None` if the worker still runs.
    pub(super) fn death(&self) -> Option<String> {
        self.shared.state().epitaph()
    }

    /// Records that a script cannot be called, and why.
    pub(super) fn refuse(&self, script: usize, problem: String) {
        self.shared.state().refusals.insert(script, problem);
    }

    /// Records that a script was loaded.
    pub(super) fn accept(&self, script: usize) {
        self.shared.state().refusals.remove(&script);
    }

    /// Returns why a script cannot be called, or `None` if it can.
    pub(super) fn refusal(&self, script: usize) -> Option<String> {
        self.shared.state().refusals.get(&script).cloned()
    }

    pub(super) fn kill(&self, problem: &str) {
        self.shared.die(problem);
    }

    /// Makes one call and waits for its answer. `params` are the parts of the parameters. Kills the worker if it does
    /// not answer several calls in a row, and sends nothing else.
    pub(super) async fn call(
        &self,
        request: (&str, &[&[u8]]),
        notes: CallNotes,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let answered = self.call_once(request, notes, deadline, cancel).await;
        let is_silent = {
            let mut state = self.shared.state();
            if answered == Err(WorkerError::TimedOut) {
                state.unanswered += 1;
            } else {
                state.unanswered = 0;
            }
            state.unanswered >= MAX_UNANSWERED && state.calls.is_silent()
        };
        if is_silent {
            self.kill("it stopped answering");
        }
        answered
    }

    /// Makes one call whose failure does not count. The parts of the worker's own start are such calls.
    pub(super) async fn call_once(
        &self,
        (method, params): (&str, &[&[u8]]),
        notes: CallNotes,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let begun = {
            let mut state = self.shared.state();
            match state.death {
                None => Ok(state.calls.begin(notes)),
                Some(_) => Err(notes),
            }
        };
        let (id, receiver) = match begun {
            Ok(begun) => begun.ok_or_else(|| WorkerError::Call {
                message: "too many calls are waiting for an answer".to_owned(),
            })?,
            Err(_) => return Err(self.over_error()),
        };
        let waiting = Waiting {
            shared: &self.shared,
            id,
        };
        let head = call_head(id, method);
        let framing = self.shared.wire.framing;
        let frame = framing.frame(&[&[head.as_bytes()], params, &[b"}"]]);
        let answer = async {
            self.shared.stdin.send(&frame).await;
            receiver.await
        };
        let over = self.shared.wait_for_deadline(id, deadline);
        let answer = match wait_for_answer(answer, over, cancel).await {
            Ok(reply) => reply.map_err(|message| WorkerError::Call { message }),
            Err(NoAnswer::Closed) => Err(self.over_error()),
            Err(NoAnswer::TimedOut) => Err(WorkerError::TimedOut),
            Err(NoAnswer::Cancelled) => Err(WorkerError::Cancelled),
        };
        drop(waiting);
        answer
    }

    /// Waits until the worker has ended.
    pub(super) async fn over(&self) {
        self.shared.ended.cancelled().await;
    }

    /// Notes that the worker keeps a state for each session.
    pub(super) fn separate_sessions(&self) {
        self.shared.state().separates_sessions = true;
    }

    /// Returns whether the worker keeps a state for each session.
    pub(super) fn separates_sessions(&self) -> bool {
        self.shared.state().separates_sessions
    }

    /// Returns whether a script has a state for a session.
    pub(super) fn has_begun(&self, script: usize, session: &str) -> bool {
        let state = self.shared.state();
        let begun = state.begun.get(session);
        begun.is_some_and(|it| it.contains(&script))
    }

    /// Records that a script has a state for a session.
    pub(super) fn note_begun(&self, script: usize, session: &str) {
        let mut state = self.shared.state();
        let begun = state.begun.entry(session.to_owned());
        begun.or_default().insert(script);
    }

    /// Sends the notification that a session is over. Kills the worker if it does not read for some time, because it
    /// would keep the state of the session.
    pub(super) async fn end_session(&self, session: &str) {
        self.shared.state().begun.remove(session);
        let message = notification("$/session_end", &json!({ "session": session })).to_string();
        let frame = self.shared.wire.framing.frame(&[&[message.as_bytes()]]);
        let sent = timeout_at(Instant::now() + SESSION_END, self.shared.stdin.send(&frame));
        if let Some(Err(_)) = self.shared.ended.run_until_cancelled(sent).await {
            self.kill(&format!(
                "it did not read for {} seconds that a session is over",
                SESSION_END.as_secs()
            ));
        }
    }

    /// Sends the notification that a call was cancelled.
    pub(super) fn cancel(&self, id: u64) {
        self.shared.cancel(id);
    }

    /// Asks the worker to end, if its protocol has a request for that, and waits for its answer.
    pub(super) async fn ask_to_end(&self, within: Duration) -> Result<(), String> {
        let Some(method) = self.shared.wire.end else {
            return Ok(());
        };
        let never = CancellationToken::new();
        let deadline = Instant::now() + within;
        let request: (&str, &[&[u8]]) = (method, &[b"{}"]);
        let answer = self.call_once(request, CallNotes::default(), deadline, &never);
        let answer = answer.await;
        answer.map(drop).map_err(|error| error.to_string())
    }

    fn over_error(&self) -> WorkerError {
        WorkerError::Ended {
            worker: self.shared.name.clone(),
            problem: self.death().unwrap_or_else(|| "it was stopped".to_owned()),
        }
    }

    /// Asks the worker to end, waits at most `grace`, and then kills it.
    pub(super) async fn shutdown(&self, grace: Duration) {
        let deadline = Instant::now() + grace;
        if self.shared.wire.end.is_some() {
            let _answered = self.ask_to_end(grace).await;
            // If it does not end in time, `die` kills it.
            let _ended = timeout_at(deadline, self.shared.ended.cancelled()).await;
        }
        self.shared.die("it was stopped");
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.die("it was stopped");
    }
}

impl Shared {
    /// Sends the notification that a call was cancelled.
    fn cancel(&self, id: u64) {
        let Wire {
            framing, cancel, ..
        } = self.wire;
        let message = notification(cancel, &json!({ "id": id })).to_string();
        let frame = framing.frame(&[&[message.as_bytes()]]);
        // If there is no room, the worker does not read, so the notification would not reach it anyway.
        let _is_sent = self.stdin.send_now(&frame);
    }
}

/// A pending call. Dropping it gives the call up and sends the worker a cancellation.
struct Waiting<'a> {
    shared: &'a Arc<Shared>,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.shared.give_up(self.id) && !self.shared.ended.is_cancelled() {
            self.shared.expect_end_of(self.id);
            self.shared.cancel(self.id);
        }
    }
}

/// Serves the pipes of a worker until it ends or sends a malformed message. Then the worker's process
/// group is killed.
async fn serve(stdout: Receiver, stderr: Stderr, child: Companion, shared: Arc<Shared>) {
    let problem = tokio::select! {
        biased;
        // The worker is not needed any more. Dropping the child kills its group.
        () = shared.ended.cancelled() => return,
        () = shared.stdin.drain(&shared.ended) => return,
        problem = converse(stdout, stderr, child, &shared) => problem,
    };
    shared.die(&problem);
}

fn ended(end: End) -> String {
    match end {
        End::Exited(status) => format!("it exited with status {status}"),
        End::Signaled(signal) => format!("it was killed by signal {signal}"),
        End::TimedOut { .. } | End::Cancelled { .. } => "it was stopped".to_owned(),
    }
}

/// Reads messages and stderr. Returns why the conversation is over.
async fn converse(
    mut stdout: Receiver,
    mut stderr: Stderr,
    child: Companion,
    shared: &Arc<Shared>,
) -> String {
    if let Some(problem) = read_messages(&mut stdout, &mut stderr, shared).await {
        return problem;
    }
    // It closed its output, so it is about to end.
    let mut over = std::pin::pin!(child.end(LAST_MOMENT));
    let end = loop {
        tokio::select! {
            biased;
            end = &mut over => break end,
            () = stderr.readable() => hear(&mut stderr, shared).await,
        }
    };
    shared.hear(&mut stderr);
    ended(end)
}

/// Passes what has arrived on stderr to the host.
async fn hear(stderr: &mut Stderr, shared: &Shared) {
    shared.hear(stderr);
    // A worker that prints without end must not keep other tasks from running.
    tokio::task::yield_now().await;
}

/// Reads messages. Returns what is wrong with one of them, or `None` at the end of the output.
async fn read_messages(
    stdout: &mut Receiver,
    stderr: &mut Stderr,
    shared: &Arc<Shared>,
) -> Option<String> {
    let mut messages = FrameReader::new(shared.wire.framing, CHUNK, MAX_LINE);
    loop {
        loop {
            let received = match messages.next_frame() {
                Ok(Some(message)) => receive(&message, shared),
                Ok(None) => break,
                Err(error) => Err(error.to_string()),
            };
            if let Err(problem) = received {
                return Some(problem);
            }
        }
        tokio::select! {
            biased;
            // Unlike `try_read_buf`, this recognises an emptied pipe by a short read. So it does not
            // read once more before the waiting caller is woken.
            read = stdout.read_buf(messages.room(CHUNK)) => match read {
                Ok(0) | Err(_) => return None,
                // What a handler printed before its answer must also arrive before it, because a program
                // that handles a single event ends with the answer.
                Ok(_) => shared.hear(stderr),
            },
            () = stderr.readable() => hear(stderr, shared).await,
        }
    }
}

/// An open question. Until it is dropped, neither its call nor the calls that wait behind it time out.
struct OpenQuestion<'a> {
    shared: &'a Shared,
    question: Question,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.shared.state().calls.close_question(&self.question);
        self.shared.changed.notify_waiters();
    }
}

/// Answers a request of the worker.
async fn answer(
    (id, method, mut params): (u64, String, Value),
    parent: Value,
    shared: Arc<Shared>,
    place: OwnedSemaphorePermit,
) {
    let session = shared.state().calls.session_of(&parent);
    if let (Some(session), Some(params)) = (session, params.as_object_mut()) {
        params.insert("session".to_owned(), session.into());
    }
    let is_question = shared.wire.questions.contains(&method.as_str());
    let question = is_question.then(|| {
        let mut state = shared.state();
        state.calls.open_question(&method, &params, &parent)
    });
    let question = question.flatten().map(|question| OpenQuestion {
        shared: &shared,
        question,
    });
    let given_up = async {
        match question.as_ref().map(|open| &open.question) {
            // When the call is over, its question does not need an answer any more.
            Some(question) if question.is_for_user => shared.call_is_over(question.call).await,
            Some(_) | None => future::pending().await,
        }
    };
    let answer = tokio::select! {
        biased;
        () = shared.ended.cancelled() => return,
        () = given_up => shared.requests.unanswered(id, &method, &params),
        answer = shared.requests.answer(id, &method, &params) => answer,
    };
    drop(question);
    reply(answer, shared, place).await;
}

/// Sends the answer to a request, and frees the place of the request.
async fn reply(answer: Vec<u8>, shared: Arc<Shared>, place: OwnedSemaphorePermit) {
    drop(place);
    let message = shared.wire.framing.frame(&[&[&answer]]);
    tokio::select! {
        biased;
        () = shared.ended.cancelled() => {}
        () = shared.stdin.send(&message) => {}
    }
}

/// Hands an answer to the caller that waits for it.
fn receive_answer(call: OpenCall, result: Result<Option<Bytes>, String>, shared: &Shared) {
    let result = match result {
        Ok(Some(result)) => Ok(result),
        // JavaScript leaves `undefined` out of its JSON.
        Ok(None) if shared.wire.may_leave_out_result => Ok(Bytes::from_static(b"null")),
        Ok(None) => Err("it sent an answer with neither a result nor an error".to_owned()),
        Err(message) => Err(message),
    };
    let was_asking = call.questions > 0;
    if let Some(caller) = call.finish() {
        // No one waits any more for the answer of a call that was given up at this moment.
        let _gone = caller.send(result);
    }
    if was_asking {
        shared.changed.notify_waiters();
    }
}

/// Handles one message.
fn receive(frame: &Bytes, shared: &Arc<Shared>) -> Result<(), String> {
    let message = PeerMessage::parse(frame);
    let mut state = shared.state();
    state.calls.note_message();
    match message.map_err(|error| error.to_string())? {
        None => Ok(()),
        Some(PeerMessage::Request {
            id,
            method,
            params,
            parent,
        }) => {
            drop(state);
            receive_request((id, method, params), parent, shared);
            Ok(())
        }
        Some(PeerMessage::Notification { method, params }) => {
            // Unknown notifications are ignored.
            let call = params.get("call").filter(|_| UPDATES.contains(&&*method));
            let updates = call.and_then(|call| state.calls.updates_of(call));
            drop(state);
            if let Some(updates) = updates {
                // Invalid updates are ignored.
                let _unread = updates(params);
            }
            Ok(())
        }
        Some(PeerMessage::Answer { id, .. }) if !state.calls.was_made(id) => {
            Err(format!("it answered call {id}, which was never made"))
        }
        Some(PeerMessage::Answer { id, result }) => {
            let call = state.calls.answer(id);
            drop(state);
            if let Some(call) = call {
                receive_answer(call, result, shared);
            }
            Ok(())
        }
    }
}

/// Handles a request in its own task, or refuses it if there are too many.
fn receive_request(
    (id, method, params): (u64, String, Value),
    parent: Value,
    shared: &Arc<Shared>,
) {
    let Some(place) = shared.requests.place() else {
        let refusal = shared.wire.framing.frame(&[&[&Requests::too_many(id)]]);
        // If there is no room, the worker does not read, so it needs no refusal.
        let _is_sent = shared.stdin.send_now(&refusal);
        return;
    };
    let shared = Arc::clone(shared);
    if shared.wire.update == Some(method.as_str()) {
        // Handled without a task, so that updates keep their order and none is delivered after the answer.
        let listener = shared.state().calls.updates_of(&parent);
        let updated = match listener {
            Some(updates) => updates(params).map_err(Refusal::Invalid),
            None => Err(no_tool_call(&parent)),
        };
        let answer = requests::message(id, updated.map(|()| json!({})));
        tokio::spawn(reply(answer, shared, place));
    } else if let Some(refusal) = shared.refusal_of(&method, &params, &parent) {
        let answer = requests::message(id, Err(refusal));
        tokio::spawn(reply(answer, shared, place));
    } else {
        tokio::spawn(answer((id, method, params), parent, shared, place));
    }
}
