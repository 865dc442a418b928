//! Measures how long it takes to find a thousand executables, compared with starting each of them once.
//!
//! Only compare ratios within one run. With `--quick`, the benchmark runs fewer rounds.

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
    println!("folders of executables are searched on Unix only");
}

#[cfg(unix)]
fn main() {
    unix::main();
}

#[cfg(unix)]
mod unix {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use tenterhook_discovery::{FolderHooks, FolderSearch, Layers};
    use tenterhook_trust::{Approvals, Trust};
    use tokio::runtime::Runtime;

    use super::floor::{compare, multi_thread};

    const COUNT: usize = 1_000;

    pub(super) fn main() {
        let is_quick = std::env::args().any(|argument| argument == "--quick");
        let rounds = if is_quick { 3 } else { 10 };
        let dir = tempfile::tempdir().unwrap();
        let whole = fs::canonicalize(dir.path()).unwrap();
        let bench = Bench {
            runtime: multi_thread(),
            files: folder(&whole.join("home/.kodelet/hooks")),
            data: whole.join("data"),
            approved: whole.join("approved"),
            home: whole.join("home"),
            project: whole.join("project"),
        };
        folder(&bench.project.join(".kodelet/hooks"));
        bench.approve();
        let medians = compare(
            &format!("{COUNT} executables of a folder"),
            rounds,
            &mut [
                ("each started once, all cores", &mut || {
                    start_each(&bench.files)
                }),
                ("first discovery", &mut || {
                    fs::remove_file(bench.data.join("probes.json")).ok();
                    bench.user()
                }),
                ("next start, nothing changed", &mut || bench.user()),
                ("next start, approved project", &mut || bench.project()),
            ],
        );
        println!(
            "first discovery: {:.2} times the starts, wanted at most 1.3",
            medians[1] / medians[0]
        );
    }

    struct Bench {
        runtime: Runtime,
        files: Vec<PathBuf>,
        data: PathBuf,
        /// The folder for data of those who approve the project.
        approved: PathBuf,
        home: PathBuf,
        project: PathBuf,
    }

    impl Bench {
        fn user(&self) -> Duration {
            let layers = Layers {
                home: Some(self.home.clone()),
                ..Layers::default()
            };
            self.timed(|| FolderSearch::of_layers(&layers).data_dir(Some(self.data.clone())))
        }

        fn project(&self) -> Duration {
            self.timed(|| self.search())
        }

        fn search(&self) -> FolderSearch {
            let layers = Layers {
                start: Some(self.project.clone()),
                ..Layers::default()
            };
            let approvals = Arc::new(Approvals::open(&self.approved).unwrap());
            FolderSearch::of_layers(&layers)
                .trust(Trust::Approved(approvals))
                .data_dir(Some(self.approved.clone()))
        }

        fn timed(&self, search: impl Fn() -> FolderSearch) -> Duration {
            let start = Instant::now();
            let found = self.discover(search());
            let took = start.elapsed();
            assert_eq!(found.specs.len(), COUNT);
            took
        }

        fn discover(&self, search: FolderSearch) -> FolderHooks {
            self.runtime.block_on(search.discover()).unwrap()
        }

        fn approve(&self) {
            let found = self.discover(self.search());
            let items: Vec<_> = found
                .project_hooks
                .into_iter()
                .map(|brought| brought.item)
                .collect();
            Approvals::open(&self.approved)
                .unwrap()
                .approve(&items)
                .unwrap();
            assert_eq!(self.discover(self.search()).specs.len(), COUNT);
        }
    }

    fn folder(dir: &Path) -> Vec<PathBuf> {
        fs::create_dir_all(dir).unwrap();
        let write = |number: usize| {
            let path = dir.join(format!("hook{number:04}"));
            fs::write(&path, format!("#!/bin/sh\n# {number}\necho turn_end\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        (0..COUNT).map(write).collect()
    }

    /// Asks each executable with nothing around it, on as many threads as there are cores.
    fn start_each(files: &[PathBuf]) -> Duration {
        let threads = std::thread::available_parallelism().unwrap().get();
        let start = Instant::now();
        std::thread::scope(|scope| {
            for part in files.chunks(files.len().div_ceil(threads)) {
                scope.spawn(move || {
                    for file in part {
                        let output = std::process::Command::new(file).arg("hook").output();
                        assert_eq!(output.unwrap().stdout, b"turn_end\n");
                    }
                });
            }
        });
        start.elapsed()
    }
}
