//! Subagents: runs a task of an agent in a separate session, under the hooks of the agent that gives the task.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tenterhook_protocol::event::{
    AgentSwitch, SessionEndReason, SessionSource, SubagentStart, SubagentStatus, SubagentStop,
};
use tenterhook_protocol::{AgentRef, EventId, InvokedBy, Origin, SessionId, TaskId};
use tokio_util::sync::CancellationToken;

use crate::agent_session::AgentSession;
use crate::background::{BackgroundTasks, BackgroundWork};
use crate::config::AgentSpec;
use crate::hooks::Hooks;
use crate::identity::{AgentIdentity, fresh_agent_id};
use crate::run_report::{RunEnd, RunReport};
use crate::sessions::Session;
use crate::state::AgentState;
use tenterhook_tools::{Delegate, ToolFailure};

/// Delegates the tasks of one agent.
pub(crate) struct Delegation<'a> {
    pub(crate) state: &'a Arc<AgentState>,
    pub(crate) parent: &'a AgentIdentity,
    pub(crate) hooks: &'a Hooks,
    pub(crate) cancel: &'a CancellationToken,
    /// The tools that the parent has at this time, after changes by hooks.
    pub(crate) tools: &'a [String],
    /// The parent's background tasks.
    pub(crate) tasks: &'a BackgroundTasks,
}

impl Delegate for Delegation<'_> {
    fn transfer<'a>(
        &'a self,
        agent: &'a str,
        task: String,
    ) -> BoxFuture<'a, Result<String, ToolFailure>> {
        Box::pin(async move {
            let assignment = self.assign(agent, task)?;
            assignment.run().await.1
        })
    }

    fn start(&self, agent: &str, task: String) -> Result<TaskId, ToolFailure> {
        let mut assignment = self.assign(agent, task)?;
        let slot = Arc::clone(&self.state.background_slots).try_acquire_owned();
        let slot = slot.map_err(|_| {
            let most = self.state.config.limits.background_tasks;
            ToolFailure::new(format!(
                "the limit of {most} background tasks is reached; wait for one or stop one"
            ))
        })?;
        assignment.identity.in_background = true;
        assignment.is_detached = true;
        assignment.cancel = self.cancel.child_token();
        Ok(self.tasks.start(assignment.into_background(), slot))
    }

    fn list(&self) -> Result<String, ToolFailure> {
        Ok(self.tasks.list())
    }

    fn view<'a>(
        &'a self,
        task: &'a str,
        wait: Duration,
    ) -> BoxFuture<'a, Result<String, ToolFailure>> {
        Box::pin(self.tasks.view(task, wait))
    }

    fn stop<'a>(&'a self, task: &'a str) -> BoxFuture<'a, Result<String, ToolFailure>> {
        Box::pin(self.tasks.stop(task))
    }
}

impl Delegation<'_> {
    fn assign(&self, agent: &str, task: String) -> Result<Assignment, ToolFailure> {
        let depth = self.parent.depth + 1;
        if depth > self.state.config.limits.task_depth {
            let limit = self.state.config.limits.task_depth;
            return Err(ToolFailure::permanent(format!(
                "tasks may be delegated at most {limit} levels deep"
            )));
        }
        let spec = self
            .state
            .config
            .agents
            .iter()
            .find(|spec| spec.name == agent);
        let spec =
            spec.ok_or_else(|| ToolFailure::permanent(format!("there is no agent `{agent}`")))?;
        Ok(Assignment {
            state: Arc::clone(self.state),
            parent: self.parent.name.clone(),
            hooks: self.hooks.clone(),
            cancel: self.cancel.clone(),
            identity: AgentIdentity {
                name: spec.name.clone(),
                instruction: spec.instruction.clone(),
                tools: Some(self.tools_for(spec)),
                restrictions: self
                    .parent
                    .restrictions
                    .and(self.state.config.restrictions.get(&spec.name)),
                depth,
                in_background: self.parent.in_background,
            },
            task_id: TaskId::new(EventId::generate().to_string()),
            task,
            is_detached: false,
        })
    }

    /// Returns the tools of a subagent: its own tools, except tools that the parent does not have. So the parent cannot
    /// let a subagent use a tool that it may not use itself.
    fn tools_for(&self, spec: &AgentSpec) -> Vec<String> {
        let is_own = |tool: &&String| spec.tools.as_ref().is_none_or(|own| own.contains(*tool));
        self.tools.iter().filter(is_own).cloned().collect()
    }
}

