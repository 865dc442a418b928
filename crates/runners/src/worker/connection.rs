//! The connection to one running worker: its pipes, and the calls that wait for its answers.

use std::collections::{HashMap, HashSet};
use std::future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tenterhook_jsonrpc::{
    FrameReader, NoAnswer, PeerMessage, PendingCalls, call_head, notification, wait_for_answer,
};
use tenterhook_process::{CancellationToken, Command, Companion, CompanionPipes, End};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::error::WorkerError;
use super::host::{self, Desk};
use super::pipe::BufferedPipe;
use super::progress::{CallNotes, ProgressListeners, UPDATES};
use super::protocol::MAX_LINE;
use super::questions::OpenQuestions;
use super::refusal::Refusal;
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
/// How many calls may be unanswered at once.
const MAX_PENDING: usize = 1 << 16;

type Reply = Result<Bytes, String>;

/// A running worker. Dropping it kills its process group.
#[derive(Debug)]
pub(super) struct Connection {
    shared: Arc<Shared>,
    stdin: Arc<BufferedPipe>,
    pid: u32,
    began: Instant,
    /// The scripts that cannot be called, each with the reason.
    refusals: Mutex<HashMap<usize, String>>,
    /// The scripts that have a state for a session, by session.
    begun: Mutex<HashMap<String, HashSet<usize>>>,
    ended: CancellationToken,
}

#[derive(Debug)]
struct Shared {
    name: String,
    wire: Wire,
    pending: PendingCalls<u64, Reply>,
    progress: ProgressListeners,
    /// The sessions of calls that are not over, by the ids of the calls.
    sessions: Mutex<HashMap<u64, String>>,
    separates_sessions: AtomicBool,
    /// Calls that were given up and have not been answered yet.
    given_up: Mutex<HashSet<u64>>,
    questions: OpenQuestions,
    /// Notified when a call ends whose script is asking the user something.
    call_over: Notify,
    desk: Desk,
    next_id: AtomicU64,
    /// The value of `next_id` when the last message arrived.
    heard_at: AtomicU64,
    death: Mutex<Option<String>>,
    stderr: Stderr,
    /// How many lines of stderr the host has received.
    heard: AtomicU32,
    ended: CancellationToken,
}

impl Shared {
    fn given_up(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.given_up.lock()
    }

    /// Waits until a call is answered or given up.
    async fn call_is_over(&self, id: u64) {
        loop {
            let mut over = std::pin::pin!(self.call_over.notified());
            over.as_mut().enable();
            if !self.pending.is_pending(&id) {
                return;
            }
            over.await;
        }
    }

    /// Reports the end of a call to the questions that its script is asking.
    fn end_questions_of(&self, id: u64) {
        if self.questions.has_call(id) {
            self.call_over.notify_waiters();
        }
    }

    /// Returns the session of the call during which the process makes a request.
    fn session_of(&self, parent: &Value) -> Option<String> {
        self.sessions.lock().get(&parent.as_u64()?).cloned()
    }

    /// Gives up a call. Returns whether it was still unanswered.
    fn give_up(&self, id: u64) -> bool {
        if self.wire.max_overrun.is_none() {
            return self.pending.withdraw(&id);
        }
        if !self.pending.is_pending(&id) {
            return false;
        }
        // The id must be in the set before the call is withdrawn. Otherwise an answer that arrives
        // between the two steps would be missed, and the worker would be killed.
        self.given_up().insert(id);
        let was_pending = self.pending.withdraw(&id);
        if !was_pending {
            self.given_up().remove(&id);
        }
        was_pending
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
        let is_running = parent
            .as_u64()
            .is_some_and(|id| self.pending.is_pending(&id));
        if !is_running {
            return Some(Refusal::Invalid(format!(
                "`parentId` is {parent}, expected the id of a tool call that is not answered yet"
            )));
        }
        let is_tool = self.progress.is_of_tool(parent);
        (!is_tool).then(|| Refusal::Unavailable(format!("only a tool can request `{method}`")))
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
            if answered.await.is_err() && shared.given_up().remove(&id) {
                shared.die(&format!(
                    "it kept working on a call for {} seconds after the call was cancelled",
                    max_overrun.as_secs()
                ));
            }
        });
    }

    /// Ends the connection: records the reason, fails all pending calls, and has the child killed.
    fn die(&self, problem: &str) {
        {
            let mut death = self.death.lock();
            if death.is_none() {
                *death = Some(problem.to_owned());
            }
        }
        self.ended.cancel();
        self.pending.close();
    }

    /// Passes what has arrived on stderr to the host. Returns whether more can arrive.
    fn hear(&self) -> bool {
        self.stderr.read_ready(|line| {
            if self.heard.fetch_add(1, Ordering::Relaxed) < MAX_HEARD {
                self.desk.host.on_output(&self.name, &line);
            }
        })
    }

    /// Returns why the connection ended, with the last line that the worker printed on stderr.
    fn epitaph(&self) -> Option<String> {
        let death = self.death.lock();
        let problem = death.clone()?;
        Some(match self.stderr.last() {
            Some(line) => format!("{problem}; its last output: {line}"),
            None => problem,
        })
    }
}

