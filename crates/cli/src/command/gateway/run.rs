//! Runs the gateway in the foreground.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::passphrase::Passphrase;
use parking_lot::Mutex;
use serde_json::json;
use tenterhook_agent::CancellationToken;
use tenterhook_channel::settings::Settings;
use tenterhook_gateway::gateway::{
    Gateway, GatewayConfig, GatewayEnd, GatewayNotice, OpeningState, StartError,
};
use tenterhook_gateway::reload::ReloadRequester;
use tenterhook_inspect::{InspectedSource, ShownSessions};
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::journal;
use tenterhook_setup::live_inspector::LiveInspector;
use tenterhook_setup::warning::warn;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;

use crate::command::gateway::args::GatewayRunArgs;
use crate::command::gateway::client::state_folder;
use crate::command::gateway::profile::ChatProfile;
use crate::command::gateway::reload::GatewayReload;
use crate::command::gateway::service::notify;
use crate::command::gateway::settings;
use crate::command::gateway::status;

/// The user of the link that is printed at the start.
const OWNER: &str = "owner";

pub(super) async fn run(args: GatewayRunArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let read = settings::read(&args.settings, &args.agent)?;
    let read = settings::with_listen(read, args.listen)?;
    let state = OpeningState::begin(state_folder()?);
    let file = args.settings.file.as_deref();
    let collected = inspector(&read)?;
    let places = (args.sessions, file);
    let agent = args.agent.clone();
    let profile =
        ChatProfile::load(args.agent, places, &read, collected.as_ref(), interrupts).await?;
    profile.check_tools(&read)?;
    profile.try_out()?;
    let stop = interrupts.token().child_token();
    if let Some(duration) = args.duration {
        let stop = stop.clone();
        tokio::spawn(async move {
            tokio::time::sleep(duration).await;
            stop.cancel();
        });
    }
    let journal = profile.journal().cloned();
    let reload = GatewayReload {
        settings: args.settings,
        agent,
        listen: args.listen,
        inspector: collected.clone(),
        profile: Arc::new(Mutex::new(profile.clone())),
    };
    let config = GatewayConfig {
        settings: read.clone(),
        profile: Arc::new(profile),
        state,
        observer: Arc::new(log),
        stdio: args.stdio,
        own_channels: BTreeMap::new(),
        inspector: collected.map(|collected| collected.inspector(InspectedSource::Gateway)),
        reloads_from: Some(Arc::new(reload)),
    };
    let ended = serve(config, &read, stop, interrupts).await;
    let closed = journal::close(journal.as_ref());
    ended.and_then(|exit| closed.map(|()| exit))
}

/// Begins to collect what the inspector shows. Without a server, no one could look at it.
fn inspector(settings: &Settings) -> Result<Option<LiveInspector>, CliError> {
    if settings.server_address().is_none() {
        return Ok(None);
    }
    let sessions = if settings.inspect.shows_all_chats {
        ShownSessions::default()
    } else {
        ShownSessions::listed()
    };
    LiveInspector::start(settings.inspect.has_payloads, sessions).map(Some)
}

/// Shows where the gateway listens, and how to sign in.
fn show_address(gateway: &Gateway, print: fn(String)) {
    if let Some(address) = gateway.address() {
        let scheme = if gateway.has_tls() { "https" } else { "http" };
        print(format!("Listening on {scheme}://{address}"));
    }
    // A program that starts the gateway again gets no link: only the first start belongs to the owner for certain.
    if gateway.is_set_up() {
        output::note("`tenterhook gateway open` prints a link that signs in.");
    } else if let Some(url) = gateway.login_url(OWNER) {
        print(format!(
            "Open {url} in a browser. The link works once, for 60 seconds; `tenterhook gateway open` prints another one."
        ));
    }
}

async fn serve(
    config: GatewayConfig,
    settings: &Settings,
    stop: CancellationToken,
    interrupts: &Interrupts,
) -> Result<Exit, CliError> {
    // Standard output belongs to the frames.
    let print: fn(String) = if config.stdio {
        |text| output::note(text)
    } else {
        |text| output::line(text)
    };
    let starting = stop.run_until_cancelled(Gateway::start(config));
    let gateway = starting
        .await
        .ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))?
        .map_err(|error| refused(&error))?;
    if let Some(passphrase) = Passphrase::find()? {
        let check = passphrase.check_of_now()?;
        gateway.check_passphrase_with(Arc::new(move |text| {
            check(text).map_err(|error| error.in_one_line())
        }));
    }
    show_address(&gateway, print);
    if settings.channels.iter().all(|channel| !channel.is_enabled) {
        warn("no channel is enabled, so no one can talk to the agent");
    }
    // The server is bound, so who connects from now on is served.
    notify("READY=1");
    let (reloads, hangup) = (gateway.reloads(), interrupts.reload_on_hangup());
    let reloading = tokio::spawn(async move {
        loop {
            hangup.notified().await;
            // The observer shows the result.
            let _shown = reloads.reload(ReloadRequester::Unknown).await;
        }
    });
    // A second signal cancels the running turns. A third one ends the program at once.
    let end = gateway.run(stop, interrupts.hurry()).await;
    reloading.abort();
    match end {
        GatewayEnd::Interrupted => Ok(Exit::Interrupted),
        GatewayEnd::Stopped | _ => Ok(Exit::Done),
    }
}

fn refused(error: &StartError) -> CliError {
    let (exit, hint) = match error {
        StartError::Locked { .. } => (
            Exit::Locked,
            "stop it with `tenterhook gateway stop`, or set `TENTERHOOK_DATA_DIR` to another folder",
        ),
        StartError::Settings(_) => (
            Exit::Config,
            "correct the settings; `tenterhook gateway check` shows every problem",
        ),
        StartError::Bind { .. } => (
            Exit::Failed,
            "choose another address with `--listen ADDR`, or none with `--listen off`",
        ),
        StartError::State(_) | _ => return CliError::of(Exit::Failed, error),
    };
    CliError::of(exit, error).hint(hint)
}

/// Writes what happens to stderr.
fn log(notice: GatewayNotice) {
    match notice {
        GatewayNotice::Channel(status) => {
            let state = serde_json::to_value(status.state).unwrap_or_default();
            let state = state.as_str().unwrap_or_default().replace('_', " ");
            let error = status.error.as_deref().map(escape_line);
            let error = error.map(|error| format!(": {error}")).unwrap_or_default();
            output::note(format_args!("channel `{}` {state}{error}", status.id));
        }
        GatewayNotice::Refused {
            channel,
            sender,
            code,
        } => output::note(format_args!(
            "channel `{channel}` refused a message of {}: {code}",
            escape_line(&sender)
        )),
        GatewayNotice::Reloaded(changes) => {
            for line in status::reload_lines(&json!(changes)) {
                output::note(line);
            }
        }
        GatewayNotice::Failure(text) => warn(escape_line(&text)),
        GatewayNotice::Stopping => notify("STOPPING=1"),
        _ => {}
    }
}
