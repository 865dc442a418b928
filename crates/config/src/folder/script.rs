//! Scripts of a folder: which worker serves them, and the hooks that they have.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tenterhook::{Dialect, EventKind, EventName, HookId, HookSpec, Layer, Matcher, native_policy};
use tenterhook_dialects::docker_agent::DockerAgent;
use tenterhook_dialects::morphix::{self, Morphix};
use tenterhook_dialects::operator::{self, Operator};
use tenterhook_dialects::pi::{self, Pi};
use tenterhook_dialects::tools;
use tenterhook_handlers::worker::{
    Host, Lease, Registered, Script, ScriptCommand, ScriptFlag, ScriptHook, ScriptTool, Worker,
    WorkerHandler, node, python,
};
use tenterhook_process::{Command, Program};
use tokio::time::{Instant, timeout};

use super::scan::Candidate;
use super::version::Versions;
use super::{Discovered, FileState, FoundHook, Speaks, spec};
use crate::broken::{Fault, FaultPlace};
use crate::load;
use crate::suggest::{nearest, one_of};
use crate::trust::in_search_path;

/// What sets the folders of one system apart from those of others.
#[derive(Debug)]
pub(super) struct System {
    /// The API that its scripts are written for.
    api: &'static str,
    /// What its scripts end in.
    extensions: &'static [(&'static str, Language)],
    /// A file that may be executed is a hook.
    pub(super) runs_executables: bool,
    /// Of several files of one name only the first one counts.
    pub(super) shadows: bool,
    /// A script need not have a hook.
    may_have_none: bool,
    /// What the names of files begin with that scripts load.
    private: &'static [char],
    /// The layer that its hooks run with, whatever their own is: in the order of their folders, the project's before the
    /// user's, so that the user's guards see what the project's hooks made of a value.
    pub(super) among: Option<Layer>,
}

/// What most systems have in common.
const SCRIPTS: System = System {
    api: "tenterhook",
    extensions: PYTHON,
    runs_executables: false,
    shadows: false,
    may_have_none: false,
    private: &['_', '.'],
    among: None,
};

/// What files end in that look like scripts and are none, and the ending that they should have.
const SIMILAR: [(&str, &str); 5] = [
    ("cts", "ts"),
    ("tsx", "ts"),
    ("jsx", "js"),
    ("pyi", "py"),
    ("pyw", "py"),
];

const PYTHON: &[(&str, Language)] = &[("py", Language::Python)];

