//! The file `models.yaml`: the user's own names for services and models, and facts about models.
//!
//! A key is never in this file. It is in an environment variable, or in a file that no one else can read.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::Url;
use thiserror::Error;

use crate::choice::{InvalidModel, ModelChoice, OpenError};
use crate::facts::Facts;
use crate::key::{KeyError, KeySource, key_of_file, key_of_variable};
use crate::models_file::{ModelsFile, NamedService};
use crate::provider::Provider;
use crate::remote::Remote;
use crate::script::PROVIDER;
use crate::service::{Endpoint, Service};
use crate::yaml_problem;

/// The word that stands for the next model where a user chooses one.
const NEXT: &str = "next";

/// The services and models that the user has named. It is empty by default.
///
/// ```yaml
/// providers:
///   corp: { service: openai, base_url: https://llm.example/v1, key_env: CORP_KEY }
///   home: { service: ollama, base_url: http://127.0.0.1:11434 }
/// models:
///   fast: corp/small
///   local: home/qwen3:8b
/// facts:
///   corp/small: { context_window: 32000, price: { input: 0.1, output: 0.4 } }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Providers {
    services: BTreeMap<String, NamedService>,
    models: BTreeMap<String, String>,
    facts: BTreeMap<String, Facts>,
}

/// The reasons why a file of providers cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProvidersError {
    /// The file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The text is not valid YAML with these keys.
    #[error("{name}: {message}")]
    Parse {
        /// The file, with line and column.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// The file contains a key.
    #[error(
        "{name}: the key of the provider `{provider}` is in the file; put the key into a variable or a file that only \
         you can read, and name it with `key_env` or `key_file`"
    )]
    Key {
        /// The file.
        name: String,
        /// The provider.
        provider: String,
    },
    /// An entry is invalid.
    #[error("{name}: {problem}")]
    Entry {
        /// The file.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// The service, the address and the key of a model.
pub(crate) struct Target<'a> {
    pub(crate) service: Service,
    /// The name of the service: the user's, or its own.
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
    pub(crate) endpoint: Endpoint,
}

/// The key of a provider, and the address to which it may be sent.
pub(crate) struct OwnKey {
    pub(crate) provider: String,
    pub(crate) key: String,
    pub(crate) url: Option<Url>,
}

/// The service and model that a name refers to.
struct Found<'a> {
    /// The name of the service: the user's, or its own.
    provider: &'a str,
    model: &'a str,
    named: &'a NamedService,
}

impl Providers {
    /// Reads a file of providers. A missing file counts as empty.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or is invalid.
    pub fn load(path: &Path) -> Result<Self, ProvidersError> {
        // Reading a named pipe would wait for a writer.
        let is_special = |found: std::fs::Metadata| !found.is_file() && !found.is_dir();
        let read = if std::fs::metadata(path).is_ok_and(is_special) {
            Err(io::Error::other("it is not a regular file"))
        } else {
            std::fs::read_to_string(path)
        };
        let text = match read {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => {
                let path = path.to_owned();
                return Err(ProvidersError::Read { path, source });
            }
        };
        let folder = path.parent().unwrap_or(Path::new("."));
        Self::parse(&path.display().to_string(), &text, folder)
    }

    /// Parses providers. Error messages use `name`, and paths of key files are resolved against `folder`.
    ///
    /// # Errors
    ///
    /// Fails if the text is invalid.
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Self, ProvidersError> {
        let written: ModelsFile = if text.trim().is_empty() {
            ModelsFile::default()
        } else {
            serde_saphyr::from_str(text).map_err(|error| {
                let (name, message) = yaml_problem::describe(name, &error);
                ProvidersError::Parse { name, message }
            })?
        };
        let refuse = |problem: String| ProvidersError::Entry {
            name: name.to_owned(),
            problem,
        };
        let mut providers = Self {
            models: written.models,
            ..Self::default()
        };
        for (provider, service) in written.providers {
            if service.has_key() {
                let name = name.to_owned();
                return Err(ProvidersError::Key { name, provider });
            }
            let named = service.resolve(&provider, folder).map_err(refuse)?;
            providers.services.insert(provider, named);
        }
        for (model, facts) in written.facts {
            let facts = facts.check(&model).map_err(refuse)?;
            providers.facts.insert(model, facts);
        }
        providers.check_models().map_err(refuse)?;
        Ok(providers)
    }

