//! The `PATH` of the programs that tests start.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Returns the user's `PATH`, in which `python3` is the interpreter itself, without the packages that the user has
/// installed. `pyenv` and `asdf` put a shell script in its place, which takes longer to start than the interpreter and
/// may not find it from the home of a test. Some packages run code at every start, which takes longer than the start.
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

/// Returns a folder with the interpreter that `python3` starts, as a virtual environment has it.
fn folder_of_python() -> Option<PathBuf> {
    let script = "import sys; print(sys.executable, end='')";
    let output = Command::new("python3").args(["-c", script]).output().ok()?;
    let python = PathBuf::from(String::from_utf8(output.stdout).ok()?);
    let home = python.parent()?;
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let folder = root.join("bin");
    fs::create_dir_all(&folder).ok()?;
    let settings = format!(
        "home = {}\ninclude-system-site-packages = false\n",
        home.display()
    );
    fs::write(root.join("pyvenv.cfg"), settings).ok()?;
    let link = folder.join("python3");
    if fs::read_link(&link).ok().as_ref() != Some(&python) {
        fs::remove_file(&link).ok();
        std::os::unix::fs::symlink(&python, &link).ok()?;
    }
    Some(folder)
}
