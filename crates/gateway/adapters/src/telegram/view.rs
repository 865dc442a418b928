//! What a chat shows while a turn runs: the typing mark, a preview of the answer, and the tool that runs.
//!
//! Every change overwrites the wanted state, so nothing queues up. One task for each chat makes the chat show it, at the
//! pace that Telegram allows. The answer itself is sent by `send`, which edits the preview into it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::api::{Api, ApiError};
use super::messages::{self, Target};
use crate::pieces::{PieceLimit, TextUnit, split};
use tenterhook_channel::chat::ChatRef;
use tenterhook_channel::frame::{Chunk, Frame};

/// How long Telegram shows that someone types is 5 seconds.
const TYPING: Duration = Duration::from_secs(4);
/// The shortest time between two edits in a group.
const GROUP_PACE: Duration = Duration::from_secs(3);
/// The shortest time between two edits.
const PACE: Duration = Duration::from_secs(1);
/// After this time without a frame, a turn is taken to be over.
const MAX_SILENCE: Duration = Duration::from_mins(30);
/// How long nothing is shown after an error.
const PAUSE: Duration = Duration::from_secs(30);
/// The maximum length of a preview, and of the text that is kept for it.
const MAX_PREVIEW: PieceLimit = PieceLimit {
    max: 4_000,
    unit: TextUnit::Utf16,
};
const MAX_TEXT: usize = 32 << 10;
/// How many messages of the agent may wait to be sent.
const MAX_PREVIEWS: usize = 8;
/// How many chats are remembered.
const MAX_VIEWS: usize = 1_024;

/// The views of all chats.
#[derive(Default)]
pub(super) struct Views(Mutex<HashMap<ChatRef, Arc<View>>>);

impl Views {
    /// Returns the view of a chat, or a new one.
    pub(super) fn of(&self, chat: &ChatRef, target: &Target) -> Arc<View> {
        let mut views = self.0.lock();
        if let Some(view) = views.get(chat) {
            return Arc::clone(view);
        }
        if views.len() >= MAX_VIEWS {
            views.retain(|_, view| Arc::strong_count(view) > 1 || !view.state.lock().is_idle());
        }
        let view = Arc::new(View::new(target.clone()));
        // If all are busy, this chat merely has no preview.
        if views.len() < MAX_VIEWS {
            views.insert(chat.clone(), Arc::clone(&view));
        }
        view
    }
}

/// What one chat shows.
pub(super) struct View {
    pub(super) target: Target,
    state: Mutex<State>,
    changed: Notify,
    /// Held while something is sent or edited, so that a preview cannot appear after its answer.
    pub(super) sending: tokio::sync::Mutex<()>,
}

struct State {
    /// The turn that runs.
    turn: Option<String>,
    heard: Instant,
    /// The messages of the agent that have not been sent, the oldest first.
    previews: VecDeque<Preview>,
    /// The tool status to show.
    tool: Option<String>,
    /// The message with the tool status, and what it shows.
    status: Option<(i32, String)>,
    /// The ids of the pieces of a frame that were sent before one failed.
    sent: (String, Vec<i32>),
    next_edit: Instant,
    has_task: bool,
}

/// A message of the agent, as far as it is known.
struct Preview {
    turn: String,
    text: String,
    /// Whether the next text belongs to another message.
    is_complete: bool,
    message: Option<i32>,
    shown: String,
}

/// The next thing to do for a view.
#[derive(Debug, PartialEq)]
enum Step {
    Preview { message: Option<i32>, text: String },
    Status { message: Option<i32>, text: String },
    RemoveStatus,
    WaitUntil(Instant),
    Wait,
    Over,
}

