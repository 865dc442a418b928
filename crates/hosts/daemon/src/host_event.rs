//! One event of a host: read, judged and answered.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tenterhook_engine::event::{SessionEnd, SessionSource, SessionStart, UserPromptSubmit};
use tenterhook_engine::journal::{HostRecord, JournalRecord};
use tenterhook_engine::{Decision, Dispatcher, InvokedBy, JournalSink, JsonObject, SessionId};
use tenterhook_shim::failure;
use tenterhook_shim::frame::{EventRequest, Printed};
use tenterhook_shim::place::DaemonPlace;
use tenterhook_systems::host::answer::HostAnswer;
use tenterhook_systems::host::{EventRole, HostAgent, HostCall, HostEvent, HostInput, HostedEvent};
use tenterhook_tools::{ProcessId, ancestor_running};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::answered_calls::Repetition;
use crate::continuation::MAX_CONTINUED;
use crate::counters::EventCounters;
use crate::daily_journal::DailyJournal;
use crate::host_processes::HostProcesses;
use crate::judgement::{Judgement, judge_call, judge_other, judge_prompt, judge_result};
use crate::outdated_hooks::OutdatedHooks;
use crate::project::{HostedProject, resolved};
use crate::projects::{HostSession, ProjectCache, SessionEvent};

/// The longest time for the hooks of one event. Shims wait for less.
const MAX_PATIENCE: Duration = Duration::from_mins(1);

/// Handles the events of all hosts.
#[derive(Debug)]
pub(crate) struct HostEvents {
    pub(crate) projects: ProjectCache,
    pub(crate) hosts: Arc<HostProcesses>,
    pub(crate) counters: EventCounters,
    pub(crate) journal: Arc<DailyJournal>,
    /// The tasks that continue after the host has its answer.
    pub(crate) tasks: TaskTracker,
}

/// An event that is being handled.
struct Asking<'a> {
    host: &'static HostAgent,
    event: &'static HostEvent,
    request: &'a EventRequest,
    object: &'a JsonObject,
    call: HostCall,
    session: Arc<HostSession>,
}

impl HostEvents {
    /// Reads what earlier daemons have written to `place`. Blocks the thread.
    ///
    /// # Errors
    /// Fails if the list of host processes cannot be read.
    pub(crate) fn new(journal: DailyJournal, place: &DaemonPlace) -> io::Result<Self> {
        let journal = Arc::new(journal);
        let hosts = HostProcesses::new(place.hosts.clone())?;
        Ok(Self {
            projects: ProjectCache::new(Arc::clone(&journal) as _, place.sessions.clone()),
            hosts: Arc::new(hosts),
            counters: EventCounters::default(),
            journal,
            tasks: TaskTracker::new(),
        })
    }

    /// Returns what the shim prints for an event. `shim` is its process.
    pub(crate) async fn handle(&self, request: EventRequest, shim: Option<u32>) -> Printed {
        self.counters.events.add(1);
        let Some(host) = HostAgent::by_name(&request.host) else {
            let name = &request.host;
            let reason = format!("Tenterhook does not know the host `{name}`");
            return failure::unknown(&request.event, &reason);
        };
        let Some(event) = host.event(&request.event) else {
            let name = &request.event;
            let title = host.title;
            let reason = format!("Tenterhook does not know the event `{name}` of {title}");
            return failure::unknown(name, &reason);
        };
        let patience = Duration::from_millis(request.patience_ms).min(MAX_PATIENCE);
        let answered = timeout(patience, self.answer(host, event, &request, shim)).await;
        let problem = match answered {
            Ok(Ok(answer)) => return printed(answer),
            Ok(Err(problem)) => problem,
            Err(_) => "the hooks did not answer in time".to_owned(),
        };
        self.report_failure(host, event, &problem);
        printed(host.failure_answer(event, &failure_reason(event, &problem)))
    }

    /// Records that the hooks of an event could not be asked.
    fn report_failure(&self, host: &HostAgent, event: &HostEvent, problem: &str) {
        if event.role.is_gate() {
            self.counters.failed.add(1);
        }
        let mut record = HostRecord::now(host.name, event.name);
        record.problem = Some(problem.to_owned());
        self.journal.record_at_once(JournalRecord::Host(record));
    }

