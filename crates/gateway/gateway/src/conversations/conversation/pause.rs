//! The pause of a conversation after the beginning of a turn could not be stored, for example because the disk is full.
//!
//! The turn is tried again until the conversation ends. Giving it up would let later messages overtake its own.

use std::time::Duration;

use tokio::time::Instant;

/// How long the first pause is. Each further one is twice as long.
const FIRST: Duration = Duration::from_secs(1);

/// The maximum length of a pause.
const MAX: Duration = Duration::from_mins(1);

/// A time in which no turn begins.
pub(super) struct Pause {
    pub(super) until: Instant,
    length: Duration,
}

impl Pause {
    /// Begins a pause after another failure.
    pub(super) fn after(last: Option<&Self>) -> Self {
        let length = last.map_or(FIRST, |last| last.length.saturating_mul(2).min(MAX));
        Self {
            until: Instant::now() + length,
            length,
        }
    }

    pub(super) fn is_going_on(&self) -> bool {
        Instant::now() < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_pause_is_twice_as_long_up_to_a_minute() {
        let mut pause = Pause::after(None);
        let mut lengths = vec![pause.length.as_secs()];
        for _ in 0..7 {
            pause = Pause::after(Some(&pause));
            lengths.push(pause.length.as_secs());
        }
        assert_eq!(lengths, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(pause.is_going_on());
        tokio::time::advance(MAX).await;
        assert!(!pause.is_going_on());
    }
}
