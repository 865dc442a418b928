//! The pipe to a worker. It has a buffer, because a worker may stop reading for a while.

use std::io::ErrorKind;

use parking_lot::{Mutex, MutexGuard};
use tenterhook_process::CancellationToken;
use tokio::net::unix::pipe::Sender;
use tokio::sync::Notify;

/// How many bytes are buffered for a worker that does not read. When the buffer is full, senders wait.
const BUFFER: usize = 1 << 20;

/// A pipe with a buffer. If possible, the sender writes a message itself without waiting, which
/// saves waking a task. Otherwise the message goes into the buffer, and a task writes it later.
#[derive(Debug)]
pub(super) struct BufferedPipe {
    pipe: Sender,
    waiting: Mutex<Unwritten>,
    /// Notified when something was put into the buffer.
    filled: Notify,
    /// Notified when there is room in the buffer.
    drained: Notify,
}

/// The bytes that are not written yet.
#[derive(Debug, Default)]
struct Unwritten {
    bytes: Vec<u8>,
    /// Whether the task is writing bytes that it took from the buffer. New bytes must wait for that.
    is_draining: bool,
}

impl BufferedPipe {
    pub(super) fn new(pipe: Sender) -> Self {
        Self {
            pipe,
            waiting: Mutex::default(),
            filled: Notify::new(),
            drained: Notify::new(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Unwritten> {
        self.waiting.lock()
    }

    /// Sends a message without waiting, directly or through the buffer. Returns `false` if the
    /// buffer has no room.
    pub(super) fn send_now(&self, message: &[u8]) -> bool {
        let mut waiting = self.waiting();
        let is_idle = waiting.bytes.is_empty() && !waiting.is_draining;
        if !is_idle && waiting.bytes.len() + message.len() > BUFFER {
            return false;
        }
        // A write error needs no handling: the task that reads from the worker sees its end.
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

    /// Sends a message. Waits for room if the buffer is full.
    pub(super) async fn send(&self, message: &[u8]) {
        loop {
            let mut drained = std::pin::pin!(self.drained.notified());
            drained.as_mut().enable();
            if self.send_now(message) {
                return;
            }
            drained.await;
        }
    }

    /// Writes the buffered bytes, until the worker has ended.
    pub(super) async fn drain(&self, ended: &CancellationToken) {
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
                // The worker reads no more. The task that reads from it sees its end.
                Err(_) => return,
            }
        }
    }
}
