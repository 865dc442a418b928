//! The loop of an agent with hooks around its tool calls. The calls of the model are fixed:
//! `cargo run -p tenterhook-engine --example tool_loop`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::future::ready;

use futures_util::future::BoxFuture;
use serde_json::json;
use tenterhook_engine::event::{PreToolUse, ToolGuard, ToolResponseTransform};
use tenterhook_engine::tool_call::{
    JudgedToolCall, PermissionRuling, RuleVerdict, ToolCallHost, ToolCallView, UserAnswer, judge,
};
use tenterhook_engine::{Dispatcher, Effect, Engine, Origin, ToolCall, ToolResult};

/// The agent's own rules: every call except reading needs approval.
struct Rules;

impl ToolCallHost for Rules {
    fn rule<'a>(&'a self, call: ToolCallView<'a>) -> BoxFuture<'a, RuleVerdict> {
        let ruling = match call.name {
            "read_file" => PermissionRuling::Harmless,
            _ => PermissionRuling::Unruled,
        };
        Box::pin(ready(ruling.into()))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let engine = Engine::new();
    engine.on(|event: &ToolGuard| match event.tool_input.get("cmd") {
        Some(cmd) if cmd == "reboot" => Effect::deny("not on this machine"),
        _ => Effect::none(),
    });
    engine.on(|event: &PreToolUse| match event.tool_input.get("cmd") {
        Some(cmd) if cmd == "make test" => Effect::allow(),
        _ => Effect::none(),
    });
    engine.on(|event: &ToolResponseTransform| {
        let text = event.tool_response.replace("hunter2", "[secret]");
        Effect::none().replace_response(text)
    });
    let hooks = engine.dispatcher(Origin::default());
    // The calls that a model would request.
    let calls = [
        ToolCall::new("1", "read_file", json!({ "path": "config.toml" })),
        ToolCall::new("2", "shell", json!({ "cmd": "make test" })),
        ToolCall::new("3", "shell", json!({ "cmd": "git push" })),
        ToolCall::new("4", "shell", json!({ "cmd": "reboot" })),
    ];
    for call in calls {
        let result = run_call(&hooks, &call).await;
        println!("{} {}: {}", call.name, call.arguments, result.joined_text());
    }
}

/// Runs one tool call and returns the result for the model.
async fn run_call(hooks: &Dispatcher, call: &ToolCall) -> ToolResult {
    let permitted = match judge(hooks, &Rules, call).await {
        JudgedToolCall::Proceed(ready) => Ok(ready),
        // An interactive agent shows `asked.question()` to the user here.
        JudgedToolCall::Ask(asked) => asked.answer(UserAnswer::Unavailable).await,
        JudgedToolCall::Stop(stopped) => Err(stopped),
    };
    match permitted {
        Ok(ready) => {
            let result = ToolResult::text(format!("ran with {:?}; hunter2", ready.call().input));
            ready.finish(result).await.result
        }
        Err(stopped) => stopped.finish().await.result,
    }
}
