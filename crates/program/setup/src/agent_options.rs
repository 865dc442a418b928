//! Which agent to run: its hooks, its model, what it may do, and its limits.

use std::path::PathBuf;

use tenterhook_agent::{Rule, ThinkingLevel};

use crate::hook_options::HookOptions;

/// Which agent to run.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// The hooks.
    pub hooks: HookOptions,
    /// The file of the journal, if it is not the day's file. The agent's tools must not change it.
    pub journal: Option<PathBuf>,
    /// The name of the model. The default is the agent file's model, else the one that the resumed session used last.
    pub model: Option<String>,
    /// How much the model thinks. By default, the model service decides.
    pub thinking: Option<ThinkingLevel>,
    /// The base URL of the model service, if it is not the usual one.
    pub base_url: Option<String>,
    /// The folder that the agent works in.
    pub cwd: PathBuf,
    /// The calls that run without a question.
    pub allow: Vec<Rule>,
    /// The calls before which the user is asked.
    pub ask: Vec<Rule>,
    /// The calls that are denied.
    pub deny: Vec<Rule>,
    /// After how many model calls of one run the user is asked whether to continue.
    pub max_iterations: Option<u32>,
    /// At how many tokens the conversation is compacted. The default is 90 % of the model's context window.
    pub compact_at: Option<u64>,
    /// After how many tokens of the session no more tools run.
    pub token_budget: Option<u64>,
    /// How often tools may run for one call, by their names.
    pub attempts: Vec<(String, u32)>,
}
