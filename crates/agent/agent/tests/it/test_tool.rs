//! A tool that a test makes of a closure.

use std::fmt;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook_agent::Tool;
use tenterhook_engine::{JsonObject, ToolResult};
use tenterhook_tools::{InvalidInput, ToolContext, ToolFailure, ToolRetry};

/// What a run of the tool becomes.
pub(crate) type Outcome<'a> = BoxFuture<'a, Result<ToolResult, ToolFailure>>;

/// A tool that takes any arguments. It only reads and is not retried, unless the test says otherwise.
pub(crate) struct TestTool<F> {
    name: &'static str,
    is_read_only: bool,
    retry: ToolRetry,
    run: F,
}

impl<F> TestTool<F>
where
    F: for<'a> Fn(JsonObject, ToolContext<'a>) -> Outcome<'a> + Send + Sync,
{
    pub(crate) fn new(name: &'static str, run: F) -> Self {
        Self {
            name,
            is_read_only: true,
            retry: ToolRetry::once(),
            run,
        }
    }

    pub(crate) fn read_only(self, is_read_only: bool) -> Self {
        Self {
            is_read_only,
            ..self
        }
    }

    pub(crate) fn retry(self, retry: ToolRetry) -> Self {
        Self { retry, ..self }
    }
}

impl<F> fmt::Debug for TestTool<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<F> Tool for TestTool<F>
where
    F: for<'a> Fn(JsonObject, ToolContext<'a>) -> Outcome<'a> + Send + Sync,
{
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> String {
        String::new()
    }

    fn schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn category(&self) -> &'static str {
        "other"
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn retry(&self) -> ToolRetry {
        self.retry
    }

    fn check(&self, _: &JsonObject) -> Result<(), InvalidInput> {
        Ok(())
    }

    fn run<'a>(&'a self, input: JsonObject, context: ToolContext<'a>) -> Outcome<'a> {
        (self.run)(input, context)
    }
}
