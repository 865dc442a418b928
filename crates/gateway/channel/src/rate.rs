//! Limits how often someone may try: messages of senders, requests with tokens, and wrong secrets.
//!
//! Both limits remember a bounded number of keys. When there is no room, they forget the key that is closest to a fresh
//! state, so strangers with many ids cannot lock anyone out. The clock is tokio's, so tests can pause it.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::time::Instant;

use crate::chat::ChannelId;

/// The maximum number of keys that a limit remembers.
const MAX_KEYS: usize = 4096;

const SENDER_PER_MINUTE: NonZeroU32 = NonZeroU32::new(20).unwrap();
const SENDER_BURST: NonZeroU32 = NonZeroU32::new(10).unwrap();
const WEBHOOK_PER_MINUTE: NonZeroU32 = NonZeroU32::new(60).unwrap();
const SCRIPT_PER_MINUTE: NonZeroU32 = NonZeroU32::new(6).unwrap();
const SCRIPT_BURST: NonZeroU32 = NonZeroU32::new(3).unwrap();
const REPORTS_PER_MINUTE: NonZeroU32 = NonZeroU32::new(60).unwrap();
const TOKEN_PER_MINUTE: NonZeroU32 = NonZeroU32::new(60).unwrap();

/// The number of wrong secrets after which a source is locked.
const MAX_FAILURES: u32 = 5;
/// How long the first lock lasts. Each further one lasts twice as long as the one before.
const FIRST_LOCK: Duration = Duration::from_mins(5);
/// The longest lock.
const MAX_LOCK: Duration = Duration::from_hours(24);
/// How long a source is remembered after its last failure or the end of its last lock.
const MEMORY: Duration = Duration::from_hours(24);

/// Someone tried too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("too many attempts; try again in {} s", self.seconds())]
pub struct TooManyAttempts {
    /// How long to wait.
    pub retry_after: Duration,
}

impl TooManyAttempts {
    /// Returns the time to wait in whole seconds, at least 1, as the header `Retry-After` has it.
    pub fn seconds(&self) -> u64 {
        let is_partial = self.retry_after.subsec_nanos() > 0;
        self.retry_after
            .as_secs()
            .saturating_add(is_partial.into())
            .max(1)
    }
}

/// Limits the rate of events by key. Clones share their state.
///
/// Each key has a bucket with room for some events at once. The time of an event is when it happened, which can be long
/// before it is checked: messages that waited at a service were not sent at once.
#[derive(Clone)]
pub struct RateLimit {
    /// How long an event takes its place in the bucket, after those before it.
    interval: Duration,
    /// How far the events of a full bucket reach into the future when another one still has room.
    tolerance: Duration,
    /// Times are counted from here. The times of earlier events are negative.
    start: Instant,
    buckets: Arc<Mutex<HashMap<String, Bucket>>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// When it is empty.
    empty_at: SignedDuration,
    /// When the latest event happened.
    last: SignedDuration,
}

impl RateLimit {
    /// Creates a limit of `per_minute` events on average, of which `burst` may come at once.
    pub fn new(per_minute: NonZeroU32, burst: NonZeroU32) -> Self {
        let interval = Duration::from_mins(1) / per_minute.get();
        Self {
            interval,
            tolerance: interval * (burst.get() - 1),
            start: Instant::now(),
            buckets: Arc::default(),
        }
    }

    /// Creates the limit of messages of a sender: 20 a minute, 10 at once. The key is [`sender_key`].
    pub fn per_sender() -> Self {
        Self::new(SENDER_PER_MINUTE, SENDER_BURST)
    }

    /// Creates the limit of messages of a webhook, which come from one service: 60 a minute. The key is [`sender_key`].
    pub fn per_webhook() -> Self {
        Self::new(WEBHOOK_PER_MINUTE, WEBHOOK_PER_MINUTE)
    }

    /// Creates the limit of prompts that scripts send while a chat is idle: 6 a minute, 3 at once.
    pub fn of_scripts() -> Self {
        Self::new(SCRIPT_PER_MINUTE, SCRIPT_BURST)
    }

