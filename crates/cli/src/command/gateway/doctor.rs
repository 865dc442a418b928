//! Looks for what makes a gateway unsafe or keeps it from working.

use std::net::SocketAddr;
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};
use tenterhook_channel::channel_secrets::read_secrets;
use tenterhook_channel::settings::{
    ChannelKind, ChannelSettings, DirectPolicy, GroupRules, Settings,
};
use tenterhook_files::readable_entries;
use tenterhook_gateway::control::{self, CONTROL_SOCKET, ControlError};
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::journal;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::plural::count;
use tenterhook_terminal::output::progress::ProgressLine;
use tenterhook_terminal::output::{self, style, styled};

use crate::command::gateway::args::{GatewayCheckArgs, GatewayDoctorArgs};
use crate::command::gateway::client::state_folder;
use crate::command::gateway::profile::ChatProfile;
use crate::command::gateway::{round_trip, settings, voice};

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warning,
    Problem,
}

/// The result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    /// What was checked: `exposure`, `access`, `files` …
    check: &'static str,
    level: Level,
    text: String,
    /// What the user can do.
    next: Option<String>,
}

/// The results of all checks.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, check: &'static str, text: impl Into<String>) {
        self.add(check, Level::Ok, text.into(), None);
    }

    fn warn(&mut self, check: &'static str, text: impl Into<String>, next: impl Into<String>) {
        self.add(check, Level::Warning, text.into(), Some(next.into()));
    }

    fn problem(&mut self, check: &'static str, text: impl Into<String>, next: impl Into<String>) {
        self.add(check, Level::Problem, text.into(), Some(next.into()));
    }

    fn add(&mut self, check: &'static str, level: Level, text: String, next: Option<String>) {
        self.0.push(Finding {
            check,
            level,
            text,
            next,
        });
    }

    /// Adds a failure of another command, with one problem for each of its causes.
    fn failure(&mut self, check: &'static str, error: &CliError, next: &str) {
        let next = match &error.hint {
            Some(hint) => hint.lines().map(str::trim).collect::<Vec<_>>().join("; "),
            None => next.to_owned(),
        };
        match &error.load {
            Some(load) if !load.problems.is_empty() => {
                for problem in &load.problems {
                    let name = problem.path.file_name().unwrap_or_default();
                    let text = format!("{}: {}", name.display(), problem.message);
                    self.problem(check, text, next.clone());
                }
            }
            _ => self.problem(check, error.in_one_line(), next),
        }
    }
}

pub(super) async fn doctor(
    args: GatewayDoctorArgs,
    interrupts: &Interrupts,
) -> Result<Exit, CliError> {
    let GatewayDoctorArgs { list, check } = args;
    let mut findings = Findings::default();
    {
        let _progress = ProgressLine::start("checking the gateway".to_owned());
        let token = interrupts.token();
        let examined = token.run_until_cancelled(examine(&mut findings, check, interrupts));
        examined
            .await
            .ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))??;
    }
    let Findings(findings) = findings;
    let is_sound = findings.iter().all(|found| found.level != Level::Problem);
    if list.json {
        output::json(&json!({ "ok": is_sound, "checks": findings }));
    } else {
        findings.iter().for_each(show);
    }
    Ok(if is_sound { Exit::Done } else { Exit::Config })
}

fn show(found: &Finding) {
    let (word, look) = match found.level {
        Level::Ok => ("ok     ", style::GOOD),
        Level::Warning => ("warning", style::CARE),
        Level::Problem => ("problem", style::BAD),
    };
    let next = found.next.as_deref().map(escape_line);
    let next = next.map(|next| format!("; {next}")).unwrap_or_default();
    output::line(format_args!(
        "{} {}: {}{next}",
        styled(look, word),
        found.check,
        escape_line(&found.text)
    ));
}

