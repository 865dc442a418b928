//! Keeps channels connected: starts them again after a failure, and keeps the status of each.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;
use tenterhook_protocol::event::{ChannelDisconnectReason, Notification, NotificationLevel};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::conversations::gateway_events::{GatewayEvents, GatewayFailure};
use tenterhook_channel::channel::{Channel, ChannelError, Inlet, Intake};
use tenterhook_channel::chat::ChannelId;

/// How long a channel must have run for its next failure to count as the first.
const STEADY: Duration = Duration::from_mins(1);

/// How long a channel may take to end. Programs get 5 seconds of it, twice.
const STOP_PATIENCE: Duration = Duration::from_secs(15);

/// The state of a channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelState {
    /// It connects.
    #[default]
    Starting,
    /// It is connected.
    Up,
    /// It was connected, and has shown no sign of life for two of its intervals.
    Silent,
    /// It failed and is tried again, also if its service refused it: a token can be right again.
    BackingOff,
    /// A hook of `channel_connect` blocked it.
    Blocked,
    /// It was switched off, or has ended.
    Off,
}

/// The status of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChannelStatus {
    /// The channel.
    pub id: ChannelId,
    /// The word for its kind.
    pub kind: &'static str,
    /// Its state.
    pub state: ChannelState,
    /// Since when.
    pub since: Timestamp,
    /// When it last received a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message: Option<Timestamp>,
    /// When it was last seen to be connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_alive: Option<Timestamp>,
    /// The last failure, or the reason of a hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When a channel that failed is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Timestamp>,
}

/// Receives changes of a channel's state, for the log. It must not block.
pub(crate) type StatusSink = Arc<dyn Fn(&ChannelStatus) + Send + Sync>;

/// A channel and what is known about it.
pub(crate) struct Supervised {
    id: ChannelId,
    channel: Arc<dyn Channel>,
    status: Mutex<ChannelStatus>,
    changed: StatusSink,
    /// Cancelled to end the current attempt and begin the next one.
    attempt: Mutex<CancellationToken>,
    /// Wakes a channel that waits for its next attempt.
    restart: Notify,
    /// Why the channel has ended, if it has.
    ended: Mutex<Option<ChannelDisconnectReason>>,
    /// Ends the channel for good, once it has been started.
    removal: Mutex<Option<CancellationToken>>,
    /// Cancelled when a channel that was started has ended.
    done: CancellationToken,
}

impl Supervised {
    pub(crate) fn new(
        id: ChannelId,
        kind: &'static str,
        channel: Arc<dyn Channel>,
        changed: StatusSink,
    ) -> Self {
        Self {
            id: id.clone(),
            channel,
            status: Mutex::new(ChannelStatus {
                id,
                kind,
                state: ChannelState::Starting,
                since: Timestamp::now(),
                last_message: None,
                last_alive: None,
                error: None,
                next_attempt: None,
            }),
            changed,
            attempt: Mutex::new(CancellationToken::new()),
            restart: Notify::new(),
            ended: Mutex::default(),
            removal: Mutex::default(),
            done: CancellationToken::new(),
        }
    }

    pub(crate) fn id(&self) -> &ChannelId {
        &self.id
    }

    pub(crate) fn status(&self) -> ChannelStatus {
        let mut status = self.status.lock().clone();
        if status.state == ChannelState::Up && self.is_silent(&status) {
            status.state = ChannelState::Silent;
        }
        status
    }

    pub(crate) fn state(&self) -> ChannelState {
        self.status().state
    }

    /// Returns whether the channel's last sign of life is older than two of its intervals.
    fn is_silent(&self, status: &ChannelStatus) -> bool {
        let (Some(interval), Some(alive)) = (self.channel.alive_interval(), status.last_alive)
        else {
            return false;
        };
        let silence = Duration::try_from(Timestamp::now().duration_since(alive));
        silence.is_ok_and(|silence| silence > interval.saturating_mul(2))
    }

    /// Returns the channel itself.
    pub(crate) fn channel(&self) -> Arc<dyn Channel> {
        Arc::clone(&self.channel)
    }

    /// Notes that a hook blocked the channel.
    pub(crate) fn block(&self, reason: String) {
        self.set(ChannelState::Blocked, Some(reason), None);
    }

    /// Notes a message.
    pub(crate) fn note_message(&self) {
        self.status.lock().last_message = Some(Timestamp::now());
    }

    /// Notes that the channel is connected. Returns whether it was not before.
    pub(crate) fn note_alive(&self) -> bool {
        let state = {
            let mut status = self.status.lock();
            status.last_alive = Some(Timestamp::now());
            status.state
        };
        if state == ChannelState::Up {
            return false;
        }
        self.set(ChannelState::Up, None, None);
        true
    }

