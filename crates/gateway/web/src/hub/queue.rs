//! The frames that one follower has not taken yet. The publisher never waits, so the queue is bounded.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use tenterhook_channel::frame::{ChatFrame, Chunk, Frame};

/// The maximum number of frames that wait.
pub(super) const MAX_FRAMES: usize = 512;
/// The maximum size of the frames that wait, in bytes.
const MAX_BYTES: usize = 2 << 20;
/// How long a follower with a full queue may take nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// A frame on its way to several followers.
#[derive(Debug, Clone)]
pub(super) struct SharedFrame {
    frame: Arc<ChatFrame>,
    bytes: usize,
}

impl SharedFrame {
    pub(super) fn new(frame: &ChatFrame) -> Self {
        Self {
            bytes: serde_json::to_vec(frame).map_or(MAX_BYTES, |json| json.len()),
            frame: Arc::new(frame.clone()),
        }
    }
}

/// What a follower finds in its queue.
#[derive(Debug)]
pub(super) enum Next {
    Frame(ChatFrame),
    Empty,
    /// Frames were dropped. The follower has to resume.
    Lagging,
    /// The follower took nothing for too long.
    Closed,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Status {
    #[default]
    Open,
    Lagging,
    Closed,
}

#[derive(Debug, Default)]
struct Waiting {
    frames: VecDeque<SharedFrame>,
    bytes: usize,
    status: Status,
    /// The number of the first durable frame that was dropped.
    lost_from: Option<u64>,
    /// Since when the follower has taken nothing although its queue became full.
    stuck_since: Option<Instant>,
}

/// The queue between the hub and one follower.
#[derive(Debug, Default)]
pub(super) struct FollowerQueue {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

impl FollowerQueue {
    /// Adds a frame. If the queue is full, text is merged, then details go, and in the end everything: the follower
    /// reads durable frames from the store again.
    pub(super) fn push(&self, frame: SharedFrame) {
        self.waiting.lock().push(frame, Instant::now());
        self.changed.notify_one();
    }

    pub(super) fn pop(&self) -> Next {
        let mut waiting = self.waiting.lock();
        match waiting.status {
            Status::Closed => return Next::Closed,
            Status::Lagging => return Next::Lagging,
            Status::Open => {}
        }
        let Some(next) = waiting.frames.pop_front() else {
            return Next::Empty;
        };
        waiting.bytes = waiting.bytes.saturating_sub(next.bytes);
        waiting.stuck_since = None;
        drop(waiting);
        Next::Frame(Arc::unwrap_or_clone(next.frame))
    }

    /// Returns the number of the first durable frame that waits.
    pub(super) fn first_seq(&self) -> Option<u64> {
        let waiting = self.waiting.lock();
        waiting.lost_from.or_else(|| waiting.first_seq())
    }

    /// Waits until something was added.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Begins anew after frames were dropped. Returns the number of the first durable frame that was dropped.
    pub(super) fn reset(&self) -> Option<u64> {
        let mut waiting = self.waiting.lock();
        let lost_from = waiting.lost_from;
        *waiting = Waiting::default();
        lost_from
    }
}

impl Waiting {
    fn push(&mut self, frame: SharedFrame, now: Instant) {
        match self.status {
            Status::Closed => return,
            Status::Lagging => self.lost_from = self.lost_from.or(frame.frame.seq),
            Status::Open => {
                self.bytes += frame.bytes;
                self.frames.push_back(frame);
                if self.frames.len() <= MAX_FRAMES && self.bytes <= MAX_BYTES {
                    return;
                }
                self.compact();
            }
        }
        let stuck_since = *self.stuck_since.get_or_insert(now);
        if now.duration_since(stuck_since) >= PATIENCE {
            self.drop_all(Status::Closed);
        }
    }

    fn compact(&mut self) {
        let mut kept: VecDeque<SharedFrame> = VecDeque::new();
        for next in self.frames.drain(..) {
            if is_detail(&next.frame.frame) {
                continue;
            }
            if let Some(last) = kept.back_mut()
                && merge(last, &next)
            {
                continue;
            }
            kept.push_back(next);
        }
        self.bytes = kept.iter().map(|frame| frame.bytes).sum();
        self.frames = kept;
        // A queue that is almost full after that would be compacted again for each frame.
        if self.frames.len() > MAX_FRAMES / 2 || self.bytes > MAX_BYTES / 2 {
            self.drop_all(Status::Lagging);
        }
    }

    fn first_seq(&self) -> Option<u64> {
        self.frames.iter().find_map(|frame| frame.frame.seq)
    }

