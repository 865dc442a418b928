//! A day of a gateway, in less time: people write all the time, while everything that an operator meets happens.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fake_telegram::{FakeTelegram, TOKEN_VARIABLE};
use crate::stage::{Ran, Running, Test};

const SETTINGS: &str = "../config/gateway.yaml";
const SCRIPT: &str = "turns: [{text: Hello from the agent., repeat: true}]";

/// The people who write. Each may send 20 messages a minute.
const USERS: std::ops::Range<i64> = 100..140;

/// How often someone writes.
const INTERVAL: Duration = Duration::from_millis(200);

/// Each person begins a new session after this many messages, so that sessions do not grow all day.
const MESSAGES_OF_A_SESSION: i64 = 20;

/// Makes each answer name the messages that it answers.
const HOOK: &str = "\
from tenterhook import on, patch

@on('message_deliver')
def name_messages(event):
    return patch(text=event.kind + ' ' + ' '.join(event.in_reply_to))
";

/// How long the last answers may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// How much the memory may grow after the first tenth of the day, in kilobytes, in addition to the cache of the store: what
/// the allocator keeps after the first backup and the first reload.
const MAX_GROWTH: u64 = 8 << 10;

/// The maximum size of the cache of the store, in kilobytes.
const MAX_CACHE: u64 = 32 << 10;

/// What happens, in thousandths of the day. Between 100 and 900, one process runs all the time, so that its memory can
/// be compared.
const DAY: [(u32, Incident); 22] = [
    (20, Incident::Upgrade),
    (40, Incident::Kill),
    (60, Incident::Outage(502)),
    (70, Incident::OutageEnds),
    (150, Incident::Rotate),
    (200, Incident::Reload),
    (250, Incident::Outage(500)),
    (270, Incident::OutageEnds),
    (300, Incident::Backup),
    (350, Incident::Rotate),
    (400, Incident::Outage(429)),
    (410, Incident::OutageEnds),
    (450, Incident::DiskFull),
    (460, Incident::DiskHasRoom),
    (500, Incident::Reload),
    (550, Incident::BrokenSettings),
    (600, Incident::Reload),
    (650, Incident::Outage(503)),
    (690, Incident::OutageEnds),
    (700, Incident::Rotate),
    (920, Incident::Kill),
    (950, Incident::Upgrade),
];

/// Returns the incidents of the day. If the variable `KILLS` adds kills, evenly over the day, those incidents are left out
/// that need a gateway that has started.
fn incidents(kills: u32) -> Vec<(u32, Incident)> {
    let mut incidents = DAY.to_vec();
    if kills > 0 {
        incidents.retain(|(_, incident)| incident.is_possible_at_a_start());
        let more = (1..=kills).map(|number| (1000 * number / (kills + 1), Incident::Kill));
        incidents.extend(more);
        incidents.sort_by_key(|(at, _)| *at);
    }
    incidents
}

/// Something that happens to a gateway.
#[derive(Debug, Clone, Copy)]
enum Incident {
    /// The program is replaced, and the gateway is stopped and started again.
    Upgrade,
    /// The gateway is killed and started again.
    Kill,
    /// The service answers everything with a status.
    Outage(u16),
    OutageEnds,
    /// The journal is moved away.
    Rotate,
    /// The settings change, and the gateway gets SIGHUP.
    Reload,
    /// The settings get an error, and the gateway gets SIGHUP.
    BrokenSettings,
    /// No file can be written.
    DiskFull,
    DiskHasRoom,
    Backup,
}

impl Incident {
    fn is_possible_at_a_start(self) -> bool {
        match self {
            Self::Kill
            | Self::Outage(_)
            | Self::OutageEnds
            | Self::DiskFull
            | Self::DiskHasRoom => true,
            Self::Upgrade | Self::Rotate | Self::Reload | Self::BrokenSettings | Self::Backup => {
                false
            }
        }
    }
}

/// A gateway and what has happened to it.
struct Day {
    telegram: FakeTelegram,
    running: Running,
    /// When each message was sent, by its number.
    sent: BTreeMap<i64, Instant>,
    next_update: i64,
    restarts: usize,
    reloads: usize,
    rotated: Vec<PathBuf>,
    backups: usize,
}

fn prepare(test: Test) -> Test {
    // Writes beyond a limit fail, instead of ending the program. The log of a service is read by someone else.
    test.args("gateway run --journal journal.jsonl --listen off".split(' '))
        .script(SCRIPT)
        .variable(TOKEN_VARIABLE.0, TOKEN_VARIABLE.1)
        .after("trap '' XFSZ; exec 2>> stderr.log; exec ../bin/tenterhook \"$@\"")
}

/// Replaces the installed program, also while it runs.
fn install(bin: &std::path::Path, program: &str) {
    fs::create_dir_all(bin).unwrap();
    fs::copy(program, bin.join("new")).unwrap();
    fs::rename(bin.join("new"), bin.join("tenterhook")).unwrap();
}

