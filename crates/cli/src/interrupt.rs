//! Ctrl-C and every other signal that asks the program to end: one task for the whole process.
//!
//! The first one cancels what is at work and lets it come to its end: process groups are killed, the hooks of
//! that end run. Another one before that end was reached gives up on it. While a person leads a conversation, the first
//! Ctrl-C ends a run only, another one before its end the conversation, in good order, and a third gives up.

#[cfg(unix)]
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
#[cfg(unix)]
use std::task::Poll;

#[cfg(unix)]
use rustix::process::Signal;
use tenterhook_agent::CancellationToken;

use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// What the signals mean to the program.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts {
    state: Arc<Mutex<State>>,
    give_up: CancellationToken,
    echoes: Echoes,
}

/// The Ctrl-Cs that a terminal may have shown as `^C` in the line that it was at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Echoes {
    count: Arc<AtomicUsize>,
    seen: usize,
}

impl Echoes {
    /// Says whether there was one since this was called last.
    pub(crate) fn is_new(&mut self) -> bool {
        let count = self.count.load(Ordering::Relaxed);
        std::mem::replace(&mut self.seen, count) != count
    }
}

#[derive(Debug, Default)]
struct State {
    /// Cancelled by the next signal.
    current: CancellationToken,
    /// The program was asked to end, not only what it is doing.
    is_ending: bool,
    /// A conversation outlives what is interrupted in it.
    outlives: bool,
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    /// Stop what is being done.
    Interrupt,
    /// End the program.
    End,
}

impl Interrupts {
    /// Starts to listen. From here on no signal ends the program by itself.
    pub(crate) fn listen() -> Result<Self, CliError> {
        let this = Self {
            state: Arc::default(),
            give_up: CancellationToken::new(),
            echoes: Echoes::default(),
        };
        let mut signals = Signals::new().map_err(|error| {
            CliError::new(Exit::Failed, "cannot listen for signals").cause(&error)
        })?;
        let listener = this.clone();
        tokio::spawn(async move {
            while let Some(request) = signals.next().await {
                listener.echoes.count.fetch_add(1, Ordering::Relaxed);
                if listener.take(request) {
                    output::note(
                        "\nThe session ends when this has come to its end; Ctrl-C again does not wait for that.",
                    );
                }
            }
        });
        Ok(this)
    }

    /// Does what a signal asks for; says whether a conversation ends that would have gone on.
    fn take(&self, request: Request) -> bool {
        let mut state = self.state();
        let ends_more = state.outlives && request == Request::Interrupt && !state.is_ending;
        if state.current.is_cancelled() && !ends_more {
            self.give_up.cancel();
        }
        let ends = state.current.is_cancelled();
        state.is_ending |= request == Request::End || ends;
        state.current.cancel();
        ends && ends_more
    }

    /// Returns what tells of Ctrl-Cs that the terminal may have shown.
    pub(crate) fn echoes(&self) -> Echoes {
        self.echoes.clone()
    }

    /// Does what Ctrl-C does, where the terminal gives it as a key.
    pub(crate) fn interrupt(&self) {
        self.take(Request::Interrupt);
    }

    /// Says that a person leads a conversation, which goes on when what is being done is interrupted.
    pub(crate) fn outlive(&self) {
        self.state().outlives = true;
    }

    /// Ends the program in good order.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_ending = true;
        state.current.cancel();
    }

    /// Returns what the next signal cancels.
    pub(crate) fn token(&self) -> CancellationToken {
        self.state().current.clone()
    }

    /// Says whether what is being done was interrupted.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.state().current.is_cancelled()
    }

    /// Goes on after an interruption that was dealt with, unless the program was asked to end.
    pub(crate) fn go_on(&self) {
        let mut state = self.state();
        if !state.is_ending && state.current.is_cancelled() {
            state.current = CancellationToken::new();
        }
    }

    /// Goes on where a person leads a conversation and interrupted nothing but a line; says whether it does.
    pub(crate) fn go_on_at_prompt(&self) -> bool {
        if self.state().outlives {
            self.go_on();
        }
        !self.is_interrupted()
    }

    /// Waits for the signal that gives up on an end in good order.
    pub(crate) async fn given_up(&self) {
        self.give_up.cancelled().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs what blocks on a thread of its own, which does not keep the program from ending.
pub(crate) async fn blocking<T: Send + 'static>(
    interrupts: &Interrupts,
    work: impl FnOnce() -> Result<T, CliError> + Send + 'static,
) -> Result<T, CliError> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().spawn(move || sender.send(work()).ok());
    thread.map_err(|error| CliError::new(Exit::Failed, "cannot start a thread").cause(&error))?;
    let token = interrupts.token();
    tokio::select! {
        biased;
        () = token.cancelled() => Err(CliError::new(Exit::Interrupted, "interrupted")),
        result = receiver => result.unwrap_or_else(|_| {
            Err(CliError::new(Exit::Failed, "the program broke; this is a defect of it"))
        }),
    }
}

