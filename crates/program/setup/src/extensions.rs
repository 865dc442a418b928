//! The tools, commands and flags that scripts and extensions add to a session. Their hooks are in `hooks.rs`.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tenterhook_agent::extension::{
    ArgumentSchemaError, ForeignCommand, ForeignTool, ScriptHost, Spelling, add_script_tool,
};
use tenterhook_agent::{Tool as _, Toolbox};
use tenterhook_discovery::{Additions, FoundExtension, FoundScript};
use tenterhook_engine::JsonObject;
use tenterhook_providers::{ExtensionProviders, ModelClients};
use tenterhook_runners::Services;
use tenterhook_runners::worker::{
    Host, NoHost, RecordingHost, Refusal, ScriptAddition, ScriptServer,
};
use tenterhook_systems::pi;

use crate::error::CliError;
use crate::exit::Exit;
use crate::warning::{show_output, warn};
use tenterhook_protocol::escape::escape_line;

/// How pi extensions name the agent's tools and write its session entries.
const SPELLING: Spelling = Spelling {
    entry: pi::entry,
    tool: pi::tool_name,
    own_tool: pi::own_tool_name,
    replaced: pi::replaced_tool,
    replaced_input: pi::replaced_input,
};

/// The host of scripts outside a session. It only shows what they print, as a notice.
#[derive(Debug, Default)]
pub struct PrintingHost {
    /// Whether gates of a script deny if the script failed when it was loaded.
    pub is_strict: bool,
}

impl Host for PrintingHost {
    fn has_ui(&self) -> bool {
        NoHost.has_ui()
    }

    fn is_strict(&self) -> bool {
        self.is_strict
    }

    fn flags(&self) -> JsonObject {
        NoHost.flags()
    }

    fn script_session(&self, session: &str) -> Option<String> {
        NoHost.script_session(session)
    }

    fn main_session(&self, session: &str) -> Option<String> {
        NoHost.main_session(session)
    }

    fn on_output(&self, worker: &str, line: &str) {
        show_output(worker, line);
    }

    fn add(
        &self,
        script: Arc<dyn ScriptServer>,
        addition: ScriptAddition,
        session: Option<&str>,
    ) -> Result<(), Refusal> {
        NoHost.add(script, addition, session)
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        NoHost.answer(method, params)
    }
}

/// The scripts and extensions of a session.
#[derive(Debug, Default)]
pub struct SessionExtensions {
    /// The scripts.
    pub scripts: Vec<FoundScript>,
    /// The extensions.
    pub extensions: Vec<FoundExtension>,
}

/// Adds a host that records what scripts print, in front of `inner`, to the services of a call.
pub fn recorded(inner: Arc<dyn Host>, services: Services) -> (Arc<RecordingHost>, Services) {
    let host = Arc::new(RecordingHost::new(inner));
    let scripts = Some(Arc::clone(&host) as _);
    (
        host,
        Services {
            scripts,
            ..services
        },
    )
}

/// Creates the host that scripts talk to. Each of `flags` is `name` or `name=value`.
pub fn host(has_ui: bool, flags: &[String]) -> ScriptHost {
    let flags = flags.iter().map(|flag| {
        let (name, value) = flag.split_once('=').unwrap_or((flag, "true"));
        (name.to_owned(), value.into())
    });
    ScriptHost::new(has_ui, flags.collect(), SPELLING)
}

impl SessionExtensions {
    /// Refuses flags that no script registers.
    pub fn check_flags(&self, flags: &[String]) -> Result<(), CliError> {
        let known = self.scripts.iter().flat_map(|script| &script.flags);
        let known: Vec<&str> = known.map(|flag| flag.name.as_str()).collect();
        for flag in flags {
            let name = flag.split_once('=').map_or(flag.as_str(), |(name, _)| name);
            if !known.contains(&name) {
                let message = format!("unknown flag `{name}`");
                let error = CliError::new(Exit::Usage, message);
                return Err(if known.is_empty() {
                    error.hint(
                        "no script registers a flag; `tenterhook list` shows the scripts that run",
                    )
                } else {
                    error.hint(format!("available: `{}`", known.join("`, `")))
                });
            }
        }
        Ok(())
    }

