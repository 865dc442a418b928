//! The configuration of an agent: what agent files, permission rules and options say.

use std::sync::Arc;

use tenterhook_agent::{Agent, AgentConfig, AgentLimits, AgentRestrictions, AgentSpec, Frontend};
use tenterhook_builtins::ResponseCache;
use tenterhook_discovery::Loaded;
use tenterhook_engine::{Engine, HookSpec};
use tenterhook_hookfile::{AgentDefinition, AgentFile};

use crate::agent_options::AgentOptions;
use crate::data_dir::data_dir;
use crate::error::CliError;
use crate::exit::Exit;
use crate::{config_dir, rules, session_store};

/// Returns the agent that the agent files make the main one.
pub fn root(loaded: &Loaded) -> Option<&AgentDefinition> {
    file_of_root(loaded).and_then(AgentFile::root)
}

/// Returns the agent file whose agents run.
fn file_of_root(loaded: &Loaded) -> Option<&AgentFile> {
    loaded.agent_files.iter().find(|file| file.root().is_some())
}

/// Returns the limits of the main agent.
fn limits(options: &AgentOptions, loaded: &Loaded) -> AgentLimits {
    let defaults = AgentLimits::default();
    AgentLimits {
        max_iterations: options
            .max_iterations
            .or_else(|| root(loaded)?.max_iterations)
            .unwrap_or(defaults.max_iterations),
        repeated_calls: root(loaded)
            .and_then(|root| root.max_consecutive_tool_calls)
            .unwrap_or(defaults.repeated_calls),
        compact_at: options.compact_at,
        token_budget: options.token_budget,
        ..defaults
    }
}

/// Returns the configuration of the main agent. The session, the model, the tools and the templates are added by others.
pub fn config(
    options: &AgentOptions,
    loaded: &Loaded,
    frontend: Arc<dyn Frontend>,
) -> Result<AgentConfig, CliError> {
    let cwd = session_store::absolute(&options.cwd)?;
    if !cwd.is_dir() {
        let message = format!("`{}` is not a directory", cwd.display());
        return Err(
            CliError::new(Exit::Usage, message).hint("name the folder to work in with `--cwd DIR`")
        );
    }
    let permissions = rules::permissions(options, loaded)?;
    let workspace = config_dir::workspace(&options.hooks.place)?;
    let mut config = AgentConfig {
        cwd,
        permissions,
        limits: limits(options, loaded),
        frontend,
        agents: subagents(loaded),
        has_background_tasks: true,
        workspace: workspace.map(|workspace| workspace.as_str().to_owned()),
        responses: responses(loaded),
        ..AgentConfig::default()
    };
    if let Some(root) = root(loaded) {
        config.name.clone_from(&root.name);
        config.tools = rules::tools(root, true);
        if let Some(instruction) = &root.instruction {
            config.instruction.clone_from(instruction);
        }
        // The limits above already include the root agent's, which may be larger than the defaults.
        let own = AgentRestrictions {
            max_iterations: None,
            repeated_calls: None,
            ..rules::restrictions(root)?
        };
        config.restrict(&root.name, own);
    }
    let file = file_of_root(loaded);
    let others = file.into_iter().flat_map(|file| &file.agents);
    for agent in others.filter(|agent| root(loaded).is_some_and(|root| root.name != agent.name)) {
        config.restrict(&agent.name, rules::restrictions(agent)?);
    }
    Ok(config)
}

/// Builds an agent, and checks its permission rules.
pub fn build(
    options: &AgentOptions,
    config: AgentConfig,
    engine: Engine,
) -> Result<Agent, CliError> {
    let agent = config
        .build(engine)
        .map_err(|error| CliError::of(Exit::Config, &error))?;
    rules::check(options, &agent)?;
    Ok(agent)
}

/// Returns the cache of answers, if a hook fills it.
fn responses(loaded: &Loaded) -> Option<ResponseCache> {
    let fills = |spec: &HookSpec| {
        spec.handling.kind() == "builtin" && spec.handling.describe() == "cache_response"
    };
    let is_filled = loaded.specs.iter().any(fills);
    is_filled
        .then(data_dir)
        .flatten()
        .map(|dir| ResponseCache::new(&dir))
}

/// Returns the agents that the root agent may give tasks to: the agents it names, else all other agents of its file,
/// else a copy of itself.
fn subagents(loaded: &Loaded) -> Vec<AgentSpec> {
    let file = file_of_root(loaded);
    let root = file.and_then(AgentFile::root);
    let others = file
        .into_iter()
        .flat_map(|file| &file.agents)
        .filter(|agent| {
            root.is_some_and(|root| {
                agent.name != root.name
                    && (root.sub_agents.is_empty() || root.sub_agents.contains(&agent.name))
            })
        });
    let others: Vec<AgentSpec> = others.map(subagent).collect();
    if others.is_empty() {
        vec![copy_of(root)]
    } else {
        others
    }
}

/// Returns a copy of the root agent that works on separate tasks.
fn copy_of(root: Option<&AgentDefinition>) -> AgentSpec {
    let taken = root.map_or(Agent::DEFAULT_NAME, |root| &root.name);
    let name = ["helper", "second_helper"]
        .into_iter()
        .find(|name| *name != taken);
    AgentSpec {
        name: name.unwrap_or_default().to_owned(),
        description: "A copy of you that works on a separate task.".to_owned(),
        instruction: root
            .and_then(|root| root.instruction.clone())
            .unwrap_or_default(),
        tools: root.and_then(|root| rules::tools(root, true)),
    }
}

fn subagent(agent: &AgentDefinition) -> AgentSpec {
    AgentSpec {
        name: agent.name.clone(),
        description: agent.description.clone().unwrap_or_default(),
        instruction: agent.instruction.clone().unwrap_or_default(),
        tools: rules::tools(agent, !agent.sub_agents.is_empty()),
    }
}
