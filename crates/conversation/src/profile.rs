//! What the gateway needs from the program that embeds it: agents under hooks.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_agent::extension::ForeignCommand;
use tenterhook_agent::{Agent, Frontend};
use tenterhook_engine::Engine;
use tenterhook_protocol::SessionId;
use tenterhook_tools::Toolbox;

/// Opens the agents of chats.
pub trait Profile: Send + Sync {
    /// Returns the engine whose hooks run for the gateway's own events. Agents are built with the same hooks.
    fn engine(&self) -> &Engine;

    /// Returns the directory in which agents work. Hooks of the gateway's own events run there too.
    fn folder(&self) -> &Path;

    /// Returns the commands that extensions add to chats. There are none by default.
    fn commands(&self) -> &[ForeignCommand] {
        &[]
    }

    /// Opens an agent for a chat.
    ///
    /// # Errors
    ///
    /// Describes why it cannot be opened, in a sentence that the owner of the gateway understands. A session that is
    /// missing is an error too.
    fn open(&self, request: OpenRequest) -> BoxFuture<'_, Result<Agent, String>>;
}

/// A request for an agent.
pub struct OpenRequest {
    /// The session to continue. `None` begins a new one.
    pub session: Option<SessionId>,
    /// Shows what the agent does and answers its questions.
    pub frontend: Arc<dyn Frontend>,
    /// What the turns of the chat may use.
    pub access: ToolAccess,
    /// Adds the gateway's own tools to the agent's.
    pub with_tools: Box<dyn FnOnce(Toolbox) -> Toolbox + Send>,
}

/// What the turns of a chat may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolAccess {
    /// The only tools. `None` for all tools of the agent.
    pub tools: Option<Vec<String>>,
    /// Whether only tools that read are allowed, without network.
    pub is_untrusted: bool,
}

impl fmt::Debug for OpenRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenRequest")
            .field("session", &self.session)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}
