//! What the gateway costs, compared with the agent alone, a bus in memory, and a short command.
//!
//! | row | compares | goal |
//! |---|---|---|
//! | one message | a durable message over pipes, answered, with a prompt and one `fdatasync` | at most 1.5 |
//! | busy chats | messages of 50 and of 200 chats that each wait for their answers, with as many agents alone at once | at most 1.15 |
//! | many chats | one message to each of many chats at once, with as many prompts one after another | at most 0.6 |
//! | null agent | durable messages per second in memory, compared with a Python gateway that keeps nothing | at least 20 |
//! | start | until the first poll of Telegram, compared with `tenterhook list` | at most 1.5 |
//!
//! It also prints the memory of an open chat and of one that has been idle for a while, and the allocations of the gateway's own events without hooks.
//!
//! The first two rows are measured without hooks and with hooks in the process, which the agent alone has, too.
//!
//! The gateway runs in a process of its own. Rounds alternate, so that other load on the machine affects both sides. Each
//! ratio is the median of the rounds. `--quick` uses fewer rounds and messages, and `--row one`, `busy`, `many`, `null` or `idle` measures
//! only that row. The row `start` needs `--program PATH`,
//! the path of `tenterhook`; the null agent needs `python3`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and has no caller to return an error to"
)]

mod bus;
mod child;
mod first_poll;
mod null_agent;

use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tenterhook_agent::CancellationToken;
use tenterhook_channel::chat::ChannelId;
use tenterhook_engine::Engine;
use tenterhook_engine::event::TurnStart;
use tenterhook_gateway::conversations::gateway_events::{GatewayEvents, GatewayFailure};
use tenterhook_protocol::event::{ChannelDisconnectReason, GatewayStopReason};
use tokio::runtime::Runtime;

use self::child::{ChildGateway, Player};

/// How much is measured.
#[derive(Clone, Copy)]
struct Amount {
    rounds: usize,
    /// Messages of a round of the first row.
    messages: usize,
    chats: usize,
    /// Messages to the null agent.
    bus: usize,
}

/// How many messages each busy chat sends in a round.
const MESSAGES_OF_A_CHAT: usize = 5;

/// How many chats write to the null agent and to the bus.
const BUS_CHATS: usize = 100;

const FULL: Amount = Amount {
    rounds: 11,
    messages: 32,
    chats: 1_000,
    bus: 10_000,
};

const QUICK: Amount = Amount {
    rounds: 5,
    messages: 16,
    chats: 200,
    bus: 1_000,
};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    if let Some(folder) = value(child::FLAG) {
        let has_hooks = arguments.iter().any(|argument| argument == child::HOOKS);
        return child::run(Path::new(folder), has_hooks);
    }
    let is_quick = arguments.iter().any(|argument| argument == "--quick");
    let amount = if is_quick { QUICK } else { FULL };
    // The system's folder for temporary files is often in memory.
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    events();
    let is_wanted = |row: &str| value("--row").is_none_or(|wanted| wanted == row);
    if is_wanted("one") {
        for has_hooks in [false, true] {
            one_message(amount, has_hooks, folder.path());
        }
    }
    if is_wanted("busy") {
        for (chats, has_hooks) in [(50, false), (50, true), (200, false), (200, true)] {
            busy_chats(amount, (chats, has_hooks), folder.path());
        }
    }
    if is_wanted("many") {
        many_chats(amount, folder.path());
    }
    if is_wanted("null") {
        null_agent(amount, folder.path());
    }
    if is_wanted("idle") {
        let idle = null_agent::idle_chat(&folder.path().join("idle"), amount.chats);
        println!(
            "idle chat: {:.2} KiB (limit 2); the store grows by {:.2} KiB, of which it caches up to 32 MiB",
            idle.memory / 1024.0,
            idle.stored / 1024.0
        );
    }
    match value("--program") {
        Some(program) => start(amount, Path::new(program), folder.path()),
        None => println!("start: not measured; `--program PATH` names `tenterhook`"),
    }
}

