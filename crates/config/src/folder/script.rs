//! Scripts of a folder: which worker serves them, and the hooks that they have.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};

use tenterhook::{Dialect, EventName, HookId, HookSpec, Layer, Matcher, native_policy};
use tenterhook_dialects::docker_agent::DockerAgent;
use tenterhook_dialects::operator::Operator;
use tenterhook_handlers::worker::{
    Registered, Script, ScriptHook, Worker, WorkerHandler, node, python,
};

use super::scan::Candidate;
use super::{FileState, FoundHook, Speaks, spec};

impl Speaks {
    /// Says whether scripts of a language are hooks in such a folder.
    pub(super) fn has(self, language: Language) -> bool {
        match self {
            Self::Kodelet | Self::KodeletExtension => false,
            Self::Tenterhook => true,
            Self::Operator => language == Language::Python,
        }
    }

    /// Returns the API that scripts of such a folder are written for.
    const fn api(self) -> &'static str {
        match self {
            Self::Kodelet | Self::KodeletExtension | Self::Tenterhook => "tenterhook",
            Self::Operator => "operator",
        }
    }

    /// Returns the event that a script declares, and the dialect that its handlers are called in.
    fn declared(self, name: &str) -> Result<(EventName, Arc<dyn Dialect>), String> {
        if self == Self::Operator {
            let event = Operator::event(name)
                .ok_or_else(|| format!("Operator has no event `{}`", name.escape_debug()))?;
            return Ok((EventName::Known(event.kind), event.dialect()));
        }
        let event = EventName::from_str(name).map_err(|error| error.to_string())?;
        Ok((event, DockerAgent::native()))
    }
}

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

    /// Loads a script and returns what it registers as text.
    pub(super) async fn ask(
        &self,
        language: Language,
        candidate: &Candidate,
    ) -> Result<String, String> {
        let script = script(candidate);
        let worker = self.of(language, candidate);
        let (_, registered) = worker
            .load(&script)
            .await
            .map_err(|error| error.to_string())?;
        serde_json::to_string(&registered).map_err(|error| error.to_string())
    }
}

fn script(candidate: &Candidate) -> Script {
    Script {
        path: candidate.run.clone(),
        api: candidate.found.speaks.api(),
    }
}

/// Returns what becomes of a script that said which hooks it has.
pub(super) fn state(speaks: Speaks, declared: &str) -> FileState {
    match read(speaks, declared) {
        Ok(hooks) => FileState::Script { hooks },
        Err(problem) => FileState::ProbeFailed { problem },
    }
}

fn read(speaks: Speaks, declared: &str) -> Result<Vec<FoundHook>, String> {
    let registered: Registered = serde_json::from_str(declared)
        .map_err(|error| format!("what it registers is not understood: {error}"))?;
    let hooks = registered.hooks;
    if hooks.is_empty() {
        return Err(
            "it registers no hooks, expected a handler below `@on(EVENT)`, or `on(EVENT, handler)`; begin the name of a file \
             that others load with `_`"
                .to_owned(),
        );
    }
    hooks.into_iter().map(|hook| found(speaks, hook)).collect()
}

fn found(speaks: Speaks, hook: ScriptHook) -> Result<FoundHook, String> {
    let name = hook.name;
    let declared = speaks.declared(&hook.event);
    let (event, _) = declared.map_err(|problem| format!("hook `{name}`: {problem}"))?;
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
        declared: hook.event,
        matcher: hook.matcher,
        priority: hook.priority,
    })
}

/// Returns the id of a hook of a file that has several.
pub(super) fn hook_id(file: &str, hooks: &[FoundHook], place: usize) -> HookId {
    let own = hooks.get(place);
    let name = own.map_or("", |hook| hook.name.as_str());
    let same = hooks.iter().take(place).filter(|earlier| {
        own.is_some_and(|hook| earlier.name == hook.name && earlier.event == hook.event)
    });
    HookId::new(match same.count() {
        0 => format!("{file}:{name}"),
        count => format!("{file}:{name}#{}", count + 1),
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
        event: hook.declared.clone(),
        matcher: hook.matcher.clone(),
        priority: hook.priority,
    });
    let script = script(candidate);
    let number = worker.expect(&script, expected.collect()).await;
    let file = &candidate.found.name;
    let made = hooks.iter().enumerate().filter_map(|(place, hook)| {
        // It was read before, when the script said which hooks it has.
        let (_, dialect) = candidate.found.speaks.declared(&hook.declared).ok()?;
        let text = format!("{file} {}", hook.name);
        let policy = match candidate.found.speaks {
            Speaks::Operator => dialect.policy(hook.event.info(), None),
            Speaks::Kodelet | Speaks::KodeletExtension | Speaks::Tenterhook => {
                native_policy(hook.event.info(), None)
            }
        };
        let place = (number, place);
        let handler = WorkerHandler::new(worker.clone(), place, dialect, text);
        let matcher = hook.matcher.as_deref().map(Matcher::parse);
        Some(HookSpec {
            id: hook_id(file, hooks, place.1),
            matcher: matcher
                .and_then(Result::ok)
                .unwrap_or_else(Matcher::everything),
            priority: hook.priority,
            ..spec(
                &candidate.found,
                hook.event.clone(),
                Arc::new(handler),
                policy,
            )
        })
    });
    made.collect()
}
