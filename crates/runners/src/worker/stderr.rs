//! Reads the standard error of a worker.

use std::collections::VecDeque;
use std::io::ErrorKind;

use parking_lot::Mutex;
use tenterhook_protocol::excerpt;
use tokio::net::unix::pipe::Receiver;

/// How many lines are kept.
const MAX_LINES: usize = 20;
/// How many bytes of a line are kept.
const MAX_LINE: usize = 500;
/// How many bytes are read at once.
const CHUNK: usize = 4 << 10;
/// How many chunks are read before other tasks may run.
const MAX_CHUNKS: usize = 16;

/// The last lines that a worker printed.
#[derive(Debug, Default)]
struct LastLines(Mutex<VecDeque<String>>);

impl LastLines {
    /// Keeps a line, and drops the oldest one if there are too many.
    fn push(&self, line: String) {
        let mut kept = self.0.lock();
        if kept.len() == MAX_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }

    fn last(&self) -> Option<String> {
        self.0.lock().back().cloned()
    }
}

/// The standard error of a worker.
#[derive(Debug)]
pub(super) struct Stderr {
    pipe: Receiver,
    unfinished: Mutex<UnfinishedLine>,
    last: LastLines,
}

/// The part of a line that has arrived.
#[derive(Debug, Default)]
struct UnfinishedLine {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Stderr {
    pub(super) fn new(pipe: Receiver) -> Self {
        Self {
            pipe,
            unfinished: Mutex::default(),
            last: LastLines::default(),
        }
    }

    /// Returns the last line.
    pub(super) fn last(&self) -> Option<String> {
        self.last.last()
    }

    /// Waits until there is something to read.
    pub(super) async fn readable(&self) {
        // An error is found by the next read.
        self.pipe.readable().await.ok();
    }

    /// Reads what has arrived. Empty lines are skipped, and long lines are cut. Returns whether more can
    /// arrive.
    pub(super) fn read_ready(&self, mut on_line: impl FnMut(String)) -> bool {
        let mut unfinished = self.unfinished.lock();
        let mut chunk = [0; CHUNK];
        for _ in 0..MAX_CHUNKS {
            let read = match self.pipe.try_read(&mut chunk) {
                Ok(0) => return false,
                Ok(read) => read,
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            };
            for byte in chunk.get(..read).unwrap_or_default() {
                if let Some(line) = unfinished.push(*byte) {
                    self.last.push(line.clone());
                    on_line(line);
                }
            }
        }
        true
    }
}

impl UnfinishedLine {
    /// Adds a byte. Returns the line that it ends, unless the line is empty.
    fn push(&mut self, byte: u8) -> Option<String> {
        let Self { bytes, is_cut } = self;
        if byte != b'\n' {
            *is_cut |= bytes.len() == MAX_LINE;
            if !*is_cut {
                bytes.push(byte);
            }
            return None;
        }
        if std::mem::take(is_cut) {
            bytes.truncate(excerpt::head_end(bytes));
        }
        let text = String::from_utf8_lossy(bytes).trim_end().to_owned();
        bytes.clear();
        Some(text).filter(|text| !text.is_empty())
    }
}
