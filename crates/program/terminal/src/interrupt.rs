//! Handles Ctrl-C and all other signals that ask the program to end, in one task for the whole process.
//!
//! The first signal cancels the current work and lets it end cleanly: process groups are killed, and hooks of the end
//! run. A second signal before that end stops the program at once. In a conversation with a person, the first Ctrl-C
//! cancels only the current run. A second Ctrl-C before the run has ended also ends the conversation cleanly, and a
//! third stops the program at once.

#[cfg(unix)]
use std::future::poll_fn;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
#[cfg(unix)]
use std::task::Poll;

#[cfg(unix)]
use parking_lot::{Mutex, MutexGuard};
use rustix::process::Signal;
use tenterhook_agent::CancellationToken;
use tokio::sync::Notify;

use crate::output;

/// The effects of signals on the program.
#[derive(Debug, Clone)]
pub struct Interrupts {
    state: Arc<Mutex<InterruptState>>,
    give_up: CancellationToken,
    echoes: Echoes,
}

/// Counts the Ctrl-Cs that a terminal may have shown as `^C` in its current line.
#[derive(Debug, Clone, Default)]
pub struct Echoes {
    count: Arc<AtomicUsize>,
    seen: usize,
}

impl Echoes {
    /// Returns whether there was a Ctrl-C since the last call.
    pub fn is_new(&mut self) -> bool {
        let count = self.count.load(Ordering::Relaxed);
        std::mem::replace(&mut self.seen, count) != count
    }
}

#[derive(Debug, Default)]
struct InterruptState {
    /// Cancelled by the next signal.
    current: CancellationToken,
    /// Whether the program must end, not only its current work.
    is_ending: bool,
    /// Whether a conversation continues after an interrupted run.
    outlives: bool,
    /// Cancelled by the signal after the first one, if the program needs time to end.
    hurry: Option<CancellationToken>,
    /// Notified of `SIGHUP`, if it does not end the program.
    hangup: Option<Hangup>,
}

/// What happens on `SIGHUP` in a program that reloads its settings.
#[derive(Debug)]
struct Hangup {
    notify: Arc<Notify>,
    /// Whether the program was started at a terminal, whose end also sends the signal.
    is_at_terminal: bool,
}

/// What a signal requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InterruptRequest {
    /// Stop the current work.
    Interrupt,
    /// End the program.
    End,
    /// Reload the settings, or end the program if it has none to reload.
    Reload,
}

impl Interrupts {
    /// Starts to listen for signals. From then on, no caught signal ends the program directly.
    pub fn listen() -> io::Result<Self> {
        let this = Self {
            state: Arc::default(),
            give_up: CancellationToken::new(),
            echoes: Echoes::default(),
        };
        let mut signals = Signals::new()?;
        let listener = this.clone();
        tokio::spawn(async move {
            while let Some(request) = signals.next().await {
                if request == InterruptRequest::Reload && listener.is_reloaded() {
                    continue;
                }
                listener.echoes.count.fetch_add(1, Ordering::Relaxed);
                if listener.handle_signal(request) {
                    output::note(
                        "\nThe session ends after the current work. Press Ctrl-C again to end it at once.",
                    );
                }
            }
        });
        Ok(this)
    }

    /// Declares that `SIGHUP` asks the program to reload its settings. The end of its terminal still ends it.
    pub fn reload_on_hangup(&self) -> Arc<Notify> {
        let notify = Arc::<Notify>::default();
        self.state().hangup = Some(Hangup {
            notify: Arc::clone(&notify),
            is_at_terminal: io::stdin().is_terminal(),
        });
        notify
    }

    /// Passes `SIGHUP` on. Returns whether it does not end the program.
    fn is_reloaded(&self) -> bool {
        let state = self.state();
        let Some(hangup) = &state.hangup else {
            return false;
        };
        // A terminal that has been closed is not one any more.
        let is_closed = hangup.is_at_terminal && !io::stdin().is_terminal();
        if !is_closed {
            hangup.notify.notify_one();
        }
        !is_closed
    }

    /// Applies a signal. Returns whether it ends a conversation that would otherwise continue.
    fn handle_signal(&self, request: InterruptRequest) -> bool {
        let mut state = self.state();
        let ends_more =
            state.outlives && request == InterruptRequest::Interrupt && !state.is_ending;
        if state.current.is_cancelled() && !ends_more {
            match &state.hurry {
                Some(hurry) if !hurry.is_cancelled() => hurry.cancel(),
                _ => self.give_up.cancel(),
            }
        }
        let ends = state.current.is_cancelled();
        state.is_ending |= request != InterruptRequest::Interrupt || ends;
        state.current.cancel();
        ends && ends_more
    }

    /// Returns the counter of Ctrl-Cs that the terminal may have shown.
    pub fn echoes(&self) -> Echoes {
        self.echoes.clone()
    }

    /// Declares that the program needs time to end. Returns the token that a second signal cancels; a third signal then
    /// stops the program at once.
    pub fn hurry(&self) -> CancellationToken {
        let mut state = self.state();
        state.hurry.get_or_insert_default().clone()
    }

    /// Does the same as Ctrl-C, for a terminal that sends Ctrl-C as a key.
    pub fn interrupt(&self) {
        self.handle_signal(InterruptRequest::Interrupt);
    }

