//! Loads hooks from a file. They may run commands:
//! `cargo run -p tenterhook --features files,command --example embed_files -- crates/tenterhook/examples/hooks.yaml`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::path::Path;

use tenterhook::event::PreToolUse;
use tenterhook::files::{LoadOptions, load_file, tools};
use tenterhook::{Decision, Engine, Layer, Origin, Scope};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args()
        .nth(1)
        .ok_or("usage: embed_files HOOK_FILE")?;
    let loaded = load_file(
        Path::new(&file),
        Layer::Explicit,
        &LoadOptions::of_process(),
    )?;
    let engine = Engine::builder().tools(tools::native()).build();
    engine.scope(Scope::Global).replace(loaded.specs);
    let hooks = engine.dispatcher(Origin::default());
    for cmd in ["ls", "git push", "sudo reboot"] {
        let event = PreToolUse::new("shell").with_tool_input([("cmd", cmd)]);
        match hooks.dispatch(event).await.decision() {
            Decision::Proceed => println!("{cmd}: runs"),
            Decision::Ask { reason, .. } => println!("{cmd}: a person is asked ({reason})"),
            Decision::Stop { reason, .. } => println!("{cmd}: does not run ({reason})"),
        }
    }
    Ok(())
}
