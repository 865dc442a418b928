//! Measures what many extensions cost, compared with one: how long they take to load, and how long one
//! event takes.
//!
//! Compare only the ratios within one run. With `--quick`, the benchmark runs fewer rounds. With the path of a
//! folder, it also loads up to 30 extensions that are in it:
//! `cargo bench -p tenterhook-discovery --bench extensions -- FOLDER`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and has no caller that could handle an error"
)]

#[cfg(unix)]
#[path = "../../../core/process/benches/floor.rs"]
#[expect(dead_code, reason = "only the comparison is needed here")]
mod floor;

#[cfg(not(unix))]
fn main() {
    println!("workers run on Unix only");
}

#[cfg(unix)]
fn main() {
    unix::main();
}

#[cfg(unix)]
mod unix {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    use tenterhook_discovery::{FolderHooks, FolderSearch};
    use tenterhook_engine::event::PreToolUse;
    use tenterhook_engine::{Dispatcher, Engine, EventKind, Origin};
    use tenterhook_systems::pi;
    use tokio::runtime::Runtime;

    use super::floor::{compare, multi_thread};

    const COUNT: usize = 30;
    /// Events of one measurement. One event alone would be too short for the clock.
    const EVENTS: usize = 100;

    pub(super) fn main() {
        let is_quick = std::env::args().any(|argument| argument == "--quick");
        let rounds = if is_quick { 3 } else { 10 };
        let dir = tempfile::tempdir().unwrap();
        let folders = ["one", "many", "listening"].map(|name| dir.path().join(name));
        write(&folders[0], 1, "tool_call");
        write(&folders[1], COUNT, "session_start");
        write(&folders[1], 1, "tool_call");
        write(&folders[2], COUNT, "tool_call");
        let runtime = multi_thread();
        let loads = compare(
            "extensions, from the start of their worker",
            rounds,
            &mut [
                ("1 loads", &mut || timed(|| load(&runtime, &folders[0]))),
                ("30 load", &mut || timed(|| load(&runtime, &folders[1]))),
            ],
        );
        println!("load: {:.2} times, wanted at most 1.5", loads[1] / loads[0]);
        let given = std::env::args().skip(1).find(|it| !it.starts_with('-'));
        if let Some(given) = given {
            load_given(&runtime, Path::new(&given), rounds);
        }
        let hooks = folders.map(|folder| dispatcher(load(&runtime, &folder)));
        let events = compare(
            "100 tool calls",
            rounds,
            &mut [
                ("1 extension", &mut || timed(|| fire(&runtime, &hooks[0]))),
                ("30, one listens", &mut || {
                    timed(|| fire(&runtime, &hooks[1]))
                }),
                ("30, all listen", &mut || {
                    timed(|| fire(&runtime, &hooks[2]))
                }),
            ],
        );
        println!(
            "event: {:.2} times if one of them listens, wanted at most 2; {:.2} times if all listen",
            events[1] / events[0],
            events[2] / events[0]
        );
    }

    fn timed<T>(work: impl FnOnce() -> T) -> Duration {
        let began = Instant::now();
        let result = work();
        let time = began.elapsed();
        // The end of a worker is not part of the measurement.
        drop(result);
        time
    }

    /// Writes extensions that import what most extensions import.
    fn write(folder: &Path, count: usize, event: &str) {
        fs::create_dir_all(folder).unwrap();
        for number in 0..count {
            let text = format!(
                "import type {{ ExtensionAPI }} from '@mariozechner/pi-coding-agent';\n\
                 import {{ getAgentDir }} from '@mariozechner/pi-coding-agent';\n\
                 import {{ Text }} from '@mariozechner/pi-tui';\n\
                 import {{ Type }} from '@sinclair/typebox';\n\
                 const schema = Type.Object({{ number: Type.Number() }});\n\
                 export default function (pi: ExtensionAPI) {{\n  \
                 pi.registerTool({{ name: 'tool_{number}', parameters: schema, renderCall: () => new Text(getAgentDir()), execute() {{}} }});\n  \
                 pi.on('{event}', () => undefined);\n}}\n"
            );
            fs::write(folder.join(format!("{event}{number}.ts")), text).unwrap();
        }
    }

    /// Compares the extensions of a folder that can be loaded with one of them.
    fn load_given(runtime: &Runtime, folder: &Path, rounds: usize) {
        let entries = fs::read_dir(folder).unwrap();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "ts"));
        files.sort();
        let broken = find(runtime, &files).broken;
        files.retain(|path| broken.iter().all(|broken| broken.path != *path));
        files.truncate(COUNT);
        assert!(
            !files.is_empty(),
            "no extension of {} can be loaded",
            folder.display()
        );
        let all = format!("{} load", files.len());
        let mut by_size = files.clone();
        by_size.sort_by_key(|path| fs::metadata(path).unwrap().len());
        let one = [by_size[by_size.len() / 2].clone()];
        let loads = compare(
            &format!("extensions of {}", folder.display()),
            rounds,
            &mut [
                ("one of middle size loads", &mut || {
                    timed(|| find(runtime, &one))
                }),
                (&all, &mut || timed(|| find(runtime, &files))),
            ],
        );
        println!("load: {:.2} times, wanted at most 1.5", loads[1] / loads[0]);
        fire_given(runtime, &files, rounds);
    }

    /// Compares an event with all these extensions to an event with the first one that listens.
    fn fire_given(runtime: &Runtime, files: &[PathBuf], rounds: usize) {
        let listening = |found: &FolderHooks| {
            let names = found.specs.iter().filter_map(|spec| spec.event.as_ref());
            names
                .filter(|name| name.kind() == EventKind::PreToolUse)
                .count()
        };
        let mut each = files
            .iter()
            .map(|file| find(runtime, std::slice::from_ref(file)));
        let one = dispatcher(each.find(|found| listening(found) > 0).unwrap());
        let found = find(runtime, files);
        let title = format!("{}, {} listen", files.len(), listening(&found));
        let all = dispatcher(found);
        let events = compare(
            "100 tool calls, extensions of the folder",
            rounds,
            &mut [
                ("one that listens", &mut || timed(|| fire(runtime, &one))),
                (&title, &mut || timed(|| fire(runtime, &all))),
            ],
        );
        println!(
            "event: {:.2} times, wanted at most 2",
            events[1] / events[0]
        );
    }

    fn find(runtime: &Runtime, paths: &[PathBuf]) -> FolderHooks {
        let search = FolderSearch::of_folders([]).packages(&pi::FOLDER, paths.iter().cloned());
        runtime.block_on(search.lenient(true).discover()).unwrap()
    }

    fn load(runtime: &Runtime, folder: &Path) -> FolderHooks {
        let found = find(runtime, &[folder.to_owned()]);
        assert!(!found.specs.is_empty() && found.broken.is_empty());
        found
    }

    fn dispatcher(found: FolderHooks) -> (Dispatcher, FolderHooks) {
        let engine = Engine::new();
        for spec in found.specs.clone() {
            engine.register(spec);
        }
        (engine.dispatcher(Origin::new("s1", "/")), found)
    }

    fn fire(runtime: &Runtime, (hooks, _): &(Dispatcher, FolderHooks)) {
        runtime.block_on(async {
            for _ in 0..EVENTS {
                let call = PreToolUse::new("shell").with_tool_use_id("c1");
                let outcome = hooks.dispatch(call).await;
                assert!(outcome.failures().is_empty());
            }
        });
    }
}
