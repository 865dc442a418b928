//! One worker that runs: who writes to it, who reads from it, and which calls wait for its answers.

use std::collections::{HashMap, HashSet, VecDeque};
use std::future;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tenterhook_process::{CancellationToken, Command, Companion, CompanionPipes, End, cut};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::WorkerError;
use super::host::{self, Desk};
use super::watched::{UPDATE, Updates, Watched};
use super::wire::{Messages, Wire};

/// How many bytes wait for a worker that does not read. Whoever has more to say waits too.
const BUFFER: usize = 1 << 20;
/// How much is read at once.
const CHUNK: usize = 64 << 10;
/// How long a worker may take to end that has closed its output.
const LAST_MOMENT: Duration = Duration::from_millis(500);
/// How many lines of stderr are kept, and how much of each.
const LINES: (usize, usize) = (20, 500);
/// How many lines of stderr the host hears of one process.
const MOST_HEARD: u32 = 10_000;
/// How many calls may wait behind one that asks the user something.
const MOST_BEHIND: usize = 1_024;

type Reply = Result<Bytes, String>;

/// A worker that runs. Dropping it kills its process group.
#[derive(Debug)]
pub(super) struct Connection {
    shared: Arc<Shared>,
    stdin: Arc<Input>,
    pid: u32,
    began: Instant,
    /// Scripts that could not be loaded, and why.
    refusals: Mutex<HashMap<usize, String>>,
    ended: CancellationToken,
}

#[derive(Debug)]
struct Shared {
    name: String,
    wire: Wire,
    pending: Mutex<HashMap<u64, oneshot::Sender<Reply>>>,
    watched: Watched,
    /// Calls that nobody waits for any more and that were not answered yet.
    given_up: Mutex<HashSet<u64>>,
    /// Calls whose scripts ask the user something, each with the number of questions.
    asking: Mutex<HashMap<u64, u32>>,
    /// The user has answered.
    told: Notify,
    /// A call is over whose script asks the user something.
    call_over: Notify,
    desk: Desk,
    next_id: AtomicU64,
    /// When a message came last, in calls that were made by then.
    heard_at: AtomicU64,
    death: Mutex<Option<String>>,
    stderr: Mutex<VecDeque<String>>,
    ended: CancellationToken,
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Reply>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn given_up(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asking(&self) -> MutexGuard<'_, HashMap<u64, u32>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody waits for a call any more.
    async fn call_is_over(&self, id: u64) {
        loop {
            let mut over = std::pin::pin!(self.call_over.notified());
            over.as_mut().enable();
            if !self.pending().contains_key(&id) {
                return;
            }
            over.await;
        }
    }

    /// Notes that a call is over.
    fn end_questions_of(&self, id: u64) {
        if self.asking().contains_key(&id) {
            self.call_over.notify_waiters();
        }
    }

    /// Waits until the time of a call is over. The time in which its script asks the user something does not count: when that is
    /// answered, the call has all of its time again.
    async fn time_is_over(&self, id: u64, mut deadline: Instant) {
        let within = deadline.saturating_duration_since(Instant::now());
        loop {
            sleep_until(deadline).await;
            loop {
                let mut told = std::pin::pin!(self.told.notified());
                told.as_mut().enable();
                if !self.asking().contains_key(&id) {
                    break;
                }
                told.await;
                deadline = Instant::now() + within;
            }
            if deadline <= Instant::now() {
                return;
            }
        }
    }

    /// Has the worker killed where it does not let go of a call that nobody waits for: nothing outlives its deadline.
    fn expect_end_of(self: &Arc<Self>, id: u64) {
        // Outside a runtime nobody is left to read the answer either.
        let (Some(let_go), Ok(runtime)) = (self.wire.let_go, tokio::runtime::Handle::try_current())
        else {
            return;
        };
        self.given_up().insert(id);
        let shared = Arc::clone(self);
        runtime.spawn(async move {
            let answered = timeout_at(Instant::now() + let_go, shared.ended.cancelled());
            if answered.await.is_err() && shared.given_up().remove(&id) {
                shared.die(&format!(
                    "it went on with a call for {} seconds after it was told to give it up",
                    let_go.as_secs()
                ));
            }
        });
    }

    /// Notes why it is over, fails what waits, and has the child killed.
    fn die(&self, problem: &str) {
        {
            let mut death = self.death.lock().unwrap_or_else(PoisonError::into_inner);
            if death.is_none() {
                *death = Some(problem.to_owned());
            }
        }
        self.ended.cancel();
        self.pending().clear();
    }

    /// Returns why it is over, with what the worker said at last.
    fn epitaph(&self) -> Option<String> {
        let death = self.death.lock().unwrap_or_else(PoisonError::into_inner);
        let problem = death.clone()?;
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        Some(match stderr.back() {
            Some(line) => format!("{problem}; it said: {line}"),
            None => problem,
        })
    }
}

/// A message of a worker.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default)]
    id: Option<u64>,
    #[serde(default)]
    method: Option<String>,
    /// The call that a request belongs to.
    #[serde(default, rename = "parentId")]
    parent: Value,
    #[serde(default)]
    params: Value,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Failure>,
}

