//! The copy of the program that agents start.
//!
//! Configuration names a copy in the data folder, because its path must stay the same when Tenterhook is upgraded or
//! moved. A link next to the copy leads to Tenterhook itself.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tenterhook_shim::folders_file::FOLDERS_FILE;
use tenterhook_trust::{hex_digest, read_whole, write_private};

use crate::install_error::InstallError;
use crate::machine::{Machine, SHIM, is_program};

/// The state of the program that agents start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShimState {
    /// It is the one that belongs to the running program.
    Current,
    /// It differs from the one next to the running program.
    Outdated,
    /// It is there, but the running program has none to compare it with.
    Unknown,
    /// It cannot be executed.
    NotExecutable,
    /// It does not exist.
    Missing,
}

impl ShimState {
    /// Returns the word for the state in JSON output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Outdated => "outdated",
            Self::Unknown => "unknown",
            Self::NotExecutable => "not_executable",
            Self::Missing => "missing",
        }
    }
}

/// Returns the shim next to the running program, which may be a link.
fn source(machine: &Machine) -> Result<PathBuf, InstallError> {
    let real = fs::canonicalize(&machine.program).unwrap_or_else(|_| machine.program.clone());
    let candidates = [&real, &machine.program];
    let candidates = candidates.map(|program| program.with_file_name(SHIM));
    let found = candidates.into_iter().find(|path| is_program(path));
    let folder = real.parent().unwrap_or(Path::new("/")).to_owned();
    found.ok_or(InstallError::NoShim { folder })
}

/// Copies the shim and links the running program next to it. Returns whether anything changed.
pub(crate) fn install(machine: &Machine) -> Result<bool, InstallError> {
    let source = source(machine)?;
    let (bytes, _) = read_whole(&source).map_err(InstallError::read(&source))?;
    let copy = machine.shim();
    let is_same = is_program(&copy) && read_whole(&copy).is_ok_and(|(old, _)| old == bytes);
    if !is_same {
        write_private(&copy, &bytes, 0o755).map_err(InstallError::write(&copy))?;
    }
    let is_linked = link(machine)?;
    let folders = folders_path(machine);
    let text = machine.folders_file();
    let is_named = read_whole(&folders).is_ok_and(|(old, _)| old == text.as_bytes());
    if !is_named {
        write_private(&folders, text.as_bytes(), 0o600).map_err(InstallError::write(&folders))?;
    }
    Ok(!is_same || is_linked || !is_named)
}

/// Returns the file by which the shim finds the folders of the user.
fn folders_path(machine: &Machine) -> PathBuf {
    machine.shim().with_file_name(FOLDERS_FILE)
}

/// Returns the link to Tenterhook next to the shim.
fn link_path(machine: &Machine) -> PathBuf {
    machine.shim().with_file_name("tenterhook")
}

#[cfg(unix)]
fn link(machine: &Machine) -> Result<bool, InstallError> {
    let link = link_path(machine);
    if fs::read_link(&link).is_ok_and(|target| target == machine.program) {
        return Ok(false);
    }
    let replace = || -> io::Result<()> {
        let folder = link.parent().unwrap_or(Path::new("."));
        let unfinished = tempfile::Builder::new()
            .prefix(".tenterhook-")
            .tempdir_in(folder)?;
        let new = unfinished.path().join("tenterhook");
        std::os::unix::fs::symlink(&machine.program, &new)?;
        fs::rename(&new, &link)
    };
    replace().map_err(InstallError::write(&link))?;
    Ok(true)
}

#[cfg(not(unix))]
fn link(_machine: &Machine) -> Result<bool, InstallError> {
    Ok(false)
}

/// Removes the shim and the link. Returns whether there was a shim.
pub(crate) fn remove(machine: &Machine) -> Result<bool, InstallError> {
    let copy = machine.shim();
    let mut was_there = false;
    for path in [&copy, &link_path(machine), &folders_path(machine)] {
        match fs::remove_file(path) {
            Ok(()) => was_there = true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(InstallError::write(path)(error)),
        }
    }
    if let Some(folder) = copy.parent() {
        // It stays if it contains anything else.
        let _kept = fs::remove_dir(folder);
    }
    Ok(was_there)
}

/// Returns the state of the shim.
pub(crate) fn state(machine: &Machine) -> ShimState {
    let copy = machine.shim();
    if !copy.exists() {
        return ShimState::Missing;
    }
    if !is_program(&copy) {
        return ShimState::NotExecutable;
    }
    let digest = |path: &Path| read_whole(path).map(|(bytes, _)| hex_digest(&bytes)).ok();
    match (
        digest(&copy),
        source(machine).ok().and_then(|path| digest(&path)),
    ) {
        (Some(copy), Some(source)) if copy == source => ShimState::Current,
        (_, Some(_)) => ShimState::Outdated,
        (_, None) => ShimState::Unknown,
    }
}
