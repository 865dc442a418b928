//! The keys of `gateway.yaml`.
//!
//! The reader accepts these keys. A test checks that the tables of `docs/reference/gateway-settings.md` have the same
//! ones.

/// The keys at the top level.
pub(crate) const FILE_KEYS: &[&str] = &[
    "listen",
    "public",
    "hosts",
    "origins",
    "trusted_proxies",
    "tls",
    "turns",
    "sessions",
    "busy",
    "on_restart",
    "approvals_to",
    "inspect",
    "keep_env",
    "links",
    "stt",
    "tts",
    "channels",
];

/// The keys of `tls`.
pub(crate) const TLS_KEYS: &[&str] = &["cert", "key"];

/// The keys of `turns`.
pub(crate) const TURN_KEYS: &[&str] = &["max", "timeout", "drain"];

/// The keys of `inspect`.
pub(crate) const INSPECT_KEYS: &[&str] = &["payloads", "chats", "listen"];

/// The keys of every channel.
const CHANNEL_KEYS: &[&str] = &[
    "kind",
    "enabled",
    "sessions",
    "busy",
    "thread",
    "tools",
    "untrusted",
    "show",
    "stt_enabled",
    "tts_enabled",
];

/// The keys of `show`.
pub(crate) const SHOW_KEYS: &[&str] = &["tools", "thinking", "stream"];

/// The keys of `groups`.
pub(crate) const GROUP_KEYS: &[&str] = &["allow", "mention", "senders"];

/// The keys that only channels of some kinds have: the kinds, and the keys.
pub(crate) const KIND_KEYS: [(&[&str], &[&str]); 4] = [
    (
        &["telegram", "command"],
        &["dm", "owners", "members", "groups", "bots"],
    ),
    (&["telegram"], &["token_env", "token_file", "api_base"]),
    (&["command"], &["argv"]),
    (
        &["webhook"],
        &[
            "secret_env",
            "secret_file",
            "header",
            "prefix",
            "timestamp_header",
            "delivery_header",
            "event_header",
            "events",
            "template",
            "chat",
            "role",
        ],
    ),
];

/// Returns the keys of channels of all kinds.
pub(crate) fn channel_keys() -> Vec<&'static str> {
    let of_kinds = KIND_KEYS.iter().flat_map(|(_, keys)| *keys);
    CHANNEL_KEYS.iter().chain(of_kinds).copied().collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tenterhook_voice::{STT_KEYS, TTS_KEYS};

    use super::*;

    #[test]
    fn the_page_of_settings_lists_every_key() {
        let path = "../../../docs/reference/gateway-settings.md";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let page = std::fs::read_to_string(path).unwrap();
        let tables = page
            .split("| key | value | default |\n|---|---|---|\n")
            .skip(1);
        let written: Vec<Vec<&str>> = tables
            .map(|table| {
                let rows = table.lines().take_while(|line| line.starts_with("| `"));
                rows.map(|row| row.split('`').nth(1).unwrap()).collect()
            })
            .collect();
        let [ruled, telegram, command, webhook] = KIND_KEYS.map(|(_, keys)| keys);
        let expected = [
            FILE_KEYS,
            TLS_KEYS,
            TURN_KEYS,
            STT_KEYS,
            TTS_KEYS,
            INSPECT_KEYS,
            CHANNEL_KEYS,
            SHOW_KEYS,
            ruled,
            GROUP_KEYS,
            telegram,
            command,
            webhook,
        ];
        assert_eq!(written, expected);
    }
}
