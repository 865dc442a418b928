//! Folders of kodelet's extensions: the executables in them, the processes that they are, and what these have.
//!
//! An extension is an executable `kodelet-extension-NAME`, or the first one whose name begins so in a folder `NAME`. It says by itself
//! which events it wants; the process that is asked is the one that is called later.

use std::collections::HashMap;
use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenterhook::{EventName, HookSpec};
use tenterhook_dialects::kodelet_extension::{EVENTS, ExtensionEvent, KodeletExtension};
use tenterhook_dialects::tools;
use tenterhook_handlers::worker::{
    Extension, ExtensionCommand, ExtensionTool, Registration, Subscription, WorkerHandler,
};
use tenterhook_process::{Command, Program, is_executable};
use tokio::time::timeout;

use super::probe::Declared;
use super::scan::{Beside, Candidate, MOST_FILES, Scanned, look_at, too_many, unreadable};
use super::script::{self, hook_id};
use super::version::Versions;
use super::{Discovered, FileState, FoundHook, HookFolder, Speaks, spec};
use crate::broken::{Fault, FaultPlace};
use crate::disabled::DisabledSources;
use crate::suggest::{nearest, one_of};
use crate::trust::{Trust, hex_digest};

/// What the name of an executable begins with.
const PREFIX: &str = "kodelet-extension-";

/// An extension that runs, and what it has beside hooks.
#[derive(Debug, Clone)]
pub struct FoundExtension {
    /// Its id: `name`, or `org@repo/name` in a plugin.
    pub id: String,
    /// The process.
    pub extension: Extension,
    /// Its tools. Of two with one name the first extension has it.
    pub tools: Vec<ExtensionTool>,
    /// Its commands. Of two with one name the first extension has it.
    pub commands: Vec<ExtensionCommand>,
}

/// Returns the folder of extensions that stands beside a folder of kodelet's hooks.
pub(super) fn beside(hooks: &HookFolder) -> HookFolder {
    // The name of a plugin stays as it is.
    let plugin = hooks.dir.parent().and_then(Path::file_name);
    let plugin = plugin.filter(|_| !hooks.prefix.is_empty());
    HookFolder {
        dir: hooks.dir.with_file_name("extensions"),
        prefix: plugin.map_or_else(String::new, |name| format!("{}/", name.to_string_lossy())),
        speaks: Speaks::KodeletExtension,
        ..hooks.clone()
    }
}

/// Looks at a folder of extensions.
pub(super) fn scan(folder: &HookFolder, trust: &Trust, scanned: &mut Scanned) -> Result<(), Fault> {
    let mut candidates = Vec::new();
    for entry in entries(&folder.dir)? {
        let name = entry.file_name().to_string_lossy().into_owned();
        // A link to a folder is what the folder would be.
        let found = if entry.path().is_dir() {
            match entries(&entry.path()) {
                Ok(within) => first(&within).map(|path| (name, entry.path(), path)),
                Err(fault) => {
                    let own = HookFolder {
                        dir: entry.path(),
                        ..folder.clone()
                    };
                    scanned.fail(&own, fault, trust, &DisabledSources::default());
                    None
                }
            }
        } else {
            let own = name.strip_prefix(PREFIX).map(str::to_owned);
            own.map(|own| (own, folder.dir.clone(), entry.path()))
        };
        let Some((name, dir, path)) = found else {
            continue;
        };
        let own = HookFolder {
            dir,
            ..folder.clone()
        };
        let mut candidate = look_at(&own, path, trust, &Beside::of_folder(&own));
        candidate.found.name = format!("{}{name}", folder.prefix);
        candidates.push(candidate);
    }
    candidates.sort_by(|a, b| a.found.name.cmp(&b.found.name));
    scanned.candidates.append(&mut candidates);
    Ok(())
}

/// Returns what an extension is called: as its folder, or as its file behind the prefix where that stands in no folder of its
/// own.
pub(super) fn name_of(folder: &HookFolder, source: &Path, path: &Path) -> String {
    let is_alone = source.file_name().is_some_and(|name| name == "extensions");
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let name = if is_alone {
        file.strip_prefix(PREFIX).unwrap_or(&file).to_owned()
    } else {
        let dir = source.file_name().unwrap_or_default();
        dir.to_string_lossy().into_owned()
    };
    format!("{}{name}", folder.prefix)
}

