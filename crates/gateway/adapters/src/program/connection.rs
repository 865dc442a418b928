//! The pipes of one running program: calls in both directions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tenterhook_jsonrpc::{
    FrameReader, Framing, NoAnswer, PendingCalls, RpcError, notification, request, result,
    wait_for_answer,
};
use tenterhook_process::End;
use thiserror::Error;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::protocol::{self, Failure, Invalid, Line, Request};
use tenterhook_channel::channel::{Accepted, DeliveryError, Inlet};
use tenterhook_channel::chat::ChannelId;

/// How many bytes are read at once.
const CHUNK: usize = 64 << 10;
/// The maximum length of a line: a file of 20 MiB in base64, and the rest of its message.
const MAX_LINE: usize = 28 << 20;
/// How many messages wait for a program that does not read.
const MAX_OUTGOING: usize = 256;
/// How many calls wait for an answer.
const MAX_CALLS: usize = 1_024;
/// How many requests of the program wait to be answered.
const MAX_REQUESTS: usize = 64;
/// The maximum length of a line on standard error that is kept.
const MAX_STDERR: u64 = 500;

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum CallError {
    /// There is no answer.
    #[error("{cause}")]
    Lost { cause: String },
    /// The program answered with an error.
    #[error("the program reports: {}", .0.message)]
    Refused(Failure),
}

impl CallError {
    pub(super) fn invalid(error: &serde_json::Error) -> Self {
        Self::Lost {
            cause: format!("the program's answer is invalid: {error}"),
        }
    }
}

impl From<CallError> for DeliveryError {
    fn from(error: CallError) -> Self {
        let cause = error.to_string();
        match error {
            CallError::Refused(failure) => {
                let data = failure.data.unwrap_or_default();
                let after = data.retry_after_ms.map(Duration::from_millis);
                if data.permanent {
                    Self::Permanent { cause }
                } else {
                    Self::Retry { after, cause }
                }
            }
            CallError::Lost { .. } => Self::Retry { after: None, cause },
        }
    }
}

/// The connection to a running program.
#[derive(Debug)]
pub(super) struct Connection {
    channel: ChannelId,
    next_id: AtomicU64,
    calls: PendingCalls<u64, Result<Value, Failure>>,
    outgoing: mpsc::Sender<Vec<u8>>,
    requests: mpsc::Sender<(Value, Request)>,
    waiting: tokio::sync::Mutex<mpsc::Receiver<(Value, Request)>>,
    closed: CancellationToken,
    shut_down: CancellationToken,
    /// Why the connection has ended.
    problem: Mutex<Option<String>>,
    /// The last line on standard error.
    last_words: Mutex<Option<String>>,
    /// The first message of the program that the protocol does not allow.
    mistake: Mutex<Option<String>>,
}

impl Connection {
    /// Creates a connection. The receiver is for [`Connection::write`].
    pub(super) fn new(channel: ChannelId) -> (Self, mpsc::Receiver<Vec<u8>>) {
        let (outgoing, unwritten) = mpsc::channel(MAX_OUTGOING);
        let (requests, waiting) = mpsc::channel(MAX_REQUESTS);
        let connection = Self {
            channel,
            next_id: AtomicU64::new(1),
            calls: PendingCalls::new(MAX_CALLS),
            outgoing,
            requests,
            waiting: tokio::sync::Mutex::new(waiting),
            closed: CancellationToken::new(),
            shut_down: CancellationToken::new(),
            problem: Mutex::default(),
            last_words: Mutex::default(),
            mistake: Mutex::default(),
        };
        (connection, unwritten)
    }

    /// Ends all calls.
    pub(super) fn close(&self) {
        self.closed.cancel();
        self.calls.close();
    }

    /// Returns why the connection ended, with the last line that the program wrote to standard error. `end` is how the
    /// program ended.
    pub(super) fn problem(&self, end: End) -> String {
        let problem = self.problem.lock().clone();
        let problem = problem.unwrap_or_else(|| match end {
            End::Exited(status) => format!("the program ended with status {status}"),
            End::Signaled(signal) => format!("signal {signal} ended the program"),
            End::TimedOut { .. } | End::Cancelled { .. } => "the program was ended".to_owned(),
        });
        match &*self.last_words.lock() {
            Some(words) => format!("{problem}; its last output: {words}"),
            None => problem,
        }
    }

    /// Returns what is wrong with the first message of the program that the protocol does not allow.
    pub(super) fn mistake(&self) -> Option<String> {
        self.mistake.lock().clone()
    }

    fn note_mistake(&self, mistake: impl FnOnce() -> String) {
        self.mistake.lock().get_or_insert_with(mistake);
    }

