//! Reads one channel of `gateway.yaml`.

use std::time::Duration;

use tenterhook_hookfile::fields::{Empty, Fields, Text};
use tenterhook_hookfile::tree::{Entry, Value};
use tenterhook_hookfile::{Report, Span, one_of};
use tenterhook_protocol::event::SenderRole;

use super::keys::{GROUP_KEYS, KIND_KEYS, SHOW_KEYS, channel_keys};
use super::values::{
    INLINE_SECRETS, base_url, check_id, checked_list, duration, header_name, ids,
    refuse_inline_secrets, secret_source,
};
use crate::chat::ChannelId;
use crate::settings::{
    AccessRules, BusyMode, ChannelKind, ChannelSettings, CommandSettings, DirectPolicy, GroupRules,
    SessionMode, Show, TelegramSettings, WebhookSettings,
};

pub(crate) const SESSION_MODES: [(&str, SessionMode); 3] = [
    ("chat", SessionMode::Chat),
    ("sender", SessionMode::Sender),
    ("profile", SessionMode::Profile),
];

pub(crate) const BUSY_MODES: [(&str, BusyMode); 5] = [
    ("steer", BusyMode::Steer),
    ("follow_up", BusyMode::FollowUp),
    ("collect", BusyMode::Collect),
    ("interrupt", BusyMode::Interrupt),
    ("refuse", BusyMode::Refuse),
];

const DIRECT_POLICIES: [(&str, DirectPolicy); 4] = [
    ("pairing", DirectPolicy::Pairing),
    ("allow", DirectPolicy::Allow),
    ("open", DirectPolicy::Open),
    ("off", DirectPolicy::Off),
];

const THREADS: [(&str, bool); 2] = [("separate", false), ("shared", true)];
const SHOWN_TOOLS: [(&str, bool); 2] = [("status", true), ("off", false)];
const WEBHOOK_ROLES: [(&str, SenderRole); 2] =
    [("guest", SenderRole::Guest), ("member", SenderRole::Member)];

