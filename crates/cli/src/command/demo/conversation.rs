//! `tenterhook demo --gateway`: a conversation over HTTP with a gateway that runs in this process.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook_agent::{Agent, AgentConfig, CancellationToken, Permissions, Toolbox};
use tenterhook_channel::chat::ChannelId;
use tenterhook_channel::settings::{ChannelKind, ChannelSettings, Settings};
use tenterhook_discovery::{LoadOptions, load_text};
use tenterhook_engine::journal::{RunRecord, RunStatus};
use tenterhook_engine::{Engine, JournalSink, Layer, MemoryJournal};
use tenterhook_gateway::administration::administer_stored;
use tenterhook_gateway::conversations::profile::{OpenRequest, Profile};
use tenterhook_gateway::gateway::{Gateway, GatewayConfig, OpeningState};
use tenterhook_protocol::escape::escape_untrusted;
use tenterhook_providers::Scripted;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::hooks;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::{self, style, styled};
use tenterhook_terminal::timeline;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

const HOOKS: &str = include_str!("gateway-hooks.yaml");
const SESSION: &str = include_str!("gateway-session.yaml");

const MESSAGES: &str = "/v1/chats/demo/messages";
const HISTORY: &str = "/v1/chats/demo/history";

/// How long the gateway may take to answer a request.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pause between two attempts while the channel starts.
const PAUSE: Duration = Duration::from_millis(20);

/// The messages: what they show, their text, and the expected status of the answer.
const STEPS: [(&str, &str, u16); 3] = [
    (
        "A hook replaces the message, and another one hides an address in the answer.",
        "status?",
        200,
    ),
    (
        "A hook rejects the message. The model never sees it.",
        "The password is swordfish.",
        403,
    ),
    (
        "No hook objects, so the answer is delivered as it is.",
        "When does it ship?",
        200,
    ),
];

/// A request and its answer.
struct Exchange {
    title: &'static str,
    request: Value,
    status: u16,
    body: Value,
    runs: Vec<RunRecord>,
}

/// Opens the agents of the demo.
struct DemoProfile {
    engine: Engine,
    model: Arc<Scripted>,
    folder: Arc<Path>,
}

impl Profile for DemoProfile {
    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn open(&self, request: OpenRequest) -> BoxFuture<'_, Result<Agent, String>> {
        let config = AgentConfig {
            model: Some(Arc::clone(&self.model) as _),
            cwd: self.folder.to_path_buf(),
            permissions: Permissions::new().yes(true),
            frontend: request.frontend,
            toolbox: (request.with_tools)(Toolbox::default()),
            ..AgentConfig::default()
        };
        let built = config.build(self.engine.clone());
        Box::pin(async move { built.map_err(|error| error.to_string()) })
    }
}

/// Sends requests to the gateway and reads the answers.
struct HttpClient {
    address: SocketAddr,
    token: String,
}

impl HttpClient {
    /// Sends a request, again as long as the channel has not started. Returns the status and the body.
    async fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value), CliError> {
        let sent = async {
            loop {
                match self.send(method, path, body).await {
                    Ok((503, _)) => sleep(PAUSE).await,
                    other => return other,
                }
            }
        };
        timeout(PATIENCE, sent)
            .await
            .unwrap_or_else(|_| Err(failure(method, path, &"the gateway did not answer in time")))
    }

    /// Sends a request on a connection of its own.
    async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value), CliError> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        let exchange = async {
            let mut stream = TcpStream::connect(self.address).await?;
            stream.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            std::io::Result::Ok(answer)
        };
        let failed = |error: &dyn Display| failure(method, path, error);
        let answer = exchange.await.map_err(|error| failed(&error))?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| failed(&"the answer is not HTTP"))?;
        let body = serde_json::from_str(body).map_err(|error| failed(&error))?;
        Ok((status, body))
    }
}

fn failure(method: &str, path: &str, error: &dyn Display) -> CliError {
    CliError::new(Exit::Failed, format!("`{method} {path}` failed: {error}"))
}

/// Runs the gateway in the folder, and talks to it.
pub(super) async fn run(
    folder: &Path,
    is_json: bool,
    interrupts: &Interrupts,
) -> Result<Exit, CliError> {
    let runs = Arc::new(MemoryJournal::new());
    let token = create_token(&folder.join("gateway")).await?;
    let gateway = start(folder, Arc::clone(&runs) as _).await?;
    let address = gateway
        .address()
        .ok_or_else(|| CliError::new(Exit::Failed, "the gateway of the demo has no address"))?;
    if !is_json {
        introduce(folder, address);
    }
    let client = HttpClient { address, token };
    let stop = CancellationToken::new();
    let talk = talk(&client, &runs, is_json);
    // A second signal ends the program at once, so the running turn may be cancelled on the first one.
    let serving = gateway.run(stop.clone(), interrupts.token());
    let (_end, talked) = tokio::join!(serving, interrupted_or(talk, &stop, interrupts));
    let Some(talked) = talked else {
        output::note("The demo was interrupted.");
        return Ok(Exit::Interrupted);
    };
    let (exchanges, history) = talked?;
    let is_expected = exchanges
        .iter()
        .zip(STEPS)
        .all(|(exchange, (_, _, status))| exchange.status == status);
    if is_json {
        let exchanges = exchanges.iter().map(|exchange| {
            json!({
                "request": exchange.request,
                "status": exchange.status,
                "body": exchange.body,
                "runs": exchange.runs,
            })
        });
        let exchanges: Vec<Value> = exchanges.collect();
        output::json(&json!({ "exchanges": exchanges, "history": history }));
    } else {
        conclude(&history);
    }
    Ok(if is_expected {
        Exit::Done
    } else {
        Exit::Failed
    })
}

