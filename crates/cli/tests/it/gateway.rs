//! `tenterhook gateway`: settings, commands with and without a gateway that runs, and its start and end.

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::TcpStream;

use crate::chat_client::ChatClient;
use crate::stage::{Ran, Running, Test, eventually};

const SETTINGS: &str = "../config/gateway.yaml";
const SCRIPT: &str = "turns: [{text: Hello from the agent., repeat: true}]";

fn gateway(args: &str) -> Test {
    Test::new().args(["gateway"]).args(args.split(' '))
}

/// Starts a gateway on a free port, and waits until it says where it listens.
fn start(args: &str) -> (Running, String) {
    let call = gateway("run --no-journal --listen 127.0.0.1:0")
        .args(args.split_whitespace())
        .script(SCRIPT);
    let mut running = call.start();
    let first = running.stdout().lines().next();
    let Some(Ok(line)) = first else {
        panic!("it did not start: {}", running.stderr());
    };
    let address = line.strip_prefix("Listening on ").unwrap().to_owned();
    (running, address)
}

fn beside(running: &Running, args: &str) -> (String, String, Option<i32>) {
    let output = running.beside(["gateway"].into_iter().chain(args.split(' ')));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        text(output.stdout),
        text(output.stderr),
        output.status.code(),
    )
}

// G8
#[test]
fn every_mistake_in_the_settings_is_shown_with_its_place_and_nothing_starts() {
    let settings =
        "lissen: off\nsessions: chats\nchannels:\n  tg: { kind: telegrm }\n  Web: { kind: web }\n";
    for command in ["check", "run --model scripted:script.yaml"] {
        let ran = gateway(command)
            .file(SETTINGS, settings)
            .file("script.yaml", SCRIPT)
            .run();
        let (stderr, status) = ran.refusal();
        assert_eq!(status, 3, "{stderr}");
        for place in ["1:1", "2:11", "4:15", "5:3"] {
            let at = format!("gateway.yaml:{place}");
            assert!(stderr.contains(&at), "{at} is not in {stderr}");
        }
        assert!(!ran.path("home/.local/share/tenterhook/gateway").exists());
    }
}

// G79
#[test]
fn settings_of_a_project_are_ignored_with_a_warning() {
    let ran = gateway("check --no-journal")
        .file(".tenterhook/gateway.yaml", "channels: { broken: yes }")
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(
        ran.stdout,
        "The settings are valid: 1 of 1 channel enabled.\n"
    );
    let warning = "warning: `[DIR]/work/.tenterhook/gateway.yaml` is ignored";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
}

#[test]
fn settings_behind_a_link_whose_target_is_gone_are_an_error() {
    let test = gateway("check --no-journal").file(SETTINGS, "{}");
    let settings = test.work().join(SETTINGS);
    std::fs::remove_file(&settings).unwrap();
    std::os::unix::fs::symlink("gone.yaml", &settings).unwrap();
    let ran = test.run();
    let (stderr, status) = ran.refusal();
    assert_eq!(status, 3, "{stderr}");
    assert!(
        stderr.contains("points to `gone.yaml`, which does not exist"),
        "{stderr}"
    );
}

#[test]
fn settings_that_are_a_named_pipe_are_an_error_and_nothing_waits_for_its_writer() {
    let test = gateway("check --no-journal").file(SETTINGS, "{}");
    let settings = test.work().join(SETTINGS);
    std::fs::remove_file(&settings).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&settings).status();
    assert!(made.unwrap().success());
    let ran = test.run();
    let (stderr, status) = ran.refusal();
    assert_eq!(status, 3, "{stderr}");
    for part in [
        "cannot read the settings",
        "it is not a regular file",
        "--gateway FILE",
    ] {
        assert!(stderr.contains(part), "{part} is not in {stderr}");
    }
}

