//! The model services: their names, addresses and keys.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use genai::adapter::AdapterKind;
use reqwest::Url;
use thiserror::Error;

/// A model service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// OpenAI, and every service with its chat protocol.
    OpenAi,
    /// A service with OpenAI's protocol of responses. Only scripts name it.
    OpenAiResponses,
    /// Anthropic.
    Anthropic,
    /// Gemini.
    Gemini,
    /// Ollama.
    Ollama,
}

impl Service {
    /// Every service that users name.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// Returns the name in model ids and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Returns the service with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|service| service.as_str() == name)
    }

    /// Returns the service with this name, which a script uses.
    #[cfg(unix)]
    pub(crate) fn named_by_script(name: &str) -> Option<Self> {
        let responses = (name == Self::OpenAiResponses.as_str()).then_some(Self::OpenAiResponses);
        responses.or_else(|| Self::named(name))
    }

    /// Returns the environment variable that holds the key, if the service uses keys.
    pub const fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::OpenAi | Self::OpenAiResponses => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Ollama => None,
        }
    }

    /// Returns the environment variable that holds the base URL.
    pub const fn url_variable(self) -> &'static str {
        match self {
            Self::OpenAi | Self::OpenAiResponses => "OPENAI_BASE_URL",
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::Gemini => "GEMINI_BASE_URL",
            Self::Ollama => "OLLAMA_HOST",
        }
    }

    pub(crate) const fn default_url(self) -> &'static str {
        match self {
            Self::OpenAi | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Ollama => "http://localhost:11434",
        }
    }

    pub(crate) const fn adapter(self) -> AdapterKind {
        match self {
            Self::OpenAi => AdapterKind::OpenAI,
            Self::OpenAiResponses => AdapterKind::OpenAIResp,
            Self::Anthropic => AdapterKind::Anthropic,
            Self::Gemini => AdapterKind::Gemini,
            Self::Ollama => AdapterKind::Ollama,
        }
    }

    /// Returns the URL to which paths are appended. Like the services' own programs, it accepts a base URL with or
    /// without the version and the scheme.
    pub(crate) fn complete_url(self, given: &str) -> Result<Url, ConnectError> {
        let given = given.trim_end_matches('/');
        let mut url = if given.contains("://") {
            given.to_owned()
        } else {
            format!("http://{given}")
        };
        match self {
            Self::Anthropic if !url.ends_with("/v1") => url.push_str("/v1"),
            Self::Gemini if !url.contains("/v1") => url.push_str("/v1beta"),
            Self::Ollama => url.truncate(url.strip_suffix("/v1").map_or(url.len(), str::len)),
            Self::OpenAi | Self::OpenAiResponses | Self::Anthropic | Self::Gemini => {}
        }
        url.push('/');
        Url::parse(&url).map_err(|_| ConnectError::BaseUrl {
            found: given.to_owned(),
        })
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The address of a service, and the key for it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Endpoint {
    /// The base URL; `None` for the service's own.
    pub base_url: Option<String>,
    /// The key. A service at another base URL may need none.
    pub api_key: Option<String>,
    /// Headers that are sent in addition to the service's own. They may contain credentials.
    pub headers: BTreeMap<String, String>,
    /// How long the service may take to start an answer; `None` for two minutes.
    pub header_timeout: Option<Duration>,
}

impl Endpoint {
    /// Reads the endpoint of `service` from environment variables, such as `OPENAI_BASE_URL` and
    /// `OPENAI_API_KEY`. Empty variables count as unset.
    pub fn from_variables(service: Service, variable: impl Fn(&str) -> Option<String>) -> Self {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        Self {
            base_url: variable(service.url_variable()),
            api_key: service.key_variable().and_then(variable),
            ..Self::default()
        }
    }
}

/// Shows whether there is a key, but never the key. Of headers, it shows the names.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("base_url", &self.base_url)
            .field("has_key", &self.api_key.is_some())
            .field("headers", &self.headers.keys())
            .field("header_timeout", &self.header_timeout)
            .finish()
    }
}

/// The reasons why a service cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is no key.
    #[error("there is no key for `{service}`: `{variable}` is not set")]
    NoKey {
        /// The service.
        service: Service,
        /// The variable that holds the key.
        variable: &'static str,
    },
    /// The base URL is invalid.
    #[error("`{found}` is not a valid base URL")]
    BaseUrl {
        /// The URL.
        found: String,
    },
    /// The HTTP client cannot be created.
    #[error("cannot create the HTTP client")]
    Client(#[source] reqwest::Error),
    /// TLS cannot be set up, for example because this machine has no root certificates.
    #[error("cannot set up TLS")]
    Tls(#[source] tenterhook_runners::http::ClientTlsError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_completed() {
        for (service, given, expected) in [
            (
                Service::OpenAi,
                "http://127.0.0.1:9/v1",
                "http://127.0.0.1:9/v1/",
            ),
            (
                Service::OpenAi,
                "http://127.0.0.1:9/",
                "http://127.0.0.1:9/",
            ),
            (
                Service::Anthropic,
                "https://api.anthropic.com",
                "https://api.anthropic.com/v1/",
            ),
            (
                Service::Anthropic,
                "https://x.test/v1/",
                "https://x.test/v1/",
            ),
            (Service::Gemini, "https://x.test", "https://x.test/v1beta/"),
            (
                Service::Ollama,
                "127.0.0.1:11434",
                "http://127.0.0.1:11434/",
            ),
            (
                Service::Ollama,
                "http://localhost:11434/v1",
                "http://localhost:11434/",
            ),
        ] {
            assert_eq!(service.complete_url(given).unwrap().as_str(), expected);
        }
        let error = Service::OpenAi.complete_url("not a url").unwrap_err();
        assert_eq!(error.to_string(), "`not a url` is not a valid base URL");
    }
}
