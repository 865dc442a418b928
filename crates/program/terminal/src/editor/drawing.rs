//! Shows what a script draws, and passes the keys that are pressed meanwhile to the script.

use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crossterm::terminal::{self, disable_raw_mode, enable_raw_mode};
use nix::sys::signal::{SigSet, Signal};
use rustix::io::Errno;
use rustix::process::{Pid, getpgrp};
use rustix::termios::{
    OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr, tcsetpgrp,
};
use tenterhook_agent::frontend::{ScreenSize, ScriptDrawing};

use super::early::{self, is_readable};
use super::key_sequence::{KeySequences, is_interrupt};
use crate::output::canvas::Canvas;
use crate::output::{self, scrollback};

/// The shortest time between two frames.
const FRAME_TIME: Duration = Duration::from_millis(33);

/// How long one wait for keys takes. Frames and new sizes are noticed after it.
const WAIT: Duration = Duration::from_millis(10);

/// The character that disables a key of the terminal.
const DISABLED: u8 = if cfg!(any(target_os = "linux", target_os = "android")) {
    0
} else {
    0xff
};

/// The terminal while a script draws. Dropping it removes the drawing and restores the terminal.
struct DrawnTerminal {
    canvas: Canvas,
    size: ScreenSize,
    /// The settings of the terminal before other programs got it.
    released: Option<Termios>,
}

impl DrawnTerminal {
    fn open() -> io::Result<Self> {
        let size = screen_size()?;
        enable_raw_mode()?;
        let this = Self {
            canvas: Canvas::new(size, output::is_colourful_terminal()),
            size,
            released: None,
        };
        write(Canvas::begin())?;
        Ok(this)
    }

    /// Draws the latest frame, if it is not drawn yet. Returns whether there was one.
    fn draw(&mut self, drawing: &ScriptDrawing) -> io::Result<bool> {
        let Some(frame) = drawing.take_frame() else {
            return Ok(false);
        };
        write(&self.canvas.draw(&frame))?;
        Ok(true)
    }

    /// Notices a new size of the screen. The script then draws again.
    fn follow_size(&mut self, drawing: &ScriptDrawing) -> io::Result<()> {
        let size = screen_size()?;
        if size != self.size {
            self.size = size;
            write(&self.canvas.resize(size))?;
            drawing.set_size(size);
        }
        Ok(())
    }

    /// Prints output that has arrived above the drawing. A drawing that fills the screen leaves no room for it.
    fn print_output(&mut self) -> io::Result<()> {
        if self.canvas.is_screen() {
            return Ok(());
        }
        let lines = scrollback::take_lines();
        if lines.is_empty() {
            return Ok(());
        }
        write(&self.canvas.print_above(&lines))
    }

    /// Removes the drawing, and gives the terminal to a process group of the script.
    fn release(&mut self, group: u32) -> io::Result<()> {
        let group = i32::try_from(group).ok().and_then(Pid::from_raw);
        let group = group.ok_or(io::ErrorKind::InvalidInput)?;
        write(&self.canvas.end())?;
        disable_raw_mode()?;
        let stdin = io::stdin();
        let settings = tcgetattr(&stdin)?;
        let mut lent = settings.clone();
        // A program that Ctrl-Z stops could not be continued, because no shell is there to do it.
        lent.special_codes[SpecialCodeIndex::VSUSP] = DISABLED;
        self.released = Some(settings);
        tcsetattr(&stdin, OptionalActions::Now, &lent)?;
        tcsetpgrp(&stdin, group)?;
        Ok(())
    }

    /// Takes the terminal back, and restores its settings.
    fn take_back(&mut self) -> io::Result<()> {
        if let Some(settings) = self.released.take() {
            // This process is in the background now, so the system would stop it.
            let mut background = SigSet::empty();
            background.add(Signal::SIGTTOU);
            background.thread_block()?;
            let stdin = io::stdin();
            let taken = tcsetpgrp(&stdin, getpgrp())
                .and_then(|()| tcsetattr(&stdin, OptionalActions::Now, &settings));
            background.thread_unblock()?;
            taken?;
        }
        Ok(())
    }

