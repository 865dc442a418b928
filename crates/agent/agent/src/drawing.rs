//! What scripts draw on the screen, and the keys that the user presses meanwhile.
//!
//! A script sends whole frames. Only the latest one is kept, and the script learns when it is shown, so that it does
//! not draw faster than the screen. The keys wait until the script asks for them.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::timeout;

/// The maximum number of keys that wait for a script. Further keys are dropped.
const MAX_KEYS: usize = 1_024;

/// How long a script's request for keys waits for its drawing to be opened.
const OPENING: Duration = Duration::from_secs(1);

/// The size of a screen, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ScreenSize {
    /// The width.
    pub columns: u16,
    /// The height.
    pub rows: u16,
}

/// A frame of a drawing. Nothing in it is safe to print on a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct DrawingFrame {
    /// The lines.
    pub lines: Vec<String>,
    /// Whether the frame fills the screen. Otherwise it is shown below the output.
    #[serde(default)]
    pub is_screen: bool,
}

/// A drawing of a script, which a [`Frontend`](crate::Frontend) shows. It has the keyboard while it is open.
pub struct ScriptDrawing {
    state: watch::Sender<DrawingState>,
}

#[derive(Debug, Default)]
struct DrawingState {
    /// The latest frame, if it is not shown yet.
    frame: Option<DrawingFrame>,
    /// The number of frames that the script has sent.
    sent: u64,
    /// The number of frames that were shown or replaced by a later one.
    shown: u64,
    keys: VecDeque<String>,
    /// The size of the screen, once the drawing is open.
    size: Option<ScreenSize>,
    /// The size that the script knows.
    known_size: Option<ScreenSize>,
    /// The process group that the script wants to have the terminal.
    wanted_by: Option<u32>,
    /// The process group that has the terminal.
    held_by: Option<u32>,
    is_closed: bool,
}

/// What has happened to a drawing since the script asked last.
#[derive(Debug, Default, Serialize)]
pub(crate) struct DrawingInput {
    /// Whether the drawing is open.
    is_open: bool,
    keys: Vec<String>,
    #[serde(flatten)]
    size: Option<ScreenSize>,
}

impl fmt::Debug for ScriptDrawing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptDrawing")
            .field("state", &*self.state.borrow())
            .finish()
    }
}

impl ScriptDrawing {
    fn new() -> Self {
        Self {
            state: watch::Sender::default(),
        }
    }

    /// Records the size of the screen. The first call opens the drawing.
    pub fn set_size(&self, size: ScreenSize) {
        self.state.send_if_modified(|state| {
            let is_new = state.size != Some(size);
            state.size = Some(size);
            is_new
        });
    }

    /// Takes the latest frame, if it has not been taken yet. The script may then draw the next one.
    pub fn take_frame(&self) -> Option<DrawingFrame> {
        let mut taken = None;
        self.state.send_if_modified(|state| {
            taken = state.frame.take();
            state.shown = state.sent;
            taken.is_some()
        });
        taken
    }

    /// Passes keys to the script, as the terminal sent them.
    pub fn press(&self, keys: impl IntoIterator<Item = String>) {
        self.state.send_modify(|state| {
            let room = MAX_KEYS.saturating_sub(state.keys.len());
            state.keys.extend(keys.into_iter().take(room));
        });
    }

    /// Returns the process group to which the script gives the terminal, until the script takes it back.
    pub fn wanted_by(&self) -> Option<u32> {
        self.state.borrow().wanted_by
    }

    /// Records which process group has the terminal instead of the drawing.
    pub fn set_held_by(&self, group: Option<u32>) {
        self.state.send_modify(|state| state.held_by = group);
    }

    /// Returns whether the script has closed the drawing.
    pub fn is_closed(&self) -> bool {
        self.state.borrow().is_closed
    }

    /// Waits until the script closes the drawing.
    pub(crate) async fn closed(&self) {
        self.wait_for(|state| state.is_closed).await;
    }

    fn close(&self) {
        self.state.send_modify(|state| state.is_closed = true);
    }

    /// Replaces the latest frame, and waits until the new one is shown or replaced.
    async fn draw(&self, frame: DrawingFrame) {
        let mut number = 0;
        self.state.send_modify(|state| {
            // Frames before this one will not be shown any more.
            state.shown = state.sent;
            state.sent += 1;
            state.frame = Some(frame);
            number = state.sent;
        });
        self.wait_for(|state| state.shown >= number || state.is_closed)
            .await;
    }

    /// Gives the terminal to a process group, or back to the drawing, and waits until it has it.
    async fn give_terminal(&self, group: Option<u32>) {
        self.state.send_modify(|state| state.wanted_by = group);
        self.wait_for(|state| state.held_by == group || state.is_closed)
            .await;
    }

