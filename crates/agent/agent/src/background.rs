//! Background tasks: subagents work on them while the agent that gave them continues.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use tenterhook_protocol::TaskId;
use tenterhook_protocol::event::SubagentStatus;
use tenterhook_protocol::excerpt;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use tenterhook_tools::ToolFailure;

/// The maximum number of ended tasks that are remembered. Beyond that, the oldest is forgotten.
const MAX_ENDED_TASKS: usize = 64;

/// The maximum number of characters of a task that a list shows.
const MAX_SHOWN_CHARS: usize = 80;

/// The background tasks of one agent. Dropping this cancels them. [`stop_all`](Self::stop_all) also waits until
/// they have ended.
#[derive(Debug, Default)]
pub(crate) struct BackgroundTasks(Arc<TaskList>);

/// A task to start, with the future that works on it.
pub(crate) struct BackgroundWork {
    pub(crate) id: TaskId,
    /// The name of the agent that works on it.
    pub(crate) agent: String,
    /// The text of the task.
    pub(crate) task: String,
    pub(crate) cancel: CancellationToken,
    /// Returns the status, and the result for the model of the agent that gave the task.
    pub(crate) running: BoxFuture<'static, (SubagentStatus, Result<String, ToolFailure>)>,
}

/// The list of tasks.
#[derive(Debug, Default)]
struct TaskList {
    tasks: Mutex<Vec<BackgroundTask>>,
    /// Notified when a task has ended.
    ended: Notify,
}

#[derive(Debug)]
struct BackgroundTask {
    id: TaskId,
    agent: String,
    task: String,
    began: Instant,
    cancel: CancellationToken,
    work: Option<JoinHandle<()>>,
    end: Option<TaskEnd>,
}

/// How a task ended.
#[derive(Debug, Clone)]
struct TaskEnd {
    status: SubagentStatus,
    took: Duration,
    /// The answer, or why there is no answer.
    text: String,
}

impl TaskList {
    fn tasks(&self) -> MutexGuard<'_, Vec<BackgroundTask>> {
        self.tasks.lock()
    }

    fn end(&self, id: &TaskId, status: SubagentStatus, text: String) {
        if let Some(task) = self.tasks().iter_mut().find(|task| task.id == *id) {
            task.end = Some(TaskEnd {
                status,
                took: task.began.elapsed(),
                text,
            });
        }
        self.ended.notify_waiters();
    }
}

/// Records the end of a task, even if its work panics.
struct TaskGuard {
    list: Arc<TaskList>,
    id: TaskId,
    end: Option<(SubagentStatus, String)>,
    slot: Option<OwnedSemaphorePermit>,
}

impl TaskGuard {
    fn finish(mut self, status: SubagentStatus, text: String) {
        self.end = Some((status, text));
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        // Free the slot first: an agent that sees the end may start another task at once.
        drop(self.slot.take());
        let broke = || (SubagentStatus::Failed, "the task panicked".to_owned());
        let (status, text) = self.end.take().unwrap_or_else(broke);
        self.list.end(&self.id, status, text);
    }
}

impl BackgroundTasks {
    /// Starts the work on a task.
    pub(crate) fn start(&self, work: BackgroundWork, slot: OwnedSemaphorePermit) -> TaskId {
        let id = work.id;
        let guard = TaskGuard {
            list: Arc::clone(&self.0),
            id: id.clone(),
            end: None,
            slot: Some(slot),
        };
        let mut tasks = self.0.tasks();
        forget_oldest(&mut tasks);
        let mut task = BackgroundTask {
            id: id.clone(),
            agent: work.agent,
            task: work.task,
            began: Instant::now(),
            cancel: work.cancel,
            work: None,
            end: None,
        };
        let running = work.running;
        task.work = Some(tokio::spawn(async move {
            let (status, answer) = running.await;
            let text = answer.unwrap_or_else(|failure| failure.to_string());
            guard.finish(status, text);
        }));
        tasks.push(task);
        id
    }