    /// Lets the programs of a script use the terminal until the script takes it back.
    fn lend(&mut self, drawing: &ScriptDrawing, is_over: impl Fn() -> bool) -> io::Result<()> {
        let Some(group) = drawing.wanted_by() else {
            return Ok(());
        };
        self.release(group)?;
        drawing.set_held_by(Some(group));
        while !is_over() && drawing.wanted_by().is_some() {
            sleep(WAIT);
        }
        self.take_back()?;
        enable_raw_mode()?;
        write(Canvas::begin())?;
        drawing.set_held_by(None);
        Ok(())
    }
}

impl Drop for DrawnTerminal {
    fn drop(&mut self) {
        output::keep(self.take_back());
        let ended = write(&self.canvas.end());
        output::keep(ended.and(disable_raw_mode()));
    }
}

/// Why a drawing ended.
pub(super) enum DrawingEnd {
    /// The script closed it, no one waits for it any more, or the terminal is gone.
    Closed,
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// Shows a drawing until the script closes it, no one waits for it any more, or the user interrupts it.
///
/// Keys that are pressed before the first frame can be read are passed to `keep_early` as text.
pub(super) fn show(
    drawing: &ScriptDrawing,
    is_given_up: &AtomicBool,
    keep_early: impl Fn(&str),
) -> io::Result<DrawingEnd> {
    let is_over = || is_given_up.load(Ordering::SeqCst) || drawing.is_closed();
    let stdin = io::stdin();
    let mut shown = DrawnTerminal::open()?;
    drawing.set_size(shown.size);
    let mut drawn = Ok(false);
    let early = early::draw_question(
        stdin.as_fd(),
        &early::SystemClock,
        is_given_up,
        early::take_queued,
        || {
            while !is_over() {
                drawn = shown.draw(drawing);
                if !matches!(drawn, Ok(false)) || drawing.wanted_by().is_some() {
                    break;
                }
                sleep(WAIT);
            }
        },
    );
    keep_early(&early?);
    drawn?;
    let mut keys = KeySequences::default();
    let mut drawn_at = Instant::now();
    while !is_over() {
        shown.lend(drawing, is_over)?;
        shown.print_output()?;
        shown.follow_size(drawing)?;
        if drawn_at.elapsed() >= FRAME_TIME && shown.draw(drawing)? {
            drawn_at = Instant::now();
        }
        let Some(pressed) = read_keys(stdin.as_fd(), &mut keys)? else {
            return Ok(DrawingEnd::Closed);
        };
        if pressed.iter().any(|key| is_interrupt(key)) {
            return Ok(DrawingEnd::Interrupted);
        }
        if !pressed.is_empty() {
            drawing.press(pressed);
        }
    }
    Ok(DrawingEnd::Closed)
}

/// Waits a moment for keys. Returns `None` if the terminal is gone.
fn read_keys(terminal: BorrowedFd<'_>, keys: &mut KeySequences) -> io::Result<Option<Vec<String>>> {
    let mut pressed = Vec::new();
    if is_readable(terminal, WAIT)? {
        let mut buffer = [0; 4096];
        match rustix::io::read(terminal, &mut buffer) {
            Ok(0) => return Ok(None),
            Ok(count) => {
                let bytes = buffer.get(..count).unwrap_or_default();
                pressed = keys.push(bytes, Instant::now());
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    pressed.extend(keys.take_late(Instant::now()));
    Ok(Some(pressed))
}

/// Writes sequences. Unlike other output, they are not changed if the terminal has no colours.
fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn screen_size() -> io::Result<ScreenSize> {
    let (columns, rows) = terminal::size()?;
    // Some terminals report 0 if they do not know their size.
    Ok(match (columns, rows) {
        (0, _) | (_, 0) => ScreenSize {
            columns: 80,
            rows: 24,
        },
        (columns, rows) => ScreenSize { columns, rows },
    })
}
