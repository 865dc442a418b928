//! Reading `gateway.yaml`.

use std::path::Path;
use std::time::Duration;

use tenterhook_channel::chat::{ChannelId, ChatRef};
use tenterhook_channel::settings::{
    AccessRules, BusyMode, ChannelKind, ChannelSettings, CommandSettings, DirectPolicy, GroupRules,
    InspectSettings, Link, RestartMode, SecretSource, SessionMode, Settings, Show,
    TelegramSettings, TlsFiles, TurnLimits, WebhookSettings,
};
use tenterhook_hookfile::{Problem, Report, SourceText};
use tenterhook_protocol::event::SenderRole;

fn read(text: &str) -> Result<Settings, Vec<Problem>> {
    let mut report = Report::new(SourceText::new(Path::new("/conf/gateway.yaml"), text));
    let settings = Settings::read(&mut report);
    let problems = report.into_problems();
    match settings {
        Some(settings) => {
            assert_eq!(problems, [], "{text}");
            Ok(settings)
        }
        None => Err(problems),
    }
}

fn id(name: &str) -> ChannelId {
    ChannelId::new(name).unwrap()
}

fn list(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_without_keys_has_the_defaults() {
    for text in ["", "# nothing\n", "{}", "channels: {}"] {
        assert_eq!(read(text).unwrap(), Settings::default(), "{text}");
    }
    let default = Settings::default();
    assert_eq!(default.listen, Some("127.0.0.1:7878".parse().unwrap()));
    assert_eq!(
        default.channels,
        [ChannelSettings::new(id("web"), ChannelKind::Web)]
    );
}

#[expect(clippy::too_many_lines, reason = "one file with every key")]
#[test]
fn every_key_is_read() {
    let settings = read(
        r#"
listen: "[::]:80"
public: true
hosts: [chat.example.org, "box:8080"]
origins: ["https://chat.example.org"]
trusted_proxies: [10.0.0.1, "::1"]
tls: { cert: tls/cert.pem, key: /keys/key.pem }
turns: { max: 2, timeout: 1h, drain: 0s }
sessions: sender
busy: collect
on_restart: quiet
approvals_to: tg:1001
inspect: { payloads: false, chats: all }
keep_env: [OPENAI_API_KEY]
links: { me: [tg:1001, web:laptop] }
channels:
  page: { kind: web }
  stdio: { enabled: false }
  tg:
    kind: telegram
    token_file: secrets/bot
    api_base: http://127.0.0.1:9/
    dm: open
    owners: [1001, "1002"]
    members: ["*", "7"]
    groups: { allow: [-100123], mention: false, senders: any }
    bots: ["9"]
    tools: [read_file, search]
    untrusted: true
    sessions: profile
    busy: refuse
    thread: shared
    show: { tools: off, thinking: true, stream: 2s }
    stt_enabled: true
    tts_enabled: false
  hook:
    kind: webhook
    secret_env: GH_SECRET
    header: X-Sig
    prefix: ""
    timestamp_header: X-Time
    delivery_header: X-Id
    event_header: X-Event
    events: [push, issues.opened]
    template: "{{ body.action }}"
    chat: ops
    role: member
  sms: { kind: command, argv: [python3, sms.py, 1], groups: { allow: ["g"], senders: ["3"] } }
"#,
    )
    .unwrap();
    let telegram = ChannelSettings {
        access: AccessRules {
            direct: DirectPolicy::Open,
            owners: list(&["1001", "1002"]),
            members: list(&["7"]),
            groups: Some(GroupRules {
                allow: list(&["-100123"]),
                needs_mention: false,
                senders: None,
            }),
            bots: list(&["9"]),
        },
        sessions: Some(SessionMode::Profile),
        busy: Some(BusyMode::Refuse),
        has_shared_threads: true,
        tools: Some(list(&["read_file", "search"])),
        is_untrusted: true,
        show: Show {
            tools: false,
            thinking: true,
            stream: Some(Duration::from_secs(2)),
        },
        stt_enabled: Some(true),
        tts_enabled: Some(false),
        ..ChannelSettings::new(
            id("tg"),
            ChannelKind::Telegram(TelegramSettings {
                token: SecretSource::File("/conf/secrets/bot".into()),
                api_base: "http://127.0.0.1:9".to_owned(),
            }),
        )
    };
    let webhook = WebhookSettings {
        secret: SecretSource::Environment("GH_SECRET".to_owned()),
        header: "x-sig".to_owned(),
        prefix: String::new(),
        timestamp_header: Some("x-time".to_owned()),
        delivery_header: "x-id".to_owned(),
        event_header: "x-event".to_owned(),
        events: list(&["push", "issues.opened"]),
        template: "{{ body.action }}".to_owned(),
        chat: "ops".to_owned(),
        role: SenderRole::Member,
    };
    let program = CommandSettings {
        argv: list(&["python3", "sms.py", "1"]),
    };
    let sms = ChannelSettings {
        access: AccessRules {
            groups: Some(GroupRules {
                allow: list(&["g"]),
                needs_mention: true,
                senders: Some(list(&["3"])),
            }),
            ..AccessRules::default()
        },
        ..ChannelSettings::new(id("sms"), ChannelKind::Command(program))
    };
    let stdio = ChannelSettings {
        is_enabled: false,
        ..ChannelSettings::new(id("stdio"), ChannelKind::Stdio)
    };
    let expected = Settings {
        listen: Some("[::]:80".parse().unwrap()),
        is_public: true,
        hosts: list(&["chat.example.org", "box:8080"]),
        origins: list(&["https://chat.example.org"]),
        trusted_proxies: vec!["10.0.0.1".parse().unwrap(), "::1".parse().unwrap()],
        tls: Some(TlsFiles {
            cert: "/conf/tls/cert.pem".into(),
            key: "/keys/key.pem".into(),
        }),
        turns: TurnLimits {
            max: 2,
            timeout: Duration::from_hours(1),
            drain: Duration::ZERO,
        },
        sessions: SessionMode::Sender,
        busy: BusyMode::Collect,
        on_restart: RestartMode::Quiet,
        approvals_to: Some(ChatRef {
            channel: id("tg"),
            chat: "1001".to_owned(),
            thread: None,
        }),
        inspect: InspectSettings {
            has_payloads: false,
            shows_all_chats: true,
            listen: None,
        },
        keep_env: vec!["OPENAI_API_KEY".to_owned()],
        links: vec![Link {
            name: "me".to_owned(),
            senders: vec![
                (id("tg"), "1001".to_owned()),
                (id("web"), "laptop".to_owned()),
            ],
        }],
        stt: None,
        tts: None,
        channels: vec![
            ChannelSettings::new(id("page"), ChannelKind::Web),
            stdio,
            telegram,
            ChannelSettings::new(id("hook"), ChannelKind::Webhook(webhook)),
            sms,
        ],
    };
    assert_eq!(settings, expected);
}

#[test]
fn a_file_adds_to_the_default_channel_or_replaces_it() {
    let names = |text: &str| {
        let channels = read(text).unwrap().channels;
        channels
            .iter()
            .map(|channel| format!("{} {}", channel.id, channel.kind.word()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names("channels: { http: {} }"), ["web web", "http http"]);
    assert_eq!(names("channels: { page: { kind: web } }"), ["page web"]);
    assert_eq!(names("channels: { web: { busy: refuse } }"), ["web web"]);
    assert_eq!(names("channels: { web: { kind: http } }"), ["web http"]);
    assert_eq!(
        names("listen: off\nchannels: { stdio: {} }"),
        ["stdio stdio"]
    );
}

// G8
#[test]
fn all_problems_are_reported_at_once_with_positions_and_suggestions() {
    let problems =
        read("busy: stear\nturns: { max: 0 }\nchanels: {}\nchannels:\n  tg: { kind: telgram }\n")
            .unwrap_err();
    let found: Vec<_> = problems
        .iter()
        .map(|problem| {
            let line = problem.position.unwrap().line;
            (line, problem.suggestion.as_deref())
        })
        .collect();
    assert_eq!(
        found,
        [
            (1, Some("steer")),
            (2, None),
            (3, Some("channels")),
            (5, Some("telegram")),
        ]
    );
}

const TG: &str = "channels: { tg: { kind: telegram, token_env: T, ";

// G69, G76
#[expect(clippy::too_many_lines, reason = "one table")]
#[test]
fn dangerous_and_impossible_settings_are_errors() {
    for (text, expected) in [
        (
            "listen: 0.0.0.0:7878",
            "other machines can reach `0.0.0.0:7878`",
        ),
        (
            "listen: 10.0.0.1:1\npublic: false",
            "other machines can reach",
        ),
        ("listen: 7878", "`listen` cannot be `7878`"),
        ("listen: localhost:1", "`listen` cannot be"),
        ("public: on", "`public` cannot be"),
        ("hosts: ['*']", "an item of `hosts` cannot be `*`"),
        ("origins: ['null']", "an item of `origins` cannot be `null`"),
        (
            "trusted_proxies: [proxy]",
            "an item of `trusted_proxies` cannot be `proxy`",
        ),
        ("tls: { cert: x }", "`tls` has no `key`"),
        ("turns: { timeout: 2d }", "`timeout` cannot be"),
        ("turns: { timeout: 25h }", "`timeout` cannot be"),
        ("speech: {}", "unknown key `speech`"),
        ("approvals_to: tg", "does not have the form `CHANNEL:ID`"),
        ("approvals_to: tg:1", "unknown channel `tg`"),
        (
            &format!("approvals_to: tg:1\n{TG} owners: ['2'] }} }}"),
            "not a direct chat with an owner",
        ),
        ("links: { me: [web:a, web:a] }", "`web:a` is linked twice"),
        (
            "links: { me: [web:a], you: [web:a] }",
            "`web:a` is linked twice",
        ),
        ("links: { Me: [] }", "`Me` cannot be the name of a link"),
        ("channels: [web]", "`channels` cannot be a list"),
        (
            "channels: { Tg: { kind: web } }",
            "`Tg` cannot be the name of a channel",
        ),
        ("channels: { tg: {} }", "the channel `tg` has no `kind`"),
        (
            "channels: { a: { kind: web }, b: { kind: web } }",
            "`a` and `b` are both of the kind `web`",
        ),
        (
            "channels: { stdio: {}, b: { kind: stdio } }",
            "are both of the kind `stdio`",
        ),
        (
            "listen: off\nchannels: { web: {} }",
            "the channel `web` needs the server",
        ),
        (
            "channels: { web: { dm: open, tools: [] } }",
            "a channel of the kind `web` has no `dm`",
        ),
        (
            "channels: { http: { token_env: T } }",
            "a channel of the kind `http` has no `token_env`",
        ),
        (
            &format!("{TG} owners: ['*'] }} }}"),
            "an item of `owners` cannot be `*`",
        ),
        (
            &format!("{TG} members: ['*'] }} }}"),
            "an item of `members` cannot be `*`",
        ),
        (
            &format!("{TG} dm: allow, members: ['*'] }} }}"),
            "an item of `members` cannot be `*`",
        ),
        (
            &format!("{TG} dm: open, tools: [], bots: ['*'] }} }}"),
            "an item of `bots` cannot be `*`",
        ),
        (
            &format!("{TG} groups: {{ allow: ['*'] }} }} }}"),
            "an item of `allow` cannot be `*`",
        ),
        (
            &format!("{TG} groups: {{ allow: ['1'], senders: ['*'] }} }} }}"),
            "an item of `senders` cannot be `*`",
        ),
        (
            &format!("{TG} groups: {{}} }} }}"),
            "`groups` has no `allow`",
        ),
        (
            &format!("{TG} tools: ['*'] }} }}"),
            "an item of `tools` cannot be `*`",
        ),
        (
            &format!("{TG} owners: [''] }} }}"),
            "an item of `owners` cannot be ``",
        ),
        (
            &format!("{TG} dm: open }} }}"),
            "`dm: open` admits everyone",
        ),
        (
            &format!("{TG} groups: {{ allow: ['1'], senders: any }} }} }}"),
            "`senders: any` admits everyone",
        ),
        (
            &format!("{TG} token_file: t }} }}"),
            "`token_file` cannot be combined with `token_env`",
        ),
        (
            &format!("{TG} api_base: 'http://example.org' }} }}"),
            "line 1: the value of `api_base` is not",
        ),
        (
            &format!("{TG} show: {{ stream: 100ms }} }} }}"),
            "`stream` cannot be",
        ),
        (
            "channels: { telegram: {} }",
            "the channel has no `token_env`",
        ),
        ("channels: { command: {} }", "the channel has no `argv`"),
        (
            "channels: { command: { argv: [] } }",
            "`argv` does not name a program",
        ),
        (
            "channels: { webhook: { secret_env: S, chat: a, template: b, role: owner } }",
            "`role` cannot be `owner`",
        ),
        (
            "channels: { webhook: { secret_env: S, chat: a } }",
            "the channel has no `template`",
        ),
        (
            "channels: { webhook: { secret_env: S, chat: a, template: b, header: 'x y' } }",
            "`header` cannot be `x y`",
        ),
    ] {
        let problems = read(text).unwrap_err();
        let messages: Vec<_> = problems
            .iter()
            .map(|problem| problem.message.as_str())
            .collect();
        let [message] = messages.as_slice() else {
            unreachable!("{text}: {messages:?}");
        };
        assert!(message.contains(expected), "{text}: {message}");
    }
}

// G82
#[test]
fn a_secret_in_the_file_is_an_error_that_does_not_show_it() {
    let secret = "123456:verysecret";
    for text in [
        format!("channels: {{ telegram: {{ token: '{secret}' }} }}"),
        format!("channels: {{ telegram: {{ bot_token: '{secret}' }} }}"),
        format!("channels: {{ telegram: {{ token_env: '{secret}' }} }}"),
        format!("channels: {{ webhook: {{ secret: '{secret}', chat: a, template: b }} }}"),
        format!("channels: {{ telegram: {{ token_env: T, api_base: 'https://a:{secret}@x' }} }}"),
    ] {
        let problems = read(&text).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        for problem in problems {
            assert!(
                problem.message.starts_with("line 1: "),
                "{}",
                problem.message
            );
            assert!(!problem.render(false).contains("verysecret"));
        }
    }
}

#[test]
fn the_example_of_the_reference_page_is_valid() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/gateway-settings.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, rest) = page.split_once("```yaml file=gateway.yaml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    assert_eq!(read(example).unwrap().channels.len(), 2);
}

#[test]
fn questions_are_asked_only_where_an_owner_can_answer() {
    let channels = "channels:
  http: { }
  stdio: { }
  off: { kind: telegram, token_env: T, owners: ['1'], enabled: false }
  tg: { kind: telegram, token_env: T, owners: ['1'] }
  sms: { kind: command, argv: [x], owners: ['1'], groups: { allow: ['g'], senders: [] } }
  quiet: { kind: command, argv: [x], dm: allow }
  hook: { kind: webhook, secret_env: S, template: x, chat: ops }
";
    for (place, expected) in [
        ("tg:1", None),
        ("tg:2", Some("is not a direct chat with an owner of `tg`")),
        ("off:1", Some("`off`, which is not enabled")),
        ("sms:any", None),
        ("sms:g", Some("is a group of `sms`")),
        ("quiet:any", Some("needs an owner of `quiet`")),
        ("hook:ops", Some("no one reads a webhook")),
        ("web:ada/main", None),
        ("web:ada", Some("`ada` is not a chat of the channel `web`")),
        ("http:ada/", Some("is not a chat of the channel `http`")),
        ("stdio:local/main", None),
        ("stdio:main", Some("is not a chat of the channel `stdio`")),
    ] {
        let found = read(&format!("approvals_to: {place}\n{channels}"));
        let Some(expected) = expected else {
            assert!(found.is_ok(), "{place}: {found:?}");
            continue;
        };
        let problems = found.unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].message.contains(expected), "{problems:?}");
        assert!(problems[0].hint.is_some(), "{place}");
        assert_eq!(problems[0].position.unwrap().line, 1, "{place}");
    }
}
