//! Commands: a program with arguments, or a line for a shell, prepared before it is needed.
//!
//! Building a command looks up the executable and decides whether a shell is needed. A run repeats
//! this work only if the first look-up failed.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{env, fmt, path};

use crate::launch::Launch;
use crate::resolve::{Lookup, ResolveError, ResolvedProgram, is_path};
use crate::shell::Shell;
use crate::slots::Slots;
use tenterhook_shell::plain_words;

/// The program or the shell line that a command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A program and its arguments; no shell is involved.
    Exec {
        /// The program, a path or a name to search for in `PATH`, and its arguments.
        argv: Vec<OsString>,
    },
    /// A line for a shell.
    Shell {
        /// The shell that defines what the line means.
        shell: Shell,
        /// The line.
        line: String,
    },
}

impl Program {
    /// Returns a program with its arguments, to be executed without a shell.
    pub fn exec<I>(argv: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        let argv = argv.into_iter().map(Into::into).collect();
        Self::Exec { argv }
    }

    /// Returns a line for the default shell.
    pub fn shell(line: impl Into<String>) -> Self {
        Self::Shell {
            shell: Shell::default(),
            line: line.into(),
        }
    }
}

/// A prepared command: its executable is resolved, and no shell is started for a line without shell
/// syntax.
///
/// A line for `sh` or `bash` is executed directly if it consists only of plain words and its first
/// word is not a builtin or keyword of the shell. A plain word is made of unquoted letters, digits
/// and `_./:=@%+,-`, or of quoted text without `$`, a backquote or a backslash. All other lines go to
/// the shell.
///
/// Clones are cheap.
#[derive(Clone)]
pub struct Command {
    inner: Arc<Inner>,
}

/// The variables that no command inherits.
static HIDDEN: OnceLock<Vec<OsString>> = OnceLock::new();

/// Hides variables of this program from all commands that are created from now on, for example because they contain
/// secrets. A variable that is set with [`Command::env`] is set nevertheless. Only the first call counts.
pub fn hide_variables(names: impl IntoIterator<Item = String>) {
    HIDDEN.get_or_init(|| names.into_iter().map(OsString::from).collect());
}

#[derive(Clone)]
struct Inner {
    program: Program,
    dir: Option<PathBuf>,
    env: Vec<(OsString, OsString)>,
    removed: Vec<OsString>,
    slots: Option<Slots>,
    launch: Result<Launch, ResolveError>,
}

impl Command {
    /// Creates a command that runs in the current directory with the inherited environment.
    pub fn new(program: Program) -> Self {
        let inner = Inner {
            program,
            dir: None,
            env: Vec::new(),
            removed: HIDDEN.get().cloned().unwrap_or_default(),
            slots: None,
            launch: Err(ResolveError::Empty),
        };
        Self {
            inner: Arc::new(inner),
        }
        .edit(|_| {})
    }

    /// Sets the directory to run in. A relative path is resolved now, from the current directory.
    #[must_use]
    pub fn working_dir(self, dir: PathBuf) -> Self {
        self.edit(|inner| inner.dir = Some(path::absolute(&dir).unwrap_or(dir)))
    }

    /// Returns the command with another directory to run in, an absolute path. The executable is
    /// not looked up again, unless the program is a relative path: then it is looked up from `dir`.
    #[must_use]
    pub fn placed(&self, dir: &Path) -> Self {
        match &self.inner.launch {
            Ok(launch) if !launch.is_relative() => {
                let mut inner = Inner::clone(&self.inner);
                inner.dir = Some(dir.to_owned());
                inner.launch = Ok(Launch {
                    dir: inner.dir.clone(),
                    env: inner.environment(),
                    ..launch.clone()
                });
                Self {
                    inner: Arc::new(inner),
                }
            }
            Ok(_) | Err(_) => self.clone().working_dir(dir.to_owned()),
        }
    }

    /// Sets a variable on top of the inherited environment.
    #[must_use]
    pub fn env(self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let (key, value) = (key.into(), value.into());
        self.edit(|inner| {
            inner.env.retain(|(known, _)| *known != key);
            inner.env.push((key, value));
        })
    }

    /// Removes inherited variables. A variable that is set with [`Command::env`] stays set.
    #[must_use]
    pub fn without_env(self, keys: &[impl AsRef<OsStr>]) -> Self {
        let keys = keys.iter().map(|key| key.as_ref().to_owned());
        self.edit(|inner| inner.removed.extend(keys))
    }

    /// Makes runs use these slots instead of [`Slots::shared`].
    #[must_use]
    pub fn slots(self, slots: Slots) -> Self {
        self.edit(|inner| inner.slots = Some(slots))
    }

    /// Returns the program or the shell line.
    pub fn program(&self) -> &Program {
        &self.inner.program
    }

    /// Returns where the executable was found, and whether a shell is used.
    ///
    /// The result of a successful look-up is kept, even if the file is deleted later. A failed
    /// look-up is repeated.
    ///
    /// # Errors
    ///
    /// Fails if the program or the working directory is missing, or if the program cannot be executed.
    pub fn resolve(&self) -> Result<ResolvedProgram, ResolveError> {
        let launch = self.launch()?;
        Ok(ResolvedProgram {
            executable: launch.executable.clone(),
            shell: launch.shell,
        })
    }

