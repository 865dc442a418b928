//! Scripts of a folder: which worker serves them, and the hooks that they have.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};

use tenterhook::{EventName, Handler, HookId, HookSpec, Layer, Matcher, native_policy};
use tenterhook_dialects::docker_agent::DockerAgent;
use tenterhook_handlers::worker::{Script, ScriptHook, Worker, WorkerHandler, node, python};

use super::scan::Candidate;
use super::{FileState, FoundHook, spec};

/// The API that scripts of our own folders are written for.
const API: &str = "tenterhook";

/// A language that a worker is shipped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Language {
    Python,
    JavaScript,
}

impl Language {
    /// What files of each language end in.
    const EXTENSIONS: [(&str, Self); 4] = [
        ("py", Self::Python),
        ("js", Self::JavaScript),
        ("mjs", Self::JavaScript),
        ("cjs", Self::JavaScript),
    ];

    /// Returns the language of a script. A file that begins with `_` is what scripts load.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let extension = path.extension()?.to_str()?;
        let known = Self::EXTENSIONS.iter().find(|(end, _)| *end == extension);
        known
            .filter(|_| !name.starts_with(['_', '.']))
            .map(|(_, language)| *language)
    }

    /// Returns the interpreter, as the search path finds it.
    pub(super) const fn interpreter(self) -> &'static str {
        match self {
            Self::Python => "python3",
            Self::JavaScript => "node",
        }
    }
}

/// One worker for each language and each of those who bring scripts, started when it is needed. What a project brings never shares
/// a process with what a user trusts.
#[derive(Debug)]
pub(super) struct Workers {
    directory: PathBuf,
    made: Mutex<HashMap<Seat, Worker>>,
}

/// What a worker is for: a language, a layer, and the project whose layer it is.
type Seat = (Language, Layer, Option<PathBuf>);

impl Workers {
    /// Makes workers that run in a directory.
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            made: Mutex::default(),
        }
    }

    fn of(&self, language: Language, candidate: &Candidate) -> Worker {
        let project = candidate.project().map(|project| project.dir.clone());
        let key = (language, candidate.found.layer, project);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let worker = made.entry(key).or_insert_with(|| match language {
            Language::Python => python(&self.directory),
            Language::JavaScript => node(&self.directory),
        });
        worker.clone()
    }

    /// Loads a script and returns its hooks as text.
    pub(super) async fn ask(
        &self,
        language: Language,
        candidate: &Candidate,
    ) -> Result<String, String> {
        let script = script(candidate.run.clone());
        let worker = self.of(language, candidate);
        let (_, hooks) = worker
            .load(&script)
            .await
            .map_err(|error| error.to_string())?;
        serde_json::to_string(&hooks).map_err(|error| error.to_string())
    }
}

fn script(path: PathBuf) -> Script {
    Script { path, api: API }
}

/// Returns what becomes of a script that said which hooks it has.
pub(super) fn state(declared: &str) -> FileState {
    match read(declared) {
        Ok(hooks) => FileState::Script { hooks },
        Err(problem) => FileState::ProbeFailed { problem },
    }
}

fn read(declared: &str) -> Result<Vec<FoundHook>, String> {
    let hooks: Vec<ScriptHook> =
        serde_json::from_str(declared).map_err(|error| format!("its hooks are none: {error}"))?;
    if hooks.is_empty() {
        return Err(
            "it registers no hooks, expected a handler below `@on(EVENT)`, or `on(EVENT, handler)`; begin the name of a file \
             that others load with `_`"
                .to_owned(),
        );
    }
    hooks.into_iter().map(found).collect()
}

fn found(hook: ScriptHook) -> Result<FoundHook, String> {
    let name = hook.name;
    let event =
        EventName::from_str(&hook.event).map_err(|error| format!("hook `{name}`: {error}"))?;
    if let Some(matcher) = &hook.matcher {
        if event.info().subject.is_none() {
            return Err(format!(
                "hook `{name}`: `{event}` has nothing for a matcher to look at"
            ));
        }
        Matcher::parse(matcher)
            .map_err(|error| format!("hook `{name}`: {}", tenterhook::error_chain(&error)))?;
    }
    Ok(FoundHook {
        name,
        event,
        matcher: hook.matcher,
        priority: hook.priority,
    })
}

/// Makes the hooks of a script.
pub(super) async fn hooks(candidate: &Candidate, workers: &Workers) -> Vec<HookSpec> {
    let (FileState::Script { hooks }, Some(language)) =
        (&candidate.found.state, candidate.language)
    else {
        return Vec::new();
    };
    let worker = workers.of(language, candidate);
    let expected = hooks.iter().map(|hook| ScriptHook {
        name: hook.name.clone(),
        event: hook.event.to_string(),
        matcher: hook.matcher.clone(),
        priority: hook.priority,
    });
    let script = script(candidate.run.clone());
    let number = worker.expect(&script, expected.collect()).await;
    let file = &candidate.found.name;
    let made = hooks.iter().enumerate().map(|(place, hook)| {
        let earlier = hooks.iter().take(place);
        let same =
            earlier.filter(|earlier| earlier.name == hook.name && earlier.event == hook.event);
        let id = match same.count() {
            0 => format!("{file}:{}", hook.name),
            count => format!("{file}:{}#{}", hook.name, count + 1),
        };
        let text = format!("{file} {}", hook.name);
        let handler: Arc<dyn Handler> = Arc::new(WorkerHandler::new(
            worker.clone(),
            (number, place),
            DockerAgent::native(),
            text,
        ));
        let policy = native_policy(hook.event.info(), None);
        let matcher = hook.matcher.as_deref().map(Matcher::parse);
        HookSpec {
            id: HookId::new(id),
            // It was read before, when the script said which hooks it has.
            matcher: matcher
                .and_then(Result::ok)
                .unwrap_or_else(Matcher::everything),
            priority: hook.priority,
            ..spec(&candidate.found, hook.event.clone(), handler, policy)
        }
    });
    made.collect()
}
