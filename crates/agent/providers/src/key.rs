//! Finds and reads the key of a service. A key is never in `models.yaml` itself.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The maximum number of bytes of a file that are read as a key.
const MAX_KEY: u64 = 16 * 1024;

/// The location of a key.
#[derive(Debug, Clone)]
pub(crate) enum KeySource {
    /// The variable that the service's own programs use, if the address is the service's own.
    Usual,
    Variable(String),
    File(PathBuf),
}

/// The reasons why a key cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The variable is not set.
    #[error("there is no key for `{provider}`: `{variable}` is not set")]
    NotSet {
        /// The provider.
        provider: String,
        /// The variable.
        variable: String,
    },
    /// The file cannot be read.
    #[error("cannot read the key of `{provider}` from `{}`", path.display())]
    Read {
        /// The provider.
        provider: String,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Other users can read the file.
    #[error(
        "the key file `{}` of `{provider}` has mode {mode:03o}, expected 600; run `chmod 600` on it", path.display()
    )]
    Readable {
        /// The provider.
        provider: String,
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Another user owns the file.
    #[error("the key file `{}` of `{provider}` belongs to another user", path.display())]
    NotOwned {
        /// The provider.
        provider: String,
        /// The file.
        path: PathBuf,
    },
    /// The text is not a key.
    #[error("`{found}` contains no key for `{provider}`; expected one line without spaces")]
    NoKey {
        /// The provider.
        provider: String,
        /// The variable or file where it was expected.
        found: String,
    },
}

impl KeyError {
    /// Returns whether there is no key: the variable or the file does not exist, or contains none.
    pub(crate) fn is_absence(&self) -> bool {
        match self {
            Self::NotSet { .. } | Self::NoKey { .. } => true,
            Self::Read { source, .. } => source.kind() == io::ErrorKind::NotFound,
            Self::Readable { .. } | Self::NotOwned { .. } => false,
        }
    }
}

pub(crate) fn key_of_variable(
    provider: &str,
    name: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, KeyError> {
    let value = variable(name).filter(|value| !value.is_empty());
    let value = value.ok_or_else(|| KeyError::NotSet {
        provider: provider.to_owned(),
        variable: name.to_owned(),
    })?;
    key_in(provider, name, &value)
}

pub(crate) fn key_of_file(provider: &str, path: &Path) -> Result<String, KeyError> {
    let refused = |source| KeyError::Read {
        provider: provider.to_owned(),
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(refused)?;
    // The check uses the open file, so replacing the file in between has no effect.
    check_file(provider, path, &file)?;
    let mut text = String::new();
    file.take(MAX_KEY)
        .read_to_string(&mut text)
        .map_err(refused)?;
    key_in(provider, &path.display().to_string(), &text)
}

#[cfg(unix)]
fn check_file(provider: &str, path: &Path, file: &File) -> Result<(), KeyError> {
    use std::os::unix::fs::MetadataExt as _;
    let (provider, path) = (provider.to_owned(), path.to_owned());
    let metadata = match file.metadata() {
        Ok(metadata) => metadata,
        Err(source) => {
            return Err(KeyError::Read {
                provider,
                path,
                source,
            });
        }
    };
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(KeyError::NotOwned { provider, path });
    }
    let mode = metadata.mode() & 0o777;
    let is_closed = mode.trailing_zeros() >= 6;
    if is_closed {
        Ok(())
    } else {
        Err(KeyError::Readable {
            provider,
            path,
            mode,
        })
    }
}

#[cfg(not(unix))]
fn check_file(_provider: &str, _path: &Path, _file: &File) -> Result<(), KeyError> {
    Ok(())
}

/// Extracts a key from text. No error message contains the text.
fn key_in(provider: &str, found: &str, text: &str) -> Result<String, KeyError> {
    let key = text.trim();
    if !key.is_empty() && key.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(key.to_owned());
    }
    Err(KeyError::NoKey {
        provider: provider.to_owned(),
        found: found.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_line_without_blanks() {
        for (text, expected) in [
            ("abc\n", Some("abc")),
            ("abc", Some("abc")),
            ("", None),
            (" \n", None),
            ("a b", None),
            ("a\nb", None),
            ("schlüssel", None),
        ] {
            let key = key_in("corp", "K", text);
            assert_eq!(key.as_deref().ok(), expected, "{text:?}");
            let error = key.err().map(|error| error.to_string());
            let is_quiet = |error: String| text.trim().is_empty() || !error.contains(text);
            assert!(error.is_none_or(is_quiet), "{text:?}");
        }
    }
}