    pub(crate) fn slots_or_shared(&self) -> &Slots {
        self.inner.slots.as_ref().unwrap_or_else(|| Slots::shared())
    }

    /// Returns the prepared launch. If preparing it has failed, tries again.
    pub(crate) fn launch(&self) -> Result<Cow<'_, Launch>, ResolveError> {
        match &self.inner.launch {
            Ok(launch) => Ok(Cow::Borrowed(launch)),
            Err(_) => self.prepare().map(Cow::Owned),
        }
    }

    /// Looks up everything again.
    pub(crate) fn prepare(&self) -> Result<Launch, ResolveError> {
        self.inner.prepare()
    }

    fn edit(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        let inner = Arc::make_mut(&mut self.inner);
        change(inner);
        inner.launch = inner.prepare();
        self
    }
}

impl Inner {
    fn prepare(&self) -> Result<Launch, ResolveError> {
        if let Some(dir) = &self.dir
            && !dir.is_dir()
        {
            return Err(ResolveError::NoWorkingDir { path: dir.clone() });
        }
        match &self.program {
            Program::Exec { argv } => {
                let (name, arguments) = argv.split_first().ok_or(ResolveError::Empty)?;
                self.direct(name, arguments.to_vec())
            }
            Program::Shell { shell, line } => match self.words_without_shell(*shell, line) {
                Some(words) => {
                    let mut words = words.into_iter().map(OsString::from);
                    let name = words.next().ok_or(ResolveError::Empty)?;
                    self.direct(&name, words.collect())
                }
                None => self.through_shell(*shell, line),
            },
        }
    }

    fn direct(&self, name: &OsStr, arguments: Vec<OsString>) -> Result<Launch, ResolveError> {
        let executable = self.lookup().find(name)?;
        // A shell passes the path as it was typed, and a script sees it as `$0`. Only Linux is sure to
        // look up a relative path after the change of directory.
        let keep_relative = cfg!(target_os = "linux") && is_path(name);
        let path = if keep_relative {
            PathBuf::from(name)
        } else {
            executable.clone()
        };
        Ok(Launch {
            name: (path != Path::new(name)).then(|| name.to_owned()),
            executable,
            path,
            arguments,
            dir: self.dir.clone(),
            env: self.environment(),
            removed: self.removed.clone(),
            shell: None,
        })
    }

    fn through_shell(&self, shell: Shell, line: &str) -> Result<Launch, ResolveError> {
        let executable = self.lookup().find(OsStr::new(shell.name()))?;
        let arguments = shell.arguments().iter().copied().chain([line]);
        Ok(Launch {
            path: executable.clone(),
            executable,
            name: None,
            arguments: arguments.map(OsString::from).collect(),
            dir: self.dir.clone(),
            env: self.environment(),
            removed: self.removed.clone(),
            shell: Some(shell),
        })
    }

    fn words_without_shell(&self, shell: Shell, line: &str) -> Option<Vec<String>> {
        if shell == Shell::Pwsh {
            return None;
        }
        let words = plain_words(line)?;
        // `bash` reads a file and functions from the environment, which can redefine any word. It may
        // also be installed as `sh`.
        let function = format!("BASH_FUNC_{}%%", words.first()?);
        let is_redefined = self.has_variable(&function) || self.has_variable("BASH_ENV");
        (!is_redefined).then_some(words)
    }

    /// Returns the variables to set, including `PWD` if the inherited one would be wrong.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut env = self.env.clone();
        if let Some(dir) = &self.dir
            && self
                .variable("PWD")
                .is_some_and(|pwd| pwd != dir.as_os_str())
        {
            env.retain(|(key, _)| key != "PWD");
            env.push(("PWD".into(), dir.into()));
        }
        env
    }

    fn lookup(&self) -> Lookup<'_> {
        Lookup {
            dir: self.dir.as_deref(),
            path: self.set_variable("PATH"),
        }
    }

    fn has_variable(&self, key: &str) -> bool {
        self.variable(key).is_some()
    }

    fn variable(&self, key: &str) -> Option<Cow<'_, OsStr>> {
        match self.set_variable(key) {
            Some(value) => Some(Cow::Borrowed(value)),
            None if self.removed.iter().any(|removed| removed == key) => None,
            None => env::var_os(key).map(Cow::Owned),
        }
    }

    fn set_variable(&self, key: &str) -> Option<&OsStr> {
        let set = self.env.iter().find(|(known, _)| known == key);
        set.map(|(_, value)| value.as_os_str())
    }
}

/// Leaves out arguments and values of variables, because they may be secret.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Command");
        match &self.inner.launch {
            Ok(launch) => debug
                .field("executable", &launch.executable)
                .field("arguments", &launch.arguments.len())
                .field("shell", &launch.shell),
            Err(error) => debug.field("problem", error),
        };
        let keys: Vec<_> = self.inner.env.iter().map(|(key, _)| key).collect();
        debug
            .field("working_dir", &self.inner.dir)
            .field("env", &keys)
            .finish_non_exhaustive()
    }
}