/// Returns `None` if the user interrupts the work.
async fn interrupted_or<T>(
    work: impl Future<Output = T>,
    stop: &CancellationToken,
    interrupts: &Interrupts,
) -> Option<T> {
    let done = interrupts.token().run_until_cancelled(work).await;
    stop.cancel();
    done
}

async fn create_token(state: &Path) -> Result<String, CliError> {
    let params = json!({ "name": "demo", "user": "demo", "scopes": ["chat"], "expires": null });
    let created = administer_stored(state, ("token.create", false), &params).await;
    let created = created.map_err(|text| CliError::new(Exit::Failed, text))?;
    let secret = created.get("secret").and_then(Value::as_str);
    Ok(secret.unwrap_or_default().to_owned())
}

async fn start(folder: &Path, journal: Arc<dyn JournalSink>) -> Result<Gateway, CliError> {
    let name = Path::new("demo/gateway-hooks.yaml");
    let loaded = load_text(name, HOOKS, Layer::Explicit, &LoadOptions::of_process())?;
    let model = Scripted::parse("demo/gateway-session.yaml", SESSION)
        .map_err(|error| CliError::of(Exit::Config, &error))?;
    let id = ChannelId::new("api").map_err(|error| CliError::of(Exit::Failed, &error))?;
    let config = GatewayConfig {
        settings: Settings {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            channels: vec![ChannelSettings::new(id, ChannelKind::Http)],
            ..Settings::default()
        },
        profile: Arc::new(DemoProfile {
            engine: hooks::engine(&loaded, false, Some(journal)),
            model: Arc::new(model),
            folder: folder.into(),
        }),
        state: OpeningState::begin(folder.join("gateway")),
        observer: Arc::new(|_| {}),
        stdio: false,
        own_channels: BTreeMap::new(),
        inspector: None,
        reloads_from: None,
    };
    let started = Gateway::start(config).await;
    started.map_err(|error| CliError::of(Exit::Failed, &error))
}

/// Sends every message, and reads the history.
async fn talk(
    client: &HttpClient,
    journal: &MemoryJournal,
    is_json: bool,
) -> Result<(Vec<Exchange>, Value), CliError> {
    let mut exchanges = Vec::new();
    for (title, text, _) in STEPS {
        let request = json!({ "text": text });
        let (status, body) = client.request("POST", MESSAGES, Some(&request)).await?;
        let exchange = Exchange {
            title,
            request,
            status,
            body,
            runs: timeline::runs(journal.take()),
        };
        if !is_json {
            show(&exchange);
        }
        exchanges.push(exchange);
    }
    let (_, history) = client.request("GET", HISTORY, None).await?;
    Ok((exchanges, history))
}

fn introduce(folder: &Path, address: SocketAddr) {
    output::line(styled(
        style::STRONG,
        "A gateway runs in a temporary folder with a scripted model; the requests and the hooks are real.",
    ));
    output::line(format_args!("folder   {}", folder.display()));
    output::line(format_args!("address  http://{address}"));
    output::line(
        "hooks    shortcut      when a message arrives: replaces `status?` with a question",
    );
    output::line("         no-passwords  when a message arrives: rejects it if it has a password");
    output::line("         no-addresses  before an answer leaves: hides e-mail addresses\n");
}

fn show(exchange: &Exchange) {
    output::line(styled(style::STRONG, exchange.title));
    output::line(format_args!("→ POST {MESSAGES} {}", exchange.request));
    let ran: Vec<RunRecord> = exchange
        .runs
        .iter()
        .filter(|run| run.status != RunStatus::Skipped)
        .cloned()
        .collect();
    timeline::run_lines(&ran).into_iter().for_each(output::line);
    let error = exchange.body.pointer("/error/message");
    let text = error.or_else(|| exchange.body.get("text"));
    let text = text.and_then(Value::as_str).unwrap_or_default();
    output::line(format_args!(
        "← {} {}\n",
        exchange.status,
        escape_untrusted(text)
    ));
}

/// Prints what the chat looks like for someone who opens it later.
fn conclude(history: &Value) {
    output::line(styled(style::STRONG, "This is what the chat contains now."));
    output::line(format_args!("→ GET {HISTORY}"));
    let frames = history.get("frames").and_then(Value::as_array);
    for frame in frames.into_iter().flatten() {
        let field = |name| frame.get(name).and_then(Value::as_str);
        if let (Some(kind), Some(text)) = (field("type"), field("text")) {
            output::line(format_args!("  {kind:<6} {}", escape_untrusted(text)));
        }
    }
    output::line("");
    output::line(format_args!(
        "Talk to your own agent in a browser: {}",
        styled(style::NAME, "tenterhook gateway run --model MODEL")
    ));
}
