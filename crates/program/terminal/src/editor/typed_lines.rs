//! Lines that a person types while the agent works, when no one reads prompts.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use parking_lot::Mutex;
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use super::early::{EarlyLine, take_line};
use super::prompt_text::PromptText;

/// The maximum number of lines that are kept. Further lines stay in the terminal.
const MAX_LINES: usize = 64;

/// The lines that become the next prompts, in order.
#[derive(Debug, Default)]
pub(super) struct TypedLines(Mutex<VecDeque<EarlyLine>>);

impl TypedLines {
    /// Returns the next line that `is_wanted` selects, if the person has typed it. Keeps other lines.
    pub(super) fn look(
        &self,
        terminal: BorrowedFd<'_>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Option<String> {
        // A read from a terminal that belongs to another program would stop this process.
        if tcgetpgrp(terminal).is_ok_and(|foreground| foreground != getpgrp()) {
            return None;
        }
        let mut lines = self.0.lock();
        while lines.len() < MAX_LINES && lines.back() != Some(&EarlyLine::End) {
            // If the terminal cannot be read, the next prompt reports it.
            match take_line(terminal).ok().flatten()? {
                EarlyLine::Typed(line) if is_wanted(&line) => return Some(line),
                other @ (EarlyLine::Typed(_) | EarlyLine::End) => lines.push_back(other),
            }
        }
        None
    }

    /// Takes the oldest line.
    pub(super) fn take(&self) -> Option<EarlyLine> {
        self.0.lock().pop_front()
    }

    /// Makes the lines text of the next prompt, because they were typed before a question appeared.
    pub(super) fn become_text(&self, prompt: &PromptText) {
        let lines = std::mem::take(&mut *self.0.lock());
        for line in lines {
            if let EarlyLine::Typed(line) = line {
                prompt.keep(&line);
            }
        }
    }

    /// Drops all lines.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }
}
