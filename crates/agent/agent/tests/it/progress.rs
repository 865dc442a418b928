//! Partial results of tools are reported while the tools run.

use std::fs;
use std::sync::{Arc, Mutex};

use futures_util::future::{self, BoxFuture};
use tempfile::TempDir;
use tenterhook_agent::frontend::{Approval, ApprovalRequest, Frontend};
use tenterhook_agent::{AgentConfig, CancellationToken, Permissions, RunEnd};
use tenterhook_engine::event::{
    PostToolUse, PreToolUse, ToolExecutionEnd, ToolExecutionUpdate, ToolResponseTransform,
};
use tenterhook_engine::{Effect, Engine, ToolCall, ToolResult};
use tenterhook_providers::Scripted;

use crate::stage::Stage;

/// A tool that continues when its first line has been received.
const WAITS: &str = r#"
turns:
  - tool_calls: [{name: shell, arguments: {cmd: "echo one; until test -e heard; do sleep 0.01; done; echo two"}}]
  - text: done
"#;

#[tokio::test]
async fn a_command_tells_what_it_prints_before_it_ends() {
    let stage = Stage::empty();
    let heard = stage.path().join("heard");
    stage.engine.on(move |event: &ToolExecutionUpdate| {
        if event.partial_result.joined_text().starts_with("one\n") {
            fs::write(&heard, "").unwrap();
        }
    });
    let permissions = Permissions::new().yes(true);
    stage
        .play_with(WAITS, |config| AgentConfig {
            permissions,
            ..config
        })
        .await;
    let updates = stage.all::<ToolExecutionUpdate>();
    assert_eq!(updates[0].partial_result, ToolResult::text("one\n"));
    assert_eq!(
        stage.only::<ToolExecutionEnd>().result.joined_text(),
        "one\ntwo\n"
    );
    let mut order = stage.names();
    order.retain(|name| name.starts_with("tool_execution_"));
    order.dedup();
    assert_eq!(
        order,
        [
            "tool_execution_start",
            "tool_execution_update",
            "tool_execution_end"
        ]
    );
}

#[tokio::test]
async fn a_cancelled_run_does_not_wait_for_who_hears_of_its_tools() {
    let stage = Stage::empty();
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    stage.engine.on_async(move |_: &ToolExecutionUpdate| {
        token.cancel();
        Box::pin(future::pending::<Effect<ToolExecutionUpdate>>())
    });
    let mut agent = AgentConfig {
        permissions: Permissions::new().yes(true),
        ..stage.config(WAITS)
    }
    .build(stage.engine.clone())
    .unwrap();
    assert_eq!(agent.prompt("go", &cancel).await.end, RunEnd::Cancelled);
    assert!(stage.only::<ToolExecutionEnd>().is_error);
}

/// A frontend that shows partial results.
#[derive(Default)]
struct Watcher(Mutex<Vec<String>>);

impl Frontend for Watcher {
    fn is_interactive(&self) -> bool {
        true
    }

    fn approve<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(future::ready(Approval::AllowOnce))
    }

    fn shows_progress(&self) -> bool {
        true
    }

    fn tool_update(&self, _agent: &str, _call: &ToolCall, partial: &ToolResult) {
        self.0.lock().unwrap().push(partial.joined_text());
    }
}

// E11: text that a hook may still change is not streamed.
#[tokio::test]
async fn nobody_sees_what_a_hook_might_take_out_of_the_result() {
    #[expect(clippy::type_complexity, reason = "a row of a table")]
    let cases: [(&str, fn(&Engine), bool); 5] = [
        ("no hooks", |_| (), true),
        (
            "a gate",
            |engine| drop(engine.on(|_: &PreToolUse| ())),
            true,
        ),
        (
            "somebody who watches",
            |engine| drop(engine.subscribe(|_| ())),
            true,
        ),
        (
            "a transform",
            |engine| drop(engine.on(|_: &ToolResponseTransform| ())),
            false,
        ),
        (
            "a patch",
            |engine| drop(engine.on(|_: &PostToolUse| ())),
            false,
        ),
    ];
    for (name, hook, is_seen) in cases {
        let (engine, dir) = (Engine::new(), TempDir::new().unwrap());
        hook(&engine);
        let watcher = Arc::new(Watcher::default());
        let script =
            "turns: [{tool_calls: [{name: shell, arguments: {cmd: echo one}}]}, {text: done}]";
        let mut agent = AgentConfig {
            model: Some(Arc::new(Scripted::parse("play", script).unwrap())),
            cwd: dir.path().into(),
            frontend: Arc::clone(&watcher) as Arc<dyn Frontend>,
            ..AgentConfig::default()
        }
        .build(engine)
        .unwrap();
        agent.prompt("go", &CancellationToken::new()).await;
        let seen = watcher.0.lock().unwrap().clone();
        assert_eq!(seen == ["one\n"], is_seen, "{name}: {seen:?}");
    }
}
