//! Locks on files, so that only one process at a time does something.

use std::fs::{File, TryLockError};
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::private::private_options;

/// How long to wait before the next attempt to lock a file.
const PAUSE: Duration = Duration::from_millis(20);

/// An open file with an exclusive lock. Dropping it releases the lock.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Locks an open file, or returns `None` if it is locked already.
    pub fn try_lock(file: File) -> io::Result<Option<Self>> {
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Locks an open file or folder, or returns `None` if it is still locked after `patience`. Blocks the thread.
    pub fn wait(file: File, patience: Duration) -> io::Result<Option<Self>> {
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self(file))),
                Err(TryLockError::WouldBlock) if began.elapsed() < patience => {
                    std::thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that starts at this moment has it open until it runs its program.
        self.0.unlock().ok();
    }
}

impl Deref for FileLock {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for FileLock {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

/// Opens the file of a lock, and creates it if it is missing. Its content does not matter and stays as it is.
pub fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = private_options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path)
}

/// Returns whether a file is locked. A file that cannot be opened for writing is not.
pub fn is_locked(path: &Path) -> bool {
    let file = File::options().read(true).write(true).open(path);
    // The lock that this takes is released at once.
    file.is_ok_and(|file| matches!(FileLock::try_lock(file), Ok(None)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_holds_a_lock_and_the_next_one_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let open = || lock_file(&path).unwrap();
        assert!(!is_locked(&path), "it does not exist");
        let lock = FileLock::try_lock(open()).unwrap().unwrap();
        assert!(is_locked(&path));
        assert!(FileLock::try_lock(open()).unwrap().is_none());
        assert!(FileLock::wait(open(), Duration::ZERO).unwrap().is_none());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| FileLock::wait(open(), Duration::from_mins(1)));
            drop(lock);
            assert!(waiting.join().unwrap().unwrap().is_some());
        });
        assert!(!is_locked(&path));
    }

    #[test]
    fn a_lock_is_released_although_a_copy_of_the_file_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = FileLock::try_lock(lock_file(&path).unwrap())
            .unwrap()
            .unwrap();
        // A child has such a copy from its start until it runs its program.
        let copy = lock.try_clone().unwrap();
        drop(lock);
        assert!(!is_locked(&path));
        drop(copy);
    }

    #[test]
    fn the_file_of_a_lock_keeps_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, "7").unwrap();
        drop(FileLock::wait(lock_file(&path).unwrap(), Duration::ZERO).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"7");
    }
}
