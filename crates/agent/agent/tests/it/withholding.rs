//! If a redactor crashes, no one gets the secret: not the model, the session file, the screen or the journal.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::future::{self, BoxFuture};
use serde_json::json;
use tempfile::TempDir;
use tenterhook_agent::frontend::{Approval, ApprovalRequest, Denial, Frontend, HookFailure};
use tenterhook_agent::{AgentConfig, CancellationToken, RunEnd, SessionStore, Tool, Toolbox};
use tenterhook_engine::event::{NotificationLevel, SessionEndReason};
use tenterhook_engine::{
    AsyncHandler, ContentBlock, Engine, EventKind, HookSpec, Image, MemoryJournal, Message,
    OnError, ToolCall, ToolResult, native_policy,
};
use tenterhook_process::{Command, Program};
use tenterhook_providers::Scripted;
use tenterhook_runners::CommandHandler;
use tenterhook_runners::worker::{Script, WorkerHandler, python};
use tenterhook_systems::native::Native;
use tenterhook_tools::ToolFailure;

use crate::test_tool::TestTool;

const SECRET: &str = "hunter2";

const PLAY: &str = "turns: [{tool_calls: [{name: leaky}]}, {text: done, repeat: true}]";

/// A redactor that crashes on the text that it should redact, and quotes the text.
const COMMAND: &str =
    r#"event=$(cat); case $event in *hunter2*) echo "cannot redact $event" >&2; exit 1;; esac"#;

const PYTHON: &str = "
from tenterhook import on

@on(EVENT)
def redact(event):
    if 'hunter2' in repr(event):
        raise ValueError('cannot redact ' + repr(event))
";

/// Returns a tool that returns the secret in every part of a result, and in partial results.
fn leaky(fails: bool) -> impl Tool {
    TestTool::new("leaky", move |_, context| {
        context.progress.report(ToolResult::text(SECRET));
        let image = Image::new("image/png", SECRET.to_owned());
        let result = ToolResult::default()
            .with_content(vec![
                ContentBlock::text(SECRET),
                ContentBlock::Image { image },
            ])
            .with_details(json!({ "stdout": SECRET }).as_object().cloned());
        Box::pin(future::ready(if fails {
            Err(ToolFailure::with_result(result))
        } else {
            Ok(result)
        }))
    })
}

/// A frontend that records everything that is shown.
#[derive(Default)]
struct Screen(Mutex<String>);

impl Screen {
    fn show(&self, shown: &str) {
        let mut screen = self.0.lock().unwrap();
        screen.push_str(shown);
        screen.push('\n');
    }
}

impl Frontend for Screen {
    fn text_delta(&self, _: &str, text: &str) {
        self.show(text);
    }

    fn message(&self, _: &str, message: &Message) {
        self.show(&format!("{message:?}"));
    }

    fn shows_progress(&self) -> bool {
        true
    }

    fn tool_update(&self, _: &str, _: &ToolCall, partial: &ToolResult) {
        self.show(&format!("{partial:?}"));
    }

    fn tool_end(&self, _: &str, _: &ToolCall, result: &ToolResult) {
        self.show(&format!("{result:?}"));
    }

    fn tool_denied(&self, _: &str, denial: &Denial<'_>) {
        self.show(&format!("{denial:?}"));
    }

    fn hook_notice(&self, _: &'static str, text: &str) {
        self.show(text);
    }

    fn hook_failure(&self, _: &'static str, failure: &HookFailure<'_>) {
        self.show(&format!("{failure:?}"));
    }

    fn notification(&self, _: NotificationLevel, text: &str) {
        self.show(text);
    }

    fn script_output(&self, _: &str, line: &str) {
        self.show(line);
    }

    fn is_interactive(&self) -> bool {
        false
    }

    fn approve<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(future::ready(Approval::Deny { reason: None }))
    }
}

/// The texts that each party saw of a run.
struct Seen {
    end: RunEnd,
    model: String,
    session: String,
    screen: String,
    journal: String,
}

async fn crashing(dir: &Path, event: &str, is_python: bool) -> Arc<dyn AsyncHandler> {
    if !is_python {
        let command = Command::new(Program::shell(COMMAND));
        let handler = CommandHandler::new(command, COMMAND, Native::new());
        return Arc::new(handler);
    }
    let path = dir.join("redact.py");
    fs::write(&path, PYTHON.replace("EVENT", &format!("'{event}'"))).unwrap();
    let worker = python(dir);
    let script = Script {
        path,
        api: "tenterhook",
        approved: None,
    };
    worker.load(&script).await.unwrap();
    let handler = WorkerHandler::new(worker, (0, 0), Native::new(), "redact");
    Arc::new(handler)
}

