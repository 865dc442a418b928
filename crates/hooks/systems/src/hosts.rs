//! The list of all hosts.

use crate::host::HostAgent;
use crate::{
    claude_code, cline, codex, copilot, droid, gemini, goose, kimi, opencode, pi, qwen, vibe,
};

/// All coding agents into whose configuration Tenterhook can be installed, in alphabetical order.
pub static HOSTS: &[&HostAgent] = &[
    &claude_code::HOST,
    &cline::HOST,
    &codex::HOST,
    &copilot::HOST,
    &droid::HOST,
    &gemini::HOST,
    &goose::HOST,
    &kimi::HOST,
    &opencode::HOST,
    &pi::HOST,
    &qwen::HOST,
    &vibe::HOST,
];

impl HostAgent {
    /// Returns the host with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        HOSTS.iter().copied().find(|host| host.name == name)
    }
}