    /// Waits for keys, a new size of the screen, or the end of the drawing.
    async fn input(&self) -> DrawingInput {
        let is_news = |state: &DrawingState| {
            state.is_closed || state.size != state.known_size || !state.keys.is_empty()
        };
        self.wait_for(is_news).await;
        let mut input = DrawingInput::default();
        self.state.send_if_modified(|state| {
            state.known_size = state.size;
            input = DrawingInput {
                is_open: !state.is_closed,
                keys: state.keys.drain(..).collect(),
                size: state.size,
            };
            false
        });
        input
    }

    async fn wait_for(&self, condition: impl FnMut(&DrawingState) -> bool) {
        // The sender lives as long as `self`, so this ends only if the condition is true.
        let mut states = self.state.subscribe();
        let _state = states.wait_for(condition).await;
    }
}

/// The open drawings of scripts, by the ids that the scripts chose. There are never more drawings than requests that
/// workers may have open.
#[derive(Debug, Default)]
pub(crate) struct Drawings(watch::Sender<HashMap<String, Arc<ScriptDrawing>>>);

/// An open drawing. Dropping it closes the drawing.
pub(crate) struct OpenDrawing<'a> {
    drawings: &'a Drawings,
    id: String,
    pub(crate) drawing: Arc<ScriptDrawing>,
}

impl Drawings {
    /// Opens a drawing.
    pub(crate) fn open(&self, id: String) -> OpenDrawing<'_> {
        let drawing = Arc::new(ScriptDrawing::new());
        let kept = Arc::clone(&drawing);
        self.0.send_modify(|drawings| {
            drawings.insert(id.clone(), kept);
        });
        OpenDrawing {
            drawings: self,
            id,
            drawing,
        }
    }

    /// Closes a drawing. Returns whether there is such a drawing.
    pub(crate) fn close(&self, id: &str) -> bool {
        let drawing = self.find(id);
        drawing.inspect(|drawing| drawing.close()).is_some()
    }

    /// Draws a frame, and waits until it is shown. Does nothing if there is no such drawing.
    pub(crate) async fn draw(&self, id: &str, frame: DrawingFrame) {
        if let Some(drawing) = self.find(id) {
            drawing.draw(frame).await;
        }
    }

    /// Gives the terminal to a process group, or back to the drawing. Does nothing if there is no such drawing.
    pub(crate) async fn give_terminal(&self, id: &str, group: Option<u32>) {
        if let Some(drawing) = self.find(id) {
            drawing.give_terminal(group).await;
        }
    }

    /// Waits for the next input of a drawing. Returns the default if the drawing is not open within a second.
    pub(crate) async fn input(&self, id: &str) -> DrawingInput {
        let opened = async {
            let mut drawings = self.0.subscribe();
            let _found = drawings
                .wait_for(|drawings| drawings.contains_key(id))
                .await;
        };
        let _in_time = timeout(OPENING, opened).await;
        match self.find(id) {
            Some(drawing) => drawing.input().await,
            None => DrawingInput::default(),
        }
    }

    fn find(&self, id: &str) -> Option<Arc<ScriptDrawing>> {
        self.0.borrow().get(id).cloned()
    }
}

impl Drop for OpenDrawing<'_> {
    fn drop(&mut self) {
        self.drawing.close();
        self.drawings.0.send_modify(|drawings| {
            drawings.remove(&self.id);
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn frame(line: &str) -> DrawingFrame {
        DrawingFrame {
            lines: vec![line.to_owned()],
            is_screen: false,
        }
    }

    #[test]
    fn only_the_latest_frame_is_kept_and_earlier_ones_do_not_wait() {
        let drawing = ScriptDrawing::new();
        let first = drawing.draw(frame("one"));
        let mut first = std::pin::pin!(first);
        assert_eq!(first.as_mut().now_or_never(), None);
        let mut second = std::pin::pin!(drawing.draw(frame("two")));
        assert_eq!(second.as_mut().now_or_never(), None);
        assert_eq!(first.now_or_never(), Some(()));
        assert_eq!(drawing.take_frame(), Some(frame("two")));
        assert_eq!(second.now_or_never(), Some(()));
        assert_eq!(drawing.take_frame(), None);
    }

    #[test]
    fn keys_and_sizes_reach_the_script_within_a_bound() {
        let drawings = Drawings::default();
        let open = drawings.open("a".to_owned());
        let mut input = std::pin::pin!(drawings.input("a"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let _entered = runtime.enter();
        assert!(input.as_mut().now_or_never().is_none());
        let size = ScreenSize {
            columns: 80,
            rows: 24,
        };
        open.drawing.set_size(size);
        let opened = input.now_or_never().unwrap();
        assert_eq!((opened.is_open, opened.size), (true, Some(size)));
        open.drawing
            .press((0..2 * MAX_KEYS).map(|key| key.to_string()));
        let pressed = drawings.input("a").now_or_never().unwrap();
        assert_eq!(pressed.keys.len(), MAX_KEYS);
        assert!(drawings.close("a"));
        let closed = drawings.input("a").now_or_never().unwrap();
        assert!(!closed.is_open);
        drop(open);
        assert!(!drawings.close("a"));
    }
}
