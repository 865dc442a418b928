//! How often a failed tool call is retried, and the pauses between attempts.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// When to retry failed runs of a tool. The pause doubles with each attempt. A random part of [`jitter`](Self::jitter)
/// is added, so that calls which failed together are not retried at the same moment.
///
/// The default is a single run, because a tool that failed may already have had effects.
///
/// | field | [`ToolRetry::once`] | [`ToolRetry::up_to`] |
/// |---|---|---|
/// | `attempts` | 1 | the argument |
/// | `first_pause` | 0 s | 1 s |
/// | `longest_pause` | 0 s | 30 s |
/// | `jitter` | 0 s | 0.5 s |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolRetry {
    /// The maximum number of runs of the tool for one call, including the first. 0 counts as 1.
    pub attempts: u32,
    /// The pause before the second run.
    pub first_pause: Duration,
    /// The longest pause, without its random part.
    pub longest_pause: Duration,
    /// The largest random part that is added to a pause.
    pub jitter: Duration,
}

impl Default for ToolRetry {
    fn default() -> Self {
        Self::once()
    }
}

impl ToolRetry {
    /// Never retries.
    pub const fn once() -> Self {
        Self {
            attempts: 1,
            first_pause: Duration::ZERO,
            longest_pause: Duration::ZERO,
            jitter: Duration::ZERO,
        }
    }

    /// Runs the tool at most `attempts` times, with pauses of 1 s, 2 s, 4 s … between the runs.
    pub const fn up_to(attempts: u32) -> Self {
        Self {
            attempts,
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(30),
            jitter: Duration::from_millis(500),
        }
    }

    /// Returns the pause after attempt number `attempt`, counted from 1. `chance` is the random part, from 0 to 1.
    fn pause(&self, attempt: u32, chance: f64) -> Duration {
        let doubled = self
            .first_pause
            .saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
        doubled.min(self.longest_pause) + self.jitter.mul_f64(chance.clamp(0.0, 1.0))
    }

    /// Returns the pause after attempt number `attempt`, counted from 1, with a random part of the jitter.
    pub fn random_pause(&self, attempt: u32) -> Duration {
        // The random keys of a hasher are random enough for a pause, and need no further dependency.
        let bytes = RandomState::new().hash_one(attempt).to_le_bytes();
        let [first, second, third, fourth, ..] = bytes;
        let number = u32::from_le_bytes([first, second, third, fourth]);
        self.pause(attempt, f64::from(number) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_jitter_comes_on_top() {
        let retry = ToolRetry::up_to(9);
        let seconds = |chance: f64| -> Vec<f64> {
            let pauses = (1..=7).map(|attempt| retry.pause(attempt, chance));
            pauses.map(|pause| pause.as_secs_f64()).collect()
        };
        assert_eq!(seconds(0.0), [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]);
        assert_eq!(seconds(1.0), [1.5, 2.5, 4.5, 8.5, 16.5, 30.5, 30.5]);
        for _ in 0..100 {
            let pause = retry.random_pause(1).as_secs_f64();
            assert!((1.0..=1.5).contains(&pause), "{pause}");
        }
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        assert_eq!(ToolRetry::default(), ToolRetry::once());
        assert_eq!(ToolRetry::once().attempts, 1);
        assert_eq!(ToolRetry::once().random_pause(1), Duration::ZERO);
        let retry = ToolRetry::up_to(3);
        assert_eq!(
            (
                retry.attempts,
                retry.first_pause.as_secs(),
                retry.longest_pause.as_secs(),
                retry.jitter.as_millis()
            ),
            (3, 1, 30, 500)
        );
    }
}
