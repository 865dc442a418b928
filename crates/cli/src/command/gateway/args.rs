//! The options of `tenterhook gateway`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::agent_args::AgentArgs;
use crate::session_dir_args::SessionDirArgs;
use clap::{Parser, Subcommand, ValueEnum};
use jiff::SignedDuration;

/// The arguments of `tenterhook gateway`.
#[derive(Debug, Parser)]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    pub(crate) command: GatewayCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Run the gateway in the foreground, until Ctrl-C or `tenterhook gateway stop`.
    Run(Box<GatewayRunArgs>),
    /// Check the settings with their secrets, the hooks and the tools that the settings name, and report every problem.
    Check(Box<GatewayCheckArgs>),
    /// Check how safe the settings, the files and the secrets are, and whether a message gets its answer.
    Doctor(Box<GatewayDoctorArgs>),
    /// Show the state of the gateway that runs.
    Status(ListArgs),
    /// Read the settings and the hooks again, and apply what has changed to the gateway that runs. Other channels stay
    /// connected.
    Reload {
        /// Print the changes as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Stop the gateway that runs, and wait until it has stopped. Running turns have a moment to finish.
    Stop,
    /// Print a link that opens the page in a browser. It works once, for 60 seconds.
    Open {
        /// Who uses the page. Each user has their own chats.
        #[arg(long, value_name = "NAME", default_value = "owner")]
        user: String,

        /// Open the inspector, which shows what hooks do, instead of the chats.
        #[arg(long)]
        inspect: bool,

        /// Let the inspector also decide about approvals and pairings.
        #[arg(long, requires = "inspect")]
        admin: bool,
    },
    /// List the channels, or restart one.
    Channels(ChannelsArgs),
    /// List the chats, the most recent first.
    Chats(ListArgs),
    /// Send a text or a file to a chat. Hooks of `message_deliver` see it first.
    #[command(override_usage = "tenterhook gateway send [OPTIONS] <CHAT> [TEXT]")]
    Send(SendArgs),
    /// Show who asks to be admitted, admit them, or take it back.
    Pair {
        #[command(subcommand)]
        command: PairCommand,
    },
    /// Create, list and revoke the access tokens of the web page and of HTTP.
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Write a backup of chats, sessions, files, tokens and admissions into one file, also while the gateway runs.
    Backup(BackupArgs),
    /// Replace chats, sessions, tokens and admissions by the contents of a backup. The gateway must be stopped.
    Restore(BackupArgs),
    /// Run the gateway as a service.
    Service {
        #[command(subcommand)]
        command: ServiceCommand,
    },
    /// Print settings of Operator as a `gateway.yaml`. Secrets are not copied.
    Import {
        /// Operator's `settings.json`.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Test programs that are channels.
    Channel {
        #[command(subcommand)]
        command: ChannelCommand,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// Print a unit for systemd that runs the gateway for you. Nothing is installed.
    Print(ServicePrintArgs),
}

#[derive(Debug, Parser)]
pub(crate) struct ServicePrintArgs {
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Options of `tenterhook gateway run`, such as `--model openai:gpt-4o`.
    #[arg(last = true, value_name = "OPTIONS")]
    pub(crate) options: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ChannelCommand {
    /// Check whether a program implements the channel protocol.
    Check(ChannelCheckArgs),
}

#[derive(Debug, Parser)]
pub(crate) struct ChannelCheckArgs {
    /// The chat to send to. By default, the chat of the first message that the program offers, or `check`.
    #[arg(long, value_name = "CHAT")]
    pub(crate) chat: Option<String>,

    /// Print a single JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Parser)]
pub(crate) struct GatewayDoctorArgs {
    #[command(flatten)]
    pub(crate) list: ListArgs,

    #[command(flatten)]
    pub(crate) check: GatewayCheckArgs,
}

#[derive(Debug, Parser)]
pub(crate) struct BackupArgs {
    /// The file of the backup.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The directory in which the agents of the gateway work. Their sessions are stored for it.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) sessions: SessionDirArgs,

    /// Print a single JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where the settings are.
#[derive(Debug, Clone, Parser)]
pub(crate) struct SettingsArgs {
    /// The settings. The default is `gateway.yaml` in your configuration folder. A project's file is never read.
    #[arg(long = "gateway", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Parser)]
pub(crate) struct GatewayRunArgs {
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// The address of the server, such as `127.0.0.1:7878`, or `off`. It takes precedence over the settings.
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    pub(crate) listen: Option<Listen>,

    /// Also read frames from stdin and write frames to stdout, one JSON object per line. The end of stdin stops the
    /// gateway after all turns.
    #[arg(long)]
    pub(crate) stdio: bool,

    /// Stop after this time, such as `30s` or `8h`.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) duration: Option<Duration>,

    #[command(flatten)]
    pub(crate) sessions: SessionDirArgs,

    #[command(flatten)]
    pub(crate) agent: AgentArgs,
}

#[derive(Debug, Parser)]
pub(crate) struct GatewayCheckArgs {
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    #[command(flatten)]
    pub(crate) sessions: SessionDirArgs,

    #[command(flatten)]
    pub(crate) agent: AgentArgs,
}

/// Where the server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listen {
    Off,
    At(SocketAddr),
}

/// How a list is printed.
#[derive(Debug, Clone, Copy, Parser)]
pub(crate) struct ListArgs {
    /// Print a single JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct ChannelsArgs {
    #[command(flatten)]
    pub(crate) list: ListArgs,

    #[command(subcommand)]
    pub(crate) command: Option<ChannelsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ChannelsCommand {
    /// Close a channel's connection and connect again at once.
    Restart {
        /// The channel's name in the settings.
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Debug, Parser)]
pub(crate) struct SendArgs {
    /// The chat as `tenterhook gateway chats` lists it, such as `tg:1001`.
    pub(crate) chat: String,

    /// The text.
    #[arg(required_unless_present = "file")]
    pub(crate) text: Option<String>,

    /// A file to send. The text becomes its caption.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Wait until the service of the chat has the message, at most 45 seconds.
    #[arg(long)]
    pub(crate) wait: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PairCommand {
    /// List who asks to be admitted, and who was admitted.
    List(ListArgs),
    /// Admit the sender who was given a code.
    Approve {
        /// The channel's name in the settings.
        channel: String,
        /// The code that the sender was given.
        code: String,
        /// What the sender may do.
        #[arg(long, value_enum, default_value_t = Role::Member, value_name = "ROLE")]
        role: Role,
    },
    /// Refuse the sender who was given a code.
    Deny {
        /// The channel's name in the settings.
        channel: String,
        /// The code that the sender was given.
        code: String,
    },
    /// Take back the admission of a sender.
    Revoke {
        /// The channel's name in the settings.
        channel: String,
        /// The sender's id in the channel, as `list` shows it.
        sender: String,
    },
}

/// What a sender may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Everything, including to approve tool calls.
    Owner,
    /// Talk, and use `/new`, `/stop`, `/help` and `/status`.
    Member,
    /// Only talk.
    Guest,
}

impl Role {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Member => "member",
            Self::Guest => "guest",
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it. It is not shown again.
    Create(TokenArgs),
    /// List the tokens without their secrets.
    List(ListArgs),
    /// Revoke a token at once.
    Revoke {
        /// The token's id, as `list` shows it, or its name.
        #[arg(value_name = "TOKEN")]
        id: String,
    },
}

#[derive(Debug, Parser)]
pub(crate) struct TokenArgs {
    /// What the token is for, such as `laptop`.
    pub(crate) name: String,

    /// Who the token is for. Each user has their own chats.
    #[arg(long, value_name = "NAME", default_value = "owner")]
    pub(crate) user: String,

    /// What the token allows. May be repeated.
    #[arg(
        long = "scope",
        value_enum,
        value_name = "SCOPE",
        default_value = "chat"
    )]
    pub(crate) scopes: Vec<TokenScope>,

    /// When the token expires, such as `30d`. By default, it does not.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) expires: Option<Duration>,
}

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TokenScope {
    /// Write messages and read the chats of the token's user.
    Chat,
    /// Answer questions whether a tool call may run. Its user is an owner.
    Approve,
    /// See what hooks and channels do.
    Inspect,
    /// Everything.
    Admin,
}

impl TokenScope {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Approve => "approve",
            Self::Inspect => "inspect",
            Self::Admin => "admin",
        }
    }
}

fn listen(text: &str) -> Result<Listen, String> {
    if text == "off" {
        return Ok(Listen::Off);
    }
    text.parse().map(Listen::At).map_err(|_| {
        "expected an address with a port such as `127.0.0.1:7878`, or `off`".to_owned()
    })
}

/// Reads a time such as `30s`, `8h` or `30d`. A day has 24 hours.
fn duration(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse().ok());
    let hours = days.and_then(|days: u64| days.checked_mul(24));
    let read = match hours {
        Some(hours) => hours.checked_mul(3600).map(Duration::from_secs),
        None => text
            .parse()
            .ok()
            .and_then(|read: SignedDuration| Duration::try_from(read).ok()),
    };
    read.filter(|read| !read.is_zero())
        .ok_or_else(|| "expected a time such as `30s`, `10m`, `8h` or `30d`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        let table = [("30s", 30), ("10m", 600), ("8h", 28_800), ("2d", 172_800)];
        for (text, seconds) in table {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "10", "0s", "-5s", "ten", "99999999999999999999d"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_server_listens_at_an_address_or_not_at_all() {
        assert_eq!(listen("off"), Ok(Listen::Off));
        assert!(matches!(listen("[::1]:0"), Ok(Listen::At(_))));
        assert!(listen("localhost").is_err());
    }
}
