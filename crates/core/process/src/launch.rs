//! The parameters with which the system starts one child.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::resolve::is_path;
use crate::shell::Shell;
use crate::sys::SH;

/// Everything that the system call needs to start a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    /// The file to execute, as the look-up found it.
    pub(crate) executable: PathBuf,
    /// The path that is passed to the system. A relative path stays as it was written.
    pub(crate) path: PathBuf,
    /// The name that the program sees as its own, if that is not the path.
    pub(crate) name: Option<OsString>,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Inherited variables that the child does not get.
    pub(crate) removed: Vec<OsString>,
    pub(crate) shell: Option<Shell>,
}

impl Launch {
    /// Returns whether the program was written as a relative path. Such a path means another file
    /// in another directory.
    pub(crate) fn is_relative(&self) -> bool {
        let written = self.name.as_deref().unwrap_or(self.path.as_os_str());
        self.shell.is_none() && is_path(written) && Path::new(written).is_relative()
    }

    /// Returns whether this launch sets a variable.
    pub(crate) fn sets(&self, key: &OsStr) -> bool {
        self.env.iter().any(|(known, _)| known == key)
    }

    /// Returns the launch that passes the file to `sh`, for files whose format the system does not
    /// recognise.
    pub(crate) fn through_sh(self) -> Self {
        let sh = PathBuf::from(SH);
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
