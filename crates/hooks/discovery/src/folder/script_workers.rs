//! The workers that serve scripts. Decides which scripts share a worker, and loads them.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use tenterhook_engine::Layer;
use tenterhook_hookfile::SourceProblem;
use tenterhook_process::{Command, Program};
use tenterhook_runners::worker::{ApprovedCopy, Host, Script, Worker, node, python};
use tenterhook_systems::hook_folder::{FolderKind, ScriptLanguage};
use tenterhook_trust::find_program;
use tokio::time::{Instant, timeout_at};

use super::candidate::Candidate;
use super::language::Language;
use super::load_problem::too_slow;
use super::probe_output::WORKER;

/// How long the scripts of one worker may take to load together. After that, each remaining script is
/// loaded in a worker of its own, in parallel, so that one slow script does not delay the others.
const SHARED_DEADLINE: Duration = Duration::from_secs(5);

/// The workers of scripts: one for each language and origin, started when it is needed. Scripts of a
/// project never share a process with scripts of the user.
#[derive(Debug)]
pub(super) struct ScriptWorkers {
    directory: PathBuf,
    host: Arc<dyn Host>,
    state: Mutex<WorkerState>,
}

#[derive(Debug, Default)]
struct WorkerState {
    workers: HashMap<WorkerKey, Worker>,
    /// The last known version of each script and the sources next to it, by the script's path.
    versions: HashMap<(WorkerKey, PathBuf), String>,
    /// The first known version of each script and the sources next to it.
    first: HashMap<PathBuf, String>,
    /// Scripts that have a worker of their own, because a shared worker crashed or timed out with them.
    isolated: HashSet<PathBuf>,
    /// The version and the registration of each script, so that each version is loaded only once.
    registered: HashMap<(Layer, PathBuf), (String, String)>,
}

impl WorkerState {
    /// Returns the key of the worker that serves a script.
    fn worker_key(&mut self, language: Language, candidate: &Candidate) -> WorkerKey {
        let project = candidate.project().map(|project| project.dir.clone());
        let now = format!("{} {}", candidate.sha256, candidate.sources_sha256);
        let first = self
            .first
            .entry(candidate.found.path.clone())
            .or_insert_with(|| now.clone());
        let changed = if now == *first { String::new() } else { now };
        let is_alone = candidate.is_isolated
            || language == Language::Program
            || self.isolated.contains(&candidate.run);
        let own = is_alone.then(|| candidate.run.clone());
        let folder = candidate.found.path.parent();
        let is_python = language == Language::Script(ScriptLanguage::Python);
        WorkerKey {
            language,
            layer: candidate.found.layer,
            project,
            // Python loads only one module with the same name. Two folders may each have a `rules.py`, and two approved
            // scripts may have different copies of it.
            modules: folder
                .filter(|_| is_python)
                .map(|folder| (folder.to_owned(), candidate.sources_sha256.clone())),
            own,
            changed,
        }
    }
}

/// Identifies a worker. Scripts with equal keys share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct WorkerKey {
    language: Language,
    layer: Layer,
    /// The project of its scripts.
    project: Option<PathBuf>,
    /// The folder of its scripts and the digest of the sources that they may load, if scripts with others must not share
    /// the worker.
    modules: Option<(PathBuf, String)>,
    /// The only script that it serves, if that script has a worker of its own.
    own: Option<PathBuf>,
    /// The digests of its script and sources, if they changed since they were first seen. An interpreter
    /// does not load a module again, so a hook that a helper module registers would be lost.
    changed: String,
}

/// The reason why a script did not load.
enum LoadFailure {
    /// The worker reported an error.
    Refused(SourceProblem),
    /// The worker ended.
    Crashed(SourceProblem),
    /// It took longer than this.
    TimedOut(Duration),
}

/// A script to load: its index among all candidates, its language and the candidate.
type ScriptToLoad<'a> = (usize, Language, &'a Candidate);

impl ScriptWorkers {
    /// Creates the workers of a directory. Their scripts may send requests to the host.
    pub(super) fn new(directory: &Path, host: Arc<dyn Host>) -> Self {
        Self {
            directory: directory.to_owned(),
            host,
            state: Mutex::default(),
        }
    }

    /// Drops the workers that are no longer used.
    pub(super) fn drop_unused(&self) {
        let mut state = self.state();
        let WorkerState {
            workers, versions, ..
        } = &mut *state;
        workers.retain(|_, worker| worker.is_shared());
        versions.retain(|(key, _), _| workers.contains_key(key));
    }

