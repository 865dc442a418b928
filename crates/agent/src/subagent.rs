//! Tasks for other agents: a child session under the parent's hooks.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_protocol::event::{
    AgentSwitch, SessionEndReason, SessionSource, SubagentStart, SubagentStatus, SubagentStop,
};
use tenterhook_protocol::{AgentRef, EventId, InvokedBy, Origin, SessionId, TaskId};
use tokio_util::sync::CancellationToken;

use crate::agent::{AgentSpec, RunEnd, RunReport, fresh_agent_id};
use crate::background::Tasks;
use crate::hooks::Hooks;
use crate::life::{Identity, Life, Setup};
use crate::restriction::Restrictions;
use crate::session::Session;
use crate::tool::{Delegate, ToolFailure};

/// Gives tasks on in the name of one agent.
pub(crate) struct Delegation<'a> {
    pub(crate) setup: &'a Arc<Setup>,
    pub(crate) parent: &'a Identity,
    pub(crate) hooks: &'a Hooks,
    pub(crate) cancel: &'a CancellationToken,
    /// The tools that the parent has at this time, as its hooks left them.
    pub(crate) tools: &'a [String],
    /// What subagents do for the parent in the background.
    pub(crate) tasks: &'a Tasks,
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

    fn begin(&self, agent: &str, task: String) -> Result<TaskId, ToolFailure> {
        let mut assignment = self.assign(agent, task)?;
        let place = Arc::clone(&self.setup.background).try_acquire_owned();
        let place = place.map_err(|_| {
            let most = self.setup.limits.background_tasks;
            ToolFailure::new(format!(
                "{most} background tasks run already, which is the limit; wait for one or stop one"
            ))
        })?;
        assignment.identity.in_background = true;
        assignment.is_apart = true;
        assignment.cancel = self.cancel.child_token();
        Ok(self.tasks.start(assignment, place))
    }

    fn background(&self) -> Result<&Tasks, ToolFailure> {
        Ok(self.tasks)
    }

    fn restrictions(&self) -> &Restrictions {
        &self.parent.restrictions
    }
}

impl Delegation<'_> {
    fn assign(&self, agent: &str, task: String) -> Result<Assignment, ToolFailure> {
        let depth = self.parent.depth + 1;
        if depth > self.setup.limits.task_depth {
            let limit = self.setup.limits.task_depth;
            return Err(ToolFailure::permanent(format!(
                "tasks may be given on at most {limit} deep"
            )));
        }
        let spec = self.setup.agents.iter().find(|spec| spec.name == agent);
        let spec =
            spec.ok_or_else(|| ToolFailure::permanent(format!("there is no agent `{agent}`")))?;
        Ok(Assignment {
            setup: Arc::clone(self.setup),
            parent: self.parent.name.clone(),
            hooks: self.hooks.clone(),
            cancel: self.cancel.clone(),
            identity: Identity {
                name: spec.name.clone(),
                instruction: spec.instruction.clone(),
                tools: Some(self.tools_for(spec)),
                restrictions: self
                    .parent
                    .restrictions
                    .and(self.setup.restrictions.get(&spec.name)),
                depth,
                in_background: self.parent.in_background,
            },
            task_id: TaskId::new(EventId::generate().to_string()),
            task,
            is_apart: false,
        })
    }

    /// Returns the tools of a subagent: of its own, those that the parent has too. What the parent was
    /// denied it cannot have done by another.
    fn tools_for(&self, spec: &AgentSpec) -> Vec<String> {
        let is_own = |tool: &&String| spec.tools.as_ref().is_none_or(|own| own.contains(*tool));
        self.tools.iter().filter(is_own).cloned().collect()
    }
}

/// A task for a subagent, with all that it takes to work on it.
pub(crate) struct Assignment {
    setup: Arc<Setup>,
    /// The name of the agent that gives the task.
    parent: String,
    /// Its hooks.
    hooks: Hooks,
    cancel: CancellationToken,
    identity: Identity,
    task_id: TaskId,
    task: String,
    /// The parent goes on meanwhile.
    is_apart: bool,
}

impl Assignment {
    pub(crate) fn task_id(&self) -> &TaskId {
        &self.task_id
    }

    pub(crate) fn agent(&self) -> &str {
        &self.identity.name
    }

    pub(crate) fn task(&self) -> &str {
        &self.task
    }

    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Has the subagent work on the task; returns how that ended, and what the parent's model gets.
    pub(crate) async fn run(self) -> (SubagentStatus, Result<String, ToolFailure>) {
        let label = self.identity.name.as_str();
        let started = || SubagentStart {
            task_id: self.task_id.clone(),
            label: label.to_owned(),
            task: self.task.clone(),
        };
        self.hooks.tell(started).await;
        if !self.is_apart {
            self.switch(&self.parent, label, "transfer_task").await;
        }
        let (child, report) = self.lead().await;
        if !self.is_apart {
            self.switch(label, &self.parent, "transfer_task_return")
                .await;
        }
        let (status, answer) = judge(label, &report);
        let stopped = || SubagentStop {
            task_id: self.task_id.clone(),
            label: label.to_owned(),
            task: self.task.clone(),
            status,
            result: report.response.clone(),
            child_session_id: child,
            parent_session_id: self.hooks.dispatcher().origin().session_id.clone(),
        };
        self.hooks.tell(stopped).await;
        (status, answer)
    }

    /// Leads the child's session from its start to its end.
    async fn lead(&self) -> (SessionId, RunReport) {
        let parent = self.hooks.dispatcher().origin();
        let id = SessionId::generate();
        let origin = Origin {
            session_id: id.clone(),
            agent: AgentRef {
                name: self.identity.name.clone(),
                id: fresh_agent_id(),
                parent_id: Some(parent.agent.id.clone()),
            },
            invoked_by: InvokedBy::Subagent,
            ..Origin::clone(parent)
        };
        let frontend = Arc::clone(self.hooks.frontend());
        let hooks = Hooks::new(self.hooks.dispatcher().child(origin), frontend);
        let mut life = Life::new(
            Arc::clone(&self.setup),
            self.identity.clone(),
            hooks,
            Session::new(id.clone()),
        );
        life.start(SessionSource::Startup, None).await;
        let report = Box::pin(life.work_on_task(&self.task, &self.cancel)).await;
        let has_failed = matches!(report.end, RunEnd::Error { .. });
        let reason = if has_failed {
            SessionEndReason::Error
        } else {
            SessionEndReason::Quit
        };
        life.end(reason, None).await;
        (id, report)
    }

    async fn switch(&self, from: &str, to: &str, kind: &str) {
        let build = || AgentSwitch {
            from_agent: from.to_owned(),
            to_agent: to.to_owned(),
            kind: kind.to_owned(),
            // All agents of a session ask one model, so there is none that is no longer needed.
            from_agent_models: Vec::new(),
        };
        self.hooks.tell(build).await;
    }
}

/// Says how the task ended, and what the parent's model gets.
fn judge(agent: &str, report: &RunReport) -> (SubagentStatus, Result<String, ToolFailure>) {
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
        RunEnd::Canceled => (
            SubagentStatus::Cancelled,
            Err(ToolFailure::new("the task was cancelled")),
        ),
        RunEnd::HookBlocked { event, reason } => {
            failed(format!("a {event} hook stopped it ({reason})"))
        }
        RunEnd::LoopDetected { tool } => failed(format!("it repeated the same call of `{tool}`")),
        RunEnd::MaxIterations { limit } => failed(format!("it reached its {limit} model calls")),
        RunEnd::Error { message } => failed(message.clone()),
    }
}