    /// Returns the agent's tools and the tools of scripts and extensions. A tool whose schema is invalid is left out,
    /// because its arguments could not be checked.
    pub fn toolbox(&self) -> Toolbox {
        self.add_to(&Toolbox::standard())
    }

    /// Adds the tools of scripts and extensions to `standard`, as [`toolbox`](Self::toolbox) does.
    pub fn add_to(&self, standard: &Toolbox) -> Toolbox {
        let of_scripts = self.scripts.iter().flat_map(|script| {
            let server: Arc<dyn ScriptServer> = Arc::clone(&script.in_force) as _;
            let tools = script.tools.iter();
            tools.map(move |tool| ForeignTool::of_script(Arc::clone(&server), tool.clone()))
        });
        let of_processes = self.extensions.iter().flat_map(|found| {
            let tools = found.tools.iter();
            tools.map(|tool| ForeignTool::of_process(Arc::clone(&found.in_force), tool.clone()))
        });
        let usable = |made: Result<ForeignTool, ArgumentSchemaError>| {
            made.map_err(|problem| {
                let problem = escape_line(&problem.to_string());
                warn(format_args!("{problem}; the agent runs without it"));
            })
            .ok()
        };
        let of_scripts: Vec<ForeignTool> = of_scripts.filter_map(usable).collect();
        let of_processes: Vec<ForeignTool> = of_processes.filter_map(usable).collect();
        let own = Spelling::default();
        let of_scripts = of_scripts.into_iter().map(|tool| (tool, &SPELLING));
        let of_processes = of_processes.into_iter().map(|tool| (tool, &own));
        let mut toolbox = standard.clone();
        for (tool, spelling) in of_scripts.chain(of_processes) {
            let own_name = (spelling.own_tool)(tool.name());
            if standard.get(own_name).is_some() {
                let name = escape_line(own_name);
                warn(format_args!("an extension replaces the tool `{name}`"));
            }
            toolbox = add_script_tool(toolbox, tool, spelling);
        }
        toolbox
    }

    /// Returns the providers of models that scripts register. Warns about changes of the user's own providers.
    pub fn providers(&self, clients: &Arc<ModelClients>) -> Arc<ExtensionProviders> {
        let of_script =
            |it: &FoundScript| (it.providers.clone(), it.worker.clone(), it.lease.clone());
        let scripts = self.scripts.iter().map(of_script);
        let providers = ExtensionProviders::new(Arc::clone(clients), scripts);
        providers.changes().for_each(|it| warn(escape_line(&it)));
        Arc::new(providers)
    }

    /// Returns the names of the tools of scripts and extensions.
    pub fn tool_names(&self) -> Vec<String> {
        let scripts = self.scripts.iter().flat_map(|script| &script.tools);
        let scripts = scripts.map(|tool| tool.name.clone());
        let extensions = self.extensions.iter().flat_map(|found| &found.tools);
        scripts
            .chain(extensions.map(|tool| tool.name.clone()))
            .collect()
    }

    /// Returns the scripts and extensions that add tools, commands or flags.
    pub fn additions(&self) -> Vec<Additions> {
        let scripts = self.scripts.iter().map(FoundScript::additions);
        let extensions = self.extensions.iter().map(FoundExtension::additions);
        let all = scripts.chain(extensions);
        all.filter(|additions| !additions.is_empty()).collect()
    }

    /// Returns the commands of scripts and extensions.
    pub fn commands(&self) -> Vec<ForeignCommand> {
        let of_scripts = self.scripts.iter().flat_map(|script| {
            let server: Arc<dyn ScriptServer> = Arc::clone(&script.in_force) as _;
            let commands = script.commands.iter();
            commands.map(move |command| {
                ForeignCommand::of_script(Arc::clone(&server), command.clone(), &script.path)
            })
        });
        let of_processes = self.extensions.iter().flat_map(|found| {
            let commands = found.commands.iter();
            commands.map(|command| {
                ForeignCommand::of_process(Arc::clone(&found.in_force), command.clone())
            })
        });
        of_scripts.chain(of_processes).collect()
    }
}
