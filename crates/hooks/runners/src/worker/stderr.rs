//! Reads the standard error of a worker.

use std::io::ErrorKind;

use tenterhook_protocol::excerpt;
use tokio::net::unix::pipe::Receiver;

/// How many bytes of a line are kept.
const MAX_LINE: usize = 500;
/// How many bytes are read at once.
const CHUNK: usize = 4 << 10;
/// How many chunks are read before other tasks may run.
const MAX_CHUNKS: usize = 16;

/// The standard error of a worker.
#[derive(Debug)]
pub(super) struct Stderr {
    /// `None` once it is closed.
    pipe: Option<Receiver>,
    /// The part of a line that has arrived.
    unfinished: Vec<u8>,
    is_cut: bool,
}

impl Stderr {
    pub(super) fn new(pipe: Receiver) -> Self {
        Self {
            pipe: Some(pipe),
            unfinished: Vec::new(),
            is_cut: false,
        }
    }

    /// Waits until there is something to read. Never returns if it is closed.
    pub(super) async fn readable(&self) {
        match &self.pipe {
            // An error is found by the next read.
            Some(pipe) => drop(pipe.readable().await),
            None => std::future::pending().await,
        }
    }

    /// Reads what has arrived. Empty lines are skipped, and long lines are cut.
    pub(super) fn read_ready(&mut self, mut on_line: impl FnMut(String)) {
        let mut chunk = [0; CHUNK];
        for _ in 0..MAX_CHUNKS {
            let Some(pipe) = &self.pipe else {
                return;
            };
            match pipe.try_read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => self.pipe = None,
                Ok(read) => {
                    let bytes = chunk.iter().take(read);
                    for line in bytes.filter_map(|byte| self.push(*byte)) {
                        on_line(line);
                    }
                }
            }
        }
    }

    /// Adds a byte. Returns the line that it ends, unless the line is empty.
    fn push(&mut self, byte: u8) -> Option<String> {
        let Self {
            unfinished, is_cut, ..
        } = self;
        if byte != b'\n' {
            *is_cut |= unfinished.len() == MAX_LINE;
            if !*is_cut {
                unfinished.push(byte);
            }
            return None;
        }
        if std::mem::take(is_cut) {
            unfinished.truncate(excerpt::head_end(unfinished));
        }
        let text = String::from_utf8_lossy(unfinished).trim_end().to_owned();
        unfinished.clear();
        Some(text).filter(|text| !text.is_empty())
    }
}
