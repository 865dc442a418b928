//! What the shim costs a coding agent for each event: its whole run next to an empty program that is
//! linked in the same way, and the start of the daemon.
//!
//! `cargo bench -p tenterhook-cli --bench shim` prints the table.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and stops at the first error"
)]

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
fn main() {
    unix::main();
}

#[cfg(unix)]
mod unix {
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use tempfile::TempDir;
    use tenterhook_shim::environment::UserFolders;
    use tenterhook_shim::frame::{DaemonAnswer, HEADER, Header, Printed};
    use tenterhook_shim::place::DaemonPlace;

    const PROGRAM: &str = env!("CARGO_BIN_EXE_tenterhook");
    const SHIM: &str = env!("CARGO_BIN_EXE_tenterhook-shim");
    const ROUNDS: usize = 1_000;
    const COLD_ROUNDS: usize = 20;
    const EMPTY: &str = "empty Rust program";
    const AT_ONCE: &str = "shim, daemon that answers at once";

    pub(super) fn main() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "home", "config/hooks.d", "run", "at-once"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let floor = smallest_program(&folder);
        let empty = empty_program(&folder);
        let event = event(folder.path());
        let mut rows: Vec<(&str, Command)> = vec![
            (EMPTY, command(&empty, folder.path())),
            ("smallest program", command(&floor, folder.path())),
            ("shim --version", command(SHIM, folder.path())),
            (AT_ONCE, command(SHIM, folder.path())),
            ("shim, warm daemon, no hook", command(SHIM, folder.path())),
        ];
        answer_at_once(folder.path());
        rows[2].1.arg("--version");
        for row in [3, 4] {
            rows[row].1.args(["claude-code", "PreToolUse"]);
        }
        rows[3]
            .1
            .env("XDG_RUNTIME_DIR", folder.path().join("at-once"));
        compare("without hooks", &mut rows, &event);
        stop(folder.path());

        let guard = "hooks: [{event: tool_guard, builtin: deny_commands, args: [sudo]}]";
        fs::write(folder.path().join("config/hooks.d/hooks.yaml"), guard).unwrap();
        rows[4].0 = "shim, warm daemon, built-in guard";
        compare("with a guard", &mut rows, &event);

