//! The limits of one run: time, output, and held pipes.
//!
//! These are plain values. The `run` module applies them.

use std::time::Duration;

/// The limits of one run.
///
/// | field | default |
/// |---|---|
/// | `timeout` | 60 s |
/// | `grace` | 2 s |
/// | `stdout` | 1 MiB: the first 768 KiB and the last 256 KiB |
/// | `stderr` | 64 KiB: the first 16 KiB and the last 48 KiB |
/// | `held_pipe` | [`HeldPipe::Wait`] |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The time for the start, standard input, both outputs and the exit together. It begins when the
    /// run has got its slot.
    pub timeout: Duration,
    /// The time between the request to terminate and the kill.
    pub grace: Duration,
    /// How much of standard output is kept.
    pub stdout: Capture,
    /// How much of standard error is kept.
    pub stderr: Capture,
    /// What happens if another process holds a pipe after the child has exited.
    pub held_pipe: HeldPipe,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_mins(1),
            grace: Duration::from_secs(2),
            stdout: Capture {
                head: 768 * 1024,
                tail: 256 * 1024,
            },
            stderr: Capture {
                head: 16 * 1024,
                tail: 48 * 1024,
            },
            held_pipe: HeldPipe::Wait,
        }
    }
}

/// How many bytes of an output are kept: the beginning and the end.
///
/// Everything between them is read and dropped, so the child never blocks on a full pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capture {
    /// How many bytes of the beginning are kept.
    pub head: usize,
    /// How many bytes of the end are kept, in addition to the head.
    pub tail: usize,
}

/// What happens if the child exits while another process still holds its output pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldPipe {
    /// The run ends when all processes have closed the pipes. At the deadline, the run counts as timed
    /// out, even if the child itself has succeeded.
    Wait,
    /// The run ends this long after the exit of the child, but not after the deadline. It returns the
    /// output until then. The rest of the group is killed.
    Drain(Duration),
    /// Like [`HeldPipe::Drain`], but the rest of the group stays alive after the child has exited, so
    /// that `server &` in an interactive shell keeps running. A timeout, a cancellation and a dropped
    /// run still kill the group. On Unix, the group is also killed when this process ends.
    Release(Duration),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_documented_ones() {
        let limits = Limits::default();
        assert_eq!(limits.timeout, Duration::from_mins(1));
        assert_eq!(limits.grace, Duration::from_secs(2));
        assert_eq!(limits.stdout.head + limits.stdout.tail, 1024 * 1024);
        assert_eq!(limits.stderr.head + limits.stderr.tail, 64 * 1024);
        assert_eq!(limits.held_pipe, HeldPipe::Wait);
    }
}
