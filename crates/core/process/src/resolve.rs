//! Finds the executable of a command in the same way as a shell, or reports why it was not found.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{self, Path, PathBuf};

use crate::shell::Shell;
use crate::sys;

/// The search path if `PATH` is not set.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Where the executable of a command was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResolvedProgram {
    /// The file that is executed: the program itself, or the shell.
    pub executable: PathBuf,
    /// The shell that interprets the line. `None` if the program is executed directly.
    pub shell: Option<Shell>,
}

/// Why a command cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The argument list or the program name is empty.
    #[error("the command is empty")]
    Empty,
    /// A name was not found in `PATH`.
    #[error("program `{name}` was not found in `PATH`")]
    NotInPath {
        /// The name that was searched for.
        name: String,
    },
    /// The path does not exist.
    #[error("program `{path}` does not exist")]
    NotFound {
        /// The path of the program.
        path: PathBuf,
    },
    /// The file exists but is not executable.
    #[error("program `{path}` is not executable")]
    NotExecutable {
        /// The path of the program.
        path: PathBuf,
    },
    /// The path is a directory or something else that is not a regular file.
    #[error("program `{path}` is not a regular file")]
    NotAFile {
        /// The path of the program.
        path: PathBuf,
    },
    /// The interpreter in the first line of the script does not exist.
    #[error("script `{path}` needs the interpreter `{interpreter}`, which does not exist")]
    NoInterpreter {
        /// The path of the script.
        path: PathBuf,
        /// The interpreter that the script names.
        interpreter: PathBuf,
    },
    /// The directory to run in does not exist.
    #[error("working directory `{path}` does not exist")]
    NoWorkingDir {
        /// The path of the directory.
        path: PathBuf,
    },
}

/// The places in which a program is looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lookup<'a> {
    /// The directory that relative paths start from. `None` is the current directory.
    pub(crate) dir: Option<&'a Path>,
    /// The value of `PATH` that the child would see.
    pub(crate) path: Option<&'a OsStr>,
}

impl Lookup<'_> {
    /// Finds the program `name`. A path is used as it is, and a bare name is searched for in `PATH`.
    pub(crate) fn find(&self, name: &OsStr) -> Result<PathBuf, ResolveError> {
        if name.is_empty() {
            return Err(ResolveError::Empty);
        }
        if is_path(name) {
            let file = self.absolute(Path::new(name));
            return check(&file).map(|()| file);
        }
        let mut first_problem = None;
        for dir in self.search_path() {
            let file = self.absolute(&dir.join(name));
            for file in sys::executable_names(&file) {
                match check(&file) {
                    Ok(()) => return Ok(file),
                    Err(ResolveError::NotExecutable { path }) => {
                        first_problem.get_or_insert(ResolveError::NotExecutable { path });
                    }
                    Err(_) => {}
                }
            }
        }
        let name = name.to_string_lossy().into_owned();
        Err(first_problem.unwrap_or(ResolveError::NotInPath { name }))
    }

    fn search_path(&self) -> Vec<PathBuf> {
        let path = match self.path {
            Some(path) => path.to_owned(),
            None => env::var_os("PATH").unwrap_or_else(|| OsString::from(DEFAULT_PATH)),
        };
        env::split_paths(&path).collect()
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        let joined = match self.dir {
            Some(dir) => dir.join(path),
            None => path.to_path_buf(),
        };
        // Fails only if the current directory was deleted. Then the relative path is all there is.
        path::absolute(&joined).unwrap_or(joined)
    }
}

/// Returns whether this process may execute a file. The system decides.
pub fn is_executable(file: &Path) -> bool {
    sys::is_executable(file)
}

/// Returns whether a program name is a path and not a name to search for.
pub(crate) fn is_path(name: &OsStr) -> bool {
    name.as_encoded_bytes()
        .iter()
        .any(|&byte| path::is_separator(char::from(byte)))
}

/// Returns an error if the interpreter of a script does not exist.
pub(crate) fn missing_interpreter(script: &Path) -> Option<ResolveError> {
    let mut start = Vec::new();
    File::open(script)
        .ok()?
        .take(256)
        .read_to_end(&mut start)
        .ok()?;
    let line = start
        .strip_prefix(b"#!")?
        .split(|&byte| byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line);
    // A carriage return is part of the name, so the message explains why a script with Windows line
    // ends fails.
    let interpreter = line.trim_matches([' ', '\t']).split([' ', '\t']).next()?;
    (!Path::new(interpreter).exists()).then(|| ResolveError::NoInterpreter {
        path: script.to_path_buf(),
        interpreter: PathBuf::from(interpreter.escape_debug().to_string()),
    })
}

fn check(file: &Path) -> Result<(), ResolveError> {
    let path = || file.to_path_buf();
    match file.metadata() {
        Err(_) => Err(ResolveError::NotFound { path: path() }),
        Ok(found) if !found.is_file() => Err(ResolveError::NotAFile { path: path() }),
        Ok(_) if !sys::is_executable(file) => Err(ResolveError::NotExecutable { path: path() }),
        Ok(_) => Ok(()),
    }
}
