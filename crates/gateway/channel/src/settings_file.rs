//! Reads `gateway.yaml`. Reports all problems at once, with their positions.

mod channel;
mod keys;
mod values;
mod voice;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tenterhook_hookfile::fields::{Empty, Fields, Text, scalar, wrong};
use tenterhook_hookfile::tree::{self, Entry, Format, Node};
use tenterhook_hookfile::{Report, Span, one_of, shorten};

use self::channel::{BUSY_MODES, SESSION_MODES, read_channel};
use self::keys::{FILE_KEYS, INSPECT_KEYS, TLS_KEYS, TURN_KEYS};
use self::values::{check_host, check_id, check_origin, check_variable, checked_list, duration};
use self::voice::{read_stt, read_tts};
use crate::chat::{ChannelId, ChatRef};
use crate::settings::{
    ChannelKind, ChannelSettings, InspectSettings, Link, RestartMode, Settings, TlsFiles,
    TurnLimits,
};

const RESTART_MODES: [(&str, RestartMode); 3] = [
    ("tell", RestartMode::Tell),
    ("resume", RestartMode::Resume),
    ("quiet", RestartMode::Quiet),
];

/// Whether the inspector shows what is said in all chats, by the words for it.
const INSPECTED_CHATS: [(&str, bool); 2] = [("own", false), ("all", true)];

/// The maximum number of turns that run at once.
const MAX_TURNS: i64 = 64;

/// The kinds of which a gateway can have one channel only.
const SINGLE_KINDS: [&str; 3] = ["web", "http", "stdio"];

impl Settings {
    /// Reads the text of the report's source. What the file does not contain has its default; the channel `web` exists
    /// unless the file has a channel with this name or of this kind.
    ///
    /// Returns `None` if the file has errors, which are then in the report. Whether the names of tools exist is not
    /// checked here.
    ///
    /// ```
    /// use std::path::Path;
    /// use tenterhook_channel::settings::Settings;
    /// use tenterhook_hookfile::{Report, SourceText};
    ///
    /// let text = "listen: 0.0.0.0:7878\nbusy: steeer\n";
    /// let mut report = Report::new(SourceText::new(Path::new("gateway.yaml"), text));
    /// assert_eq!(Settings::read(&mut report), None);
    /// let problems = report.into_problems();
    /// assert!(problems[0].message.contains("other machines can reach"));
    /// assert_eq!(problems[1].suggestion.as_deref(), Some("steer"));
    /// ```
    pub fn read(report: &mut Report) -> Option<Self> {
        let format = Format::of(report.source().path(), report.source().text());
        let root = tree::read(report, format)?;
        let settings = if root.is_null() {
            Some(Self::default())
        } else {
            read_settings(report, &root)
        };
        settings.filter(|_| !report.has_errors())
    }
}

fn read_settings(report: &mut Report, root: &Node) -> Option<Settings> {
    let what = "a file with the settings of a gateway";
    let fields = Fields::read(report, root, what, FILE_KEYS, Empty::Wrong)?;
    let default = Settings::default();
    let is_public = fields.boolean(report, "public").unwrap_or(false);
    let listen = match fields.entry("listen") {
        Some(entry) => read_listen(report, &entry.value, is_public),
        None => default.listen,
    };
    let mut channels = read_channels(report, &fields, listen);
    add_web(&fields, &mut channels, default.channels, listen);
    let names = channel_names(&fields);
    Some(Settings {
        listen,
        is_public,
        hosts: checked_list(report, &fields, "hosts", check_host).unwrap_or_default(),
        origins: checked_list(report, &fields, "origins", check_origin).unwrap_or_default(),
        trusted_proxies: read_proxies(report, &fields),
        tls: read_tls(report, &fields),
        turns: read_turns(report, &fields),
        sessions: fields
            .choice(report, "sessions", &SESSION_MODES)
            .unwrap_or(default.sessions),
        busy: fields
            .choice(report, "busy", &BUSY_MODES)
            .unwrap_or(default.busy),
        on_restart: fields
            .choice(report, "on_restart", &RESTART_MODES)
            .unwrap_or(default.on_restart),
        approvals_to: read_approvals(report, &fields, &names, &channels),
        inspect: read_inspect(report, &fields, listen),
        keep_env: checked_list(report, &fields, "keep_env", check_variable).unwrap_or_default(),
        links: read_links(report, &fields, &names),
        stt: read_stt(report, &fields),
        tts: read_tts(report, &fields),
        channels,
    })
}

