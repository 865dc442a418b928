//! Loads the settings and the hooks of a gateway that runs again.

use std::sync::Arc;

use crate::agent_args::AgentArgs;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tenterhook_channel::settings::Settings;
use tenterhook_engine::journal::{HookChanges, JournalRecord, ReloadRecord};
use tenterhook_gateway::reload::{LoadedAgain, OtherHooks, ReloadRequester, ReloadSource};
use tenterhook_hookfile::Severity;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::live_inspector::LiveInspector;

use crate::command::gateway::args::{Listen, SettingsArgs};
use crate::command::gateway::profile::ChatProfile;
use crate::command::gateway::settings;

/// What the user reads after a signal.
const NOT_BY_SIGNAL: &str = "a signal does not show who sent it, so only the settings were reloaded; run `tenterhook \
                             gateway reload` to reload the hooks, too";

/// Reads the settings and loads the hooks with the options of the start.
pub(super) struct GatewayReload {
    pub(super) settings: SettingsArgs,
    pub(super) agent: AgentArgs,
    pub(super) listen: Option<Listen>,
    pub(super) inspector: Option<LiveInspector>,
    /// The profile in force.
    pub(super) profile: Arc<Mutex<ChatProfile>>,
}

impl ReloadSource for GatewayReload {
    fn load(&self, requester: ReloadRequester) -> BoxFuture<'_, Result<LoadedAgain, String>> {
        Box::pin(async move {
            let loaded = self.load_all(requester).await;
            loaded.map_err(|error| {
                let problem = described(&error);
                let record = ReloadRecord::failed(problem.as_str());
                self.current().record(JournalRecord::Reload(record));
                problem
            })
        })
    }
}

impl GatewayReload {
    fn current(&self) -> ChatProfile {
        self.profile.lock().clone()
    }

    async fn load_all(&self, requester: ReloadRequester) -> Result<LoadedAgain, CliError> {
        let settings = self.read_settings().await?;
        let current = self.current();
        if requester == ReloadRequester::Unknown {
            // Loading a hook can run its code, and a new hook can answer questions instead of a person.
            current.check_tools(&settings)?;
            return Ok(LoadedAgain {
                settings,
                hooks: None,
                notes: vec![NOT_BY_SIGNAL.to_owned()],
            });
        }
        let loaded = Box::pin(current.load_again()).await?;
        let tried = loaded.clone();
        blocking(move || tried.try_out()).await?;
        let notes = notes(&loaded);
        let changes = loaded.changes_since(&current);
        let used = changes.as_ref().map_or(&current, |_| &loaded);
        used.check_tools(&settings)?;
        Ok(LoadedAgain {
            settings,
            hooks: changes.map(|changes| self.other_hooks(loaded, changes)),
            notes,
        })
    }

    async fn read_settings(&self) -> Result<Settings, CliError> {
        let (settings, agent, listen) = (self.settings.clone(), self.agent.clone(), self.listen);
        blocking(move || {
            let read = settings::read(&settings, &agent)?;
            settings::with_listen(read, listen)
        })
        .await
    }

    fn other_hooks(&self, loaded: ChatProfile, changes: HookChanges) -> OtherHooks {
        let (inspector, profile) = (self.inspector.clone(), Arc::clone(&self.profile));
        let (next, record) = (loaded.clone(), ReloadRecord::now(changes.clone()));
        OtherHooks {
            profile: Arc::new(loaded),
            changes,
            in_force: Box::new(move || {
                if let Some(inspector) = &inspector {
                    next.show_in(inspector);
                }
                next.record(JournalRecord::Reload(record));
                *profile.lock() = next;
            }),
        }
    }
}

/// Returns what the user should know about hooks that are not in force.
fn notes(loaded: &ChatProfile) -> Vec<String> {
    let names = loaded.untrusted().map(|hook| {
        let source = hook.item.source.display();
        format!("`{}` ({source})", hook.item.name)
    });
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "not in force, because you have not approved them: {}; review them with `tenterhook trust --show`",
        names.join(", ")
    )]
}

/// Describes an error with every problem of the file.
fn described(error: &CliError) -> String {
    let problems = error.load.iter().flat_map(|load| &load.problems);
    let problems: Vec<String> = problems
        .filter(|problem| problem.severity == Severity::Error)
        .map(ToString::to_string)
        .collect();
    if problems.is_empty() {
        error.in_one_line()
    } else {
        problems.join("; ")
    }
}

/// Runs work that reads files on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CliError> + Send + 'static,
) -> Result<T, CliError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(CliError::new(Exit::Failed, "the settings and hooks cannot be checked").cause(&error))
    })
}
