//! Registers descriptors with tokio's reactor.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a descriptor with the reactor.
#[expect(
    deprecated,
    reason = "its replacement is unsafe because some types can change their descriptor, but `OwnedFd` cannot"
)]
pub(super) fn register(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(descriptor, interest)
}
