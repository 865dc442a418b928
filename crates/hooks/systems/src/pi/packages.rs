//! Finds pi's extensions in a folder.
//!
//! | entry of a folder of extensions | loaded |
//! |---|---|
//! | `*.ts`, `*.js`, `*.mjs` | the file, unless it only declares types (`*.d.ts`) |
//! | a folder whose `package.json` lists files in `pi.extensions` | the listed files; a missing file is an error |
//! | any other folder with `index.ts` or `index.js` | this file; `index.ts` comes first |
//! | the extension with which Tenterhook watches pi | nothing |
//! | anything else, hidden files, and files in deeper folders | nothing |
//!
//! Symbolic links are followed.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::hook_folder::{FileReader, MAX_FILES, ScriptPackage};
use crate::host::in_process;

/// The name of the extension with which Tenterhook watches pi.
const OWN: &str = "tenterhook.js";

/// The file name extensions of scripts directly in a folder of extensions.
const DIRECT: [&str; 3] = ["ts", "js", "mjs"];
/// The entries of a folder without a list of files. The first existing one counts.
const INDEX: [&str; 2] = ["index.ts", "index.js"];

/// Returns the extensions in a folder, in the byte order of their names.
pub(super) fn in_folder(dir: &Path, read: FileReader<'_>) -> io::Result<Vec<ScriptPackage>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir)?.take(MAX_FILES) {
        paths.push(entry?.path());
    }
    paths.sort();
    let packages = paths.into_iter().filter_map(|path| of_path(path, read));
    Ok(packages.collect())
}

/// Returns the extensions that a path on the command line names. The path may be a file, the folder of an
/// extension, or a folder of extensions.
pub(super) fn named(path: &Path, read: FileReader<'_>) -> io::Result<Vec<ScriptPackage>> {
    if fs::metadata(path)?.is_file() {
        return Ok(vec![of_file(path.to_owned())]);
    }
    let found = match of_folder(path, read) {
        Some(extension) => vec![extension],
        None => in_folder(path, read)?,
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

fn of_path(path: PathBuf, read: FileReader<'_>) -> Option<ScriptPackage> {
    let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
    if path.file_name().is_none_or(is_hidden) {
        return None;
    }
    let metadata = fs::metadata(&path);
    if metadata.is_ok_and(|metadata| metadata.is_dir()) {
        return of_folder(&path, read);
    }
    // Keep a dangling link, so that it is reported as broken. The same goes for an extension in a
    // different case (`.TS`).
    if path.is_symlink() && !path.exists() {
        return Some(of_file(path));
    }
    let extension = path.extension()?.to_str()?;
    let is_direct = DIRECT
        .iter()
        .any(|direct| direct.eq_ignore_ascii_case(extension));
    let is_types = path.as_os_str().as_encoded_bytes().ends_with(b".d.ts");
    // Only a file with this name is read: files that no one has approved may be huge, or many.
    let is_own =
        || path.ends_with(OWN) && read(&path).is_ok_and(|text| in_process::is_plugin(&text));
    (is_direct && !is_types && !is_own()).then(|| of_file(path))
}

fn of_file(path: PathBuf) -> ScriptPackage {
    ScriptPackage {
        entries: vec![path],
        folder: None,
    }
}

fn of_folder(folder: &Path, read: FileReader<'_>) -> Option<ScriptPackage> {
    let listed = listed(folder, read);
    let (mut entries, missing): (Vec<_>, Vec<_>) =
        listed.into_iter().partition(|path| path.is_file());
    if entries.is_empty() {
        let mut index = INDEX.iter().map(|name| folder.join(name));
        entries.extend(index.find(|path| path.is_file()));
    }
    // Keep listed files that do not exist, so that they are reported: one of them may be a guard.
    entries.extend(missing);
    (!entries.is_empty()).then(|| ScriptPackage {
        entries,
        folder: Some(folder.to_owned()),
    })
}

/// Returns the files that `package.json` lists. Paths that lead out of the folder are ignored, because an
/// approval covers only files inside the folder.
fn listed(folder: &Path, read: FileReader<'_>) -> Vec<PathBuf> {
    let manifest = read(&folder.join("package.json")).ok();
    let manifest: Option<Value> = manifest.and_then(|bytes| serde_json::from_slice(&bytes).ok());
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