/// Takes a value that is there, `null` too.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
struct Failure {
    #[serde(default)]
    message: String,
}

impl Connection {
    pub(super) fn start(
        name: &str,
        command: &Command,
        wire: Wire,
        desk: &Desk,
    ) -> Result<Self, String> {
        let (child, pipes) =
            Companion::start(command).map_err(|error| tenterhook::error_chain(&error))?;
        let ended = CancellationToken::new();
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            wire,
            pending: Mutex::default(),
            watched: Watched::default(),
            given_up: Mutex::default(),
            asking: Mutex::default(),
            told: Notify::new(),
            call_over: Notify::new(),
            desk: desk.clone(),
            next_id: AtomicU64::new(1),
            heard_at: AtomicU64::new(0),
            death: Mutex::new(None),
            stderr: Mutex::default(),
            ended: ended.clone(),
        });
        let CompanionPipes {
            stdin,
            stdout,
            stderr,
        } = pipes;
        let pid = child.pid();
        let stdin = Arc::new(Input::new(stdin));
        let (draining, drained_until) = (Arc::clone(&stdin), ended.clone());
        tokio::spawn(async move { draining.drain(&drained_until).await });
        tokio::spawn(listen(stderr, Arc::clone(&shared)));
        tokio::spawn(read(stdout, child, Arc::clone(&shared), Arc::clone(&stdin)));
        Ok(Self {
            shared,
            stdin,
            pid,
            began: Instant::now(),
            refusals: Mutex::default(),
            ended,
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns why it is over, if it is.
    pub(super) fn death(&self) -> Option<String> {
        self.shared.epitaph()
    }

    fn refusals(&self) -> MutexGuard<'_, HashMap<usize, String>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a script cannot be called, and why.
    pub(super) fn refuse(&self, script: usize, problem: String) {
        self.refusals().insert(script, problem);
    }

    /// Notes that a script was loaded.
    pub(super) fn accept(&self, script: usize) {
        self.refusals().remove(&script);
    }

    /// Returns why a script cannot be called.
    pub(super) fn refusal(&self, script: usize) -> Option<String> {
        self.refusals().get(&script).cloned()
    }

    pub(super) fn kill(&self, problem: &str) {
        self.shared.die(problem);
    }

    /// Says whether nothing was heard since the calls that were not answered.
    pub(super) fn is_silent_for_calls(&self) -> bool {
        let made = self.shared.next_id.load(Ordering::Relaxed);
        let heard = self.shared.heard_at.load(Ordering::Relaxed);
        made.saturating_sub(heard) > 1
    }

    /// Makes one call, whose parameters may come in parts, and waits for its answer.
    pub(super) async fn call(
        &self,
        method: &str,
        params: &[&[u8]],
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        self.call_watched((method, params), None, deadline, cancel)
            .await
    }

    /// Makes a call of which somebody may want to know what it has so far.
    pub(super) async fn call_watched(
        &self,
        (method, params): (&str, &[&[u8]]),
        updates: Option<Updates>,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        if let Some(updates) = updates {
            self.shared.watched.watch(id, updates);
        }
        let (sender, receiver) = oneshot::channel();
        self.shared.pending().insert(id, sender);
        let waiting = Waiting {
            connection: self,
            id,
        };
        if self.ended.is_cancelled() {
            return Err(self.over_error());
        }
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":");
        let frame = self
            .shared
            .wire
            .framing
            .frame(&[&[head.as_bytes()], params, &[b"}"]]);
        let asked = async {
            self.stdin.send(&frame).await;
            match receiver.await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(message)) => Err(WorkerError::Call { message }),
                Err(_) => Err(self.over_error()),
            }
        };
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(WorkerError::Cancelled),
            answer = asked => answer,
            () = self.shared.time_is_over(id, deadline) => Err(WorkerError::TimedOut),
        };
        drop(waiting);
        answer
    }

    /// Waits until the worker has ended.
    pub(super) async fn over(&self) {
        self.ended.cancelled().await;
    }

    /// Says that nobody waits for a call.
    pub(super) fn cancel(&self, id: u64) {
        let Wire {
            framing, cancel, ..
        } = self.shared.wire;
        let message =
            format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{cancel}\",\"params\":{{\"id\":{id}}}}}");
        let frame = framing.frame(&[&[message.as_bytes()]]);
        // Where there is no room the worker does not read, and needs not be told.
        let _told = self.stdin.send_now(&frame);
    }

    /// Asks the worker to end, where its protocol has a word for that, and takes its answer.
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

    /// Asks the worker to end, and waits for that.
    pub(super) async fn shutdown(&self, grace: Duration) {
        let deadline = Instant::now() + grace;
        if self.shared.wire.end.is_some() {
            let _answered = self.ask_to_end(grace).await;
            // Where it does not end by then it is killed.
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

/// A call under way. Whoever stops to wait takes it back and tells the worker.
struct Waiting<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.connection.shared.watched.forget(self.id);
        let was_waiting = self.connection.shared.pending().remove(&self.id).is_some();
        self.connection.shared.end_questions_of(self.id);
        if was_waiting && !self.connection.ended.is_cancelled() {
            self.connection.shared.expect_end_of(self.id);
            self.connection.cancel(self.id);
        }
    }
}