    /// Creates the limit of refusals that a sender sees: one a minute. The key is [`sender_key`].
    pub fn of_refusals() -> Self {
        Self::new(NonZeroU32::MIN, NonZeroU32::MIN)
    }

    /// Creates the limit of reports to the person who runs the gateway: one a second.
    pub fn of_reports() -> Self {
        Self::new(REPORTS_PER_MINUTE, NonZeroU32::MIN)
    }

    /// Creates the limit of requests with a token: 60 a minute. The key is the token's id.
    pub fn per_token() -> Self {
        Self::new(TOKEN_PER_MINUTE, TOKEN_PER_MINUTE)
    }

    /// Counts one event that happens now.
    ///
    /// # Errors
    ///
    /// Fails if there were too many events with this key. The event then does not count.
    pub fn check(&self, key: &str) -> Result<(), TooManyAttempts> {
        self.check_past(key, Duration::ZERO)
    }

    /// Counts one event that happened some time ago. If a later one of its key was counted before, it counts as if it had
    /// happened at the same time as that one.
    ///
    /// # Errors
    ///
    /// Fails like [`check`](Self::check).
    pub fn check_past(&self, key: &str, age: Duration) -> Result<(), TooManyAttempts> {
        let happened = signed(self.start.elapsed()).saturating_sub(signed(age));
        let mut buckets = self.buckets.lock();
        let known = buckets.get(key);
        let at = known.map_or(happened, |known| happened.max(known.last));
        let taken_until = known.map_or(at, |known| at.max(known.empty_at));
        let wait = taken_until.saturating_sub(at.saturating_add(signed(self.tolerance)));
        if wait.is_positive() {
            let retry_after = wait.unsigned_abs();
            return Err(TooManyAttempts { retry_after });
        }
        let bucket = Bucket {
            empty_at: taken_until.saturating_add(signed(self.interval)),
            last: at,
        };
        insert_bounded(&mut buckets, key.to_owned(), bucket, |bucket| {
            bucket.empty_at
        });
        Ok(())
    }

    /// Takes back an event that was counted, because it will be tried again.
    pub fn take_back(&self, key: &str) {
        if let Some(bucket) = self.buckets.lock().get_mut(key) {
            bucket.empty_at = bucket.empty_at.saturating_sub(signed(self.interval));
        }
    }
}

/// Returns a duration that can be subtracted from a shorter one.
fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RateLimit")
    }
}

/// Returns the key of a sender for [`RateLimit::check`].
pub fn sender_key(channel: &ChannelId, sender: &str) -> String {
    format!("{channel}:{sender}")
}

/// Inserts an entry. If there is no room for a new key, removes the entry that `until` orders first.
fn insert_bounded<K: Clone + Eq + std::hash::Hash, V, T: Ord>(
    entries: &mut HashMap<K, V>,
    key: K,
    value: V,
    until: impl Fn(&V) -> T,
) {
    if entries.len() >= MAX_KEYS && !entries.contains_key(&key) {
        let first = entries.iter().min_by_key(|(_, value)| until(value));
        if let Some(first) = first.map(|(key, _)| key.clone()) {
            entries.remove(&first);
        }
    }
    entries.insert(key, value);
}

/// Where wrong secrets come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttemptSource(Source);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Source {
    Address(IpAddr),
    Channel(ChannelId),
}

/// Addresses of one IPv6 network count as one source, because a single machine usually has all of them. So do all
/// addresses of the loopback: every program on this machine can use any of them.
impl From<IpAddr> for AttemptSource {
    fn from(address: IpAddr) -> Self {
        let address = match address.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            IpAddr::V4(address) if !address.is_loopback() => IpAddr::V4(address),
            IpAddr::V4(_) | IpAddr::V6(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        Self(Source::Address(address))
    }
}

/// For codes that are entered for a channel.
impl From<&ChannelId> for AttemptSource {
    fn from(channel: &ChannelId) -> Self {
        Self(Source::Channel(channel.clone()))
    }
}

/// Locks sources of wrong tokens and codes: 5 minutes after the fifth one, and twice as long each further time, up to
/// a day. The loopback is a source like any other. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct Lockout {
    attempts: Arc<Mutex<HashMap<AttemptSource, Attempts>>>,
}