/// Reads the address of the server, or `off`.
fn read_listen(report: &mut Report, node: &Node, is_public: bool) -> Option<SocketAddr> {
    let text = node.as_text().unwrap_or_default();
    if text == "off" {
        return None;
    }
    let Ok(address) = text.parse() else {
        let allowed = "an IP address and a port such as `127.0.0.1:7878` or `[::1]:7878`, or `off`";
        return wrong(report, "listen", node, allowed);
    };
    if let Err(error) = Settings::check_listen(address, is_public) {
        let problem = report.problem(node.span, error.to_string());
        report.add(problem.hint("keep the loopback, and put a proxy with TLS in front of it"));
    }
    Some(address)
}

fn read_proxies(report: &mut Report, fields: &Fields<'_>) -> Vec<IpAddr> {
    let check = |text: &str| match text.parse::<IpAddr>() {
        Ok(_) => Ok(()),
        Err(_) => Err("an IP address".to_owned()),
    };
    let proxies = checked_list(report, fields, "trusted_proxies", check).unwrap_or_default();
    proxies.iter().flat_map(|proxy| proxy.parse()).collect()
}

/// Reads the files of the certificate and its key. Relative paths start at the folder of the settings.
fn read_tls(report: &mut Report, fields: &Fields<'_>) -> Option<TlsFiles> {
    let entry = fields.entry("tls")?;
    let fields = Fields::read(report, &entry.value, "`tls`", TLS_KEYS, Empty::Wrong)?;
    let mut file = |key: &str| {
        if !fields.has(key) {
            let problem = report.problem(fields.span, format!("`tls` has no `{key}`"));
            report.add(problem.allowed("the files `cert` and `key`, as PEM"));
            return None;
        }
        let path = fields.full_text(report, key)?.text;
        let folder = report.source().path().parent();
        Some(folder.unwrap_or_else(|| "".as_ref()).join(path))
    };
    let (cert, key) = (file("cert"), file("key"));
    Some(TlsFiles {
        cert: cert?,
        key: key?,
    })
}

fn read_turns(report: &mut Report, fields: &Fields<'_>) -> TurnLimits {
    let default = TurnLimits::default();
    let Some(entry) = fields.entry("turns") else {
        return default;
    };
    let Some(fields) = Fields::read(report, &entry.value, "`turns`", TURN_KEYS, Empty::Wrong)
    else {
        return default;
    };
    let max = fields.entry("max").and_then(|entry| {
        let number = entry.value.as_number().and_then(|number| number.integer);
        let allowed = number.filter(|max| (1..=MAX_TURNS).contains(max));
        let max = allowed.and_then(|max| usize::try_from(max).ok());
        max.or_else(|| wrong(report, "max", &entry.value, "a whole number from 1 to 64"))
    });
    let timeouts = Duration::from_secs(1)..=Duration::from_hours(24);
    let drains = Duration::ZERO..=Duration::from_mins(10);
    TurnLimits {
        max: max.unwrap_or(default.max),
        timeout: duration(report, &fields, "timeout", timeouts).unwrap_or(default.timeout),
        drain: duration(report, &fields, "drain", drains).unwrap_or(default.drain),
    }
}

fn read_inspect(
    report: &mut Report,
    fields: &Fields<'_>,
    listen: Option<SocketAddr>,
) -> InspectSettings {
    let default = InspectSettings::default();
    // Without channels that need it, the server is for this machine only.
    let own = listen.filter(|address| address.ip().is_loopback());
    let own = own.filter(|_| fields.entry("inspect").is_some());
    let fields = fields.entry("inspect").and_then(|entry| {
        Fields::read(
            report,
            &entry.value,
            "`inspect`",
            INSPECT_KEYS,
            Empty::Wrong,
        )
    });
    let Some(fields) = fields else {
        return default;
    };
    let payloads = fields.boolean(report, "payloads");
    InspectSettings {
        has_payloads: payloads.unwrap_or(default.has_payloads),
        shows_all_chats: fields
            .choice(report, "chats", &INSPECTED_CHATS)
            .unwrap_or(default.shows_all_chats),
        listen: match fields.entry("listen") {
            Some(entry) => read_listen(report, &entry.value, false),
            None => own,
        },
    }
}