impl Speaks {
    /// Returns what sets such a folder apart.
    pub(super) const fn system(self) -> &'static System {
        match self {
            Self::Kodelet | Self::KodeletExtension => &System {
                api: "kodelet",
                extensions: &[],
                runs_executables: true,
                shadows: true,
                among: Some(Layer::Project),
                ..SCRIPTS
            },
            Self::Tenterhook => &System {
                extensions: &[
                    ("py", Language::Python),
                    ("js", Language::JavaScript),
                    ("mjs", Language::JavaScript),
                    ("cjs", Language::JavaScript),
                    ("ts", Language::JavaScript),
                    ("mts", Language::JavaScript),
                ],
                runs_executables: true,
                shadows: true,
                ..SCRIPTS
            },
            Self::Operator => &System {
                api: "operator",
                ..SCRIPTS
            },
            Self::Morphix => &System {
                api: "morphix",
                ..SCRIPTS
            },
            Self::Pi => &System {
                api: "pi",
                extensions: &[
                    ("ts", Language::JavaScript),
                    ("mts", Language::JavaScript),
                    ("js", Language::JavaScript),
                    ("mjs", Language::JavaScript),
                    ("cjs", Language::JavaScript),
                ],
                may_have_none: true,
                private: &[],
                among: Some(Layer::Project),
                ..SCRIPTS
            },
        }
    }

    /// Returns the language of a script in such a folder. A file that begins with `_` is what scripts load.
    pub(super) fn language(self, path: &Path) -> Option<Language> {
        let name = path.file_name()?.to_str()?;
        let extension = path.extension()?.to_str()?;
        let mut known = self.system().extensions.iter();
        known
            .find(|(end, _)| *end == extension && !name.starts_with(self.system().private))
            .map(|(_, language)| *language)
    }

    /// Returns the fault of a file that looks like a script or a hook file and is neither in such a folder.
    pub(super) fn misnamed(self, path: &Path) -> Option<Fault> {
        let name = path.file_name()?.to_string_lossy();
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        let system = self.system();
        if name.starts_with(system.private) || name.ends_with(".d.cts") {
            return None;
        }
        let is_script = |wanted: &str| system.extensions.iter().any(|(end, _)| *end == wanted);
        let similar = SIMILAR.iter().find(|(end, _)| *end == extension);
        let expected = similar.map_or(extension.as_str(), |(_, end)| *end);
        if is_script(expected) {
            let renamed = path.with_extension(expected);
            // Beside its module, a file of type annotations is no guard.
            if extension == "pyi" && renamed.exists() {
                return None;
            }
            let renamed = renamed.file_name()?.to_string_lossy();
            let message = "the file looks like a script and is not loaded under this name";
            return Some(Fault::from(message).hint(format!("rename it to `{renamed}`")));
        }
        let is_lost = self == Self::Tenterhook && load::is_hook_file(path);
        is_lost.then(|| {
            Fault::from("the file is a hook file, and this folder is for executables and scripts")
                .hint("hook files belong into `hooks.d` beside this folder; move it there")
        })
    }

    /// Returns the event that a script declares, and the dialect that its handlers are called in.
    fn declared(self, name: &str) -> Option<(EventName, Arc<dyn Dialect>)> {
        match self {
            Self::Kodelet | Self::KodeletExtension | Self::Tenterhook => {
                let event = EventName::from_str(name).ok()?;
                Some((event, DockerAgent::native()))
            }
            Self::Operator => {
                let event = Operator::event(name)?;
                Some((EventName::Known(event.kind), event.dialect()))
            }
            Self::Morphix => {
                let event = Morphix::event(name)?;
                Some((EventName::Known(event.kind), Morphix::new()))
            }
            Self::Pi => match Pi::event(name) {
                Some(event) => Some((EventName::Known(event.kind), event.dialect())),
                None if Pi::is_later_event(name) => {
                    let event = format!("x-pi.{name}").parse().ok()?;
                    Some((event, DockerAgent::native()))
                }
                None => None,
            },
        }
    }

    /// Returns the names of the events that scripts may declare.
    fn event_names(self) -> Vec<&'static str> {
        match self {
            Self::Kodelet | Self::KodeletExtension | Self::Tenterhook => {
                EventKind::ALL.iter().map(|kind| kind.info().name).collect()
            }
            Self::Operator => operator::EVENTS.iter().map(|event| event.name).collect(),
            Self::Morphix => morphix::EVENTS.iter().map(|event| event.name).collect(),
            Self::Pi => pi::EVENTS.iter().map(|event| event.name).collect(),
        }
    }

    /// Makes the fault of a script that registers a hook of an unknown event.
    fn unknown_event(self, name: &str) -> Fault {
        let names = self.event_names();
        let system = self.system().api;
        let suggestion = nearest(name, names.iter().copied()).map(str::to_owned);
        Fault {
            allowed: suggestion.is_none().then(|| one_of(names.iter().copied())),
            suggestion,
            place: FaultPlace::Quoted(name.to_owned()),
            ..format!("unknown event `{}` of {system}", name.escape_debug()).into()
        }
    }
}

/// A language that a worker is shipped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Language {
    Python,
    JavaScript,
    /// None: the file is an executable that is a worker itself.
    Program,
}

/// What an executable declares that is a worker itself.
pub(super) const WORKER: &str = "worker";

/// What stands in the first lines of a file that shares its worker with no other.
const ISOLATE: &[u8] = b"tenterhook: isolate";
/// Where it is looked for, in bytes.
const FIRST_LINES: usize = 1 << 10;

/// Says whether a script wants a worker of its own.
pub(super) fn is_isolated(text: &[u8]) -> bool {
    let start = text.get(..text.len().min(FIRST_LINES)).unwrap_or_default();
    memchr::memmem::find(start, ISOLATE).is_some()
}