    /// Returns the worker of a script, and whether the script changed since it was last loaded.
    fn seat(&self, language: Language, candidate: &Candidate) -> (Worker, bool) {
        let mut state = self.state();
        let key = state.worker_key(language, candidate);
        let WorkerState {
            workers, versions, ..
        } = &mut *state;
        let worker = workers.entry(key.clone()).or_insert_with(|| {
            let worker = match language {
                Language::Script(ScriptLanguage::Python) => {
                    of_search_path(python(&self.directory), candidate)
                }
                Language::Script(ScriptLanguage::JavaScript) => {
                    of_search_path(node(&self.directory), candidate)
                }
                Language::Program => self.program(candidate),
            };
            worker.hosted_by(Arc::clone(&self.host))
        });
        let version = &candidate.sha256;
        let before = versions.insert((key, candidate.run.clone()), version.clone());
        (
            worker.clone(),
            before.is_some_and(|before| before != *version),
        )
    }

    /// Creates the worker for an executable that is a worker itself.
    fn program(&self, candidate: &Candidate) -> Worker {
        let command = Command::new(Program::exec([candidate.run.as_os_str(), WORKER.as_ref()]));
        let command = candidate.with_search_path(command);
        let command = if self.directory.as_os_str().is_empty() {
            command
        } else {
            command.working_dir(self.directory.clone())
        };
        Worker::new(candidate.found.name.clone(), command)
    }

    pub(super) async fn of(&self, language: Language, candidate: &Candidate) -> Worker {
        let (worker, is_changed) = self.seat(language, candidate);
        if is_changed {
            worker.renew(&script(candidate)).await;
        }
        worker
    }