fn channel_entries<'a>(fields: &Fields<'a>) -> &'a [Entry] {
    let channels = fields.entry("channels");
    channels
        .and_then(|entry| entry.value.as_table())
        .unwrap_or_default()
}

/// Returns the names of all channels, also of those with errors, so that a reference to one is not an error too.
fn channel_names<'a>(fields: &Fields<'a>) -> Vec<&'a str> {
    let written = channel_entries(fields).iter();
    written
        .map(|entry| entry.key.as_str())
        .chain(["web"])
        .collect()
}

fn read_channels(
    report: &mut Report,
    fields: &Fields<'_>,
    listen: Option<SocketAddr>,
) -> Vec<ChannelSettings> {
    if let Some(entry) = fields.entry("channels") {
        // Reports a value that is not a mapping.
        Fields::any(report, &entry.value, "`channels`", Empty::Wrong);
    }
    let mut channels: Vec<ChannelSettings> = Vec::new();
    for entry in channel_entries(fields) {
        let Some(channel) = read_channel(report, entry) else {
            continue;
        };
        let word = channel.kind.word();
        let same = |known: &&ChannelSettings| known.kind.word() == word;
        if SINGLE_KINDS.contains(&word)
            && let Some(first) = channels.iter().find(same)
        {
            let message = format!(
                "the channels `{}` and `{}` are both of the kind `{word}`",
                first.id, channel.id
            );
            let problem = report.problem(entry.key_span, message);
            report.add(problem.allowed(format!("one channel of the kind `{word}`")));
        }
        if listen.is_none() && channel.is_enabled && channel.kind.needs_server() {
            let message = format!(
                "the channel `{}` needs the server, but `listen` is `off`",
                channel.id
            );
            let problem = report.problem(entry.key_span, message);
            report.add(problem.hint("set `listen`, or add `enabled: false` to the channel"));
        }
        channels.push(channel);
    }
    channels
}

/// Puts the default channel in front, unless the file has its own or there is no server.
fn add_web(
    fields: &Fields<'_>,
    channels: &mut Vec<ChannelSettings>,
    defaults: Vec<ChannelSettings>,
    listen: Option<SocketAddr>,
) {
    let is_named = channel_entries(fields)
        .iter()
        .any(|entry| entry.key == "web");
    let has_web = channels
        .iter()
        .any(|channel| channel.kind == ChannelKind::Web);
    if listen.is_some() && !is_named && !has_web {
        channels.splice(0..0, defaults);
    }
}

/// Reads `CHANNEL:ID`, and reports a channel that does not exist.
fn read_reference(
    report: &mut Report,
    names: &[&str],
    text: &str,
    span: Span,
) -> Option<(ChannelId, String)> {
    let parts = text
        .split_once(':')
        .filter(|(_, id)| check_id(id).is_ok())
        .and_then(|(channel, id)| Some((ChannelId::new(channel).ok()?, id)));
    let Some((channel, id)) = parts else {
        let message = format!("`{}` does not have the form `CHANNEL:ID`", shorten(text));
        let problem = report.problem(span, message);
        report.add(problem.allowed("the name of a channel, `:`, and an id in this channel"));
        return None;
    };
    if !names.contains(&channel.as_str()) {
        let problem = report
            .problem(span, format!("unknown channel `{channel}`"))
            .allowed(one_of(names.iter().copied()))
            .suggestion(report.nearest(channel.as_str(), names.iter().copied()));
        report.add(problem);
        return None;
    }
    Some((channel, id.to_owned()))
}

