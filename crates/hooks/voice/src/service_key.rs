//! Reads the key of a service. A key is never in the settings themselves.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::engine_settings::{SpeechKey, SpeechService};
use crate::error::VoiceError;

/// The maximum number of bytes of a file that are read as a key.
const MAX_KEY: u64 = 16 * 1024;

/// Returns the key of a service; `None` if it needs none.
pub(crate) fn read_key(service: &SpeechService) -> Result<Option<String>, VoiceError> {
    if let SpeechKey::File(path) = &service.key {
        return key_of_file(path).map(Some);
    }
    let Some(variable) = service.key_variable() else {
        return Ok(None);
    };
    let value = std::env::var(variable).unwrap_or_default();
    if value.is_empty() {
        return Err(problem(format!(
            "there is no key for `{}`: `{variable}` is not set",
            service.base_url
        )));
    }
    key_in(variable, &value).map(Some)
}

fn key_of_file(path: &Path) -> Result<String, VoiceError> {
    let shown = path.display().to_string();
    let refused =
        |error: std::io::Error| problem(format!("cannot read the key file `{shown}`: {error}"));
    let file = File::open(path).map_err(refused)?;
    // The check uses the open file, so replacing the file in between has no effect.
    check_file(&shown, &file)?;
    let mut text = String::new();
    file.take(MAX_KEY)
        .read_to_string(&mut text)
        .map_err(refused)?;
    key_in(&shown, &text)
}

#[cfg(unix)]
fn check_file(shown: &str, file: &File) -> Result<(), VoiceError> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = file
        .metadata()
        .map_err(|error| problem(format!("cannot read the key file `{shown}`: {error}")))?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(problem(format!(
            "the key file `{shown}` belongs to another user"
        )));
    }
    let mode = metadata.mode() & 0o777;
    if mode.trailing_zeros() >= 6 {
        return Ok(());
    }
    Err(problem(format!(
        "the key file `{shown}` has mode {mode:03o}, expected 600; run `chmod 600` on it"
    )))
}

#[cfg(not(unix))]
fn check_file(_shown: &str, _file: &File) -> Result<(), VoiceError> {
    Ok(())
}

/// Extracts a key from text. No error message contains the text.
fn key_in(found: &str, text: &str) -> Result<String, VoiceError> {
    let key = text.trim();
    if !key.is_empty() && key.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(key.to_owned());
    }
    Err(problem(format!(
        "`{found}` contains no key; expected one line without spaces"
    )))
}

fn problem(problem: String) -> VoiceError {
    VoiceError::Key { problem }
}
