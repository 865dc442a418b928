//! A child that a fork server has forked: asked for, told what to run, and waited for over one socket.
//!
//! The server reaps the child when this process has closed the socket, and not before. Until then the id of
//! the child belongs to nobody else, so its group can be killed as safely as that of an own child.

use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::task::{Context, Poll, ready};

use rustix::io::{Errno, read};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::guard::Entry;
use super::unix::{Child, filled, output, register};
use super::{exit, reaper};
use crate::End;
use crate::slots::Slot;

/// The size of a message about the end of a child: what it is about, and a number.
const END: usize = 5;

/// A child that was forked and waits for what it shall do.
#[derive(Debug)]
pub(crate) struct Forked {
    pid: Pid,
    conn: AsyncFd<OwnedFd>,
}

impl Forked {
    /// Waits for the id of the child at the other end of `conn`.
    ///
    /// Fails where the server could not fork, or the child has ended already.
    pub(crate) async fn accept(conn: UnixStream) -> io::Result<Self> {
        let conn = register(conn.into(), Interest::READABLE)?;
        let mut id = [0; 4];
        receive(&conn, &mut id).await?;
        let pid = Pid::from_raw(i32::from_le_bytes(id)).ok_or(io::ErrorKind::InvalidData)?;
        let forked = Self { pid, conn };
        match read(&forked.conn, &mut [0]) {
            Err(Errno::AGAIN) => Ok(forked),
            // It has ended without work.
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets the child run in `dir` with `PWD` set to `pwd`, and takes from `payload` what was written already.
    ///
    /// After an error the child has not begun and never will.
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
        // Whatever can fail comes before the request.
        let outputs = [output(stdout)?, output(stderr)?];
        let remote = Remote {
            pid: self.pid,
            watch: exit::open(self.pid),
            conn: self.conn,
            message: Vec::with_capacity(END),
        };
        let ends = [stdin.as_fd(), stdout_end.as_fd(), stderr_end.as_fd()];
        let sent = send_with(remote.conn.get_ref(), &request, &ends)?;
        if sent < request.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        *payload = rest;
        Ok(Child::forked(remote, input, outputs, entry, slot))
    }
}

/// Writes where a child runs: the length of what follows, then the directory and `PWD`, if there is one.
fn request(dir: &Path, pwd: Option<&[u8]>) -> io::Result<Vec<u8>> {
    let dir = dir.as_os_str().as_encoded_bytes();
    let is_set: &[u8] = if pwd.is_some() { b"1" } else { b"" };
    let text = [dir, is_set, pwd.unwrap_or_default()].join(&b'\0');
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    Ok([&length.to_le_bytes()[..], &text].concat())
}

/// The process that reaps a forked child, as far as this one knows it.
#[derive(Debug)]
pub(crate) struct Remote {
    pid: Pid,
    conn: AsyncFd<OwnedFd>,
    /// Tells whether the child lives when its parent is gone, where the system offers that.
    watch: Option<OwnedFd>,
    message: Vec<u8>,
}

impl Remote {
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits for the end of the child. Fails when the server is gone, and with it the exit status.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<End>> {
        loop {
            if let Some(end) = self.look()? {
                return Poll::Ready(Ok(end));
            }
            ready!(self.conn.poll_read_ready(cx))?.clear_ready();
            if let Some(end) = self.look()? {
                return Poll::Ready(Ok(end));
            }
        }
    }

    /// Reads what the server has said.
    pub(super) fn look(&mut self) -> io::Result<Option<End>> {
        while self.message.len() < END {
            let mut part = [0; END];
            let room = part.get_mut(self.message.len()..).unwrap_or_default();
            match read(&self.conn, &mut *room) {
                Ok(0) => return Err(io::Error::other("the fork server has ended")),
                Ok(count) => self.message.extend(room.iter().take(count)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let (kind, number) = self.message.split_first().unwrap_or((&0, &[]));
        let number = i32::from_le_bytes(number.try_into().map_err(io::Error::other)?);
        match kind {
            b'E' => Ok(Some(End::Exited(number))),
            b'S' => Ok(Some(End::Signaled(number))),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Tells whether the id of the child may belong to somebody else by now: the server, which kept the dead
    /// child from being reaped, is gone, and the child as well.
    pub(super) fn is_id_free(&self) -> bool {
        self.is_server_gone() && self.watch.as_ref().is_none_or(exit::has_ended)
    }

    fn is_server_gone(&self) -> bool {
        use rustix::net::{RecvFlags, recv};
        let peeked = recv(
            self.conn.get_ref(),
            &mut [0],
            RecvFlags::PEEK | RecvFlags::DONTWAIT,
        );
        matches!(peeked, Ok((_, 0)))
    }
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

/// A peer that is gone is an error and not a signal.
#[cfg(not(target_vendor = "apple"))]
fn quiet() -> SendFlags {
    SendFlags::NOSIGNAL
}

/// A peer that is gone is an error where the process ignores the signal, as Rust programs do.
#[cfg(target_vendor = "apple")]
fn quiet() -> SendFlags {
    SendFlags::empty()
}

/// Tells whether a child of this process has ended, without reaping it.
pub(crate) fn has_ended(process: &std::process::Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(
        waitid(WaitId::Pid(Pid::from_child(process)), options),
        Ok(None)
    )
}

/// Kills a process that leads its group, with the group, and has it reaped.
pub(crate) fn abandon(process: &std::process::Child, entry: Option<Entry>) {
    let pid = Pid::from_child(process);
    // It is reaped nowhere else, so the group is still its own.
    let _ignored = kill_process_group(pid, Signal::KILL);
    drop(entry);
    reaper::adopt(pid, None);
}