impl Connection {
    pub(super) fn start(
        name: &str,
        command: &Command,
        wire: Wire,
        desk: &Desk,
    ) -> Result<Self, String> {
        let (child, pipes) =
            Companion::start(command).map_err(|error| tenterhook_engine::error_chain(&error))?;
        let ended = CancellationToken::new();
        let CompanionPipes {
            stdin,
            stdout,
            stderr,
        } = pipes;
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            wire,
            pending: PendingCalls::new(MAX_PENDING),
            progress: ProgressListeners::default(),
            sessions: Mutex::default(),
            separates_sessions: AtomicBool::new(false),
            given_up: Mutex::default(),
            questions: OpenQuestions::default(),
            call_over: Notify::new(),
            desk: desk.clone(),
            next_id: AtomicU64::new(1),
            heard_at: AtomicU64::new(0),
            death: Mutex::new(None),
            stderr: Stderr::new(stderr),
            heard: AtomicU32::new(0),
            ended: ended.clone(),
        });
        let pid = child.pid();
        let stdin = Arc::new(BufferedPipe::new(stdin));
        let (draining, drained_until) = (Arc::clone(&stdin), ended.clone());
        tokio::spawn(async move { draining.drain(&drained_until).await });
        tokio::spawn(listen(Arc::clone(&shared)));
        tokio::spawn(read(stdout, child, Arc::clone(&shared), Arc::clone(&stdin)));
        Ok(Self {
            shared,
            stdin,
            pid,
            began: Instant::now(),
            refusals: Mutex::default(),
            begun: Mutex::default(),
            ended,
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns why the connection ended, or `None` if the worker still runs.
    pub(super) fn death(&self) -> Option<String> {
        self.shared.epitaph()
    }

    fn refusals(&self) -> MutexGuard<'_, HashMap<usize, String>> {
        self.refusals.lock()
    }

    /// Records that a script cannot be called, and why.
    pub(super) fn refuse(&self, script: usize, problem: String) {
        self.refusals().insert(script, problem);
    }

    /// Records that a script was loaded.
    pub(super) fn accept(&self, script: usize) {
        self.refusals().remove(&script);
    }

    /// Returns why a script cannot be called, or `None` if it can.
    pub(super) fn refusal(&self, script: usize) -> Option<String> {
        self.refusals().get(&script).cloned()
    }

    pub(super) fn kill(&self, problem: &str) {
        self.shared.die(problem);
    }

    /// Returns whether the worker has sent nothing since the last unanswered calls were made.
    pub(super) fn is_silent_for_calls(&self) -> bool {
        let made = self.shared.next_id.load(Ordering::Relaxed);
        let heard = self.shared.heard_at.load(Ordering::Relaxed);
        made.saturating_sub(heard) > 1
    }

    /// Returns whether late answers are expected: a worker that keeps working on a call that was given up is killed.
    pub(super) fn awaits_late_answers(&self) -> bool {
        self.shared.wire.max_overrun.is_some()
    }

    /// Returns whether the worker may still work on a call that was given up.
    pub(super) fn has_overdue_calls(&self) -> bool {
        let is_overdue = !self.awaits_late_answers() || !self.shared.given_up().is_empty();
        is_overdue && !self.ended.is_cancelled()
    }

    /// Makes one call and waits for its answer. `params` are the parts of the parameters.
    pub(super) async fn call(
        &self,
        method: &str,
        params: &[&[u8]],
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        self.call_with((method, params), CallNotes::default(), deadline, cancel)
            .await
    }

    /// Makes a call that may report its progress and belong to a session.
    pub(super) async fn call_with(
        &self,
        (method, params): (&str, &[&[u8]]),
        notes: CallNotes,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        if let Some(updates) = notes.updates {
            self.shared.progress.add(id, updates);
        }
        if let Some(session) = notes.session {
            self.shared.sessions.lock().insert(id, session);
        }
        let begun = self.shared.pending.begin(id);
        let waiting = Waiting {
            connection: self,
            id,
        };
        if self.ended.is_cancelled() {
            return Err(self.over_error());
        }
        let receiver = begun.map_err(|error| WorkerError::Call {
            message: error.to_string(),
        })?;
        let head = call_head(id, method);
        let framing = self.shared.wire.framing;
        let frame = framing.frame(&[&[head.as_bytes()], params, &[b"}"]]);
        let answer = async {
            self.stdin.send(&frame).await;
            receiver.await
        };
        let over = self.shared.questions.wait_for_deadline(id, deadline);
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
        self.ended.cancelled().await;
    }

    /// Notes that the worker keeps a state for each session.
    pub(super) fn separate_sessions(&self) {
        let separates = &self.shared.separates_sessions;
        separates.store(true, Ordering::Relaxed);
    }

    /// Returns whether the worker keeps a state for each session.
    pub(super) fn separates_sessions(&self) -> bool {
        self.shared.separates_sessions.load(Ordering::Relaxed)
    }

    /// Returns whether a script has a state for a session.
    pub(super) fn has_begun(&self, script: usize, session: &str) -> bool {
        let begun = self.begun.lock();
        begun.get(session).is_some_and(|it| it.contains(&script))
    }

    /// Records that a script has a state for a session.
    pub(super) fn note_begun(&self, script: usize, session: &str) {
        let mut begun = self.begun.lock();
        begun.entry(session.to_owned()).or_default().insert(script);
    }

    /// Sends the notification that a session is over. Kills the worker if it does not read for some time, because it
    /// would keep the state of the session.
    pub(super) async fn end_session(&self, session: &str) {
        self.begun.lock().remove(session);
        let message = notification("$/session_end", &json!({ "session": session })).to_string();
        let frame = self.shared.wire.framing.frame(&[&[message.as_bytes()]]);
        let sent = timeout_at(Instant::now() + SESSION_END, self.stdin.send(&frame));
        if let Some(Err(_)) = self.ended.run_until_cancelled(sent).await {
            self.kill(&format!(
                "it did not read for {} seconds that a session is over",
                SESSION_END.as_secs()
            ));
        }
    }

    /// Sends the notification that a call was cancelled.
    pub(super) fn cancel(&self, id: u64) {
        let Wire {
            framing, cancel, ..
        } = self.shared.wire;
        let message = notification(cancel, &json!({ "id": id })).to_string();
        let frame = framing.frame(&[&[message.as_bytes()]]);
        // If there is no room, the worker does not read, so the notification would not reach it anyway.
        let _told = self.stdin.send_now(&frame);
    }

    /// Asks the worker to end, if its protocol has a request for that, and waits for its answer.
    pub(super) async fn ask_to_end(&self, within: Duration) -> Result<(), String> {
        let Some(method) = self.shared.wire.end else {
            return Ok(());
        };
        let never = CancellationToken::new();
        let deadline = Instant::now() + within;
        let answer = self.call(method, &[b"{}"], deadline, &never).await;
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
            let _ended = timeout_at(deadline, self.ended.cancelled()).await;
        }
        self.shared.die("it was stopped");
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

/// A pending call. Dropping it gives the call up and sends the worker a cancellation.
struct Waiting<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.connection.shared.progress.remove(self.id);
        self.connection.shared.sessions.lock().remove(&self.id);
        let was_waiting = self.connection.shared.give_up(self.id);
        self.connection.shared.end_questions_of(self.id);
        if was_waiting && !self.connection.ended.is_cancelled() {
            self.connection.shared.expect_end_of(self.id);
            self.connection.cancel(self.id);
        }
    }
}