impl Day {
    /// Starts with the program in the variable `OLD_PROGRAM`, if there is one.
    fn begin() -> Self {
        let telegram = FakeTelegram::start();
        let test = prepare(Test::new()).file("../config/hooks/name.py", HOOK);
        let program = std::env::var("OLD_PROGRAM");
        let program = program.unwrap_or_else(|_| env!("CARGO_BIN_EXE_tenterhook").to_owned());
        install(&test.work().join("../bin"), &program);
        let running = test.file(SETTINGS, &settings(&telegram, "")).start();
        Self {
            telegram,
            running,
            sent: BTreeMap::new(),
            next_update: 1,
            restarts: 0,
            reloads: 0,
            rotated: Vec::new(),
            backups: 0,
        }
    }

    /// Returns who sends a message.
    fn user(number: i64) -> i64 {
        USERS.start + number % people()
    }

    /// Lets someone write.
    fn write(&mut self) {
        let number = self.next_update;
        self.next_update += 1;
        let (user, round) = (Self::user(number), number / people());
        if round % MESSAGES_OF_A_SESSION == MESSAGES_OF_A_SESSION - 1 {
            self.telegram.add_text(number, user, "/new");
        } else {
            self.telegram.add_text(number, user, "Hi");
            self.sent.insert(number, Instant::now());
        }
    }

    fn restart(self, signal: &str, is_upgrade: bool) -> Self {
        self.running.signal(signal);
        let ran: Ran = self.running.finish();
        if signal == "TERM" {
            assert_eq!(ran.status, 0, "{}", ran.file("stderr.log"));
        }
        if is_upgrade {
            install(&ran.path("bin"), env!("CARGO_BIN_EXE_tenterhook"));
        }
        Self {
            running: prepare(ran.again([])).start(),
            restarts: self.restarts + 1,
            ..self
        }
    }

    fn meet(mut self, incident: Incident) -> Self {
        match incident {
            Incident::Upgrade => return self.restart("TERM", true),
            Incident::Kill => return self.restart("KILL", false),
            Incident::Outage(status) => self.telegram.fail(Some(status)),
            Incident::OutageEnds => self.telegram.fail(None),
            Incident::Rotate => {
                let to = self
                    .running
                    .work()
                    .join(format!("journal.{}", self.rotated.len()));
                fs::rename(self.running.work().join("journal.jsonl"), &to).unwrap();
                self.rotated.push(to);
            }
            Incident::Reload => {
                self.reloads += 1;
                let busy = ["busy: follow_up\n", "busy: collect\n"][self.reloads % 2];
                self.reload(busy, "settings and hooks were reloaded", self.reloads);
            }
            Incident::BrokenSettings => self.reload("busy: never\n", "nothing was reloaded", 1),
            Incident::DiskFull => self.running.disk()(Some(0)),
            Incident::DiskHasRoom => self.running.disk()(None),
            Incident::Backup => {
                let file = format!("backup.{}.tar", self.backups);
                let output = self.running.beside(["gateway", "backup", &file]);
                assert!(output.status.success(), "{output:?}");
                self.backups += 1;
            }
        }
        self
    }

