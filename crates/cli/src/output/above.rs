//! What is printed while a line is edited: the editor prints it above that line.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most lines that wait for the editor. Those that are more are counted and not shown.
pub(crate) const MOST: usize = 1024;

/// How long the end of an editor is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

static ABOVE: Mutex<Above> = Mutex::new(Above {
    is_open: false,
    lines: VecDeque::new(),
    begun: String::new(),
    lost: 0,
});

static CLOSED: Condvar = Condvar::new();

#[derive(Debug)]
struct Above {
    /// A line is being edited.
    is_open: bool,
    lines: VecDeque<String>,
    /// A line without its end.
    begun: String,
    lost: usize,
}

impl Above {
    fn push(&mut self, line: String) {
        if self.lines.len() < MOST {
            self.lines.push_back(line);
        } else {
            self.lost += 1;
        }
    }
}

fn lock() -> MutexGuard<'static, Above> {
    ABOVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to keep what is printed.
pub(crate) fn open() {
    lock().is_open = true;
}

/// Says whether a line is being edited.
pub(crate) fn is_open() -> bool {
    lock().is_open
}

/// Keeps a text, if a line is being edited; says whether it does.
pub(super) fn put(text: &str) -> bool {
    let mut above = lock();
    if !above.is_open {
        return false;
    }
    above.begun.push_str(text);
    let begun = std::mem::take(&mut above.begun);
    let mut rest = begun.as_str();
    while let Some((line, more)) = rest.split_once('\n') {
        above.push(line.to_owned());
        rest = more;
    }
    rest.clone_into(&mut above.begun);
    true
}

/// Takes the lines that wait.
pub(crate) fn take() -> Vec<String> {
    lock().lines.drain(..).collect()
}

/// Prints what is left with `print`, and keeps nothing more. Nobody else prints meanwhile.
pub(crate) fn close(print: impl FnOnce(Vec<String>)) {
    let mut above = lock();
    let mut rest: Vec<String> = above.lines.drain(..).collect();
    let begun = std::mem::take(&mut above.begun);
    if !begun.is_empty() {
        rest.push(begun);
    }
    let lost = std::mem::take(&mut above.lost);
    if lost > 0 {
        rest.push(format!(
            "… {lost} more lines were printed while the line was edited"
        ));
    }
    print(rest);
    above.is_open = false;
    CLOSED.notify_all();
}

/// Waits until no line is edited any more: the terminal is as it was then.
pub(super) fn wait() {
    let above = lock();
    drop(CLOSED.wait_timeout_while(above, PATIENCE, |above| above.is_open));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wait_for_the_editor_within_a_bound_and_nothing_waits_for_nobody() {
        assert!(!put("lost to the terminal\n"));
        open();
        assert!(put("one\ntwo\nthr"));
        assert_eq!(take(), ["one", "two"]);
        assert!(put("ee\nrest"));
        for _ in 0..MOST {
            assert!(put("many\n"));
        }
        let mut printed = Vec::new();
        close(|rest| printed = rest);
        assert_eq!(printed.len(), MOST + 1);
        assert_eq!(printed[0], "three");
        assert_eq!(
            printed[MOST],
            "… 1 more lines were printed while the line was edited"
        );
        assert!(!is_open());
    }
}