fn one_message(amount: Amount, has_hooks: bool, folder: &Path) {
    let (runtime, hooks) = (child::runtime(), describe(has_hooks));
    let mut gateway = ChildGateway::start(&folder.join(format!("one-{hooks}")), has_hooks);
    let mut agent = child::agent(&folder.join(format!("alone-{hooks}")), has_hooks);
    let mut disk = File::create(folder.join("synced")).unwrap();
    gateway.ask("warm");
    let (mut ratios, mut asked, mut alone, mut syncs) = (vec![], vec![], vec![], vec![]);
    for _ in 0..amount.rounds {
        let (mut with, mut sync, mut without) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        // One after another, because the load of a machine changes within a round.
        for _ in 0..amount.messages {
            with += time(|| gateway.ask("one"));
            sync += time(|| {
                disk.write_all(&[b'x'; 512]).unwrap();
                disk.sync_data().unwrap();
            });
            without += time(|| prompt(&runtime, &mut agent));
        }
        ratios.push(with.div_duration_f64(without + sync));
        let millis = |time: Duration| time.as_secs_f64() * 1e3 / number(amount.messages);
        asked.push(millis(with));
        alone.push(millis(without));
        syncs.push(millis(sync));
    }
    println!(
        "one message, {hooks}: {:.2} ms, a prompt {:.2} ms, fdatasync {:.2} ms; ratio {:.2} (limit 1.50)",
        median(asked),
        median(alone),
        median(syncs),
        median(ratios)
    );
}

fn busy_chats(amount: Amount, (chats, has_hooks): (usize, bool), folder: &Path) {
    let (runtime, hooks) = (child::runtime(), describe(has_hooks));
    let folder = folder.join(format!("busy-{chats}-{hooks}"));
    let mut gateway = ChildGateway::start(&folder.join("gateway"), has_hooks);
    let alone = folder.join("alone");
    let agents = (0..chats).map(|chat| child::agent(&alone.join(chat.to_string()), has_hooks));
    let mut agents: Vec<Player> = agents.collect();
    let messages = chats * MESSAGES_OF_A_CHAT;
    // The first messages make the files of the sessions.
    gateway.ask_many(chats, chats);
    prompt_all(&runtime, &mut agents, 1);
    let (mut ratios, mut rates, mut slowest, mut processor) = (vec![], vec![], vec![], vec![]);
    for _ in 0..amount.rounds {
        let (before, mut took) = (gateway.processor_time(), vec![]);
        let with = time(|| took = gateway.ask_many(messages, chats));
        processor.push((gateway.processor_time() - before) * 1e3 / number(messages));
        let without = time(|| prompt_all(&runtime, &mut agents, MESSAGES_OF_A_CHAT));
        ratios.push(with.div_duration_f64(without));
        rates.push(number(messages) / with.as_secs_f64());
        took.sort_unstable();
        slowest.push(took[took.len() * 99 / 100].as_secs_f64() * 1e3);
    }
    println!(
        "busy chats, {hooks}: {chats}; ratio {:.2} (limit 1.15); {:.0} messages a second, p99 {:.0} ms, {:.2} ms of the processor each",
        median(ratios),
        median(rates),
        median(slowest),
        median(processor)
    );
}

/// Lets all agents answer prompts at once.
fn prompt_all(runtime: &Runtime, agents: &mut Vec<Player>, prompts: usize) {
    let running = agents.drain(..).map(|mut agent| {
        runtime.spawn(async move {
            for _ in 0..prompts {
                black_box(agent.prompt("hi", &CancellationToken::new()).await);
            }
            agent
        })
    });
    let running: Vec<_> = running.collect();
    for agent in running {
        agents.push(runtime.block_on(agent).unwrap());
    }
}

