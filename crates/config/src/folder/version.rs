//! Whether a script is still the version that is in force.
//!
//! A worker that crashed loads its scripts again, from files that may have changed since. A changed guard must not take
//! the place of the one in force before the user asks for a reload, so its hooks fail instead. Scripts of a project need
//! no such check: they are loaded from the private copy of what was approved.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tenterhook_handlers::worker::ScriptVersion;

use super::scan::Candidate;
use crate::trust::{hex_digest, read_whole, sources_below};

/// Reads the versions of one search, for which it reads every folder once.
#[derive(Debug, Default)]
pub(super) struct Versions {
    folders: HashMap<PathBuf, Result<String, String>>,
}

impl Versions {
    /// Returns the version of a file, if what runs is not a private copy.
    pub(super) fn of(&mut self, candidate: &Candidate) -> Option<ScriptVersion> {
        if candidate.project().is_some() {
            return None;
        }
        // The worker runs in the directory of the events, where a relative path is another one.
        let path = absolute(&candidate.run);
        let folder = candidate.sources.as_deref().map(absolute);
        let beside = folder.as_ref().map(|folder| {
            let known = self.folders.entry(folder.clone());
            known.or_insert_with(|| digest_of_folder(folder)).clone()
        });
        // A file that could be read a moment ago and cannot be read now is never the version in force.
        let in_force = digest(&path, beside).unwrap_or_else(|problem| problem);
        let read = move || digest(&path, folder.as_deref().map(digest_of_folder));
        Some(ScriptVersion::new(&*candidate.found.name, in_force, read))
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns what stands for a file and for the sources that it may load.
fn digest(path: &Path, beside: Option<Result<String, String>>) -> Result<String, String> {
    let own = digest_of_file(path)?;
    let beside = beside.transpose()?.unwrap_or_default();
    Ok(own + &beside)
}

/// Returns what stands for all sources in a folder and below it. Where there are too many to read, nothing
/// stands for them: only the file itself is compared then.
fn digest_of_folder(folder: &Path) -> Result<String, String> {
    let Some(paths) = sources_below(folder, |_| true) else {
        return Ok(String::new());
    };
    let mut text = String::new();
    for path in paths {
        text.push_str(&digest_of_file(&path)?);
        text.push_str(&path.to_string_lossy());
        text.push('\0');
    }
    Ok(hex_digest(text.as_bytes()))
}

fn digest_of_file(path: &Path) -> Result<String, String> {
    let (bytes, _) = read_whole(path).map_err(|error| format!("`{}`: {error}", path.display()))?;
    Ok(hex_digest(&bytes))
}