/// Reads messages until the worker ends or sends a malformed message. Then the worker's process
/// group is killed.
async fn read(pipe: Receiver, child: Companion, shared: Arc<Shared>, stdin: Arc<BufferedPipe>) {
    let problem = tokio::select! {
        biased;
        // The worker is not needed any more. Dropping the child kills its group.
        () = shared.ended.cancelled() => return,
        problem = read_messages(pipe, &shared, &stdin) => problem,
    };
    let problem = match problem {
        Some(problem) => problem,
        // It closed its output, so it is about to end.
        None => ended(child.end(LAST_MOMENT).await),
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

/// Reads messages. Returns what is wrong with one of them, or `None` at the end of the output.
async fn read_messages(
    mut pipe: Receiver,
    shared: &Arc<Shared>,
    stdin: &Arc<BufferedPipe>,
) -> Option<String> {
    let mut messages = FrameReader::new(shared.wire.framing, CHUNK, MAX_LINE);
    loop {
        loop {
            let received = match messages.next_frame() {
                Ok(Some(message)) => receive(&message, shared, stdin),
                Ok(None) => break,
                Err(error) => Err(error.to_string()),
            };
            if let Err(problem) = received {
                return Some(problem);
            }
        }
        // Unlike `try_read_buf`, this recognises an emptied pipe by a short read. So it does not
        // read once more before the waiting caller is woken.
        match pipe.read_buf(messages.room(CHUNK)).await {
            Ok(0) | Err(_) => return None,
            // What a handler printed before its answer must also arrive before it, because a program
            // that handles a single event ends with the answer.
            Ok(_) => {
                shared.hear();
            }
        }
    }
}

/// Answers a request of the worker.
async fn serve(
    (id, method, mut params): (u64, String, Value),
    parent: Value,
    shared: Arc<Shared>,
    stdin: Arc<BufferedPipe>,
    place: OwnedSemaphorePermit,
) {
    if let (Some(session), Some(params)) = (shared.session_of(&parent), params.as_object_mut()) {
        params.insert("session".to_owned(), session.into());
    }
    let is_question = shared.wire.questions.contains(&method.as_str());
    let question = is_question.then(|| shared.questions.open(&method, &params, &parent));
    let question = question.flatten();
    let given_up = async {
        match &question {
            // When the call is over, its question does not need an answer any more.
            Some(question) if question.is_for_user => shared.call_is_over(question.call).await,
            Some(_) | None => future::pending().await,
        }
    };
    let answer = tokio::select! {
        biased;
        () = shared.ended.cancelled() => return,
        () = given_up => shared.desk.unanswered(id, &method, &params),
        answer = shared.desk.answer(id, &method, &params) => answer,
    };
    drop(question);
    reply(answer, shared, stdin, place).await;
}

/// Sends the answer to a request, and frees the place of the request.
async fn reply(
    answer: Vec<u8>,
    shared: Arc<Shared>,
    stdin: Arc<BufferedPipe>,
    place: OwnedSemaphorePermit,
) {
    drop(place);
    let message = shared.wire.framing.frame(&[&[&answer]]);
    tokio::select! {
        biased;
        () = shared.ended.cancelled() => {}
        () = stdin.send(&message) => {}
    }
}

/// Handles one message.
fn receive(frame: &Bytes, shared: &Arc<Shared>, stdin: &Arc<BufferedPipe>) -> Result<(), String> {
    let made = shared.next_id.load(Ordering::Relaxed);
    shared.heard_at.store(made, Ordering::Relaxed);
    match PeerMessage::parse(frame)? {
        None => Ok(()),
        Some(PeerMessage::Request {
            id,
            method,
            params,
            parent,
        }) => {
            receive_request((id, method, params), parent, shared, stdin);
            Ok(())
        }
        Some(PeerMessage::Notification { method, params }) => {
            // Unknown notifications are ignored.
            if UPDATES.contains(&&*method) {
                shared.progress.notify(params);
            }
            Ok(())
        }
        Some(PeerMessage::Answer { id, .. }) if id >= made || id == 0 => {
            Err(format!("it answered call {id}, which was never made"))
        }
        Some(PeerMessage::Answer { id, result }) => {
            // Progress that is reported after the answer does not count.
            shared.progress.remove(id);
            let result = match result {
                Ok(Some(result)) => Ok(result),
                // JavaScript leaves `undefined` out of its JSON.
                Ok(None) if shared.wire.may_leave_out_result => Ok(Bytes::from_static(b"null")),
                Ok(None) => Err("it sent an answer with neither a result nor an error".to_owned()),
                Err(message) => Err(message),
            };
            // No caller waits for a late or second answer.
            if !shared.pending.answer(&id, result) {
                shared.given_up().remove(&id);
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
    stdin: &Arc<BufferedPipe>,
) {
    let Some(place) = shared.desk.place() else {
        let refusal = shared.wire.framing.frame(&[&[&Desk::refusal(id)]]);
        // If there is no room, the worker does not read, so it needs no refusal.
        let _told = stdin.send_now(&refusal);
        return;
    };
    let (shared, stdin) = (Arc::clone(shared), Arc::clone(stdin));
    if shared.wire.update == Some(method.as_str()) {
        // Handled without a task, so that updates keep their order and none is delivered after the answer.
        let updated = shared.progress.update(&parent, params);
        let answer = host::message(id, updated.map(|()| json!({})));
        tokio::spawn(reply(answer, shared, stdin, place));
    } else if let Some(refusal) = shared.refusal_of(&method, &params, &parent) {
        let answer = host::message(id, Err(refusal));
        tokio::spawn(reply(answer, shared, stdin, place));
    } else {
        tokio::spawn(serve((id, method, params), parent, shared, stdin, place));
    }
}

/// Reads stderr: its last lines are kept, and the host receives them.
async fn listen(shared: Arc<Shared>) {
    let lines = async {
        loop {
            shared.stderr.readable().await;
            if !shared.hear() {
                return;
            }
            // A worker that prints without end must not keep other tasks from running.
            tokio::task::yield_now().await;
        }
    };
    shared.ended.run_until_cancelled(lines).await;
}
