//! Which files count as programs on Windows, and the shell.

use std::env;
use std::path::{Path, PathBuf};

/// The default shell.
pub(crate) const SH: &str = "sh";

/// The extensions of programs if `PATHEXT` is not set.
const DEFAULT_EXTENSIONS: &str = ".COM;.EXE;.BAT;.CMD";

/// Always returns true: on Windows, the system decides by the name of the file.
pub(crate) fn is_executable(_: &Path) -> bool {
    true
}

/// Returns the names under which an executable may be stored: as written, and with each extension.
pub(crate) fn executable_names(file: &Path) -> Vec<PathBuf> {
    let extensions = env::var("PATHEXT").unwrap_or_else(|_| DEFAULT_EXTENSIONS.to_owned());
    let mut names = Vec::new();
    if file.extension().is_some() {
        names.push(file.to_path_buf());
    }
    for extension in extensions
        .split(';')
        .filter(|extension| !extension.is_empty())
    {
        let mut name = file.as_os_str().to_owned();
        name.push(extension);
        names.push(PathBuf::from(name));
    }
    names
}