        let mut cold: Vec<Duration> = (0..COLD_ROUNDS)
            .map(|_| {
                stop(folder.path());
                run(&mut rows[4].1, &event)
            })
            .collect();
        cold.sort_unstable();
        println!(
            "cold start with the first event: median {:?}",
            cold[COLD_ROUNDS / 2]
        );
        stop(folder.path());
    }

    /// Runs the rows in turns, and prints their medians and quartiles.
    fn compare(title: &str, rows: &mut [(&str, Command)], event: &[u8]) {
        let mut times = vec![Vec::with_capacity(ROUNDS); rows.len()];
        for round in 0..ROUNDS + 20 {
            for ((_, command), times) in rows.iter_mut().zip(&mut times) {
                let time = run(command, event);
                if round >= 20 {
                    times.push(time);
                }
            }
        }
        println!(
            "{title}, {ROUNDS} rounds: median, lower quartile, and what both are over the {EMPTY}"
        );
        let mut first = None;
        for ((name, _), times) in rows.iter().zip(&mut times) {
            times.sort_unstable();
            let (median, quartile) = (times[ROUNDS / 2], times[ROUNDS / 4]);
            let (floor, low) = *first.get_or_insert((median, quartile));
            println!(
                "  {name:<36} {median:>10.1?} {quartile:>10.1?} {:>10} {:>10}",
                difference(median, floor),
                difference(quartile, low)
            );
        }
    }

    /// Returns the difference as text with a sign, because programs can be faster than the first row.
    fn difference(time: Duration, floor: Duration) -> String {
        let sign = if time < floor { "-" } else { "+" };
        format!("{sign}{:.1?}", time.abs_diff(floor))
    }

    /// Runs a program as a host does, and returns how long it took.
    fn run(command: &mut Command, event: &[u8]) -> Duration {
        let began = Instant::now();
        let mut child = command.spawn().unwrap();
        // The smallest program does not read its input.
        child.stdin.take().unwrap().write_all(event).ok();
        let output = child.wait_with_output().unwrap();
        let time = began.elapsed();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
        time
    }

    fn command(program: impl AsRef<Path>, folder: &Path) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(folder.join("work"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", folder.join("home"))
            .env("TENTERHOOK_CONFIG_DIR", folder.join("config"))
            .env("XDG_RUNTIME_DIR", folder.join("run"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Ends the daemon, and waits until it is gone.
    fn stop(folder: &Path) {
        let stopped = command(PROGRAM, folder).args(["daemon", "--stop"]).output();
        assert!(stopped.unwrap().status.success());
        let sockets = || {
            let files = fs::read_dir(folder.join("run/tenterhook"))
                .into_iter()
                .flatten();
            let names = files.flatten().map(|file| file.path());
            names
                .filter(|path| path.extension().is_some_and(|it| it == "sock"))
                .count()
        };
        while sockets() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn event(folder: &Path) -> Vec<u8> {
        let work = folder.join("work");
        format!(
            "{{\"session_id\":\"s1\",\"cwd\":{:?},\"hook_event_name\":\"PreToolUse\",\
             \"permission_mode\":\"default\",\"tool_name\":\"Bash\",\
             \"tool_input\":{{\"command\":\"echo hello > out.txt\"}},\"tool_use_id\":\"toolu_1\"}}",
            work.display().to_string()
        )
        .into_bytes()
    }

    /// Starts a thread that answers each event with nothing, so that the shim's own time remains.
    fn answer_at_once(folder: &Path) {
        let home = folder.join("home");
        let folders = UserFolders {
            config: folder.join("config"),
            data: home.join(".local/share/tenterhook"),
            state: home.join(".local/state/tenterhook"),
            home,
        };
        let place = DaemonPlace::in_folder(folder.join("at-once/tenterhook"), &folders);
        place.prepare().unwrap();
        let listener = UnixListener::bind(&place.socket).unwrap();
        let answer = move |mut stream: UnixStream| {
            stream.write_all(&Header::write(0)).unwrap();
            let mut header = [0; HEADER];
            stream.read_exact(&mut header).unwrap();
            let mut body = vec![0; Header::read(header).unwrap().length];
            stream.read_exact(&mut body).unwrap();
            let answer = DaemonAnswer::Print(Printed::default());
            stream.write_all(&answer.write()).unwrap();
        };
        std::thread::spawn(move || listener.incoming().flatten().for_each(answer));
    }

    /// Compiles an empty program. Its start is what no Rust program that is linked like the shim can avoid.
    fn empty_program(folder: &TempDir) -> std::path::PathBuf {
        let (source, path) = (folder.path().join("empty.rs"), folder.path().join("empty"));
        fs::write(&source, "fn main() {}").unwrap();
        let compiled = Command::new("rustc")
            .args(["--edition=2024", "-Copt-level=z", "-Cstrip=symbols", "-o"])
            .args([&path, &source])
            .status();
        assert!(compiled.unwrap().success());
        path
    }

    /// Writes a program that only exits, or returns one of the system.
    fn smallest_program(folder: &TempDir) -> std::path::PathBuf {
        if cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
            return "/bin/true".into();
        }
        // An ELF file with one segment: `xor edi, edi; mov eax, 60; syscall`.
        let code = [0x31, 0xff, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05];
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        let length = 120 + code.len() as u64;
        for half in [2u16, 62] {
            file.extend(half.to_le_bytes());
        }
        file.extend(1u32.to_le_bytes());
        for word in [0x40_0078u64, 64, 0] {
            file.extend(word.to_le_bytes());
        }
        file.extend(0u32.to_le_bytes());
        for half in [64u16, 56, 1, 0, 0, 0] {
            file.extend(half.to_le_bytes());
        }
        for word in [1u32, 5] {
            file.extend(word.to_le_bytes());
        }
        for word in [0u64, 0x40_0000, 0x40_0000, length, length, 0x1000] {
            file.extend(word.to_le_bytes());
        }
        file.extend(code);
        let path = folder.path().join("smallest");
        fs::write(&path, file).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}