    /// Ends the current attempt and begins another one at once. Returns whether it did: a channel that a hook blocked, or
    /// that has ended, has no attempts.
    pub(crate) fn restart(&self) -> bool {
        if matches!(self.state(), ChannelState::Blocked | ChannelState::Off) {
            return false;
        }
        self.attempt.lock().cancel();
        self.restart.notify_one();
        true
    }

    fn set(&self, state: ChannelState, error: Option<String>, wait: Option<Duration>) {
        let status = {
            let mut status = self.status.lock();
            let next = wait.and_then(|wait| Timestamp::now().checked_add(wait).ok());
            status.next_attempt = next;
            if status.state != state {
                status.state = state;
                status.since = Timestamp::now();
            }
            if error.is_some() || state == ChannelState::Up {
                status.error = error;
            }
            status.clone()
        };
        (self.changed)(&status);
    }

    /// Returns why the channel was disconnected when the gateway ends. `None` if it never connected.
    pub(crate) fn disconnect_reason(&self) -> Option<ChannelDisconnectReason> {
        let is_blocked = self.state() == ChannelState::Blocked;
        let ended = *self.ended.lock();
        (!is_blocked).then(|| ended.unwrap_or(ChannelDisconnectReason::Shutdown))
    }

    /// Ends the channel for good, and waits until it has ended.
    pub(crate) async fn remove(&self) {
        let removal = self.removal.lock().clone();
        if let Some(removal) = removal {
            removal.cancel();
            self.done.cancelled().await;
        }
    }

    /// Runs the channel until `stop`, or until it ends by itself or is removed.
    pub(crate) async fn supervise(
        self: &Arc<Self>,
        intake: &Arc<dyn Intake>,
        events: &GatewayEvents,
        stop: &CancellationToken,
    ) -> ChannelDisconnectReason {
        let removal = stop.child_token();
        *self.removal.lock() = Some(removal.clone());
        let mut reason = self.run_attempts(intake, events, &removal).await;
        if reason == ChannelDisconnectReason::Shutdown && !stop.is_cancelled() {
            reason = ChannelDisconnectReason::Removed;
        }
        *self.ended.lock() = Some(reason);
        self.done.cancel();
        reason
    }

    async fn run_attempts(
        &self,
        intake: &Arc<dyn Intake>,
        events: &GatewayEvents,
        stop: &CancellationToken,
    ) -> ChannelDisconnectReason {
        let mut backoff = Backoff::of_channels();
        loop {
            let begun = Instant::now();
            let attempt = stop.child_token();
            *self.attempt.lock() = attempt.clone();
            let result = self.attempt(intake, &attempt, stop).await;
            // What belongs to this attempt can deliver nothing any more.
            let was_restarted = attempt.is_cancelled();
            attempt.cancel();
            if stop.is_cancelled() {
                return self.end_off(ChannelDisconnectReason::Shutdown);
            }
            if let Err(error) = &result {
                self.report(events, error).await;
            }
            match result {
                Ok(()) if !was_restarted => return self.end_off(ChannelDisconnectReason::Removed),
                Err(error) if !was_restarted => {
                    if begun.elapsed() >= STEADY {
                        backoff = Backoff::of_channels();
                    }
                    let wait = backoff.next_wait();
                    self.set(ChannelState::BackingOff, Some(error.cause), Some(wait));
                    tokio::select! {
                        () = stop.cancelled() => {
                            return self.end_off(ChannelDisconnectReason::Failed);
                        }
                        () = tokio::time::sleep(wait) => continue,
                        () = self.restart.notified() => {}
                    }
                }
                _ => {}
            }
            // Someone has restarted it. What was noted for a wait is used up, so that it cannot shorten the next one.
            let _used = self.restart.notified().now_or_never();
            backoff = Backoff::of_channels();
            self.set(ChannelState::Starting, None, None);
        }
    }

    fn end_off(&self, reason: ChannelDisconnectReason) -> ChannelDisconnectReason {
        self.set(ChannelState::Off, None, None);
        reason
    }

    /// Runs one attempt on a task of its own, so that a panic is a failure of the channel only. A channel that does not
    /// end when it should is abandoned.
    async fn attempt(
        &self,
        intake: &Arc<dyn Intake>,
        attempt: &CancellationToken,
        stop: &CancellationToken,
    ) -> Result<(), ChannelError> {
        let inlet = Inlet::new(self.id.clone(), Arc::clone(intake), attempt.clone());
        let (channel, token) = (Arc::clone(&self.channel), attempt.clone());
        let mut task = tokio::spawn(async move { channel.run(inlet, token).await });
        let deadline = async {
            attempt.cancelled().await;
            tokio::time::sleep(STOP_PATIENCE).await;
        };
        let ended = tokio::select! {
            ended = &mut task => ended,
            () = deadline => {
                task.abort();
                return if stop.is_cancelled() {
                    Ok(())
                } else {
                    Err(ChannelError::new("stuck", "the channel did not stop, so it was abandoned"))
                };
            }
        };
        ended.unwrap_or_else(|_| {
            Err(ChannelError::new(
                "crashed",
                "the channel crashed; this is a bug",
            ))
        })
    }