/// Returns what stands in a folder, in the byte order of the names.
fn entries(dir: &Path) -> Result<Vec<DirEntry>, Fault> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries.take(MOST_FILES + 1).collect::<Result<Vec<_>, _>>(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let mut entries = entries.map_err(|error| unreadable(&error))?;
    if entries.len() > MOST_FILES {
        return Err(too_many());
    }
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

/// Returns the executable of a folder that is one extension; where there is none, the file that could be it.
fn first(within: &[DirEntry]) -> Option<PathBuf> {
    let named = || {
        let paths = within.iter().map(DirEntry::path);
        paths.filter(|path| is_named_so(path) && !path.is_dir())
    };
    named()
        .find(|path| is_executable(path))
        .or_else(|| named().next())
}

/// Says whether a file has the name of an extension.
pub(super) fn is_named_so(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// The processes of extensions, one each.
#[derive(Debug)]
pub(super) struct Extensions {
    workspace: PathBuf,
    data_dir: Option<PathBuf>,
    /// One for each version of a file.
    made: Mutex<HashMap<(PathBuf, String), Extension>>,
}

impl Extensions {
    /// Makes extensions of an agent that works in `workspace`, and that keep what they have to keep below `data_dir`.
    pub(super) fn new(workspace: &Path, data_dir: Option<&Path>) -> Self {
        // An extension runs elsewhere, so a relative path would be another one there.
        let workspace = std::path::absolute(workspace).or_else(|_| std::env::current_dir());
        let workspace = workspace.unwrap_or_default();
        Self {
            workspace,
            data_dir: data_dir.map(Path::to_owned),
            made: Mutex::default(),
        }
    }

    /// Lets go of those that nobody needs any more.
    pub(super) fn drop_unused(&self) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.retain(|_, extension| extension.is_shared());
    }

    fn of(&self, candidate: &Candidate) -> Extension {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (
            candidate.run.clone(),
            format!("{}{}", candidate.sha256, candidate.beside),
        );
        made.entry(key)
            .or_insert_with(|| self.make(candidate))
            .clone()
    }

    fn make(&self, candidate: &Candidate) -> Extension {
        let id = &candidate.found.name;
        // It runs in its own folder, where a relative path is another one.
        let run = std::path::absolute(&candidate.run).unwrap_or_else(|_| candidate.run.clone());
        let command = Command::new(Program::exec([&run]));
        let command = match run.parent() {
            Some(dir) => command.working_dir(dir.to_owned()),
            None => command,
        };
        let data_dir = self.data_dir.as_ref().map(|dir| {
            let mut key = id.clone().into_bytes();
            if let Some(project) = candidate.project() {
                // What a project brings does not read what the user's extension of that name keeps.
                key.push(0);
                key.extend(project.dir.as_os_str().as_encoded_bytes());
            }
            let digest = hex_digest(&key);
            let name = id.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
            let name = format!("{name}-{}", digest.get(..12).unwrap_or_default());
            dir.join("extensions").join(name)
        });
        let events = EVENTS.iter().map(|event| event.name).collect();
        let data_dir = data_dir.unwrap_or_default();
        Extension::new(id, command, &self.workspace, &data_dir, events)
    }

    /// Starts an extension and returns what it registers as text.
    pub(super) async fn ask(
        &self,
        candidate: &Candidate,
        deadline: Duration,
    ) -> Result<String, Fault> {
        let extension = self.of(candidate);
        let registration = timeout(deadline, extension.registration())
            .await
            .map_err(|_| script::too_late(deadline))?
            .map_err(|error| error.to_string())?;
        serde_json::to_string(&*registration).map_err(|error| error.to_string().into())
    }
}

/// Returns the subscriptions, each with its event.
fn subscriptions(
    registration: &Registration,
) -> impl Iterator<Item = (&'static ExtensionEvent, &Subscription)> {
    let subscriptions = registration.subscriptions.iter();
    subscriptions.filter_map(|subscription| {
        Some((KodeletExtension::event(&subscription.event)?, subscription))
    })
}

/// Returns the state of an extension that answered what it registers.
pub(super) fn state(declared: &Declared) -> Result<FileState, Fault> {
    let registration: Registration =
        serde_json::from_str(&declared.0).map_err(|error| error.to_string())?;
    let mut wanted = registration.subscriptions.iter();
    if let Some(unknown) = wanted.find(|it| KodeletExtension::event(&it.event).is_none()) {
        let name = unknown.event.as_str();
        let names = || EVENTS.iter().map(|event| event.name);
        return Err(Fault {
            suggestion: nearest(name, names()).map(str::to_owned),
            allowed: Some(one_of(names())),
            place: FaultPlace::Quoted(name.to_owned()),
            ..format!(
                "the extension subscribes to the unknown event `{}`",
                name.escape_debug()
            )
            .into()
        });
    }
    let hooks = subscriptions(&registration).map(|(event, subscription)| FoundHook {
        name: subscription.event.clone(),
        event: EventName::Known(event.kind),
        declared: subscription.event.clone(),
        matcher: None,
        priority: subscription.priority,
    });
    Ok(FileState::Script {
        hooks: hooks.collect(),
        tools: registration
            .tools
            .into_iter()
            .map(|tool| tool.name)
            .collect(),
        commands: registration
            .commands
            .into_iter()
            .map(|command| command.name)
            .collect(),
    })
}

/// Takes what an extension registered: its hooks, its tools and its commands.
pub(super) async fn take(
    candidate: &Candidate,
    extensions: &Extensions,
    versions: &mut Versions,
    discovered: &mut Discovered,
) {
    let FileState::Script { hooks, .. } = &candidate.found.state else {
        return;
    };
    if candidate.found.speaks != Speaks::KodeletExtension {
        return;
    }
    let id = &candidate.found.name;
    let extension = extensions.of(candidate);
    // It was asked before; the answer stays what it was.
    let Ok(registration) = extension.registration().await else {
        return;
    };
    if let Some(version) = versions.of(candidate) {
        extension.expect_version(version).await;
    }
    let made = subscriptions(&registration).enumerate();
    discovered
        .specs
        .extend(made.map(|(place, (event, subscription))| {
            let dialect = KodeletExtension::new();
            let policy = dialect.policy(event.kind.info(), None);
            let text = format!("{id} {}", event.name);
            let tools = tools::of_hooks(&*dialect);
            let handler = WorkerHandler::of_extension(extension.clone(), dialect, text);
            let event = EventName::Known(event.kind);
            HookSpec {
                id: hook_id(id, hooks, place),
                priority: subscription.priority,
                timeout: subscription.timeout(),
                tools,
                ..spec(&candidate.found, event, Arc::new(handler), policy)
            }
        }));
    let mut found = FoundExtension {
        id: id.clone(),
        extension,
        tools: Vec::new(),
        commands: Vec::new(),
    };
    for tool in &registration.tools {
        if discovered.claim(id, "tool", &tool.name) {
            found.tools.push(tool.clone());
        }
    }
    for command in &registration.commands {
        if discovered.claim(id, "command", &command.name) {
            found.commands.push(command.clone());
        }
    }
    discovered.extensions.push(found);
}
