//! `tenterhook inspect`, `tenterhook run --inspect` and the inspector of the gateway.

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::stage::{Ran, Running, Test, eventually, json_lines};

/// A browser that has opened a link.
struct Browser {
    address: String,
    cookie: String,
    key: String,
}

fn send(address: &str, head: &str, body: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "{head}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let is_chunked = head.to_ascii_lowercase().contains("chunked");
    let body = if is_chunked {
        joined(body)
    } else {
        body.to_owned()
    };
    (status, head.to_owned(), body)
}

/// Joins the chunks of a body.
fn joined(mut rest: &str) -> String {
    let mut joined = String::new();
    while let Some((size, tail)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        let (chunk, tail) = tail.split_at(size);
        joined.push_str(chunk);
        rest = tail.trim_start_matches("\r\n");
    }
    joined
}

impl Browser {
    /// Opens the link in a line.
    fn open(message: &str) -> Self {
        let mut words = message.split_whitespace();
        let link = words.find_map(|word| word.strip_prefix("http://"));
        let link = link.and_then(|link| link.split_once("/inspect/#code="));
        let Some((address, code)) = link else {
            panic!("no link: {message}");
        };
        let head = format!(
            "POST /v1/login HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\nx-tenterhook: 1"
        );
        let (status, head, body) = send(address, &head, &json!({ "code": code }).to_string());
        assert_eq!(status, 200, "{body}");
        let cookie = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let is_cookie = name.eq_ignore_ascii_case("set-cookie");
            value.split(';').next().filter(|_| is_cookie)
        });
        let cookie = cookie.unwrap();
        let answer: Value = serde_json::from_str(&body).unwrap();
        Self {
            address: address.to_owned(),
            cookie: cookie.to_owned(),
            key: answer["key"].as_str().unwrap().to_owned(),
        }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let Self {
            address,
            cookie,
            key,
        } = self;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\n\
             cookie: {cookie}\r\nx-tenterhook: {key}"
        );
        let (status, _, body) = send(address, &head, body);
        (status, body)
    }

    fn get(&self, path: &str) -> String {
        let (status, body) = self.ask("GET", path, "");
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path)).unwrap()
    }

    fn records(&self) -> Vec<Value> {
        json_lines(&self.get("/v1/inspect/records"))
    }
}

/// Two dispatches with one hook each, in a journal.
fn with_journal() -> Ran {
    let hooks = "hooks: [{event: turn_start, name: first, command: 'true'}]";
    let fire = ["fire", "turn_start", "--journal", "a.jsonl"];
    let ran = Test::new().args(fire).hooks(hooks).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let ran = ran.again(fire).hooks(hooks).run();
    assert_eq!(ran.lines("a.jsonl").len(), 4);
    ran
}

