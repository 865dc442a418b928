use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::conversations::profile::{OpenRequest, Profile};
use futures_util::future;
use parking_lot::Mutex;
use tempfile::TempDir;
use tenterhook_adapters::telegram::TelegramChannel;
use tenterhook_agent::Agent;
use tenterhook_channel::channel::{
    Channel, ChannelCapabilities, ChannelError, DeliveryError, Inlet, MediaSink, Outgoing, Receipt,
};
use tenterhook_channel::frame::Frame;
use tenterhook_channel::message::MediaRef;
use tenterhook_channel::settings::{
    ChannelKind, ChannelSettings, CommandSettings, SecretSource, Settings, Show, TelegramSettings,
};
use tenterhook_engine::event::ChannelConnect;
use tenterhook_engine::{Effect, Engine};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::gateway::{Gateway, GatewayConfig, OpeningState};

/// A service that answers each attempt to send as the test says, the last answer first.
#[derive(Default)]
struct Service {
    answers: Mutex<Vec<DeliveryError>>,
    runs: AtomicUsize,
}

impl Channel for Service {
    fn capabilities(&self) -> ChannelCapabilities {
        ChannelCapabilities {
            speaks_frames: false,
            max_file: 0,
            audio_formats: &[],
        }
    }

    fn run(
        &self,
        inlet: Inlet,
        stop: CancellationToken,
    ) -> BoxFuture<'_, Result<(), ChannelError>> {
        self.runs.fetch_add(1, Ordering::AcqRel);
        Box::pin(async move {
            inlet.alive();
            stop.cancelled().await;
            Ok(())
        })
    }

    fn fetch<'a>(
        &'a self,
        _: &'a MediaRef,
        _: &'a mut MediaSink,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(future::ready(Ok(())))
    }

    fn send<'a>(&'a self, _: &'a Outgoing) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        let answer = self.answers.lock().pop();
        Box::pin(future::ready(answer.map_or(Ok(Receipt::default()), Err)))
    }

    fn live(&self, _: &ChatRef, _: &Frame) {}
}

struct NoAgents(Engine);

impl Profile for NoAgents {
    fn engine(&self) -> &Engine {
        &self.0
    }

    fn folder(&self) -> &Path {
        Path::new("/")
    }

    fn open(&self, _: OpenRequest) -> BoxFuture<'_, Result<Agent, String>> {
        Box::pin(future::pending())
    }
}

/// Runs a gateway with one channel, `tg`.
async fn start(
    engine: Engine,
    channel: Arc<dyn Channel>,
) -> (Commands, CancellationToken, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let id = ChannelId::new("tg").unwrap();
    let argv = vec!["unused".to_owned()];
    let kind = ChannelKind::Command(CommandSettings { argv });
    let gateway = Gateway::start(GatewayConfig {
        settings: Settings {
            listen: None,
            channels: vec![ChannelSettings::new(id.clone(), kind)],
            ..Settings::default()
        },
        profile: Arc::new(NoAgents(engine)),
        state: OpeningState::begin(folder.path().to_owned()),
        observer: Arc::new(|_| {}),
        stdio: false,
        own_channels: BTreeMap::from([(id, channel)]),
        inspector: None,
        reloads_from: None,
    });
    let gateway = gateway.await.unwrap();
    let (reloads, stop) = (gateway.reloads(), CancellationToken::new());
    let token = stop.clone();
    tokio::spawn(async move { gateway.run(token, CancellationToken::new()).await });
    (Commands(reloads.0), stop, folder)
}

