//! Handles keys that were pressed too early to answer a question.
//!
//! A key answers a question only if the person can have read the question. Keys that are pending when a question is
//! about to be drawn, or that arrive in the first moments after that, become text of the next prompt.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// How long a question is on the screen before keys count as its answer.
const REACTION_TIME: Duration = Duration::from_millis(300);

/// How long no key may have arrived before keys count, because a pasted text arrives in several pieces.
const QUIET_TIME: Duration = Duration::from_millis(50);

/// How often a wait checks whether anyone still wants the answer.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// How much early text is kept, in bytes. The rest is dropped.
const MAX_KEPT: usize = 64 * 1024;

/// The current time, and waiting for keys.
pub(super) trait Clock {
    fn now(&self) -> Instant;

    /// Waits at most `limit` for a key.
    fn wait_for_key(&self, terminal: BorrowedFd<'_>, limit: Duration) -> io::Result<()>;
}

/// The system's clock.
pub(super) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wait_for_key(&self, terminal: BorrowedFd<'_>, limit: Duration) -> io::Result<()> {
        is_readable(terminal, limit).map(drop)
    }
}

/// Returns whether something can be read from a terminal, after waiting at most `limit`.
pub(super) fn is_readable(terminal: BorrowedFd<'_>, limit: Duration) -> io::Result<bool> {
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    let mut polled = [PollFd::new(&terminal, PollFlags::IN)];
    match poll(&mut polled, Some(&limit)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Draws a question and waits until keys count as its answer. Returns the text that was typed before.
///
/// `queued` returns the keys that this process has read from the terminal but not used. The wait ends early when the
/// answer is no longer wanted.
pub(super) fn draw_question(
    terminal: BorrowedFd<'_>,
    clock: &impl Clock,
    is_given_up: &AtomicBool,
    queued: impl Fn() -> io::Result<Vec<u8>>,
    draw: impl FnOnce(),
) -> io::Result<String> {
    let unbuffered = Unbuffered::new(terminal)?;
    let mut early = Vec::new();
    // Read the terminal first. If something were left to read there, `queued` could wait for the rest of an escape
    // sequence.
    let pending = unbuffered.take_pending()?;
    keep(&mut early, &queued()?);
    keep(&mut early, &pending);
    draw();
    let drawn = clock.now();
    let mut last_key = None;
    while !is_given_up.load(Ordering::SeqCst) {
        let now = clock.now();
        let quiet_since = last_key.map_or(drawn, |last| last + QUIET_TIME);
        let wait = quiet_since
            .max(drawn + REACTION_TIME)
            .saturating_duration_since(now);
        if !wait.is_zero() {
            clock.wait_for_key(terminal, wait.min(CHECK_INTERVAL))?;
        }
        let pending = unbuffered.take_pending()?;
        if !pending.is_empty() {
            keep(&mut early, &pending);
            last_key = Some(clock.now());
        } else if wait.is_zero() {
            break;
        }
    }
    Ok(text_of(&early))
}

fn keep(kept: &mut Vec<u8>, bytes: &[u8]) {
    let room = MAX_KEPT.saturating_sub(kept.len()).min(bytes.len());
    kept.extend(bytes.iter().take(room));
}

/// A terminal without echo and line buffering. Dropping it restores the terminal.
struct Unbuffered<'a> {
    terminal: BorrowedFd<'a>,
    before: Termios,
}

impl<'a> Unbuffered<'a> {
    fn new(terminal: BorrowedFd<'a>) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut changed = before.clone();
        changed.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHONL;
        // Ctrl-C interrupts here, even if the line editor will read it as a key later.
        changed.local_modes |= LocalModes::ISIG;
        tcsetattr(terminal, OptionalActions::Now, &changed)?;
        Ok(Self { terminal, before })
    }

    /// Reads everything that can be read without waiting, up to a limit.
    fn take_pending(&self) -> io::Result<Vec<u8>> {
        let mut pending = Vec::new();
        let mut buffer = [0; 1024];
        while pending.len() < MAX_KEPT && is_readable(self.terminal, Duration::ZERO)? {
            match rustix::io::read(self.terminal, &mut buffer) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Ok(count) => pending.extend(buffer.iter().take(count)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(pending)
    }
}

impl Drop for Unbuffered<'_> {
    fn drop(&mut self) {
        tcsetattr(self.terminal, OptionalActions::Now, &self.before).ok();
    }
}

/// What was typed while no one read lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EarlyLine {
    /// A line.
    Typed(String),
    /// Ctrl-D at the beginning of a line, or the end of the terminal.
    End,
}

/// Takes a line that was typed while no one read lines, if a whole one waits. The terminal has shown it already.
///
/// The line editor's library would take all lines that wait, and use only the first.
pub(super) fn take_line(terminal: BorrowedFd<'_>) -> io::Result<Option<EarlyLine>> {
    let modes = tcgetattr(terminal)?.local_modes;
    if !modes.contains(LocalModes::ICANON) || !is_readable(terminal, Duration::ZERO)? {
        return Ok(None);
    }
    // In this mode a terminal returns at most one line at a time.
    let mut line = vec![0; 4096];
    let count = match rustix::io::read(terminal, &mut line) {
        Ok(count) => count,
        Err(Errno::INTR | Errno::AGAIN) => return Ok(None),
        Err(Errno::IO) => 0,
        Err(error) => return Err(error.into()),
    };
    line.truncate(count);
    Ok(Some(if count > 0 {
        EarlyLine::Typed(text_of(&line))
    } else {
        EarlyLine::End
    }))
}

/// Returns the keys that the line editor's library has read but not used.
pub(super) fn take_queued() -> io::Result<Vec<u8>> {
    let mut keys = Vec::new();
    while event::poll(Duration::ZERO)? {
        keep(&mut keys, bytes_of(&event::read()?).as_bytes());
    }
    Ok(keys)
}

/// Returns the bytes that a terminal sends for an event, if the event is text or edits text.
fn bytes_of(event: &Event) -> String {
    if let Event::Paste(text) = event {
        return text.clone();
    }
    let Some(key) = event.as_key_press_event() else {
        return String::new();
    };
    let is_plain = (key.modifiers - KeyModifiers::SHIFT).is_empty();
    let is_line_end = key.modifiers == KeyModifiers::CONTROL && key.code == KeyCode::Char('j');
    match key.code.as_char().filter(|_| is_plain) {
        Some(character) => character.to_string(),
        None if is_line_end || key.code == KeyCode::Enter => "\n".to_owned(),
        None if key.code == KeyCode::Backspace => "\u{7f}".to_owned(),
        None if key.code == KeyCode::Tab => "\t".to_owned(),
        None => String::new(),
    }
}

/// Returns the text that was typed with these keys, without line ends at its end. Complete and partial escape
/// sequences and other control keys are left out. A backspace removes a character.
fn text_of(keys: &[u8]) -> String {
    let keys = String::from_utf8_lossy(keys);
    let mut characters = keys.chars();
    let mut text = String::new();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => skip_sequence(&mut characters),
            '\r' | '\n' => text.push('\n'),
            '\t' => text.push(' '),
            '\u{7f}' | '\u{8}' => {
                text.pop();
            }
            character if character.is_control() => {}
            character => text.push(character),
        }
    }
    text.trim_end_matches('\n').to_owned()
}

