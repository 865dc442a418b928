//! Measures what a stored session of 10,000 entries costs: reading it, compared with reading its file and parsing each
//! line, and running a turn in it, compared with a turn in an empty session.
//!
//! Compare only the ratios of one run. `--quick` takes fewer rounds.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and has no caller to return an error to"
)]

use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tenterhook_agent::{Agent, AgentConfig, CancellationToken, Session, SessionStore};
use tenterhook_engine::event::SessionEntry;
use tenterhook_engine::{Engine, SessionId};
use tenterhook_providers::Scripted;
use tokio::runtime::Runtime;

const ENTRIES: usize = 10_000;

const TALK: &str = "turns: [{text: hello, repeat: true}]";

fn main() {
    let is_quick = std::env::args().any(|arg| arg == "--quick");
    let rounds = if is_quick { 5 } else { 50 };
    let dir = tempfile::tempdir().unwrap();
    let sessions = SessionStore::of_project(dir.path(), Path::new("/work"));
    let id = SessionId::from("long");
    let path = sessions.folder().join("long.jsonl");
    fs::create_dir_all(sessions.folder()).unwrap();
    fs::write(&path, file(&id)).unwrap();

    let parse = || {
        let text = fs::read(&path).unwrap();
        let lines = text.split(|byte| *byte == b'\n').skip(1);
        let entries: Vec<SessionEntry> = lines
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        assert_eq!(black_box(entries).len(), ENTRIES);
    };
    let read = || {
        let read = sessions.read(&id).unwrap();
        assert_eq!(black_box(read).session.entries().len(), ENTRIES);
    };
    report("reading", "parsing", medians(rounds, parse, read));

    let runtime = Runtime::new().unwrap();
    let mut empty = agent(Session::new("empty".into()));
    let mut long = agent(sessions.read(&id).unwrap().session);
    let turn = |agent: &mut Agent| {
        // Both first turns are alike, because the model gets similar conversations.
        let cancel = CancellationToken::new();
        runtime.block_on(agent.prompt("go", &cancel));
    };
    let times = medians(rounds, || turn(&mut empty), || turn(&mut long));
    report("a turn in it", "a turn in an empty one", times);
}

/// Returns a session in which a summary replaces nearly all entries.
fn file(id: &SessionId) -> String {
    let header = json!({
        "format": "tenterhook-session", "version": 1, "id": id, "cwd": "/work", "created": "2026-01-01T00:00:00Z",
    });
    let mut text = format!("{header}\n");
    for number in 1..=ENTRIES {
        let parent = (number > 1).then(|| (number - 1).to_string());
        let mut entry = json!({ "id": number.to_string(), "parent_id": parent, "time": "2026-01-01T00:00:00Z" });
        if number == ENTRIES {
            entry["kind"] = "compaction".into();
            entry["data"] = json!({ "summary": "short" });
        } else {
            let role = if number % 2 == 0 { "assistant" } else { "user" };
            let words = "what was said, and what was answered ".repeat(8);
            entry["kind"] = "message".into();
            entry["message"] = json!({ "role": role, "content": words });
        }
        writeln!(text, "{entry}").unwrap();
    }
    text
}

fn agent(session: Session) -> Agent {
    let script = Scripted::parse("play", TALK).unwrap();
    let config = AgentConfig {
        model: Some(Arc::new(script)),
        ..AgentConfig::default()
    };
    AgentConfig {
        session: Some(session),
        ..config
    }
    .build(Engine::new())
    .unwrap()
}

/// Returns the medians of two kinds of work, which alternate.
fn medians(rounds: usize, mut first: impl FnMut(), mut second: impl FnMut()) -> [Duration; 2] {
    let time = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        firsts.push(time(&mut first));
        seconds.push(time(&mut second));
    }
    [firsts, seconds].map(|mut times| {
        times.sort();
        times.get(rounds / 2).copied().unwrap_or_default()
    })
}

fn report(name: &str, baseline: &str, [floor, cost]: [Duration; 2]) {
    let ratio = cost.as_secs_f64() / floor.as_secs_f64();
    println!("{name}: {cost:.1?}, {baseline}: {floor:.1?}, ratio {ratio:.2}");
}
