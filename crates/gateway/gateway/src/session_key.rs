//! Decides which session a message belongs to.

use tenterhook_channel::chat::{ChannelId, ChatRef, Sender, SessionKey};
use tenterhook_channel::settings::{ChannelSettings, SessionMode, Settings};

/// The key of the session that all chats share.
const PROFILE: &str = "profile";
/// How keys of persons who share one session across channels begin.
const LINK: &str = "link";

/// Returns the key of the session that a message belongs to.
///
/// A key never depends on a connection. Chats of different persons share a session only if the settings say so.
pub(crate) fn session_key(
    settings: &Settings,
    channel: &ChannelSettings,
    chat: &ChatRef,
    sender: &Sender,
    is_direct: bool,
) -> SessionKey {
    if is_direct {
        let is_linked = |(id, linked): &(_, String)| *id == chat.channel && *linked == sender.id;
        let mut links = settings.links.iter();
        if let Some(link) = links.find(|link| link.senders.iter().any(is_linked)) {
            return SessionKey(format!("{LINK}/{}", link.name));
        }
    }
    let thread = chat
        .thread
        .as_deref()
        .filter(|_| !channel.has_shared_threads);
    match channel.sessions.unwrap_or(settings.sessions) {
        SessionMode::Profile => SessionKey(PROFILE.to_owned()),
        SessionMode::Chat => key("chat", chat, thread, None),
        SessionMode::Sender => key("sender", chat, thread, Some(&sender.id)),
    }
}

/// Returns whether a session is the owner's own. A session that all chats share, or that an owner shares with others by
/// `links`, is one: the settings say so.
pub fn is_owners_session(settings: &Settings, key: &SessionKey) -> bool {
    let Some((kind, rest)) = key.0.split_once('/') else {
        return key.0 == PROFILE;
    };
    if kind == LINK {
        let mut links = settings.links.iter().filter(|link| link.name == rest);
        return links.any(|link| {
            let mut senders = link.senders.iter();
            // In channels of this server, the id of a chat begins with its user.
            senders.any(|(channel, sender)| {
                settings.is_owners_chat(channel, sender)
                    || settings.is_owners_chat(channel, &format!("{sender}/"))
            })
        });
    }
    let parts: Option<(ChannelId, String, Option<String>, Option<String>)> =
        serde_json::from_str(rest).ok();
    parts.is_some_and(|(channel, chat, _, _)| settings.is_owners_chat(&channel, &chat))
}

