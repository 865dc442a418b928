//! The program: `tenterhook-shim HOST EVENT`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::client::{ClientError, ask};
use crate::descriptor::Patience;
use crate::failure::{self, HostFailures};
use crate::frame::{DaemonAnswer, DaemonRequest, EventRequest, MAX_EVENT, Printed};
use crate::launch::Launcher;
use crate::place::DaemonPlace;
use crate::signals::BlockedSignals;

/// How long a call may take. Hosts wait longer, so that the shim answers before they give up.
const MAX_TIME: Duration = Duration::from_secs(25);
/// The environment variable with a shorter time, in seconds.
const TIME_VARIABLE: &str = "TENTERHOOK_SHIM_TIMEOUT";
/// How much earlier than the shim the daemon gives up.
const LEAD: Duration = Duration::from_millis(500);
/// The exit status of a call without a host and an event.
const USAGE: u8 = 2;
/// What a closed standard output leads to.
const NULL_DEVICE: &str = "/dev/null";
/// How long to wait for the thread that is printing the answer.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// Runs the program.
pub fn run() -> ExitCode {
    let began = Instant::now();
    std::panic::set_hook(Box::new(|_| {}));
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let call = match words.as_slice() {
        [option] if option == "--version" => {
            writeln!(io::stdout(), "{}", crate::version_line()).ok();
            return ExitCode::SUCCESS;
        }
        [host, event] => ShimCall {
            host: host.clone().into_owned(),
            event: event.clone().into_owned(),
            output: Arc::default(),
        },
        _ => {
            let usage = "usage: tenterhook-shim HOST EVENT, with the event on standard input";
            writeln!(io::stderr(), "{usage}").ok();
            return ExitCode::from(USAGE);
        }
    };
    let answered = catch_unwind(AssertUnwindSafe(|| call.answer(began)));
    let printed = match answered {
        Ok(Ok(printed)) => printed,
        Ok(Err(problem)) => call.failed(&problem),
        Err(_) => call.failed("it panicked, which is a bug in Tenterhook"),
    };
    call.output.print(&printed, |problem| call.unread(problem))
}

/// One call of the program.
#[derive(Clone)]
struct ShimCall {
    host: String,
    event: String,
    output: Arc<Output>,
}

impl ShimCall {
    /// Returns what the program prints if it fails.
    fn failed(&self, problem: &str) -> Printed {
        let event = &self.event;
        let Some(host) = HostFailures::of(&self.host) else {
            let host = &self.host;
            let reason = format!("Tenterhook does not know the host `{host}`");
            return failure::unknown(event, &reason);
        };
        host.printed(event, &self.reason(problem))
    }

    /// Returns what is left if nothing reads the standard output: the exit status, and the reason as an error message.
    fn unread(&self, problem: &str) -> Printed {
        failure::unread(&self.host, &self.event, &self.reason(problem))
    }

    fn reason(&self, problem: &str) -> String {
        let event = &self.event;
        format!("Tenterhook could not run the hooks of `{event}`: {problem}")
    }

    fn answer(&self, began: Instant) -> Result<Printed, String> {
        let Some(host) = HostFailures::of(&self.host) else {
            return Ok(self.failed(""));
        };
        let signals = BlockedSignals::block().map_err(|error| error.to_string())?;
        let call = self.clone();
        let mut patience = Patience::until(began + time()).when_slow(move || {
            signals.watch(move || call.leave("it was ended by a signal"));
        });
        let input = read_input(&mut patience).map_err(|error| describe_input(&error))?;
        let directory = std::env::current_dir().unwrap_or_default();
        let place = DaemonPlace::of_user().map_err(|error| error.to_string())?;
        let left = patience.left().map_err(|_| ClientError::Late.to_string())?;
        let patience_ms = left.saturating_sub(LEAD).as_millis();
        let request = DaemonRequest::Event(EventRequest {
            host: self.host.clone(),
            event: self.event.clone(),
            directory: directory.as_os_str().as_bytes().to_owned(),
            patience_ms: u64::try_from(patience_ms).unwrap_or(u64::MAX),
            variables: variables(host),
            input,
        });
        let launcher = Launcher::new(&directory);
        let answer = ask(&place, &request.write(), Some(launcher), &mut patience);
        match answer.map_err(|error| error.to_string())? {
            DaemonAnswer::Print(printed) => Ok(printed),
            DaemonAnswer::Retry | DaemonAnswer::Control(_) => Err(ClientError::Ended.to_string()),
        }
    }