async fn examine(
    findings: &mut Findings,
    args: GatewayCheckArgs,
    interrupts: &Interrupts,
) -> Result<(), CliError> {
    let state = state_folder()?;
    let read = match settings::read(&args.settings, &args.agent) {
        Ok(read) => Some(read),
        Err(error) => {
            findings.failure(
                "settings",
                &error,
                "`tenterhook gateway check` shows the place",
            );
            None
        }
    };
    let file = settings::path(&args.settings, &args.agent)?;
    if let Some(read) = &read {
        findings.ok("settings", "the settings are valid");
        check_exposure(findings, read);
        for channel in read.channels.iter().filter(|one| one.is_enabled) {
            check_access(findings, channel);
        }
        check_secrets(findings, read);
        check_voice(findings, read);
    }
    check_modes(findings, &state, file.as_deref());
    check_profile(findings, args, read.as_ref(), interrupts).await;
    check_trip(findings, &state).await;
    Ok(())
}

fn check_voice(findings: &mut Findings, settings: &Settings) {
    const CHECK: &str = "voice";
    for finding in voice::findings(settings) {
        if finding.is_problem {
            let next = "see `stt` and `tts` in the settings";
            findings.warn(CHECK, finding.text, next);
        } else {
            findings.ok(CHECK, finding.text);
        }
    }
}

fn check_exposure(findings: &mut Findings, settings: &Settings) {
    const CHECK: &str = "exposure";
    let Some(address) = settings.listen else {
        return findings.ok(CHECK, "the server is off");
    };
    if !address.ip().is_loopback() {
        findings.warn(
            CHECK,
            format!("other machines can reach {address}, and the connection is not encrypted"),
            "listen on `127.0.0.1`, and put a proxy with TLS in front of it",
        );
        if settings.hosts.is_empty() {
            findings.warn(
                CHECK,
                "`hosts` is empty, so requests with the name of this machine are refused",
                "add the names under which people reach the server to `hosts`",
            );
        }
    } else if settings.is_public {
        findings.warn(
            CHECK,
            format!("`public` is true, but only this machine can reach {address}"),
            "remove `public`, so that a later change of `listen` is refused",
        );
    } else {
        findings.ok(CHECK, format!("only this machine can reach {address}"));
    }
    for (key, listed) in [("hosts", &settings.hosts), ("origins", &settings.origins)] {
        if !listed.is_empty() {
            findings.ok(CHECK, format!("`{key}` admits {}", listed.join(", ")));
        }
    }
}

/// The name of the check of who may write to a channel.
const ACCESS: &str = "access";

fn check_access(findings: &mut Findings, channel: &ChannelSettings) {
    let id = &channel.id;
    match &channel.kind {
        ChannelKind::Web | ChannelKind::Http => {
            findings.ok(ACCESS, format!("channel `{id}` admits access tokens only"));
        }
        ChannelKind::Stdio => {}
        ChannelKind::Webhook(_) if channel.tools.is_none() && !channel.is_untrusted => findings
            .warn(
                ACCESS,
                format!(
                    "channel `{id}` passes text of a service to the agent, which may use all tools"
                ),
                "add `tools` with what it needs, or `untrusted: true`",
            ),
        ChannelKind::Webhook(_) => {
            findings.ok(
                ACCESS,
                format!("channel `{id}` admits signed requests only"),
            );
        }
        ChannelKind::Telegram(_) | ChannelKind::Command(_) => check_senders(findings, channel),
    }
}

/// Checks who may write to a channel of a service whose users send messages.
fn check_senders(findings: &mut Findings, channel: &ChannelSettings) {
    let id = &channel.id;
    let rules = &channel.access;
    let mut is_open = false;
    if rules.direct == DirectPolicy::Open {
        is_open = true;
        findings.warn(
            ACCESS,
            format!("everyone can write to channel `{id}` directly (`dm: open`)"),
            "use `dm: pairing` if you do not want that",
        );
    }
    let groups = rules
        .groups
        .as_ref()
        .filter(|groups| !groups.allow.is_empty());
    if groups.is_some_and(|groups| groups.senders.is_none()) {
        is_open = true;
        findings.warn(
            ACCESS,
            format!("all members of the groups of channel `{id}` can write (`senders: any`)"),
            "list the senders if you do not want that",
        );
    }
    if is_open {
        return;
    }
    if admits_no_one(channel, groups) {
        findings.warn(
            ACCESS,
            format!("channel `{id}` admits no one"),
            "add your id to `owners`, or use `dm: pairing`",
        );
    } else {
        findings.ok(ACCESS, format!("channel `{id}` admits known senders only"));
    }
}