    /// Calls a method of the program.
    pub(super) async fn call(
        &self,
        method: &'static str,
        params: &Value,
        timeout: Duration,
    ) -> Result<Value, CallError> {
        let lost = |cause: &str| CallError::Lost {
            cause: format!("`{method}` of the program failed: {cause}"),
        };
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let answer = self.calls.begin(id);
        let answer = answer.map_err(|error| lost(&error.to_string()))?;
        let _call = Call(self, id);
        let message = request(&id.into(), method, params);
        let exchange = async {
            // If the pipe is closed, the calls are closed too.
            self.outgoing.send(line(&message)).await.ok();
            answer.await
        };
        let deadline = tokio::time::sleep(timeout);
        match wait_for_answer(exchange, deadline, &self.closed).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(failure)) => Err(CallError::Refused(failure)),
            Err(NoAnswer::TimedOut) => Err(lost("no answer in time")),
            Err(NoAnswer::Cancelled | NoAnswer::Closed) => Err(lost("the program ended")),
        }
    }

    /// Sends a notification, or drops it if the program does not read.
    pub(super) fn notify(&self, method: &'static str, params: &Value) {
        let message = notification(method, params);
        let _dropped = self.outgoing.try_send(line(&message));
    }

    /// Asks the program to end: nothing is written after `shutdown`.
    pub(super) fn shut_down(&self) {
        self.notify("shutdown", &json!({}));
        self.shut_down.cancel();
    }

    /// Writes what is sent, until the program shuts down or does not read any more. It never returns: how the program
    /// ended is found out by reading.
    pub(super) async fn write(
        &self,
        mut outgoing: mpsc::Receiver<Vec<u8>>,
        mut stdin: pipe::Sender,
    ) {
        loop {
            let message = tokio::select! {
                biased;
                message = outgoing.recv() => message,
                () = self.shut_down.cancelled() => None,
            };
            let Some(message) = message else { break };
            if stdin.write_all(&message).await.is_err() {
                break;
            }
        }
        drop(stdin);
        std::future::pending::<()>().await;
    }

    /// Reads what the program sends, until it closes its output.
    pub(super) async fn read(&self, mut stdout: pipe::Receiver) {
        let mut reader = FrameReader::new(Framing::Lines, CHUNK, MAX_LINE);
        loop {
            loop {
                match reader.next_frame() {
                    Ok(Some(line)) => self.take(&line).await,
                    Ok(None) => break,
                    Err(error) => {
                        *self.problem.lock() = Some(format!("the program is ended: {error}"));
                        return;
                    }
                }
            }
            match stdout.read_buf(reader.room(CHUNK)).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    async fn take(&self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let line: Line = match serde_json::from_slice(line) {
            Ok(line) => line,
            Err(error) => {
                let text = format!("cannot read the message: {error}");
                self.note_mistake(|| format!("a line of its output is not a message: {error}"));
                return self
                    .respond(&RpcError::unreadable(&text).to_message())
                    .await;
            }
        };
        let Some(method) = line.method else {
            let answer = line.error.map_or(Ok(line.result), Err);
            let id = line.id.as_u64();
            if !id.is_some_and(|id| self.calls.answer(&id, answer)) {
                let id = line.id;
                self.note_mistake(|| {
                    format!("it answered the request {id}, which no one waits for")
                });
            }
            return;
        };
        let refusal = match protocol::read(&self.channel, &method, line.params) {
            Ok(request) => match self.requests.try_send((line.id.clone(), request)) {
                Ok(()) => return,
                Err(_) => RpcError::busy("too many requests wait; send it again later"),
            },
            Err(Invalid::Method) => {
                let text = format!("unknown method `{method}`; expected `message` or `control`");
                self.note_mistake(|| text.clone());
                RpcError::unknown_method(&text)
            }
            Err(Invalid::Params(problem)) => {
                self.note_mistake(|| format!("invalid parameters of `{method}`: {problem}"));
                RpcError::invalid_params(&problem)
            }
        };
        if !line.id.is_null() {
            self.respond(&refusal.about(&line.id).to_message()).await;
        }
    }

    async fn respond(&self, message: &Value) {
        self.outgoing.send(line(message)).await.ok();
    }

    /// Carries out the requests of the program, in order.
    pub(super) async fn answer(&self, inlet: &Inlet) {
        let mut waiting = self.waiting.lock().await;
        while let Some((id, request)) = waiting.recv().await {
            let answer = match request {
                Request::Message(message) => match inlet.offer(*message).await {
                    Accepted::Recorded => Ok(json!({ "status": "recorded" })),
                    Accepted::Duplicate => Ok(json!({ "status": "duplicate" })),
                    Accepted::Refused { code, notice } => {
                        Ok(json!({ "status": "refused", "code": code, "notice": notice }))
                    }
                    Accepted::Failed { cause } => Err(RpcError::busy(&format!(
                        "the message was not recorded, send it again later: {cause}"
                    ))),
                },
                Request::Control(control) => Ok(json!({ "text": inlet.control(control).await })),
            };
            let message = match answer {
                _ if id.is_null() => continue,
                Ok(value) => result(&id, &value),
                Err(error) => error.about(&id).to_message(),
            };
            self.respond(&message).await;
        }
    }

    /// Keeps the last line on standard error. Returns when the program closes it.
    pub(super) async fn listen(&self, stderr: pipe::Receiver) {
        let mut stderr = BufReader::new(stderr);
        let mut words = Vec::new();
        loop {
            words.clear();
            let mut line = (&mut stderr).take(MAX_STDERR);
            match line.read_until(b'\n', &mut words).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let words = String::from_utf8_lossy(words.trim_ascii());
            if !words.is_empty() {
                *self.last_words.lock() = Some(words.escape_debug().to_string());
            }
        }
    }
}

/// Withdraws a call that is over or was dropped.
struct Call<'a>(&'a Connection, u64);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.calls.withdraw(&self.1);
    }
}

fn line(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    Framing::Lines.frame(&[&[text.as_bytes()]])
}