    /// Loads scripts. Returns the registration of each as text, with its index.
    ///
    /// Scripts of one worker are loaded one after another. Scripts that crash the worker, or for which no
    /// time is left, are then loaded in parallel, each in a worker of its own.
    pub(super) async fn load_all(
        &self,
        scripts: Vec<ScriptToLoad<'_>>,
        deadline: Duration,
    ) -> Vec<(usize, Result<String, SourceProblem>)> {
        let mut groups: Vec<(WorkerKey, Vec<ScriptToLoad<'_>>)> = Vec::new();
        for script in scripts {
            let key = self.state().worker_key(script.1, script.2);
            match groups.iter_mut().find(|(of, _)| *of == key) {
                Some((_, group)) => group.push(script),
                None => groups.push((key, vec![script])),
            }
        }
        let groups = groups
            .into_iter()
            .map(|(_, group)| self.load_group(group, deadline));
        join_all(groups).await.into_iter().flatten().collect()
    }

    async fn load_group(
        &self,
        group: Vec<ScriptToLoad<'_>>,
        deadline: Duration,
    ) -> Vec<(usize, Result<String, SourceProblem>)> {
        let shared_until = (group.len() > 1).then(|| Instant::now() + SHARED_DEADLINE);
        let mut answers = Vec::with_capacity(group.len());
        let mut to_load = Vec::with_capacity(group.len());
        for script in group {
            match self.answer_without_load(script) {
                Some(answer) => answers.push((script.0, answer)),
                None => to_load.push(script),
            }
        }
        let mut isolated = Vec::new();
        let mut rest = to_load.as_slice();
        while !rest.is_empty() {
            if shared_until.is_some_and(|until| until <= Instant::now()) {
                let runs = rest.iter().map(|(_, _, it)| it.run.clone());
                self.state().isolated.extend(runs);
                isolated.extend_from_slice(rest);
                break;
            }
            let loaded = self.load_together(rest, shared_until, deadline).await;
            let (done, left) = rest.split_at(loaded.len());
            for (&script, loaded) in done.iter().zip(loaded) {
                match loaded {
                    Ok(registered) => answers.push((script.0, Ok(registered))),
                    Err(LoadFailure::Refused(problem)) => answers.push((script.0, Err(problem))),
                    Err(LoadFailure::TimedOut(within)) if within == deadline => {
                        self.isolate(script.2);
                        answers.push((script.0, Err(too_slow(deadline))));
                    }
                    Err(LoadFailure::Crashed(_) | LoadFailure::TimedOut(_)) => {
                        self.isolate(script.2);
                        isolated.push(script);
                    }
                }
            }
            rest = left;
        }
        let isolated = isolated.into_iter().map(|script| async move {
            let loaded = self.load_together(&[script], None, deadline).await;
            let answer = loaded.into_iter().map(|loaded| {
                loaded.map_err(|failure| match failure {
                    LoadFailure::Refused(problem) => problem,
                    LoadFailure::Crashed(problem) => {
                        self.isolate(script.2);
                        problem
                    }
                    LoadFailure::TimedOut(_) => {
                        self.isolate(script.2);
                        too_slow(deadline)
                    }
                })
            });
            answer.map(|answer| (script.0, answer)).collect::<Vec<_>>()
        });
        answers.extend(join_all(isolated).await.into_iter().flatten());
        answers
    }

    /// Returns the answer for a script that was loaded before and has not changed, or that has no interpreter.
    fn answer_without_load(
        &self,
        (_, language, candidate): ScriptToLoad<'_>,
    ) -> Option<Result<String, SourceProblem>> {
        let key = (candidate.found.layer, candidate.run.clone());
        let version = candidate.version();
        if let Some((before, registered)) = self.state().registered.get(&key)
            && *before == version
        {
            return Some(Ok(registered.clone()));
        }
        let name = language.interpreter()?;
        if find_program(name, &self.directory, candidate.search_path.as_deref()).is_some() {
            return None;
        }
        let place = match &candidate.search_path {
            Some(_) => " outside of the project",
            None => "",
        };
        let problem = SourceProblem::from(format!(
            "the interpreter `{name}` was not found in `PATH`{place}"
        ));
        Some(Err(problem.hint(format!("install `{name}`"))))
    }

    /// Loads scripts in their worker, one after another. Returns the registration of each as text. A script with which
    /// the worker ends or for which the time is up is the last one in the result, which has at least one.
    async fn load_together(
        &self,
        scripts: &[ScriptToLoad<'_>],
        shared_until: Option<Instant>,
        deadline: Duration,
    ) -> Vec<Result<String, LoadFailure>> {
        let within = || match shared_until {
            Some(until) => deadline.min(until.saturating_duration_since(Instant::now())),
            None => deadline,
        };
        let problem = |candidate: &Candidate, error: &dyn Display| {
            SourceProblem::of_script(&candidate.found.path, &error.to_string())
        };
        let mut limit = within();
        let mut until = Instant::now() + limit;
        let seats = scripts
            .iter()
            .map(|&(_, language, it)| self.seat(language, it));
        let seats: Vec<(Worker, bool)> = seats.collect();
        let files: Vec<Script> = scripts.iter().map(|(_, _, it)| script(it)).collect();
        let (Some((worker, _)), Some((_, _, first))) = (seats.first(), scripts.first()) else {
            return Vec::new();
        };
        let loads = async {
            for ((_, is_changed), file) in seats.iter().zip(&files) {
                if *is_changed {
                    worker.renew(file).await;
                }
            }
            worker.load_all(&files).await
        };
        let mut loads = match timeout_at(until, loads).await {
            Ok(Ok(loads)) => loads,
            Ok(Err(error)) => return vec![Err(LoadFailure::Crashed(problem(first, &error)))],
            Err(_) => return vec![Err(LoadFailure::TimedOut(limit))],
        };
        let mut results = Vec::with_capacity(scripts.len());
        for (_, _, candidate) in scripts {
            let Ok(Some(loaded)) = timeout_at(until, loads.next()).await else {
                results.push(Err(LoadFailure::TimedOut(limit)));
                break;
            };
            let loaded = loaded.map_err(|error| error.to_string());
            let loaded = loaded.and_then(|(_, registered)| {
                serde_json::to_string(&registered).map_err(|error| error.to_string())
            });
            match loaded {
                Ok(registered) => {
                    let key = (candidate.found.layer, candidate.run.clone());
                    let known = (candidate.version(), registered.clone());
                    self.state().registered.insert(key, known);
                    results.push(Ok(registered));
                }
                Err(error) if loads.is_running() => {
                    results.push(Err(LoadFailure::Refused(problem(candidate, &error))));
                }
                Err(error) => {
                    results.push(Err(LoadFailure::Crashed(problem(candidate, &error))));
                    break;
                }
            }
            limit = within();
            until = Instant::now() + limit;
        }
        results
    }

    fn state(&self) -> MutexGuard<'_, WorkerState> {
        self.state.lock()
    }

    /// Gives a script a worker of its own from now on, and drops the worker in which it failed. Scripts
    /// that are in use keep that worker.
    fn isolate(&self, candidate: &Candidate) {
        let mut state = self.state();
        let project = candidate.project().map(|project| &project.dir);
        let (layer, run) = (candidate.found.layer, &candidate.run);
        state.workers.retain(|key, _| {
            let is_same = key.layer == layer && key.project.as_ref() == project;
            !(is_same && key.own.as_ref().is_none_or(|own| own == run))
        });
        state.isolated.insert(run.clone());
    }
}

/// Returns the API for which the scripts of a folder are written. In a folder without scripts, a program
/// is a native worker.
fn api(kind: &FolderKind) -> &'static str {
    kind.scripts.as_ref().map_or(kind.name, |it| it.api)
}

/// Returns a worker that finds its interpreter where the candidate may find it.
fn of_search_path(worker: Worker, candidate: &Candidate) -> Worker {
    match &candidate.search_path {
        Some(search) => worker.search_path(search),
        None => worker,
    }
}

/// Returns the copy that a script of a project runs from.
fn approved_copy(candidate: &Candidate) -> Option<ApprovedCopy> {
    let (copies, project) = (candidate.copies.as_ref()?, candidate.project()?);
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Some(ApprovedCopy {
        project: absolute(&project.dir),
        copies: absolute(copies),
    })
}

pub(super) fn script(candidate: &Candidate) -> Script {
    Script {
        // The worker runs in the directory of the events. A relative path would mean another file there,
        // such as an unapproved file of a project.
        path: std::path::absolute(&candidate.run).unwrap_or_else(|_| candidate.run.clone()),
        api: api(candidate.found.kind),
        approved: approved_copy(candidate),
    }
}