    /// Prints the failure and ends the program, unless the answer is already being printed.
    fn leave(&self, problem: &str) {
        let failed = self.failed(problem);
        let printed = self
            .output
            .try_print(&failed, |problem| self.unread(problem));
        if let Some(status) = printed {
            std::process::exit(status.into());
        }
    }
}

/// The standard output of the program, which is written only once.
#[derive(Default)]
struct Output {
    is_taken: AtomicBool,
}

impl Output {
    /// Prints an answer, unless another thread does. Returns the exit status. `unread` is printed instead if nothing can
    /// read the answer.
    fn try_print(&self, printed: &Printed, unread: impl FnOnce(&str) -> Printed) -> Option<u8> {
        if self.is_taken.swap(true, Ordering::SeqCst) {
            return None;
        }
        let unread = write_answer(&printed.stdout).err().map(|error| {
            let problem = format!("its answer cannot be written to standard output: {error}");
            unread(&problem)
        });
        let printed = unread.as_ref().unwrap_or(printed);
        io::stderr().write_all(&printed.stderr).ok();
        Some(printed.status)
    }

    /// Prints the final answer.
    fn print(&self, printed: &Printed, unread: impl FnOnce(&str) -> Printed) -> ExitCode {
        let status = self.try_print(printed, unread).unwrap_or_else(|| {
            // The other thread ends the program as soon as it has printed.
            std::thread::sleep(LAST_MOMENT);
            USAGE
        });
        ExitCode::from(status)
    }
}

/// Writes an answer to standard output.
///
/// A program that starts without a standard output gets the null device from Rust, and Rust's own standard output hides
/// that it cannot be written. In both cases a denial would be lost, so both are errors.
fn write_answer(answer: &[u8]) -> io::Result<()> {
    if answer.is_empty() {
        return Ok(());
    }
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let output = stdout.metadata()?;
    if output.file_type().is_char_device()
        && std::fs::metadata(NULL_DEVICE).is_ok_and(|null| null.rdev() == output.rdev())
    {
        return Err(io::Error::other("nothing reads it"));
    }
    stdout.write_all(answer)
}

/// Returns how long the call may take. The variable can only shorten it, because a host that gives up
/// first would run the tool.
fn time() -> Duration {
    let named = std::env::var(TIME_VARIABLE).ok();
    let seconds = named.and_then(|value| value.parse::<f64>().ok());
    let named = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    named.map_or(MAX_TIME, |named| named.min(MAX_TIME))
}

/// Returns the variables of the host that are set.
fn variables(host: &HostFailures) -> Vec<(String, String)> {
    let set = host.variables.iter().filter_map(|name| {
        let value = std::env::var(name).ok()?;
        Some(((*name).to_owned(), value))
    });
    set.collect()
}

/// Reads the event from standard input.
fn read_input(patience: &mut Patience<'_>) -> io::Result<Vec<u8>> {
    let mut input = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    let mut stdin = io::stdin().lock();
    loop {
        patience.readable(io::stdin())?;
        let read = match stdin.read(&mut chunk) {
            Ok(0) => return Ok(input),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        input.extend_from_slice(chunk.get(..read).unwrap_or_default());
        if input.len() > MAX_EVENT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
}

fn describe_input(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::TimedOut {
        "the host did not send the event in time".to_owned()
    } else if error.kind() == io::ErrorKind::FileTooLarge {
        format!("the event is larger than {} MiB", MAX_EVENT >> 20)
    } else {
        format!("the event cannot be read: {error}")
    }
}