    fn check_models(&self) -> Result<(), String> {
        for (name, model) in &self.models {
            let is_word = !name.contains(|c: char| c.is_whitespace() || c.is_control());
            if name.is_empty() || name == NEXT || name.contains([':', '/']) || !is_word {
                return Err(format!(
                    "`{name}` cannot be the name of a model; expected a name without spaces, `:` and `/`, other than \
                     `{NEXT}`, which `/model` uses for the next model"
                ));
            }
            if self.models.contains_key(model) {
                return Err(format!(
                    "model `{name}` refers to the name `{model}`; expected `PROVIDER/MODEL`"
                ));
            }
            self.check(model)
                .map_err(|error| format!("model `{name}`: {error}"))?;
        }
        Ok(())
    }

    /// Returns the names of the models that the file lists, in alphabetical order.
    pub fn model_names(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(String::as_str)
    }

    /// Checks whether a string names a model, without opening it.
    ///
    /// # Errors
    ///
    /// Fails if the name is unknown.
    pub fn check(&self, text: &str) -> Result<(), InvalidModel> {
        let text = self.full_name(text);
        if self.find(text).is_some() {
            return Ok(());
        }
        self.choice(text).map(drop)
    }

    /// Returns the provider's name in a model's name; `None` for a script, or if the text names no provider.
    pub fn provider_of<'a>(&'a self, text: &'a str) -> Option<&'a str> {
        let (provider, _) = self.full_name(text).split_once([':', '/'])?;
        (provider != PROVIDER).then_some(provider)
    }

    /// Opens a model by a name in the file, by `PROVIDER/MODEL` with a provider in the file, or as a [`ModelChoice`].
    /// `base_url` takes precedence over the file and the environment variables, which are read through `variable`.
    ///
    /// # Errors
    ///
    /// Fails if the name is unknown, if its key cannot be read, or if the model cannot be used. No request is sent.
    pub fn open(
        &self,
        text: &str,
        base_url: Option<&str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Arc<dyn Provider>, OpenError> {
        let Some(target) = self.resolve(text, base_url, variable)? else {
            return self.choice(self.full_name(text))?.open(Endpoint::default());
        };
        let remote = Remote::connect(target.service, target.model, target.endpoint)?;
        let facts = self.facts_of(target.provider, target.model);
        Ok(Arc::new(remote.named(target.provider).with_facts(facts)))
    }

    /// Finds the service, the address and the key of a model; `None` for a scripted model.
    pub(crate) fn resolve<'a>(
        &'a self,
        text: &'a str,
        base_url: Option<&str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Target<'a>>, OpenError> {
        let text = self.full_name(text);
        let base_url = base_url.map(str::to_owned);
        if let Some(found) = self.find(text) {
            let (provider, named) = (found.provider, found.named);
            let mut endpoint = Endpoint {
                base_url: base_url.or(named.base_url.clone()),
                ..Endpoint::default()
            };
            endpoint.api_key = match &named.key {
                KeySource::Variable(name) => Some(key_of_variable(provider, name, variable)?),
                KeySource::File(path) => Some(key_of_file(provider, path)?),
                KeySource::Usual if endpoint.base_url.is_none() => {
                    Endpoint::from_variables(named.service, variable).api_key
                }
                KeySource::Usual => None,
            };
            return Ok(Some(Target {
                service: named.service,
                provider,
                model: found.model,
                endpoint,
            }));
        }
        let ModelChoice::Remote { service, .. } = self.choice(text)? else {
            return Ok(None);
        };
        let mut endpoint = Endpoint::from_variables(service, variable);
        endpoint.base_url = base_url.or(endpoint.base_url);
        let model = text.split_once([':', '/']).map_or("", |(_, model)| model);
        Ok(Some(Target {
            service,
            provider: service.as_str(),
            model,
            endpoint,
        }))
    }

