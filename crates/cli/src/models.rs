//! The models of `tenterhook run`: those that the user has names for, and the one that a session is led with.

use std::path::PathBuf;
use std::sync::Arc;

use tenterhook_agent::provider::{ConnectError, Judges, OpenError, Providers};
use tenterhook_agent::{AgentBuilder, Models};
use tenterhook_config::AgentDefinition;

use crate::args::{ConfigArgs, RunArgs};
use crate::config_dir;
use crate::error::CliError;
use crate::exit::Exit;

/// The file in the user's folder.
const FILE: &str = "models.yaml";

/// Reads the names that the user has for services and models.
pub(crate) fn providers(args: &ConfigArgs) -> Result<Arc<Providers>, CliError> {
    let folder = config_dir::user(args)?;
    let providers = folder.map(|folder: PathBuf| Providers::load(&folder.join(FILE)));
    let providers = providers.transpose();
    let providers = providers.map_err(|error| CliError::of(Exit::Config, &error))?;
    Ok(Arc::new(providers.unwrap_or_default()))
}

/// Gives an agent its model and those that it may choose, and makes the model known to those of hooks. `noted` is the
/// name of the one that the session was led with before.
pub(crate) fn give(
    builder: AgentBuilder,
    args: &RunArgs,
    root: Option<&AgentDefinition>,
    noted: Option<&str>,
    (providers, judges): (&Providers, &Arc<Judges>),
) -> Result<AgentBuilder, CliError> {
    let of_file = root.and_then(|agent| agent.model.as_deref());
    let Some(name) = args.model.as_deref().or(of_file).or(noted) else {
        return Err(CliError::new(Exit::Usage, "no model is chosen")
            .hint("pass `--model scripted:FILE` for a scripted one, or `--model openai:gpt-4o`"));
    };
    let is_of_call = args.model.is_some();
    providers.check(name).map_err(|error| {
        let exit = if is_of_call {
            Exit::Usage
        } else {
            Exit::Config
        };
        CliError::of(exit, &error).hint("choose a model with `--model`")
    })?;
    if let Some(url) = &args.base_url {
        let Some(provider) = providers.provider_of(name) else {
            return Err(CliError::new(
                Exit::Usage,
                "`--base-url` has no meaning for a scripted model",
            )
            .hint("leave it out, or choose a model of a service with `--model`"));
        };
        judges.reach(provider, url);
    }
    let provider = judges.open(name).map_err(|error| refusal(&error))?;
    judges.attach(&provider);
    let names = providers.model_names().map(str::to_owned);
    let opener = Arc::clone(judges);
    let models = Models::new(names, move |name| Ok(opener.open(name)?));
    let mut builder = builder.model(provider).model_name(name).models(models);
    if is_of_call {
        builder = builder.keep_model();
    }
    if let Some(level) = args.thinking {
        builder = builder.thinking(level);
    }
    Ok(builder)
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