type KindReader = fn(&mut Report, &Fields<'_>) -> Option<ChannelKind>;

/// The kinds, and how the settings of each are read.
const KINDS: [(&str, KindReader); 6] = [
    ("web", |_, _| Some(ChannelKind::Web)),
    ("http", |_, _| Some(ChannelKind::Http)),
    ("stdio", |_, _| Some(ChannelKind::Stdio)),
    ("webhook", read_webhook),
    ("telegram", read_telegram),
    ("command", read_command),
];

/// Reads a channel. Reports all of its problems.
pub(crate) fn read_channel(report: &mut Report, entry: &Entry) -> Option<ChannelSettings> {
    let id = match ChannelId::new(&entry.key) {
        Ok(id) => Some(id),
        Err(error) => {
            report.add(report.problem(entry.key_span, error.to_string()));
            None
        }
    };
    let mut known = channel_keys();
    known.extend(INLINE_SECRETS);
    let fields = Fields::read(report, &entry.value, "a channel", &known, Empty::Wrong)?;
    let allowed =
        "`token_env` or `token_file` for a bot, `secret_env` or `secret_file` for a webhook";
    refuse_inline_secrets(report, &fields, allowed);
    let kind = read_kind(report, &fields, entry);
    let access = read_access(report, &fields);
    let tools = checked_list(report, &fields, "tools", check_id);
    let show = read_show(report, &fields);
    let sessions = fields.choice(report, "sessions", &SESSION_MODES);
    let busy = fields.choice(report, "busy", &BUSY_MODES);
    let threads = fields.choice(report, "thread", &THREADS);
    let is_enabled = fields.boolean(report, "enabled");
    let stt_enabled = fields.boolean(report, "stt_enabled");
    let tts_enabled = fields.boolean(report, "tts_enabled");
    let is_untrusted = fields.boolean(report, "untrusted");
    Some(ChannelSettings {
        is_enabled: is_enabled.unwrap_or(true),
        access,
        sessions,
        busy,
        has_shared_threads: threads.unwrap_or(false),
        tools,
        // An invalid value is an error of the whole file, so the default only matters for an absent key.
        is_untrusted: is_untrusted.unwrap_or(false),
        show,
        stt_enabled,
        tts_enabled,
        ..ChannelSettings::new(id?, kind?)
    })
}

fn read_kind(report: &mut Report, fields: &Fields<'_>, entry: &Entry) -> Option<ChannelKind> {
    let named = KINDS.iter().find(|(word, _)| *word == entry.key);
    let words = KINDS.map(|(word, read)| (word, (word, read)));
    let (word, read) = match (fields.has("kind"), named) {
        (true, _) => fields.choice(report, "kind", &words)?,
        (false, Some(named)) => *named,
        (false, None) => {
            let message = format!("the channel `{}` has no `kind`", entry.key.escape_debug());
            let allowed = one_of(KINDS.map(|(word, _)| word));
            report.add(report.problem(entry.key_span, message).allowed(allowed));
            return None;
        }
    };
    let others = KIND_KEYS.iter().filter(|(kinds, _)| !kinds.contains(&word));
    for (kinds, keys) in others {
        for entry in keys.iter().filter_map(|key| fields.entry(key)) {
            let key = &entry.key;
            let message = format!("a channel of the kind `{word}` has no `{key}`");
            let allowed = format!("`{key}` with the kind {}", one_of(kinds.iter().copied()));
            report.add(report.problem(entry.key_span, message).allowed(allowed));
        }
    }
    read(report, fields)
}

fn read_access(report: &mut Report, fields: &Fields<'_>) -> AccessRules {
    let direct = fields.choice(report, "dm", &DIRECT_POLICIES);
    let direct = direct.unwrap_or_default();
    let check_member = |id: &str| match id {
        "*" if direct == DirectPolicy::Open => Ok(()),
        id => check_id(id),
    };
    let mut members = checked_list(report, fields, "members", check_member).unwrap_or_default();
    // With `dm: open`, `*` only repeats that everyone is admitted. As an id it would match a sender who is called so.
    members.retain(|id| id != "*");
    let groups = read_groups(report, fields);
    if direct == DirectPolicy::Open
        && let Some(entry) = fields.entry("dm")
    {
        require_tools(report, fields, "dm: open", entry.value.span);
    }
    AccessRules {
        direct,
        owners: ids(report, fields, "owners").unwrap_or_default(),
        members,
        groups,
        bots: ids(report, fields, "bots").unwrap_or_default(),
    }
}

/// Reports a channel that admits everyone without saying which tools everyone may use.
fn require_tools(report: &mut Report, fields: &Fields<'_>, what: &str, span: Span) {
    if !fields.has("tools") {
        let message = format!("`{what}` admits everyone, so the channel needs `tools`");
        let problem = report.problem(span, message);
        report
            .add(problem.hint("add `tools:` with the tools that everyone may use, or `tools: []`"));
    }
}

fn read_groups(report: &mut Report, fields: &Fields<'_>) -> Option<GroupRules> {
    let node = &fields.entry("groups")?.value;
    if node.as_text() == Some("off") || matches!(node.value, Value::Bool(false)) {
        return None;
    }
    let what = "`groups` (a mapping, or `off`)";
    let groups = Fields::read(report, node, what, GROUP_KEYS, Empty::Wrong)?;
    if !groups.has("allow") {
        let problem = report.problem(groups.span, "`groups` has no `allow`");
        report.add(problem.allowed("a list of the ids of groups"));
    }
    let allow = ids(report, &groups, "allow").unwrap_or_default();
    let needs_mention = groups.boolean(report, "mention").unwrap_or(true);
    let is_any = |entry: &&Entry| entry.value.as_text() == Some("any");
    let senders = match groups.entry("senders").filter(is_any) {
        Some(entry) => {
            require_tools(report, fields, "senders: any", entry.value.span);
            None
        }
        None => Some(ids(report, &groups, "senders").unwrap_or_default()),
    };
    Some(GroupRules {
        allow,
        needs_mention,
        senders,
    })
}

fn read_show(report: &mut Report, fields: &Fields<'_>) -> Show {
    let default = Show::default();
    let Some(entry) = fields.entry("show") else {
        return default;
    };
    let Some(fields) = Fields::read(report, &entry.value, "`show`", SHOW_KEYS, Empty::Wrong) else {
        return default;
    };
    let tools = fields.choice(report, "tools", &SHOWN_TOOLS);
    let thinking = fields.boolean(report, "thinking");
    let stream = fields.entry("stream").map(|entry| &entry.value);
    let range = Duration::from_secs(1)..=Duration::from_mins(1);
    Show {
        tools: tools.unwrap_or(default.tools),
        thinking: thinking.unwrap_or(default.thinking),
        stream: match stream {
            Some(node) if node.as_text() == Some("off") => None,
            _ => duration(report, &fields, "stream", range).or(default.stream),
        },
    }
}

fn read_webhook(report: &mut Report, fields: &Fields<'_>) -> Option<ChannelKind> {
    let secret = secret_source(report, fields, "secret");
    let header = header_name(report, fields, "header");
    let prefix = fields.text(report, "prefix");
    let timestamp_header = header_name(report, fields, "timestamp_header");
    let delivery_header = header_name(report, fields, "delivery_header");
    let event_header = header_name(report, fields, "event_header");
    let events = checked_list(report, fields, "events", check_event);
    let template = required(report, fields, "template");
    let chat = required(report, fields, "chat");
    if let Some(chat) = chat
        && let Err(allowed) = check_id(chat.text)
    {
        let problem = report.problem(chat.span, "`chat` is not the id of a chat");
        report.add(problem.allowed(allowed));
    }
    let role = fields.choice(report, "role", &WEBHOOK_ROLES);
    Some(ChannelKind::Webhook(WebhookSettings {
        secret: secret?,
        header: header.unwrap_or_else(|| "x-hub-signature-256".to_owned()),
        prefix: prefix.map_or("sha256=", |prefix| prefix.text).to_owned(),
        timestamp_header,
        delivery_header: delivery_header.unwrap_or_else(|| "x-github-delivery".to_owned()),
        event_header: event_header.unwrap_or_else(|| "x-github-event".to_owned()),
        events: events.unwrap_or_default(),
        template: template?.text.to_owned(),
        chat: chat?.text.to_owned(),
        role: role.unwrap_or(SenderRole::Guest),
    }))
}

fn check_event(event: &str) -> Result<(), String> {
    let is_name = |name: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "_-:/".contains(c);
        !name.is_empty() && name.chars().all(is_letter)
    };
    let (name, action) = event.split_once('.').unwrap_or((event, "any"));
    if is_name(name) && is_name(action) {
        Ok(())
    } else {
        Err("`EVENT` or `EVENT.ACTION`, such as `push` or `issues.opened`".to_owned())
    }
}

fn read_telegram(report: &mut Report, fields: &Fields<'_>) -> Option<ChannelKind> {
    let token = secret_source(report, fields, "token");
    let api_base = base_url(report, fields, "api_base");
    Some(ChannelKind::Telegram(TelegramSettings {
        token: token?,
        api_base: api_base.unwrap_or_else(|| "https://api.telegram.org".to_owned()),
    }))
}

fn read_command(report: &mut Report, fields: &Fields<'_>) -> Option<ChannelKind> {
    if !fields.has("argv") {
        required(report, fields, "argv");
        return None;
    }
    let argv = fields.texts(report, "argv")?;
    if argv.first().is_none_or(|program| program.trim().is_empty()) {
        let span = fields.entry("argv")?.value.span;
        let problem = report.problem(span, "`argv` does not name a program");
        report.add(problem.allowed("a program and its arguments"));
        return None;
    }
    Some(ChannelKind::Command(CommandSettings { argv }))
}

fn required<'a>(report: &mut Report, fields: &Fields<'a>, key: &str) -> Option<Text<'a>> {
    if !fields.has(key) {
        let message = format!("the channel has no `{key}`");
        report.add(report.problem(fields.span, message));
        return None;
    }
    fields.full_text(report, key)
}
