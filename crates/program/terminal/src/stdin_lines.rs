//! The lines of stdin. A single thread reads them, for both prompts and questions.
//!
//! A read cannot be cancelled. So if a caller stops waiting for a line, the next caller gets it.

use std::io::{self, BufRead as _};

use tokio::sync::{Mutex, mpsc};

/// How many lines are read ahead.
const READ_AHEAD: usize = 1;

/// The lines of stdin. Nothing is read before the first call of [`next`](Self::next).
#[derive(Debug, Default)]
pub struct StdinLines {
    receiver: Mutex<Option<mpsc::Receiver<io::Result<String>>>>,
}

impl StdinLines {
    /// Returns the next line without spaces around it, or `None` at the end of stdin. Dropping the future loses no
    /// line.
    ///
    /// # Errors
    /// Fails if stdin cannot be read, or is not text. Nothing more is read then.
    pub async fn next(&self) -> io::Result<Option<String>> {
        let mut receiver = self.receiver.lock().await;
        let line = receiver.get_or_insert_with(start).recv().await;
        Ok(line.transpose()?.map(|line| line.trim().to_owned()))
    }
}

fn start() -> mpsc::Receiver<io::Result<String>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    let failed = sender.clone();
    let thread = std::thread::Builder::new().spawn(move || {
        loop {
            let mut line = String::new();
            let read = match io::stdin().lock().read_line(&mut line) {
                Ok(0) => return,
                Ok(_) => Ok(line),
                Err(error) => Err(error),
            };
            let is_last = read.is_err();
            if sender.blocking_send(read).is_err() || is_last {
                return;
            }
        }
    });
    if let Err(error) = thread {
        failed.try_send(Err(error)).ok();
    }
    receiver
}
