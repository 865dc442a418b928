//! Races between the check of an approved hook and the start of its process.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tenterhook_discovery::{FolderSearch, LoadOptions, Loaded, load_file};
use tenterhook_engine::{Engine, HookSpec, Layer, Origin, Scope};
use tenterhook_protocol::event::PreToolUse;
use tenterhook_trust::{ApprovalItem, Approvals, ProjectHook, Trust};

use crate::folder::{Place, executable};

/// How often the hooks are checked and started during one attack.
const ROUNDS: usize = 20;
/// The files of a guard.
const FILES: [&str; 3] = ["check.sh", "lib.sh", "rules.txt"];
/// Hooks that name their files more than once, in several ways.
const HOOKS: &str = r"
hooks:
  - {name: script, event: pre_tool_use, command: 'h/check.sh; cd h && ./check.sh'}
  - {name: data, event: pre_tool_use, command: 'cat ./h/rules.txt >> LOG; h/check.sh ./h/rules.txt'}
";
/// How many approved lines both hooks write.
const LINES: usize = 8;

/// Replaces the files of a guard with those of `from`.
type Swap = fn(dir: &Path, from: &Path) -> io::Result<()>;

/// The ways to replace the files of a guard.
const SWAPS: [(&str, Swap); 8] = [
    ("a file is renamed over them", |dir, from| {
        each(dir, from, |file, other, aside| {
            fs::copy(other, aside)?;
            fs::rename(aside, file)
        })
    }),
    ("they are written in place", |dir, from| {
        each(dir, from, |file, other, _| {
            fs::write(file, fs::read(other)?)
        })
    }),
    ("they become symbolic links", |dir, from| {
        each(dir, from, |file, other, aside| {
            symlink(other, aside)?;
            fs::rename(aside, file)
        })
    }),
    ("they become hard links", |dir, from| {
        each(dir, from, |file, other, aside| {
            fs::hard_link(other, aside)?;
            fs::rename(aside, file)
        })
    }),
    ("they disappear, or become folders", |dir, from| {
        each(dir, from, |file, other, aside| {
            fs::rename(file, aside)?;
            fs::create_dir(file)?;
            fs::remove_dir(file)?;
            fs::copy(other, aside)?;
            fs::rename(aside, file)
        })
    }),
    ("their folder is renamed", |dir, from| {
        let old = dir.with_extension("old");
        copy_folder(from, &dir.with_extension("new"))?;
        fs::rename(dir, &old)?;
        fs::rename(dir.with_extension("new"), dir)?;
        fs::remove_dir_all(old)
    }),
    (
        "their folder becomes a symbolic link and is a folder again",
        |dir, from| {
            let old = dir.with_extension("old");
            fs::rename(dir, &old)?;
            symlink(from, dir)?;
            fs::remove_file(dir)?;
            fs::rename(old, dir)
        },
    ),
    (
        "their folder is gone for moments, and then another one",
        |dir, from| {
            let old = dir.with_extension("old");
            for _ in 0..200 {
                fs::rename(dir, &old)?;
                fs::rename(&old, dir)?;
            }
            fs::rename(dir, &old)?;
            symlink(from, dir)?;
            for _ in 0..200 {
                fs::read(dir.join("lib.sh"))?;
            }
            fs::remove_file(dir)?;
            fs::rename(old, dir)
        },
    ),
];