    async fn answer(
        &self,
        host: &'static HostAgent,
        event: &'static HostEvent,
        request: &EventRequest,
        shim: Option<u32>,
    ) -> Result<HostAnswer, String> {
        let object: JsonObject = serde_json::from_slice(&request.input)
            .map_err(|error| format!("the event is not a JSON object: {error}"))?;
        let input = HostInput {
            object: &object,
            variables: &request.variables,
        };
        let mut call = (host.read)(event, &input)
            .map_err(|error| format!("the event cannot be read: {error}"))?;
        let session = self.session(host, request, &call, shim).await?;
        if let Some(subagent) = &session.subagent {
            call.origin.agent = subagent.clone();
            call.origin.invoked_by = InvokedBy::Subagent;
        }
        if is_prompt(&call.event) {
            session.continuation.lock().prompted();
        }
        let project = self.loaded(host, event, &session).await?;
        if project.must_follow() {
            let project = Arc::clone(&project);
            self.tasks.spawn(async move { project.follow().await });
        }
        let repetition = session.answered.find(event.name, &call.event);
        let asking = Asking {
            host,
            event,
            request,
            object: &object,
            call,
            session,
        };
        let ask = async || self.ask(asking, &project).await;
        match repetition {
            None => ask().await,
            Some(Repetition::Again(_)) if !event.role.is_gate() => Ok(HostAnswer::default()),
            Some(Repetition::First(call) | Repetition::Again(call)) => call.answer(ask).await,
        }
    }

    /// Returns the session of an event.
    ///
    /// # Errors
    /// Fails if the session may have started in another folder than the one that the agent reports now. The text is the
    /// reason to deny.
    async fn session(
        &self,
        host: &'static HostAgent,
        request: &EventRequest,
        call: &HostCall,
        shim: Option<u32>,
    ) -> Result<Arc<HostSession>, String> {
        let directory = Path::new(OsStr::from_bytes(&request.directory));
        let named = call.origin.cwd.as_path();
        let start = if named.is_absolute() {
            named
        } else {
            directory
        };
        let session_id = call.origin.session_id.as_str().to_owned();
        let is_start = is_session_start(&call.event);
        let is_new = is_start || !self.projects.is_known(host.name, &session_id);
        let (start, process) = if is_new {
            self.look(start.to_owned(), shim, host).await
        } else {
            (start.to_owned(), None)
        };
        let event = SessionEvent {
            host: host.name,
            session_id,
            start,
            is_start,
            process,
            subagent: (is_start && call.origin.invoked_by == InvokedBy::Subagent)
                .then(|| call.origin.agent.clone()),
        };
        self.projects.session(event).await
    }

    /// Resolves the folder of a new session. Finds and remembers the process of the host that started a
    /// shim.
    async fn look(
        &self,
        start: PathBuf,
        shim: Option<u32>,
        host: &'static HostAgent,
    ) -> (PathBuf, Option<ProcessId>) {
        let (hosts, named) = (Arc::clone(&self.hosts), start.clone());
        let look = move || {
            let programs = [host.programs, host.processes].concat();
            let process = shim.and_then(|shim| ancestor_running(shim, &programs));
            if let Some(process) = process {
                hosts.add(process);
            }
            (resolved(&named), process)
        };
        let looked = tokio::task::spawn_blocking(look).await;
        looked.unwrap_or((start, None))
    }

    /// Returns the hooks of the session. If they could not be loaded, gates fail, and other events have the
    /// hooks that could be loaded.
    async fn loaded(
        &self,
        host: &HostAgent,
        event: &HostEvent,
        session: &HostSession,
    ) -> Result<Arc<HostedProject>, String> {
        let refusal = |project: &HostedProject| project.refusal();
        let mut loaded = session.project().loaded().await;
        if loaded
            .as_ref()
            .map_or(true, |project| refusal(project).is_some())
        {
            loaded = self.projects.repair(host.name, session).await;
        }
        let project = loaded.map_err(|problem| problem.to_string())?;
        match refusal(&project) {
            Some(problem) if event.role.is_gate() => Err(problem),
            _ => Ok(project),
        }
    }

    /// Sends the event through the hooks, and writes the host's answer.
    async fn ask(
        &self,
        asking: Asking<'_>,
        project: &Arc<HostedProject>,
    ) -> Result<HostAnswer, String> {
        let Asking {
            host,
            event,
            request,
            object,
            call,
            session,
        } = asking;
        let session_id = call.origin.session_id.clone();
        let hooks = session.dispatcher(project, call.origin);
        let hooks = hooks.with_tools(Arc::new(host.tools.clone()));
        let is_end = is_session_end(&call.event);
        let mut judgement = self.judge(hooks, call.event).await?;
        if is_end {
            project.end_session(&session_id);
        }
        if event.role == EventRole::Stop {
            limit_continuation(&session, &mut judgement);
        }
        let outdated = unshown(&session, project);
        judgement.verdict.notices.extend(outdated.clone());
        judgement.verdict.decided_by = project.deciding_hook(&judgement.verdict.decision);
        if matches!(judgement.verdict.decision, Decision::Stop { .. }) {
            self.counters.stopped.add(1);
        }
        self.counters.let_through.add(judgement.let_through);
        let input = HostInput {
            object,
            variables: &request.variables,
        };
        let (answer, downgrades) = host.answer(event, &input, call.mode, judgement.verdict);
        note_shown(&session, outdated, &answer);
        let downgrades: Vec<String> = downgrades
            .into_iter()
            .map(|downgrade| format!("{:?}: {}", downgrade.effect, downgrade.instead))
            .collect();
        self.report_answer((host, event), session_id, downgrades, judgement.let_through);
        Ok(answer)
    }

