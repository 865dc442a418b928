//! Tasks for other agents: a child session under the parent's hooks.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_protocol::event::{
    AgentSwitch, SessionEndReason, SessionSource, SubagentStart, SubagentStatus, SubagentStop,
};
use tenterhook_protocol::{AgentRef, EventId, InvokedBy, Origin, SessionId, TaskId};
use tokio_util::sync::CancellationToken;

use crate::agent::{AgentSpec, RunEnd, RunReport, fresh_agent_id};
use crate::hooks::Hooks;
use crate::life::{Identity, Life, Setup};
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
}

impl Delegate for Delegation<'_> {
    fn transfer<'a>(
        &'a self,
        agent: &'a str,
        task: String,
    ) -> BoxFuture<'a, Result<String, ToolFailure>> {
        Box::pin(self.run_task(agent, task))
    }
}

impl Delegation<'_> {
    async fn run_task(&self, agent: &str, task: String) -> Result<String, ToolFailure> {
        let depth = self.parent.depth + 1;
        if depth > self.setup.limits.task_depth {
            let limit = self.setup.limits.task_depth;
            return Err(ToolFailure(format!(
                "tasks may be given on at most {limit} deep"
            )));
        }
        let spec = self.setup.agents.iter().find(|spec| spec.name == agent);
        let spec = spec.ok_or_else(|| ToolFailure(format!("there is no agent `{agent}`")))?;
        let identity = Identity {
            name: spec.name.clone(),
            instruction: spec.instruction.clone(),
            tools: Some(self.tools_for(spec)),
            depth,
        };
        let task_id = TaskId::new(EventId::generate().to_string());
        let started = || SubagentStart {
            task_id: task_id.clone(),
            label: agent.to_owned(),
            task: task.clone(),
        };
        self.hooks.tell(started).await;
        self.switch(&self.parent.name, agent, "transfer_task").await;
        let (child, report) = self.lead(identity, &task).await;
        self.switch(agent, &self.parent.name, "transfer_task_return")
            .await;
        let (status, answer) = judge(agent, &report);
        let stopped = || SubagentStop {
            task_id,
            label: agent.to_owned(),
            task,
            status,
            result: report.response.clone(),
            child_session_id: child,
            parent_session_id: self.hooks.dispatcher().origin().session_id.clone(),
        };
        self.hooks.tell(stopped).await;
        answer
    }

    /// Returns the tools of a subagent: of its own, those that the parent has too. What the parent was
    /// denied it cannot have done by another.
    fn tools_for(&self, spec: &AgentSpec) -> Vec<String> {
        let is_own = |tool: &&String| spec.tools.as_ref().is_none_or(|own| own.contains(*tool));
        self.tools.iter().filter(is_own).cloned().collect()
    }

    /// Leads the child's session from its start to its end.
    async fn lead(&self, identity: Identity, task: &str) -> (SessionId, RunReport) {
        let parent = self.hooks.dispatcher().origin();
        let id = SessionId::generate();
        let origin = Origin {
            session_id: id.clone(),
            agent: AgentRef {
                name: identity.name.clone(),
                id: fresh_agent_id(),
                parent_id: Some(parent.agent.id.clone()),
            },
            invoked_by: InvokedBy::Subagent,
            ..Origin::clone(parent)
        };
        let frontend = Arc::clone(self.hooks.frontend());
        let hooks = Hooks::new(self.hooks.dispatcher().child(origin), frontend);
        let mut life = Life::new(
            Arc::clone(self.setup),
            identity,
            hooks,
            Session::new(id.clone()),
        );
        life.start(SessionSource::Startup, None).await;
        let report = Box::pin(life.work_on_task(task, self.cancel)).await;
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
        (SubagentStatus::Failed, Err(ToolFailure(text)))
    };
    match &report.end {
        RunEnd::Completed | RunEnd::Handled => {
            (SubagentStatus::Completed, Ok(report.response.clone()))
        }
        RunEnd::Canceled => (
            SubagentStatus::Cancelled,
            Err(ToolFailure("the task was cancelled".to_owned())),
        ),
        RunEnd::HookBlocked { event, reason } => {
            failed(format!("a {event} hook stopped it ({reason})"))
        }
        RunEnd::LoopDetected { tool } => failed(format!("it repeated the same call of `{tool}`")),
        RunEnd::MaxIterations { limit } => failed(format!("it reached its {limit} model calls")),
        RunEnd::Error { message } => failed(message.clone()),
    }
}