    /// Changes the settings, and waits until the log has a text as often as expected.
    fn reload(&self, more: &str, expected: &str, count: usize) {
        let file = self.running.work().join(SETTINGS);
        fs::write(file, settings(&self.telegram, more)).unwrap();
        self.running.signal("HUP");
        let log = self.running.work().join("stderr.log");
        let begun = Instant::now();
        loop {
            let log = fs::read_to_string(&log).unwrap();
            if log.matches(expected).count() == count {
                break;
            }
            assert!(
                begun.elapsed() < Duration::from_mins(1),
                "no `{expected}` in {log}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the memory that the gateway has allocated, in kilobytes. The parts of the program's file that were needed so
    /// far are not in it: they grow with each feature that is used for the first time.
    fn memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.running.pid())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    }

    /// Waits until each message was answered, or until its sender was told that it is not.
    fn await_answers(&self) {
        let begun = Instant::now();
        loop {
            let answered = self.answered();
            let waiting = self.sent.keys().filter(|id| !answered.contains(id));
            let waiting: Vec<i64> = waiting.copied().collect();
            if waiting.is_empty() {
                return;
            }
            if begun.elapsed() > PATIENCE {
                let work = self.running.work();
                let log = fs::read_to_string(work.join("stderr.log")).unwrap();
                let users: BTreeSet<i64> = waiting.iter().map(|id| Self::user(*id)).collect();
                let texts = users
                    .into_iter()
                    .map(|user| (user, self.telegram.texts(user)));
                let texts: BTreeMap<i64, Vec<String>> = texts.collect();
                panic!("{log}\nno answer to {waiting:?}; their senders got {texts:#?}");
            }
            std::thread::sleep(INTERVAL);
        }
    }

    /// Returns the messages that an answer or a notice names.
    fn answered(&self) -> BTreeSet<i64> {
        let sent = self.telegram.sent().into_iter();
        let ids = sent.flat_map(|sent| named_by(&sent.text));
        ids.collect()
    }

    /// Returns how many answers and notices were sent more than once. The agent answers a message twice if another one
    /// was added to its turn, but then the second answer names both.
    fn repeated(&self) -> usize {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let sent = self.telegram.sent().into_iter();
        for sent in sent.filter(|sent| !named_by(&sent.text).is_empty()) {
            *counts.entry(sent.text).or_default() += 1;
        }
        counts.values().filter(|count| **count > 1).count()
    }
}

/// Returns the messages that a text of the hook names, after the kind of the text. Other texts can have numbers, too.
fn named_by(text: &str) -> Vec<i64> {
    let text = text.strip_prefix("⛔ ").unwrap_or(text);
    let ids = text.split(' ').skip(1).map(str::parse);
    ids.collect::<Result<_, _>>().unwrap_or_default()
}

fn people() -> i64 {
    USERS.end - USERS.start
}

fn settings(telegram: &FakeTelegram, more: &str) -> String {
    let members: Vec<String> = USERS.map(|user| format!("\"{user}\"")).collect();
    let rules = format!("dm: allow, members: [{}]", members.join(", "));
    format!("{more}{}", telegram.settings(&rules))
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

#[test]
#[ignore = "takes an hour, or the seconds in the variable DAY; the variable KILLS adds kills"]
fn a_day_of_incidents_loses_no_message_and_the_memory_does_not_grow() {
    let seconds = std::env::var("DAY").map_or(3600, |seconds| seconds.parse().unwrap());
    let kills = std::env::var("KILLS").map_or(0, |kills| kills.parse().unwrap());
    let length = Duration::from_secs(seconds);
    let mut day = Day::begin();
    let begun = Instant::now();
    let mut incidents = incidents(kills).into_iter().peekable();
    let mut memory: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let mut ticks: u32 = 0;
    while begun.elapsed() < length {
        let thousandth = u32::try_from(begun.elapsed().as_millis() / u128::from(seconds)).unwrap();
        if let Some((_, incident)) = incidents.next_if(|(at, _)| *at <= thousandth) {
            report(&format!(
                "{thousandth}: {incident:?}, {:?} kB",
                day.memory()
            ));
            day = day.meet(incident);
        }
        day.write();
        memory
            .entry(thousandth / 100)
            .or_default()
            .extend(day.memory());
        ticks += 1;
        std::thread::sleep((INTERVAL * ticks).saturating_sub(begun.elapsed()));
    }
    assert!(incidents.next().is_none());
    day.await_answers();
    let (repeated, restarts) = (day.repeated(), day.restarts);
    // An answer whose receipt was lost is sent once more: one for each chat that was waiting for one.
    assert!(
        repeated <= restarts * 4,
        "{repeated} answers were sent more than once"
    );
    let by_tenth: Vec<u64> = memory.into_values().map(median).collect();
    report(&format!(
        "{} messages, {repeated} answers repeated, {restarts} restarts, memory by tenth: {by_tenth:?} kB",
        day.sent.len(),
    ));
    day.running.signal("TERM");
    let (rotated, ran) = (day.rotated, day.running.finish());
    assert_eq!(ran.status, 0, "{}", ran.file("stderr.log"));
    let mut records = 0;
    for file in rotated.into_iter().chain([ran.path("work/journal.jsonl")]) {
        let text = fs::read_to_string(&file).unwrap();
        let read = text.lines().map(serde_json::from_str::<Value>);
        let (good, bad): (Vec<_>, Vec<_>) = read.partition(Result::is_ok);
        // A kill and a full disk can each cut a line.
        assert!(
            bad.len() <= restarts + 1,
            "{} bad lines in {}",
            bad.len(),
            file.display()
        );
        assert!(!good.is_empty(), "{} is empty", file.display());
        records += good.len();
    }
    report(&format!("{records} records in the journal"));
    if kills > 0 {
        // No process has run for long.
        return;
    }
    let grown = by_tenth[8].saturating_sub(by_tenth[1]);
    let store = ran.path("home/.local/share/tenterhook/gateway/gateway.redb");
    let cache = (fs::metadata(store).unwrap().len() >> 10).min(MAX_CACHE);
    assert!(
        grown <= MAX_GROWTH + cache,
        "the memory grew by {grown} kB with a store of {cache} kB: {by_tenth:?}"
    );
}

/// Shows the figures of a run, with `--nocapture` only.
#[expect(
    clippy::print_stderr,
    reason = "the figures of a run are for the person who runs the large test"
)]
fn report(figures: &str) {
    eprintln!("{figures}");
}
