use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{self, join_all};
use tempfile::TempDir;
use tenterhook_channel::channel::{ChannelError, Inlet};

use super::*;

/// A channel that keeps what it sends.
#[derive(Default)]
struct Kept {
    sent: Mutex<Vec<u64>>,
    has_bug: AtomicBool,
}

impl Channel for Kept {
    fn capabilities(&self) -> ChannelCapabilities {
        ChannelCapabilities {
            speaks_frames: false,
            max_file: 0,
            audio_formats: &[],
        }
    }

    fn run(&self, _: Inlet, _: CancellationToken) -> BoxFuture<'_, Result<(), ChannelError>> {
        Box::pin(future::ready(Ok(())))
    }

    fn fetch<'a>(
        &'a self,
        _: &'a MediaRef,
        _: &'a mut MediaSink,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(future::ready(Ok(())))
    }

    fn send<'a>(&'a self, outgoing: &'a Outgoing) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        assert!(!self.has_bug.swap(false, Ordering::AcqRel), "a bug");
        let seq = outgoing.frame.seq.unwrap_or_default();
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.sent.lock().push(seq);
            Ok(Receipt::default())
        })
    }

    fn live(&self, _: &ChatRef, _: &Frame) {}

    fn sends(&self, frame: &Frame) -> bool {
        !matches!(frame, Frame::Said { .. })
    }
}

fn message() -> Frame {
    Frame::Message {
        turn: None,
        text: "hi".to_owned(),
        media: None,
        reply_to: None,
    }
}

struct Stage {
    outbox: Outbox,
    channel: Arc<Kept>,
    chat: ChatRef,
    _folder: TempDir,
}

impl Stage {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let media = MediaFolder::open(&folder.path().join("media")).unwrap();
        let id = ChannelId::new("tg").unwrap();
        let channel = Arc::new(Kept::default());
        let shared = Arc::clone(&channel) as Arc<dyn Channel>;
        let channels = BTreeMap::from([(id.clone(), shared)]);
        Self {
            outbox: Outbox::new(store, media, channels, Arc::new(|_| {})),
            channel,
            chat: ChatRef {
                channel: id,
                chat: "42".to_owned(),
                thread: None,
            },
            _folder: folder,
        }
    }

    fn publish(&self) -> BoxFuture<'_, Result<(), PublishError>> {
        self.outbox
            .publish(&self.chat, vec![message()], InboxUpdate::default())
    }

    /// Returns what was sent when everything that was published is.
    async fn sent(&self, count: usize) -> Vec<u64> {
        let waiting = async {
            while self.channel.sent.lock().len() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let is_sent = tokio::time::timeout(Duration::from_secs(20), waiting).await;
        let sent = self.channel.sent.lock().clone();
        assert!(is_sent.is_ok(), "only {sent:?}");
        sent
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn frames_that_are_published_at_once_are_all_sent_in_order() {
    let stage = Stage::new();
    // Which publisher is first is chance, so it is tried more than once.
    for round in 1..=16 {
        let published = join_all((0..64).map(|_| stage.publish())).await;
        assert!(published.iter().all(Result::is_ok));
        let count = round * 64;
        let sent = stage.sent(usize::try_from(count).unwrap()).await;
        assert_eq!(sent, (1..=count).collect::<Vec<u64>>());
    }
}

#[tokio::test]
async fn a_publisher_that_gives_up_does_not_hold_back_its_frame() {
    let stage = Stage::new();
    let mut given_up = stage.publish();
    assert!(futures_util::poll!(&mut given_up).is_pending());
    drop(given_up);
    stage.publish().await.unwrap();
    assert_eq!(stage.sent(2).await, [1, 2]);
}

#[tokio::test]
async fn a_channel_that_panics_does_not_silence_its_chat() {
    let stage = Stage::new();
    stage.channel.has_bug.store(true, Ordering::Release);
    stage.publish().await.unwrap();
    stage.publish().await.unwrap();
    assert_eq!(stage.sent(1).await, [2]);
}

// A full disk can keep it from being noted that a frame has left.
#[tokio::test]
async fn a_start_sends_only_frames_that_have_not_left() {
    let stage = Stage::new();
    let store = stage.outbox.0.store.clone();
    let frames = (0..5).map(|_| message()).collect();
    store
        .append(&stage.chat, frames, InboxUpdate::default())
        .await
        .unwrap();
    for seq in [1, 3, 4] {
        store.note_left(&stage.chat, seq).await.unwrap();
    }
    stage.outbox.resume().await.unwrap();
    stage.publish().await.unwrap();
    assert_eq!(stage.sent(3).await, [2, 5, 6]);
}

#[tokio::test]
async fn frames_that_the_channel_does_not_send_are_stored_and_do_not_wait() {
    let stage = Stage::new();
    let store = stage.outbox.0.store.clone();
    let said = Frame::Said {
        message_id: "1".to_owned(),
        sender: "ada".to_owned(),
        text: "hi".to_owned(),
        media: Vec::new(),
        is_transcript: false,
    };
    let (chat, update) = (&stage.chat, InboxUpdate::default);
    let waiting = stage.outbox.accept(chat, vec![said.clone()], update());
    assert_eq!(waiting.await.unwrap(), BTreeSet::new());
    assert_eq!(store.queues().await.unwrap(), []);
    let waiting = stage.outbox.accept(chat, vec![said, message()], update());
    assert_eq!(waiting.await.unwrap(), BTreeSet::from([3]));
    assert_eq!(stage.sent(1).await, [3]);
    let stored = store.frames_after(chat, 0, 10).await.unwrap();
    assert_eq!(stored.frames.len(), 3);
}