    async fn judge(&self, hooks: Dispatcher, event: HostedEvent) -> Result<Judgement, String> {
        match event {
            HostedEvent::ToolCall(call) => {
                let (answered, answer) = oneshot::channel();
                let task = self.tasks.spawn(judge_call(hooks, call, answered));
                let task = AbortOnDropHandle::new(task);
                let judgement = answer.await;
                // The hooks that watch denied calls continue.
                drop(task.detach());
                judgement.map_err(|_| "the hooks panicked; this is a bug in Tenterhook".to_owned())
            }
            HostedEvent::ToolResult {
                call,
                result,
                duration_ms,
            } => {
                let duration = Duration::from_millis(duration_ms.unwrap_or(0));
                Ok(judge_result(&hooks, &call, result, duration).await)
            }
            HostedEvent::Other(event) => {
                Ok(match event.as_any().downcast_ref::<UserPromptSubmit>() {
                    Some(prompt) => judge_prompt(&hooks, prompt.prompt.clone()).await,
                    None => judge_other(&hooks, event).await,
                })
            }
            HostedEvent::Repeated => Ok(Judgement::default()),
        }
    }

    /// Records what the host cannot honour, and failures after which the operation continued.
    fn report_answer(
        &self,
        (host, event): (&HostAgent, &HostEvent),
        session_id: SessionId,
        downgrades: Vec<String>,
        let_through: usize,
    ) {
        self.counters.downgrades.add(downgrades.len());
        if downgrades.is_empty() && let_through == 0 {
            return;
        }
        let mut record = HostRecord::now(host.name, event.name);
        record.session_id = Some(session_id);
        record.downgrades = downgrades;
        record.let_through = let_through > 0;
        self.journal.record_at_once(JournalRecord::Host(record));
    }
}

/// Returns a notice for each file of which the session has an earlier version, unless the person has seen it.
fn unshown(session: &HostSession, project: &HostedProject) -> Vec<String> {
    let outdated = project.outdated().into_iter();
    let notices = outdated.map(|it| {
        let OutdatedHooks {
            change, next_step, ..
        } = it;
        format!("Tenterhook: {change} (run `{next_step}` in a terminal)")
    });
    let notices: Vec<String> = notices.collect();
    let mut shown = session.shown.lock();
    // A file that changes back and then again is reported again.
    shown.retain(|text| notices.contains(text));
    let is_unshown = |text: &String| !shown.contains(text);
    notices.into_iter().filter(is_unshown).collect()
}

/// Remembers the notices that are in an answer. Hosts do not show them on every event.
fn note_shown(session: &HostSession, notices: Vec<String>, answer: &HostAnswer) {
    let is_in_answer = |notice: &String| {
        let json = Value::from(notice.as_str()).to_string();
        answer.stdout.contains(json.trim_matches('"'))
    };
    let shown = notices.into_iter().filter(is_in_answer);
    session.shown.lock().extend(shown);
}

/// Lets the agent stop if hooks have kept it working too often.
fn limit_continuation(session: &HostSession, judgement: &mut Judgement) {
    let mut continuation = session.continuation.lock();
    let verdict = &mut judgement.verdict;
    if verdict.follow_up.is_empty() {
        continuation.end();
    } else if !continuation.go_on() {
        verdict.follow_up.clear();
        verdict.notices.push(format!(
            "hooks have kept the agent working {MAX_CONTINUED} times in a row, so it stops now"
        ));
    }
}

/// Returns whether an event is a new prompt, also of a host that hooks cannot stop there.
fn is_prompt(event: &HostedEvent) -> bool {
    matches!(event, HostedEvent::Other(event) if event.as_any().is::<UserPromptSubmit>())
}

/// Returns whether an event says that a session has begun. A compaction continues the session.
fn is_session_start(event: &HostedEvent) -> bool {
    let HostedEvent::Other(event) = event else {
        return false;
    };
    let start = event.as_any().downcast_ref::<SessionStart>();
    start.is_some_and(|start| {
        !matches!(start.source, SessionSource::Compact | SessionSource::Reload)
    })
}

/// Returns whether an event says that a session is over.
fn is_session_end(event: &HostedEvent) -> bool {
    matches!(event, HostedEvent::Other(event) if event.as_any().is::<SessionEnd>())
}

fn failure_reason(event: &HostEvent, problem: &str) -> String {
    format!(
        "Tenterhook could not run the hooks of `{}`: {problem}",
        event.name
    )
}

fn printed(answer: HostAnswer) -> Printed {
    Printed {
        stdout: answer.stdout.into_bytes(),
        stderr: answer.stderr.into_bytes(),
        status: answer.status,
    }
}
