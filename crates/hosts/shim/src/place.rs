//! The folder in which the daemon and the shim meet: the daemon's socket, its lock, and the lists of
//! host processes and sessions.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::environment::UserFolders;

/// The name of the folder.
const NAME: &str = "tenterhook";
/// The extension of the list of host processes.
const HOSTS: &str = "hosts";
/// The extension of the list of sessions.
const SESSIONS: &str = "sessions";

/// The paths that the daemon and the shim of a user share.
///
/// There is one daemon for each user and each set of folders ([`UserFolders`]), so that a shim with
/// another home folder never reaches a daemon with other hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonPlace {
    /// The folder. Only the user may enter it.
    pub folder: PathBuf,
    /// The daemon's socket.
    pub socket: PathBuf,
    /// The file that the daemon locks while it listens.
    pub lock: PathBuf,
    /// The file that a shim locks while it starts the daemon.
    pub start_lock: PathBuf,
    /// The list of host processes.
    pub hosts: PathBuf,
    /// The list of sessions and the folders in which they started.
    pub sessions: PathBuf,
}

impl DaemonPlace {
    /// Returns the place of the user who runs this process.
    ///
    /// # Errors
    /// Fails if the user has no home folder.
    pub fn of_user() -> io::Result<Self> {
        let folders = UserFolders::of_process()
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no home folder"))?;
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let runtime = runtime.filter(|path| path.is_absolute() && path.is_dir());
        let folder = match runtime {
            Some(runtime) => runtime.join(NAME),
            None => temporary_folder(),
        };
        Ok(Self::in_folder(folder, &folders))
    }

    /// Returns every list of host processes that daemons of this user may have written. `runtimes` are the
    /// values of `XDG_RUNTIME_DIR` that the daemons may have had. Folders of other users are left out.
    pub fn lists_of_hosts(runtimes: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
        let user = rustix::process::geteuid().as_raw();
        let usual = PathBuf::from(format!("/run/user/{user}"));
        let runtimes = runtimes.into_iter().filter(|path| path.is_absolute());
        let runtimes = runtimes.chain([usual]).map(|runtime| runtime.join(NAME));
        let folders = runtimes.chain([temporary_folder()]);
        let is_own = |folder: &PathBuf| fs::metadata(folder).is_ok_and(|it| it.uid() == user);
        let entries = folders
            .filter(is_own)
            .filter_map(|folder| fs::read_dir(folder).ok());
        entries
            .flat_map(Iterator::flatten)
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|it| it == HOSTS))
            .collect()
    }

    /// Returns the place in a folder for these folders of the user.
    pub fn in_folder(folder: PathBuf, folders: &UserFolders) -> Self {
        let key = key_of(folders);
        let file = |end: &str| folder.join(format!("{key:016x}.{end}"));
        Self {
            socket: file("sock"),
            lock: file("lock"),
            start_lock: file("start"),
            hosts: file(HOSTS),
            sessions: file(SESSIONS),
            folder,
        }
    }

    /// Returns the place of a daemon with another socket.
    #[must_use]
    pub fn with_socket(self, socket: PathBuf) -> Self {
        Self {
            lock: socket.with_extension("lock"),
            start_lock: socket.with_extension("start"),
            hosts: socket.with_extension(HOSTS),
            sessions: socket.with_extension(SESSIONS),
            folder: socket.parent().map(Path::to_owned).unwrap_or_default(),
            socket,
        }
    }

    /// Creates the folder if it does not exist, and checks that no one else can enter it.
    ///
    /// # Errors
    /// Fails if the folder cannot be created, or if another user could put a socket into it.
    pub fn prepare(&self) -> io::Result<()> {
        match fs::DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => self.check(),
        }
    }

    /// Checks that no one else can enter the folder.
    ///
    /// # Errors
    /// Fails if the folder does not exist, or if another user could put a socket into it.
    pub fn check(&self) -> io::Result<()> {
        let found = fs::symlink_metadata(&self.folder)?;
        let problem = if !found.is_dir() {
            "it is not a folder"
        } else if found.uid() != rustix::process::geteuid().as_raw() {
            "it belongs to another user"
        } else if found.mode() & 0o077 != 0 {
            "other users can enter it; run `chmod 700` on it"
        } else {
            return Ok(());
        };
        let folder = self.folder.display();
        let text = format!("cannot use the folder `{folder}`: {problem}");
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }
}

/// Returns the folder for systems without a folder for the files of running programs.
fn temporary_folder() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    temporary().join(format!("{NAME}-{user}"))
}

/// Returns the folder for temporary files. On Linux it does not depend on `TMPDIR`, which programs set
/// to different folders.
fn temporary() -> PathBuf {
    if cfg!(target_os = "macos") {
        std::env::temp_dir()
    } else {
        PathBuf::from("/tmp")
    }
}

/// Returns a number that differs between sets of folders (FNV-1a).
fn key_of(folders: &UserFolders) -> u64 {
    let paths = [
        &folders.home,
        &folders.config,
        &folders.data,
        &folders.state,
    ];
    let bytes = paths
        .iter()
        .flat_map(|path| path.as_os_str().as_bytes().iter().chain(&[0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn folders(home: &str) -> UserFolders {
        UserFolders {
            home: home.into(),
            config: "/c".into(),
            data: "/d".into(),
            state: "/s".into(),
        }
    }

    #[test]
    fn another_home_folder_has_another_daemon() {
        let place = |home| DaemonPlace::in_folder("/run/user/7/tenterhook".into(), &folders(home));
        assert_eq!(place("/home/ada"), place("/home/ada"));
        assert_ne!(place("/home/ada").socket, place("/home/bob").socket);
    }

    #[test]
    fn a_folder_that_others_can_enter_or_replace_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| DaemonPlace::in_folder(base.path().join(name), &folders("/h"));
        at("own").prepare().unwrap();
        let mode = fs::metadata(base.path().join("own")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        at("own").prepare().unwrap();

        fs::set_permissions(base.path().join("own"), fs::Permissions::from_mode(0o750)).unwrap();
        assert!(at("own").prepare().is_err());
        fs::set_permissions(base.path().join("own"), fs::Permissions::from_mode(0o700)).unwrap();
        symlink(base.path().join("own"), base.path().join("link")).unwrap();
        assert!(at("link").prepare().is_err());
        fs::write(base.path().join("file"), "").unwrap();
        assert!(at("file").prepare().is_err());
        assert!(at("missing/deep").prepare().is_err());
    }
}