/// Runs an agent whose redactor of `kind` crashes.
async fn play(kind: EventKind, (is_python, fails): (bool, bool)) -> Seen {
    let dir = TempDir::new().unwrap();
    let info = kind.info();
    let journal = Arc::new(MemoryJournal::new());
    let engine = Engine::builder().journal(journal.clone()).build();
    engine.register(HookSpec {
        policy: native_policy(info, Some(OnError::Block)),
        ..HookSpec::new(
            kind,
            "redactor",
            crashing(dir.path(), info.name, is_python).await,
        )
    });
    let model = Arc::new(Scripted::parse("play", PLAY).unwrap());
    let screen = Arc::new(Screen::default());
    let sessions = SessionStore::of_project(&dir.path().join("data"), dir.path());
    let folder = sessions.folder().to_owned();
    let mut agent = AgentConfig {
        model: Some(Arc::clone(&model) as _),
        cwd: dir.path().into(),
        frontend: Arc::clone(&screen) as Arc<dyn Frontend>,
        sessions: Some(sessions),
        toolbox: Toolbox::empty().with(leaky(fails)),
        ..AgentConfig::default()
    }
    .build(engine)
    .unwrap();
    let never = CancellationToken::new();
    let end = agent.prompt("go", &never).await.end;
    // The entries of a run that ended early go to the model with the next prompt.
    agent.prompt("and?", &never).await;
    agent.end_session(SessionEndReason::Quit).await;
    let files = fs::read_dir(folder).unwrap();
    let session = files
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    Seen {
        end,
        model: model.last_request().unwrap_or_default().to_string(),
        session,
        screen: screen.0.lock().unwrap().clone(),
        journal: serde_json::to_string(&journal.take()).unwrap(),
    }
}

#[tokio::test]
async fn a_redactor_that_crashes_keeps_the_result_from_everyone() {
    for kind in [EventKind::ToolResponseTransform, EventKind::PostToolUse] {
        for (is_python, fails) in [(false, false), (false, true), (true, false), (true, true)] {
            let seen = play(kind, (is_python, fails)).await;
            let case = format!("{kind:?}, python {is_python}, fails {fails}");
            for (who, text) in [
                ("model", &seen.model),
                ("session", &seen.session),
                ("screen", &seen.screen),
            ] {
                assert!(
                    text.contains("[withheld: hook `redactor` failed: "),
                    "{case}: {who}: {text}"
                );
                assert!(!text.contains(SECRET), "{case}: {who}: {text}");
            }
            assert!(
                seen.journal.contains("\"withhold\""),
                "{case}: {}",
                seen.journal
            );
            assert!(!seen.journal.contains(SECRET), "{case}: {}", seen.journal);
        }
    }
}

#[tokio::test]
async fn a_redactor_of_messages_that_crashes_keeps_them_from_model_session_and_journal() {
    for is_python in [false, true] {
        let seen = play(EventKind::MessageEnd, (is_python, false)).await;
        for text in [&seen.model, &seen.session] {
            assert!(
                text.contains("[withheld: hook `redactor` failed: "),
                "{text}"
            );
        }
        for text in [&seen.model, &seen.session, &seen.journal] {
            assert!(!text.contains(SECRET), "{text}");
        }
    }
}

#[tokio::test]
async fn a_redactor_of_requests_that_crashes_keeps_them_from_model_and_journal() {
    for (kind, notice) in [
        (
            EventKind::Context,
            Some("[withheld: hook `redactor` failed: "),
        ),
        (EventKind::BeforeLlmCall, None),
        (EventKind::ProviderRequest, None),
    ] {
        for is_python in [false, true] {
            let seen = play(kind, (is_python, false)).await;
            assert!(!seen.model.contains(SECRET), "{kind:?}: {}", seen.model);
            assert!(!seen.journal.contains(SECRET), "{kind:?}: {}", seen.journal);
            match notice {
                Some(notice) => assert!(seen.model.contains(notice), "{kind:?}: {}", seen.model),
                // The last request that was sent is the one that led to the tool call.
                None => assert!(!seen.model.contains("\"tool\""), "{kind:?}: {}", seen.model),
            }
            let has_ended = seen.end == RunEnd::Completed;
            assert_eq!(
                has_ended,
                kind == EventKind::Context,
                "{kind:?}: {:?}",
                seen.end
            );
        }
    }
}