    async fn report(&self, events: &GatewayEvents, error: &ChannelError) {
        let failure = GatewayFailure {
            code: error.code.to_owned(),
            error: error.cause.clone(),
            will_retry: true,
            ..GatewayFailure::default()
        };
        events.failed(&self.id, failure).await;
    }
}

/// Lets hooks know that a channel that had failed is connected again.
pub(crate) async fn announce_return(events: &GatewayEvents, id: &ChannelId) {
    let text = format!("the channel `{id}` is connected again");
    let build = || Notification::new(NotificationLevel::Info, text).with_kind("channel_up");
    let _observed = events.dispatcher().dispatch_with(build).await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures_util::future::{self, BoxFuture};
    use tenterhook_channel::channel::{
        Accepted, ChannelCapabilities, DeliveryError, MediaSink, Outgoing, Receipt,
    };
    use tenterhook_channel::chat::ChatRef;
    use tenterhook_channel::frame::Frame;
    use tenterhook_channel::message::{Control, IncomingMessage, MediaRef};
    use tenterhook_engine::Engine;
    use tenterhook_protocol::event::SenderRole;

    use super::*;

    /// A channel that counts how often it was started. It never ends unless it is brief or refused.
    #[derive(Default)]
    struct Stubborn {
        starts: AtomicU32,
        is_brief: bool,
        /// How many attempts the service refuses.
        refusals: u32,
    }

    impl Channel for Stubborn {
        fn capabilities(&self) -> ChannelCapabilities {
            ChannelCapabilities {
                speaks_frames: false,
                max_file: 0,
                audio_formats: &[],
            }
        }

        fn run(
            &self,
            inlet: Inlet,
            _stop: CancellationToken,
        ) -> BoxFuture<'_, Result<(), ChannelError>> {
            if self.starts.fetch_add(1, Ordering::AcqRel) < self.refusals {
                let error = ChannelError::new("unauthorized", "Unauthorized (401)");
                return Box::pin(future::ready(Err(error)));
            }
            inlet.alive();
            if self.is_brief {
                return Box::pin(future::ready(Ok(())));
            }
            Box::pin(future::pending())
        }

        fn fetch<'a>(
            &'a self,
            _: &'a MediaRef,
            _: &'a mut MediaSink,
        ) -> BoxFuture<'a, Result<(), ChannelError>> {
            Box::pin(future::ready(Ok(())))
        }

        fn send<'a>(&'a self, _: &'a Outgoing) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
            Box::pin(future::ready(Ok(Receipt::default())))
        }

        fn live(&self, _: &ChatRef, _: &Frame) {}

        fn alive_interval(&self) -> Option<Duration> {
            Some(Duration::from_secs(30))
        }
    }

    /// Takes nothing.
    struct Deaf;

    impl Intake for Deaf {
        fn offer<'a>(
            &'a self,
            _: &'a ChannelId,
            _: Option<SenderRole>,
            _: IncomingMessage,
        ) -> BoxFuture<'a, Accepted> {
            Box::pin(future::ready(Accepted::Duplicate))
        }

        fn control<'a>(
            &'a self,
            _: &'a ChannelId,
            _: Option<SenderRole>,
            _: Control,
        ) -> BoxFuture<'a, Option<String>> {
            Box::pin(future::ready(None))
        }

        fn is_alive(&self, _: &ChannelId) {}

        fn offset<'a>(
            &'a self,
            _: &'a ChannelId,
            _: &'a str,
        ) -> BoxFuture<'a, Result<Option<i64>, String>> {
            Box::pin(future::ready(Ok(None)))
        }

        fn set_offset<'a>(&'a self, _: &'a ChannelId, _: &'a str, _: i64) -> BoxFuture<'a, bool> {
            Box::pin(future::ready(true))
        }
    }

    fn supervised() -> (Arc<Supervised>, Arc<Stubborn>) {
        let (id, channel) = (ChannelId::new("tg").unwrap(), Arc::new(Stubborn::default()));
        let shared = Arc::clone(&channel) as Arc<dyn Channel>;
        let supervised = Supervised::new(id, "telegram", shared, Arc::new(|_| {}));
        (Arc::new(supervised), channel)
    }

    #[tokio::test(start_paused = true)]
    async fn a_channel_that_ignores_its_end_is_abandoned_and_started_again() {
        let (supervised, channel) = supervised();
        let stop = CancellationToken::new();
        let (running, token) = (Arc::clone(&supervised), stop.clone());
        let ended = tokio::spawn(async move {
            let intake: Arc<dyn Intake> = Arc::new(Deaf);
            let events = GatewayEvents::new(&Engine::new(), "/");
            running.supervise(&intake, &events, &token).await
        });
        while channel.starts.load(Ordering::Acquire) < 1 {
            tokio::task::yield_now().await;
        }
        supervised.restart();
        while channel.starts.load(Ordering::Acquire) < 2 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        stop.cancel();
        assert_eq!(ended.await.unwrap(), ChannelDisconnectReason::Shutdown);
    }

    /// Supervises a channel that is refused so often, until it was started for the time after `starts`.
    async fn refused(refusals: u32) -> (Arc<Supervised>, Arc<Stubborn>, CancellationToken) {
        let channel = Arc::new(Stubborn {
            refusals,
            ..Stubborn::default()
        });
        let shared = Arc::clone(&channel) as Arc<dyn Channel>;
        let id = ChannelId::new("tg").unwrap();
        let supervised = Arc::new(Supervised::new(id, "telegram", shared, Arc::new(|_| {})));
        let stop = CancellationToken::new();
        let (running, token) = (Arc::clone(&supervised), stop.clone());
        tokio::spawn(async move {
            let intake: Arc<dyn Intake> = Arc::new(Deaf);
            let events = GatewayEvents::new(&Engine::new(), "/");
            running.supervise(&intake, &events, &token).await
        });
        while supervised.state() != ChannelState::BackingOff {
            tokio::task::yield_now().await;
        }
        (supervised, channel, stop)
    }

    async fn started(channel: &Stubborn, starts: u32) {
        while channel.starts.load(Ordering::Acquire) < starts {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_channel_whose_token_was_refused_is_tried_until_it_is_accepted() {
        let began = Instant::now();
        let (supervised, channel, stop) = refused(3).await;
        let status = supervised.status();
        assert_eq!(status.error.as_deref(), Some("Unauthorized (401)"));
        let next = status.next_attempt.unwrap().duration_since(status.since);
        assert!((700..1300).contains(&next.as_millis()), "{next:?}");
        started(&channel, 4).await;
        // It waited 1, 2 and 4 seconds, each up to 20 % longer or shorter.
        let waited = began.elapsed();
        assert!((5500..9000).contains(&waited.as_millis()), "{waited:?}");
        assert!(supervised.note_alive());
        let status = supervised.status();
        assert_eq!((status.error, status.next_attempt), (None, None));
        stop.cancel();
    }

    #[tokio::test(start_paused = true)]
    async fn a_restart_does_not_wait_and_the_waits_begin_anew() {
        let (supervised, channel, stop) = refused(u32::MAX).await;
        started(&channel, 7).await;
        let before = Instant::now();
        assert!(supervised.restart());
        started(&channel, 8).await;
        assert!(before.elapsed() < Duration::from_secs(1));
        started(&channel, 9).await;
        assert!(before.elapsed() < Duration::from_secs(2));
        stop.cancel();
        while supervised.state() != ChannelState::Off {
            tokio::task::yield_now().await;
        }
        assert!(!supervised.restart());
        let failed = Some(ChannelDisconnectReason::Failed);
        supervised.done.cancelled().await;
        assert_eq!(supervised.disconnect_reason(), failed);
    }

    #[tokio::test]
    async fn a_channel_that_ended_by_itself_was_not_shut_down() {
        let (id, channel) = (
            ChannelId::new("stdio").unwrap(),
            Arc::new(Stubborn {
                is_brief: true,
                ..Stubborn::default()
            }),
        );
        let supervised = Arc::new(Supervised::new(id, "stdio", channel, Arc::new(|_| {})));
        let shutdown = Some(ChannelDisconnectReason::Shutdown);
        assert_eq!(supervised.disconnect_reason(), shutdown);
        let intake: Arc<dyn Intake> = Arc::new(Deaf);
        let events = GatewayEvents::new(&Engine::new(), "/");
        let stop = CancellationToken::new();
        supervised.supervise(&intake, &events, &stop).await;
        let removed = Some(ChannelDisconnectReason::Removed);
        assert_eq!(supervised.disconnect_reason(), removed);
        supervised.block("no".to_owned());
        assert_eq!(supervised.disconnect_reason(), None);
    }

    #[test]
    fn a_channel_without_signs_of_life_is_not_shown_as_up() {
        let (supervised, _) = supervised();
        assert!(supervised.note_alive());
        assert_eq!(supervised.state(), ChannelState::Up);
        let old = Timestamp::now() - jiff::SignedDuration::from_secs(61);
        supervised.status.lock().last_alive = Some(old);
        assert_eq!(supervised.state(), ChannelState::Silent);
        // It was up before, so this is not a return.
        assert!(!supervised.note_alive());
        assert_eq!(supervised.state(), ChannelState::Up);
    }
}