impl Language {
    /// Returns the interpreter, as the search path finds it.
    pub(super) const fn interpreter(self) -> Option<&'static str> {
        match self {
            Self::Python => Some("python3"),
            Self::JavaScript => Some("node"),
            Self::Program => None,
        }
    }
}

/// One worker for each language and each of those who bring scripts, started when it is needed. What a project brings never shares
/// a process with what a user trusts.
#[derive(Debug)]
pub(super) struct Workers {
    directory: PathBuf,
    host: Arc<dyn Host>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    made: HashMap<Seat, Worker>,
    /// What each script and the sources beside it were when they were seen last, by the script's path.
    versions: HashMap<(Seat, PathBuf), String>,
    /// What each script and the sources next to it were when they were seen first.
    first: HashMap<PathBuf, String>,
    /// Scripts that share their worker with no other, since one was lost with them.
    alone: HashSet<PathBuf>,
    /// What each script registered, and what it was then: it is asked once as long as these workers are kept.
    registered: HashMap<(Layer, PathBuf), (String, String)>,
}

impl Known {
    /// Returns what the worker of a script is for.
    fn seat(&mut self, language: Language, candidate: &Candidate) -> Seat {
        let project = candidate.project().map(|project| project.dir.clone());
        let now = format!("{} {}", candidate.sha256, candidate.beside);
        let first = self
            .first
            .entry(candidate.found.path.clone())
            .or_insert_with(|| now.clone());
        let changed = if now == *first { String::new() } else { now };
        let is_alone = candidate.is_isolated
            || language == Language::Program
            || self.alone.contains(&candidate.run);
        let own = is_alone.then(|| candidate.run.clone());
        let folder = candidate.found.path.parent();
        Seat {
            language,
            layer: candidate.found.layer,
            project,
            // An interpreter of Python loads one module of a name, and two folders may each have a `rules.py`.
            folder: folder
                .filter(|_| language == Language::Python)
                .map(Path::to_owned),
            own,
            changed,
        }
    }
}

/// How long the scripts of one worker may take together. What is left then is loaded in workers of its own, all at once,
/// so that one slow script costs the others no time.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a script did not answer what it registers.
enum Unanswered {
    /// The worker refuses it.
    Refused(Fault),
    /// The worker ended.
    Crashed(Fault),
    /// There was no more time.
    TimedOut,
}

/// Makes the fault of a source that takes too long to load.
pub(super) fn too_late(deadline: Duration) -> Fault {
    let message = format!(
        "it did not finish loading within {} s",
        deadline.as_secs_f64()
    );
    Fault::from(message)
        .hint("do slow work when the first event comes, not while the file is loaded")
}

/// A script that is asked what it registers: its place among all that are asked, and its language.
type Asked<'a> = (usize, Language, &'a Candidate);

/// What a worker is for. Scripts of one seat share a worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Seat {
    language: Language,
    layer: Layer,
    /// The project whose layer it is.
    project: Option<PathBuf>,
    /// The folder of its scripts, where scripts of other folders must not share the worker.
    folder: Option<PathBuf>,
    /// The only script that it serves, where that shares the worker with no other.
    own: Option<PathBuf>,
    /// What its scripts and the sources next to them are, where that changed since they were seen first. An interpreter
    /// does not load a module again, so a hook that a helper module registers would be lost.
    changed: String,
}

impl Workers {
    /// Makes workers that run in a directory, and whose scripts may ask a host.
    pub(super) fn new(directory: &Path, host: Arc<dyn Host>) -> Self {
        Self {
            directory: directory.to_owned(),
            host,
            known: Mutex::default(),
        }
    }

    /// Lets go of workers that nobody needs any more.
    pub(super) fn drop_unused(&self) {
        let mut known = self.known();
        let Known { made, versions, .. } = &mut *known;
        made.retain(|_, worker| worker.is_shared());
        versions.retain(|(seat, _), _| made.contains_key(seat));
    }

