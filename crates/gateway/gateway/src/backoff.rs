//! The waits between attempts: each is twice as long as the one before, with some chance in it.

use std::time::Duration;

/// The waits between the attempts of one thing.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    next: Duration,
    max: Duration,
}

impl Backoff {
    /// The first wait.
    pub(crate) const FIRST: Duration = Duration::from_secs(1);

    /// Returns the waits between attempts to send a frame: 1 second to 1 minute.
    pub(crate) fn of_sends() -> Self {
        Self {
            next: Self::FIRST,
            max: Duration::from_mins(1),
        }
    }

    /// Returns the waits between attempts to connect a channel: 1 second to 5 minutes.
    pub(crate) fn of_channels() -> Self {
        Self {
            next: Self::FIRST,
            max: Duration::from_mins(5),
        }
    }

    /// Returns the next wait, up to 20 % longer or shorter. So chats that failed together are not tried together.
    pub(crate) fn next_wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = wait.saturating_mul(2).min(self.max);
        wait.mul_f64(0.8 + 0.4 * random_fraction())
    }
}

/// Returns a random number from 0 to 1, or 0.5 if there is no source of randomness.
fn random_fraction() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let mut backoff = Backoff::of_sends();
        for seconds in [1_u64, 2, 4, 8, 16, 32, 60, 60] {
            let wait = backoff.next_wait().as_secs_f64();
            let exact = f64::from(u32::try_from(seconds).unwrap());
            assert!(
                (exact * 0.8..=exact * 1.2).contains(&wait),
                "{wait} for {seconds}"
            );
        }
    }
}