/// The pipe to the worker. A message is written by whoever sends it where that can be done without waiting, so that nobody has to
/// be woken; otherwise it waits in a buffer for the task that drains it.
#[derive(Debug)]
struct Input {
    pipe: Sender,
    waiting: Mutex<Unwritten>,
    /// There is something in the buffer.
    filled: Notify,
    /// There is room in the buffer.
    drained: Notify,
}

/// What could not be written yet.
#[derive(Debug, Default)]
struct Unwritten {
    bytes: Vec<u8>,
    /// The task is writing what it took out; what comes now stands behind that.
    is_draining: bool,
}

impl Input {
    fn new(pipe: Sender) -> Self {
        Self {
            pipe,
            waiting: Mutex::default(),
            filled: Notify::new(),
            drained: Notify::new(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Unwritten> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a message, at once or into the buffer; says whether there was room.
    fn send_now(&self, message: &[u8]) -> bool {
        let mut waiting = self.waiting();
        let is_idle = waiting.bytes.is_empty() && !waiting.is_draining;
        if !is_idle && waiting.bytes.len() + message.len() > BUFFER {
            return false;
        }
        // An error is seen by those who read from the worker.
        let written = if is_idle {
            self.pipe.try_write(message).unwrap_or_default()
        } else {
            0
        };
        let rest = message.get(written..).unwrap_or_default();
        if !rest.is_empty() {
            waiting.bytes.extend_from_slice(rest);
            self.filled.notify_one();
        }
        true
    }

    /// Takes a message, and waits for room where there is none.
    async fn send(&self, message: &[u8]) {
        loop {
            let mut drained = std::pin::pin!(self.drained.notified());
            drained.as_mut().enable();
            if self.send_now(message) {
                return;
            }
            drained.await;
        }
    }

    /// Writes what waits, until the worker is over.
    async fn drain(&self, ended: &CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = ended.cancelled() => return,
                () = self.filled.notified() => {}
            }
            loop {
                let bytes = {
                    let mut waiting = self.waiting();
                    let bytes = std::mem::take(&mut waiting.bytes);
                    waiting.is_draining = !bytes.is_empty();
                    bytes
                };
                self.drained.notify_waiters();
                if bytes.is_empty() {
                    break;
                }
                tokio::select! {
                    biased;
                    () = ended.cancelled() => return,
                    () = self.write_all(&bytes) => {}
                }
            }
        }
    }

    async fn write_all(&self, mut rest: &[u8]) {
        while !rest.is_empty() {
            let writable = self.pipe.writable().await;
            match writable.and_then(|()| self.pipe.try_write(rest)) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The worker reads no more; those who read from it see its end.
                Err(_) => return,
            }
        }
    }
}

