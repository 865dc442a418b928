//! What is started: a program with arguments, or a line for a shell, made ready before it is needed.
//!
//! A command is prepared when it is built: the executable is looked up and the need for a shell is
//! decided. A run repeats that work only if the first try failed or the file has gone since.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fmt, path};

use tokio_util::sync::CancellationToken;

use crate::line::plain_words;
use crate::resolve::{Lookup, is_path};
use crate::{Finished, Limits, ResolveError, ResolvedProgram, Slots, SpawnError, run, sys};

/// What is started.
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
    /// Returns the exec form of a program and its arguments.
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

/// A shell that a line can be written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shell {
    /// `/bin/sh -c`, on Windows the first `sh` in `PATH`.
    #[default]
    Sh,
    /// `bash -c`, found in `PATH`.
    Bash,
    /// `pwsh -NoProfile -NonInteractive -Command`, found in `PATH`.
    Pwsh,
}

impl Shell {
    fn name(self) -> &'static str {
        match self {
            Self::Sh => sys::SH,
            Self::Bash => "bash",
            Self::Pwsh => "pwsh",
        }
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Sh | Self::Bash => &["-c"],
            Self::Pwsh => &["-NoProfile", "-NonInteractive", "-Command"],
        }
    }
}

/// A command made ready at load: its executable is resolved, and the shell is left out where the line
/// has no shell syntax.
///
/// A line for `sh` or `bash` is executed directly when it consists of plain words only: unquoted
/// letters, digits and `_./:=@%+,-`, or quoted text without `$`, a backquote or a backslash; and when
/// its first word is not something that the shell does itself. Everything else goes to the shell.
///
/// Clones are cheap.
#[derive(Clone)]
pub struct Command {
    inner: Arc<Inner>,
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

/// Everything that the system call needs to start a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    /// The file to execute, found before.
    pub(crate) executable: PathBuf,
    /// What is passed to the system as its path: a relative path stays as it was written.
    pub(crate) path: PathBuf,
    /// What the program sees as its own name, where that is not the path.
    pub(crate) name: Option<OsString>,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Inherited variables that the child does not get.
    pub(crate) removed: Vec<OsString>,
    pub(crate) shell: Option<Shell>,
}

impl Launch {
    /// Says whether the program was written as a relative path, which means another file in another directory.
    fn is_relative(&self) -> bool {
        let written = self.name.as_deref().unwrap_or(self.path.as_os_str());
        self.shell.is_none() && is_path(written) && Path::new(written).is_relative()
    }

    /// Says whether a variable is set for this launch.
    pub(crate) fn sets(&self, key: &OsStr) -> bool {
        self.env.iter().any(|(known, _)| known == key)
    }

    /// Returns the launch that hands a file which the system does not recognise to `sh`.
    pub(crate) fn through_sh(self) -> Self {
        let sh = PathBuf::from(sys::SH);
        let mut arguments = self.arguments;
        arguments.insert(0, self.path.into_os_string());
        Self {
            executable: sh.clone(),
            path: sh,
            name: None,
            arguments,
            shell: Some(Shell::Sh),
            ..self
        }
    }
}

impl Command {
    /// Creates a command that runs in the current directory with the inherited environment.
    pub fn new(program: Program) -> Self {
        let inner = Inner {
            program,
            dir: None,
            env: Vec::new(),
            removed: Vec::new(),
            slots: None,
            launch: Err(ResolveError::Empty),
        };
        Self {
            inner: Arc::new(inner),
        }
        .edit(|_| {})
    }

    /// Sets the directory to run in. A relative path starts from the current directory of now.
    #[must_use]
    pub fn working_dir(self, dir: PathBuf) -> Self {
        self.edit(|inner| inner.dir = Some(path::absolute(&dir).unwrap_or(dir)))
    }

    /// Returns the command as it runs in `dir`, an absolute path. What was found when the command was made stays
    /// found; only a program that is itself a relative path is looked up, from `dir`.
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

    /// Keeps inherited variables from the child. One that is set with [`Command::env`] stays set.
    #[must_use]
    pub fn without_env(self, keys: &[&str]) -> Self {
        self.edit(|inner| inner.removed.extend(keys.iter().map(OsString::from)))
    }

    /// Runs under these slots and not under [`Slots::shared`].
    #[must_use]
    pub fn slots(self, slots: Slots) -> Self {
        self.edit(|inner| inner.slots = Some(slots))
    }

    /// Returns what is started.
    pub fn program(&self) -> &Program {
        &self.inner.program
    }

    /// Returns where the executable was found, and whether a shell is used.
    ///
    /// The answer of a successful look-up is kept, also when the file goes away later; a failed one is repeated.
    ///
    /// # Errors
    ///
    /// Says what is missing or cannot be executed.
    pub fn resolve(&self) -> Result<ResolvedProgram, ResolveError> {
        let launch = self.launch()?;
        Ok(ResolvedProgram {
            executable: launch.executable.clone(),
            shell: launch.shell,
        })
    }

    /// Runs the command: writes `stdin` to it, reads what it prints, and waits for its end.
    ///
    /// Waits for a slot first; the deadline begins when the slot is held. A child that does not read
    /// its input is not an error. Cancelling stops the group like the deadline does; dropping the
    /// future kills it at once.
    ///
    /// # Errors
    ///
    /// Fails if no child could be started. What the child itself does wrong is part of [`Finished`].
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn run(
        &self,
        stdin: &[u8],
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Finished, SpawnError> {
        run::run(self, None, stdin, limits, cancel).await
    }

    /// Runs the command until it has printed an answer, or until its end. `until` is shown the lines of standard output
    /// as they become complete; what is over [`Limits::stdout`]'s head is not looked at.
    ///
    /// # Errors
    ///
    /// As [`Command::run`].
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn run_early(
        &self,
        stdin: &[u8],
        limits: &Limits,
        cancel: &CancellationToken,
        until: run::Until<'_>,
    ) -> Result<run::Early, SpawnError> {
        run::run_early(self, None, stdin, limits, cancel, until).await
    }

    pub(crate) fn slots_or_shared(&self) -> &Slots {
        self.inner.slots.as_ref().unwrap_or_else(|| Slots::shared())
    }

    /// Returns the launch that was prepared, or prepares it again if that failed.
    pub(crate) fn launch(&self) -> Result<Cow<'_, Launch>, ResolveError> {
        match &self.inner.launch {
            Ok(launch) => Ok(Cow::Borrowed(launch)),
            Err(_) => self.prepare().map(Cow::Owned),
        }
    }

    /// Looks everything up anew.
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
        // A shell passes the path as it was typed, and a script sees it as `$0`. Only on Linux is a
        // relative path sure to be looked up after the change of directory.
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
        // `bash` reads a file and functions from the environment, which can give any word a new
        // meaning, and it may be installed as `sh`.
        let function = format!("BASH_FUNC_{}%%", words.first()?);
        let is_redefined = self.has_variable(&function) || self.has_variable("BASH_ENV");
        (!is_redefined).then_some(words)
    }

    /// Returns the variables to set. `PWD` is among them where the inherited one would be wrong.
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

/// Shows what is started without arguments and values, which may be secret.
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