fn read_approvals(
    report: &mut Report,
    fields: &Fields<'_>,
    names: &[&str],
    channels: &[ChannelSettings],
) -> Option<ChatRef> {
    let Text { text, span } = fields.full_text(report, "approvals_to")?;
    let (channel, chat) = read_reference(report, names, text, span)?;
    let settings = channels.iter().find(|known| known.id == channel);
    if let Some((message, hint)) = settings.and_then(|settings| approver_problem(settings, &chat)) {
        report.add(report.problem(span, message).hint(hint));
    }
    Some(ChatRef {
        channel,
        chat,
        thread: None,
    })
}

/// Returns why no owner could answer questions in a chat, and what to do about it.
fn approver_problem(channel: &ChannelSettings, chat: &str) -> Option<(String, String)> {
    let (id, access) = (&channel.id, &channel.access);
    if !channel.is_enabled {
        let message = format!("`approvals_to` needs the channel `{id}`, which is not enabled");
        let hint = format!("remove `enabled: false` from `{id}`, or name another channel");
        return Some((message, hint));
    }
    match &channel.kind {
        // In Telegram, a direct chat has the id of its person.
        ChannelKind::Telegram(_) if !access.owners.iter().any(|owner| owner == chat) => Some((
            format!("`approvals_to` is not a direct chat with an owner of `{id}`"),
            format!("add \"{chat}\" to `owners` of `{id}`"),
        )),
        ChannelKind::Command(_) if access.lists_group(chat) => Some((
            format!("`approvals_to` is a group of `{id}`, where others read the questions"),
            "name a direct chat with an owner".to_owned(),
        )),
        ChannelKind::Command(_) if !access.can_have_owners() => Some((
            format!("`approvals_to` needs an owner of `{id}`, and the channel has none"),
            format!("add `owners` to `{id}`"),
        )),
        ChannelKind::Webhook(_) => Some((
            format!("`approvals_to` cannot be in `{id}`, because no one reads a webhook"),
            "name a chat of a channel where an owner writes".to_owned(),
        )),
        ChannelKind::Web | ChannelKind::Http | ChannelKind::Stdio if !is_user_chat(chat) => Some((
            format!("`{}` is not a chat of the channel `{id}`", shorten(chat)),
            format!("write `{id}:USER/CHAT`, as `tenterhook gateway chats` shows it"),
        )),
        ChannelKind::Telegram(_)
        | ChannelKind::Command(_)
        | ChannelKind::Web
        | ChannelKind::Http
        | ChannelKind::Stdio => None,
    }
}

/// Returns whether an id has the form of chats whose clients speak frames: `USER/CHAT`.
fn is_user_chat(chat: &str) -> bool {
    let parts = chat.split_once('/');
    parts.is_some_and(|(user, id)| !user.is_empty() && !id.is_empty() && !id.contains('/'))
}

fn read_links(report: &mut Report, fields: &Fields<'_>, names: &[&str]) -> Vec<Link> {
    let Some(entry) = fields.entry("links") else {
        return Vec::new();
    };
    let Some(fields) = Fields::any(report, &entry.value, "`links`", Empty::Wrong) else {
        return Vec::new();
    };
    let mut links: Vec<Link> = Vec::new();
    for entry in fields.entries() {
        // The name becomes a part of the session's key, so it has the form of a channel's name.
        if ChannelId::new(entry.key.as_str()).is_err() {
            let message = format!("`{}` cannot be the name of a link", shorten(&entry.key));
            let problem = report.problem(entry.key_span, message);
            report.add(problem.allowed("1 to 32 lower-case letters, digits, `_` and `-`"));
        }
        let Some(items) = entry.value.as_list() else {
            wrong::<()>(
                report,
                &entry.key,
                &entry.value,
                "a list of `CHANNEL:SENDER`",
            );
            continue;
        };
        let mut senders = Vec::new();
        for item in items {
            let Some(text) = scalar(report, "a sender", item) else {
                continue;
            };
            let Some(sender) = read_reference(report, names, &text, item.span) else {
                continue;
            };
            let is_linked = links.iter().any(|link| link.senders.contains(&sender));
            if is_linked || senders.contains(&sender) {
                let message = format!("`{}` is linked twice", shorten(&text));
                report.add(report.problem(item.span, message));
            }
            senders.push(sender);
        }
        links.push(Link {
            name: entry.key.clone(),
            senders,
        });
    }
    links
}
