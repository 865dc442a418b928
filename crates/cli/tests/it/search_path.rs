//! The `PATH` of the programs that tests start.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

/// Returns the user's `PATH`, in which `python3` is the interpreter itself. `pyenv` and `asdf` put a shell script in its
/// place, which takes longer to start than the interpreter and may not find it from the home of a test.
pub(crate) fn search_path() -> &'static OsStr {
    static PATH: LazyLock<OsString> = LazyLock::new(|| {
        let path = env::var_os("PATH").unwrap();
        let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
        let first = folders.iter().position(|it| it.join("python3").exists());
        if let (Some(first), Some(folder)) = (first, folder_of_python()) {
            folders.insert(first, folder);
        }
        env::join_paths(folders).unwrap()
    });
    &PATH
}

/// Returns the folder of the interpreter that `python3` starts.
fn folder_of_python() -> Option<PathBuf> {
    let script = "import os, sys; print(os.path.dirname(sys.executable), end='')";
    let output = Command::new("python3").args(["-c", script]).output().ok()?;
    let folder = String::from_utf8(output.stdout).ok()?;
    (!folder.is_empty()).then(|| folder.into())
}