// G69
#[test]
fn an_address_that_other_machines_reach_needs_public_settings() {
    let ran = gateway("run --no-journal --listen 0.0.0.0:0")
        .script(SCRIPT)
        .run();
    let (stderr, status) = ran.refusal();
    assert_eq!(status, 3, "{stderr}");
    assert!(stderr.contains("public: true"), "{stderr}");
}

#[test]
fn an_unknown_tool_in_the_settings_is_an_error() {
    let ran = gateway("check --no-journal")
        .file(
            SETTINGS,
            "channels: { web: { kind: web, tools: [reed_file, send] } }",
        )
        .run();
    let (stderr, status) = ran.refusal();
    assert_eq!(status, 3, "{stderr}");
    let problem = "channel `web`: unknown tool `reed_file`; did you mean `read_file`?";
    assert!(stderr.contains(problem), "{stderr}");
}

#[test]
fn a_secret_that_is_missing_is_an_error() {
    let settings = "channels: { tg: { kind: telegram, token_env: NO_SUCH_TOKEN } }";
    for command in ["check --no-journal", "run --no-journal --listen off"] {
        let ran = gateway(command)
            .file(SETTINGS, settings)
            .script(SCRIPT)
            .run();
        let (stderr, status) = ran.refusal();
        assert_eq!(status, 3, "{stderr}");
        assert!(stderr.contains("`NO_SUCH_TOKEN`"), "{stderr}");
    }
}

#[test]
fn check_and_doctor_read_the_file_with_secrets_that_the_service_reads() {
    let settings = "channels: { tg: { kind: telegram, token_env: FILE_TOKEN } }";
    let secrets = SETTINGS.replace("gateway.yaml", "gateway.env");
    let with = |command: &str, text: &str, mode: u32| {
        gateway(&format!("{command} --no-journal"))
            .file(SETTINGS, settings)
            .file(&secrets, text)
            .mode(&secrets, mode)
            .script(SCRIPT)
            .run()
    };
    let right = "# the bot\nFILE_TOKEN='1001:a-token-of-a-bot'\n";
    for command in ["check", "doctor"] {
        let ran = with(command, right, 0o600);
        assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
        for (text, mode, part) in [
            ("export FILE_TOKEN=1001:secret", 0o600, "line 1: expected"),
            (right, 0o644, "others can read it"),
        ] {
            let ran = with(command, text, mode);
            let (stderr, status) = ran.refusal();
            assert_eq!(status, 3, "{stderr}");
            assert!(
                stderr.contains(part) && !stderr.contains("1001"),
                "{stderr}"
            );
        }
    }
}

#[test]
fn hooks_that_cannot_be_loaded_stop_the_start() {
    let ran = gateway("run --no-journal --hooks broken.yaml")
        .script(SCRIPT)
        .file("broken.yaml", "hooks: [{evnt: pre_tool_use}]")
        .run();
    let (stderr, status) = ran.refusal();
    assert_eq!(status, 3, "{stderr}");
    assert!(stderr.contains("broken.yaml"), "{stderr}");
}

#[test]
fn commands_without_a_gateway_name_the_next_step() {
    for command in [
        "status",
        "stop",
        "open",
        "channels",
        "chats",
        "send web:a Hi",
    ] {
        let ran = gateway(command).run();
        let (stderr, status) = ran.refusal();
        assert_eq!(status, 1, "{stderr}");
        assert_eq!(
            stderr,
            "error: no gateway runs on this state folder\nhint: start a gateway with `tenterhook gateway run`\n"
        );
    }
}

#[test]
fn tokens_are_managed_without_a_gateway() {
    let ran = gateway("token create laptop --user ada --scope chat --expires 30d").run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let secret = ran.stdout.trim().to_owned();
    assert!(secret.starts_with("thg_"), "{secret}");
    let ran = ran.again(["gateway", "token", "list", "--json"]).run();
    let listed = ran.json();
    assert_eq!(listed["tokens"][0]["user"], "ada");
    assert!(!listed.to_string().contains(&secret));
    let ran = ran.again(["gateway", "token", "revoke", "laptop"]).run();
    assert_eq!(ran.all(), ("Revoked `laptop`.\n", "", 0));
    let ran = ran.again(["gateway", "token", "list"]).run();
    assert_eq!(ran.all(), ("No tokens.\n", "", 0));
}