    /// Lists the tasks in the order in which they were given.
    pub(crate) fn list(&self) -> String {
        let lines: Vec<String> = self.0.tasks().iter().map(BackgroundTask::line).collect();
        if lines.is_empty() {
            "There are no background tasks.".to_owned()
        } else {
            lines.join("\n")
        }
    }

    /// Describes a task to the model, after waiting at most `wait` for it to end.
    pub(crate) async fn view(&self, id: &str, wait: Duration) -> Result<String, ToolFailure> {
        // A task that is still running is not a failure.
        let _ended = tokio::time::timeout(wait, self.ended(id)).await;
        self.with(id, BackgroundTask::view)
    }

    /// Cancels a task and waits for it to end.
    pub(crate) async fn stop(&self, id: &str) -> Result<String, ToolFailure> {
        let is_over = self.with(id, |task| {
            task.cancel.cancel();
            task.end.is_some()
        })?;
        if is_over {
            return Ok(format!("The task `{id}` had already ended."));
        }
        self.ended(id).await;
        self.with(id, BackgroundTask::view)
    }

    /// Cancels every task and waits for all of them to end.
    pub(crate) async fn stop_all(&self) {
        self.cancel_all();
        let works: Vec<JoinHandle<()>> = {
            let mut tasks = self.0.tasks();
            tasks
                .iter_mut()
                .filter_map(|task| task.work.take())
                .collect()
        };
        for work in works {
            // A task that panicked has ended, too.
            let _broken = work.await;
        }
    }

    fn cancel_all(&self) {
        for task in self.0.tasks().iter() {
            task.cancel.cancel();
        }
    }

    /// Waits until a task has ended, or there is no task with this id.
    async fn ended(&self, id: &str) {
        loop {
            let mut ended = std::pin::pin!(self.0.ended.notified());
            ended.as_mut().enable();
            if self.with(id, |task| task.end.is_some()).unwrap_or(true) {
                return;
            }
            ended.await;
        }
    }

    fn with<T>(&self, id: &str, read: impl FnOnce(&BackgroundTask) -> T) -> Result<T, ToolFailure> {
        let tasks = self.0.tasks();
        let task = tasks.iter().find(|task| task.id.as_str() == id);
        task.map(read).ok_or_else(|| {
            let known: Vec<String> = tasks.iter().map(|task| format!("`{}`", task.id)).collect();
            ToolFailure::permanent(if known.is_empty() {
                format!("unknown background task `{id}`; there are no background tasks")
            } else {
                format!(
                    "unknown background task `{id}`, expected one of {}",
                    known.join(", ")
                )
            })
        })
    }
}

impl Drop for BackgroundTasks {
    fn drop(&mut self) {
        self.cancel_all();
    }
}

impl BackgroundTask {
    fn state(&self) -> (&'static str, Duration) {
        match &self.end {
            Some(end) => (end.status.as_str(), end.took),
            None => ("running", self.began.elapsed()),
        }
    }

    fn line(&self) -> String {
        let (state, time) = self.state();
        let task = excerpt::head(
            self.task.lines().next().unwrap_or_default(),
            MAX_SHOWN_CHARS,
        );
        format!(
            "{} {} {state} {} s: {task}",
            self.id,
            self.agent,
            time.as_secs()
        )
    }

    fn view(&self) -> String {
        let (state, time) = self.state();
        let head = format!(
            "The task `{}` of agent `{}` is {state} ({} s).",
            self.id,
            self.agent,
            time.as_secs()
        );
        match &self.end {
            Some(end) => format!("{head}\n{}", end.text),
            None => head,
        }
    }
}

/// Removes the oldest ended task, if too many are remembered.
fn forget_oldest(tasks: &mut Vec<BackgroundTask>) {
    let over = tasks.iter().filter(|task| task.end.is_some()).count();
    if over >= MAX_ENDED_TASKS
        && let Some(oldest) = tasks.iter().position(|task| task.end.is_some())
    {
        drop(tasks.remove(oldest));
    }
}
