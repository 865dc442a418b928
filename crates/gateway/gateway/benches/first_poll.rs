//! How soon the program polls Telegram.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long the first poll may take.
const PATIENCE: Duration = Duration::from_mins(1);

fn program(program: &Path, home: &Path) -> Command {
    std::fs::create_dir_all(home.join("work")).unwrap();
    let mut command = Command::new(program);
    command
        .current_dir(home.join("work"))
        .env("HOME", home)
        .env("BENCH_TOKEN", "7:secret-Token_1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    for name in ["CONFIG", "STATE", "DATA", "CACHE"] {
        command.env(format!("XDG_{name}_HOME"), home.join(name));
    }
    command
}

/// Returns the time of `tenterhook list`.
pub(crate) fn list(path: &Path, home: &Path) -> Duration {
    let began = Instant::now();
    let _status = program(path, home).arg("list").status().unwrap();
    began.elapsed()
}

/// Returns the time until the gateway polls for the first time.
pub(crate) fn gateway(path: &Path, home: &Path) -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut command = program(path, home);
    std::fs::write(home.join("work/script.yaml"), "turns: [{text: hello}]").unwrap();
    let settings = format!(
        "channels:\n  tg:\n    kind: telegram\n    token_env: BENCH_TOKEN\n    api_base: http://{address}\n"
    );
    std::fs::write(home.join("work/gateway.yaml"), settings).unwrap();
    let (polled, poll) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let polled = polled.clone();
            std::thread::spawn(move || answer(stream, &polled));
        }
    });
    let began = Instant::now();
    let mut process = command
        .args(["gateway", "run", "--gateway", "gateway.yaml"])
        .args(["--model", "scripted:script.yaml"])
        .spawn()
        .unwrap();
    let at = poll.recv_timeout(PATIENCE);
    let _killed = process.kill();
    let _ended = process.wait();
    at.unwrap().duration_since(began)
}

/// Answers the requests of a connection until the first poll.
fn answer(stream: TcpStream, polled: &mpsc::Sender<Instant>) {
    let mut output = stream.try_clone().unwrap();
    let mut input = BufReader::new(stream);
    loop {
        let (mut first, mut length) = (String::new(), 0);
        if !matches!(input.read_line(&mut first), Ok(count) if count > 0) {
            return;
        }
        loop {
            let mut line = String::new();
            input.read_line(&mut line).unwrap();
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body).unwrap();
        if first.contains("/getUpdates") {
            // The gateway may have been ended by an earlier one.
            let _sent = polled.send(Instant::now());
            return;
        }
        let result = if first.contains("/getMe") {
            r#"{"ok":true,"result":{"id":7,"is_bot":true,"first_name":"B","username":"Bot"}}"#
        } else {
            r#"{"ok":true,"result":true}"#
        };
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
        let size = result.len();
        write!(output, "{head}\r\ncontent-length: {size}\r\n\r\n{result}").unwrap();
    }
}
