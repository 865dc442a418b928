//! The test stage: an engine that records events, a folder, and a simulated user.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::future::{self, BoxFuture};
use serde_json::Value;
use tempfile::TempDir;
use tenterhook_agent::frontend::{Approval, ApprovalRequest, Denial, Frontend, HookFailure};
use tenterhook_agent::{Agent, AgentConfig, CancellationToken, RunReport};
use tenterhook_engine::event::NotificationLevel;
use tenterhook_engine::{Engine, Event, Message, ToolCall, ToolResult, message_extra};
use tenterhook_providers::Scripted;

/// One event after its hooks have run.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) name: String,
    pub(crate) agent: String,
    pub(crate) session: String,
    pub(crate) payload: Value,
}

/// The engine, folder and simulated user of one test.
pub(crate) struct Stage {
    pub(crate) engine: Engine,
    pub(crate) human: Arc<Human>,
    dir: TempDir,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Stage {
    /// Without a user.
    pub(crate) fn empty() -> Self {
        Self::with(Human::default())
    }

    /// With a user who gives these answers, in order.
    pub(crate) fn attended(answers: impl IntoIterator<Item = Approval>) -> Self {
        Self::with(Human {
            is_there: true,
            answers: Mutex::new(answers.into_iter().collect()),
            ..Human::default()
        })
    }

    /// Without the recording hook, so that only the hooks of the test receive events.
    pub(crate) fn silent() -> Self {
        Self {
            engine: Engine::new(),
            human: Arc::default(),
            dir: TempDir::new().unwrap(),
            heard: Arc::default(),
        }
    }

    pub(crate) fn with(human: Human) -> Self {
        let engine = Engine::new();
        let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
        let log = Arc::clone(&heard);
        engine.subscribe(move |event| {
            let origin = &event.envelope().origin;
            log.lock().unwrap().push(Heard {
                name: event.event().name().to_owned(),
                agent: origin.agent.name.clone(),
                session: origin.session_id.to_string(),
                payload: Value::Object(event.payload().unwrap().clone()),
            });
        });
        Self {
            engine,
            human: Arc::new(human),
            dir: TempDir::new().unwrap(),
            heard,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Starts an agent that plays `script` in the folder.
    pub(crate) fn config(&self, script: &str) -> AgentConfig {
        let script = Scripted::parse("play", script).unwrap();
        AgentConfig {
            model: Some(Arc::new(script)),
            cwd: self.path().into(),
            frontend: Arc::clone(&self.human) as Arc<dyn Frontend>,
            ..AgentConfig::default()
        }
    }

    /// Plays `script` on the prompt `go`.
    pub(crate) async fn play(&self, script: &str) -> (Agent, RunReport) {
        self.play_with(script, |config| config).await
    }

    /// Plays `script` on the prompt `go`, with a different agent.
    pub(crate) async fn play_with(
        &self,
        script: &str,
        change: impl FnOnce(AgentConfig) -> AgentConfig,
    ) -> (Agent, RunReport) {
        let mut agent = change(self.config(script))
            .build(self.engine.clone())
            .unwrap();
        let report = agent.prompt("go", &CancellationToken::new()).await;
        (agent, report)
    }

    /// Returns every event in order.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// Returns the names of the events in order, without updates of growing messages.
    pub(crate) fn names(&self) -> Vec<String> {
        let is_wanted = |event: &Heard| !event.name.starts_with("message_");
        self.heard()
            .into_iter()
            .filter(is_wanted)
            .map(|event| event.name)
            .collect()
    }

    /// Returns the payloads of all events of this kind.
    pub(crate) fn all<E: Event>(&self) -> Vec<E> {
        let events = self
            .heard()
            .into_iter()
            .filter(|event| event.name == E::INFO.name);
        events
            .map(|event| serde_json::from_value(event.payload).unwrap())
            .collect()
    }

    /// Returns the payload of the only event of this kind.
    #[track_caller]
    pub(crate) fn only<E: Event>(&self) -> E {
        let mut all = self.all::<E>();
        assert_eq!(all.len(), 1, "{} events of {}", all.len(), E::INFO.name);
        all.remove(0)
    }

    /// Returns one field of all events of this name, as text.
    pub(crate) fn field(&self, name: &str, field: &str) -> Vec<String> {
        let events = self.heard().into_iter().filter(|event| event.name == name);
        events
            .map(|event| event.payload[field].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

/// Returns the texts of the tool results in the session.
pub(crate) fn tool_texts(agent: &Agent) -> Vec<String> {
    let messages = agent.session().messages().into_iter();
    messages
        .filter(|message| message.tool_call_id.is_some())
        .map(|message| message.content)
        .collect()
}

/// The frontend of a simulated user, or of no user.
#[derive(Default)]
pub(crate) struct Human {
    pub(crate) is_there: bool,
    pub(crate) answers: Mutex<VecDeque<Approval>>,
    pub(crate) more_iterations: Mutex<Option<u32>>,
    /// Cancelled when no answer is left.
    pub(crate) gives_up: Option<CancellationToken>,
    pub(crate) asked: Mutex<Vec<String>>,
    pub(crate) screen: Mutex<Vec<String>>,
}

impl Human {
    fn see(&self, line: String) {
        self.screen.lock().unwrap().push(line);
    }

    /// Returns the shown lines.
    pub(crate) fn screen(&self) -> Vec<String> {
        self.screen.lock().unwrap().clone()
    }

    /// Returns the questions: the tool, its input and the reason.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Frontend for Human {
    fn text_delta(&self, _agent: &str, text: &str) {
        self.see(format!("text {text}"));
    }

    fn extension_message(&self, _agent: &str, message: &Message) {
        let name = &message.extra[message_extra::CUSTOM_TYPE];
        self.see(format!(
            "message {} {}",
            name.as_str().unwrap(),
            message.content
        ));
    }

    fn tool_start(&self, _agent: &str, call: &ToolCall) {
        self.see(format!("start {}", call.name));
    }

    fn tool_end(&self, _agent: &str, _call: &ToolCall, result: &ToolResult) {
        self.see(format!("end {}", result.joined_text()));
    }

    fn tool_denied(&self, _agent: &str, denial: &Denial<'_>) {
        self.see(format!(
            "denied {} {}",
            denial.event.unwrap_or("-"),
            denial.reason
        ));
    }

    fn hook_notice(&self, event: &'static str, text: &str) {
        self.see(format!("notice {event} {text}"));
    }

    fn hook_failure(&self, event: &'static str, failure: &HookFailure<'_>) {
        self.see(format!("failure {event} {}", failure.cause));
    }

    fn notification(&self, level: NotificationLevel, text: &str) {
        self.see(format!("{level} {text}"));
    }

    fn is_interactive(&self) -> bool {
        self.is_there
    }

    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        let input = serde_json::to_string(request.input).unwrap();
        let question = format!("{} {input} {}", request.tool, request.reason.unwrap_or("-"));
        self.asked.lock().unwrap().push(question);
        let answer = self.answers.lock().unwrap().pop_front();
        match (answer, &self.gives_up) {
            (Some(answer), _) => Box::pin(future::ready(answer)),
            (None, Some(cancel)) => {
                cancel.cancel();
                Box::pin(future::pending())
            }
            (None, None) => panic!("an unexpected question: {:?}", self.asked()),
        }
    }

    fn more_iterations(&self, _limit: u32) -> BoxFuture<'_, Option<u32>> {
        Box::pin(future::ready(self.more_iterations.lock().unwrap().take()))
    }
}
