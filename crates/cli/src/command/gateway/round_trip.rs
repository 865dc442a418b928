//! Sends a message through a gateway of its own, or asks the gateway that runs how it is.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{self, BoxFuture};
use serde_json::{Value, json};
use tenterhook_agent::{Agent, AgentConfig, CancellationToken};
use tenterhook_channel::chat::ChannelId;
use tenterhook_channel::settings::{ChannelKind, ChannelSettings, Settings, TurnLimits};
use tenterhook_engine::Engine;
use tenterhook_gateway::control::{self, CONTROL_SOCKET};
use tenterhook_gateway::conversations::profile::{OpenRequest, Profile};
use tenterhook_gateway::gateway::{Gateway, GatewayConfig, OpeningState};
use tenterhook_providers::Scripted;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What the scripted model answers.
const ANSWER: &str = "The round trip works.";

/// The time limit for the whole trip.
const PATIENCE: Duration = Duration::from_secs(20);

/// The maximum length of an answer that is read.
const MAX_ANSWER: u64 = 64 << 10;

/// Agents without hooks, whose model answers from a script. Nothing outside of the temporary folder is touched.
struct ScriptedProfile {
    engine: Engine,
    model: Arc<Scripted>,
    folder: std::path::PathBuf,
}

impl Profile for ScriptedProfile {
    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn open(&self, request: OpenRequest) -> BoxFuture<'_, Result<Agent, String>> {
        let mut config = AgentConfig {
            model: Some(Arc::clone(&self.model) as _),
            cwd: self.folder.clone(),
            frontend: request.frontend,
            ..AgentConfig::default()
        };
        config.toolbox = (request.with_tools)(std::mem::take(&mut config.toolbox));
        let built = config.build(self.engine.clone());
        Box::pin(future::ready(built.map_err(|error| error.to_string())))
    }
}

/// Starts a gateway on a free port of the loopback, creates a token over its control socket, sends a message over HTTP
/// and waits for the answer. Everything is in a temporary folder.
pub(super) async fn try_own() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let state = folder.path().join("state");
    let script = format!("turns: [{{text: {ANSWER}}}]");
    let model = Scripted::parse("doctor", &script).map_err(|error| error.to_string())?;
    let id = ChannelId::new("http").map_err(|error| error.to_string())?;
    let config = GatewayConfig {
        settings: Settings {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            turns: TurnLimits {
                drain: Duration::ZERO,
                ..TurnLimits::default()
            },
            channels: vec![ChannelSettings::new(id, ChannelKind::Http)],
            ..Settings::default()
        },
        profile: Arc::new(ScriptedProfile {
            engine: Engine::new(),
            model: Arc::new(model),
            folder: folder.path().to_owned(),
        }),
        state: OpeningState::begin(state.clone()),
        observer: Arc::new(|_| {}),
        stdio: false,
        own_channels: BTreeMap::new(),
        inspector: None,
        reloads_from: None,
    };
    let gateway = Gateway::start(config).await;
    let gateway = gateway.map_err(|error| format!("the gateway does not start: {error}"))?;
    let address = gateway.address().ok_or("the gateway has no server")?;
    let stop = CancellationToken::new();
    // A trip that is given up must not leave the gateway behind.
    let _stops = stop.clone().drop_guard();
    let running = tokio::spawn(gateway.run(stop.clone(), stop.clone()));
    let trip = timeout(PATIENCE, send_message(&state, address)).await;
    stop.cancel();
    let _ended = timeout(PATIENCE, running).await;
    trip.unwrap_or_else(|_| Err(format!("no answer within {} seconds", PATIENCE.as_secs())))
}

async fn send_message(state: &Path, address: SocketAddr) -> Result<(), String> {
    let params = json!({ "name": "doctor", "user": "owner", "scopes": ["chat"], "expires": null });
    let created = control::call(&state.join(CONTROL_SOCKET), "token.create", params).await;
    let created = created.map_err(|error| format!("no token was created: {error}"))?;
    let token = created.get("secret").and_then(Value::as_str);
    let token = token.ok_or("the control socket returned no token")?;
    let body = json!({ "text": "Hello" }).to_string();
    let headers = format!(
        "Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    let request = format!("POST /v1/chats/doctor/messages HTTP/1.1\r\n{headers}");
    let (status, answer) = exchange(address, &request, &body).await?;
    let answered: Option<Value> = serde_json::from_str(&answer).ok();
    let text = answered.as_ref().and_then(|answer| answer.get("text"));
    match text.and_then(Value::as_str) {
        Some(ANSWER) if status == 200 => Ok(()),
        _ => Err(format!(
            "the message was answered with status {status}: {answer}"
        )),
    }
}

/// Asks the server of a gateway that runs whether it lives. Of a server with TLS, only the port is tried: its
/// certificate is for a name.
pub(super) async fn try_server(address: SocketAddr, has_tls: bool) -> Result<(), String> {
    let address = if address.ip().is_unspecified() {
        SocketAddr::from(([127, 0, 0, 1], address.port()))
    } else {
        address
    };
    if has_tls {
        return match timeout(PATIENCE, TcpStream::connect(address)).await {
            Ok(Ok(_connected)) => Ok(()),
            Ok(Err(error)) => Err(format!("no connection to {address}: {error}")),
            Err(_) => Err(format!("the server at {address} does not answer")),
        };
    }
    let asked = timeout(PATIENCE, exchange(address, "GET /healthz HTTP/1.1\r\n", ""));
    match asked.await {
        Ok(Ok((200, _))) => Ok(()),
        Ok(Ok((status, _))) => Err(format!("`/healthz` of {address} has status {status}")),
        Ok(Err(cause)) => Err(cause),
        Err(_) => Err(format!("the server at {address} does not answer")),
    }
}

/// Sends one HTTP request. Returns the status and the body of the answer.
async fn exchange(address: SocketAddr, head: &str, body: &str) -> Result<(u16, String), String> {
    let failed = |error: std::io::Error| format!("no connection to {address}: {error}");
    let mut stream = TcpStream::connect(address).await.map_err(failed)?;
    let request = format!("{head}Host: {address}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    let mut bytes = Vec::new();
    let mut answer = stream.take(MAX_ANSWER);
    answer.read_to_end(&mut bytes).await.map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(|| format!("{address} does not answer in HTTP"))?;
    Ok((status, body.to_owned()))
}
