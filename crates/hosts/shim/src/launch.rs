//! Starts the daemon if none runs.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{FlockOperation, flock};

use crate::environment;
use crate::place::DaemonPlace;

/// The name of the program that contains the daemon.
const PROGRAM: &str = "tenterhook";
/// How often one call may start a daemon.
const MAX_STARTS: usize = 3;

/// Starts the daemon for one call.
pub(crate) struct Launcher<'a> {
    /// The folder that the shim works in, whose programs are not trusted.
    directory: &'a Path,
    /// Held while the daemon starts, so that many shims start one daemon.
    lock: Option<File>,
    child: Option<Child>,
    starts: usize,
}

impl<'a> Launcher<'a> {
    pub(crate) fn new(directory: &'a Path) -> Self {
        Self {
            directory,
            lock: None,
            child: None,
            starts: 0,
        }
    }

    /// Starts the daemon, unless this call or another shim has already started it. Returns before the
    /// daemon listens.
    pub(crate) fn start(&mut self, place: &DaemonPlace) -> Result<(), String> {
        if let Some(child) = &mut self.child {
            match child.try_wait() {
                Ok(None) => return Ok(()),
                // The daemon ends without an error if another one has the lock.
                Ok(Some(status)) if status.success() => self.child = None,
                Ok(Some(status)) => {
                    return Err(format!(
                        "its daemon ended with {status}; run `tenterhook daemon --foreground` to see why"
                    ));
                }
                Err(error) => return Err(format!("its daemon cannot be watched: {error}")),
            }
        }
        place.prepare().map_err(|error| error.to_string())?;
        if self.lock.is_none() {
            let Some(lock) = try_lock(&place.start_lock)? else {
                return Ok(());
            };
            self.lock = Some(lock);
        }
        if self.starts == MAX_STARTS {
            return Err(
                "its daemon does not listen; run `tenterhook daemon --foreground` to see why"
                    .to_owned(),
            );
        }
        self.starts += 1;
        let program = program().ok_or_else(|| {
            format!("the program `{PROGRAM}` was not found; run `tenterhook install` again")
        })?;
        let child = spawn(&program, self.directory, place)
            .map_err(|error| format!("cannot start `{}`: {error}", program.display()))?;
        self.child = Some(child);
        Ok(())
    }
}

/// Locks the file, unless another shim has locked it.
fn try_lock(path: &Path) -> Result<Option<File>, String> {
    let failed = |error: std::io::Error| format!("cannot lock `{}`: {error}", path.display());
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    let file = options.open(path).map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(failed(error.into())),
    }
}

/// Starts the daemon. It must outlive the shim, so it does not belong to a guarded process group.
fn spawn(program: &Path, directory: &Path, place: &DaemonPlace) -> std::io::Result<Child> {
    Command::new(program)
        .args(["daemon", "--foreground", "--detach", "--socket"])
        .arg(&place.socket)
        .env_clear()
        .envs(environment::of_daemon(directory))
        // The daemon must not keep a project's folder busy.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Returns the program that contains the daemon: next to the path by which the shim was started, or next to the shim's
/// own file. `PATH` is not searched, because a program there can be of any version.
fn program() -> Option<PathBuf> {
    let named = std::env::args_os().next().map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute());
    let own = std::env::current_exe().ok();
    let mut programs = named
        .into_iter()
        .chain(own)
        .map(|path| path.with_file_name(PROGRAM));
    programs.find(|path| path.is_file())
}
