//! `tenterhook gateway`: people talk to the agent over channels.
//!
//! `run` is the gateway itself. `check`, `doctor`, `service`, `import`, `channel` and `restore` need no gateway. All other commands
//! are requests to the gateway that runs, over the control socket in its state folder.

mod access;
mod args;
mod backup;
mod channel;
mod chats;
mod check;
mod client;
mod doctor;
mod grant;
mod hook_log;
mod import;
mod pair;
mod profile;
mod reload;
mod round_trip;
mod run;
mod secret_file;
mod service;
mod settings;
mod status;
mod token;
mod voice;

use serde_json::json;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::interrupt::Interrupts;

use crate::command::gateway::args::{ChannelCommand, GatewayCommand, ServiceCommand};

pub(crate) use crate::command::gateway::args::GatewayArgs;

/// Runs a subcommand of `tenterhook gateway`.
///
/// # Errors
///
/// Describes what is wrong, with the exit status.
pub(crate) async fn gateway(args: GatewayArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    load_secrets(&args.command)?;
    let done = match args.command {
        GatewayCommand::Run(args) => return Box::pin(run::run(*args, interrupts)).await,
        GatewayCommand::Check(args) => return Box::pin(check::check(*args, interrupts)).await,
        GatewayCommand::Doctor(args) => return Box::pin(doctor::doctor(*args, interrupts)).await,
        GatewayCommand::Channel {
            command: ChannelCommand::Check(args),
        } => return channel::check(args, interrupts).await,
        GatewayCommand::Service {
            command: ServiceCommand::Print(args),
        } => service::print(&args),
        GatewayCommand::Import { file } => import::import(&file),
        GatewayCommand::Status(args) => status::status(args, interrupts).await,
        GatewayCommand::Reload { json } => status::reload(json, interrupts).await,
        GatewayCommand::Stop => status::stop(interrupts).await,
        GatewayCommand::Open {
            user,
            inspect,
            admin,
        } => {
            status::open(
                json!({ "user": user, "inspect": inspect, "admin": admin }),
                interrupts,
            )
            .await
        }
        GatewayCommand::Channels(args) => status::channels(args, interrupts).await,
        GatewayCommand::Chats(args) => chats::chats(args, interrupts).await,
        GatewayCommand::Send(args) => chats::send(args, interrupts).await,
        GatewayCommand::Backup(args) => backup::backup(args, interrupts).await,
        GatewayCommand::Restore(args) => backup::restore(args).await,
        GatewayCommand::Pair { command } => pair::pair(command, interrupts).await,
        GatewayCommand::Token { command } => token::token(command, interrupts).await,
    };
    done.map(|()| Exit::Done)
}

/// Loads `gateway.env` for the commands that use secrets.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the other commands use no secrets"
)]
fn load_secrets(command: &GatewayCommand) -> Result<(), CliError> {
    let (settings, agent) = match command {
        GatewayCommand::Run(args) => (&args.settings, &args.agent),
        GatewayCommand::Check(args) => (&args.settings, &args.agent),
        GatewayCommand::Doctor(args) => (&args.check.settings, &args.check.agent),
        _ => return Ok(()),
    };
    secret_file::load(settings, agent)
}
