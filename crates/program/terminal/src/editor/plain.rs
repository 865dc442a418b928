//! Reads lines from a terminal that edits them itself.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::io::Errno;

use super::early::is_readable;

/// The longest single wait for a line.
const WAIT: Duration = Duration::from_millis(50);

/// Reads a line without its end, or returns `None` at the end of the input. Calls `goes_on` regularly, and stops with
/// the partial line when that returns `false`.
pub(super) fn read_line(
    terminal: BorrowedFd<'_>,
    mut goes_on: impl FnMut() -> bool,
) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    // A terminal returns at most one line at a time, so no part of the next line is read.
    let mut buffer = [0; 4096];
    while goes_on() {
        if !is_readable(terminal, WAIT)? {
            continue;
        }
        match rustix::io::read(terminal, &mut buffer) {
            // After the terminal is gone, a read may also fail.
            Ok(0) | Err(Errno::IO) if line.is_empty() => return Ok(None),
            Ok(0) | Err(Errno::IO) => break,
            Ok(count) => line.extend(buffer.iter().take(count)),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        if line.ends_with(b"\n") {
            line.pop();
            break;
        }
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}
