//! The options that choose an agent: its hooks, its model, what it may do, and its limits.

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use tenterhook_agent::{Rule, ThinkingLevel};
use tenterhook_setup::agent_options::AgentOptions;
use tenterhook_setup::hook_options::HookOptions;

use crate::hook_args::{HookArgs, LineArgs};
use crate::journal_args::JournalArgs;

/// Which agent to run.
#[derive(Debug, Clone, Parser)]
pub(crate) struct AgentArgs {
    /// The hooks of files.
    #[command(flatten)]
    pub(crate) hooks: HookArgs,

    /// The hooks of the command line.
    #[command(flatten)]
    pub(crate) lines: LineArgs,

    /// The journal.
    #[command(flatten)]
    pub(crate) journal: JournalArgs,

    /// The model: `scripted:FILE`, `openai:MODEL`, `anthropic:MODEL`, `gemini:MODEL`, `ollama:MODEL`, or a name from
    /// `models.yaml`. The default is the agent file's model, else the model that the resumed session used last.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// How much the model thinks: off, minimal, low, medium, high or xhigh. By default, the model service decides.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) thinking: Option<ThinkingLevel>,

    /// The base URL of the model service, if it is not the usual one.
    #[arg(long, value_name = "URL", value_parser = base_url)]
    pub(crate) base_url: Option<String>,

    /// The folder that the agent works in.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,

    /// Let matching tool calls run without asking you: `TOOL` or `TOOL(ARGUMENT=PATTERN)`. May be repeated.
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<Rule>,

    /// Ask before matching tool calls. May be repeated.
    #[arg(long, value_name = "RULE")]
    pub(crate) ask: Vec<Rule>,

    /// Deny matching tool calls. May be repeated.
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<Rule>,

    /// Ask you whether to continue after this many model calls in one run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,

    /// Compact the conversation when it reaches this many tokens. The default is 90 % of the model's context window.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) compact_at: Option<u64>,

    /// Run no more tools once the session has used this many tokens.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) token_budget: Option<u64>,

    /// Retry a call of TOOL that fails until it has run N times, with growing pauses: `TOOL=N`. Hooks judge each
    /// attempt. May be repeated.
    #[arg(long, value_name = "TOOL=N", value_parser = attempts)]
    pub(crate) attempts: Vec<(String, u32)>,
}

impl AgentArgs {
    /// Returns which agent to run.
    pub(crate) fn options(&self) -> AgentOptions {
        AgentOptions {
            hooks: HookOptions {
                lines: self.lines.lines().collect(),
                ..self.hooks.options()
            },
            journal: self.journal.journal.clone(),
            model: self.model.clone(),
            thinking: self.thinking,
            base_url: self.base_url.clone(),
            cwd: self.cwd.clone(),
            allow: self.allow.clone(),
            ask: self.ask.clone(),
            deny: self.deny.clone(),
            max_iterations: self.max_iterations,
            compact_at: self.compact_at,
            token_budget: self.token_budget,
            attempts: self.attempts.clone(),
        }
    }
}

/// Reads `TOOL=N`, how often a tool may run for one call.
fn attempts(text: &str) -> Result<(String, u32), String> {
    let most = 100;
    let (tool, number) = text.split_once('=').unwrap_or((text, ""));
    let number = number
        .parse()
        .ok()
        .filter(|number| (1..=most).contains(number));
    match number {
        Some(number) if !tool.is_empty() => Ok((tool.to_owned(), number)),
        _ => Err(format!("expected `TOOL=N` with a number from 1 to {most}")),
    }
}

/// Reads an absolute URL of a web service.
fn base_url(text: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
    if tenterhook_providers::is_base_url(text) {
        Ok(text.to_owned())
    } else {
        Err("expected a URL such as `https://host/v1`".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_has_a_scheme_and_a_host() {
        for text in [
            "http://localhost:8080/v1/",
            "https://host",
            "http://[::1]:8080",
        ] {
            assert_eq!(base_url(text).unwrap(), text);
        }
        for text in [
            "",
            "localhost:8080",
            "ftp://host",
            "http://",
            "https:///v1",
            "http://:80",
            "http://a b",
        ] {
            assert!(base_url(text).is_err(), "{text}");
        }
    }
}
