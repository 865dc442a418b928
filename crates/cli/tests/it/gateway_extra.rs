//! `tenterhook gateway doctor`, `service print`, `import` and `channel check`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use serde_json::Value;

use crate::stage::{Ran, Test};

const SETTINGS: &str = "../config/gateway.yaml";
const SCRIPT: &str = "turns: [{text: Hello from the agent., repeat: true}]";
const PAGE: &str = include_str!("../../../../docs/reference/channel-protocol.md");

fn gateway(args: &str) -> Test {
    Test::new().args(["gateway"]).args(args.split(' '))
}

/// Returns the level and the text of the checks of a kind.
fn checks(report: &Value, kind: &str) -> Vec<(String, String)> {
    let checks = report["checks"].as_array().unwrap().iter();
    let of_kind = checks.filter(|found| found["check"] == kind);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    of_kind
        .map(|found| (text(&found["level"]), text(&found["text"])))
        .collect()
}

#[test]
fn a_sound_gateway_has_no_problems_and_answers_a_message() {
    let ran = gateway("doctor --no-journal").script(SCRIPT).run();
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
    for line in [
        "ok      exposure: only this machine can reach 127.0.0.1:7878\n",
        "ok      access: channel `web` admits access tokens only\n",
        "ok      hooks: all hooks can be loaded\n",
        "ok      round trip: a message to a gateway with a scripted model was answered\n",
    ] {
        assert!(ran.stdout.contains(line), "{line} is not in {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("problem"), "{}", ran.stdout);
    // The trip leaves nothing behind.
    assert!(!ran.path("home/.local/share/tenterhook/gateway").exists());
}

// G70, G72
#[test]
fn the_doctor_reports_everything_at_once_with_a_next_step() {
    let test = gateway("doctor --no-journal --json --hooks broken.yaml")
        .file("broken.yaml", "hooks: [{evnt: pre_tool_use}]")
        .file(
            SETTINGS,
            "listen: 0.0.0.0:7878\npublic: true\nchannels:\n  tg: { kind: telegram, token_env: NO_SUCH_TOKEN, dm: allow }\n  \
             notes: { kind: command, argv: [x], dm: open, tools: [read_file] }\n",
        );
    let folder = test.home().join(".local/share/tenterhook/gateway");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    let ran = test.run();
    assert_eq!(ran.status, 3, "{}{}", ran.stdout, ran.stderr);
    let report = ran.json();
    assert_eq!(report["ok"], false);
    let found = |kind: &str, level: &str, text: &str| {
        let found = checks(&report, kind);
        let is_found = |(is, has): &(String, String)| is == level && has.contains(text);
        assert!(
            found.iter().any(is_found),
            "{kind} {level} {text}: {found:?}"
        );
    };
    found(
        "exposure",
        "warning",
        "other machines can reach 0.0.0.0:7878",
    );
    found("access", "warning", "channel `tg` admits no one");
    found("access", "warning", "(`dm: open`)");
    found("secrets", "problem", "`NO_SUCH_TOKEN` is not set");
    found("files", "problem", "(its mode is 0755)");
    found("hooks", "problem", "broken.yaml");
    found("round trip", "ok", "was answered");
    for check in report["checks"].as_array().unwrap() {
        assert_eq!(check["next"].is_null(), check["level"] == "ok", "{check}");
    }
}

#[test]
fn the_doctor_asks_the_gateway_that_runs() {
    let call = gateway("run --no-journal --listen 127.0.0.1:0").script(SCRIPT);
    let mut running = call.start();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut running.stdout(), &mut line).unwrap();
    let address = line.trim().strip_prefix("Listening on http://").unwrap();
    let output = running.beside(["gateway", "doctor", "--no-journal", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = format!("the gateway that runs answers, also at {address}");
    assert_eq!(checks(&report, "round trip"), [("ok".to_owned(), text)]);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn a_service_has_absolute_paths_and_the_options_of_run() {
    let ran = gateway("service print -- --model scripted:two\u{a0}words.yaml --listen off")
        .file(
            SETTINGS,
            "channels: { tg: { kind: telegram, token_env: BOT_TOKEN } }",
        )
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for line in [
        "Type=notify\n",
        "WorkingDirectory=[DIR]/work\n",
        "--gateway [DIR]/config/gateway.yaml --model \"scripted:two\u{a0}words.yaml\" --listen off\n",
        "# The channel `tg` needs BOT_TOKEN.\nEnvironmentFile=-[DIR]/config/gateway.env\n",
        "Environment=TENTERHOOK_CONFIG_DIR=[DIR]/config\n",
        "TimeoutStopSec=40\n",
    ] {
        assert!(ran.stdout.contains(line), "{line} is not in {}", ran.stdout);
    }
    let ran = gateway("service print -- --no-such-option x").run();
    assert_eq!(ran.refusal().1, 64, "{}", ran.stderr);
}

#[test]
fn a_service_manager_hears_when_the_gateway_is_ready_and_when_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_mins(1)))
        .unwrap();
    let heard = || {
        let mut bytes = [0; 64];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    for is_signalled in [true, false] {
        let running = gateway("run --no-journal --listen off")
            .script(SCRIPT)
            .variable("NOTIFY_SOCKET", path.to_str().unwrap())
            .start();
        assert_eq!(heard(), "READY=1");
        if is_signalled {
            running.signal("TERM");
        } else {
            running.beside(["gateway", "stop"]);
        }
        assert_eq!(heard(), "STOPPING=1");
        assert_eq!(running.finish().status, 0);
    }
}

#[test]
fn settings_of_operator_become_settings_that_are_valid() {
    let settings = r#"{"channels": {
        "telegram": {"enabled": true, "bot_token": "123:ABCDEF", "allow_from": [1001]},
        "websocket": {"enabled": true, "port": 9000},
        "slack": {"enabled": true}
    }, "tts": {"enabled": true}}"#;
    let ran = gateway("import settings.json")
        .file("settings.json", settings)
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(!ran.stdout.contains("ABCDEF"), "{}", ran.stdout);
    let imported = ran.stdout.clone();
    let ran = ran
        .again(["gateway", "check", "--no-journal", "--gateway", "out.yaml"])
        .file("out.yaml", &imported)
        .variable("TELEGRAM_BOT_TOKEN", "123456:a-token-of-a-bot")
        .variable("OPENAI_API_KEY", "a-key-that-is-not-used")
        .run();
    let expected = "text to speech by the service `https://api.openai.com/v1`\n\
                    The settings are valid: 2 of 2 channels enabled.\n";
    let warning = "warning: in the channel `telegram`, people other than you can talk to an agent whose `shell` runs \
                   as you: it can read your files and give itself your rights; list other `tools`, or set \
                   `untrusted: true`\n";
    assert_eq!(ran.all(), (expected, warning, 0), "{imported}");
    let ran = gateway("import settings.json")
        .file("settings.json", r#"{"channels": {"slack": 1}, "stt": 2}"#)
        .run();
    let (stderr, status) = ran.refusal();
    assert_eq!(status, 3);
    for problem in ["`channels.slack`", "`stt`"] {
        assert!(stderr.contains(problem), "{stderr}");
    }
}

/// Checks a channel in Python. Returns the texts of the steps that are wrong.
fn check_channel(script: &str) -> (Ran, Vec<String>) {
    let ran = gateway("channel check --json -- python3 channel.py .")
        .file("channel.py", script)
        .file("inbox/1.txt", "Hi")
        .file("outbox/none", "")
        .run();
    let report = ran.json();
    let steps = report["steps"].as_array().unwrap();
    let wrong = steps.iter().filter(|step| !step["problem"].is_null());
    let wrong: Vec<String> = wrong.map(ToString::to_string).collect();
    assert_eq!(report["ok"], wrong.is_empty());
    assert_eq!(ran.status, if wrong.is_empty() { 0 } else { 3 });
    (ran, wrong)
}

#[test]
fn the_example_of_the_channel_protocol_conforms() {
    let (_, code) = PAGE.split_once("```python\n").unwrap();
    let example = code.split_once("```").unwrap().0;
    let (ran, wrong) = check_channel(example);
    assert_eq!(wrong, [""; 0]);
    assert_eq!(ran.json()["steps"].as_array().unwrap().len(), 11);
    // The message stays with the program.
    assert_eq!(ran.file("inbox/1.txt"), "Hi");

    let twice = example.replace(
        r#"{"message_ids": [name]}"#,
        r#"{"message_ids": [str(time.time())]}"#,
    );
    let invalid = example.replace(r#""sender": {"id": "me"}"#, r#""sender": "me""#);
    let unknown = example.replace("is_idempotent", "idempotent");
    let chatty = example.replace(
        "for line in sys.stdin:",
        "print('starting', flush=True)\nfor line in sys.stdin:",
    );
    let stays = example.replace("        break", "        time.sleep(600)");
    for (script, step, problem) in [
        (twice, "with the same `key`", "`is_idempotent` is true"),
        (
            invalid,
            "messages are valid",
            "invalid parameters of `message`",
        ),
        (unknown, "`initialize`", "unknown capability `idempotent`"),
        (chatty, "messages are valid", "is not a message"),
        (stays, "ends after `shutdown`", "still runs 5 seconds later"),
    ] {
        let (_, wrong) = check_channel(&script);
        let [wrong] = &*wrong else {
            panic!("{problem}: {wrong:?}");
        };
        assert!(wrong.contains(step) && wrong.contains(problem), "{wrong}");
    }
}

#[test]
fn a_program_that_is_no_channel_fails_at_its_first_step() {
    for (command, problem) in [
        ("channel check -- no-such-program", "it starts"),
        ("channel check -- true", "the program ended"),
    ] {
        let ran = gateway(command).run();
        assert_eq!(ran.status, 3, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("wrong "), "{}", ran.stdout);
        assert!(ran.stdout.contains(problem), "{}", ran.stdout);
    }
}
