//! The hooks of all sessions of all hosts.
//!
//! A session keeps the hooks that were in force when it started, also if it works in another folder
//! later. Sessions that start with the same files share their hooks and workers. Loading happens once,
//! however many events wait for it, and it continues if all of them give up.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tenterhook_engine::{AgentRef, Dispatcher, JournalSink, Origin};
use tenterhook_tools::ProcessId;
use tokio::sync::watch;

use crate::answered_calls::AnsweredCalls;
use crate::continuation::Continuation;
use crate::project::HostedProject;
use crate::session_starts::{MAX_STARTS, SessionStarted, SessionStartsFile};

/// How many sessions are kept. The one that was used least recently is forgotten.
const MAX_SESSIONS: usize = 256;
/// How many folders are kept for new sessions.
const MAX_PROJECTS: usize = 64;

/// A host and a session id.
type SessionKey = (&'static str, String);
/// A host and a folder.
type ProjectKey = (&'static str, PathBuf);
/// A project that is loaded or being loaded. The error is for a person.
pub(crate) type LoadResult = Result<Arc<HostedProject>, Arc<str>>;

/// A project that may still be loading.
#[derive(Debug, Clone)]
pub(crate) struct LoadingProject(watch::Receiver<Option<LoadResult>>);

impl LoadingProject {
    fn start(host: &'static str, start: PathBuf, journal: Arc<dyn JournalSink>) -> Self {
        let (sender, receiver) = watch::channel(None);
        tokio::spawn(async move {
            let loaded = HostedProject::load(host, start, journal).await;
            let loaded = loaded
                .map(Arc::new)
                .map_err(|error| error.in_one_line().into());
            sender.send_replace(Some(loaded));
        });
        Self(receiver)
    }

    /// Waits until the project is loaded.
    pub(crate) async fn loaded(&self) -> LoadResult {
        let mut receiver = self.0.clone();
        let loaded = receiver.wait_for(Option::is_some).await;
        let loaded = loaded.ok().and_then(|loaded| loaded.clone());
        loaded.unwrap_or_else(|| {
            Err("loading the hooks panicked; this is a bug in Tenterhook".into())
        })
    }

    /// Returns the project if it is loaded.
    pub(crate) fn now(&self) -> Option<LoadResult> {
        self.0.borrow().clone()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.0.same_channel(&other.0)
    }
}

/// A session of a host.
#[derive(Debug)]
pub(crate) struct HostSession {
    /// The process of the host, if it is known.
    host: Option<ProcessId>,
    start: PathBuf,
    project: Mutex<LoadingProject>,
    dispatcher: Mutex<Option<(Arc<HostedProject>, Dispatcher)>>,
    /// The agent of the session, if the start of the session says that it is a subagent.
    pub(crate) subagent: Option<AgentRef>,
    /// How often hooks have kept the agent working.
    pub(crate) continuation: Mutex<Continuation>,
    /// The changes of files that the person was shown, because the session has an earlier version.
    pub(crate) shown: Mutex<Vec<String>>,
    /// The tool events that were answered lately.
    pub(crate) answered: AnsweredCalls,
}

impl HostSession {
    /// Returns a dispatcher for an event of the session.
    pub(crate) fn dispatcher(&self, project: &Arc<HostedProject>, origin: Origin) -> Dispatcher {
        let mut known = self.dispatcher.lock();
        if let Some((of, dispatcher)) = &*known
            && Arc::ptr_eq(of, project)
        {
            return dispatcher.with_origin(origin);
        }
        let dispatcher = project.engine.dispatcher(origin);
        *known = Some((Arc::clone(project), dispatcher.clone()));
        dispatcher
    }

    /// Returns the session's project.
    pub(crate) fn project(&self) -> LoadingProject {
        self.project.lock().clone()
    }
}

/// An event whose session is wanted.
#[derive(Debug, Clone)]
pub(crate) struct SessionEvent {
    pub(crate) host: &'static str,
    pub(crate) session_id: String,
    /// The folder in which the session starts, if it is new.
    pub(crate) start: PathBuf,
    /// Whether the event says that the session has begun.
    pub(crate) is_start: bool,
    /// The process of the host, if it is known.
    pub(crate) process: Option<ProcessId>,
    /// The agent, if the event says that the session begins with a subagent.
    pub(crate) subagent: Option<AgentRef>,
}

/// Which process of a host has a session, and in which folder the session started.
type SessionBeginning = (Option<ProcessId>, PathBuf);

/// The hooks of all sessions.
#[derive(Debug)]
pub(crate) struct ProjectCache {
    journal: Arc<dyn JournalSink>,
    starts_file: Arc<SessionStartsFile>,
    state: Arc<Mutex<CacheState>>,
}

#[derive(Debug, Default)]
struct CacheState {
    sessions: BTreeMap<SessionKey, (u64, Arc<HostSession>)>,
    /// The processes and folders of sessions, also of those that were forgotten and of earlier daemons. A
    /// session that was forgotten gets the hooks of its folder again, wherever the agent works by then.
    starts: BTreeMap<SessionKey, (u64, SessionBeginning)>,
    projects: BTreeMap<ProjectKey, (u64, LoadingProject)>,
    /// Counts uses, so that the least recent one is known.
    clock: u64,
}

impl CacheState {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn session(&mut self, key: &SessionKey) -> Option<Arc<HostSession>> {
        let now = self.tick();
        let (used, session) = self.sessions.get_mut(key)?;
        *used = now;
        Some(Arc::clone(session))
    }

    fn remember_start(&mut self, key: SessionKey, beginning: SessionBeginning) {
        let now = self.tick();
        self.starts.insert(key, (now, beginning));
        limit(&mut self.starts, MAX_STARTS);
    }

    /// Returns the starts of all sessions, the oldest first.
    fn all_starts(&self) -> Vec<SessionStarted> {
        let mut starts: Vec<_> = self.starts.iter().collect();
        starts.sort_by_key(|(_, (when, _))| *when);
        let starts = starts.into_iter();
        starts
            .map(|(key, (_, beginning))| session_started(key, beginning))
            .collect()
    }
}

fn session_started(
    (host, session_id): &SessionKey,
    (process, folder): &SessionBeginning,
) -> SessionStarted {
    SessionStarted {
        host,
        session_id: session_id.clone(),
        process: *process,
        folder: folder.clone(),
    }
}

/// Removes the least recently used entry if there are too many.
fn limit<K: Ord + Clone, V>(entries: &mut BTreeMap<K, (u64, V)>, most: usize) {
    if entries.len() > most {
        let oldest = entries.iter().min_by_key(|(_, (used, _))| *used);
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            entries.remove(&key);
        }
    }
}

impl ProjectCache {
    /// Starts with the sessions that earlier daemons have seen. Blocks the thread.
    pub(crate) fn new(journal: Arc<dyn JournalSink>, starts: PathBuf) -> Self {
        let (starts_file, known) = SessionStartsFile::open(starts);
        let mut state = CacheState::default();
        for start in known {
            let key = (start.host, start.session_id);
            state.remember_start(key, (start.process, start.folder));
        }
        Self {
            journal,
            starts_file: Arc::new(starts_file),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Returns why the starts of sessions cannot be read or written, if they cannot.
    pub(crate) fn starts_problem(&self) -> Option<String> {
        self.starts_file.problem()
    }

    /// Returns whether an event belongs to a session that is known, and does not start it anew.
    pub(crate) fn is_known(&self, host: &'static str, session_id: &str) -> bool {
        let key = (host, session_id.to_owned());
        self.state.lock().sessions.contains_key(&key)
    }

    /// Returns the session of an event. An unknown session, and one that starts, gets the current hooks.
    ///
    /// # Errors
    /// Fails if the session is unknown but not new, and the list of an earlier daemon may have lost its folder. The text
    /// is the reason to deny.
    pub(crate) async fn session(
        &self,
        mut event: SessionEvent,
    ) -> Result<Arc<HostSession>, String> {
        let key = (event.host, event.session_id.clone());
        let begun = self.state.lock().starts.get(&key).cloned();
        let is_unknown = begun.is_none() && !event.is_start;
        if let Some((_, (process, start))) = begun
            && !begins_anew(process, &event)
        {
            (event.process, event.start) = (process, start);
        }
        if let Some(session) = self.state.lock().session(&key)
            && !begins_anew(session.host, &event)
        {
            return Ok(session);
        }
        if is_unknown && let Some(damage) = self.starts_damage().await {
            return Err(damage);
        }
        let project = self.current(event.host, &event.start).await;
        let (session, is_new) = self.insert(key.clone(), event, project);
        if is_new {
            self.save_start(&key, &session).await;
        }
        Ok(session)
    }

    async fn starts_damage(&self) -> Option<String> {
        let file = Arc::clone(&self.starts_file);
        let look = tokio::task::spawn_blocking(move || file.damage());
        look.await.unwrap_or_else(|error| Some(error.to_string()))
    }

    /// Adds a session. Returns the session of the key, and whether its start has to be saved.
    fn insert(
        &self,
        key: SessionKey,
        event: SessionEvent,
        project: LoadingProject,
    ) -> (Arc<HostSession>, bool) {
        let mut state = self.state.lock();
        // Another event of the new session may have been faster.
        if let Some(session) = state.session(&key)
            && !begins_anew(session.host, &event)
        {
            return (session, false);
        }
        let session = Arc::new(HostSession {
            host: event.process,
            start: event.start,
            project: Mutex::new(project),
            dispatcher: Mutex::default(),
            subagent: event.subagent,
            continuation: Mutex::default(),
            shown: Mutex::default(),
            answered: AnsweredCalls::default(),
        });
        let beginning = (session.host, session.start.clone());
        let before = state.starts.get(&key).map(|(_, beginning)| beginning);
        let is_new = before != Some(&beginning);
        state.remember_start(key.clone(), beginning);
        let now = state.tick();
        state.sessions.insert(key, (now, Arc::clone(&session)));
        limit(&mut state.sessions, MAX_SESSIONS);
        (session, is_new)
    }

    /// Writes the start of a session for the next daemon, before the session's first event is answered.
    async fn save_start(&self, key: &SessionKey, session: &HostSession) {
        let started = session_started(key, &(session.host, session.start.clone()));
        let (file, state) = (Arc::clone(&self.starts_file), Arc::clone(&self.state));
        let save = move || file.add(&started, || state.lock().all_starts());
        // A failure is reported by `tenterhook status`.
        tokio::task::spawn_blocking(save).await.ok();
    }

    /// Returns the current hooks of a folder. Loads them if they are not loaded or their files have changed.
    async fn current(&self, host: &'static str, start: &Path) -> LoadingProject {
        let key = (host, start.to_owned());
        let known = {
            let mut state = self.state.lock();
            let now = state.tick();
            match state.projects.get_mut(&key) {
                Some((used, project)) => {
                    *used = now;
                    project.clone()
                }
                None => return self.load(&mut state, key),
            }
        };
        let is_current = match known.loaded().await {
            Ok(project) => project.is_current().await,
            Err(_) => false,
        };
        let mut state = self.state.lock();
        match state.projects.get(&key) {
            Some((_, newer)) if is_current || !newer.is_same(&known) => newer.clone(),
            _ => self.load(&mut state, key),
        }
    }

    fn load(&self, state: &mut CacheState, key: ProjectKey) -> LoadingProject {
        let project = LoadingProject::start(key.0, key.1.clone(), Arc::clone(&self.journal));
        let now = state.tick();
        state.projects.insert(key, (now, project.clone()));
        limit(&mut state.projects, MAX_PROJECTS);
        project
    }

    /// Loads the hooks of a session again if they could not be loaded and the user has changed something.
    pub(crate) async fn repair(&self, host: &'static str, session: &HostSession) -> LoadResult {
        let project = self.current(host, &session.start).await;
        *session.project.lock() = project.clone();
        project.loaded().await
    }

    /// Returns all projects that are in use, with their hosts and the number of their sessions.
    pub(crate) fn in_use(&self) -> Vec<(&'static str, PathBuf, LoadingProject, usize)> {
        let state = self.state.lock();
        let mut found: Vec<(&'static str, PathBuf, LoadingProject, usize)> = Vec::new();
        // A session is not over as long as its host may still run.
        let is_over = |session: &HostSession| session.host.is_some_and(|it| !it.is_running());
        let sessions = state.sessions.iter().filter(|(_, (_, it))| !is_over(it));
        for ((host, _), (_, session)) in sessions {
            let project = session.project();
            let known = found.iter_mut().find(|(_, _, it, _)| it.is_same(&project));
            match known {
                Some((.., sessions)) => *sessions += 1,
                None => found.push((host, session.start.clone(), project, 1)),
            }
        }
        for ((host, start), (_, project)) in &state.projects {
            if !found.iter().any(|(_, _, it, _)| it.is_same(project)) {
                found.push((host, start.clone(), project.clone(), 0));
            }
        }
        found
    }

    /// Forgets which hooks a folder has for new sessions, so that they are loaded again.
    pub(crate) fn forget(&self, host: &'static str, start: &Path) {
        self.state.lock().projects.remove(&(host, start.to_owned()));
    }
}

/// Returns whether a known session gets the current hooks. A program of the agent can send events in the
/// name of its own session, so a session whose host still runs keeps its hooks.
fn begins_anew(process: Option<ProcessId>, event: &SessionEvent) -> bool {
    let is_same_host = process.is_some_and(ProcessId::is_running);
    event.is_start && !is_same_host
}
