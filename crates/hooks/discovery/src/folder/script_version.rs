//! Checks whether a script is still the version that is in force.
//!
//! After a crash, a worker loads its scripts again, from files that may have changed since. A changed
//! guard must not take effect before the user requests a reload, so its hooks fail instead. Scripts of a
//! project need no such check, because they are loaded from their private approved copies.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tenterhook_files::{hex_digest, read_whole};
use tenterhook_runners::worker::ScriptVersion;
use tenterhook_trust::sources_below;

use super::candidate::Candidate;

/// Reads the versions of the scripts of one search. Reads every folder at most once.
#[derive(Debug, Default)]
pub(super) struct ScriptVersions {
    folders: HashMap<PathBuf, Result<String, String>>,
}

impl ScriptVersions {
    /// Returns the version of a file, unless a private copy of it runs.
    pub(super) fn of(&mut self, candidate: &Candidate) -> Option<ScriptVersion> {
        if candidate.project().is_some() {
            return None;
        }
        // The worker runs in the directory of the events, where a relative path would mean another file.
        let path = absolute(&candidate.run);
        let folder = candidate.source_folder.as_deref().map(absolute);
        let sources = folder.as_ref().map(|folder| {
            let known = self.folders.entry(folder.clone());
            known.or_insert_with(|| digest_of_folder(folder)).clone()
        });
        // If the file cannot be read now, the version in force is a string that no digest equals.
        let in_force = digest(&path, sources).unwrap_or_else(|problem| problem);
        let read = move || digest(&path, folder.as_deref().map(digest_of_folder));
        Some(ScriptVersion::new(&*candidate.found.name, in_force, read))
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns a digest of a file and of the sources that it may load.
fn digest(path: &Path, sources: Option<Result<String, String>>) -> Result<String, String> {
    let own = digest_of_file(path)?;
    let sources = sources.transpose()?.unwrap_or_default();
    Ok(own + &sources)
}

/// Returns a digest of all sources in a folder and below it. Empty if there are too many to read, so that
/// only the file itself is compared.
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
