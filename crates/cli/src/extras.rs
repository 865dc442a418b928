//! What scripts and extensions bring to a session beside hooks: tools, commands and flags.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tenterhook_agent::extension::{
    ForeignCommand, ForeignTool, SchemaProblem, ScriptHost, Spelling,
};
use tenterhook_agent::{Tool as _, Toolbox};
use tenterhook_config::{FoundExtension, FoundScript};
use tenterhook_dialects::pi;
use tenterhook_handlers::worker::{Host, NoHost, Refusal};

use crate::error::CliError;
use crate::exit::Exit;
use crate::hooks::warn;
use crate::output;
use crate::safe::safe_line;
use crate::terminal::script_line;

/// How extensions of pi name and write what the agent has.
const SPELLING: Spelling = Spelling {
    entry: pi::entry,
    tool: pi::tool_name,
    own_tool: pi::own_tool_name,
};

/// A program without a session, which shows what scripts print.
#[derive(Debug)]
pub(crate) struct Listener;

impl Host for Listener {
    fn said(&self, worker: &str, line: &str) {
        output::note(script_line(worker, line));
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        NoHost.answer(method, params)
    }
}

/// What scripts and extensions have beside hooks.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    pub(crate) scripts: Vec<FoundScript>,
    pub(crate) extensions: Vec<FoundExtension>,
}

/// Makes what scripts see of the agent. Each of `flags` is `name`, or `name=value`.
pub(crate) fn host(has_ui: bool, flags: &[String]) -> Arc<ScriptHost> {
    let flags = flags.iter().map(|flag| {
        let (name, value) = flag.split_once('=').unwrap_or((flag, "true"));
        (name.to_owned(), value.into())
    });
    Arc::new(ScriptHost::new(has_ui, flags.collect(), SPELLING))
}

impl Extras {
    /// Refuses flags that no script has.
    pub(crate) fn check_flags(&self, flags: &[String]) -> Result<(), CliError> {
        let known = self.scripts.iter().flat_map(|script| &script.flags);
        let known: Vec<&str> = known.map(|flag| flag.name.as_str()).collect();
        for flag in flags {
            let name = flag.split_once('=').map_or(flag.as_str(), |(name, _)| name);
            if !known.contains(&name) {
                let message = format!("no script has a flag `{name}`");
                let error = CliError::new(Exit::Usage, message);
                return Err(if known.is_empty() {
                    error.hint("no script has any; `tenterhook list` shows the scripts that run")
                } else {
                    error.hint(format!("there are `{}`", known.join("`, `")))
                });
            }
        }
        Ok(())
    }

    /// Returns the agent's tools with those of scripts and extensions. One whose arguments cannot be checked is left out.
    pub(crate) fn toolbox(&self) -> Toolbox {
        let of_scripts = self.scripts.iter().flat_map(|script| {
            script.tools.iter().map(|tool| {
                ForeignTool::of_script(script.worker.clone(), script.lease.clone(), tool.clone())
            })
        });
        let of_processes = self.extensions.iter().flat_map(|found| {
            let tools = found.tools.iter();
            tools.map(|tool| ForeignTool::of_process(found.extension.clone(), tool.clone()))
        });
        let standard = Toolbox::standard();
        let usable = |made: Result<ForeignTool, SchemaProblem>| {
            made.map_err(|problem| {
                let problem = safe_line(&problem.to_string());
                warn(format_args!("{problem}; the agent runs without it"));
            })
            .ok()
        };
        let made = of_scripts.chain(of_processes);
        let tools: Vec<ForeignTool> = made.filter_map(usable).collect();
        for tool in &tools {
            if standard.get(tool.name()).is_some() {
                let name = safe_line(tool.name());
                warn(format_args!(
                    "an extension takes the place of the tool `{name}`"
                ));
            }
        }
        tools.into_iter().fold(standard, Toolbox::with)
    }

    /// Returns the names of the tools of scripts and extensions.
    pub(crate) fn tool_names(&self) -> Vec<String> {
        let scripts = self.scripts.iter().flat_map(|script| &script.tools);
        let scripts = scripts.map(|tool| tool.name.clone());
        let extensions = self.extensions.iter().flat_map(|found| &found.tools);
        scripts
            .chain(extensions.map(|tool| tool.name.clone()))
            .collect()
    }

    /// Returns the commands of scripts and extensions.
    pub(crate) fn commands(&self) -> Vec<ForeignCommand> {
        let of_scripts = self.scripts.iter().flat_map(|script| {
            script.commands.iter().map(|command| {
                let (worker, lease) = (script.worker.clone(), script.lease.clone());
                ForeignCommand::of_script(worker, lease, command.clone())
            })
        });
        let of_processes = self.extensions.iter().flat_map(|found| {
            let commands = found.commands.iter();
            commands
                .map(|command| ForeignCommand::of_process(found.extension.clone(), command.clone()))
        });
        of_scripts.chain(of_processes).collect()
    }
}
