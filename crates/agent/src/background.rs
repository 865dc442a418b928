//! Tasks that subagents work on while the agent that gave them goes on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenterhook_process::cut;
use tenterhook_protocol::TaskId;
use tenterhook_protocol::event::SubagentStatus;
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::subagent::Assignment;
use crate::tool::ToolFailure;

/// How many tasks that are over are remembered. Of more the oldest is forgotten.
const MOST_KEPT: usize = 64;

/// How many characters of a task stand in a list.
const SHOWN: usize = 80;

/// The background tasks of one agent. Dropped, they are cancelled; [`stop_all`](Self::stop_all) waits for their ends too.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Arc<Board>);

/// What is known of the tasks.
#[derive(Debug, Default)]
struct Board {
    tasks: Mutex<Vec<Task>>,
    /// A task is over.
    ended: Notify,
}

#[derive(Debug)]
struct Task {
    id: TaskId,
    agent: String,
    words: String,
    began: Instant,
    cancel: CancellationToken,
    work: Option<JoinHandle<()>>,
    end: Option<TaskEnd>,
}

/// What became of a task.
#[derive(Debug, Clone)]
struct TaskEnd {
    status: SubagentStatus,
    took: Duration,
    /// The answer, or why there is none.
    text: String,
}

impl Board {
    fn tasks(&self) -> MutexGuard<'_, Vec<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Ends a task also where the work on it broke.
struct Work {
    board: Arc<Board>,
    id: TaskId,
    end: Option<(SubagentStatus, String)>,
    place: Option<OwnedSemaphorePermit>,
}

impl Work {
    fn finish(mut self, status: SubagentStatus, text: String) {
        self.end = Some((status, text));
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // Whoever hears of the end may give another task at once.
        drop(self.place.take());
        let broke = || (SubagentStatus::Failed, "the task broke".to_owned());
        let (status, text) = self.end.take().unwrap_or_else(broke);
        self.board.end(&self.id, status, text);
    }
}

impl Tasks {
    /// Has a subagent begin with a task.
    pub(crate) fn start(&self, assignment: Assignment, place: OwnedSemaphorePermit) -> TaskId {
        let id = assignment.task_id().clone();
        let work = Work {
            board: Arc::clone(&self.0),
            id: id.clone(),
            end: None,
            place: Some(place),
        };
        let mut tasks = self.0.tasks();
        forget_oldest(&mut tasks);
        let mut task = Task {
            id: id.clone(),
            agent: assignment.agent().to_owned(),
            words: assignment.task().to_owned(),
            began: Instant::now(),
            cancel: assignment.cancel().clone(),
            work: None,
            end: None,
        };
        task.work = Some(tokio::spawn(async move {
            let (status, answer) = Box::pin(assignment.run()).await;
            let text = answer.unwrap_or_else(|failure| failure.to_string());
            work.finish(status, text);
        }));
        tasks.push(task);
        id
    }

    /// Lists the tasks in the order in which they were given.
    pub(crate) fn list(&self) -> String {
        let lines: Vec<String> = self.0.tasks().iter().map(Task::line).collect();
        if lines.is_empty() {
            "There are no background tasks.".to_owned()
        } else {
            lines.join("\n")
        }
    }

    /// Tells what became of a task; waits for its end for that long.
    pub(crate) async fn view(&self, id: &str, wait: Duration) -> Result<String, ToolFailure> {
        // A task that goes on is no failure.
        let _ended = tokio::time::timeout(wait, self.ended(id)).await;
        self.with(id, Task::view)
    }

    /// Cancels a task and waits for its end.
    pub(crate) async fn stop(&self, id: &str) -> Result<String, ToolFailure> {
        let is_over = self.with(id, |task| {
            task.cancel.cancel();
            task.end.is_some()
        })?;
        if is_over {
            return Ok(format!("The task `{id}` was over already."));
        }
        self.ended(id).await;
        self.with(id, Task::view)
    }

    /// Cancels every task and waits for their ends.
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
            // What broke has ended too.
            let _broken = work.await;
        }
    }

    fn cancel_all(&self) {
        for task in self.0.tasks().iter() {
            task.cancel.cancel();
        }
    }

    /// Waits until a task is over, or there is none of that id.
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

    fn with<T>(&self, id: &str, read: impl FnOnce(&Task) -> T) -> Result<T, ToolFailure> {
        let tasks = self.0.tasks();
        let task = tasks.iter().find(|task| task.id.as_str() == id);
        task.map(read).ok_or_else(|| {
            let known: Vec<String> = tasks.iter().map(|task| format!("`{}`", task.id)).collect();
            ToolFailure::permanent(if known.is_empty() {
                format!("there is no background task `{id}`, and no other")
            } else {
                format!(
                    "there is no background task `{id}`, expected one of {}",
                    known.join(", ")
                )
            })
        })
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.cancel_all();
    }
}

impl Task {
    fn state(&self) -> (&'static str, Duration) {
        match &self.end {
            Some(end) => (end.status.as_str(), end.took),
            None => ("running", self.began.elapsed()),
        }
    }

    fn line(&self) -> String {
        let (state, time) = self.state();
        let task = cut::head(self.words.lines().next().unwrap_or_default(), SHOWN);
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

/// Makes room for another task, where there is an old one that is over.
fn forget_oldest(tasks: &mut Vec<Task>) {
    let over = tasks.iter().filter(|task| task.end.is_some()).count();
    if over >= MOST_KEPT
        && let Some(oldest) = tasks.iter().position(|task| task.end.is_some())
    {
        drop(tasks.remove(oldest));
    }
}

/// Whether the user follows what agents do. Who works in the background asks the user only then: between two prompts the user is writing
/// the next one.
#[derive(Debug)]
pub(crate) struct Attention(watch::Sender<bool>);

impl Default for Attention {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Attention {
    pub(crate) fn set(&self, is_given: bool) {
        self.0.send_replace(is_given);
    }

    pub(crate) fn is_given(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the user follows.
    pub(crate) async fn given(&self) {
        // The sender is `self`: it is there as long as somebody waits here.
        let mut seen = self.0.subscribe();
        let _given = seen.wait_for(|is_given| *is_given).await;
    }
}
