//! Starts a program to see whether it runs, and which version it is.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take to print its version.
const MAX_TIME: Duration = Duration::from_secs(10);
/// The pause between two looks at the program.
const PAUSE: Duration = Duration::from_millis(2);
/// How many bytes of the output are read.
const MAX_OUTPUT: u64 = 4 << 10;

/// Runs a program with `--version`, and returns the line that begins with the name of the program.
///
/// # Errors
/// Fails with a reason if the program does not start, does not end in time, fails, or prints something else.
pub(crate) fn reported_version(path: &Path, name: &str) -> Result<String, String> {
    reported_within(path, name, MAX_TIME)
}

fn reported_within(path: &Path, name: &str, limit: Duration) -> Result<String, String> {
    let (output, status) = run(path, limit).map_err(|error| error.to_string())?;
    let status = status.ok_or_else(|| {
        let seconds = limit.as_secs_f32();
        format!("it does not end within {seconds} seconds")
    })?;
    let begins = |line: &&str| line.split_once(' ').is_some_and(|(first, _)| first == name);
    match output.lines().find(begins) {
        Some(line) if status.success() => Ok(line.to_owned()),
        _ => {
            let first = output.lines().map(str::trim).find(|line| !line.is_empty());
            Err(match first {
                Some(line) => format!("{status}: {line}"),
                None => format!("{status}, without an output"),
            })
        }
    }
}

/// Runs the program, and returns what it printed and its status. Without a status, it was killed.
fn run(path: &Path, limit: Duration) -> io::Result<(String, Option<ExitStatus>)> {
    let end = Instant::now() + limit;
    // A pipe could stay open in a process that the program leaves behind.
    let mut file = tempfile::tempfile()?;
    let mut child = start(path, &file, end)?;
    let status = loop {
        match child.try_wait()? {
            None if Instant::now() < end => std::thread::sleep(PAUSE),
            None => {
                child.kill()?;
                child.wait()?;
                break None;
            }
            ended => break ended,
        }
    };
    file.rewind()?;
    let mut output = Vec::new();
    file.take(MAX_OUTPUT).read_to_end(&mut output)?;
    Ok((String::from_utf8_lossy(&output).into_owned(), status))
}

fn start(path: &Path, output: &File, end: Instant) -> io::Result<Child> {
    loop {
        let started = Command::new(path)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .spawn();
        match started {
            // Another process still has a new file open for writing.
            Err(error)
                if error.kind() == io::ErrorKind::ExecutableFileBusy && Instant::now() < end =>
            {
                std::thread::sleep(PAUSE);
            }
            started => return started,
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn reported(text: &str, limit: Duration) -> Result<String, String> {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("acme");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        reported_within(&path, "acme", limit)
    }

    #[test]
    fn a_program_that_fails_or_is_another_one_is_not_a_version() {
        let ok = "#!/bin/sh\necho warning: old >&2; echo acme 1.2\n";
        assert_eq!(reported(ok, MAX_TIME), Ok("acme 1.2".to_owned()));
        for (text, problem) in [
            ("#!/bin/sh\necho other 1.2\n", "exit status: 0: other 1.2"),
            (
                "#!/bin/sh\necho acme 1.2; exit 3\n",
                "exit status: 3: acme 1.2",
            ),
            ("#!/bin/sh\nkill -9 $$\n", "signal: 9"),
            ("#!/nowhere/sh\n", "No such file"),
            ("", "Exec format error"),
        ] {
            let found = reported(text, MAX_TIME).unwrap_err();
            assert!(found.contains(problem), "{text}: {found}");
        }
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_although_its_child_holds_the_output() {
        let text = "#!/bin/sh\nsleep 5 & echo acme 1.2; wait\n";
        let began = Instant::now();
        let problem = reported(text, Duration::from_millis(300)).unwrap_err();
        assert_eq!(problem, "it does not end within 0.3 seconds");
        assert!(began.elapsed() < Duration::from_secs(4));
    }
}
