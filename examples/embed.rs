//! Adds hooks to an agent with its own loop:
//! `cargo run -p tenterhook-discovery --example embed -- examples/hooks.yaml`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::{env, error::Error, path::Path, process::Command};

use tenterhook::event::{PostToolUse, PreToolUse, ToolGuard};
use tenterhook::{
    Decision, Dispatcher, Effect, Engine, JsonObject, Layer, Origin, Scope, ToolResult,
};
use tenterhook_discovery::{LoadOptions, load_file};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::new();
    let file = env::args().nth(1).ok_or("usage: embed HOOK_FILE")?;
    let options = LoadOptions::of_process();
    let loaded = load_file(Path::new(&file), Layer::Explicit, &options)?;
    engine.scope(Scope::Global).replace(loaded.specs);
    engine.on(|event: &PreToolUse| match event.tool_input.get("cmd") {
        Some(cmd) if cmd == "rm -rf build" => Effect::deny("nothing is deleted here"),
        _ => Effect::none(),
    });
    let hooks = engine.dispatcher(Origin::default());
    for cmd in ["echo hello", "sudo reboot", "rm -rf build"] {
        let input = [("cmd".to_owned(), cmd.into())].into_iter().collect();
        match call(&hooks, input).await {
            Ok(result) => println!("{cmd}: {}", result.joined_text()),
            Err(why) => println!("{cmd}: denied: {why}"),
        }
    }
    Ok(())
}

/// Runs one tool call. Hooks may rewrite the call, guards judge the final arguments, and hooks see the
/// result.
async fn call(hooks: &Dispatcher, tool_input: JsonObject) -> Result<ToolResult, String> {
    let mut asked = PreToolUse::default();
    (asked.tool_name, asked.tool_input) = ("shell".to_owned(), tool_input);
    let outcome = hooks.dispatch(asked.clone()).await;
    follow(outcome.decision())?;
    let asked = outcome.into_rewritten().unwrap_or(asked);

    let mut judged = ToolGuard::default();
    (judged.tool_name, judged.tool_input) = (asked.tool_name.clone(), asked.tool_input.clone());
    let outcome = hooks.dispatch(judged).await;
    follow(outcome.decision())?;

    let cmd = asked.tool_input.get("cmd").and_then(|cmd| cmd.as_str());
    let output = Command::new("sh")
        .args(["-c", cmd.unwrap_or("false")])
        .output();
    let output = output.map_err(|error| error.to_string())?.stdout;
    let mut done = PostToolUse::default();
    (done.tool_name, done.tool_input) = (asked.tool_name, asked.tool_input);
    done.result = ToolResult::text(String::from_utf8_lossy(&output).trim_end());
    let outcome = hooks.dispatch(done.clone()).await;
    Ok(outcome.into_rewritten().unwrap_or(done).result)
}

/// Follows a decision. The error is the reason not to run the tool.
fn follow(decision: Decision) -> Result<(), String> {
    match decision {
        Decision::Proceed => Ok(()),
        // An interactive agent asks the user here. This example has no one to ask.
        Decision::Ask { reason, .. } => Err(format!("it needs approval ({reason})")),
        Decision::Stop { reason, .. } => Err(reason),
    }
}
