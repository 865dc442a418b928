//! The state of a conversation: the agent, the terminal, the hooks that it follows, and the output format.

use std::sync::Arc;

use tenterhook_agent::extension::{ForeignCommand, ScriptHost};
use tenterhook_agent::{Agent, Frontend as _};
use tenterhook_discovery::Reloader;
use tenterhook_engine::Engine;
use tenterhook_engine::event::SessionSource;

use super::format::Format;
use super::program::Program;
use super::record::ConversationRecord;
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::Terminal;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;

/// A conversation with the agent.
pub(crate) struct Conversation<'a> {
    pub(crate) agent: Agent,
    /// Why the first session starts.
    pub(crate) source: SessionSource,
    /// The commands of scripts and extensions.
    pub(crate) commands: Vec<ForeignCommand>,
    /// The host that scripts talk to, with their queued prompts and requests.
    pub(crate) scripts: Arc<ScriptHost>,
    /// Reloads hooks when their files change. `None` for a run without hooks.
    pub(crate) reloader: Option<Reloader>,
    /// The engine in which the hooks are registered.
    pub(crate) engine: Engine,
    pub(crate) terminal: &'a Terminal,
    pub(crate) interrupts: &'a Interrupts,
    /// Whether the user has ended the session.
    pub(crate) is_over: bool,
    /// The output format.
    pub(crate) format: Format,
    /// The program that uses the agent, if there is one.
    pub(crate) program: Program,
    /// Whether a line that begins with `!` is a shell command.
    pub(crate) has_shell: bool,
}

impl Conversation<'_> {
    /// Reports why a command failed, and records it. At a terminal it does not affect the exit status, because the
    /// user has seen the message.
    pub(super) fn report_failure(&self, record: &mut ConversationRecord, exit: Exit, text: String) {
        output::note(&text);
        record.problem = Some(text);
        if !self.terminal.is_interactive() {
            record.note(exit);
        }
    }
}
