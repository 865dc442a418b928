//! The lines of stdin: one thread reads them for prompts and questions alike.
//!
//! A read cannot be taken back, so whoever stops waiting for a line leaves it to the next one who waits.

use std::io::{self, BufRead as _};

use tokio::sync::{Mutex, mpsc};

/// How many lines are read ahead of those who wait for them.
const READ_AHEAD: usize = 1;

/// The lines of stdin. Nothing is read before the first one is asked for.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    receiver: Mutex<Option<mpsc::Receiver<io::Result<String>>>>,
}

impl Lines {
    /// Returns the next line without the blanks around it; `None` is the end of stdin. Dropping the future loses
    /// no line.
    ///
    /// # Errors
    /// When stdin cannot be read, or is no text. Nothing more is read then.
    pub(crate) async fn next(&self) -> io::Result<Option<String>> {
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
