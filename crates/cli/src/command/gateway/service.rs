//! Prints a unit with which systemd runs the gateway, and reports to systemd how the gateway is doing.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use tenterhook_channel::settings::{ChannelKind, SecretSource, Settings};
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::warning::warn;
use tenterhook_terminal::output;

use crate::command::gateway::args::{GatewayRunArgs, ServicePrintArgs, SettingsArgs};
use crate::command::gateway::secret_file::SECRET_FILE;
use crate::command::gateway::settings;
use crate::notice::usage_error;

/// The variable in which a service manager names the socket that takes states.
const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";

/// The variables that the service needs with their present values. None of them holds a secret.
const KEPT: [&str; 6] = [
    "PATH",
    "TENTERHOOK_CONFIG_DIR",
    "TENTERHOOK_DATA_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// How long systemd waits for the end beyond the time that turns have, in seconds.
const EXTRA_STOP_TIME: u64 = 30;

/// Reports a state such as `READY=1` to the service manager, if one has started the program.
pub(super) fn notify(state: &str) {
    let Some(address) = env::var_os(NOTIFY_SOCKET).filter(|address| !address.is_empty()) else {
        return;
    };
    if let Err(error) = send(&address, state) {
        warn(format_args!(
            "cannot report `{state}` to the socket in `{NOTIFY_SOCKET}`: {error}"
        ));
    }
}

fn send(address: &OsStr, state: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    // A service manager that does not read must not hold up the gateway.
    socket.set_nonblocking(true)?;
    match address.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => {
            use std::os::linux::net::SocketAddrExt as _;

            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            socket.send_to_addr(state.as_bytes(), &address)?;
        }
        _ => {
            socket.send_to(state.as_bytes(), Path::new(address))?;
        }
    }
    Ok(())
}

pub(super) fn print(args: &ServicePrintArgs) -> Result<(), CliError> {
    let words = ["run".to_owned()].into_iter().chain(args.options.clone());
    let run = GatewayRunArgs::try_parse_from(words).map_err(|error| usage_error(&error))?;
    if run.stdio {
        return Err(
            CliError::new(Exit::Usage, "a service has no one who writes to its stdin")
                .hint("leave out `--stdio`"),
        );
    }
    let named = args.settings.file.clone().or(run.settings.file);
    let chosen = SettingsArgs { file: named };
    let read = settings::read(&chosen, &run.agent)?;
    let file = settings::path(&chosen, &run.agent)?;
    let unit = Unit {
        program: env::current_exe().map_err(|error| unknown("the program", &error))?,
        folder: env::current_dir().map_err(|error| unknown("the working directory", &error))?,
        file: file.map(|file| std::path::absolute(&file).unwrap_or(file)),
        options: &args.options,
        settings: &read,
    };
    for line in unit.text().lines() {
        output::line(line);
    }
    if cfg!(not(target_os = "linux")) {
        output::note(
            "this unit is for systemd on Linux; Tenterhook has no file for launchd, so start `tenterhook gateway run` \
             with the service manager of your choice",
        );
    }
    Ok(())
}

fn unknown(what: &str, error: &io::Error) -> CliError {
    CliError::new(Exit::Failed, format!("cannot find {what}")).cause(error)
}

/// What a unit is made of.
struct Unit<'a> {
    program: PathBuf,
    folder: PathBuf,
    file: Option<PathBuf>,
    options: &'a [String],
    settings: &'a Settings,
}

