//! Which files of a folder are pi's extensions.
//!
//! | in a folder of extensions | is loaded |
//! |---|---|
//! | `*.ts`, `*.js`, `*.mjs` | the file, unless it only declares types (`*.d.ts`) |
//! | a folder whose `package.json` lists files in `pi.extensions` | those files; one that is not there is broken |
//! | another folder with `index.ts`, or else `index.js` | that |
//! | anything else, hidden files, and what stands deeper | nothing |
//!
//! Links are followed.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::scan::MOST_FILES;
use crate::link::dead_link;
use crate::trust::read_whole;

/// What files of a folder of extensions end in.
const DIRECT: [&str; 3] = ["ts", "js", "mjs"];
/// The entries of a folder that lists none, the first that is there.
const INDEX: [&str; 2] = ["index.ts", "index.js"];

/// One extension: what is loaded, and the folder that is its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extension {
    pub(super) entries: Vec<PathBuf>,
    pub(super) folder: Option<PathBuf>,
}

/// Returns the extensions of a folder of them, in the byte order of their names.
pub(super) fn below(dir: &Path) -> io::Result<Vec<Extension>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir)?.take(MOST_FILES) {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths.into_iter().filter_map(of_path).collect())
}

/// Returns the extensions that a path on the command line names: a file, an extension's folder, or a folder of extensions.
pub(super) fn named(path: &Path) -> io::Result<Vec<Extension>> {
    if fs::metadata(path)?.is_file() {
        return Ok(vec![of_file(path.to_owned())]);
    }
    let found = match of_folder(path) {
        Some(extension) => vec![extension],
        None => below(path)?,
    };
    if found.is_empty() {
        return Err(io::Error::new(
            ErrorKind::NotFound,
            "it has no extension, expected `index.ts`, `index.js`, a `package.json` with `pi.extensions`, or files that end \
             in `.ts`, `.js` or `.mjs`",
        ));
    }
    Ok(found)
}

fn of_path(path: PathBuf) -> Option<Extension> {
    let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
    if path.file_name().is_none_or(is_hidden) {
        return None;
    }
    let metadata = fs::metadata(&path);
    if metadata.is_ok_and(|metadata| metadata.is_dir()) {
        return of_folder(&path);
    }
    // A link that leads nowhere stays and is reported. So does an extension whose name ends in other letters.
    if dead_link(&path).is_some() {
        return Some(of_file(path));
    }
    let extension = path.extension()?.to_str()?;
    let is_direct = DIRECT
        .iter()
        .any(|direct| direct.eq_ignore_ascii_case(extension));
    let is_types = path.as_os_str().as_encoded_bytes().ends_with(b".d.ts");
    (is_direct && !is_types).then(|| of_file(path))
}

fn of_file(path: PathBuf) -> Extension {
    Extension {
        entries: vec![path],
        folder: None,
    }
}

fn of_folder(folder: &Path) -> Option<Extension> {
    let listed = listed(folder);
    let (mut entries, missing): (Vec<_>, Vec<_>) =
        listed.into_iter().partition(|path| path.is_file());
    if entries.is_empty() {
        let mut index = INDEX.iter().map(|name| folder.join(name));
        entries.extend(index.find(|path| path.is_file()));
    }
    // What is listed and not there stays and is reported: a guard may be missing.
    entries.extend(missing);
    (!entries.is_empty()).then(|| Extension {
        entries,
        folder: Some(folder.to_owned()),
    })
}

/// Returns the files that `package.json` lists. An approval is for what stands below the folder, so a path that leads out
/// of it is ignored.
fn listed(folder: &Path) -> Vec<PathBuf> {
    let manifest = read_whole(&folder.join("package.json")).ok();
    let manifest: Option<Value> =
        manifest.and_then(|(bytes, _)| serde_json::from_slice(&bytes).ok());
    let listed = manifest.as_ref().and_then(|manifest| {
        let listed = manifest.pointer("/pi/extensions");
        listed.and_then(Value::as_array)
    });
    let mut found = Vec::new();
    for text in listed.into_iter().flatten().filter_map(Value::as_str) {
        let is_below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        let parts = Path::new(text).components();
        if !parts.clone().all(is_below) {
            continue;
        }
        let below: PathBuf = parts.filter(|part| *part != Component::CurDir).collect();
        let path = folder.join(below);
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}
