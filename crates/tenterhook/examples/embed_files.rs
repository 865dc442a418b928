//! Loads hooks from a file. They may run commands:
//! `cargo run -p tenterhook --features files,command --example embed_files -- crates/tenterhook/examples/hooks.yaml`
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints its result"
)]

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use tenterhook::files::{LoadOptions, load_file, tools};
use tenterhook::tool_call::{JudgedToolCall, UserAnswer, judge};
use tenterhook::{Engine, Layer, Origin, Scope, ToolCall, ToolResult};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: embed_files HOOK_FILE");
        return ExitCode::FAILURE;
    };
    let options = LoadOptions::of_process();
    let loaded = match load_file(Path::new(&file), Layer::Explicit, &options) {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("{}", error.render(false));
            return ExitCode::FAILURE;
        }
    };
    let engine = Engine::builder().tools(tools::native()).build();
    engine.scope(Scope::Global).replace(loaded.into_specs());
    let hooks = engine.dispatcher(Origin::default());
    for cmd in ["ls", "git push", "sudo reboot"] {
        let call = ToolCall::new("call-1", "shell", json!({ "cmd": cmd }));
        let finished = match judge(&hooks, &(), &call).await {
            JudgedToolCall::Proceed(ready) => {
                println!("{cmd}: runs");
                ready.finish(ToolResult::text("the tool's output")).await
            }
            JudgedToolCall::Ask(asked) => {
                let reason = asked.question().reason().unwrap_or("no reason");
                println!("{cmd}: a person is asked ({reason})");
                match asked.answer(UserAnswer::Unavailable).await {
                    Ok(ready) => ready.finish(ToolResult::text("the tool's output")).await,
                    Err(stopped) => stopped.finish().await,
                }
            }
            JudgedToolCall::Stop(stopped) => {
                println!("{cmd}: does not run ({})", stopped.text());
                stopped.finish().await
            }
        };
        println!("  the model gets: {}", finished.result.joined_text());
    }
    tenterhook::command::end_guard();
    ExitCode::SUCCESS
}
