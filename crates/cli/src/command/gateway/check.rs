//! Checks the settings, the secrets, the hooks and the tools of the gateway, and starts nothing.

use tenterhook_channel::channel_secrets::read_secrets;
use tenterhook_channel::settings::Settings;
use tenterhook_gateway::gateway::TlsIdentity;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::journal;
use tenterhook_setup::warning::warn;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;
use tenterhook_terminal::output::plural::count;

use crate::command::gateway::args::GatewayCheckArgs;
use crate::command::gateway::profile::ChatProfile;
use crate::command::gateway::{settings, voice};

pub(super) async fn check(
    args: GatewayCheckArgs,
    interrupts: &Interrupts,
) -> Result<Exit, CliError> {
    let read = settings::read(&args.settings, &args.agent)?;
    let file = args.settings.file.as_deref();
    let places = (args.sessions, file);
    let profile = ChatProfile::load(args.agent, places, &read, None, interrupts).await?;
    profile.check_tools(&read)?;
    check_secrets(&read)?;
    warn_of_shells(&read);
    for finding in voice::findings(&read) {
        if finding.is_problem {
            warn(escape_line(&finding.text));
        } else {
            output::line(escape_line(&finding.text));
        }
    }
    if profile.has_model() {
        profile.try_out()?;
    }
    let enabled = read.channels.iter().filter(|channel| channel.is_enabled);
    output::line(format_args!(
        "The settings are valid: {} of {} enabled.",
        enabled.count(),
        count(read.channels.len(), "channel")
    ));
    journal::close(profile.journal()).map(|()| Exit::Done)
}

/// Checks that the secrets of the channels and the certificate are there and usable.
fn check_secrets(settings: &Settings) -> Result<(), CliError> {
    if let Some(files) = &settings.tls {
        TlsIdentity::read(files).map_err(|error| CliError::of(Exit::Config, &error))?;
    }
    let Err(errors) = read_secrets(settings, |_| false) else {
        return Ok(());
    };
    let mut texts = errors.iter().map(ToString::to_string);
    let first = texts.next().unwrap_or_default();
    Err(CliError {
        causes: texts.collect(),
        ..CliError::new(Exit::Config, first)
    })
}

/// Warns of channels in which other people can make the agent run programs with the rights of this account.
fn warn_of_shells(settings: &Settings) {
    for channel in settings.channels_with_open_shell() {
        warn(format_args!(
            "in the channel `{}`, people other than you can talk to an agent whose `shell` runs as you: it can read \
             your files and give itself your rights; list other `tools`, or set `untrusted: true`",
            channel.id
        ));
    }
}
