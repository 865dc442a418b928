//! Uses only the engine, with functions as hooks: `cargo run -p tenterhook --example embed_engine`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use tenterhook::event::PreToolUse;
use tenterhook::{Decision, Effect, Engine, Origin};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let engine = Engine::new();
    engine.on(|event: &PreToolUse| {
        let cmd = event.tool_input.get("cmd").and_then(|cmd| cmd.as_str());
        match cmd.unwrap_or_default() {
            cmd if cmd.starts_with("sudo") => Effect::deny("sudo is not allowed"),
            cmd if cmd.starts_with("git push") => Effect::ask("it publishes your work"),
            _ => Effect::none(),
        }
    });
    let hooks = engine.dispatcher(Origin::new("session-1", "/home/ada/project"));
    for cmd in ["ls", "git push", "sudo reboot"] {
        let event = PreToolUse::new("shell").with_tool_input([("cmd", cmd)]);
        match hooks.dispatch(event).await.decision() {
            Decision::Proceed => println!("{cmd}: runs"),
            Decision::Ask { reason, .. } => println!("{cmd}: a person is asked ({reason})"),
            Decision::Stop { reason, .. } => println!("{cmd}: does not run ({reason})"),
        }
    }
}
