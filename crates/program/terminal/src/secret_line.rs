//! Asks for a line at the terminal that is not shown, such as a passphrase.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use thiserror::Error;

/// The terminal that controls this process, even if its stdin is something else.
const TERMINAL: &str = "/dev/tty";
/// The largest number of bytes of an answer.
const MAX_BYTES: usize = 1_024;

/// Why no line was entered.
#[derive(Debug, Error)]
pub enum SecretLineError {
    /// The process has no terminal.
    #[error("this process has no terminal, so no one can be asked for a passphrase")]
    NoTerminal,
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// Ctrl-D, or the end of the terminal.
    #[error("nothing was entered")]
    Ended,
    /// The line is too long.
    #[error("the line has more than {MAX_BYTES} bytes")]
    TooLong,
    /// The terminal cannot be read, or the line is not UTF-8.
    #[error("cannot read the terminal")]
    Read(#[from] io::Error),
}

/// Asks a question at the terminal, and returns the line that the person enters. It is not shown.
///
/// # Errors
/// Fails without a terminal, and if the person interrupts or enters nothing.
pub fn ask_secret(question: &str) -> Result<String, SecretLineError> {
    let opened = OpenOptions::new().read(true).write(true).open(TERMINAL);
    let mut terminal = opened.map_err(|_| SecretLineError::NoTerminal)?;
    let hidden = Hidden::new(terminal.try_clone()?)?;
    write!(terminal, "{question}")?;
    terminal.flush()?;
    let entered = read_line(&mut terminal);
    drop(hidden);
    // The terminal did not show the end of the line either.
    writeln!(terminal)?;
    let bytes = entered?;
    String::from_utf8(bytes).map_err(|error| SecretLineError::Read(io::Error::other(error)))
}

/// Reads keys until the end of the line.
fn read_line(terminal: &mut File) -> Result<Vec<u8>, SecretLineError> {
    let mut line = Vec::new();
    let mut key = [0];
    loop {
        match terminal.read(&mut key) {
            Ok(0) => return Err(SecretLineError::Ended),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        }
        match key {
            [b'\r' | b'\n'] => return Ok(line),
            [CTRL_C] => return Err(SecretLineError::Interrupted),
            [CTRL_D] if line.is_empty() => return Err(SecretLineError::Ended),
            [CTRL_U] => line.clear(),
            [BACKSPACE | DELETE] => {
                let is_continued = |byte: Option<u8>| byte.is_some_and(|it| it & 0xc0 == 0x80);
                while is_continued(line.pop()) {}
            }
            [_] if line.len() == MAX_BYTES => return Err(SecretLineError::TooLong),
            [byte] => line.push(byte),
        }
    }
}

const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const CTRL_U: u8 = 0x15;
const DELETE: u8 = 0x7f;

/// A terminal that does not show what is typed. Dropping it restores the terminal.
struct Hidden {
    terminal: File,
    before: Termios,
}

impl Hidden {
    fn new(terminal: File) -> io::Result<Self> {
        let before = tcgetattr(terminal.as_fd())?;
        let mut changed = before.clone();
        // Keys are read one by one, so that Ctrl-C is a key too: a signal could end the program before the terminal
        // shows again what is typed.
        changed.local_modes -=
            LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ISIG;
        // Keys that were pressed before the question do not answer it.
        tcsetattr(terminal.as_fd(), OptionalActions::Flush, &changed)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        tcsetattr(self.terminal.as_fd(), OptionalActions::Now, &self.before).ok();
    }
}