#[test]
fn a_journal_is_shown_on_a_page() {
    let mut running = with_journal().again(["inspect", "a.jsonl"]).start();
    let line = running.stdout().lines().next().unwrap().unwrap();
    let browser = Browser::open(&line);
    let records = browser.records();
    let kinds: Vec<&str> = records
        .iter()
        .map(|it| it["record"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["run", "dispatch", "run", "dispatch"]);
    let source = browser.json("/v1/inspect/source");
    assert_eq!(source["kind"], "files");
    assert_eq!(source["files"], json!(["a.jsonl"]));
    assert_eq!(
        (&source["live"], &source["payloads"]),
        (&json!(false), &json!(false))
    );
    let id = records[0]["event_id"].as_str().unwrap();
    let (status, _) = browser.ask("GET", &format!("/v1/inspect/dispatches/{id}"), "");
    assert_eq!(status, 404);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn journals_are_exported_as_a_page_and_as_a_journal() {
    let ran = with_journal();
    let ran = ran
        .again(["inspect", "a.jsonl", "--export", "all.html"])
        .run();
    assert_eq!(ran.all(), ("Wrote 4 records to `all.html`.\n", "", 0));
    let page = ran.file("all.html");
    let (_, records) = page.split_once("id=\"records\">\n").unwrap();
    let (records, _) = records.split_once("</script>").unwrap();
    assert_eq!(json_lines(records), ran.lines("a.jsonl"));
    let args = ["inspect", "a.jsonl", "a.jsonl", "--export", "all.jsonl"];
    let ran = ran.again(args).run();
    assert_eq!(ran.file("all.jsonl"), ran.file("a.jsonl"));
    assert!(
        ran.stderr.contains("is given more than once"),
        "{}",
        ran.stderr
    );
}

#[test]
fn todays_journal_is_the_default() {
    let refused = Test::new().args(["inspect"]).run();
    let (stderr, status) = refused.refusal();
    assert!(stderr.contains("nothing was recorded today"), "{stderr}");
    assert_eq!(status, 1);
    let hooks = "hooks: [{event: turn_start, command: 'true'}]";
    let ran = refused.again(["fire", "turn_start"]).hooks(hooks).run();
    let ran = ran.again(["inspect", "--export", "today.jsonl"]).run();
    assert_eq!(ran.lines("today.jsonl").len(), 2, "{}", ran.stderr);
}

#[test]
fn what_is_not_a_journal_is_refused() {
    let test = Test::new().file("folder/inside", "");
    let made = std::process::Command::new("mkfifo")
        .arg(test.work().join("pipe"))
        .status();
    assert!(made.unwrap().success());
    let mut ran = test.args(["inspect", "missing.jsonl"]).run();
    let table: [(&[&str], &str, i32); 7] = [
        (&["missing.jsonl"], "hint: check the name, or run", 1),
        (
            &["missing.jsonl"],
            "cannot read the journal `missing.jsonl`",
            1,
        ),
        (&["folder"], "`folder` is a folder, expected a journal", 1),
        (&["pipe"], "`pipe` is a FIFO, expected a journal", 1),
        (
            &["/dev/null"],
            "`/dev/null` is a device, expected a journal",
            1,
        ),
        (&["--export", "a.txt"], "`.html` or `.jsonl`", 64),
        (&["--listen", "0.0.0.0:0"], "an address of this machine", 64),
    ];
    for (args, expected, exit) in table {
        ran = ran.again(["inspect"]).args(args.iter().copied()).run();
        let (stderr, status) = ran.refusal();
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
        assert_eq!(status, exit, "{args:?}");
    }
}

#[test]
fn lines_that_cannot_be_read_are_counted() {
    let ran = with_journal();
    let journal = ran.file("a.jsonl");
    let (torn, _) = journal.split_at(journal.len() - 20);
    let torn = format!("garbage\n{torn}");
    let test = ran.again(["inspect", "torn.jsonl", "empty.jsonl"]);
    let test = test.file("torn.jsonl", &torn).file("empty.jsonl", "");
    let ran = test.args(["--export", "all.jsonl"]).run();
    assert!(
        ran.stderr.contains("2 lines of the journal cannot be read"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.lines("all.jsonl").len(), 3);
}

const SCRIPT: &str = "turns:\n\
    - tool_calls: [{name: shell, arguments: {cmd: echo original}}]\n\
    - text: Done.\n";

const HOOKS: &str = r#"hooks:
  - event: pre_tool_use
    name: first
    phase: transform
    command: |
      echo '{"updated_input": {"cmd": "echo one"}}'; echo a warning >&2
  - event: pre_tool_use
    name: second
    phase: transform
    command: |
      echo '{"updated_input": {"cmd": "echo two"}}'
  - event: pre_tool_use
    name: broken
    phase: guard
    on_error: warn
    command: exit 7
"#;

/// Starts an inspected run that reads prompts, and runs one. Returns its browser.
fn inspected_run() -> (Running, std::process::ChildStdin, Browser) {
    let call = Test::new().args([
        "run",
        "--inspect",
        "--yes",
        "--journal",
        "a.jsonl",
        "--no-session",
    ]);
    let (mut running, mut stdin) = call.hooks(HOOKS).script(SCRIPT).start_with_open_stdin();
    let browser = Browser::open(&running.next_stderr_line());
    writeln!(stdin, "go").unwrap();
    stdin.flush().unwrap();
    (running, stdin, browser)
}

fn dispatch_of<'a>(records: &'a [Value], event: &str) -> Option<&'a Value> {
    let mut records = records.iter();
    records.find(|record| record["record"] == "dispatch" && record["event"] == event)
}

// I1, I2, I3
#[test]
fn a_run_is_inspected_while_it_works() {
    let (running, stdin, browser) = inspected_run();
    let dispatch = eventually(|| dispatch_of(&browser.records(), "pre_tool_use").cloned());
    let id = dispatch["event_id"].as_str().unwrap();
    let records = browser.records();
    let runs: Vec<&Value> = records
        .iter()
        .filter(|it| it["record"] == "run" && it["event_id"] == id)
        .collect();
    let phases: Vec<&Value> = runs.iter().map(|run| &run["phase"]).collect();
    assert_eq!(phases, ["transform", "transform", "guard"]);
    assert!(runs.iter().all(|run| run["started_ms"].is_number()));
    assert_eq!(runs[2]["let_through"], true, "{:#}", runs[2]);
    assert_eq!(dispatch["failures"][0]["let_through"], true);

    let details = browser.json(&format!("/v1/inspect/dispatches/{id}"));
    let cmd = |payload: &Value| payload["tool_input"]["cmd"].clone();
    assert_eq!(details["event"], "pre_tool_use");
    assert_eq!(cmd(&details["original"]), "echo original");
    let steps = details["steps"].as_array().unwrap();
    assert_eq!(cmd(&steps[0]["after"]), "echo one");
    assert_eq!(cmd(&steps[1]["after"]), "echo two");
    assert_eq!(steps[2]["after"], Value::Null);
    assert_eq!(cmd(&details["final"]), "echo two");
    let raw = &steps[0]["raw"];
    assert!(raw["stdout"].as_str().unwrap().contains("updated_input"));
    assert_eq!(raw["stderr"], "a warning\n");
    assert_eq!(raw["exit"], "exit status 0");
    assert_eq!(steps[2]["raw"]["exit"], "exit status 7");
    assert_eq!(steps[2]["verdict"], "failed");
    assert_eq!(steps[0]["matcher"], "*");
    assert_eq!(details["left_out"], json!({"hooks": [], "more": 0}));
    let calls = eventually(|| {
        let mut calls = browser.records();
        calls.retain(|record| record["record"] == "model_call");
        (!calls.is_empty()).then_some(calls)
    });
    assert_eq!(calls[0]["session_id"], dispatch["session_id"]);
    assert!(
        details["fire"]
            .as_str()
            .unwrap()
            .contains("tenterhook fire pre_tool_use")
    );

    let hooks = browser.json("/v1/inspect/hooks");
    assert_eq!(hooks["hooks"].as_array().unwrap().len(), 3);
    assert_eq!(browser.json("/v1/inspect/source")["kind"], "run");
    drop(stdin);
    let ran = running.finish();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("run `tenterhook inspect '"),
        "{}",
        ran.stderr
    );
    let again = ran
        .again(["inspect", "a.jsonl", "--export", "all.jsonl"])
        .run();
    assert_eq!(again.status, 0, "{}", again.stderr);
}

