//! A gateway in a process of its own, and the agent that it has.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook_agent::{Agent, AgentConfig, CancellationToken, Session, SessionStore};
use tenterhook_channel::settings::{Settings, TurnLimits};
use tenterhook_engine::Engine;
use tenterhook_engine::event::{MessageDeliver, MessageReceive, UserPromptSubmit};
use tenterhook_gateway::conversations::profile::{OpenRequest, Profile};
use tenterhook_gateway::gateway::{Gateway, GatewayConfig, OpeningState};
use tenterhook_protocol::SessionId;
use tenterhook_providers::Scripted;
use tokio::runtime::Runtime;

/// Makes the benchmark a gateway. The value is its folder.
pub(crate) const FLAG: &str = "--gateway-in";

/// Gives the gateway hooks.
pub(crate) const HOOKS: &str = "--hooks";

/// The unit of processor times in `/proc` is fixed on Linux.
const TICKS_A_SECOND: f64 = 100.0;

/// The agent without a gateway.
pub(crate) type Player = Agent;

/// Returns an agent that repeats one answer.
pub(crate) fn config(folder: &Path) -> AgentConfig {
    let script = Scripted::parse("parrot", "turns: [{text: hello, repeat: true}]").unwrap();
    AgentConfig {
        model: Some(Arc::new(script)),
        cwd: folder.to_owned(),
        ..AgentConfig::default()
    }
}

fn session_of(sessions: &SessionStore, id: Option<&SessionId>) -> Result<Session, String> {
    match id {
        Some(id) => {
            let opened = sessions.open(id).map(|stored| stored.session);
            opened.map_err(|error| error.to_string())
        }
        None => Ok(Session::new(SessionId::generate())),
    }
}

/// Returns an engine. Its hooks, if it has some, see a message before the agent and before the model, and each answer.
fn engine(has_hooks: bool) -> Engine {
    let engine = Engine::new();
    if has_hooks {
        engine.on(|_: &MessageReceive| ());
        engine.on(|_: &UserPromptSubmit| ());
        engine.on(|_: &MessageDeliver| ());
    }
    engine
}

/// Builds an agent without a gateway, whose session is stored in `folder`.
pub(crate) fn agent(folder: &Path, has_hooks: bool) -> Player {
    std::fs::create_dir_all(folder).unwrap();
    let sessions = SessionStore::of_project(folder, folder);
    let mut config = config(folder);
    config.session = Some(session_of(&sessions, None).unwrap());
    config.sessions = Some(sessions);
    config.build(engine(has_hooks)).unwrap()
}

struct ScriptedProfile {
    engine: Engine,
    folder: PathBuf,
    sessions: SessionStore,
}

impl Profile for ScriptedProfile {
    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn open(&self, request: OpenRequest) -> BoxFuture<'_, Result<Agent, String>> {
        Box::pin(async move {
            let mut config = config(&self.folder);
            config.session = Some(session_of(&self.sessions, request.session.as_ref())?);
            config.sessions = Some(self.sessions.clone());
            config.frontend = request.frontend;
            config.tools.clone_from(&request.access.tools);
            config.toolbox = (request.with_tools)(std::mem::take(&mut config.toolbox));
            let built = config.build(self.engine.clone());
            built.map_err(|error| error.to_string())
        })
    }
}

/// Returns a runtime like the program's.
pub(crate) fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build().unwrap()
}

/// Is the gateway, over standard input and output.
pub(crate) fn run(folder: &Path, has_hooks: bool) {
    let settings = Settings {
        listen: None,
        channels: Vec::new(),
        turns: TurnLimits {
            max: 64,
            ..TurnLimits::default()
        },
        ..Settings::default()
    };
    std::fs::create_dir_all(folder).unwrap();
    runtime().block_on(async {
        let profile = ScriptedProfile {
            engine: engine(has_hooks),
            folder: folder.to_owned(),
            sessions: SessionStore::of_project(folder, folder),
        };
        let gateway = Gateway::start(GatewayConfig {
            settings,
            profile: Arc::new(profile),
            state: OpeningState::begin(folder.join("state")),
            observer: Arc::new(|_| ()),
            stdio: true,
            own_channels: BTreeMap::new(),
            inspector: None,
            reloads_from: None,
        });
        let gateway = gateway.await.unwrap();
        let (stop, now) = (CancellationToken::new(), CancellationToken::new());
        gateway.run(stop, now).await;
    });
}

/// A gateway in another process, and its pipes. Dropping it ends the process.
pub(crate) struct ChildGateway {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    asked: usize,
}

impl ChildGateway {
    pub(crate) fn start(folder: &Path, has_hooks: bool) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg(FLAG)
            .arg(folder)
            .args(has_hooks.then_some(HOOKS))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        Self {
            process,
            input,
            output,
            asked: 0,
        }
    }

    /// Sends a message and waits for the end of its turn.
    pub(crate) fn ask(&mut self, chat: &str) {
        self.send(chat);
        self.wait_for_end();
    }

    /// Sends messages, each to the next of `chats` chats, and waits for the end of their turns. No chat has more than
    /// one unanswered message. Returns how long each answer took.
    pub(crate) fn ask_many(&mut self, messages: usize, chats: usize) -> Vec<Duration> {
        let mut waiting = BTreeMap::new();
        let mut left = messages.saturating_sub(chats);
        for chat in 0..chats.min(messages) {
            let chat = format!("chat-{chat}");
            self.send(&chat);
            waiting.insert(chat, Instant::now());
        }
        let mut took = Vec::with_capacity(messages);
        while !waiting.is_empty() {
            let chat = self.wait_for_end();
            took.extend(waiting.remove(&chat).map(|since: Instant| since.elapsed()));
            if left > 0 {
                left -= 1;
                self.send(&chat);
                waiting.insert(chat, Instant::now());
            }
        }
        took
    }

    fn send(&mut self, chat: &str) {
        self.asked += 1;
        let id = self.asked.to_string();
        let message = json!({"type": "message", "chat": chat, "message_id": id, "text": "hi"});
        // One write, as clients do it: `writeln!` would wake the gateway for each part of the value.
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).unwrap();
    }

    /// Reads until a turn ends. Returns its chat.
    fn wait_for_end(&mut self) -> String {
        loop {
            let line = self.output.next().unwrap().unwrap();
            assert!(!line.contains("\"type\":\"error\""), "{line}");
            if line.contains("\"type\":\"done\"") {
                let frame: Value = serde_json::from_str(&line).unwrap();
                return frame["chat"].as_str().unwrap().to_owned();
            }
        }
    }

    /// Returns the memory of the process in bytes.
    pub(crate) fn resident(&self) -> f64 {
        resident(self.process.id())
    }

    /// Returns the processor time of the process in seconds. 0 where `/proc` does not exist.
    pub(crate) fn processor_time(&self) -> f64 {
        let path = format!("/proc/{}/stat", self.process.id());
        let stat = std::fs::read_to_string(path).unwrap_or_default();
        // The name of the program is in parentheses, and may contain spaces.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: f64 = ticks.filter_map(|field| field.parse::<f64>().ok()).sum();
        ticks / TICKS_A_SECOND
    }
}

/// Returns the memory of a process in bytes. 0 where `/proc` does not exist.
pub(crate) fn resident(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let size = line.and_then(|line| line.split_whitespace().nth(1));
    size.and_then(|size| size.parse::<f64>().ok())
        .map_or(0.0, |size| size * 1024.0)
}

impl Drop for ChildGateway {
    fn drop(&mut self) {
        // It may have ended already.
        let _killed = self.process.kill();
        let _ended = self.process.wait();
    }
}
