//! Helpers that run tools in tests.

use std::path::Path;
use std::time::Duration;

use futures_util::future::{self, BoxFuture};
use serde_json::Value;
use tenterhook_protocol::{TaskId, ToolResult};
use tokio_util::sync::CancellationToken;

use crate::failure::ToolFailure;
use crate::progress::Progress;
use crate::protected_file::WriteGuard;
use crate::restriction::Restrictions;
use crate::tool::{Delegate, Tool, ToolContext};

/// Refuses every task.
#[derive(Debug)]
struct NoDelegate;

fn no_task<'a>() -> BoxFuture<'a, Result<String, ToolFailure>> {
    Box::pin(future::ready(Err(ToolFailure::permanent("no tasks"))))
}

impl Delegate for NoDelegate {
    fn transfer<'a>(
        &'a self,
        agent: &'a str,
        _: String,
    ) -> BoxFuture<'a, Result<String, ToolFailure>> {
        Box::pin(async move { Err(ToolFailure::permanent(format!("no agent `{agent}`"))) })
    }

    fn start(&self, agent: &str, _: String) -> Result<TaskId, ToolFailure> {
        Err(ToolFailure::permanent(format!("no agent `{agent}`")))
    }

    fn list(&self) -> Result<String, ToolFailure> {
        Err(ToolFailure::permanent("no tasks"))
    }

    fn view<'a>(&'a self, _: &'a str, _: Duration) -> BoxFuture<'a, Result<String, ToolFailure>> {
        no_task()
    }

    fn stop<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<String, ToolFailure>> {
        no_task()
    }
}

/// Creates a named pipe `pipe` in a folder.
pub(crate) fn make_fifo(folder: &Path) {
    let made = std::process::Command::new("mkfifo")
        .arg(folder.join("pipe"))
        .status();
    assert!(made.unwrap().success());
}

/// Checks and runs a tool in `cwd`, and returns the result for the model.
pub(crate) async fn run(tool: &dyn Tool, cwd: &Path, input: Value) -> Result<ToolResult, String> {
    let Value::Object(input) = input else {
        panic!("arguments are an object")
    };
    tool.check(&input).map_err(|error| error.to_string())?;
    let context = ToolContext {
        cwd,
        session: &"s".into(),
        call: &"c".into(),
        cancel: CancellationToken::new(),
        progress: Progress::default(),
        delegate: &NoDelegate,
        restrictions: &Restrictions::default(),
        write_guard: WriteGuard::default(),
    };
    tool.run(input, context)
        .await
        .map_err(|error| error.to_string())
}