fn admits_no_one(channel: &ChannelSettings, groups: Option<&GroupRules>) -> bool {
    let rules = &channel.access;
    let has_direct = match rules.direct {
        DirectPolicy::Pairing | DirectPolicy::Open => true,
        DirectPolicy::Allow => !rules.owners.is_empty() || !rules.members.is_empty(),
        DirectPolicy::Off => false,
    };
    let has_group = groups.is_some_and(|groups| {
        let listed = groups.senders.as_ref();
        !rules.owners.is_empty() || listed.is_none_or(|senders| !senders.is_empty())
    });
    !has_direct && !has_group
}

fn check_secrets(findings: &mut Findings, settings: &Settings) {
    match read_secrets(settings, |_| false) {
        Ok(secrets) if secrets.is_empty() => findings.ok("secrets", "no channel needs a secret"),
        Ok(secrets) => {
            let many = count(secrets.len(), "secret");
            findings.ok("secrets", format!("{many} of channels can be used"));
        }
        Err(errors) => {
            for error in errors {
                let next = "set the variable or the file, and keep it from others";
                findings.problem("secrets", error.to_string(), next);
            }
        }
    }
}

/// Checks who can read the state, and who can change the settings.
fn check_modes(findings: &mut Findings, state: &Path, settings: Option<&Path>) {
    const CHECK: &str = "files";
    const READ_OR_WRITE: u32 = 0o077;
    const WRITE: u32 = 0o022;
    let inside = readable_entries(state);
    let inside = inside.map(|entry| (entry.path(), READ_OR_WRITE));
    let named = [
        (Some(state.to_owned()), READ_OR_WRITE),
        (settings.map(Path::to_owned), WRITE),
        (settings.and_then(Path::parent).map(Path::to_owned), WRITE),
    ];
    let named = named
        .into_iter()
        .filter_map(|(path, bits)| Some((path?, bits)));
    let mut is_private = true;
    for (path, bits) in named.chain(inside) {
        let Some(mode) = mode(&path).filter(|mode| mode & bits != 0) else {
            continue;
        };
        is_private = false;
        let (verb, change) = if bits == WRITE {
            ("change", "go-w")
        } else {
            ("read or change", "go=")
        };
        let shown = path.display();
        findings.problem(
            CHECK,
            format!("others can {verb} `{shown}` (its mode is {mode:04o})"),
            format!("run `chmod {change} {shown}`"),
        );
    }
    if is_private {
        findings.ok(CHECK, "only you can read the state and change the settings");
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;

    let metadata = std::fs::metadata(path).ok()?;
    Some(metadata.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn mode(_path: &Path) -> Option<u32> {
    None
}

/// Checks the hooks, the tools that the settings name, and the model.
async fn check_profile(
    findings: &mut Findings,
    args: GatewayCheckArgs,
    settings: Option<&Settings>,
    interrupts: &Interrupts,
) {
    let file = args.settings.file.as_deref();
    let default = Settings::default();
    let used = settings.unwrap_or(&default);
    let places = (args.sessions, file);
    let loading = ChatProfile::load(args.agent, places, used, None, interrupts);
    let profile = match loading.await {
        Ok(profile) => profile,
        Err(error) => {
            let next = "`tenterhook check` shows every problem";
            return findings.failure("hooks", &error, next);
        }
    };
    findings.ok("hooks", "all hooks can be loaded");
    match settings.map(|settings| profile.check_tools(settings)) {
        Some(Ok(())) => findings.ok("tools", "all tools that the settings name exist"),
        Some(Err(error)) => findings.failure("tools", &error, "correct the name"),
        None => {}
    }
    let next = "name a model with `--model`, as for `tenterhook gateway run`";
    if !profile.has_model() {
        findings.warn("model", "no model is named", next);
    } else if let Err(error) = profile.try_out() {
        findings.failure("model", &error, next);
    } else {
        findings.ok("model", "an agent can be built");
    }
    if let Err(error) = journal::close(profile.journal()) {
        findings.failure("journal", &error, "choose another file with `--journal`");
    }
}

/// Asks the gateway that runs, or sends a message through one of its own.
async fn check_trip(findings: &mut Findings, state: &Path) {
    const CHECK: &str = "round trip";
    match control::call(&state.join(CONTROL_SOCKET), "status", json!({})).await {
        Ok(status) => check_running(findings, &status).await,
        Err(ControlError::NotRunning) => match round_trip::try_own().await {
            Ok(()) => findings.ok(
                CHECK,
                "a message to a gateway with a scripted model was answered",
            ),
            Err(cause) => findings.problem(
                CHECK,
                cause,
                "run `tenterhook gateway run` and see what it reports",
            ),
        },
        Err(error) => findings.problem(
            CHECK,
            format!("the gateway that runs does not answer: {error}"),
            "see what it does in its own terminal or log",
        ),
    }
}

async fn check_running(findings: &mut Findings, status: &Value) {
    const CHECK: &str = "round trip";
    let address = status.get("address").and_then(Value::as_str);
    let address: Option<SocketAddr> = address.and_then(|text| text.parse().ok());
    let has_tls = status.get("tls").and_then(Value::as_bool) == Some(true);
    match address {
        None => findings.ok(CHECK, "the gateway that runs answers; its server is off"),
        Some(address) => match round_trip::try_server(address, has_tls).await {
            Ok(()) => findings.ok(
                CHECK,
                format!("the gateway that runs answers, also at {address}"),
            ),
            Err(cause) => {
                let next = "restart the gateway";
                findings.problem(CHECK, cause, next);
            }
        },
    }
    let channels = status.get("channels").and_then(Value::as_array);
    for channel in channels.into_iter().flatten() {
        let text = |key| channel.get(key).and_then(Value::as_str).unwrap_or_default();
        let (id, state, error) = (text("id"), text("state"), text("error"));
        if matches!(state, "blocked" | "backing_off") {
            let (state, since) = (state.replace('_', " "), text("since"));
            findings.warn(
                CHECK,
                format!("channel `{id}` is {state} since {since}: {error}"),
                format!("correct the cause, and run `tenterhook gateway channels restart {id}`"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use tenterhook_channel::chat::ChannelId;
    use tenterhook_channel::settings::{AccessRules, CommandSettings};

    use super::*;

    fn channel(access: AccessRules) -> ChannelSettings {
        let kind = ChannelKind::Command(CommandSettings { argv: Vec::new() });
        ChannelSettings {
            access,
            ..ChannelSettings::new(ChannelId::new("notes").unwrap(), kind)
        }
    }

    // G72
    #[test]
    fn open_and_empty_rules_are_warnings() {
        let group = |senders| {
            Some(GroupRules {
                allow: vec!["-1".to_owned()],
                needs_mention: true,
                senders,
            })
        };
        let allow = AccessRules {
            direct: DirectPolicy::Allow,
            ..AccessRules::default()
        };
        let owned = AccessRules {
            owners: vec!["1".to_owned()],
            ..allow.clone()
        };
        let open = AccessRules {
            direct: DirectPolicy::Open,
            ..AccessRules::default()
        };
        let everyone = AccessRules {
            groups: group(None),
            ..owned.clone()
        };
        let empty_group = AccessRules {
            groups: group(Some(Vec::new())),
            ..allow.clone()
        };
        let table = [
            (AccessRules::default(), Level::Ok, "known senders"),
            (owned, Level::Ok, "known senders"),
            (allow, Level::Warning, "no one"),
            (open, Level::Warning, "dm: open"),
            (everyone, Level::Warning, "senders: any"),
            (empty_group, Level::Warning, "no one"),
        ];
        for (rules, level, text) in table {
            let mut findings = Findings::default();
            check_access(&mut findings, &channel(rules));
            let [found] = &*findings.0 else {
                panic!("{findings:?}");
            };
            assert_eq!(found.level, level, "{found:?}");
            assert!(found.text.contains(text), "{found:?}");
        }
    }

    #[test]
    fn an_address_of_other_machines_is_a_warning() {
        let settings = Settings {
            listen: Some("0.0.0.0:7878".parse().unwrap()),
            is_public: true,
            ..Settings::default()
        };
        let mut findings = Findings::default();
        check_exposure(&mut findings, &settings);
        let levels: Vec<Level> = findings.0.iter().map(|found| found.level).collect();
        assert_eq!(levels, [Level::Warning, Level::Warning]);
    }
}