fn each(
    dir: &Path,
    from: &Path,
    swap: impl Fn(&Path, &Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    FILES
        .iter()
        .try_for_each(|name| swap(&dir.join(name), &from.join(name), &dir.join("aside")))
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    FILES
        .iter()
        .try_for_each(|name| fs::copy(from.join(name), to.join(name)).map(drop))
}

/// Creates the files of a guard, which write `word` to the log.
fn write_guard(dir: &Path, log: &Path, word: &str) {
    let log = log.display();
    let check = format!(
        "#!/bin/sh\n[ \"$1\" = hook ] && echo before_tool_call && exit\n\
         echo {word} >> '{log}'\n. \"$(dirname \"$0\")/lib.sh\"\n[ ! -f \"$1\" ] || cat \"$1\" >> '{log}'\n"
    );
    executable(dir, "check.sh", &check);
    fs::write(dir.join("lib.sh"), format!("echo {word} >> '{log}'\n")).unwrap();
    fs::write(dir.join("rules.txt"), format!("{word}\n")).unwrap();
}

/// A guard in a folder of a project, and an attacker who changes the folder.
struct Attack {
    place: Place,
    dir: PathBuf,
    log: PathBuf,
}

impl Attack {
    fn new(folder: &str) -> Self {
        let place = Place::new();
        let attack = Self {
            dir: place.project.join(folder),
            log: place.home.join("log"),
            place,
        };
        write_guard(&attack.dir, &attack.log, "approved");
        for (name, word) in [("approved", "approved"), ("evil", "evil")] {
            write_guard(&attack.place.home.join(name), &attack.log, word);
        }
        attack
    }

    fn approvals(&self) -> Approvals {
        Approvals::open(&self.place.data()).unwrap()
    }

    fn approve(&self, hooks: Vec<ProjectHook>) {
        let items: Vec<ApprovalItem> = hooks.into_iter().map(|hook| hook.item).collect();
        assert!(!items.is_empty());
        self.approvals().approve(&items).unwrap();
    }

    /// Loads and runs hooks again and again while the attacker changes their files. Asserts that they run the approved
    /// files, or deny. Together, the hooks write so many `lines`.
    async fn assert_runs_approved<Load: Future<Output = Vec<HookSpec>>>(
        &self,
        name: &str,
        swap: Swap,
        hooks: usize,
        lines: usize,
        load: impl Fn() -> Load,
    ) {
        let stop = Arc::new(AtomicBool::new(false));
        let swaps = Arc::new(AtomicUsize::new(0));
        let attacker = {
            let (dir, home) = (self.dir.clone(), self.place.home.clone());
            let (stop, swaps) = (Arc::clone(&stop), Arc::clone(&swaps));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    for word in ["evil", "approved"] {
                        swap(&dir, &home.join(word)).unwrap();
                        swaps.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        };
        let mut runs = 0;
        for _ in 0..ROUNDS {
            let specs = load().await;
            assert_eq!(specs.len(), hooks, "{name}");
            if !self.run(specs).await {
                runs += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
        attacker.join().unwrap();
        let swaps = swaps.load(Ordering::Relaxed);
        assert!(swaps >= 2, "{name}: {swaps} swaps");
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let evil = log.lines().filter(|line| *line != "approved").count();
        assert_eq!(evil, 0, "{name}: the files of the attacker ran");
        assert!(log.lines().count() >= runs * lines, "{name}: {runs} runs");
    }

    /// Runs hooks, and returns whether they deny.
    async fn run(&self, specs: Vec<HookSpec>) -> bool {
        let engine = Engine::builder().build();
        engine.scope(Scope::Global).replace(specs);
        let dispatcher = engine.dispatcher(Origin::new("", self.place.project.clone()));
        let outcome = dispatcher.dispatch_with(|| PreToolUse::new("shell")).await;
        outcome.decision().reason().is_some()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_swapped_between_the_check_and_the_start_of_a_command_never_run() {
    for (name, swap) in SWAPS {
        let attack = Attack::new("h");
        let file = attack.place.project.join(".tenterhook/hooks.yaml");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let hooks = HOOKS.replace("LOG", attack.log.to_str().unwrap());
        fs::write(&file, hooks).unwrap();
        let load = |trust: Trust| -> Loaded {
            let options = LoadOptions {
                trust,
                directory: attack.place.project.clone(),
                ..LoadOptions::of_process()
            };
            load_file(&file, Layer::Project, &options).unwrap()
        };
        attack.approve(load(Trust::Review(Arc::new(attack.approvals()))).project_hooks);
        let load = async || load(Trust::Approved(Arc::new(attack.approvals()))).specs;
        attack
            .assert_runs_approved(name, swap, 2, LINES, load)
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_swapped_between_the_check_and_the_start_of_an_executable_never_run() {
    for (name, swap) in SWAPS {
        let attack = Attack::new(".kodelet/hooks");
        let discover = async |trust: Trust| {
            FolderSearch::of_layers(&attack.place.layers())
                .trust(trust)
                .data_dir(Some(attack.place.data()))
                .lenient(true)
                .discover()
                .await
                .unwrap()
        };
        let found = discover(Trust::Review(Arc::new(attack.approvals()))).await;
        attack.approve(found.project_hooks);
        let load = async || {
            let found = discover(Trust::Approved(Arc::new(attack.approvals()))).await;
            assert_eq!(
                found.specs.len(),
                1,
                "{name}: {:?}\n{:?}\n{:?}",
                found.files,
                found.broken,
                found.diverged
            );
            found.specs
        };
        attack.assert_runs_approved(name, swap, 1, 2, load).await;
    }
}
