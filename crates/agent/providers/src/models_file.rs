//! The entries of the file `models.yaml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::facts::{Facts, Price};
use crate::key::KeySource;
use crate::script::PROVIDER;
use crate::service::Service;

/// Reports whether a string can be the base URL of a service: `http` or `https`, and a host.
pub fn is_base_url(text: &str) -> bool {
    let rest = ["http://", "https://"]
        .into_iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    let has_host = host
        .and_then(|host| host.rsplit('@').next())
        .is_some_and(|host| !host.is_empty() && !host.starts_with(':'));
    has_host && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// A service under a name that the user chose.
#[derive(Debug, Clone)]
pub(crate) struct NamedService {
    pub(crate) service: Service,
    pub(crate) base_url: Option<String>,
    pub(crate) key: KeySource,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ModelsFile {
    pub(crate) providers: BTreeMap<String, WrittenService>,
    pub(crate) models: BTreeMap<String, String>,
    pub(crate) facts: BTreeMap<String, WrittenFacts>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenService {
    service: String,
    base_url: Option<String>,
    key_env: Option<String>,
    key_file: Option<PathBuf>,
    // These keys are read only to refuse them with a helpful message. Their values are discarded.
    key: Option<IgnoredAny>,
    api_key: Option<IgnoredAny>,
    token: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenFacts {
    context_window: Option<u64>,
    price: Option<Price>,
}

impl WrittenService {
    /// Checks the entry called `name`. Paths of key files are resolved against `folder`.
    pub(crate) fn resolve(self, name: &str, folder: &Path) -> Result<NamedService, String> {
        if name.is_empty() || name == PROVIDER || name.contains([':', '/']) {
            return Err(format!(
                "`{name}` cannot be the name of a provider; expected one without `:` and `/`, other than `{PROVIDER}`"
            ));
        }
        let service = Service::named(&self.service).ok_or_else(|| {
            format!(
                "provider `{name}`: unknown service `{}`, expected one of {}",
                self.service,
                services()
            )
        })?;
        let key = match (self.key_env, self.key_file) {
            (Some(_), Some(_)) => {
                return Err(format!(
                    "provider `{name}`: expected one of `key_env` and `key_file`, found both"
                ));
            }
            (Some(variable), None) => KeySource::Variable(variable),
            (None, Some(path)) => KeySource::File(place_of(&path, folder)),
            (None, None) => KeySource::Usual,
        };
        if self.base_url.as_ref().is_some_and(|url| !is_base_url(url)) {
            // The message does not show the URL, which may contain a password.
            return Err(format!(
                "provider `{name}`: `base_url` is not a web address; expected one such as `https://host/v1`"
            ));
        }
        Ok(NamedService {
            service,
            base_url: self.base_url,
            key,
        })
    }

    pub(crate) fn has_key(&self) -> bool {
        self.key.is_some() || self.api_key.is_some() || self.token.is_some()
    }
}

impl WrittenFacts {
    pub(crate) fn check(self, model: &str) -> Result<Facts, String> {
        if !model.contains('/') {
            return Err(format!(
                "`facts` of `{model}`: expected `PROVIDER/MODEL` as the key"
            ));
        }
        if self.context_window == Some(0) {
            return Err(format!("the context window of `{model}` is 0"));
        }
        let Some(price) = self.price else {
            return Ok(Facts {
                context_window: self.context_window,
                price: None,
            });
        };
        let prices = [price.input, price.output]
            .into_iter()
            .chain(price.cached_input)
            .chain(price.cached_write);
        match prices
            .into_iter()
            .find(|price| !price.is_finite() || *price < 0.0)
        {
            Some(wrong) => Err(format!(
                "a price of `{model}` is {wrong}; expected US dollars per million tokens, at least 0"
            )),
            None => Ok(Facts {
                context_window: self.context_window,
                price: Some(price),
            }),
        }
    }
}

/// Resolves a path that the user wrote, against `folder` or, with `~`, the home directory.
fn place_of(path: &Path, folder: &Path) -> PathBuf {
    let home = path.strip_prefix("~").ok().zip(std::env::home_dir());
    match home {
        Some((below, home)) => home.join(below),
        None => folder.join(path),
    }
}

fn services() -> String {
    Service::ALL
        .map(|service| format!("`{service}`"))
        .join(", ")
}
