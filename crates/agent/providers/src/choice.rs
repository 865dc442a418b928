//! Parses the user's choice of a model.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

use crate::key::KeyError;
use crate::provider::Provider;
use crate::remote::Remote;
use crate::script::{self, ScriptError};
use crate::scripted::Scripted;
use crate::service::{ConnectError, Endpoint, Service};

/// The user's choice of a model, as written on the command line.
///
/// | text | meaning |
/// |---|---|
/// | `scripted:FILE` | a file of turns, see [`Scripted`] |
/// | `openai:gpt-4o` | OpenAI, or any service with its protocol at the base URL |
/// | `anthropic:MODEL` | Anthropic |
/// | `gemini:MODEL` | Gemini |
/// | `ollama:MODEL` | Ollama |
///
/// You can write a slash instead of the colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelChoice {
    /// A file of turns.
    Scripted(PathBuf),
    /// A model of a service.
    Remote {
        /// The service.
        service: Service,
        /// The service's name for the model.
        model: String,
    },
}

/// The error for text that does not name a model.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "unknown model `{found}`: expected `scripted:FILE` or one of {services} followed by `:MODEL`{}",
    or_names(names)
)]
pub struct InvalidModel {
    /// The text.
    pub found: String,
    /// The available services, for the message.
    pub services: String,
    /// The names that the user has given to models.
    pub names: Vec<String>,
}

fn or_names(names: &[String]) -> String {
    let names = names.iter().map(|name| format!(", or `{name}`"));
    names.collect()
}

impl FromStr for ModelChoice {
    type Err = InvalidModel;

    fn from_str(text: &str) -> Result<Self, InvalidModel> {
        let invalid = || InvalidModel {
            found: text.to_owned(),
            services: Service::ALL
                .map(|service| format!("`{service}`"))
                .join(", "),
            names: Vec::new(),
        };
        let (provider, name) = text.split_once([':', '/']).ok_or_else(invalid)?;
        if name.is_empty() {
            return Err(invalid());
        }
        if provider == script::PROVIDER {
            return Ok(Self::Scripted(PathBuf::from(name)));
        }
        let service = Service::named(provider).ok_or_else(invalid)?;
        Ok(Self::Remote {
            service,
            model: name.to_owned(),
        })
    }
}

impl ModelChoice {
    /// Opens the model. Options that `endpoint` leaves unset get the service's defaults.
    ///
    /// # Errors
    ///
    /// Fails if the script cannot be read or the client cannot be created. No request is sent.
    pub fn open(&self, endpoint: Endpoint) -> Result<Arc<dyn Provider>, OpenError> {
        match self {
            Self::Scripted(path) => Ok(Arc::new(Scripted::load(path)?)),
            Self::Remote { service, model } => {
                Ok(Arc::new(Remote::connect(*service, model, endpoint)?))
            }
        }
    }
}

/// The reasons why a model cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text does not name a model.
    #[error(transparent)]
    Name(#[from] InvalidModel),
    /// The key cannot be read.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The script is invalid.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The service cannot be called.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_names_a_script_or_a_service() {
        let remote = |service, model: &str| ModelChoice::Remote {
            service,
            model: model.to_owned(),
        };
        for (text, expected) in [
            (
                "scripted:demo.yaml",
                ModelChoice::Scripted("demo.yaml".into()),
            ),
            (
                "scripted:/tmp/a:b.yaml",
                ModelChoice::Scripted("/tmp/a:b.yaml".into()),
            ),
            ("openai:gpt-4o", remote(Service::OpenAi, "gpt-4o")),
            ("openai/gpt-4o", remote(Service::OpenAi, "gpt-4o")),
            ("anthropic/claude", remote(Service::Anthropic, "claude")),
            ("gemini:flash", remote(Service::Gemini, "flash")),
            ("ollama:qwen3:8b", remote(Service::Ollama, "qwen3:8b")),
            ("openai:org/model", remote(Service::OpenAi, "org/model")),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_wrong_choice_names_what_is_allowed() {
        for text in ["gpt-4o", "acme:gpt", "openai:", ""] {
            let error = text.parse::<ModelChoice>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
            assert!(
                error.contains("`scripted:FILE`") && error.contains("`anthropic`"),
                "{error}"
            );
        }
    }
}