    /// Returns the service of a provider.
    pub(crate) fn service_of(&self, provider: &str) -> Option<Service> {
        let named = self.services.get(provider);
        named.map_or_else(|| Service::named(provider), |named| Some(named.service))
    }

    /// Returns the environment variables that can hold a key of a provider.
    pub fn key_variables(&self) -> Vec<String> {
        let usual = Service::ALL.into_iter().filter_map(Service::key_variable);
        let mut variables: Vec<String> = usual.map(str::to_owned).collect();
        variables.extend(self.services.values().filter_map(|named| match &named.key {
            KeySource::Variable(variable) => Some(variable.clone()),
            KeySource::Usual | KeySource::File(_) => None,
        }));
        variables.sort();
        variables.dedup();
        variables
    }

    /// Returns the keys of all providers that have one.
    ///
    /// # Errors
    ///
    /// Fails if there is a key that cannot be read.
    pub(crate) fn keys(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Vec<OwnKey>, KeyError> {
        let services = Service::ALL.map(Service::as_str).into_iter();
        let providers = services.chain(self.services.keys().map(String::as_str));
        let key_of = |provider: &str| {
            let model = format!("{provider}/any");
            let target = match self.resolve(&model, None, variable) {
                Err(OpenError::Key(error)) if !error.is_absence() => return Some(Err(error)),
                resolved => resolved.ok()??,
            };
            let url = target.endpoint.base_url.as_deref();
            Some(Ok(OwnKey {
                provider: provider.to_owned(),
                key: target.endpoint.api_key?,
                url: target
                    .service
                    .complete_url(url.unwrap_or(target.service.default_url()))
                    .ok(),
            }))
        };
        providers.filter_map(key_of).collect()
    }

    pub(crate) fn facts_of(&self, provider: &str, model: &str) -> Facts {
        let facts = self.facts.get(&format!("{provider}/{model}"));
        facts.copied().unwrap_or_default()
    }

    fn full_name<'a>(&'a self, text: &'a str) -> &'a str {
        self.models.get(text).map_or(text, String::as_str)
    }

    fn find<'a>(&'a self, text: &'a str) -> Option<Found<'a>> {
        let (provider, model) = text.split_once([':', '/'])?;
        let named = self.services.get(provider)?;
        (!model.is_empty()).then_some(Found {
            provider,
            model,
            named,
        })
    }

    /// Parses a string that is not a name in the file. The error lists the file's names.
    fn choice(&self, text: &str) -> Result<ModelChoice, InvalidModel> {
        text.parse().map_err(|mut error: InvalidModel| {
            let own = self.services.keys().map(|name| format!(", `{name}`"));
            error.services.extend(own);
            error.names = self.models.keys().cloned().collect();
            error
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
providers:
  corp: { service: openai, base_url: 'http://127.0.0.1:1/v1', key_env: CORP_KEY }
  vault: { service: anthropic, key_file: key }
  home: { service: ollama }
models:
  fast: corp/small
  deep: vault:claude-sonnet-4-5
facts:
  corp/small: { context_window: 32000, price: { input: 0.1, output: 0.4 } }
  openai/gpt-4o: { price: { input: 1, output: 2 } }
";

    fn parse(text: &str) -> Result<Providers, ProvidersError> {
        Providers::parse("models.yaml", text, Path::new("/nowhere"))
    }

    fn set(name: &str) -> Option<String> {
        name.ends_with("KEY").then(|| "canary".to_owned())
    }

    #[test]
    fn names_stand_for_models_of_services() {
        let providers = parse(FILE).unwrap();
        for (text, id, window) in [
            ("fast", "corp/small", Some(32_000)),
            ("corp/small", "corp/small", Some(32_000)),
            ("corp:other", "corp/other", None),
            ("home/qwen3:8b", "home/qwen3:8b", None),
            ("openai:gpt-4o", "openai/gpt-4o", Some(128_000)),
        ] {
            let model = providers.open(text, None, &set).unwrap();
            assert_eq!(model.id().to_string(), id);
            assert_eq!(model.context_window(), window, "{text}");
            assert!(!format!("{model:?}").contains("canary"));
        }
        let price = providers.open("openai:gpt-4o", None, &set).unwrap();
        assert_eq!(price.price().unwrap().output.to_string(), "2");
        assert!(providers.model_names().eq(["deep", "fast"]));
        assert_eq!(providers.provider_of("fast"), Some("corp"));
        assert_eq!(providers.provider_of("scripted:a.yaml"), None);
    }

    #[test]
    fn what_is_no_name_says_which_there_are() {
        let error = parse(FILE).unwrap().check("nine").unwrap_err().to_string();
        for known in ["`nine`", "`anthropic`", "`corp`", "or `fast`"] {
            assert!(error.contains(known), "{error}");
        }
    }

    #[test]
    fn a_key_that_is_not_there_is_an_error_that_names_its_place() {
        let providers = parse(FILE).unwrap();
        let unset = |_: &str| None;
        let error = |text| providers.open(text, None, &unset).unwrap_err().to_string();
        assert_eq!(
            error("fast"),
            "there is no key for `corp`: `CORP_KEY` is not set"
        );
        assert!(error("deep").contains("cannot read the key of `vault` from `/nowhere/key`"));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_holds_no_key() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "canary\n").unwrap();
        let providers = Providers::parse("models.yaml", FILE, folder.path()).unwrap();
        for (mode, is_taken) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let opened = providers.open("deep", None, &|_| None);
            assert_eq!(opened.is_ok(), is_taken, "{mode:o}");
            if let Err(error) = opened {
                let error = error.to_string();
                assert!(
                    error.contains(&format!("mode {mode:o}, expected 600")),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn wrong_files_are_refused_in_words_that_help() {
        for (text, expected) in [
            (
                "providers: {corp: {service: openai, base_url: 'ftp://me:canary@host'}}",
                "provider `corp`: `base_url` is not a web address; expected one such as",
            ),
            (
                "models: {next: openai/gpt-4o}",
                "`next` cannot be the name of a model",
            ),
            (
                "models: {'a b': openai/gpt-4o}",
                "`a b` cannot be the name of a model",
            ),
            (
                "providers: {corp: {service: openai, api_key: canary}}",
                "the key of the provider `corp` is in the file; put the key into a variable",
            ),
            (
                "providers: {corp: {service: openai, key: [canary]}}",
                "`key_env` or `key_file`",
            ),
            (
                "providers: {corp: {service: acme}}",
                "unknown service `acme`, expected one of `openai`",
            ),
            ("providers: {corp: {}}", "service"),
            (
                "providers: {scripted: {service: openai}}",
                "`scripted` cannot be the name of a provider",
            ),
            (
                "providers: {a/b: {service: openai}}",
                "`a/b` cannot be the name of a provider",
            ),
            (
                "providers: {corp: {service: openai, key_env: A, key_file: b}}",
                "expected one of `key_env` and `key_file`, found both",
            ),
            (
                "models: {fast: nine/small}",
                "model `fast`: unknown model `nine/small`",
            ),
            (
                "models: {fast: slow, slow: openai/m}",
                "refers to the name `slow`",
            ),
            (
                "models: {'a:b': openai/m}",
                "`a:b` cannot be the name of a model",
            ),
            ("facts: {small: {}}", "expected `PROVIDER/MODEL`"),
            (
                "facts: {a/b: {context_window: 0}}",
                "the context window of `a/b` is 0",
            ),
            (
                "facts: {a/b: {price: {input: -1, output: 1}}}",
                "a price of `a/b` is -1; expected US dollars",
            ),
            ("facts: {a/b: {price: {input: 1}}}", "output"),
            ("provider: {}", "models.yaml:1:1: unknown key `provider`"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(error.starts_with("models.yaml:"), "{error}");
            assert!(!error.contains("canary"), "{error}");
        }
        assert!(parse("").is_ok() && parse("# nothing\n").is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_fifo_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.yaml");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let error = Providers::load(&path).unwrap_err();
        assert!(matches!(error, ProvidersError::Read { .. }), "{error}");
    }

    #[test]
    fn a_file_that_is_not_there_has_no_providers() {
        let providers = Providers::load(Path::new("/nowhere/models.yaml")).unwrap();
        assert_eq!(providers.model_names().count(), 0);
    }
}