/// Signals that would end the program with a status of their own. Agents that call `fire` run the tool on any status but
/// 2, so all of them are caught. `SIGKILL` cannot be, nor those that report a broken program, as `SIGSEGV`.
#[cfg(unix)]
const ENDING: [Signal; 13] = [
    Signal::HUP,
    Signal::TERM,
    Signal::QUIT,
    Signal::ABORT,
    Signal::TRAP,
    Signal::SYS,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::VTALARM,
    Signal::PROF,
    Signal::XCPU,
    Signal::IO,
];

/// Signals that only Linux has.
#[cfg(target_os = "linux")]
const MORE_ENDING: [Signal; 2] = [Signal::POWER, Signal::STKFLT];
#[cfg(all(unix, not(target_os = "linux")))]
const MORE_ENDING: [Signal; 0] = [];

/// The signals that are listened to. One that the program was started with as ignored stays so: `nohup` means it.
#[cfg(unix)]
struct Signals {
    listened: Vec<(Option<Request>, tokio::signal::unix::Signal)>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let ignored = ignored();
        let is_ignored = |signal: Signal| ignored & 1 << (signal.as_raw() - 1) != 0;
        let ending = ENDING.iter().chain(&MORE_ENDING);
        let wanted = ending
            .map(|signal| (*signal, Some(Request::End)))
            .chain([
                (Signal::INT, Some(Request::Interrupt)),
                // Caught, so that the write behind the limit fails and is reported.
                (Signal::XFSZ, None),
            ])
            .filter(|(signal, _)| !is_ignored(*signal))
            // This one must not stay ignored: the system would reap our children before their end is seen.
            .chain(is_ignored(Signal::CHILD).then_some((Signal::CHILD, None)));
        let listened = wanted
            .map(|(kind, request)| Ok((request, signal(SignalKind::from_raw(kind.as_raw()))?)));
        Ok(Self {
            listened: listened.collect::<io::Result<_>>()?,
        })
    }

    async fn next(&mut self) -> Option<Request> {
        poll_fn(|cx| {
            for (request, signal) in &mut self.listened {
                while let Poll::Ready(Some(())) = signal.poll_recv(cx) {
                    if request.is_some() {
                        return Poll::Ready(*request);
                    }
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Returns the set of signals that the process ignores, where the system shows it.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .unwrap_or_default()
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the other systems' listeners may fail"
    )]
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Option<Request> {
        tokio::signal::ctrl_c().await.ok()?;
        Some(Request::Interrupt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupts() -> Interrupts {
        Interrupts {
            state: Arc::default(),
            give_up: CancellationToken::new(),
            echoes: Echoes::default(),
        }
    }

    #[test]
    fn a_signal_that_was_dealt_with_does_not_count_for_the_next() {
        let interrupts = interrupts();
        interrupts.take(Request::Interrupt);
        assert!(interrupts.is_interrupted());
        interrupts.go_on();
        assert!(!interrupts.is_interrupted());
        interrupts.take(Request::Interrupt);
        assert!(!interrupts.give_up.is_cancelled());
        interrupts.take(Request::Interrupt);
        assert!(interrupts.give_up.is_cancelled());
    }

    #[test]
    fn in_a_conversation_the_second_interrupt_ends_it_and_the_third_gives_up() {
        let interrupts = interrupts();
        interrupts.outlive();
        interrupts.take(Request::Interrupt);
        interrupts.go_on();
        assert!(!interrupts.is_interrupted());
        interrupts.take(Request::Interrupt);
        interrupts.take(Request::Interrupt);
        interrupts.go_on();
        assert!(interrupts.is_interrupted());
        assert!(!interrupts.give_up.is_cancelled());
        interrupts.take(Request::Interrupt);
        assert!(interrupts.give_up.is_cancelled());
    }

    #[test]
    fn nothing_goes_on_after_a_request_to_end() {
        let interrupts = interrupts();
        interrupts.take(Request::End);
        interrupts.go_on();
        assert!(interrupts.is_interrupted());
    }
}
