//! Services by the user's own names, models by shorter ones, and what the user knows of them: the file `models.yaml`.
//!
//! A key never stands in the file. It is in an environment variable, or in a file that nobody else can read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use thiserror::Error;

use super::{
    Endpoint, Facts, InvalidModel, ModelChoice, OpenError, Price, Provider, Remote, Service,
};

/// The longest file that is read as a key, in bytes.
const MOST_KEY: u64 = 16 * 1024;

/// The names that the file may not give: they mean something already.
const SCRIPTED: &str = super::scripted::PROVIDER;

/// What stands for the next name, where a user chooses a model.
const NEXT: &str = "next";

/// Says whether a text can be the base URL of a service: `http` or `https`, and a host.
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

/// The services and models that the user has names for. The default is none.
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
    folder: PathBuf,
    services: BTreeMap<String, Named>,
    models: BTreeMap<String, String>,
    facts: BTreeMap<String, Facts>,
}

/// A service by a name of the user's.
#[derive(Debug, Clone)]
struct Named {
    service: Service,
    base_url: Option<String>,
    key: KeySource,
}

/// Where a key is.
#[derive(Debug, Clone)]
enum KeySource {
    /// Where the service's own programs look, if it is the service's own address.
    Usual,
    Variable(String),
    File(PathBuf),
}