impl State {
    fn is_idle(&self) -> bool {
        self.turn.is_none() && self.previews.is_empty() && self.sent.1.is_empty()
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other frames and chunks are not shown"
    )]
    fn apply(&mut self, frame: &Frame, shows_tools: bool) {
        self.heard = Instant::now();
        match frame {
            Frame::Start { turn, .. } => {
                self.turn = Some(turn.clone());
                self.tool = None;
            }
            Frame::Chunk {
                turn,
                chunk,
                replace,
            } => {
                self.turn = Some(turn.clone());
                match chunk {
                    Chunk::Text { text } => self.add_text(turn, text, *replace),
                    Chunk::ToolStart { name, .. } => {
                        if let Some(preview) = self.previews.back_mut() {
                            preview.is_complete = true;
                        }
                        self.tool = shows_tools.then(|| format!("⚙️ {name}…"));
                    }
                    Chunk::ToolEnd { name, is_error, .. } => {
                        let mark = if *is_error { "❌" } else { "✅" };
                        self.tool = shows_tools.then(|| format!("{mark} {name}"));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn add_text(&mut self, turn: &str, text: &str, replaces: bool) {
        let is_open = |preview: &Preview| !preview.is_complete && preview.turn == turn;
        if !self.previews.back().is_some_and(is_open) && self.previews.len() < MAX_PREVIEWS {
            self.previews.push_back(Preview {
                turn: turn.to_owned(),
                text: String::new(),
                is_complete: false,
                message: None,
                shown: String::new(),
            });
        }
        if let Some(preview) = self.previews.back_mut().filter(|preview| is_open(preview)) {
            if replaces {
                preview.text.clear();
            }
            if preview.text.len() < MAX_TEXT {
                preview.text.push_str(text);
            }
            self.tool = None;
        }
    }

    fn step(&self, pace: Option<Duration>) -> Step {
        if self.turn.is_none() || self.heard.elapsed() > MAX_SILENCE {
            return Step::Over;
        }
        let has_text = |preview: &&Preview| !preview.text.trim().is_empty();
        let step = if let Some(preview) = self.previews.front().filter(has_text) {
            if self.status.is_some() {
                return Step::RemoveStatus;
            }
            let text = shortened(&preview.text);
            if pace.is_none() || text == preview.shown {
                return Step::Wait;
            }
            let message = preview.message;
            Step::Preview { message, text }
        } else {
            let shown = self.status.as_ref();
            match &self.tool {
                Some(tool) if shown.is_none_or(|(_, shown)| shown != tool) => Step::Status {
                    message: shown.map(|(message, _)| *message),
                    text: tool.clone(),
                },
                _ => return Step::Wait,
            }
        };
        if Instant::now() < self.next_edit {
            Step::WaitUntil(self.next_edit)
        } else {
            step
        }
    }
}

impl View {
    fn new(target: Target) -> Self {
        let now = Instant::now();
        Self {
            target,
            state: Mutex::new(State {
                turn: None,
                heard: now,
                previews: VecDeque::new(),
                tool: None,
                status: None,
                sent: (String::new(), Vec::new()),
                next_edit: now,
                has_task: false,
            }),
            changed: Notify::new(),
            sending: tokio::sync::Mutex::default(),
        }
    }

    /// Notes a frame that is not durable. Returns whether the caller must start [`View::show`].
    pub(super) fn note(&self, frame: &Frame, shows_tools: bool) -> bool {
        let mut state = self.state.lock();
        state.apply(frame, shows_tools);
        self.changed.notify_one();
        let is_new = state.turn.is_some() && !state.has_task;
        state.has_task |= is_new;
        is_new
    }

    /// Shows the turn until it is over.
    pub(super) async fn show(&self, api: &Api, stream: Option<Duration>) {
        let least = if self.target.is_group {
            GROUP_PACE
        } else {
            PACE
        };
        let pace = stream.map(|stream| stream.max(least));
        let mut next_typing = Instant::now();
        loop {
            if next_typing <= Instant::now() {
                let typing = messages::show_typing(api, &self.target).await;
                next_typing = Instant::now() + typing.err().as_ref().map_or(TYPING, pause_after);
            }
            let wait_until = match self.next_step(api, pace).await {
                Step::Over => return,
                Step::Wait => next_typing,
                Step::WaitUntil(when) => {
                    // Changes until then are shown together.
                    sleep_until(when.min(next_typing)).await;
                    continue;
                }
                Step::Preview { .. } | Step::Status { .. } | Step::RemoveStatus => continue,
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep_until(wait_until) => {}
            }
        }
    }

    async fn next_step(&self, api: &Api, pace: Option<Duration>) -> Step {
        let _sending = self.sending.lock().await;
        let step = {
            let mut state = self.state.lock();
            let step = state.step(pace);
            state.has_task = step != Step::Over;
            step
        };
        let result = match &step {
            Step::RemoveStatus => {
                self.remove_status(api).await;
                return step;
            }
            Step::Preview { message, text } | Step::Status { message, text } => match message {
                Some(message) => messages::edit_plain(api, &self.target, *message, text).await,
                None => messages::send_plain(api, &self.target, text).await,
            },
            Step::WaitUntil(_) | Step::Wait | Step::Over => return step,
        };
        let mut state = self.state.lock();
        let wait = result
            .as_ref()
            .err()
            .map_or(pace.unwrap_or(PACE), pause_after);
        state.next_edit = Instant::now() + wait;
        match (&step, result) {
            (Step::Preview { text, .. }, Ok(id)) => {
                if let Some(preview) = state.previews.front_mut() {
                    (preview.message, preview.shown) = (Some(id), text.clone());
                }
            }
            (Step::Status { text, .. }, Ok(id)) => state.status = Some((id, text.clone())),
            _ => {}
        }
        step
    }

    /// Removes the tool status. The caller holds `sending`.
    pub(super) async fn remove_status(&self, api: &Api) {
        let status = self.state.lock().status.take();
        if let Some((message, _)) = status {
            // A status that stays is ugly, but not wrong.
            let _removed = timeout(PAUSE, messages::delete(api, &self.target, message)).await;
        }
    }

    /// Returns the message with the preview of a turn's next message, if there is one. Previews of earlier turns are
    /// forgotten, because nothing of these turns follows.
    pub(super) fn preview(&self, turn: &str) -> Option<i32> {
        let mut state = self.state.lock();
        while state
            .previews
            .front()
            .is_some_and(|preview| preview.turn != turn)
        {
            state.previews.pop_front();
        }
        state.previews.front().and_then(|preview| preview.message)
    }

    /// Notes that the turn's next message was sent, or cannot be sent.
    pub(super) fn forget_preview(&self, turn: &str) {
        let mut state = self.state.lock();
        if state
            .previews
            .front()
            .is_some_and(|preview| preview.turn == turn)
        {
            state.previews.pop_front();
        }
        self.changed.notify_one();
    }

    /// Notes that a turn is over, and that none of its messages follows.
    pub(super) fn close_turn(&self, turn: &str) {
        let mut state = self.state.lock();
        state.previews.retain(|preview| preview.turn != turn);
        drop(state);
        self.end_turn(turn);
    }

    /// Notes that a turn is over.
    pub(super) fn end_turn(&self, turn: &str) {
        let mut state = self.state.lock();
        if state.turn.as_deref() == Some(turn) {
            state.turn = None;
            state.tool = None;
        }
        self.changed.notify_one();
    }

    /// Returns the pieces of a frame that were sent already.
    pub(super) fn sent(&self, key: &str) -> Vec<i32> {
        let state = self.state.lock();
        let (known, ids) = &state.sent;
        if known == key {
            ids.clone()
        } else {
            Vec::new()
        }
    }

    /// Notes which pieces of a frame were sent. No pieces forget the frame.
    pub(super) fn set_sent(&self, key: &str, ids: Vec<i32>) {
        self.state.lock().sent = (key.to_owned(), ids);
    }
}

fn pause_after(error: &ApiError) -> Duration {
    error.retry_after().unwrap_or(PAUSE)
}

fn shortened(text: &str) -> String {
    let pieces = split(text, MAX_PREVIEW);
    let first = pieces.first().map(ToString::to_string).unwrap_or_default();
    if pieces.len() > 1 {
        format!("{}…", first.trim_end())
    } else {
        first.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(chunk: Chunk) -> Frame {
        Frame::Chunk {
            turn: "t".to_owned(),
            chunk,
            replace: false,
        }
    }

    fn text(text: &str) -> Frame {
        chunk(Chunk::Text {
            text: text.to_owned(),
        })
    }

    fn tool_start() -> Frame {
        chunk(Chunk::ToolStart {
            id: "1".to_owned(),
            name: "search".to_owned(),
            args: serde_json::Map::new(),
        })
    }

    fn view(frames: &[Frame]) -> View {
        let view = View::new(Target {
            chat: 42,
            thread: None,
            is_group: false,
        });
        for frame in frames {
            view.note(frame, true);
        }
        view
    }

    fn step(view: &View) -> Step {
        view.state.lock().step(Some(PACE))
    }

    #[tokio::test]
    async fn a_tool_between_two_texts_makes_two_messages() {
        let view = view(&[text("a"), text("b"), tool_start(), text("c")]);
        let preview = |text: &str| Step::Preview {
            message: None,
            text: text.to_owned(),
        };
        assert_eq!(step(&view), preview("ab"));
        assert_eq!(view.preview("t"), None);
        view.forget_preview("t");
        assert_eq!(step(&view), preview("c"));
        view.end_turn("other");
        assert_eq!(step(&view), preview("c"));
        view.end_turn("t");
        assert_eq!(step(&view), Step::Over);
    }

    #[tokio::test]
    async fn the_preview_of_a_failed_turn_does_not_stop_the_next_one() {
        let view = view(&[text("half")]);
        view.close_turn("t");
        assert_eq!(step(&view), Step::Over);
        view.note(&text("whole"), true);
        let Step::Preview { text, .. } = step(&view) else {
            panic!("no preview");
        };
        assert_eq!(text, "whole");
    }

    #[tokio::test]
    async fn the_first_text_removes_the_tool_status() {
        let view = view(&[tool_start()]);
        let status = Step::Status {
            message: None,
            text: "⚙️ search…".to_owned(),
        };
        assert_eq!(step(&view), status);
        view.state.lock().status = Some((3, "⚙️ search…".to_owned()));
        assert_eq!(step(&view), Step::Wait);
        view.note(&text("a"), true);
        assert_eq!(step(&view), Step::RemoveStatus);
    }

    #[tokio::test]
    async fn the_text_of_a_preview_is_bounded() {
        let view = view(&[text(&"word ".repeat(20_000)), text("more")]);
        let Step::Preview { text, .. } = step(&view) else {
            panic!("no preview");
        };
        assert!(text.ends_with('…') && text.len() < 4_096);
    }
}
