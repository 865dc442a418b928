//! The secrets of channels, as the gateway reads them at its start.

use std::path::Path;

use tenterhook_channel::channel_secrets::read_secrets;
use tenterhook_channel::chat::ChannelId;
use tenterhook_channel::secret::HiddenSecret;
use tenterhook_channel::settings::{
    ChannelKind, ChannelSettings, SecretSource, Settings, TelegramSettings, WebhookSettings,
};
use tenterhook_protocol::event::SenderRole;

const KEY: &str = "0123456789abcdef0123456789abcdef";

fn channel(name: &str, kind: ChannelKind) -> ChannelSettings {
    ChannelSettings::new(ChannelId::new(name).unwrap(), kind)
}

fn webhook(name: &str, path: &Path) -> ChannelSettings {
    channel(
        name,
        ChannelKind::Webhook(WebhookSettings {
            secret: SecretSource::File(path.to_owned()),
            header: String::new(),
            prefix: String::new(),
            timestamp_header: None,
            delivery_header: String::new(),
            event_header: "x-github-event".to_owned(),
            events: Vec::new(),
            template: String::new(),
            chat: String::new(),
            role: SenderRole::Guest,
        }),
    )
}

fn telegram(name: &str, token: SecretSource) -> ChannelSettings {
    let api_base = String::new();
    channel(
        name,
        ChannelKind::Telegram(TelegramSettings { token, api_base }),
    )
}

fn settings(channels: Vec<ChannelSettings>) -> Settings {
    Settings {
        channels,
        ..Settings::default()
    }
}

fn write(folder: &tempfile::TempDir, name: &str, text: &str) -> std::path::PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    set_mode(&path, 0o600);
    path
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _mode: u32) {}

fn causes(channels: Vec<ChannelSettings>) -> Vec<String> {
    let read = read_secrets(&settings(channels), |_| false);
    let errors = read.map_or_else(|errors| errors, |_| Vec::new());
    errors.iter().map(ToString::to_string).collect()
}

// G70
#[test]
fn weak_secrets_are_refused_without_showing_them() {
    const KEY_OF_WEBHOOK: bool = true;
    const TOKEN_OF_BOT: bool = false;
    let folder = tempfile::tempdir().unwrap();
    for (secret, is_key, expected) in [
        (KEY, KEY_OF_WEBHOOK, None),
        ("123456:AAH", TOKEN_OF_BOT, None),
        ("", TOKEN_OF_BOT, Some("is empty")),
        ("undefined", TOKEN_OF_BOT, Some("placeholder")),
        ("Change-Me!", TOKEN_OF_BOT, Some("placeholder")),
        ("null", KEY_OF_WEBHOOK, Some("placeholder")),
        (&"x".repeat(40), KEY_OF_WEBHOOK, Some("placeholder")),
        ("8chars!!", KEY_OF_WEBHOOK, Some("has 8 bytes")),
        (
            "two words of 32 bytes and some more",
            KEY_OF_WEBHOOK,
            Some("contains a space"),
        ),
    ] {
        let path = write(&folder, "secret", secret);
        let channel = if is_key {
            webhook("a", &path)
        } else {
            telegram("a", SecretSource::File(path))
        };
        let found = causes(vec![channel]);
        assert_eq!(
            found.len(),
            usize::from(expected.is_some()),
            "{secret}: {found:?}"
        );
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{secret}: {found}");
            assert!(secret.len() < 5 || !found.contains(secret), "{found}");
        }
    }
}

// G70
#[test]
fn every_channel_has_a_secret_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let key = write(&folder, "key", &format!("{KEY}\n"));
    let token = write(&folder, "token", &format!("thg_{KEY}"));
    let bot = write(&folder, "bot", "123456:AAH");
    let bot = SecretSource::File(bot);
    let secrets = read_secrets(
        &settings(vec![webhook("a", &key), telegram("tg", bot.clone())]),
        |_| false,
    )
    .unwrap();
    assert_eq!(
        secrets[&ChannelId::new("a").unwrap()],
        HiddenSecret::new(KEY)
    );
    assert_eq!(secrets.len(), 2);
    assert_eq!(
        causes(vec![
            webhook("a", &key),
            webhook("b", &key),
            webhook("c", &token),
            telegram("tg", bot.clone()),
            telegram("tg2", bot),
        ]),
        [
            "the secret of the channel `b` is also the secret of `a`; use a different one",
            "the secret of the channel `c` is an access token of the gateway; use a secret of its own",
            "the secret of the channel `tg2` is also the secret of `tg`; use a different one",
        ]
    );
    let every = read_secrets(&settings(vec![webhook("a", &key)]), |text| text == KEY);
    assert_eq!(every.unwrap_err().len(), 1);
    let mut off = webhook("a", &folder.path().join("missing"));
    off.is_enabled = false;
    assert!(
        causes(vec![off]).is_empty(),
        "a disabled channel needs no secret"
    );
}

#[test]
fn a_secret_that_is_missing_or_public_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let missing = SecretSource::Environment("TENTERHOOK_TEST_MISSING".to_owned());
    let [error] = causes(vec![telegram("tg", missing)]).try_into().unwrap();
    assert!(
        error.contains("`TENTERHOOK_TEST_MISSING` is not set"),
        "{error}"
    );
    let large = write(&folder, "large", &"ab12".repeat(2000));
    for path in [
        folder.path().join("missing"),
        folder.path().to_owned(),
        large,
    ] {
        assert_eq!(
            causes(vec![webhook("a", &path)]).len(),
            1,
            "{}",
            path.display()
        );
    }
    let key = write(&folder, "key", KEY);
    for mode in [0o640, 0o604, 0o644] {
        set_mode(&key, mode);
        let errors = causes(vec![webhook("a", &key)]);
        assert_eq!(errors.len(), usize::from(cfg!(unix)), "{mode:o}");
        assert!(errors.iter().all(|error| error.contains("chmod 600")));
    }
}
