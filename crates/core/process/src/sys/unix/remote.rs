//! Learns over a socket how a forked child ended. The fork server, which reaps the child, reports it.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};

use rustix::io::{Errno, read};
use rustix::net::{RecvFlags, recv};
use rustix::process::Pid;
use tokio::io::unix::AsyncFd;

use super::kernel::{has_process_ended, open_process};
use crate::finished::End;

/// The size of a message about the end of a child: one byte for the kind, and a number.
const END: usize = 5;

/// The connection to the fork server that reaps a child.
#[derive(Debug)]
pub(super) struct Remote {
    pid: Pid,
    conn: AsyncFd<OwnedFd>,
    /// A descriptor that shows whether the child is alive when its parent is gone, if the system
    /// has such descriptors.
    watch: Option<OwnedFd>,
    message: Vec<u8>,
}

impl Remote {
    /// Watches the child `pid`. The server reports its end over `conn`.
    pub(super) fn new(pid: Pid, conn: AsyncFd<OwnedFd>) -> Self {
        Self {
            pid,
            watch: open_process(pid),
            conn,
            message: Vec::with_capacity(END),
        }
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the socket to the server.
    pub(super) fn socket(&self) -> &OwnedFd {
        self.conn.get_ref()
    }

    /// Waits for the end of the child. Fails if the server is gone, because only the server knows
    /// the exit status.
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

    /// Reads the server's report, if it has arrived.
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

    /// Returns whether the id of the child may belong to another process by now. This is possible
    /// only if the child has ended and the server, which did not reap it yet, has ended too.
    pub(super) fn is_id_free(&self) -> bool {
        self.is_server_gone() && self.watch.as_ref().is_none_or(has_process_ended)
    }

    fn is_server_gone(&self) -> bool {
        let peeked = recv(
            self.conn.get_ref(),
            &mut [0],
            RecvFlags::PEEK | RecvFlags::DONTWAIT,
        );
        matches!(peeked, Ok((_, 0)))
    }
}
