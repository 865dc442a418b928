//! Commands of extensions in chats.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::{self, BoxFuture};
use parking_lot::Mutex;
use serde_json::json;
use tenterhook_agent::CancellationToken;
use tenterhook_agent::extension::ForeignCommand;
use tenterhook_channel::settings::{RestartMode, Settings};
use tenterhook_protocol::event::SenderRole;
use tenterhook_runners::worker::{
    Rendered, ScriptServer, ScriptToolCall, ToolAnswer, ToolUpdates, WorkerError,
};

use crate::conversation_stage::{Options, Stage, texts};

const SAY: &str = "turns: [{text: said, repeat: true}]";

/// A script that notes the calls of its command.
#[derive(Debug, Default)]
struct NotingScript(Mutex<Vec<String>>);

impl ScriptServer for NotingScript {
    fn run_tool<'a>(
        &'a self,
        _: &'a str,
        _: ScriptToolCall<'a>,
        _: Option<ToolUpdates>,
        _: Duration,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ToolAnswer, WorkerError>> {
        Box::pin(future::pending())
    }

    fn run_command<'a>(
        &'a self,
        (command, args): (&'a str, &'a str),
        _: &'a str,
        _: Duration,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), WorkerError>> {
        self.0.lock().push(format!("{command} {args}"));
        Box::pin(future::ready(Ok(())))
    }

    fn render<'a>(
        &'a self,
        _: Rendered<'a>,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Vec<String>>, WorkerError>> {
        Box::pin(future::ready(Ok(None)))
    }
}

fn stage() -> (Stage, Arc<NotingScript>) {
    stage_with(Settings::default())
}

fn stage_with(settings: Settings) -> (Stage, Arc<NotingScript>) {
    let script = Arc::new(NotingScript::default());
    let command = serde_json::from_value(json!({ "name": "note", "description": "" })).unwrap();
    let server = Arc::clone(&script) as Arc<dyn ScriptServer>;
    let options = Options {
        settings,
        commands: vec![ForeignCommand::of_script(server, command, Path::new("x"))],
        ..Options::default()
    };
    (Stage::with(SAY, options), script)
}

#[tokio::test]
async fn a_command_whose_turn_cannot_be_stored_runs_later_and_once() {
    let (stage, script) = stage();
    stage.publisher.failures.store(1, Ordering::Release);
    stage.say("/note this").await;
    stage.log.until("event gateway_error", 1).await;
    assert!(script.0.lock().is_empty(), "it ran before it was stored");
    stage.log.until("done Completed", 1).await;
    stage.until_finished().await;
    assert_eq!(*script.0.lock(), ["note this"]);
    assert!(stage.requests.lock().is_empty(), "the model was asked");
    let lines = stage.lines();
    assert!(
        lines.contains(&"end final Stop: Done.".to_owned()),
        "{lines:#?}"
    );
}

#[tokio::test]
async fn a_command_waits_for_the_turn_that_runs_and_is_never_heard_as_a_message() {
    let (stage, script) = stage();
    let held = stage.publisher.publishing.lock().await;
    stage.say("hi").await;
    stage.log.until("publish", 1).await;
    stage.say("/note that").await;
    stage.log.until("queued FollowUp", 1).await;
    assert!(script.0.lock().is_empty());
    drop(held);
    stage.log.until("done Completed", 2).await;
    stage.until_finished().await;
    assert_eq!(*script.0.lock(), ["note that"]);
    assert_eq!(stage.heard(0), ["hi"]);
    assert_eq!(stage.requests.lock().len(), 1);
}

#[tokio::test]
async fn members_and_guests_cannot_use_it() {
    let (stage, script) = stage();
    for (number, role) in [SenderRole::Member, SenderRole::Guest]
        .into_iter()
        .enumerate()
    {
        stage.say_as("bob", role, "/note it").await;
        let refused = "error refused: Only owners can use `/note`.";
        stage.log.until(refused, number + 1).await;
    }
    stage.until_finished().await;
    assert!(script.0.lock().is_empty() && stage.requests.lock().is_empty());
}

#[tokio::test]
async fn a_command_that_a_crash_interrupted_is_not_continued_by_the_model() {
    let (stage, script) = stage_with(Settings {
        on_restart: RestartMode::Resume,
        ..Settings::default()
    });
    let record = stage.record(|message| message.parts = texts(&["/note it"]));
    let record = record.await;
    stage.conversation().resume_interrupted(record).await;
    stage.until_finished().await;
    assert!(stage.requests.lock().is_empty(), "the model was asked");
    assert!(script.0.lock().is_empty(), "the command ran again");
    let lines = stage.lines();
    let is_told = |line: &String| line.starts_with("error interrupted");
    assert!(lines.iter().any(is_told), "{lines:#?}");
}
