//! Lines from a terminal that edits them itself.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::io::Errno;

use super::early::is_readable;

/// How long one wait for a line takes.
const WAIT: Duration = Duration::from_millis(50);

/// Reads a line without its end, or `None` at the end of the input. Stops with what it has when `goes_on`, which is called
/// again and again, says no.
pub(super) fn read_line(
    terminal: BorrowedFd<'_>,
    mut goes_on: impl FnMut() -> bool,
) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    // A terminal gives at most one line at a time, so nothing is read that belongs to the next one.
    let mut buffer = [0; 4096];
    while goes_on() {
        if !is_readable(terminal, WAIT)? {
            continue;
        }
        match rustix::io::read(terminal, &mut buffer) {
            Ok(0) if line.is_empty() => return Ok(None),
            Ok(0) => break,
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
