//! A child that a fork server has forked. One socket is used to request it, to start its work and
//! to wait for its end.
//!
//! The server does not reap the child until this process has closed the socket. Until then, the id
//! of the child cannot be reused. So its group can be killed as safely as the group of a direct
//! child.

use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::io::{Errno, read};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::child::Child;
use super::guard::Entry;
use super::pipes::{filled, output};
use super::reactor::register;
use super::reaper;
use super::remote::Remote;
use crate::slots::Slot;

/// A child that was forked and waits for its work.
#[derive(Debug)]
pub(crate) struct Forked {
    pid: Pid,
    conn: AsyncFd<OwnedFd>,
}

impl Forked {
    /// Waits for the id of the child at the other end of `conn`.
    ///
    /// Fails if the server could not fork, or if the child has already ended.
    pub(crate) async fn accept(conn: UnixStream) -> io::Result<Self> {
        let conn = register(conn.into(), Interest::READABLE)?;
        let mut id = [0; 4];
        receive(&conn, &mut id).await?;
        let pid = Pid::from_raw(i32::from_le_bytes(id)).ok_or(io::ErrorKind::InvalidData)?;
        let forked = Self { pid, conn };
        match read(&forked.conn, &mut [0]) {
            Err(Errno::AGAIN) => Ok(forked),
            // The child has ended without doing any work.
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets the child run in `dir` with `PWD` set to `pwd`. Removes from `payload` what was already
    /// written.
    ///
    /// If this fails, the child has not run and never will.
    pub(crate) fn begin(
        self,
        dir: &Path,
        pwd: Option<&[u8]>,
        payload: &mut &[u8],
        slot: Slot,
    ) -> io::Result<Child> {
        let request = request(dir, pwd)?;
        let entry = Entry::reserve()?;
        entry.fill(self.pid)?;
        let mut rest = *payload;
        let (stdin, input) = if rest.is_empty() {
            (File::open("/dev/null")?.into(), None)
        } else {
            filled(&mut rest)?
        };
        let (stdout, stdout_end) = io::pipe()?;
        let (stderr, stderr_end) = io::pipe()?;
        // Everything that can fail comes before the request, so that a child never runs after an error.
        let outputs = [output(stdout)?, output(stderr)?];
        let remote = Remote::new(self.pid, self.conn);
        let ends = [stdin.as_fd(), stdout_end.as_fd(), stderr_end.as_fd()];
        let sent = send_with(remote.socket(), &request, &ends)?;
        if sent < request.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        *payload = rest;
        Ok(Child::forked(remote, input, outputs, entry, slot))
    }
}

/// Encodes where a child runs: the length of the rest, then the directory and `PWD`, if it is set.
fn request(dir: &Path, pwd: Option<&[u8]>) -> io::Result<Vec<u8>> {
    let dir = dir.as_os_str().as_encoded_bytes();
    let is_set: &[u8] = if pwd.is_some() { b"1" } else { b"" };
    let text = [dir, is_set, pwd.unwrap_or_default()].join(&b'\0');
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    Ok([&length.to_le_bytes()[..], &text].concat())
}

async fn receive(conn: &AsyncFd<OwnedFd>, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match read(conn.get_ref(), &mut *buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => buffer = buffer.get_mut(count..).unwrap_or_default(),
            Err(Errno::AGAIN) => conn.readable().await?.clear_ready(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Sends bytes and descriptors over a Unix socket, without waiting for room.
pub(crate) fn send_with(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    if !message.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent = sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut message,
        SendFlags::DONTWAIT | quiet(),
    );
    Ok(sent?)
}

/// Makes a send to a peer that is gone return an error instead of raising a signal.
#[cfg(not(target_vendor = "apple"))]
fn quiet() -> SendFlags {
    SendFlags::NOSIGNAL
}

/// Apple systems have no such flag. A send to a peer that is gone returns an error because Rust
/// programs ignore the signal.
#[cfg(target_vendor = "apple")]
fn quiet() -> SendFlags {
    SendFlags::empty()
}

/// Returns whether a child of this process has ended, without reaping it.
pub(crate) fn has_ended(process: &std::process::Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(
        waitid(WaitId::Pid(Pid::from_child(process)), options),
        Ok(None)
    )
}

/// Kills a process that leads its group, together with the group, and has it reaped.
pub(crate) fn abandon(process: &std::process::Child, entry: Option<Entry>) {
    let pid = Pid::from_child(process);
    // The process is reaped nowhere else, so the id of its group cannot have been reused.
    let _ignored = kill_process_group(pid, Signal::KILL);
    drop(entry);
    reaper::adopt(pid, None);
}
