//! Reads the requests of a program from stdin, one message per line.

use std::io::{self, Read as _};
use std::sync::Arc;

use bytes::Bytes;
use tenterhook_jsonrpc::{FrameReader, Framing, Incoming, RpcError, RpcRequest};
use tokio::sync::mpsc;

use super::client::RpcClient;

/// The longest message, in bytes.
const MAX_MESSAGE: usize = 8 << 20;

/// The maximum number of messages that are read ahead.
const READ_AHEAD: usize = 16;

/// How many bytes are read at once.
const CHUNK: usize = 16 << 10;

/// A message, or why it could not be read.
type Read = Result<Bytes, RpcError>;

/// The program that calls methods.
#[derive(Debug)]
pub struct RpcCaller {
    /// The same program, which answers questions.
    pub client: Arc<RpcClient>,
    messages: mpsc::Receiver<Read>,
}

impl RpcCaller {
    /// Starts to read stdin.
    pub fn listen(client: Arc<RpcClient>) -> Self {
        let (sender, messages) = mpsc::channel(READ_AHEAD);
        let failed = sender.clone();
        let thread = std::thread::Builder::new().spawn(move || read(&sender));
        if let Err(error) = thread {
            let failure = RpcError::unreadable(&format!("cannot read stdin: {error}"));
            failed.try_send(Err(failure)).ok();
        }
        Self { client, messages }
    }

    /// Returns the next request, or `None` at the end of stdin. Answers to the agent's questions are delivered to the
    /// client.
    pub async fn next(&mut self) -> Option<Result<RpcRequest, RpcError>> {
        loop {
            let message = self.messages.recv().await?;
            match message.and_then(|line| Incoming::parse(&line)) {
                Ok(Incoming::Request(request)) => return Some(Ok(request)),
                Ok(Incoming::Answer { id, result }) => self.client.resolve_question(&id, result),
                Ok(Incoming::Nothing) => {}
                Err(failure) => return Some(Err(failure)),
            }
        }
    }
}

/// Reads messages until the end of stdin, or until the receiver is dropped.
fn read(messages: &mpsc::Sender<Read>) {
    let mut frames = FrameReader::new(Framing::Lines, CHUNK, MAX_MESSAGE);
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = match io::stdin().lock().read(&mut chunk) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let error = RpcError::unreadable(&format!("cannot read stdin: {error}"));
                messages.blocking_send(Err(error)).ok();
                return;
            }
        };
        let read = chunk.get(..count).unwrap_or_default();
        frames.room(count).extend_from_slice(read);
        loop {
            let message = match frames.next_frame() {
                Ok(Some(line)) => Ok(line),
                Ok(None) => break,
                Err(_) => Err(RpcError::unreadable(&format!(
                    "a message is longer than {MAX_MESSAGE} bytes"
                ))),
            };
            if messages.blocking_send(message).is_err() {
                return;
            }
        }
        if count == 0 {
            if let Some(rest) = frames.take_rest() {
                messages.blocking_send(Ok(rest)).ok();
            }
            return;
        }
    }
}