/// Skips the rest of an escape sequence: the parameters and the final character of a control sequence, or a single
/// key.
fn skip_sequence(characters: &mut std::str::Chars<'_>) {
    match characters.next() {
        Some('[') => {
            characters.find(|character| ('\u{40}'..='\u{7e}').contains(character));
        }
        Some('O') => {
            characters.next();
        }
        Some(_) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs::File;
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    use portable_pty::{PtySize, native_pty_system};

    use super::*;

    /// A clock that jumps ahead, and a person who types at certain times after the question is drawn.
    struct Person {
        start: Instant,
        typed: RefCell<Vec<(u64, &'static str)>>,
        elapsed: RefCell<Duration>,
        keyboard: RefCell<Box<dyn io::Write + Send>>,
    }

    impl Clock for Person {
        fn now(&self) -> Instant {
            self.start + *self.elapsed.borrow()
        }

        fn wait_for_key(&self, terminal: BorrowedFd<'_>, limit: Duration) -> io::Result<()> {
            let mut typed = self.typed.borrow_mut();
            let mut elapsed = self.elapsed.borrow_mut();
            let until = *elapsed + limit;
            let Some(&(at, keys)) = typed.first() else {
                *elapsed = until;
                return Ok(());
            };
            let at = Duration::from_millis(at);
            if at >= until {
                *elapsed = until;
                return Ok(());
            }
            typed.remove(0);
            *elapsed = at;
            self.type_keys(terminal, keys)
        }
    }

    impl Person {
        /// Types, and waits until the terminal has the keys.
        fn type_keys(&self, terminal: BorrowedFd<'_>, keys: &str) -> io::Result<()> {
            self.keyboard.borrow_mut().write_all(keys.as_bytes())?;
            assert!(is_readable(terminal, Duration::from_mins(1))?);
            Ok(())
        }
    }

    /// Asks a question at a terminal with these pending keys, and with keys that are typed some milliseconds after the
    /// question is drawn.
    /// Returns the early text, when keys began to count, and what can be read then.
    fn ask(pending: &str, typed: &[(u64, &'static str)]) -> (String, u128, String) {
        let pair = native_pty_system().openpty(PtySize::default()).unwrap();
        let terminal = File::options()
            .read(true)
            .write(true)
            .open(pair.master.tty_name().unwrap())
            .unwrap();
        let person = Person {
            start: Instant::now(),
            typed: RefCell::new(typed.to_vec()),
            elapsed: RefCell::default(),
            keyboard: RefCell::new(pair.master.take_writer().unwrap()),
        };
        {
            // Half a line can be read only where lines are not kept until Enter.
            let unbuffered = Unbuffered::new(terminal.as_fd()).unwrap();
            if !pending.is_empty() {
                person.type_keys(unbuffered.terminal, pending).unwrap();
            }
        }
        let is_given_up = AtomicBool::new(false);
        let none = || Ok(Vec::new());
        let early = draw_question(terminal.as_fd(), &person, &is_given_up, none, || {}).unwrap();
        let counts_after = person.elapsed.borrow().as_millis();
        for (_, keys) in person.typed.take() {
            person.type_keys(terminal.as_fd(), keys).unwrap();
        }
        let unbuffered = Unbuffered::new(terminal.as_fd()).unwrap();
        let read = String::from_utf8(unbuffered.take_pending().unwrap()).unwrap();
        (early, counts_after, read)
    }

    #[test]
    fn keys_that_are_pending_when_a_question_is_drawn_do_not_answer_it() {
        for (pending, text) in [
            ("", ""),
            ("y\r", "y"),
            ("y", "y"),
            ("one\r\ntwo\r", "one\n\ntwo"),
            ("y\u{1b}[", "y"),
            ("\u{1b}[A\u{1b}OBy\u{1b}", "y"),
            ("\u{1b}[200~pasted\ry\r\u{1b}[201~", "pasted\ny"),
            ("grün", "grün"),
        ] {
            assert_eq!(
                ask(pending, &[]),
                (text.to_owned(), 300, String::new()),
                "{pending:?}"
            );
        }
    }

    #[test]
    fn keys_count_from_300_ms_after_the_question_is_drawn() {
        assert_eq!(
            ask("", &[(10, "y\r"), (249, "a")]),
            ("y\na".to_owned(), 300, String::new())
        );
        assert_eq!(
            ask("", &[(299, "y\r")]),
            ("y".to_owned(), 349, String::new())
        );
        assert_eq!(
            ask("", &[(300, "y\n")]),
            (String::new(), 300, "y\n".to_owned())
        );
    }

    #[test]
    fn a_pasted_text_that_begins_early_is_early_to_its_end() {
        let pasted = [(290, "one\r"), (310, "y\r"), (330, "y\r"), (381, "late\n")];
        assert_eq!(
            ask("", &pasted),
            ("one\ny\ny".to_owned(), 380, "late\n".to_owned())
        );
    }

    #[test]
    fn early_text_is_bounded() {
        let mut kept = Vec::new();
        keep(&mut kept, &vec![b'x'; MAX_KEPT]);
        keep(&mut kept, b"more");
        assert_eq!(kept.len(), MAX_KEPT);
    }

    #[test]
    fn early_keys_become_text_without_control_keys() {
        for (keys, text) in [
            (&b"yx\x7f"[..], "y"),
            (b"a\tb\x01\x00", "a b"),
            (b"\x1b[1;5Cy\n\n", "y"),
            (b"\xff\n", "\u{fffd}"),
        ] {
            assert_eq!(text_of(keys), text, "{keys:?}");
        }
    }
}
