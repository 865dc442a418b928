//! The agent of one session key: opened when it is needed, with the rights of the turn that needs it.

use std::sync::Arc;

use tenterhook_agent::{Agent, AgentHandle};
use tenterhook_engine::Dispatcher;
use tenterhook_protocol::SessionId;
use tenterhook_protocol::event::{SenderRole, SessionEndReason};
use tokio::sync::Mutex;

use crate::chat_frontend::ChatFrontend;
use crate::conversation_parts::ConversationParts;
use crate::profile::{OpenRequest, ToolAccess};
use crate::send_tool::SendTool;
use tenterhook_channel::chat::SessionKey;

/// What others may know of an open agent, also while its turn runs.
#[derive(Debug, Clone)]
pub(crate) struct AgentView {
    pub(crate) name: String,
    pub(crate) session: SessionId,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) handle: AgentHandle,
    pub(crate) model: String,
}

/// The agent of one session key.
pub(crate) struct AgentSlot {
    parts: Arc<ConversationParts>,
    key: SessionKey,
    pub(crate) frontend: Arc<ChatFrontend>,
    open: Mutex<OpenAgent>,
}

#[derive(Default)]
struct OpenAgent {
    view: Option<AgentView>,
    /// The agent. `None` while a turn has it, or if none is open.
    agent: Option<Agent>,
    access: ToolAccess,
    /// The role of its last turn.
    role: Option<SenderRole>,
}

impl AgentSlot {
    pub(crate) fn new(parts: Arc<ConversationParts>, key: SessionKey) -> Self {
        Self {
            parts,
            key,
            frontend: Arc::default(),
            open: Mutex::default(),
        }
    }

    /// Returns the session key.
    pub(crate) fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Returns the view of the agent. If none is open, one is opened with these rights.
    pub(crate) async fn view(&self, access: &ToolAccess) -> Result<AgentView, String> {
        let mut open = self.open.lock().await;
        if let Some(view) = &open.view {
            return Ok(view.clone());
        }
        self.open(&mut open, access).await
    }

    /// Returns the view of the agent, if one is open.
    pub(crate) async fn open_view(&self) -> Option<AgentView> {
        self.open.lock().await.view.clone()
    }

    /// Takes the agent for a turn with these rights. If it was opened with others, or if an owner has allowed it more and
    /// the turn is not an owner's, it is closed and opened again: a turn never has more rights than its senders.
    pub(crate) async fn take(
        &self,
        access: &ToolAccess,
        role: SenderRole,
    ) -> Result<(Agent, AgentView), String> {
        let mut open = self.open.lock().await;
        let is_granted = self.frontend.has_grant() && role != SenderRole::Owner;
        if (open.access != *access || is_granted)
            && let Some(agent) = open.agent.take()
        {
            open.view = None;
            agent.end_session(SessionEndReason::Quit).await;
        }
        // Turns of a key run one after another. If the agent is not here, its turn panicked and took it along.
        if open.agent.is_none() {
            self.open(&mut open, access).await?;
        }
        match (open.agent.take(), &open.view) {
            (Some(agent), Some(view)) => {
                // What scripts have sent since the last turn has no more rights than that turn had.
                if open.role != Some(role)
                    && let Some(scripts) = agent.scripts()
                {
                    scripts.forget_prompts();
                }
                let view = view.clone();
                open.role = Some(role);
                Ok((agent, view))
            }
            _ => Err("the agent could not be opened".to_owned()),
        }
    }

    /// Puts the agent back after a turn.
    pub(crate) async fn put_back(&self, agent: Agent) {
        self.open.lock().await.agent = Some(agent);
    }

    /// Ends the session and closes the agent.
    pub(crate) async fn close(&self, reason: SessionEndReason) {
        let mut open = self.open.lock().await;
        open.view = None;
        if let Some(agent) = open.agent.take() {
            agent.end_session(reason).await;
        }
    }

    async fn open(&self, open: &mut OpenAgent, access: &ToolAccess) -> Result<AgentView, String> {
        let stored = self.parts.store.session(&self.key).await;
        let session = stored.map_err(|error| format!("cannot read the session's id: {error}"))?;
        let frontend = Arc::clone(&self.frontend);
        let tool = SendTool::new(Arc::clone(&frontend));
        let request = OpenRequest {
            session: session.clone(),
            frontend,
            access: access.clone(),
            with_tools: Box::new(move |toolbox| toolbox.with(tool)),
        };
        self.frontend.forget_grant();
        let agent = self.parts.profile.open(request).await;
        let agent = agent.map_err(|cause| match session {
            Some(_) => format!("{cause}. Send /new to begin a new conversation"),
            None => cause,
        })?;
        let view = AgentView {
            name: agent.name().to_owned(),
            session: agent.session().id().clone(),
            dispatcher: agent.dispatcher().clone(),
            handle: agent.handle(),
            model: agent.model().to_string(),
        };
        *open = OpenAgent {
            view: Some(view.clone()),
            agent: Some(agent),
            access: access.clone(),
            role: None,
        };
        Ok(view)
    }
}