/// Joins the parts as JSON, so that different parts never give the same key.
fn key(kind: &str, chat: &ChatRef, thread: Option<&str>, sender: Option<&str>) -> SessionKey {
    let parts = serde_json::json!([chat.channel, chat.chat, thread, sender]);
    SessionKey(format!("{kind}/{parts}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenterhook_channel::chat::ChannelId;
    use tenterhook_channel::settings::{AccessRules, ChannelKind, CommandSettings, Link, Show};

    fn channel(
        id: &str,
        sessions: Option<SessionMode>,
        has_shared_threads: bool,
    ) -> ChannelSettings {
        ChannelSettings {
            id: ChannelId::new(id).unwrap(),
            is_enabled: true,
            access: AccessRules::default(),
            sessions,
            busy: None,
            has_shared_threads,
            tools: None,
            is_untrusted: false,
            show: Show {
                tools: true,
                thinking: false,
                stream: None,
            },
            stt_enabled: None,
            tts_enabled: None,
            kind: ChannelKind::Web,
        }
    }

    fn is_same(
        channel: &ChannelSettings,
        one: (&str, &str, &str),
        other: (&str, &str, &str),
    ) -> bool {
        let settings = Settings::default();
        let key = |(chat, thread, sender): (&str, &str, &str)| {
            let chat = ChatRef {
                channel: channel.id.clone(),
                chat: chat.to_owned(),
                thread: (!thread.is_empty()).then(|| thread.to_owned()),
            };
            let sender = Sender {
                id: sender.to_owned(),
                name: None,
                is_bot: false,
            };
            session_key(&settings, channel, &chat, &sender, false)
        };
        key(one) == key(other)
    }

    // G57
    #[test]
    fn chats_share_a_session_only_if_the_settings_say_so() {
        use SessionMode::{Chat, Profile, Sender};
        for (mode, has_shared_threads, other, expected) in [
            (None, false, ("a", "", "1"), true),
            (None, false, ("a", "", "2"), true),
            (None, false, ("b", "", "1"), false),
            (None, false, ("a", "7", "1"), false),
            (None, true, ("a", "7", "1"), true),
            (Some(Chat), false, ("a", "", "2"), true),
            (Some(Sender), false, ("a", "", "1"), true),
            (Some(Sender), false, ("a", "", "2"), false),
            (Some(Sender), false, ("b", "", "1"), false),
            (Some(Profile), false, ("b", "7", "2"), true),
        ] {
            let channel = channel("web", mode, has_shared_threads);
            let found = is_same(&channel, ("a", "", "1"), other);
            assert_eq!(found, expected, "{mode:?} {has_shared_threads} {other:?}");
        }
    }

    #[test]
    fn no_id_can_imitate_another_one() {
        let channel = channel("web", Some(SessionMode::Sender), false);
        assert!(!is_same(
            &channel,
            ("a\",\"b", "", "c"),
            ("a", "", "b\",\"c")
        ));
    }

    #[test]
    fn linked_senders_share_a_session_in_direct_chats_only() {
        let settings = Settings {
            links: vec![Link {
                name: "me".to_owned(),
                senders: vec![
                    (ChannelId::new("tg").unwrap(), "42".to_owned()),
                    (ChannelId::new("web").unwrap(), "ann".to_owned()),
                ],
            }],
            ..Settings::default()
        };
        let key = |id: &str, sender: &str, is_direct| {
            let channel = channel(id, None, false);
            let chat = ChatRef {
                channel: channel.id.clone(),
                chat: sender.to_owned(),
                thread: None,
            };
            let sender = Sender {
                id: sender.to_owned(),
                name: None,
                is_bot: false,
            };
            session_key(&settings, &channel, &chat, &sender, is_direct)
        };
        assert_eq!(key("tg", "42", true), key("web", "ann", true));
        assert_ne!(key("tg", "42", false), key("web", "ann", true));
        assert_ne!(key("tg", "43", true), key("web", "ann", true));
    }

    #[test]
    fn only_sessions_in_which_the_owner_writes_are_the_owners() {
        let mut owners = channel("tg", None, false);
        owners.kind = ChannelKind::Command(CommandSettings {
            argv: vec!["x".to_owned()],
        });
        owners.access.owners = vec!["1001".to_owned()];
        let settings = Settings {
            channels: vec![channel("web", None, false), owners],
            links: vec![
                Link {
                    name: "me".to_owned(),
                    senders: vec![(ChannelId::new("web").unwrap(), "owner".to_owned())],
                },
                Link {
                    name: "ada".to_owned(),
                    senders: vec![(ChannelId::new("web").unwrap(), "ada".to_owned())],
                },
            ],
            ..Settings::default()
        };
        for (key, expected) in [
            (r#"chat/["web","owner/work",null,null]"#, true),
            (r#"sender/["web","owner/work",null,"owner"]"#, true),
            (r#"chat/["web","ada/owner",null,null]"#, false),
            (r#"chat/["web","owner",null,null]"#, false),
            (r#"chat/["tg","1001",null,null]"#, true),
            (r#"chat/["tg","42",null,null]"#, false),
            (r#"chat/["other","owner/work",null,null]"#, false),
            ("link/me", true),
            ("link/ada", false),
            ("profile", true),
            ("chat/what", false),
        ] {
            let key = SessionKey(key.to_owned());
            assert_eq!(is_owners_session(&settings, &key), expected, "{key:?}");
        }
    }
}
