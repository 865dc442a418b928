//! What the gateway needs from the program that embeds it: agents under hooks.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_agent::extension::ForeignCommand;
use tenterhook_agent::{Agent, Frontend};
use tenterhook_channel::chat::SessionKey;
use tenterhook_engine::Engine;
use tenterhook_protocol::SessionId;
use tenterhook_tools::Toolbox;
use tokio::sync::{Semaphore, watch};

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

    /// Returns the folder in which the sessions of agents are stored, for backups. `None` if none are stored.
    fn sessions(&self) -> BoxFuture<'_, Option<PathBuf>> {
        Box::pin(async { None })
    }

    /// Opens an agent for a chat.
    ///
    /// # Errors
    ///
    /// Describes why it cannot be opened, in a sentence that the owner of the gateway understands. A session that is
    /// missing is an error too.
    fn open(&self, request: OpenRequest) -> BoxFuture<'_, Result<Agent, String>>;
}

/// How many agents may be opened again at the same time after a reload.
const MAX_REOPENING: usize = 4;

/// The profile in force, which a reload replaces. Clones share it.
#[derive(Clone)]
pub struct LiveProfile {
    current: watch::Sender<Arc<dyn Profile>>,
    reopening: Arc<Semaphore>,
}

impl From<Arc<dyn Profile>> for LiveProfile {
    fn from(profile: Arc<dyn Profile>) -> Self {
        Self {
            current: watch::Sender::new(profile),
            reopening: Arc::new(Semaphore::new(MAX_REOPENING)),
        }
    }
}

impl LiveProfile {
    /// Returns the profile in force. Someone who holds it does not see a later replacement.
    pub fn current(&self) -> Arc<dyn Profile> {
        Arc::clone(&self.current.borrow())
    }

    /// Puts another profile in force. Chats open their agents again with it: at once, or after the turn that runs.
    pub fn replace(&self, profile: Arc<dyn Profile>) {
        self.current.send_replace(profile);
    }

    /// Returns a receiver that learns of replacements.
    pub(crate) fn replacements(&self) -> watch::Receiver<Arc<dyn Profile>> {
        self.current.subscribe()
    }

    /// Limits how many agents are opened again at the same time.
    pub(crate) fn reopening(&self) -> &Semaphore {
        &self.reopening
    }
}

impl fmt::Debug for LiveProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveProfile").finish_non_exhaustive()
    }
}

/// A request for an agent.
pub struct OpenRequest {
    /// The key of the session, which says whose chats it belongs to.
    pub key: SessionKey,
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