/// A task for a subagent, with everything that is needed to run it.
pub(crate) struct Assignment {
    state: Arc<AgentState>,
    /// The name of the agent that gives the task.
    parent: String,
    /// The parent's hooks.
    hooks: Hooks,
    cancel: CancellationToken,
    identity: AgentIdentity,
    task_id: TaskId,
    task: String,
    /// Whether the parent continues while the subagent works.
    is_detached: bool,
}

impl Assignment {
    fn into_background(self) -> BackgroundWork {
        BackgroundWork {
            id: self.task_id.clone(),
            agent: self.identity.name.clone(),
            task: self.task.clone(),
            cancel: self.cancel.clone(),
            running: Box::pin(self.run()),
        }
    }

    /// Runs the subagent on the task. Returns how the task ended, and the result for the parent's model.
    pub(crate) async fn run(self) -> (SubagentStatus, Result<String, ToolFailure>) {
        let label = self.identity.name.as_str();
        let started = || {
            SubagentStart::new(self.task_id.clone(), label.to_owned()).with_task(self.task.clone())
        };
        self.hooks.announce(started).await;
        if !self.is_detached {
            self.announce_switch(&self.parent, label, "transfer_task")
                .await;
        }
        let (child, report) = self.run_session().await;
        if !self.is_detached {
            self.announce_switch(label, &self.parent, "transfer_task_return")
                .await;
        }
        let (status, answer) = task_outcome(label, &report);
        let stopped = || {
            SubagentStop::new(
                self.task_id.clone(),
                label.to_owned(),
                child,
                self.hooks.dispatcher().origin().session_id.clone(),
            )
            .with_task(self.task.clone())
            .with_status(status)
            .with_result(report.response.clone())
        };
        self.hooks.announce(stopped).await;
        (status, answer)
    }

    /// Runs the subagent's session from its start to its end.
    async fn run_session(&self) -> (SessionId, RunReport) {
        let parent = self.hooks.dispatcher().origin();
        let id = SessionId::generate();
        let agent = AgentRef::new(self.identity.name.clone())
            .with_id(fresh_agent_id())
            .with_parent_id(parent.agent.id.clone());
        let mut origin = Origin::clone(parent)
            .with_agent(agent)
            .with_invoked_by(InvokedBy::Subagent);
        origin.session_id = id.clone();
        let frontend = Arc::clone(self.hooks.frontend());
        let hooks = Hooks::new(self.hooks.dispatcher().child(origin), frontend);
        #[cfg(unix)]
        let _known = self
            .state
            .config
            .scripts
            .as_ref()
            .map(|host| host.begin_subagent(&id));
        let mut agent = AgentSession::new(
            Arc::clone(&self.state),
            self.identity.clone(),
            hooks,
            Session::new(id.clone()),
        );
        agent.start(SessionSource::Startup, None).await;
        let report = Box::pin(agent.work_on_task(&self.task, &self.cancel)).await;
        let has_failed = matches!(report.end, RunEnd::Error { .. });
        let reason = if has_failed {
            SessionEndReason::Error
        } else {
            SessionEndReason::Quit
        };
        agent.end(reason, None).await;
        (id, report)
    }

    async fn announce_switch(&self, from: &str, to: &str, kind: &str) {
        // The event's field for models that are no longer needed stays empty, because all agents of a session use the
        // same model.
        let build = || AgentSwitch::new(from.to_owned(), to.to_owned(), kind.to_owned());
        self.hooks.announce(build).await;
    }
}

/// Returns how the task ended, and the result for the parent's model.
fn task_outcome(agent: &str, report: &RunReport) -> (SubagentStatus, Result<String, ToolFailure>) {
    let failed = |why: String| {
        let mut text = format!("agent `{agent}` did not finish: {why}");
        if !report.response.is_empty() {
            text.push_str("\nIts last words:\n");
            text.push_str(&report.response);
        }
        (SubagentStatus::Failed, Err(ToolFailure::new(text)))
    };
    match &report.end {
        RunEnd::Completed | RunEnd::Handled => {
            (SubagentStatus::Completed, Ok(report.response.clone()))
        }
        RunEnd::Cancelled => (
            SubagentStatus::Cancelled,
            Err(ToolFailure::new("the task was cancelled")),
        ),
        RunEnd::HookBlocked { event, reason } => {
            failed(format!("a {event} hook stopped it ({reason})"))
        }
        RunEnd::LoopDetected { tool } => failed(format!("it repeated the same call to `{tool}`")),
        RunEnd::MaxIterations { limit } => failed(format!("it reached its {limit} model calls")),
        RunEnd::Error { message } => failed(message.clone()),
    }
}
