//! Reads the secrets of the channels without blocking the other tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenterhook_channel::channel_secrets::read_secrets;
use tenterhook_channel::chat::ChannelId;
use tenterhook_channel::secret::HiddenSecret;
use tenterhook_channel::settings::Settings;
use tenterhook_channel::token::Tokens;
use thiserror::Error;

/// Why the secrets cannot be used.
#[derive(Debug, Error)]
pub(crate) enum SecretsError {
    /// The settings or the secrets are wrong.
    #[error("{0}")]
    Settings(String),
    #[error("the secrets cannot be read")]
    Unreadable,
}

/// Reads the secrets of the channels that are enabled.
pub(crate) async fn read_channel_secrets(
    settings: &Arc<Settings>,
    tokens: &Tokens,
) -> Result<BTreeMap<ChannelId, HiddenSecret>, SecretsError> {
    let (settings, tokens) = (Arc::clone(settings), tokens.clone());
    let read = move || read_secrets(&settings, |text| tokens.check(text).is_ok());
    match tokio::task::spawn_blocking(read).await {
        Ok(Ok(secrets)) => Ok(secrets),
        Ok(Err(errors)) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            Err(SecretsError::Settings(errors.join("\n")))
        }
        Err(_) => Err(SecretsError::Unreadable),
    }
}