impl Unit<'_> {
    fn text(&self) -> String {
        let stop = self.settings.turns.drain.as_secs() + EXTRA_STOP_TIME;
        let folder = escape_specifiers(&self.folder.display().to_string());
        let [environment, secrets] = [environment(), self.secrets()];
        let command = self.command();
        let program = quote(&self.program.display().to_string(), true);
        format!(
            "# Save this as ~/.config/systemd/user/tenterhook-gateway.service. Then run:
#   systemctl --user daemon-reload
#   systemctl --user enable --now tenterhook-gateway
# To keep the gateway running after you log out: loginctl enable-linger
[Unit]
Description=Tenterhook gateway

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
ExecReload={program} gateway reload
WorkingDirectory={folder}
{environment}{secrets}# The first signal lets turns end.
KillSignal=SIGINT
KillMode=mixed
TimeoutStopSec={stop}
Restart=on-failure
RestartSec=5
# Invalid settings, another gateway and wrong options do not go away by a restart.
RestartPreventExitStatus=3 5 64
# A tool that uses too much memory does not stop the gateway, and no memory with secrets is written to disk.
OOMPolicy=continue
LimitCORE=0
# Uncomment this if no hook and no tool uses `sudo` or another program with special rights:
# NoNewPrivileges=yes

[Install]
WantedBy=default.target
"
        )
    }

    fn command(&self) -> String {
        let mut words = vec![
            self.program.display().to_string(),
            "gateway".into(),
            "run".into(),
        ];
        let is_named = |word: &String| word == "--gateway" || word.starts_with("--gateway=");
        if let Some(file) = &self.file
            && file.is_file()
            && !self.options.iter().any(is_named)
        {
            words.extend(["--gateway".into(), file.display().to_string()]);
        }
        words.extend(self.options.iter().cloned());
        let quoted: Vec<String> = words.iter().map(|word| quote(word, true)).collect();
        quoted.join(" ")
    }

    /// Returns the line for the file with secrets, and which secrets it needs.
    fn secrets(&self) -> String {
        let folder = self.file.as_deref().and_then(Path::parent);
        let Some(folder) = folder.filter(|folder| folder.is_absolute()) else {
            return String::new();
        };
        let file = folder.join(SECRET_FILE).display().to_string();
        let mut text = String::from(
            "# A file with a line `NAME=VALUE` for each secret, such as the key of the model. Its mode must be 0600.\n",
        );
        for channel in self.settings.channels.iter().filter(|one| one.is_enabled) {
            let source = match &channel.kind {
                ChannelKind::Telegram(telegram) => &telegram.token,
                ChannelKind::Webhook(webhook) => &webhook.secret,
                ChannelKind::Web
                | ChannelKind::Http
                | ChannelKind::Stdio
                | ChannelKind::Command(_) => continue,
            };
            if let SecretSource::Environment(name) = source {
                let _ = writeln!(text, "# The channel `{}` needs {name}.", channel.id);
            }
        }
        let _ = writeln!(text, "EnvironmentFile=-{}", escape_specifiers(&file));
        text
    }
}

fn escape_specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

/// Quotes a word for systemd. In commands, `$` begins a variable.
fn quote(word: &str, is_command: bool) -> String {
    let mut text = escape_specifiers(word)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    if is_command {
        text = text.replace('$', "$$");
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%$".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text
    } else {
        format!("\"{text}\"")
    }
}

/// Returns the lines for the variables that the service keeps.
fn environment() -> String {
    let kept = KEPT.iter().filter_map(|name| {
        let value = env::var(name).ok().filter(|value| !value.is_empty())?;
        Some(format!(
            "Environment={}\n",
            quote(&format!("{name}={value}"), false)
        ))
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_program_as_they_are() {
        let table = [
            ("--model", "--model"),
            ("two words", "\"two words\""),
            ("100%", "100%%"),
            ("$HOME", "$$HOME"),
            ("a\"b\\c", "\"a\\\"b\\\\c\""),
            ("", "\"\""),
        ];
        for (word, quoted) in table {
            assert_eq!(quote(word, true), quoted);
        }
        assert_eq!(quote("A=$b", false), "A=$b");
    }

    #[test]
    fn a_state_reaches_the_socket_in_a_folder_and_the_abstract_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        let mut bytes = [0; 32];
        let length = socket.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"READY=1");
        #[cfg(target_os = "linux")]
        {
            use std::os::linux::net::SocketAddrExt as _;

            let name = format!("tenterhook-{}", std::process::id());
            let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
            let socket = UnixDatagram::bind_addr(&address).unwrap();
            send(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
            let length = socket.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], b"STOPPING=1");
        }
    }
}
