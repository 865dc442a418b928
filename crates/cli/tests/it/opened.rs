//! Counts how often files of some folders are opened.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

/// A watch for files that are opened.
pub(crate) struct Opened(OwnedFd);

impl Opened {
    /// Starts to watch the files directly in these folders.
    pub(crate) fn watch(folders: &[&Path]) -> Self {
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        for folder in folders {
            inotify::add_watch(&watch, *folder, WatchFlags::OPEN).unwrap();
        }
        Self(watch)
    }

    /// Returns how many files were opened. Folders do not count.
    pub(crate) fn count(self) -> usize {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let mut opened = 0;
        loop {
            match reader.next() {
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => {
                    panic!("too many files were opened to count them")
                }
                Ok(event) if event.events().contains(ReadFlags::ISDIR) => {}
                Ok(_) => opened += 1,
                Err(rustix::io::Errno::WOULDBLOCK) => return opened,
                Err(error) => panic!("{error}"),
            }
        }
    }
}