/// A file of providers that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProvidersError {
    /// The file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The text is no such file.
    #[error("{name}: {message}")]
    Parse {
        /// The file.
        name: String,
        /// What is wrong, with line and column.
        message: String,
    },
    /// There is a key in the file.
    #[error(
        "{name}: the provider `{provider}` has its key in the file; put the key into a variable or a file that only you can read, and name it with `key_env` or `key_file`"
    )]
    Key {
        /// The file.
        name: String,
        /// The provider.
        provider: String,
    },
    /// An entry makes no sense.
    #[error("{name}: {problem}")]
    Entry {
        /// The file.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// A key that cannot be had.
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
        /// Why.
        source: io::Error,
    },
    /// Others can read the file.
    #[error(
        "the key of `{provider}` is in `{}`, which has mode {mode:03o}: expected 600; `chmod 600` makes it so", path.display()
    )]
    Readable {
        /// The provider.
        provider: String,
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file is somebody else's.
    #[error("the key of `{provider}` is in `{}`, which is not yours", path.display())]
    NotOwned {
        /// The provider.
        provider: String,
        /// The file.
        path: PathBuf,
    },
    /// What is there is no key.
    #[error("`{found}` holds no key for `{provider}`: expected one line without blanks")]
    NoKey {
        /// The provider.
        provider: String,
        /// Where it was looked for.
        found: String,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    providers: BTreeMap<String, WrittenService>,
    models: BTreeMap<String, String>,
    facts: BTreeMap<String, WrittenFacts>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenService {
    service: String,
    base_url: Option<String>,
    key_env: Option<String>,
    key_file: Option<PathBuf>,
    // Read to be refused in words that help; the value is thrown away.
    key: Option<IgnoredAny>,
    api_key: Option<IgnoredAny>,
    token: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFacts {
    context_window: Option<u64>,
    price: Option<Price>,
}

/// What a name of a model stands for.
struct Found<'a> {
    /// The name of the service, by the user or its own.
    provider: &'a str,
    model: &'a str,
    named: &'a Named,
}

impl Providers {
    /// Reads a file of providers. One that is not there has none.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or makes no sense.
    pub fn load(path: &Path) -> Result<Self, ProvidersError> {
        // Reading a FIFO would wait for a writer.
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

    /// Reads providers from text; `name` stands in error messages, and files of keys are looked for from `folder` on.
    ///
    /// # Errors
    ///
    /// Fails if the text makes no sense.
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Self, ProvidersError> {
        let written: Written = if text.trim().is_empty() {
            Written::default()
        } else {
            serde_saphyr::from_str(text).map_err(|error| ProvidersError::Parse {
                name: name.to_owned(),
                message: error.without_snippet().to_string(),
            })?
        };
        let refuse = |problem: String| ProvidersError::Entry {
            name: name.to_owned(),
            problem,
        };
        let mut providers = Self {
            folder: folder.to_owned(),
            models: written.models,
            ..Self::default()
        };
        for (provider, service) in written.providers {
            if service.has_key() {
                let name = name.to_owned();
                return Err(ProvidersError::Key { name, provider });
            }
            let named = providers.named(&provider, service).map_err(refuse)?;
            providers.services.insert(provider, named);
        }
        for (model, facts) in written.facts {
            let facts = facts.check(&model).map_err(refuse)?;
            providers.facts.insert(model, facts);
        }
        providers.check_models().map_err(refuse)?;
        Ok(providers)
    }

    fn named(&self, name: &str, written: WrittenService) -> Result<Named, String> {
        if name.is_empty() || name == SCRIPTED || name.contains([':', '/']) {
            return Err(format!(
                "`{name}` cannot be the name of a provider: expected one without `:` and `/`, and not `{SCRIPTED}`"
            ));
        }
        let service = service_of(&written.service).ok_or_else(|| {
            format!(
                "provider `{name}`: there is no service `{}`, expected one of {}",
                written.service,
                services()
            )
        })?;
        let key = match (written.key_env, written.key_file) {
            (Some(_), Some(_)) => {
                return Err(format!(
                    "provider `{name}`: expected one of `key_env` and `key_file`, found both"
                ));
            }
            (Some(variable), None) => KeySource::Variable(variable),
            (None, Some(path)) => KeySource::File(self.place_of(&path)),
            (None, None) => KeySource::Usual,
        };
        if written
            .base_url
            .as_ref()
            .is_some_and(|url| !is_base_url(url))
        {
            // It is not shown: somebody may have written a password into it.
            return Err(format!(
                "provider `{name}`: `base_url` is no URL of a web service, expected one such as `https://host/v1`"
            ));
        }
        Ok(Named {
            service,
            base_url: written.base_url,
            key,
        })
    }

    /// Returns where a file is that the user names: from the file of providers on, or from home.
    fn place_of(&self, path: &Path) -> PathBuf {
        let home = path.strip_prefix("~").ok().zip(std::env::home_dir());
        match home {
            Some((below, home)) => home.join(below),
            None => self.folder.join(path),
        }
    }

    fn check_models(&self) -> Result<(), String> {
        for (name, model) in &self.models {
            let is_word = !name.contains(|c: char| c.is_whitespace() || c.is_control());
            if name.is_empty() || name == NEXT || name.contains([':', '/']) || !is_word {
                return Err(format!(
                    "`{name}` cannot be the name of a model: expected one without blanks, `:` and `/`, and not `{NEXT}`, which `/model` takes for the next one"
                ));
            }
            if self.models.contains_key(model) {
                return Err(format!(
                    "model `{name}` stands for the name `{model}`: expected `PROVIDER/MODEL`"
                ));
            }
            self.check(model)
                .map_err(|error| format!("model `{name}`: {error}"))?;
        }
        Ok(())
    }

    /// Returns the names of the models that the file lists, in the order of the alphabet.
    pub fn model_names(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(String::as_str)
    }

    /// Says whether a text names a model, without opening it.
    ///
    /// # Errors
    ///
    /// Fails if it does not.
    pub fn check(&self, text: &str) -> Result<(), InvalidModel> {
        let text = self.full_name(text);
        if self.find(text).is_some() {
            return Ok(());
        }
        self.choice(text).map(drop)
    }

    /// Returns the name of the provider that a text names a model of; `None` is a script, or nothing.
    pub fn provider_of<'a>(&'a self, text: &'a str) -> Option<&'a str> {
        let (provider, _) = self.full_name(text).split_once([':', '/'])?;
        (provider != SCRIPTED).then_some(provider)
    }

    /// Opens the model that a text names: a name of the file, `PROVIDER/MODEL` with a provider of the file, or what is
    /// understood [without one](ModelChoice). `base_url` counts before the file and the variables; these are read
    /// through `variable`.
    ///
    /// # Errors
    ///
    /// Fails if the text names no model, if its key cannot be had, and if the model cannot be used. No request is sent.
    pub fn open(
        &self,
        text: &str,
        base_url: Option<&str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Arc<dyn Provider>, OpenError> {
        let text = self.full_name(text);
        let Some(found) = self.find(text) else {
            return self.open_choice(&self.choice(text)?, base_url, variable);
        };
        let Found {
            provider,
            model,
            named,
        } = found;
        let mut endpoint = Endpoint {
            base_url: base_url.map(str::to_owned).or(named.base_url.clone()),
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
        let remote = Remote::connect(named.service, model, endpoint)?.named(provider);
        Ok(Arc::new(remote.with_facts(self.facts_of(provider, model))))
    }

    fn open_choice(
        &self,
        choice: &ModelChoice,
        base_url: Option<&str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Arc<dyn Provider>, OpenError> {
        let ModelChoice::Remote { service, model } = choice else {
            return choice.open(Endpoint::default());
        };
        let mut endpoint = Endpoint::from_variables(*service, variable);
        endpoint.base_url = base_url.map(str::to_owned).or(endpoint.base_url);
        let remote = Remote::connect(*service, model, endpoint)?;
        let facts = self.facts_of(service.as_str(), model);
        Ok(Arc::new(remote.with_facts(facts)))
    }

    fn facts_of(&self, provider: &str, model: &str) -> Facts {
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

    /// Reads a text that is no name of the file; the error knows the file's names.
    fn choice(&self, text: &str) -> Result<ModelChoice, InvalidModel> {
        text.parse().map_err(|mut error: InvalidModel| {
            let own = self.services.keys().map(|name| format!(", `{name}`"));
            error.services.extend(own);
            error.names = self.models.keys().cloned().collect();
            error
        })
    }
}

impl WrittenService {
    fn has_key(&self) -> bool {
        self.key.is_some() || self.api_key.is_some() || self.token.is_some()
    }
}

impl WrittenFacts {
    fn check(self, model: &str) -> Result<Facts, String> {
        if !model.contains('/') {
            return Err(format!(
                "`facts` of `{model}`: expected `PROVIDER/MODEL`, as models are reported"
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
                "a price of `{model}` is {wrong}: expected US dollars for a million tokens"
            )),
            None => Ok(Facts {
                context_window: self.context_window,
                price: Some(price),
            }),
        }
    }
}

fn service_of(name: &str) -> Option<Service> {
    Service::ALL
        .into_iter()
        .find(|service| service.as_str() == name)
}

fn services() -> String {
    Service::ALL
        .map(|service| format!("`{service}`"))
        .join(", ")
}

fn key_of_variable(
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

fn key_of_file(provider: &str, path: &Path) -> Result<String, KeyError> {
    let refused = |source| KeyError::Read {
        provider: provider.to_owned(),
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(refused)?;
    // What is read is what was looked at, whatever is put there in between.
    check_file(provider, path, &file)?;
    let mut text = String::new();
    file.take(MOST_KEY)
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

/// Takes a key out of what was found. The text is in no error.
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
                    error.contains(&format!("mode {mode:o}: expected 600")),
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
                "provider `corp`: `base_url` is no URL of a web service, expected one such as",
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
                "the provider `corp` has its key in the file; put the key into a variable",
            ),
            (
                "providers: {corp: {service: openai, key: [canary]}}",
                "`key_env` or `key_file`",
            ),
            (
                "providers: {corp: {service: acme}}",
                "there is no service `acme`, expected one of `openai`",
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
                "model `fast`: `nine/small` names no model",
            ),
            (
                "models: {fast: slow, slow: openai/m}",
                "stands for the name `slow`",
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
                "a price of `a/b` is -1: expected US dollars",
            ),
            ("facts: {a/b: {price: {input: 1}}}", "output"),
            ("provider: {}", "line 1"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(error.starts_with("models.yaml: "), "{error}");
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