#[derive(Debug, Clone, Copy)]
struct Attempts {
    failures: u32,
    locks: u32,
    locked_until: Option<Instant>,
    /// When the source can be forgotten.
    forgotten_at: Instant,
}

impl Lockout {
    /// Returns whether a source may try a secret. For a secret that can be guessed, such as a short code, call it before the
    /// secret is looked at. A token cannot be guessed, so a right one counts whatever its source has tried before.
    ///
    /// # Errors
    ///
    /// Fails while the source is locked.
    pub fn check(&self, source: impl Into<AttemptSource>) -> Result<(), TooManyAttempts> {
        let now = Instant::now();
        let attempts = self.attempts.lock();
        let locked_until = attempts
            .get(&source.into())
            .and_then(|attempts| attempts.locked_until)
            .filter(|until| *until > now);
        match locked_until {
            Some(until) => Err(TooManyAttempts {
                retry_after: until.duration_since(now),
            }),
            None => Ok(()),
        }
    }

    /// Counts a wrong secret. Requests without any secret do not count.
    pub fn failed(&self, source: impl Into<AttemptSource>) {
        let source = source.into();
        let now = Instant::now();
        let mut all = self.attempts.lock();
        let known = all
            .get(&source)
            .filter(|attempts| attempts.forgotten_at > now);
        let mut attempts = known.copied().unwrap_or(Attempts {
            failures: 0,
            locks: 0,
            locked_until: None,
            forgotten_at: now,
        });
        attempts.failures += 1;
        attempts.forgotten_at = now + MEMORY;
        if attempts.failures >= MAX_FAILURES {
            let doubled = 1_u32.checked_shl(attempts.locks).unwrap_or(u32::MAX);
            let until = now + FIRST_LOCK.saturating_mul(doubled).min(MAX_LOCK);
            attempts.failures = 0;
            attempts.locks = attempts.locks.saturating_add(1);
            attempts.locked_until = Some(until);
            attempts.forgotten_at = until + MEMORY;
        }
        insert_bounded(&mut all, source, attempts, |attempts| attempts.forgotten_at);
    }