#[test]
fn the_list_of_hooks_follows_a_reload() {
    let (running, mut stdin, browser) = inspected_run();
    let count = || {
        let listed = browser.json("/v1/inspect/hooks");
        listed["hooks"].as_array().unwrap().len()
    };
    assert_eq!(count(), 3);
    let folder = running.path("config/hooks");
    std::fs::create_dir_all(&folder).unwrap();
    let added = "from tenterhook import on\n@on('turn_start')\ndef added(event):\n    pass\n";
    std::fs::write(folder.join("added.py"), added).unwrap();
    writeln!(stdin, "/reload").unwrap();
    stdin.flush().unwrap();
    eventually(|| (count() == 4).then_some(()));
    drop(stdin);
    let ran = running.finish();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn the_output_of_a_run_is_the_same_with_an_inspector() {
    let args = ["run", "go", "--yes", "--no-journal", "--json"];
    let plain = Test::new().args(args).script(SCRIPT).run();
    let inspected = Test::new()
        .args(args)
        .args(["--inspect"])
        .script(SCRIPT)
        .run();
    let keys = |ran: &Ran| {
        let answer = ran.json();
        let keys = answer.as_object().unwrap().keys().cloned();
        keys.collect::<Vec<_>>()
    };
    assert_eq!(keys(&plain), keys(&inspected));
    assert_eq!(inspected.stderr.lines().count(), 1, "{}", inspected.stderr);
}

/// Starts a gateway with hooks and a channel for HTTP.
fn gateway(settings: &str) -> (Running, String) {
    let call = Test::new()
        .args("gateway run --no-journal --listen 127.0.0.1:0 --allow shell".split(' '))
        .hooks(HOOKS)
        .script(SCRIPT)
        .file("../config/gateway.yaml", settings);
    let mut running = call.start();
    let line = running.stdout().lines().next();
    let Some(Ok(line)) = line else {
        panic!("it did not start: {}", running.stderr());
    };
    let address = line
        .strip_prefix("Listening on http://")
        .unwrap()
        .to_owned();
    (running, address)
}

fn output_of(running: &Running, args: &str) -> String {
    let output = running.beside(args.split(' '));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the secret of a token that may write. An owner who has signed in would have to confirm it.
fn laptop(running: &Running) -> String {
    output_of(running, "gateway token create laptop")
}

fn post_message(secret: &str, address: &str) {
    let head = format!(
        "POST /v1/chats/a/messages HTTP/1.1\r\nhost: {address}\r\nprefer: respond-async\r\n\
         authorization: Bearer {}",
        secret.trim()
    );
    let body = json!({"text": "go"}).to_string();
    eventually(|| (send(address, &head, &body).0 == 202).then_some(()));
}

#[test]
fn a_gateway_has_an_inspector() {
    let (running, address) = gateway("channels: { http: {} }");
    let laptop = laptop(&running);
    let link = output_of(&running, "gateway open --inspect --admin");
    assert!(
        link.starts_with(&format!("http://{address}/inspect/#code=")),
        "{link}"
    );
    let browser = Browser::open(&link);
    post_message(&laptop, &address);
    let dispatch = eventually(|| dispatch_of(&browser.records(), "pre_tool_use").cloned());
    let id = dispatch["event_id"].as_str().unwrap();
    let details = browser.json(&format!("/v1/inspect/dispatches/{id}"));
    assert_eq!(details["final"]["tool_input"]["cmd"], "echo two");
    assert_eq!(browser.json("/v1/inspect/hooks")["hooks"][0]["id"], "first");
    let state = browser.json("/v1/inspect/gateway");
    assert_eq!(state["channels"][1]["id"], "http");
    for part in [&state, &state["channels"][1]] {
        assert!(part["inbox"]["waiting"].is_number(), "{state:#}");
        assert!(part["outbox"]["waiting"].is_number(), "{state:#}");
    }
    assert_eq!(state["approvals"], json!([]));
    assert!(
        state["chats"].is_array() && state["pairings"].is_array(),
        "{state:#}"
    );
    let body = json!({"decision": "approve"}).to_string();
    let (status, _) = browser.ask("POST", "/v1/inspect/approvals/nope", &body);
    assert_eq!(status, 409);
    let (status, _) = browser.ask("POST", "/v1/inspect/pairings/http/nope", &body);
    assert_eq!(status, 409);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

// I6
#[test]
fn only_an_administrator_decides_in_the_inspector() {
    let (running, address) = gateway("channels: { http: {} }");
    let secret = output_of(&running, "gateway token create eyes --scope inspect");
    let ask = |request: &str, body: &str| {
        let secret = secret.trim();
        let head =
            format!("{request} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {secret}");
        send(&address, &head, body).0
    };
    assert_eq!(ask("GET /v1/inspect/gateway", ""), 200);
    let body = json!({"decision": "deny"}).to_string();
    assert_eq!(ask("POST /v1/inspect/approvals/x", &body), 403);
    assert_eq!(ask("POST /v1/inspect/pairings/tg/x", &body), 403);
    let browser = Browser::open(&output_of(&running, "gateway open --inspect"));
    let (status, _) = browser.ask("GET", "/v1/inspect/gateway", "");
    assert_eq!(status, 200);
    for path in ["approvals/x", "pairings/tg/x"] {
        let (status, _) = browser.ask("POST", &format!("/v1/inspect/{path}"), &body);
        assert_eq!(status, 403, "{path}");
    }
    let (status, _) = browser.ask("GET", "/v1/chats", "");
    assert_eq!(status, 403);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn the_settings_can_leave_payloads_out() {
    let (running, address) = gateway("inspect: { payloads: false }\nchannels: { http: {} }");
    let laptop = laptop(&running);
    let browser = Browser::open(&output_of(&running, "gateway open --inspect"));
    assert_eq!(browser.json("/v1/inspect/source")["payloads"], false);
    post_message(&laptop, &address);
    let dispatch = eventually(|| dispatch_of(&browser.records(), "pre_tool_use").cloned());
    let id = dispatch["event_id"].as_str().unwrap();
    let (status, _) = browser.ask("GET", &format!("/v1/inspect/dispatches/{id}"), "");
    assert_eq!(status, 404);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn a_mistake_in_the_settings_of_the_inspector_has_a_suggestion() {
    let settings = "inspect: { payload: false }\n";
    let ran = Test::new()
        .args(["gateway", "check"])
        .file("../config/gateway.yaml", settings)
        .run();
    let (stderr, status) = ran.refusal();
    assert_eq!(status, 3, "{stderr}");
    assert!(
        stderr.contains("gateway.yaml:1:12") && stderr.contains("`payloads`"),
        "{stderr}"
    );
}

#[test]
fn a_gateway_whose_channels_need_no_server_has_one_for_the_inspector() {
    let channels = "channels: { web: { enabled: false }, notes: { kind: command, argv: [cat] } }\n";
    let (running, address) = gateway(&format!("{channels}inspect: {{ listen: 127.0.0.1:0 }}\n"));
    let browser = Browser::open(&output_of(&running, "gateway open --inspect"));
    assert_eq!(browser.address, address);
    let state = browser.json("/v1/inspect/gateway");
    assert_eq!(state["channels"][0]["id"], "notes");
    for (path, status) in [("/inspect/", 200), ("/", 404), ("/v1/chats", 403)] {
        assert_eq!(browser.ask("GET", path, "").0, status, "{path}");
    }
    let strange = "GET /inspect/ HTTP/1.1\r\nhost: evil.example";
    assert_eq!(send(&address, strange, "").0, 421);
    let refused = running.beside(["gateway", "open"]);
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("no channel of kind `web`"), "{stderr}");
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}