    fn drop_all(&mut self, status: Status) {
        self.lost_from = self.lost_from.or_else(|| self.first_seq());
        self.frames = VecDeque::new();
        self.bytes = 0;
        self.status = status;
    }
}

fn is_detail(frame: &Frame) -> bool {
    matches!(
        frame,
        Frame::Chunk {
            chunk: Chunk::Thinking { .. } | Chunk::ToolUpdate { .. },
            ..
        }
    )
}

/// Appends the text of `next` to `last`. Returns whether both are text of one turn.
fn merge(last: &mut SharedFrame, next: &SharedFrame) -> bool {
    let (Some((turn, _, _)), Some((next_turn, added, replaces))) =
        (text_of(&last.frame.frame), text_of(&next.frame.frame))
    else {
        return false;
    };
    if turn != next_turn {
        return false;
    }
    if replaces {
        last.clone_from(next);
    } else if let Frame::Chunk {
        chunk: Chunk::Text { text },
        ..
    } = &mut Arc::make_mut(&mut last.frame).frame
    {
        text.push_str(added);
        last.bytes += next.bytes;
    }
    true
}

/// Returns the turn, the text, and whether it replaces earlier text, if the frame is a piece of text.
fn text_of(frame: &Frame) -> Option<(&str, &str, bool)> {
    let Frame::Chunk {
        turn,
        chunk: Chunk::Text { text },
        replace,
    } = frame
    else {
        return None;
    };
    Some((turn, text, *replace))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(piece: &str, replace: bool) -> SharedFrame {
        shared(
            None,
            Frame::Chunk {
                turn: "t".to_owned(),
                chunk: Chunk::Text {
                    text: piece.to_owned(),
                },
                replace,
            },
        )
    }

    fn thinking() -> SharedFrame {
        shared(
            None,
            Frame::Chunk {
                turn: "t".to_owned(),
                chunk: Chunk::Thinking {
                    text: "hm".to_owned(),
                },
                replace: false,
            },
        )
    }

    fn durable(seq: u64, text: &str) -> SharedFrame {
        shared(
            Some(seq),
            Frame::Message {
                turn: None,
                text: text.to_owned(),
                media: None,
                reply_to: None,
            },
        )
    }

    fn shared(seq: Option<u64>, frame: Frame) -> SharedFrame {
        SharedFrame::new(&ChatFrame { seq, frame })
    }

    fn drain(queue: &FollowerQueue) -> Vec<ChatFrame> {
        let mut taken = Vec::new();
        while let Next::Frame(frame) = queue.pop() {
            taken.push(frame);
        }
        taken
    }

    #[tokio::test]
    async fn a_full_queue_merges_text_and_drops_details_but_no_durable_frame() {
        let queue = FollowerQueue::default();
        let mut expected = String::new();
        queue.push(durable(1, "first"));
        for number in 0..MAX_FRAMES {
            let word = format!("{number} ");
            queue.push(text(&word, false));
            queue.push(thinking());
            expected += &word;
        }
        queue.push(durable(2, "last"));
        let taken = drain(&queue);
        assert!(taken.len() < MAX_FRAMES, "{}", taken.len());
        let seqs: Vec<u64> = taken.iter().filter_map(|frame| frame.seq).collect();
        assert_eq!(seqs, [1, 2]);
        let joined: String = taken
            .iter()
            .filter_map(|frame| text_of(&frame.frame).map(|(_, text, _)| text))
            .collect();
        assert_eq!(joined, expected);
    }

    #[test]
    fn text_that_replaces_swallows_what_was_before() {
        let mut last = text("old", false);
        assert!(merge(&mut last, &text("new", true)));
        assert!(merge(&mut last, &text("er", false)));
        assert_eq!(text_of(&last.frame.frame), Some(("t", "newer", true)));
        assert!(!merge(&mut last, &durable(1, "x")));
    }

    #[tokio::test]
    async fn a_queue_that_is_full_of_durable_frames_asks_the_follower_to_resume() {
        let by_number = FollowerQueue::default();
        for seq in 7..700 {
            by_number.push(durable(seq, "x"));
        }
        let by_size = FollowerQueue::default();
        for seq in 7..12 {
            by_size.push(durable(seq, &"x".repeat(600 << 10)));
        }
        for queue in [by_number, by_size] {
            assert!(matches!(queue.pop(), Next::Lagging));
            assert_eq!(queue.reset(), Some(7));
            queue.push(durable(700, "x"));
            assert_eq!(drain(&queue).len(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_that_takes_nothing_for_30_seconds_is_closed() {
        let (stuck, slow) = (FollowerQueue::default(), FollowerQueue::default());
        for second in 0..=30 {
            for _ in 0..=MAX_FRAMES {
                stuck.push(text("x", false));
                slow.push(text("x", false));
            }
            if second % 10 == 9 {
                assert!(matches!(slow.pop(), Next::Frame(_)), "{second}");
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        stuck.push(text("x", false));
        assert!(matches!(stuck.pop(), Next::Closed));
        assert!(matches!(slow.pop(), Next::Frame(_)));
    }
}