    /// Returns the worker of a script, and whether the script is another one than it was.
    fn seat(&self, language: Language, candidate: &Candidate) -> (Worker, bool) {
        let mut known = self.known();
        let seat = known.seat(language, candidate);
        let Known { made, versions, .. } = &mut *known;
        let worker = made.entry(seat.clone()).or_insert_with(|| {
            let worker = match language {
                Language::Python => python(&self.directory),
                Language::JavaScript => node(&self.directory),
                Language::Program => self.program(candidate),
            };
            worker.hosted_by(Arc::clone(&self.host))
        });
        let version = &candidate.sha256;
        let before = versions.insert((seat, candidate.run.clone()), version.clone());
        (
            worker.clone(),
            before.is_some_and(|before| before != *version),
        )
    }

    /// Makes the worker that an executable is.
    fn program(&self, candidate: &Candidate) -> Worker {
        let command = Command::new(Program::exec([candidate.run.as_os_str(), WORKER.as_ref()]));
        let command = if self.directory.as_os_str().is_empty() {
            command
        } else {
            command.working_dir(self.directory.clone())
        };
        Worker::new(candidate.found.name.clone(), command)
    }

    async fn of(&self, language: Language, candidate: &Candidate) -> Worker {
        let (worker, is_changed) = self.seat(language, candidate);
        if is_changed {
            worker.renew(&script(candidate)).await;
        }
        worker
    }

