//! Makes the pipes between this process and a child.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::io::{ioctl_fionbio, write};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::kernel::widen;
use super::reactor::register;

/// How many bytes are written to the pipe before the child is started. More would only delay the start.
const PREWRITTEN: usize = 64 << 10;

/// Makes the standard input of a child that is about to start, with as much of the payload in it as
/// possible. A child that finds its input does not sleep in its first read. Also returns the parent's
/// end of the pipe, unless the whole payload is already in the pipe.
pub(super) fn input(payload: &mut &[u8]) -> io::Result<(Stdio, Option<OwnedFd>)> {
    if payload.is_empty() {
        return Ok((Stdio::null(), None));
    }
    let (reader, writer) = io::pipe()?;
    let writer = OwnedFd::from(writer);
    widen(&writer, payload.len());
    ioctl_fionbio(&writer, true)?;
    // The reader is open, so the write can fail only if the pipe is full. The rest is written while
    // the child runs.
    let first = payload.get(..PREWRITTEN).unwrap_or(payload);
    let written = write(&writer, first).unwrap_or_default();
    *payload = payload.get(written..).unwrap_or_default();
    let rest = (!payload.is_empty()).then_some(writer);
    Ok((reader.into(), rest))
}

/// Registers the parent's end of an output pipe with the reactor.
pub(super) fn output(pipe: impl Into<OwnedFd>) -> io::Result<AsyncFd<OwnedFd>> {
    let pipe = pipe.into();
    ioctl_fionbio(&pipe, true)?;
    register(pipe, Interest::READABLE)
}
