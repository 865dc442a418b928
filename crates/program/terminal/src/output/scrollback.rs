//! Queues the output that is printed while a line is being edited. The editor prints it above that line.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// The maximum number of lines that wait for the editor. Further lines are counted but not shown.
pub const MAX: usize = 1024;

/// How long to wait for the end of an edit.
const PATIENCE: Duration = Duration::from_secs(2);

static QUEUE: Mutex<ScrollbackQueue> = Mutex::new(ScrollbackQueue {
    is_open: false,
    lines: VecDeque::new(),
    begun: String::new(),
    lost: 0,
});

static CLOSED: Condvar = Condvar::new();

#[derive(Debug)]
struct ScrollbackQueue {
    /// Whether a line is being edited.
    is_open: bool,
    lines: VecDeque<String>,
    /// An incomplete line.
    begun: String,
    lost: usize,
}

impl ScrollbackQueue {
    fn push(&mut self, line: String) {
        if self.lines.len() < MAX {
            self.lines.push_back(line);
        } else {
            self.lost += 1;
        }
    }
}

fn lock() -> MutexGuard<'static, ScrollbackQueue> {
    QUEUE.lock()
}

/// Starts to queue output.
pub fn open() {
    lock().is_open = true;
}

/// Returns whether a line is being edited.
pub fn is_open() -> bool {
    lock().is_open
}

/// Queues text if a line is being edited. Returns whether it was queued.
pub(super) fn put(text: &str) -> bool {
    let mut queue = lock();
    if !queue.is_open {
        return false;
    }
    queue.begun.push_str(text);
    let begun = std::mem::take(&mut queue.begun);
    let mut rest = begun.as_str();
    while let Some((line, more)) = rest.split_once('\n') {
        queue.push(line.to_owned());
        rest = more;
    }
    rest.clone_into(&mut queue.begun);
    true
}

/// Takes the queued lines.
pub fn take_lines() -> Vec<String> {
    lock().lines.drain(..).collect()
}

/// Prints the rest of the queue with `print`, and stops queueing. No other code prints meanwhile.
pub fn close(print: impl FnOnce(Vec<String>)) {
    let mut queue = lock();
    let mut rest: Vec<String> = queue.lines.drain(..).collect();
    let begun = std::mem::take(&mut queue.begun);
    if !begun.is_empty() {
        rest.push(begun);
    }
    let lost = std::mem::take(&mut queue.lost);
    if lost > 0 {
        rest.push(format!(
            "… {lost} more lines were printed while the line was edited"
        ));
    }
    print(rest);
    queue.is_open = false;
    CLOSED.notify_all();
}

/// Waits until no line is being edited, so that the terminal is restored.
pub(super) fn wait() {
    let mut queue = lock();
    // A longer edit does not keep the program from ending.
    let _waited = CLOSED.wait_while_for(&mut queue, |queue| queue.is_open, PATIENCE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wait_for_the_editor_within_a_bound_and_nothing_waits_for_nobody() {
        assert!(!put("lost to the terminal\n"));
        open();
        assert!(put("one\ntwo\nthr"));
        assert_eq!(take_lines(), ["one", "two"]);
        assert!(put("ee\nrest"));
        for _ in 0..MAX {
            assert!(put("many\n"));
        }
        let mut printed = Vec::new();
        close(|rest| printed = rest);
        assert_eq!(printed.len(), MAX + 1);
        assert_eq!(printed[0], "three");
        assert_eq!(
            printed[MAX],
            "… 1 more lines were printed while the line was edited"
        );
        assert!(!is_open());
    }
}