fn many_chats(amount: Amount, folder: &Path) {
    let runtime = child::runtime();
    let (mut ratios, mut kept, rounds) = (vec![], vec![], amount.rounds.div_ceil(3));
    for round in 0..rounds {
        let mut gateway = ChildGateway::start(&folder.join(format!("many-{round}")), false);
        gateway.ask("warm");
        let before = gateway.resident();
        let began = Instant::now();
        gateway.ask_many(amount.chats, amount.chats);
        let together = began.elapsed();
        kept.push((gateway.resident() - before) / 1024.0 / number(amount.chats));
        let alone = folder.join(format!("alone-{round}"));
        let began = Instant::now();
        for chat in 0..amount.chats {
            let mut agent = child::agent(&alone.join(chat.to_string()), false);
            prompt(&runtime, &mut agent);
        }
        ratios.push(together.div_duration_f64(began.elapsed()));
    }
    println!(
        "many chats: {}; ratio {:.2} (limit 0.60); {:.0} KiB a chat, with its session (limit 200 without)",
        amount.chats,
        median(ratios),
        median(kept)
    );
}

fn null_agent(amount: Amount, folder: &Path) {
    let (mut ours, mut theirs, mut ratios) = (vec![], vec![], vec![]);
    for round in 0..amount.rounds.div_ceil(3) {
        let folder = folder.join(format!("null-{round}"));
        let rate = null_agent::rate(&folder, amount.bus, BUS_CHATS);
        let Some(bus) = bus::rate(amount.bus, BUS_CHATS) else {
            return println!("null agent: not measured; `python3` does not run");
        };
        ours.push(rate);
        theirs.push(bus);
        ratios.push(rate / bus);
    }
    println!(
        "null agent: {:.0} durable messages a second, the bus {:.0}; ratio {:.2} (goal 20)",
        median(ours),
        median(theirs),
        median(ratios)
    );
}

fn start(amount: Amount, program: &Path, folder: &Path) {
    let (mut ratios, mut polls, mut lists) = (vec![], vec![], vec![]);
    for round in 0..=amount.rounds {
        let home = folder.join(format!("home-{round}"));
        let poll = first_poll::gateway(program, &home);
        let list = first_poll::list(program, &home);
        // The first round fills the caches.
        if round > 0 {
            ratios.push(poll.div_duration_f64(list));
            polls.push(poll.as_secs_f64() * 1e3);
            lists.push(list.as_secs_f64() * 1e3);
        }
    }
    println!(
        "start: first poll after {:.0} ms, `list` {:.0} ms; ratio {:.2} (limit 1.50)",
        median(polls),
        median(lists),
        median(ratios)
    );
}

/// The gateway's own events, of which none has a hook. Another event has one, so that the engine is not empty.
fn events() {
    let engine = Engine::new();
    engine.on(|_: &TurnStart| ());
    let events = GatewayEvents::new(&engine, "/");
    let channels = [ChannelId::new("web").unwrap()];
    let channel = &channels[0];
    let mut failures = vec![GatewayFailure::default()];
    let counted = allocation_counter::measure(|| {
        now(events.started(black_box(&channels)));
        now(events.connecting(channel, "web", None)).unwrap();
        now(events.failed(channel, failures.pop().unwrap_or_default()));
        now(events.disconnected(channel, ChannelDisconnectReason::Shutdown));
        now(events.stopping(&channels, GatewayStopReason::Shutdown));
    });
    println!(
        "events without hooks: {} allocations (limit 0)",
        counted.count_total
    );
}

/// Polls a future that never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("nothing waits"),
    }
}

fn prompt(runtime: &Runtime, agent: &mut Player) {
    runtime.block_on(async {
        black_box(agent.prompt("hi", &CancellationToken::new()).await);
    });
}

fn describe(has_hooks: bool) -> &'static str {
    if has_hooks { "hooks" } else { "no hooks" }
}

/// Returns how long a call takes.
fn time(call: impl FnOnce()) -> Duration {
    let began = Instant::now();
    call();
    began.elapsed()
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
