//! The limits of a run.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;

/// The limits of a run.
///
/// | field | default |
/// |---|---|
/// | `max_iterations` | 100 model calls |
/// | `token_budget` | none |
/// | `compact_at` | 90 % of the context window |
/// | `context_window` | the provider's value |
/// | `repeated_calls` | 5 |
/// | `stop_hooks` | 8 |
/// | `task_depth` | 3 |
/// | `background_tasks` | 8 |
/// | `grace` | 5 s |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// The number of model calls in one run, at least 1, after which the user is asked whether to continue.
    pub max_iterations: u32,
    /// The number of tokens of the session and its subagents after which no tool call runs.
    pub token_budget: Option<u64>,
    /// The context's size in tokens, at least 1, at which it is compacted. After a failed compaction, the next
    /// attempt waits until the context has grown by a tenth of this.
    pub compact_at: Option<u64>,
    /// The model's context window in tokens. It takes precedence over the provider's value.
    pub context_window: Option<u64>,
    /// The number of equal tool calls in a row that counts as a loop.
    pub repeated_calls: u32,
    /// How many times in a row stop hooks may keep the agent going.
    pub stop_hooks: u32,
    /// How many levels deep tasks may be delegated.
    pub task_depth: u32,
    /// The maximum number of background tasks that a session and its subagents may have at once. 0
    /// means none.
    pub background_tasks: u32,
    /// How long a tool may take to end by itself after the run is cancelled.
    pub grace: Duration,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            max_iterations: 100,
            token_budget: None,
            compact_at: None,
            context_window: None,
            repeated_calls: 5,
            stop_hooks: 8,
            task_depth: 3,
            background_tasks: 8,
            grace: Duration::from_secs(5),
        }
    }
}

/// How failed model calls are retried. The pause doubles with each attempt. A part of it is random, so that agents
/// that failed together do not retry together.
///
/// | field | default |
/// |---|---|
/// | `attempts` | 3 |
/// | `first_pause` | 1 s |
/// | `longest_pause` | 30 s |
/// | `jitter` | 25 % |
/// | `seed` | none: pauses are random |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of attempts of one model call, including the first.
    pub attempts: u32,
    /// The pause before the second attempt.
    pub first_pause: Duration,
    /// The longest pause, even if the service asks for a longer one.
    pub longest_pause: Duration,
    /// How much shorter a pause may be at random, in per cent. A pause that the service asked for is instead
    /// lengthened by up to this much, so that it is never too short.
    pub jitter: u8,
    /// A seed that makes the pauses the same each time, for tests.
    pub seed: Option<u64>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(30),
            jitter: 25,
            seed: None,
        }
    }
}

impl RetryPolicy {
    /// Returns the pause before retry number `retry`, counted from 1. `asked` is the pause that the service asked
    /// for.
    pub(crate) fn pause(&self, retry: u32, asked: Option<Duration>) -> Duration {
        let part = self.part(retry);
        let pause = if let Some(asked) = asked {
            asked.saturating_add(part_of(asked, part))
        } else {
            let doublings = 2_u32.saturating_pow(retry.saturating_sub(1));
            let doubled = self.first_pause.saturating_mul(doublings);
            let doubled = doubled.min(self.longest_pause);
            doubled.saturating_sub(part_of(doubled, part))
        };
        pause.min(self.longest_pause)
    }

    /// Returns the random part of a pause, in thousandths.
    fn part(&self, retry: u32) -> u32 {
        let most = u64::from(self.jitter.min(100)) * 10;
        let drawn = match self.seed {
            Some(seed) => mix(seed.wrapping_add(u64::from(retry))),
            // A source of randomness in the standard library: each `RandomState` has different keys.
            None => RandomState::new().hash_one(retry),
        };
        u32::try_from(drawn % (most + 1)).unwrap_or_default()
    }
}

fn part_of(pause: Duration, thousandths: u32) -> Duration {
    pause.saturating_mul(thousandths) / 1000
}

/// Spreads the bits of a seed as `SplitMix64` does.
fn mix(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_documented_ones() {
        let limits = AgentLimits::default();
        assert_eq!(
            (
                limits.max_iterations,
                limits.token_budget,
                limits.compact_at
            ),
            (100, None, None)
        );
        assert_eq!(
            (limits.repeated_calls, limits.stop_hooks, limits.task_depth),
            (5, 8, 3)
        );
        assert_eq!(limits.background_tasks, 8);
        assert_eq!(limits.grace.as_secs(), 5);
        let retry = RetryPolicy::default();
        assert_eq!(
            (
                retry.attempts,
                retry.first_pause.as_secs(),
                retry.longest_pause.as_secs()
            ),
            (3, 1, 30)
        );
    }

    #[test]
    fn pauses_double_and_are_capped_also_when_asked_for() {
        let policy = RetryPolicy {
            jitter: 0,
            ..RetryPolicy::default()
        };
        let pauses: Vec<u64> = (1..=7)
            .map(|retry| policy.pause(retry, None).as_secs())
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(
            policy.pause(1, Some(Duration::from_secs(7))),
            Duration::from_secs(7)
        );
        assert_eq!(
            policy.pause(1, Some(Duration::from_hours(1))),
            Duration::from_secs(30)
        );
    }

    #[test]
    fn chance_makes_pauses_shorter_and_those_that_were_asked_for_longer() {
        let second = Duration::from_secs(1);
        for seed in (0..200).map(Some).chain([None; 20]) {
            let policy = RetryPolicy {
                seed,
                ..RetryPolicy::default()
            };
            let own = policy.pause(1, None);
            assert!(second * 3 / 4 <= own && own <= second, "{seed:?}: {own:?}");
            let asked = policy.pause(1, Some(second));
            assert!(
                second <= asked && asked <= second * 5 / 4,
                "{seed:?}: {asked:?}"
            );
        }
    }

    #[test]
    fn a_seed_makes_pauses_that_differ_from_try_to_try_and_not_from_run_to_run() {
        let pauses = |seed| {
            let policy = RetryPolicy {
                first_pause: Duration::from_secs(8),
                longest_pause: Duration::from_secs(8),
                seed: Some(seed),
                ..RetryPolicy::default()
            };
            [1, 2, 3].map(|retry| policy.pause(retry, None))
        };
        assert_eq!(pauses(7), pauses(7));
        assert_ne!(pauses(7), pauses(8));
        let [first, second, third] = pauses(7);
        assert!(first != second && second != third);
    }
}
