//! The current session of the main agent, with its hooks and scripts.

use std::sync::Arc;

use crate::sessions::Session;
use tenterhook_engine::Engine;
use tenterhook_tools::{Permissions, Restrictions};

use crate::agent_session::AgentSession;
use crate::config::AgentConfig;
use crate::identity::AgentIdentity;
use crate::models::SelectedModel;
#[cfg(unix)]
use crate::script_view::{AgentView, ScriptAttachment};
use crate::state::AgentState;

/// The main agent in its current session.
#[derive(Debug)]
pub(crate) struct ActiveSession {
    pub(crate) agent: AgentSession,
    /// The attachment through which scripts reach the agent.
    #[cfg(unix)]
    pub(crate) attachment: Option<ScriptAttachment>,
}

impl ActiveSession {
    /// Creates the main agent in `session`. `selected` is the current model, `initial` the model that the agent was
    /// built with.
    pub(crate) fn begin(
        engine: &Engine,
        config: &Arc<AgentConfig>,
        (selected, initial): (SelectedModel, SelectedModel),
        permissions: Permissions,
        mut session: Session,
    ) -> Self {
        if let Some(sessions) = &config.sessions
            && !session.is_stored()
        {
            sessions.begin(&mut session);
        }
        let hooks = config.hooks(engine, session.id());
        let restrictions = config.restrictions.get(&config.name);
        let identity = AgentIdentity {
            name: config.name.clone(),
            instruction: config.instruction.clone(),
            tools: config.tools.clone(),
            restrictions: Restrictions::default().and(restrictions),
            depth: 0,
            in_background: false,
        };
        let state = AgentState::new(config, selected, initial, permissions, session.id());
        #[cfg(unix)]
        let view = config.scripts.as_ref().map(|_| session.share());
        let agent = AgentSession::new(Arc::new(state), identity, hooks, session);
        Self {
            #[cfg(unix)]
            attachment: config.scripts.as_ref().zip(view).map(|(host, session)| {
                let view = AgentView::new(agent.handle(), agent.identity.clone(), session);
                ScriptAttachment::new(host, view)
            }),
            agent,
        }
    }
}