/// Reads answers until the worker ends or says something that is none; then nothing of it is left.
async fn read(pipe: Receiver, child: Companion, shared: Arc<Shared>, stdin: Arc<Input>) {
    let problem = tokio::select! {
        biased;
        // Nobody needs it any more: dropping the child kills its group.
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

/// Reads messages; returns what is wrong with one, or nothing at the end of the output.
async fn read_messages(
    mut pipe: Receiver,
    shared: &Arc<Shared>,
    stdin: &Arc<Input>,
) -> Option<String> {
    let mut messages = Messages::new(shared.wire.framing, CHUNK);
    loop {
        loop {
            let taken = match messages.next() {
                Ok(Some(message)) => take(&message, shared, stdin),
                Ok(None) => break,
                Err(problem) => Err(problem),
            };
            if let Err(problem) = taken {
                return Some(problem);
            }
        }
        // Unlike `try_read_buf` this knows an emptied pipe from a short read, and does not ask once more before who waits is woken.
        match pipe.read_buf(messages.room(CHUNK)).await {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

/// Answers a request of the worker.
async fn serve(
    (id, method, params): (u64, String, Value),
    shared: Arc<Shared>,
    stdin: Arc<Input>,
    place: OwnedSemaphorePermit,
) {
    let question = Question::of(&method, &params, &shared);
    let given_up = async {
        match &question {
            // Who is not waited for asks nobody any more.
            Some(question) => shared.call_is_over(question.call).await,
            None => future::pending().await,
        }
    };
    let answer = tokio::select! {
        biased;
        () = shared.ended.cancelled() => return,
        () = given_up => Desk::unanswered(id),
        answer = shared.desk.answer(id, &method, params) => answer,
    };
    drop(question);
    reply(answer, shared, stdin, place).await;
}

/// Sends the answer to a request, whose place is free then.
async fn reply(
    answer: Vec<u8>,
    shared: Arc<Shared>,
    stdin: Arc<Input>,
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

/// The user is asked something on behalf of a call: its time does not pass meanwhile, and that of the calls which wait behind it.
struct Question<'a> {
    shared: &'a Shared,
    call: u64,
    behind: Vec<u64>,
}

impl<'a> Question<'a> {
    fn of(method: &str, params: &Value, shared: &'a Shared) -> Option<Self> {
        let call = params.get("call")?.as_u64()?;
        if !["ui/confirm", "ui/select", "ui/input"].contains(&method) {
            return None;
        }
        let behind = params.get("behind").and_then(Value::as_array);
        let behind = behind.into_iter().flatten().filter_map(Value::as_u64);
        let mut behind: Vec<u64> = behind.take(MOST_BEHIND).collect();
        behind.push(call);
        behind.sort_unstable();
        behind.dedup();
        let mut asking = shared.asking();
        for call in &behind {
            *asking.entry(*call).or_default() += 1;
        }
        Some(Self {
            shared,
            call,
            behind,
        })
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let mut asking = self.shared.asking();
        for call in &self.behind {
            if let Some(questions) = asking.get_mut(call) {
                *questions -= 1;
                if *questions == 0 {
                    asking.remove(call);
                }
            }
        }
        self.shared.told.notify_waiters();
    }
}

/// Takes one message.
fn take(line: &Bytes, shared: &Arc<Shared>, stdin: &Arc<Input>) -> Result<(), String> {
    let made = shared.next_id.load(Ordering::Relaxed);
    shared.heard_at.store(made, Ordering::Relaxed);
    if line.trim_ascii().is_empty() {
        return Ok(());
    }
    let message: Message<'_> = serde_json::from_slice(line)
        .map_err(|error| format!("it said what is no message: {error}"))?;
    match (message.id, message.method) {
        (Some(id), Some(method)) => {
            if let Some(place) = shared.desk.place() {
                let (shared, stdin) = (Arc::clone(shared), Arc::clone(stdin));
                if shared.wire.update == Some(method.as_str()) {
                    // Told at once: news keep their order, and none comes behind the answer.
                    let told = shared.watched.tell(&message.parent, message.params);
                    let answer = host::message(id, told.map(|()| json!({})));
                    tokio::spawn(reply(answer, shared, stdin, place));
                } else {
                    let request = (id, method, message.params);
                    tokio::spawn(serve(request, shared, stdin, place));
                }
            } else {
                let refusal = shared.wire.framing.frame(&[&[&Desk::refusal(id)]]);
                // Where there is no room the worker does not read, and needs not be told.
                let _told = stdin.send_now(&refusal);
            }
            Ok(())
        }
        (None, Some(method)) if method == UPDATE => {
            shared.watched.hear(message.params);
            Ok(())
        }
        // What a worker wants to be known stands in its stderr too; a method that nobody knows is none.
        (None, Some(_)) => Ok(()),
        (Some(id), None) if id >= made || id == 0 => {
            Err(format!("it answered call {id}, which was never made"))
        }
        (Some(id), None) => {
            // What comes behind the answer is no news of the call.
            shared.watched.forget(id);
            // A late answer, or a second one, has nobody who waits for it.
            let waiting = shared.pending().remove(&id);
            if let Some(waiting) = waiting {
                let reply = match (message.error, message.result) {
                    (Some(failure), _) => Err(failure.message),
                    (None, Some(result)) => Ok(line.slice_ref(result.get().as_bytes())),
                    // What JavaScript has no value for is left out of its JSON.
                    (None, None) if shared.wire.may_leave_out_result => {
                        Ok(Bytes::from_static(b"null"))
                    }
                    (None, None) => Err("it answered neither a result nor an error".to_owned()),
                };
                let _given_up = waiting.send(reply);
            } else {
                shared.given_up().remove(&id);
            }
            Ok(())
        }
        (None, None) => Err("it said a message without `id` and `method`".to_owned()),
    }
}

/// Keeps the last lines of stderr.
async fn listen(pipe: Receiver, shared: Arc<Shared>) {
    let (most, longest) = LINES;
    let mut line: Vec<u8> = Vec::new();
    let mut is_cut = false;
    let mut heard = 0;
    let mut chunk = [0; 4 << 10];
    loop {
        let readable = tokio::select! {
            biased;
            () = shared.ended.cancelled() => return,
            readable = pipe.readable() => readable,
        };
        let read = match readable.and_then(|()| pipe.try_read(&mut chunk)) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(_) => return,
        };
        for byte in chunk.get(..read).unwrap_or_default() {
            if *byte != b'\n' {
                is_cut |= line.len() == longest;
                if !is_cut {
                    line.push(*byte);
                }
                continue;
            }
            if std::mem::take(&mut is_cut) {
                line.truncate(cut::head_end(&line));
            }
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            if text.is_empty() {
                continue;
            }
            if heard < MOST_HEARD {
                heard += 1;
                shared.desk.host.said(&shared.name, &text);
            }
            let mut kept = shared.stderr.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() == most {
                kept.pop_front();
            }
            kept.push_back(text);
        }
    }
}
