//! Adds a tool to the reference agent. The same gates apply to it as to every other tool:
//! `cargo run -p tenterhook-agent --example custom_tool`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tenterhook::event::PreToolUse;
use tenterhook::{Effect, Engine, ToolResult};
use tenterhook_agent::{AgentConfig, CancellationToken, Toolbox};
use tenterhook_providers::Scripted;
use tenterhook_tools::{ToolContext, ToolFailure, TypedTool};

/// Counts the words of a text.
#[derive(Debug)]
struct CountWords;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CountWordsInput {
    /// The text.
    text: String,
}

impl TypedTool for CountWords {
    type Input = CountWordsInput;

    fn name(&self) -> &'static str {
        "count_words"
    }

    fn description(&self) -> String {
        "Counts the words of a text.".to_owned()
    }

    fn category(&self) -> &'static str {
        "text"
    }

    fn is_read_only(&self) -> bool {
        true
    }

    async fn run(
        &self,
        input: CountWordsInput,
        _: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        let words = input.text.split_whitespace().count();
        Ok(ToolResult::text(words.to_string()))
    }
}

/// The answers of a scripted model. Other providers call a real one.
const SCRIPT: &str = "
turns:
  - tool_calls:
      - { name: count_words, arguments: { text: one two three } }
      - { name: count_words, arguments: { text: a secret } }
  - text: The first text has three words. I may not look at the second.
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::new();
    engine.on(|event: &PreToolUse| {
        let is_secret = event
            .tool_input
            .get("text")
            .and_then(Value::as_str)
            .is_some_and(|text| text.contains("secret"));
        if is_secret {
            Effect::deny("secrets are not counted")
        } else {
            Effect::none()
        }
    });
    let mut agent = AgentConfig {
        model: Some(Arc::new(Scripted::parse("script", SCRIPT)?)),
        toolbox: Toolbox::standard().with(CountWords),
        ..AgentConfig::default()
    }
    .build(engine)?;
    agent
        .prompt("Count the words.", &CancellationToken::new())
        .await;
    for message in agent.session().messages() {
        println!("{}: {}", message.role.as_str(), message.content);
    }
    Ok(())
}