    /// Loads scripts and returns what each registers as text, with their places. Those of one worker are loaded one after
    /// another. A script over which the worker is lost, and those that the worker has no time for, are loaded at once, each in
    /// a worker of its own.
    pub(super) async fn ask_all(
        &self,
        scripts: Vec<Asked<'_>>,
        deadline: Duration,
    ) -> Vec<(usize, Result<String, Fault>)> {
        let mut groups: Vec<(Seat, Vec<Asked<'_>>)> = Vec::new();
        for script in scripts {
            let seat = self.known().seat(script.1, script.2);
            match groups.iter_mut().find(|(of, _)| *of == seat) {
                Some((_, group)) => group.push(script),
                None => groups.push((seat, vec![script])),
            }
        }
        let groups = groups
            .into_iter()
            .map(|(_, group)| self.ask_group(group, deadline));
        join_all(groups).await.into_iter().flatten().collect()
    }

    async fn ask_group(
        &self,
        group: Vec<Asked<'_>>,
        deadline: Duration,
    ) -> Vec<(usize, Result<String, Fault>)> {
        let is_shared = group.len() > 1;
        let patience = Instant::now() + PATIENCE;
        let mut answers = Vec::with_capacity(group.len());
        let mut apart = Vec::new();
        for (index, language, candidate) in group {
            let left = patience.saturating_duration_since(Instant::now());
            let within = if is_shared {
                left.min(deadline)
            } else {
                deadline
            };
            if within.is_zero() {
                self.known().alone.insert(candidate.run.clone());
                apart.push((index, language, candidate));
                continue;
            }
            match self.ask(language, candidate, within).await {
                Ok(registered) => answers.push((index, Ok(registered))),
                Err(Unanswered::Refused(fault)) => answers.push((index, Err(fault))),
                Err(Unanswered::TimedOut) if within == deadline => {
                    self.set_apart(candidate);
                    answers.push((index, Err(too_late(deadline))));
                }
                Err(Unanswered::Crashed(_) | Unanswered::TimedOut) => {
                    self.set_apart(candidate);
                    apart.push((index, language, candidate));
                }
            }
        }
        let apart = apart
            .into_iter()
            .map(|(index, language, candidate)| async move {
                let asked = self.ask(language, candidate, deadline).await;
                let asked = asked.map_err(|unanswered| match unanswered {
                    Unanswered::Refused(fault) => fault,
                    Unanswered::Crashed(fault) => {
                        self.set_apart(candidate);
                        fault
                    }
                    Unanswered::TimedOut => {
                        self.set_apart(candidate);
                        too_late(deadline)
                    }
                });
                (index, asked)
            });
        answers.extend(join_all(apart).await);
        answers
    }

    /// Loads a script and returns what it registers as text. It is asked once as long as it does not change.
    async fn ask(
        &self,
        language: Language,
        candidate: &Candidate,
        within: Duration,
    ) -> Result<String, Unanswered> {
        let key = (candidate.found.layer, candidate.run.clone());
        let version = format!("{}{}", candidate.sha256, candidate.beside);
        if let Some((before, registered)) = self.known().registered.get(&key)
            && *before == version
        {
            return Ok(registered.clone());
        }
        let registered = self.load(language, candidate, within).await?;
        let known = (version, registered.clone());
        self.known().registered.insert(key, known);
        Ok(registered)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn load(
        &self,
        language: Language,
        candidate: &Candidate,
        within: Duration,
    ) -> Result<String, Unanswered> {
        if let Some(name) = language.interpreter()
            && in_search_path(name, &self.directory).is_none()
        {
            let fault = Fault::from(format!("the interpreter `{name}` was not found in `PATH`"));
            return Err(Unanswered::Refused(fault.hint(format!("install `{name}`"))));
        }
        let script = script(candidate);
        let loaded = async {
            let worker = self.of(language, candidate).await;
            let loaded = worker.load(&script).await;
            let is_running = worker.pid().await.is_some();
            (loaded, is_running)
        };
        let Ok((loaded, is_running)) = timeout(within, loaded).await else {
            return Err(Unanswered::TimedOut);
        };
        let fault = |said: String| Fault::of_script(&candidate.found.path, &said);
        match loaded {
            Ok((_, registered)) => serde_json::to_string(&registered)
                .map_err(|error| Unanswered::Refused(fault(error.to_string()))),
            Err(error) if is_running => Err(Unanswered::Refused(fault(error.to_string()))),
            Err(error) => Err(Unanswered::Crashed(fault(error.to_string()))),
        }
    }

    /// Gives a script a worker of its own from now on, and lets go of the one that it was asked in: those of its scripts that are
    /// in use keep it.
    fn set_apart(&self, candidate: &Candidate) {
        let mut known = self.known();
        let project = candidate.project().map(|project| &project.dir);
        let (layer, run) = (candidate.found.layer, &candidate.run);
        known.made.retain(|seat, _| {
            let is_same = seat.layer == layer && seat.project.as_ref() == project;
            !(is_same && seat.own.as_ref().is_none_or(|own| own == run))
        });
        known.alone.insert(run.clone());
    }
}

fn script(candidate: &Candidate) -> Script {
    Script {
        // The worker runs in the directory of the events. A relative path would name another file there: that of a
        // project which nobody approved.
        path: std::path::absolute(&candidate.run).unwrap_or_else(|_| candidate.run.clone()),
        api: candidate.found.speaks.system().api,
    }
}

/// What a script has beside hooks, and who serves it.
#[derive(Debug, Clone)]
pub struct FoundScript {
    /// The name that the file has.
    pub name: String,
    /// Its worker.
    pub worker: Worker,
    /// Keeps the script in the worker.
    pub lease: Lease,
    /// Its tools. Of two with one name the first one counts.
    pub tools: Vec<ScriptTool>,
    /// Its commands. Of two with one name the first one counts.
    pub commands: Vec<ScriptCommand>,
    /// Its flags.
    pub flags: Vec<ScriptFlag>,
}

/// Returns the state of a script that answered what it registers.
pub(super) fn state(candidate: &mut Candidate, declared: &str) -> Result<FileState, Fault> {
    let speaks = candidate.found.speaks;
    let mut registered: Registered = serde_json::from_str(declared)
        .map_err(|error| format!("its answer to what it registers is invalid: {error}"))?;
    let hooks = std::mem::take(&mut registered.hooks);
    if hooks.is_empty() && !speaks.system().may_have_none {
        let form = match candidate.language {
            Some(Language::Python) => "write `@on(EVENT)` above a function",
            _ => "write `on(EVENT, handler)`",
        };
        let hint = format!("{form}; begin the name of a file that others load with `_`");
        return Err(Fault::from("the file registers no hooks").hint(hint));
    }
    for hook in &hooks {
        if speaks == Speaks::Pi && Pi::is_later_event(&hook.event) {
            registered.warnings.push(format!(
                "`{}` is an event of a later version of pi, which never happens here",
                hook.event
            ));
        }
    }
    let hooks: Result<_, Fault> = hooks.into_iter().map(|hook| found(speaks, hook)).collect();
    let state = FileState::Script {
        hooks: hooks?,
        tools: registered.tools.iter().map(|it| it.name.clone()).collect(),
        commands: registered
            .commands
            .iter()
            .map(|it| it.name.clone())
            .collect(),
    };
    candidate.registered = registered;
    Ok(state)
}

fn found(speaks: Speaks, hook: ScriptHook) -> Result<FoundHook, Fault> {
    let name = hook.name;
    let Some((event, _)) = speaks.declared(&hook.event) else {
        let fault = speaks.unknown_event(&hook.event);
        let message = format!("hook `{}`: {}", name.escape_debug(), fault.message);
        return Err(Fault { message, ..fault });
    };
    if let Some(matcher) = &hook.matcher {
        let fault = |problem: String| Fault {
            place: FaultPlace::Quoted(matcher.clone()),
            ..format!("hook `{}`: {problem}", name.escape_debug()).into()
        };
        if event.info().subject.is_none() {
            return Err(
                fault(format!("a matcher has nothing to match on `{event}`"))
                    .hint("leave the matcher out"),
            );
        }
        Matcher::parse(matcher).map_err(|error| fault(tenterhook::error_chain(&error)))?;
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

/// Takes what a script has: its hooks, its tools, its commands and its flags.
pub(super) async fn take(
    candidate: &Candidate,
    workers: &Workers,
    versions: &mut Versions,
    discovered: &mut Discovered,
) {
    let (FileState::Script { hooks, .. }, Some(language)) =
        (&candidate.found.state, candidate.language)
    else {
        return;
    };
    let Registered {
        tools,
        commands,
        flags,
        warnings,
        ..
    } = candidate.registered.clone();
    let file = &candidate.found.name;
    let told = warnings
        .iter()
        .map(|warning| format!("`{file}`: {warning}"));
    discovered.warnings.extend(told);
    if hooks.is_empty() && tools.is_empty() && commands.is_empty() && flags.is_empty() {
        return;
    }
    let worker = workers.of(language, candidate).await;
    let expected = hooks.iter().map(|hook| ScriptHook {
        name: hook.name.clone(),
        event: hook.declared.clone(),
        matcher: hook.matcher.clone(),
        priority: hook.priority,
    });
    let version = versions.of(candidate);
    let expected = expected.collect();
    let lease = worker.expect(&script(candidate), expected, version).await;
    let made = hooks
        .iter()
        .enumerate()
        .filter_map(|(place, hook)| made(candidate, (place, hook), &worker, &lease));
    discovered.specs.extend(made);
    let is_free =
        |kind, name: &str, discovered: &mut Discovered| discovered.claim(file, kind, name);
    let tools = tools
        .into_iter()
        .filter(|it| is_free("tool", &it.name, discovered));
    let tools = tools.collect();
    let commands = commands
        .into_iter()
        .filter(|it| is_free("command", &it.name, discovered));
    let commands = commands.collect();
    discovered.scripts.push(FoundScript {
        name: file.clone(),
        worker,
        lease,
        tools,
        commands,
        flags,
    });
}

/// Makes one hook of a script.
fn made(
    candidate: &Candidate,
    (place, hook): (usize, &FoundHook),
    worker: &Worker,
    lease: &Lease,
) -> Option<HookSpec> {
    let found = &candidate.found;
    let FileState::Script { hooks, .. } = &found.state else {
        return None;
    };
    // It was read before, when the script said which hooks it has.
    let (_, dialect) = found.speaks.declared(&hook.declared)?;
    let text = format!("{} {}", found.name, hook.name);
    let policy = match found.speaks {
        Speaks::Operator | Speaks::Morphix | Speaks::Pi => dialect.policy(hook.event.info(), None),
        Speaks::Kodelet | Speaks::KodeletExtension | Speaks::Tenterhook => {
            native_policy(hook.event.info(), None)
        }
    };
    let tools = tools::of_hooks(&*dialect);
    let handler = WorkerHandler::leased(worker.clone(), (lease.clone(), place), dialect, text);
    let matcher = hook.matcher.as_deref().map(Matcher::parse);
    Some(HookSpec {
        id: hook_id(&found.name, hooks, place),
        matcher: matcher
            .and_then(Result::ok)
            .unwrap_or_else(Matcher::everything),
        priority: hook.priority,
        tools,
        ..spec(found, hook.event.clone(), Arc::new(handler), policy)
    })
}
