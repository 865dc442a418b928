//! The programs that agents run: the shim, and `tenterhook`, which the shim starts as the daemon.
//!
//! Both are copies in the data folder, because the folder from which Tenterhook was installed can be emptied at any time,
//! for example by `cargo clean`. A hard link would be cheaper, but some programs overwrite a file in place, and that
//! would change what agents run.
//!
//! ```text
//! bin/tenterhook-shim → current/tenterhook-shim    the path in the configuration of the agents
//! bin/tenterhook      → current/tenterhook         what the shim starts
//! bin/current         → versions/0.1.0-x7Qd2k      replaced in one step by an upgrade
//! ```

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use tenterhook_files::{make_private, read_whole, readable_entries, write_private};
use tenterhook_shim::folders_file::FOLDERS_FILE;

use crate::install_error::InstallError;
use crate::machine::{Machine, PROGRAM, SHIM, is_program};
use crate::reported_version::reported_version;

/// The link to the folder of the version that agents run.
const CURRENT: &str = "current";
/// The folder with a folder for each version.
const VERSIONS: &str = "versions";
/// The beginning of the name of a folder that is not complete.
const UNFINISHED: &str = ".new-";
/// How many bytes of two files are compared at once.
const CHUNK: u64 = 256 << 10;

/// The programs of the running version.
#[derive(Debug)]
struct SourcePrograms {
    program: PathBuf,
    /// The small program next to it. Without one, `tenterhook` does its work.
    shim: Option<PathBuf>,
}

impl SourcePrograms {
    fn find(machine: &Machine) -> Self {
        let named = &machine.program;
        let program = fs::canonicalize(named).unwrap_or_else(|_| named.clone());
        let candidates = [&program, named].map(|program| program.with_file_name(SHIM));
        // A build of `tenterhook` alone leaves the shim of an earlier build next to it.
        let belongs = |path: &PathBuf| {
            let expected = tenterhook_shim::version_line();
            is_program(path) && reported_version(path, SHIM).is_ok_and(|line| line == expected)
        };
        Self {
            shim: candidates.into_iter().find(belongs),
            program,
        }
    }

    /// Returns whether agents run programs with the same bytes.
    fn are_installed(&self, machine: &Machine) -> bool {
        let shim = self.shim.as_ref().unwrap_or(&self.program);
        let is_same = |one, other: &Path| has_same_bytes(one, other).unwrap_or(false);
        is_same(shim, &machine.shim()) && is_same(&self.program, &machine.installed_program())
    }
}

/// Copies the programs and leads the agents to the copies, unless they run these programs already. Returns whether
/// anything changed.
///
/// If this process is killed in between, the old version stays in force, because the links change last and in one step.
pub(crate) fn install(machine: &Machine) -> Result<bool, InstallError> {
    let bin = machine.bin();
    let versions = bin.join(VERSIONS);
    make_private(&versions).map_err(InstallError::write(&versions))?;
    remove_versions(&versions, |name| !is_unfinished(name));
    let mut is_changed = write_folders(machine)?;
    let source = SourcePrograms::find(machine);
    if !source.are_installed(machine) {
        let current = bin.join(CURRENT);
        let old = fs::read_link(&current).ok();
        let new = copy_version(&source, &versions)?;
        switch_link(&current, &Path::new(VERSIONS).join(&new), &versions)?;
        // A host may be starting a program of the version before.
        let old = old.as_deref().and_then(Path::file_name);
        remove_versions(&versions, |name| name == new || Some(name) == old);
        is_changed = true;
    }
    for name in [PROGRAM, SHIM] {
        let target = Path::new(CURRENT).join(name);
        is_changed |= switch_link(&bin.join(name), &target, &versions)?;
    }
    Ok(is_changed)
}

/// Returns whether agents run these programs.
pub(crate) fn are_current(machine: &Machine) -> bool {
    SourcePrograms::find(machine).are_installed(machine)
}

/// Returns whether `tenterhook` also does the work of the shim, because it was installed without the small program.
pub(crate) fn has_small_shim(machine: &Machine) -> bool {
    let size = |path: &Path| fs::metadata(path).map(|file| file.len()).ok();
    size(&machine.shim()) != size(&machine.installed_program())
}

