//! The models of `tenterhook run`: the user's named models, and the model of the session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenterhook_agent::{AgentConfig, Models};
use tenterhook_discovery::Loaded;
use tenterhook_providers::{ConnectError, ExtensionProviders, ModelClients, OpenError, Providers};

use crate::agent;
use crate::agent_options::AgentOptions;
use crate::config_dir;
use crate::error::CliError;
use crate::exit::Exit;

/// The file of named models in the user's configuration folder.
const FILE: &str = "models.yaml";

/// Reads the user's names for services and models.
pub fn providers(config_dir: Option<&Path>) -> Result<Arc<Providers>, CliError> {
    let folder = config_dir::user(config_dir)?;
    let providers = folder.map(|folder: PathBuf| Providers::load(&folder.join(FILE)));
    let providers = providers.transpose();
    let providers = providers.map_err(|error| CliError::of(Exit::Config, &error))?;
    Ok(Arc::new(providers.unwrap_or_default()))
}

/// Gives an agent its model and the models that it may switch to, and lets model hooks use the same model. The model
/// is the option's, else the agent file's, else the one that the resumed session used last.
pub fn select_model(
    config: AgentConfig,
    options: &AgentOptions,
    loaded: &Loaded,
    (providers, judges, extensions): (&Providers, &Arc<ModelClients>, &Arc<ExtensionProviders>),
) -> Result<AgentConfig, CliError> {
    let of_file = agent::root(loaded).and_then(|agent| agent.model.as_deref());
    let recorded = config.recorded_model();
    let wanted = options.model.as_deref().or(of_file);
    let Some(name) = wanted.or(recorded.as_deref()) else {
        return Err(CliError::new(Exit::Usage, "no model given").hint(
            "pass `--model openai:gpt-4o`, or `--model scripted:FILE` for a scripted model",
        ));
    };
    let is_of_call = options.model.is_some();
    extensions.check(name).map_err(|error| {
        let exit = if is_of_call {
            Exit::Usage
        } else {
            Exit::Config
        };
        CliError::of(exit, &error).hint("choose a model with `--model`")
    })?;
    if let Some(url) = &options.base_url {
        let Some(provider) = providers.provider_of(name) else {
            return Err(CliError::new(
                Exit::Usage,
                "`--base-url` does not apply to a scripted model",
            )
            .hint("remove `--base-url`, or choose the model of a service with `--model`"));
        };
        judges.reach(provider, url);
    }
    let provider = extensions.open(name).map_err(|error| refusal(&error))?;
    judges.attach(&provider);
    let names = providers.model_names().map(str::to_owned);
    let opener = Arc::clone(extensions);
    let models = Models::new(names, move |name| Ok(opener.open(name)?))
        .with_extensions(Arc::clone(extensions));
    Ok(AgentConfig {
        model: Some(provider),
        model_name: Some(name.to_owned()),
        models,
        keeps_model: is_of_call,
        thinking: options.thinking,
        ..config
    })
}

fn refusal(error: &OpenError) -> CliError {
    let is_of_file = matches!(error, OpenError::Script(_));
    let exit = if is_of_file {
        Exit::Config
    } else {
        Exit::Failed
    };
    let message = CliError::of(exit, error);
    if let OpenError::Connect(ConnectError::NoKey { variable, .. }) = error {
        message.hint(format!(
            "set `{variable}`, or try a model without a key: `--model scripted:FILE`"
        ))
    } else {
        message
    }
}