#[test]
fn an_agent_cannot_decide_who_talks_to_it() {
    for command in [
        "token create mine",
        "token revoke mine",
        "pair approve tg ABCDEFGH",
        "pair deny tg ABCDEFGH",
        "pair revoke tg 1",
        "open",
        "stop",
        "send web:a Hi",
        "channels restart web",
    ] {
        let ran = gateway(command).variable("TENTERHOOK_AGENT", "1").run();
        let (stderr, status) = ran.refusal();
        assert_eq!(status, 64, "{command}: {stderr}");
        let refusal = "a program that Tenterhook runs cannot ";
        assert!(stderr.contains(refusal), "{command}: {stderr}");
    }
}

// G7
#[test]
fn a_second_gateway_on_the_same_state_is_refused() {
    let (running, _) = start("");
    let (_, stderr, status) = beside(
        &running,
        "run --no-journal --listen off --model scripted:script.yaml",
    );
    assert_eq!(status, Some(5), "{stderr}");
    assert!(stderr.contains("another gateway"), "{stderr}");
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn commands_speak_to_the_gateway_that_runs() {
    let (running, address) = start("");
    let (status, stderr, _) = beside(&running, "status");
    assert!(
        address.ends_with(
            status
                .lines()
                .next()
                .unwrap()
                .trim_start_matches("Listening on ")
                .trim_end_matches('.')
        ),
        "{status}{stderr}"
    );
    eventually(|| {
        let (channels, _, _) = beside(&running, "channels --json");
        channels.contains("\"up\"").then_some(())
    });
    let (created, _, _) = beside(&running, "token create laptop");
    assert!(created.starts_with("thg_"), "{created}");
    let (opened, _, _) = beside(&running, "open --user ada");
    assert!(opened.starts_with(&format!("{address}/#code=")), "{opened}");
    let (chats, _, _) = beside(&running, "chats");
    assert_eq!(chats, "No chats.\n");
    let (_, stderr, status) = beside(&running, "channels restart nope");
    assert_eq!(status, Some(1), "{stderr}");
    let (stopping, _, _) = beside(&running, "stop");
    assert_eq!(stopping, "The gateway has stopped.\n");
    let ran = running.finish();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn a_gateway_ends_after_the_time_of_its_option() {
    let (running, _) = start("--for 200ms");
    assert_eq!(running.finish().status, 0);
}

// G63
#[test]
fn all_turns_of_a_pipe_are_done_at_its_end() {
    let ran: Ran = {
        let call = gateway("run --no-journal --stdio --listen off").script(SCRIPT);
        let (running, mut stdin) = call.start_with_open_stdin();
        writeln!(stdin, r#"{{"type":"hello","protocol":1}}"#).unwrap();
        for number in 0..100 {
            writeln!(
                stdin,
                r#"{{"type":"message","chat":"c{number}","message_id":"{number}","text":"Hi"}}"#
            )
            .unwrap();
        }
        drop(stdin);
        running.finish()
    };
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let done = ran
        .stdout
        .lines()
        .filter(|line| line.contains(r#""type":"done""#));
    assert_eq!(done.count(), 100, "{}", ran.stdout);
}

/// Pipes one message into a gateway. Returns its frames.
fn pipe(call: Test, message_id: &str) -> Ran {
    let (running, mut stdin) = call.start_with_open_stdin();
    writeln!(stdin, r#"{{"type":"hello","protocol":1}}"#).unwrap();
    writeln!(
        stdin,
        r#"{{"type":"message","chat":"a","message_id":"{message_id}","text":"Hi"}}"#
    )
    .unwrap();
    drop(stdin);
    running.finish()
}

#[test]
fn a_chat_continues_its_session_after_a_restart() {
    let args = "run --no-journal --stdio --listen off --session-dir sessions";
    let ran = pipe(gateway(args).script(SCRIPT), "1");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let again = ran.again(["gateway"]).args(args.split(' ')).script(SCRIPT);
    let ran = pipe(again, "2");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let listed = ran
        .again(["sessions", "list", "--session-dir", "sessions", "--json"])
        .run()
        .json();
    let sessions = listed["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 1, "{listed}");
    assert_eq!(sessions[0]["messages"], 4, "{listed}");
}

#[test]
fn a_channel_has_only_its_tools_and_hooks_guard_its_chats() {
    let script = "turns:\n\
        - tool_calls: [{name: write_file, arguments: {path: a, content: b}}]\n\
        - tool_calls: [{name: read_file, arguments: {path: secret}}]\n\
        - text: Done.\n";
    let ran = pipe(
        gateway("run --no-journal --stdio --listen off --allow write_file --allow read_file")
            .script(script)
            .hooks("hooks: [{event: pre_tool_use, matcher: read_file, command: \"touch denied; echo no >&2; exit 2\"}]")
            .file("secret", "the secret")
            .file(SETTINGS, "channels: { in: { kind: stdio, tools: [read_file] } }"),
        "1",
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(!ran.path("work/a").exists());
    assert!(ran.path("work/denied").exists());
    assert!(!ran.stdout.contains("the secret"), "{}", ran.stdout);
    assert!(ran.stdout.contains("Done."), "{}", ran.stdout);
}

#[test]
fn an_untrusted_channel_cannot_write() {
    let script = "turns:\n\
        - tool_calls: [{name: write_file, arguments: {path: a, content: b}}]\n\
        - text: Done.\n";
    for is_untrusted in [false, true] {
        let settings = format!("channels: {{ in: {{ kind: stdio, untrusted: {is_untrusted} }} }}");
        let ran = pipe(
            gateway("run --no-journal --stdio --listen off --allow write_file")
                .script(script)
                .file(SETTINGS, &settings),
            "1",
        );
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert_eq!(ran.path("work/a").exists(), !is_untrusted, "{}", ran.stdout);
        assert!(ran.stdout.contains("Done."), "{}", ran.stdout);
    }
}

#[test]
fn the_shell_of_the_agent_does_not_have_the_secrets_of_channels() {
    let script = "turns:\n\
        - tool_calls: [{name: shell, arguments: {cmd: 'echo \"[$HOOK_KEY|$OTHER]\" > seen'}}]\n\
        - text: Done.\n";
    let settings = "channels: { hook: { kind: webhook, secret_env: HOOK_KEY, template: x, chat: ops, enabled: false } }";
    let ran = pipe(
        gateway("run --no-journal --stdio --listen off --allow shell")
            .script(script)
            .variable("HOOK_KEY", "a-secret-of-more-than-thirty-two-characters")
            .variable("OTHER", "kept")
            .file(SETTINGS, settings),
        "1",
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let seen = std::fs::read_to_string(ran.path("work/seen")).unwrap();
    assert_eq!(seen, "[|kept]\n", "{}", ran.stdout);
}

#[test]
fn tools_and_hooks_do_not_inherit_the_keys_of_models_unless_the_settings_keep_them() {
    let script = "turns:\n\
        - tool_calls: [{name: shell, arguments: {cmd: 'echo \"[$OPENAI_API_KEY|$CORP_KEY|$OTHER]\" > seen'}}]\n\
        - text: Done.\n";
    let hooks = "hooks: [{event: turn_end, command: 'echo \"[$OPENAI_API_KEY|$CORP_KEY|$OTHER]\" > heard'}]";
    let models = "providers: { corp: { service: openai, base_url: 'http://127.0.0.1:1', key_env: CORP_KEY } }";
    for (kept, expected) in [
        ("", "[||kept]\n"),
        ("keep_env: [CORP_KEY]\n", "[|two|kept]\n"),
    ] {
        let settings = format!("{kept}channels: {{ web: {{ enabled: false }} }}");
        let call =
            gateway("run --no-journal --stdio --listen off --allow shell --hooks hooks.yaml")
                .script(script)
                .file("hooks.yaml", hooks)
                .file("../config/models.yaml", models)
                .file(SETTINGS, &settings)
                .variable("OPENAI_API_KEY", "one")
                .variable("CORP_KEY", "two")
                .variable("OTHER", "kept");
        let ran = pipe(call, "1");
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        for file in ["work/seen", "work/heard"] {
            let seen = std::fs::read_to_string(ran.path(file)).unwrap();
            assert_eq!(seen, expected, "{file}");
        }
    }
}

#[test]
fn check_warns_of_a_shell_that_other_people_can_reach() {
    let channel = |more: &str| {
        format!("channels: {{ notes: {{ kind: command, argv: [cat], members: [\"7\"]{more} }} }}")
    };
    for (more, is_warned) in [
        ("", true),
        (", tools: [search]", false),
        (", untrusted: true", false),
    ] {
        let ran = gateway("check --no-journal")
            .file(SETTINGS, &channel(more))
            .run();
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        let warned = ran
            .stderr
            .contains("in the channel `notes`, people other than you");
        assert_eq!(warned, is_warned, "{more}: {}", ran.stderr);
    }
}

/// Speaks to the control socket without the commands. Prints the methods that the gateway carries out.
const TALK: &str = r#"
import socket
s = socket.socket(socket.AF_UNIX)
s.connect("../home/.local/share/tenterhook/gateway/control.sock")
answers = s.makefile()
for method in ["status", "token.create", "pair.approve", "open", "send", "channels.restart", "stop"]:
    request = '{"jsonrpc":"2.0","id":1,"method":"%s","params":{}}' % method
    s.sendall(request.encode() + b"\n")
    if "your own terminal" not in answers.readline():
        print(method)
"#;

#[cfg(target_os = "linux")]
#[test]
fn the_shell_of_the_agent_cannot_speak_to_the_control_socket_itself() {
    let script = "turns:\n\
        - tool_calls: [{name: shell, arguments: {cmd: 'python3 talk.py > child'}}]\n\
        - tool_calls: [{name: shell, arguments: {cmd: 'env -i PATH=\"$PATH\" python3 talk.py > bare'}}]\n\
        - tool_calls: [{name: shell, arguments: {cmd: '(setsid sh -c \"python3 talk.py > part; mv part orphan\" &); until test -e orphan; do sleep 0.05; done'}}]\n\
        - text: Done.\n";
    let call = gateway("run --no-journal --stdio --listen off --allow shell");
    let ran = pipe(call.script(script).file("talk.py", TALK), "1");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("Done."), "{}", ran.stdout);
    for way in ["child", "bare", "orphan"] {
        let done = std::fs::read_to_string(ran.path(&format!("work/{way}"))).unwrap();
        assert_eq!(done, "status\n", "{way}");
    }
}

#[test]
fn a_token_needs_the_number_that_only_its_command_shows_once_an_owner_was_there() {
    let test = gateway("run --no-journal --listen 127.0.0.1:0");
    let (running, owner) = ChatClient::start_with(test.script(SCRIPT), "channels: { http: {} }");
    // No owner watches a chat, so no one can be asked.
    let (token, stderr, _) = beside(&running, "token create other --scope chat");
    assert_eq!(token, "");
    assert!(stderr.contains("an owner has to confirm this"), "{stderr}");
    let args = ["phone", "--user", "ada", "--scope", "chat"];
    let (token, stderr) = owner.create_token(&running, &args, |number, question| {
        let title = question["title"].as_str().unwrap();
        let expected = "an access token `phone` for `ada` with the rights chat.";
        assert!(title.contains(expected), "{title}");
        let options = question["options"].as_array().unwrap();
        let wrong = options.iter().find(|option| **option != number).unwrap();
        wrong.as_str().unwrap().to_owned()
    });
    assert_eq!(token, "", "{stderr}");
    assert!(stderr.contains("no owner confirmed the number"), "{stderr}");
    let (token, stderr) = owner.create_token(&running, &args, |number, _| number.to_owned());
    assert!(token.starts_with("thg_"), "{stderr}");
    let (token, stderr, _) = beside(&running, "token create x --user ada --scope admin");
    assert_eq!(token, "");
    assert!(!stderr.is_empty());
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

/// Runs a command in a process that has left the shell, with a terminal of its own, until it ends or waits for an owner.
const DETACH: &str = r#"
import os, pty, signal, sys
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.environ.pop("TENTERHOOK_AGENT", None)
for number, words in enumerate(["token create mine --scope admin", "open", "pair approve web ABCDEFGH --role owner"]):
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.argv[1], [sys.argv[1], "gateway"] + words.split())
    shown = b""
    while b"Choose the number" not in shown:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with open("shown", "ab") as file:
        file.write(shown)
os.rename("shown", "done")
"#;

#[cfg(target_os = "linux")]
#[test]
fn a_double_fork_with_its_own_terminal_gets_no_rights_from_the_agents_shell() {
    let script = format!(
        "turns:\n\
         - tool_calls: [{{name: shell, arguments: {{cmd: 'python3 detach.py {} & until test -e done; do sleep 0.05; done'}}}}]\n\
         - text: Done.\n",
        env!("CARGO_BIN_EXE_tenterhook")
    );
    let call = gateway("run --no-journal --stdio --listen off --allow shell");
    let ran = pipe(call.script(&script).file("detach.py", DETACH), "1");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("Done."), "{}", ran.stdout);
    let shown = std::fs::read(ran.path("work/done")).unwrap();
    let shown = String::from_utf8_lossy(&shown);
    assert!(
        !shown.contains("thg_") && !shown.contains("#code="),
        "{shown}"
    );
    assert!(!shown.contains("Admitted"), "{shown}");
}

#[test]
fn a_request_that_is_repeated_with_its_key_does_not_count_against_the_rate() {
    let call = gateway("run --no-journal --listen 127.0.0.1:0").script(SCRIPT);
    let mut running = call.file(SETTINGS, "channels: { http: {} }").start();
    let line = running.stdout().lines().next().unwrap().unwrap();
    let address = line
        .strip_prefix("Listening on http://")
        .unwrap()
        .to_owned();
    let (secret, stderr, _) = beside(&running, "token create laptop");
    let secret = secret.trim();
    assert!(secret.starts_with("thg_"), "{stderr}");
    let post = |key: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        let body = r#"{"text":"Hi"}"#;
        write!(
            stream,
            "POST /v1/chats/a/messages HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             authorization: Bearer {secret}\r\nprefer: respond-async\r\nidempotency-key: {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    eventually(|| (post("same") == "202").then_some(()));
    for _ in 0..20 {
        assert_eq!(post("same"), "202");
    }
    for number in 0..9 {
        assert_eq!(post(&number.to_string()), "202");
    }
    let more = (0..5).map(|number| post(&format!("more {number}").replace(' ', "-")));
    assert!(more.collect::<Vec<_>>().contains(&"429".to_owned()));
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn the_file_tools_of_the_agent_do_not_write_the_state_of_the_gateway() {
    let state = "../home/.local/share/tenterhook/gateway";
    let script = format!(
        "turns:\n\
         - tool_calls: [{{name: write_file, arguments: {{path: {state}/planted, content: b}}}}]\n\
         - tool_calls: [{{name: write_file, arguments: {{path: {state}/media/planted, content: b}}}}]\n\
         - text: Done.\n"
    );
    let call = gateway("run --no-journal --stdio --listen off --allow write_file");
    let ran = pipe(call.script(&script), "1");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("Done."), "{}", ran.stdout);
    let state = ran.path("home/.local/share/tenterhook/gateway");
    assert!(state.join("gateway.redb").exists());
    assert!(!state.join("planted").exists() && !state.join("media/planted").exists());
}