    /// Declares that there is a conversation with a person. It continues after an interrupted run.
    pub fn outlive(&self) {
        self.state().outlives = true;
    }

    /// Returns whether there is a conversation with a person.
    pub fn is_conversation(&self) -> bool {
        self.state().outlives
    }

    /// Ends the program cleanly.
    pub fn end(&self) {
        let mut state = self.state();
        state.is_ending = true;
        state.current.cancel();
    }

    /// Returns the token that the next signal cancels.
    pub fn token(&self) -> CancellationToken {
        self.state().current.clone()
    }

    /// Returns whether the current work was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.state().current.is_cancelled()
    }

    /// Resets a handled interruption, unless the program must end.
    pub fn go_on(&self) {
        let mut state = self.state();
        if !state.is_ending && state.current.is_cancelled() {
            state.current = CancellationToken::new();
        }
    }

    /// Resets an interruption at the prompt, if there is a conversation with a person. Returns whether the
    /// conversation continues.
    pub fn go_on_at_prompt(&self) -> bool {
        if self.state().outlives {
            self.go_on();
        }
        !self.is_interrupted()
    }

    /// Waits for the signal that ends the program at once.
    pub async fn given_up(&self) {
        self.give_up.cancelled().await;
    }

    fn state(&self) -> MutexGuard<'_, InterruptState> {
        self.state.lock()
    }
}

/// Signals that would end the program with their own exit status. They are caught, because agents that call `fire`
/// run the tool on any status except 2. `SIGKILL` cannot be caught, and signals that report a crash, such as
/// `SIGSEGV`, are not caught.
#[cfg(unix)]
const ENDING: [Signal; 12] = [
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

/// The signals to listen for. A signal that was ignored when the program started stays ignored, so that `nohup`
/// works.
#[cfg(unix)]
struct Signals {
    listened: Vec<(Option<InterruptRequest>, tokio::signal::unix::Signal)>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let ignored = ignored();
        let is_ignored = |signal: Signal| ignored & 1 << (signal.as_raw() - 1) != 0;
        let ending = ENDING.iter().chain(&MORE_ENDING);
        let wanted = ending
            .map(|signal| (*signal, Some(InterruptRequest::End)))
            .chain([
                (Signal::HUP, Some(InterruptRequest::Reload)),
                (Signal::INT, Some(InterruptRequest::Interrupt)),
                // Caught, so that a write beyond the file size limit fails and is reported.
                (Signal::XFSZ, None),
            ])
            .filter(|(signal, _)| !is_ignored(*signal))
            // This signal must not stay ignored, because the system would then reap child processes before the
            // program sees their exit.
            .chain(is_ignored(Signal::CHILD).then_some((Signal::CHILD, None)));
        let listened = wanted
            .map(|(kind, request)| Ok((request, signal(SignalKind::from_raw(kind.as_raw()))?)));
        Ok(Self {
            listened: listened.collect::<io::Result<_>>()?,
        })
    }

    async fn next(&mut self) -> Option<InterruptRequest> {
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

/// Returns the set of signals that the process ignores, if the system shows it.
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

    async fn next(&mut self) -> Option<InterruptRequest> {
        tokio::signal::ctrl_c().await.ok()?;
        Some(InterruptRequest::Interrupt)
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
        interrupts.handle_signal(InterruptRequest::Interrupt);
        assert!(interrupts.is_interrupted());
        interrupts.go_on();
        assert!(!interrupts.is_interrupted());
        interrupts.handle_signal(InterruptRequest::Interrupt);
        assert!(!interrupts.give_up.is_cancelled());
        interrupts.handle_signal(InterruptRequest::Interrupt);
        assert!(interrupts.give_up.is_cancelled());
    }

    #[test]
    fn a_program_that_needs_time_to_end_hurries_on_the_second_signal() {
        let interrupts = interrupts();
        let hurry = interrupts.hurry();
        interrupts.handle_signal(InterruptRequest::End);
        assert!(!hurry.is_cancelled());
        interrupts.handle_signal(InterruptRequest::End);
        assert!(hurry.is_cancelled() && !interrupts.give_up.is_cancelled());
        interrupts.handle_signal(InterruptRequest::End);
        assert!(interrupts.give_up.is_cancelled());
    }

    #[test]
    fn in_a_conversation_the_second_interrupt_ends_it_and_the_third_gives_up() {
        let interrupts = interrupts();
        interrupts.outlive();
        interrupts.handle_signal(InterruptRequest::Interrupt);
        interrupts.go_on();
        assert!(!interrupts.is_interrupted());
        interrupts.handle_signal(InterruptRequest::Interrupt);
        interrupts.handle_signal(InterruptRequest::Interrupt);
        interrupts.go_on();
        assert!(interrupts.is_interrupted());
        assert!(!interrupts.give_up.is_cancelled());
        interrupts.handle_signal(InterruptRequest::Interrupt);
        assert!(interrupts.give_up.is_cancelled());
    }

    #[test]
    fn nothing_goes_on_after_a_request_to_end() {
        let interrupts = interrupts();
        interrupts.handle_signal(InterruptRequest::End);
        interrupts.go_on();
        assert!(interrupts.is_interrupted());
    }
}