/// Copies the programs into a folder of their own, and checks that the copies start. Returns the name of the folder.
fn copy_version(source: &SourcePrograms, versions: &Path) -> Result<OsString, InstallError> {
    let folder = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(versions)
        .map_err(InstallError::write(versions))?;
    let (program, shim) = (folder.path().join(PROGRAM), folder.path().join(SHIM));
    copy_program(&source.program, &program)?;
    match &source.shim {
        Some(source) => copy_program(source, &shim)?,
        // The name of the file tells the program that it is the shim, whatever a host calls it.
        None => fs::hard_link(&program, &shim).or_else(|_| copy_program(&program, &shim))?,
    }
    for (path, name) in [(&program, PROGRAM), (&shim, SHIM)] {
        reported_version(path, name).map_err(|problem| InstallError::UnusableCopy {
            program: source.program.clone(),
            problem,
        })?;
    }
    let random = folder.path().file_name().unwrap_or_default();
    let random = random.to_string_lossy().replacen(UNFINISHED, "", 1);
    let name = format!("{}-{random}", env!("CARGO_PKG_VERSION"));
    let path = versions.join(&name);
    fs::rename(folder.keep(), &path).map_err(InstallError::write(&path))?;
    Ok(name.into())
}

fn copy_program(from: &Path, to: &Path) -> Result<(), InstallError> {
    // It shares the blocks of the file if the file system can do that.
    fs::copy(from, to).map_err(|source| InstallError::Copy {
        from: from.to_owned(),
        to: to.to_owned(),
        source,
    })?;
    let finish = || -> io::Result<()> {
        let file = File::open(to)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            file.set_permissions(fs::Permissions::from_mode(0o755))?;
        }
        file.sync_data()
    };
    finish().map_err(InstallError::write(to))
}

/// Lets a link lead to a target in one step. Returns whether it changed.
fn switch_link(link: &Path, target: &Path, versions: &Path) -> Result<bool, InstallError> {
    if fs::read_link(link).is_ok_and(|old| old == target) {
        return Ok(false);
    }
    let switch = || -> io::Result<()> {
        let folder = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempdir_in(versions)?;
        let new = folder.path().join(CURRENT);
        symlink(target, &new)?;
        fs::rename(&new, link)
    };
    switch().map_err(InstallError::write(link))?;
    Ok(true)
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn symlink(_target: &Path, _link: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Writes the file by which the shim finds the folders of the user. Returns whether it changed.
fn write_folders(machine: &Machine) -> Result<bool, InstallError> {
    let path = machine.bin().join(FOLDERS_FILE);
    let text = machine.folders_file();
    if read_whole(&path).is_ok_and(|(old, _)| old == text.as_bytes()) {
        return Ok(false);
    }
    write_private(&path, text.as_bytes(), 0o600).map_err(InstallError::write(&path))?;
    Ok(true)
}

fn is_unfinished(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with(UNFINISHED)
}

/// Removes all folders of versions, except some. One that stays is only wasted space.
fn remove_versions(versions: &Path, is_kept: impl Fn(&OsStr) -> bool) {
    for entry in readable_entries(versions) {
        if !is_kept(&entry.file_name()) {
            let _gone = fs::remove_dir_all(entry.path());
        }
    }
}

/// Removes everything that [`install`] created. Returns whether there was anything.
pub(crate) fn remove(machine: &Machine) -> Result<bool, InstallError> {
    let bin = machine.bin();
    let mut was_there = false;
    for name in [SHIM, PROGRAM, FOLDERS_FILE, CURRENT, VERSIONS] {
        let path = bin.join(name);
        let removed = match name {
            VERSIONS => fs::remove_dir_all(&path),
            _ => fs::remove_file(&path),
        };
        match removed {
            Ok(()) => was_there = true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(InstallError::write(&path)(error)),
        }
    }
    // It stays if it contains anything else.
    let _kept = fs::remove_dir(bin);
    Ok(was_there)
}

fn has_same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        (&mut one).take(CHUNK).read_to_end(&mut left)?;
        (&mut other).take(CHUNK).read_to_end(&mut right)?;
        if left != right || left.is_empty() {
            return Ok(left == right);
        }
        left.clear();
        right.clear();
    }
}