/// Waits until the channel has a state, and returns its status.
async fn until_state(commands: &Commands, state: &str) -> Value {
    loop {
        let channels = commands.handle("channels", json!({})).await.unwrap();
        if channels[0]["state"] == state {
            return channels[0].clone();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

struct Stage {
    commands: Commands,
    service: Arc<Service>,
    stop: CancellationToken,
    _folder: TempDir,
}

impl Stage {
    async fn new(engine: Engine) -> Self {
        let service = Arc::new(Service::default());
        let own = Arc::clone(&service) as Arc<dyn Channel>;
        let (commands, stop, folder) = start(engine, own).await;
        Self {
            commands,
            service,
            stop,
            _folder: folder,
        }
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, String> {
        self.commands.handle(method, params).await
    }

    async fn send(&self, wait: bool) -> Result<Value, String> {
        let params = json!({"chat": "tg:42", "text": "hi", "wait": wait});
        self.call("send", params).await
    }

    async fn until_state(&self, state: &str) -> Value {
        until_state(&self.commands, state).await
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[tokio::test]
async fn a_message_is_accepted_at_once_and_delivered_when_the_service_has_it() {
    let stage = Stage::new(Engine::new()).await;
    let accepted = stage.send(false).await;
    assert_eq!(accepted, Ok(json!({"state": "accepted"})));
    stage.service.answers.lock().push(DeliveryError::Retry {
        after: Some(Duration::from_millis(1)),
        cause: "try again".to_owned(),
    });
    let delivered = stage.send(true).await;
    assert_eq!(delivered, Ok(json!({"state": "delivered"})));
    stage.service.answers.lock().push(DeliveryError::Permanent {
        cause: "blocked by the user".to_owned(),
    });
    let error = stage.send(true).await.unwrap_err();
    let expected =
        "the message to `tg:42` was accepted, but cannot be delivered: blocked by the user";
    assert_eq!(error, expected);
}

#[tokio::test]
async fn a_channel_that_a_hook_blocked_begins_anew_when_it_is_restarted() {
    let engine = Engine::new();
    let attempts = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&attempts);
    let _hook = engine.on(move |_: &ChannelConnect| {
        if asked.fetch_add(1, Ordering::AcqRel) < 2 {
            Effect::<ChannelConnect>::block("closed for now")
        } else {
            Effect::none()
        }
    });
    let stage = Stage::new(engine).await;
    let blocked = stage.until_state("blocked").await;
    assert!(
        blocked["error"]
            .as_str()
            .unwrap()
            .contains("closed for now")
    );
    let restart = || stage.call("channels.restart", json!({"name": "tg"}));
    let error = restart().await.unwrap_err();
    assert!(error.contains("a hook blocked the channel `tg`"), "{error}");
    restart().await.unwrap();
    stage.until_state("up").await;
    assert_eq!(stage.service.runs.load(Ordering::Acquire), 1);
    restart().await.unwrap();
    stage.until_state("up").await;
    assert_eq!(attempts.load(Ordering::Acquire), 3);
    let unknown = stage.call("channels.restart", json!({"name": "x"})).await;
    assert_eq!(unknown, Err("the gateway has no channel `x`".to_owned()));
}

/// Serves a bot whose token Telegram refuses in the first calls. Returns the address.
async fn telegram_that_refuses(refusals: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for call in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            let is_poll = String::from_utf8_lossy(&request[..length]).contains("getUpdates");
            let (status, body) = match (call < refusals, is_poll) {
                (true, _) => (
                    "401 Unauthorized",
                    json!({"ok": false, "description": "Unauthorized"}),
                ),
                (false, true) => ("200 OK", json!({"ok": true, "result": []})),
                (false, false) => (
                    "200 OK",
                    json!({"ok": true, "result":
                    {"id": 7, "is_bot": true, "first_name": "B"}}),
                ),
            };
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}",
                body.len()
            );
            let answer = format!("{head}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn one_401_of_telegram_does_not_end_its_channel() {
    let settings = TelegramSettings {
        token: SecretSource::Environment("UNUSED".to_owned()),
        api_base: telegram_that_refuses(2).await,
    };
    let id = ChannelId::new("tg").unwrap();
    let bot = TelegramChannel::new(id, &settings, "7:token".to_owned(), Show::default()).unwrap();
    let (commands, stop, _folder) = start(Engine::new(), Arc::new(bot)).await;
    let failed = until_state(&commands, "backing_off").await;
    let why = failed["error"].as_str().unwrap();
    assert!(why.contains("Unauthorized (401)"), "{why}");
    assert!(failed["next_attempt"].as_str() > failed["since"].as_str());
    // The second refusal comes at once, and the third call after the first wait.
    let restarted = commands.handle("channels.restart", json!({"name": "tg"}));
    restarted.await.unwrap();
    let up = until_state(&commands, "up").await;
    assert_eq!((up.get("error"), up.get("next_attempt")), (None, None));
    stop.cancel();
}
