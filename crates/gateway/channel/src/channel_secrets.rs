//! Reads the secrets of channels when the gateway starts, and refuses weak ones.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::Path;

use thiserror::Error;

use crate::chat::ChannelId;
use crate::secret::HiddenSecret;
use crate::settings::{ChannelKind, SecretSource, Settings};
use crate::token::TOKEN_PREFIX;

/// The minimum length of a key that the owner chooses, in bytes. A service chooses the length of its own tokens.
const MIN_KEY: usize = 32;
/// The maximum size of a file with a secret, in bytes.
const MAX_FILE: u64 = 4096;
/// What programs and people write when they have no secret.
const PLACEHOLDERS: [&str; 10] = [
    "undefined",
    "null",
    "none",
    "nil",
    "changeme",
    "secret",
    "password",
    "token",
    "todo",
    "test",
];

/// Why the secret of a channel cannot be used. It does not show the secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the secret of the channel `{channel}` {cause}")]
pub struct SecretError {
    /// The channel.
    pub channel: ChannelId,
    /// What is wrong with it.
    pub cause: String,
}

/// Who has chosen a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SecretKind {
    /// The service: the token of a bot.
    ServiceToken,
    /// The owner: the key of a signature.
    Key,
}

/// Reads the secrets of all channels that are enabled. `is_token` returns whether a text is an access token of the
/// gateway. Blocks while it reads files.
///
/// # Errors
///
/// Returns every secret that is missing, that others can read, that is weak, or that is used twice.
pub fn read_secrets(
    settings: &Settings,
    is_token: impl Fn(&str) -> bool,
) -> Result<BTreeMap<ChannelId, HiddenSecret>, Vec<SecretError>> {
    let mut secrets: BTreeMap<ChannelId, HiddenSecret> = BTreeMap::new();
    let mut errors = Vec::new();
    for channel in settings
        .channels
        .iter()
        .filter(|channel| channel.is_enabled)
    {
        let (source, kind) = match &channel.kind {
            ChannelKind::Telegram(telegram) => (&telegram.token, SecretKind::ServiceToken),
            ChannelKind::Webhook(webhook) => (&webhook.secret, SecretKind::Key),
            ChannelKind::Web | ChannelKind::Http | ChannelKind::Stdio | ChannelKind::Command(_) => {
                continue;
            }
        };
        let read = read_source(source, kind).and_then(|secret| {
            if secret.expose().starts_with(TOKEN_PREFIX) || is_token(secret.expose()) {
                return Err("is an access token of the gateway; use a secret of its own".to_owned());
            }
            match secrets.iter().find(|(_, known)| **known == secret) {
                Some((other, _)) => Err(format!(
                    "is also the secret of `{other}`; use a different one"
                )),
                None => Ok(secret),
            }
        });
        match read {
            Ok(secret) => drop(secrets.insert(channel.id.clone(), secret)),
            Err(cause) => errors.push(SecretError {
                channel: channel.id.clone(),
                cause,
            }),
        }
    }
    if errors.is_empty() {
        Ok(secrets)
    } else {
        Err(errors)
    }
}

fn read_source(source: &SecretSource, kind: SecretKind) -> Result<HiddenSecret, String> {
    let (text, place) = match source {
        SecretSource::Environment(name) => {
            let text = std::env::var(name).map_err(|error| match error {
                std::env::VarError::NotPresent => {
                    format!("is missing: the environment variable `{name}` is not set")
                }
                std::env::VarError::NotUnicode(_) => {
                    format!("is not text: see the environment variable `{name}`")
                }
            })?;
            (text, format!("the environment variable `{name}`"))
        }
        SecretSource::File(path) => {
            let place = format!("the file `{}`", path.display());
            let text = read_private(path)
                .map_err(|error| format!("cannot be read from {place}: {error}"))?;
            (text, place)
        }
    };
    let secret = text.trim_end_matches(['\r', '\n']);
    match weakness(secret, kind) {
        Some(weakness) => Err(format!("{weakness}: see {place}")),
        None => Ok(HiddenSecret::new(secret)),
    }
}

/// Reads a small regular file that only its owner can read.
fn read_private(path: &Path) -> io::Result<String> {
    // Opening a pipe would block, so look first. What was opened is checked again.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = std::fs::File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.len() > MAX_FILE {
        return Err(io::Error::other("it is larger than 4 KiB"));
    }
    check_private(&metadata)?;
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(text)
}

/// Refuses a file that others than its owner can read.
///
/// # Errors
///
/// Fails with the mode of the file and what to do about it.
#[cfg(unix)]
pub fn check_private(metadata: &std::fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = metadata.permissions().mode() & 0o777;
    let for_others = mode & 0o077;
    if for_others > 0 {
        let cause = format!("others can read it (its mode is {mode:04o}); run `chmod 600` on it");
        return Err(io::Error::other(cause));
    }
    Ok(())
}

/// Accepts every file: the system has no modes of files.
///
/// # Errors
///
/// Never fails.
#[cfg(not(unix))]
pub fn check_private(_metadata: &std::fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// Returns what is wrong with a secret.
fn weakness(secret: &str, kind: SecretKind) -> Option<String> {
    let letters = secret.chars().filter(|c| c.is_alphanumeric());
    let word: String = letters.flat_map(char::to_lowercase).collect();
    let mut different: Vec<_> = secret.bytes().collect();
    different.sort_unstable();
    different.dedup();
    if secret.trim().is_empty() {
        Some("is empty".to_owned())
    } else if secret.contains(|c: char| c.is_whitespace() || c.is_control()) {
        Some("contains a space, a line end or a control character".to_owned())
    } else if PLACEHOLDERS.contains(&word.as_str()) || different.len() < 4 {
        Some("is only a placeholder".to_owned())
    } else if kind == SecretKind::Key && secret.len() < MIN_KEY {
        Some(format!(
            "has {} bytes; expected at least {MIN_KEY}",
            secret.len()
        ))
    } else {
        None
    }
}
