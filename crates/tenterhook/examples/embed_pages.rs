//! The code of the pages of the documentation, as an embedder writes it: with the crate `tenterhook` alone.
//! `cargo run -p tenterhook --features files,command --example embed_pages`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use tenterhook::event::{PreToolUse, SessionEnd};
use tenterhook::files::{
    Conversation, FolderSearch, HookManager, Layers, LoadError, Sources, Trigger, discover,
};
use tenterhook::{Dispatcher, Engine, Origin, Scope};

/// A call to a tool of another hook system.
pub async fn foreign_call(dispatcher: Dispatcher, event: PreToolUse) {
    let tools = tenterhook::systems::tools::of("kodelet").expect("a known system");
    let outcome = dispatcher.with_tools(tools).dispatch(event).await;
    println!("{:?}", outcome.decision());
}

/// The hooks of kodelet's folders.
pub async fn folders() -> Result<(), LoadError> {
    let layers = Layers {
        start: Some("/work/project".into()),
        ..Layers::default()
    };
    let manager = HookManager::discover(FolderSearch::of_layers(&layers)).await?;
    let conversation = Conversation {
        id: "c1".into(),
        ..Conversation::default()
    };
    let trigger = Trigger::new(&manager, conversation);
    match trigger
        .before_tool_call("bash", r#"{"command": "ls"}"#, "call_1")
        .await
    {
        Ok(input) => println!("runs with {input}"),
        Err(blocked) => println!("does not run: {}", blocked.reason),
    }
    Ok(())
}

/// Hooks that follow their files.
pub async fn reload(engine: Engine, sources: Sources) -> Result<(), LoadError> {
    let discovered = discover(sources, Vec::new()).await?;
    let scope = engine.scope(Scope::Global);
    scope.replace(discovered.specs);
    let mut reloader = discovered.followed.follow(scope, Vec::new());
    loop {
        reloader.changed().await;
        for change in reloader.reload().await.changes {
            println!("{change}");
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), LoadError> {
    let engine = Engine::new();
    let hooks = engine.dispatcher(Origin::default());
    hooks.dispatch(SessionEnd::new("done")).await;
    foreign_call(hooks, PreToolUse::new("bash")).await;
    folders().await
}
