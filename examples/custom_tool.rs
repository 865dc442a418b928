//! A tool of your own in the reference agent, under the same gates as every other: `cargo run -p tenterhook-agent --example custom_tool`
#![expect(clippy::print_stdout, reason = "an example shows something")]

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook::event::PreToolUse;
use tenterhook::{Effect, Engine, JsonObject, ToolResult};
use tenterhook_agent::provider::Scripted;
use tenterhook_agent::tool::{InvalidInput, ToolContext, ToolFailure};
use tenterhook_agent::{Agent, CancellationToken, Tool, Toolbox};

/// Says how many words a text has.
#[derive(Debug)]
struct CountWords;

impl Tool for CountWords {
    fn name(&self) -> &'static str {
        "count_words"
    }

    fn description(&self) -> String {
        "Counts the words of a text.".to_owned()
    }

    fn schema(&self) -> Value {
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
    }

    fn category(&self) -> &'static str {
        "text"
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn check(&self, input: &JsonObject) -> Result<(), InvalidInput> {
        text_of(input).map(drop).ok_or_else(|| InvalidInput {
            tool: self.name().to_owned(),
            problem: "`text` is missing, or is no string".to_owned(),
        })
    }

    fn run<'a>(
        &'a self,
        input: JsonObject,
        _: ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolFailure>> {
        let words = text_of(&input).map_or(0, |text| text.split_whitespace().count());
        Box::pin(async move { Ok(ToolResult::text(words.to_string())) })
    }
}

fn text_of(input: &JsonObject) -> Option<&str> {
    input.get("text")?.as_str()
}

/// What the model says; another provider asks a real one.
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
        let is_secret = text_of(&event.tool_input).is_some_and(|text| text.contains("secret"));
        if is_secret {
            Effect::deny("secrets are not counted")
        } else {
            Effect::none()
        }
    });
    let mut agent = Agent::builder(engine)
        .model(Arc::new(Scripted::parse("script", SCRIPT)?))
        .toolbox(Toolbox::standard().with(CountWords))
        .build()?;
    agent
        .prompt("Count the words.", &CancellationToken::new())
        .await;
    for message in agent.session().messages() {
        println!("{}: {}", message.role.as_str(), message.content);
    }
    Ok(())
}
