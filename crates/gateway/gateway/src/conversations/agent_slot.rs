//! The agent of one session key: opened when it is needed, with the rights of the turn that needs it.

use std::fmt;
use std::sync::Arc;

use tenterhook_agent::extension::ScriptHost;
use tenterhook_agent::{Agent, AgentHandle, UnsyncedTail};
use tenterhook_engine::Dispatcher;
use tenterhook_protocol::SessionId;
use tenterhook_protocol::event::{SenderRole, SessionEndReason, SessionSource};
use tokio::sync::Mutex;

use crate::conversations::chat_frontend::ChatFrontend;
use crate::conversations::conversation_parts::ConversationParts;
use crate::conversations::profile::{OpenRequest, Profile, ToolAccess};
use crate::conversations::send_tool::SendTool;
use tenterhook_channel::chat::SessionKey;
use tenterhook_channel::message::IncomingMessage;

/// What others may know of an open agent, also while its turn runs.
#[derive(Clone)]
pub(crate) struct AgentView {
    pub(crate) name: String,
    pub(crate) session: SessionId,
    /// What the session's file may not have on the disk yet. Turns keep it in the store.
    pub(crate) tail: UnsyncedTail,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) handle: AgentHandle,
    pub(crate) model: String,
    /// What the agent was opened with.
    pub(crate) profile: Arc<dyn Profile>,
}

impl fmt::Debug for AgentView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentView")
            .field("name", &self.name)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// The agent of one session key.
pub(crate) struct AgentSlot {
    parts: Arc<ConversationParts>,
    key: SessionKey,
    pub(crate) frontend: Arc<ChatFrontend>,
    open: Mutex<OpenAgent>,
}

/// The last turn of an agent. Prompts that scripts send after it belong to its chat, and have at most its rights.
#[derive(Debug, Clone)]
pub(crate) struct LastTurn {
    pub(crate) role: SenderRole,
    /// The first message of the turn.
    pub(crate) message: IncomingMessage,
}

#[derive(Default)]
struct OpenAgent {
    view: Option<AgentView>,
    /// The agent. `None` while a turn has it, or if none is open.
    agent: Option<Agent>,
    access: ToolAccess,
    /// Its last turn.
    turn: Option<LastTurn>,
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
            return Ok(self.with_current_hooks(view));
        }
        *open = self.open(access).await?;
        // A reload may have happened while it was opened.
        let view = open.view.as_ref().map(|view| self.with_current_hooks(view));
        view.ok_or_else(not_opened)
    }

    /// Returns the view of the agent, if one is open.
    pub(crate) async fn open_view(&self) -> Option<AgentView> {
        let open = self.open.lock().await;
        open.view.as_ref().map(|view| self.with_current_hooks(view))
    }

    /// Returns a view for events outside of turns. They run the hooks in force, even while the agent still works with
    /// the hooks from before a reload.
    fn with_current_hooks(&self, view: &AgentView) -> AgentView {
        let profile = self.parts.profile.current();
        let mut view = view.clone();
        if !Arc::ptr_eq(&profile, &view.profile) {
            view.dispatcher = profile.engine().dispatcher_after(&view.dispatcher);
        }
        view
    }

    /// Opens the agent again if a reload has happened since it was opened and no turn has it. For the old hooks the
    /// session ends, and for the new ones it starts. The new agent has these rights, or the same as before.
    ///
    /// Only one caller may do this at a time, and no turn may run.
    pub(crate) async fn renew(&self, access: Option<&ToolAccess>) -> Result<(), String> {
        let (agent, access, turn) = {
            let mut open = self.open.lock().await;
            let profile = self.parts.profile.current();
            let is_current = |view: &AgentView| Arc::ptr_eq(&view.profile, &profile);
            if open.view.as_ref().is_none_or(is_current) {
                return Ok(());
            }
            let Some(agent) = open.agent.take() else {
                return Ok(());
            };
            let access = access.unwrap_or(&open.access).clone();
            (agent, access, open.turn.clone())
        };
        // Hooks run below, so the lock is not held: others may need the view meanwhile.
        let is_started = agent.is_started();
        agent.end_session(SessionEndReason::Reload).await;
        let mut opened = self.open(&access).await;
        if let Ok(OpenAgent {
            agent: Some(agent), ..
        }) = &mut opened
            && is_started
        {
            agent.start_session(SessionSource::Reload).await;
        }
        let mut open = self.open.lock().await;
        match opened {
            Ok(opened) => *open = OpenAgent { turn, ..opened },
            Err(cause) => {
                *open = OpenAgent::default();
                return Err(cause);
            }
        }
        Ok(())
    }

    /// Takes the agent for a turn with these rights. If it was opened with others, or if an owner has allowed it more and
    /// the turn is not an owner's, it is closed and opened again: a turn never has more rights than its senders.
    pub(crate) async fn take(
        &self,
        access: &ToolAccess,
        turn: LastTurn,
    ) -> Result<(Agent, AgentView), String> {
        self.renew(Some(access)).await?;
        let role = turn.role;
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
            *open = self.open(access).await?;
        }
        match (open.agent.take(), &open.view) {
            (Some(agent), Some(view)) => {
                // What scripts have sent since the last turn has no more rights than that turn had.
                if open.turn.as_ref().is_none_or(|last| last.role != role)
                    && let Some(scripts) = agent.scripts()
                {
                    scripts.forget_prompts();
                }
                let view = view.clone();
                open.turn = Some(turn);
                Ok((agent, view))
            }
            _ => Err(not_opened()),
        }
    }

    /// Waits until scripts of the agent have sent a prompt, while no turn has the agent. Returns their host, and the turn
    /// that the prompt follows. Waits forever if no turn has run since the agent was opened, because then no one's rights
    /// are known.
    pub(crate) async fn next_prompt(&self) -> (Arc<ScriptHost>, LastTurn) {
        let scripts = {
            let open = self.open.lock().await;
            let scripts = open.agent.as_ref().and_then(|agent| agent.scripts());
            scripts.cloned().zip(open.turn.clone())
        };
        if let Some((scripts, turn)) = scripts {
            scripts.has_work().await;
            // A script cannot end the gateway.
            if !scripts.is_over() {
                return (scripts, turn);
            }
        }
        std::future::pending().await
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

    async fn open(&self, access: &ToolAccess) -> Result<OpenAgent, String> {
        let profile = self.parts.profile.current();
        let stored = self.parts.store.session(&self.key).await;
        let session = stored.map_err(|error| format!("cannot read the session's id: {error}"))?;
        let frontend = Arc::clone(&self.frontend);
        let tool = SendTool::new(Arc::clone(&frontend));
        let request = OpenRequest {
            key: self.key.clone(),
            session: session.clone(),
            frontend,
            access: access.clone(),
            with_tools: Box::new(move |toolbox| toolbox.with(tool)),
        };
        self.frontend.forget_grant();
        let agent = profile.open(request).await;
        let mut agent = agent.map_err(|cause| match session {
            Some(_) => format!("{cause}. Send /new to begin a new conversation"),
            None => cause,
        })?;
        let view = AgentView {
            name: agent.name().to_owned(),
            session: agent.session().id().clone(),
            tail: agent.defer_session_sync(),
            dispatcher: agent.dispatcher().clone(),
            handle: agent.handle(),
            model: agent.model().to_string(),
            profile,
        };
        Ok(OpenAgent {
            view: Some(view),
            agent: Some(agent),
            access: access.clone(),
            turn: None,
        })
    }
}

fn not_opened() -> String {
    "the agent could not be opened".to_owned()
}