    /// Forgets the failures of a source, because it has shown a right secret. Call it only if [`check`](Self::check)
    /// has succeeded.
    pub fn succeeded(&self, source: impl Into<AttemptSource>) {
        self.attempts.lock().remove(&source.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn fail(lockout: &Lockout, address: IpAddr, times: u32) {
        for _ in 0..times {
            assert_eq!(lockout.check(address), Ok(()));
            lockout.failed(address);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_may_send_10_at_once_and_20_a_minute() {
        let limit = RateLimit::per_sender();
        for _ in 0..10 {
            assert_eq!(limit.check("tg:1"), Ok(()));
        }
        let refused = limit.check("tg:1").unwrap_err();
        assert_eq!(refused.retry_after, Duration::from_secs(3));
        assert_eq!(refused.to_string(), "too many attempts; try again in 3 s");
        assert_eq!(limit.check("tg:2"), Ok(()), "others are not affected");
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(limit.check("tg:1"), Ok(()));
        assert!(limit.check("tg:1").is_err());
        tokio::time::advance(Duration::from_mins(1)).await;
        let accepted = (0..30).filter(|_| limit.check("tg:1").is_ok()).count();
        assert_eq!(accepted, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn messages_that_waited_at_a_service_count_when_they_were_sent() {
        let limit = RateLimit::per_sender();
        let past = |seconds| limit.check_past("tg:1", Duration::from_secs(seconds));
        // 3 seconds apart, so any number of them has room.
        for number in (1..=1_000).rev() {
            assert_eq!(past(3 * number), Ok(()), "{number}");
        }
        // At once, so only 10 have room.
        let accepted = (0..30).filter(|_| past(1).is_ok()).count();
        assert_eq!(accepted, 9);
        // An earlier one counts with the last one, and neither makes room nor is refused for longer.
        let refused = past(3_000).unwrap_err();
        assert!(refused.retry_after <= Duration::from_secs(3), "{refused}");
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(limit.check("tg:1"), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_is_tried_again_counts_once() {
        let limit = RateLimit::per_sender();
        for _ in 0..100 {
            assert_eq!(limit.check("tg:1"), Ok(()));
            limit.take_back("tg:1");
        }
        let accepted = (0..30).filter(|_| limit.check("tg:1").is_ok()).count();
        assert_eq!(accepted, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_may_be_used_60_times_a_minute() {
        let limit = RateLimit::per_token();
        let accepted = (0..100).filter(|_| limit.check("a").is_ok()).count();
        assert_eq!(accepted, 60);
    }

    #[tokio::test(start_paused = true)]
    async fn a_webhook_may_bring_60_messages_a_minute() {
        let limit = RateLimit::per_webhook();
        let accepted = (0..100).filter(|_| limit.check("hook:webhook").is_ok());
        assert_eq!(accepted.count(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn many_keys_neither_fill_the_memory_nor_free_a_busy_one() {
        let limit = RateLimit::per_sender();
        while limit.check("busy").is_ok() {}
        for stranger in 0..2 * MAX_KEYS {
            assert_eq!(limit.check(&format!("stranger {stranger}")), Ok(()));
        }
        assert!(limit.check("busy").is_err());
        let lockout = Lockout::default();
        fail(&lockout, ip("192.0.2.1"), 5);
        for number in 0..u32::try_from(2 * MAX_KEYS).unwrap() {
            lockout.failed(IpAddr::V4((0x0a00_0000 + number).into()));
        }
        assert!(lockout.check(ip("192.0.2.1")).is_err());
        assert_eq!(lockout.attempts.lock().len(), MAX_KEYS);
    }

    // G71
    #[tokio::test(start_paused = true)]
    async fn five_wrong_secrets_lock_the_loopback_for_longer_and_longer() {
        let lockout = Lockout::default();
        let loopback = ip("127.0.0.1");
        for minutes in [5, 10, 20, 40] {
            fail(&lockout, loopback, 5);
            let refused = lockout.check(loopback).unwrap_err();
            assert_eq!(refused.retry_after, Duration::from_mins(minutes));
            assert_eq!(lockout.check(ip("192.0.2.1")), Ok(()));
            tokio::time::advance(refused.retry_after).await;
        }
        for _ in 0..20 {
            fail(&lockout, loopback, 5);
            let refused = lockout.check(loopback).unwrap_err();
            assert!(refused.retry_after <= MAX_LOCK);
            tokio::time::advance(refused.retry_after).await;
        }
        tokio::time::advance(MEMORY).await;
        fail(&lockout, loopback, 5);
        let refused = lockout.check(loopback).unwrap_err();
        assert_eq!(refused.retry_after, FIRST_LOCK, "it was forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_secret_forgives_the_wrong_ones() {
        let lockout = Lockout::default();
        for _ in 0..3 {
            fail(&lockout, ip("127.0.0.1"), 4);
            lockout.succeeded(ip("127.0.0.1"));
        }
        assert_eq!(lockout.check(ip("127.0.0.1")), Ok(()));
    }

    #[test]
    fn an_ipv6_network_and_the_loopback_are_one_source_each_and_a_mapped_address_is_its_ipv4_address()
     {
        let source = |text: &str| AttemptSource::from(ip(text));
        assert_eq!(source("2001:db8:1:2::1"), source("2001:db8:1:2:ffff::9"));
        assert_ne!(source("2001:db8:1:2::1"), source("2001:db8:1:3::1"));
        assert_eq!(source("::ffff:127.0.0.1"), source("127.0.0.1"));
        assert_ne!(source("::1"), source("::2"));
        assert_eq!(source("127.8.9.10"), source("127.0.0.1"));
        assert_eq!(source("::1"), source("127.0.0.1"));
        let channel = ChannelId::new("tg").unwrap();
        assert_ne!(AttemptSource::from(&channel), source("::1"));
    }
}
