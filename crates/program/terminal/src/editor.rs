//! Reads lines that a person writes at a terminal. The built-in editor has history, completion, hints, several lines
//! and pasted text. On a simple terminal, the terminal itself edits the line.
//!
//! A separate thread reads keys, but only while someone waits for a line. It prints other output above the line. When
//! no one waits any more, the edit ends. The same thread shows what scripts draw (`drawing.rs`).
//!
//! Only keys that are pressed after a question can be read answer it. Earlier keys become text of the next prompt
//! (`early.rs`).

mod completion;
#[cfg(unix)]
mod drawing;
#[cfg(unix)]
mod early;
#[cfg(unix)]
mod hang_up;
mod history;
#[cfg(unix)]
mod key_sequence;
#[cfg(unix)]
mod plain;
mod prompt_style;
mod prompt_text;
mod shortcut;
#[cfg(unix)]
mod typed_lines;

use std::cell::OnceCell;
use std::io;
#[cfg(unix)]
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(unix)]
use std::time::Duration;

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
#[cfg(unix)]
use parking_lot::Mutex;
use reedline::{
    ColumnarMenu, EditCommand, Emacs, ExternalPrinter, KeyCode, KeyModifiers, MenuBuilder as _,
    Reedline, ReedlineEvent, ReedlineMenu, Signal, default_emacs_keybindings,
};
#[cfg(unix)]
use tenterhook_agent::frontend::ScriptDrawing;
use tokio::sync::{mpsc, oneshot};

use self::completion::Completion;
pub use self::completion::{CompletionWord, CompletionWords};
#[cfg(unix)]
use self::drawing::DrawingEnd;
#[cfg(unix)]
use self::early::EarlyLine;
use self::history::History;
use self::prompt_style::{Highlight, Hints, Line};
use self::prompt_text::PromptText;
#[cfg(unix)]
use self::typed_lines::TypedLines;
use crate::output::{self, scrollback};
#[cfg(unix)]
use tenterhook_protocol::escape::escape_untrusted;

/// The name of the menu of completions.
const MENU: &str = "completion";

/// How many requests may wait for the thread. Only one is made at a time.
const REQUESTS: usize = 1;

/// How often the editor looks for a line that the person typed while the agent works.
#[cfg(unix)]
const TYPED_INTERVAL: Duration = Duration::from_millis(100);

/// The result of a request for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entered {
    /// A line, without its end.
    Line(String),
    /// Ctrl-C with text in the line, which was cleared.
    Cleared,
    /// Ctrl-C without text in the line.
    Interrupted,
    /// Ctrl-D. There are no more lines.
    End,
}

/// What a line is for.
#[derive(Debug)]
pub enum LinePurpose {
    /// A prompt or a command.
    Prompt,
    /// The answer to this question.
    Answer(String),
    /// The answer to a question that begins with a text, which the person changes.
    Text {
        /// The question.
        question: String,
        /// The text.
        text: String,
    },
}

impl LinePurpose {
    /// Returns the question, unless the line is a prompt.
    fn question(&self) -> Option<&str> {
        match self {
            Self::Prompt => None,
            Self::Answer(question) | Self::Text { question, .. } => Some(question),
        }
    }
}

#[derive(Debug)]
struct EditorRequest {
    task: EditorTask,
    reply: oneshot::Sender<io::Result<Entered>>,
}

/// What the thread does at the terminal.
#[derive(Debug)]
enum EditorTask {
    Read(LinePurpose),
    #[cfg(unix)]
    Draw(Arc<ScriptDrawing>),
}

/// How lines are read.
#[derive(Debug)]
pub enum LineMode {
    /// Key by key, at a terminal that can move its cursor.
    Edited {
        /// The file that keeps the history.
        history: Option<PathBuf>,
        /// Whether the terminal supports colour.
        is_coloured: bool,
    },
    /// Line by line, with the terminal's own editing.
    #[cfg(unix)]
    Plain,
}

/// Reads lines from the terminal on stdin.
#[derive(Debug)]
pub struct Editor {
    is_edited: bool,
    requests: mpsc::Sender<EditorRequest>,
    is_given_up: Arc<AtomicBool>,
    wake: Arc<AtomicBool>,
    words: Arc<Mutex<CompletionWords>>,
    prompt: Arc<PromptText>,
    #[cfg(unix)]
    typed: Arc<TypedLines>,
    turn: tokio::sync::Mutex<()>,
}

/// Ends an edit or a drawing for which no one waits any more.
struct Waiting<'a> {
    reply: Option<oneshot::Receiver<io::Result<Entered>>>,
    is_given_up: &'a AtomicBool,
    wake: &'a AtomicBool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.reply.take().is_some() {
            self.is_given_up.store(true, Ordering::SeqCst);
            self.wake.store(true, Ordering::SeqCst);
        }
    }
}

impl Editor {
    /// Starts the thread.
    pub fn start(mode: LineMode) -> Self {
        let (requests, receiver) = mpsc::channel(REQUESTS);
        let this = Self {
            is_edited: matches!(mode, LineMode::Edited { .. }),
            requests,
            is_given_up: Arc::default(),
            wake: Arc::default(),
            words: Arc::default(),
            prompt: Arc::default(),
            #[cfg(unix)]
            typed: Arc::default(),
            turn: tokio::sync::Mutex::default(),
        };
        let thread = EditorThread {
            is_given_up: Arc::clone(&this.is_given_up),
            wake: Arc::clone(&this.wake),
            words: Arc::clone(&this.words),
            prompt: Arc::clone(&this.prompt),
            #[cfg(unix)]
            typed: Arc::clone(&this.typed),
            history: OnceCell::new(),
            mode,
        };
        // If the thread cannot start, the receiver is dropped, and `read` reports that.
        std::thread::Builder::new()
            .spawn(move || thread.serve(receiver))
            .ok();
        this
    }

    /// Returns whether keys, including Ctrl-C, are read one by one.
    pub fn is_edited(&self) -> bool {
        self.is_edited
    }

    /// Changes the words that the editor suggests.
    pub fn complete(&self, change: impl FnOnce(&mut CompletionWords)) {
        change(&mut self.words.lock());
    }

    /// Returns the text of the prompt that the person is writing, or of the next one.
    pub fn prompt_text(&self) -> String {
        self.prompt.text()
    }

    /// Changes the text of the prompt that the person is writing, or of the next one. With `replaces`, the text
    /// replaces what the person has written, otherwise it is added.
    pub fn change_prompt(&self, text: &str, replaces: bool) {
        if self.prompt.change(text, replaces) {
            self.wake.store(true, Ordering::SeqCst);
        }
    }

    /// Lets the person write a line. Dropping the future ends the edit. The next prompt begins with the text of a
    /// prompt whose edit was ended.
    pub async fn read(&self, purpose: LinePurpose) -> io::Result<Entered> {
        self.request(EditorTask::Read(purpose)).await
    }

    /// Shows a drawing of a script until the script closes it or the user interrupts it. Dropping the future also
    /// ends it. Keys are read one by one, so this needs [`is_edited`](Self::is_edited).
    #[cfg(unix)]
    pub async fn draw(&self, drawing: Arc<ScriptDrawing>) -> io::Result<Entered> {
        self.request(EditorTask::Draw(drawing)).await
    }

    /// Waits for a line that the person types while no line is read, and that `is_wanted` selects. Other lines become
    /// the next prompts.
    #[cfg(unix)]
    pub async fn typed_line(&self, is_wanted: impl Fn(&str) -> bool) -> String {
        loop {
            // A question, a drawing or a prompt uses the terminal.
            if let Ok(_turn) = self.turn.try_lock()
                && let Some(line) = self.typed.look(io::stdin().as_fd(), &is_wanted)
            {
                return line;
            }
            tokio::time::sleep(TYPED_INTERVAL).await;
        }
    }

    /// Drops the lines that the person typed while no line was read.
    #[cfg(unix)]
    pub fn forget_typed_lines(&self) {
        self.typed.clear();
    }

    async fn request(&self, task: EditorTask) -> io::Result<Entered> {
        let _turn = self.turn.lock().await;
        let (reply, receiver) = oneshot::channel();
        let mut waiting = Waiting {
            reply: Some(receiver),
            is_given_up: &self.is_given_up,
            wake: &self.wake,
        };
        let broken = || io::Error::other("the line editor stopped working");
        let request = EditorRequest { task, reply };
        self.requests.send(request).await.map_err(|_| broken())?;
        let entered = match &mut waiting.reply {
            Some(reply) => tokio::select! {
                biased;
                entered = reply => entered,
                // The editor's library would read from the lost terminal without end.
                () = hung_up() => return Ok(Entered::End),
            },
            None => return Err(broken()),
        };
        waiting.reply = None;
        entered.unwrap_or_else(|_| Err(broken()))
    }
}

/// Waits until the terminal is gone.
async fn hung_up() {
    #[cfg(unix)]
    hang_up::hung_up(io::stdin().as_fd()).await;
    #[cfg(not(unix))]
    std::future::pending::<()>().await;
}

/// The thread that reads lines.
struct EditorThread {
    is_given_up: Arc<AtomicBool>,
    /// Set to interrupt the editor, because the line was given up or the text of the prompt has changed.
    wake: Arc<AtomicBool>,
    words: Arc<Mutex<CompletionWords>>,
    prompt: Arc<PromptText>,
    #[cfg(unix)]
    typed: Arc<TypedLines>,
    /// The history, which is opened at the first prompt.
    history: OnceCell<History>,
    mode: LineMode,
}

impl EditorThread {
    fn serve(self, mut requests: mpsc::Receiver<EditorRequest>) {
        while let Some(request) = requests.blocking_recv() {
            // The order matters: a request that is given up now is either already closed, or sets the flag again.
            self.wake.store(false, Ordering::SeqCst);
            self.is_given_up.store(false, Ordering::SeqCst);
            if request.reply.is_closed() {
                continue;
            }
            #[cfg(unix)]
            if !matches!(request.task, EditorTask::Read(LinePurpose::Prompt)) {
                self.typed.become_text(&self.prompt);
            }
            scrollback::open();
            let entered = match &request.task {
                EditorTask::Read(purpose) => self.read(purpose),
                #[cfg(unix)]
                EditorTask::Draw(drawing) => {
                    let ended =
                        drawing::show(drawing, &self.is_given_up, |early| self.prompt.keep(early));
                    // The drawing was removed, so the cursor is at the beginning of a line.
                    scrollback::close(|rest| output::print_now(&rest));
                    ended.map(|end| match end {
                        DrawingEnd::Closed => Entered::End,
                        DrawingEnd::Interrupted => Entered::Interrupted,
                    })
                }
            };
            if scrollback::is_open() {
                close_without_line();
            }
            request.reply.send(entered).ok();
        }
    }

    fn read(&self, purpose: &LinePurpose) -> io::Result<Entered> {
        if let Some(question) = purpose.question() {
            self.draw_question(question)?;
            if self.is_given_up.load(Ordering::SeqCst) {
                return Ok(Entered::End);
            }
        }
        #[cfg(unix)]
        if let Some(entered) = self.take_early_line(purpose)? {
            return Ok(entered);
        }
        match self.mode {
            LineMode::Edited {
                ref history,
                is_coloured,
            } => {
                let file = history.clone();
                self.edit(purpose, file, is_coloured)
            }
            #[cfg(unix)]
            LineMode::Plain => self.read_plain(purpose),
        }
    }

    /// Takes a prompt that was typed while no one read lines, unless there is other text that belongs before it.
    #[cfg(unix)]
    fn take_early_line(&self, purpose: &LinePurpose) -> io::Result<Option<Entered>> {
        if purpose.question().is_some() || !self.prompt.text().is_empty() {
            return Ok(None);
        }
        let early = match (self.typed.take(), &self.mode) {
            (Some(typed), _) => Some(typed),
            (None, LineMode::Edited { .. }) => {
                early::take_line(io::stdin().as_fd())?.filter(|early| *early != EarlyLine::End)
            }
            // Without the editor, reading the line takes it.
            (None, LineMode::Plain) => None,
        };
        let Some(early) = early else { return Ok(None) };
        scrollback::close(|rest| output::print_now(&rest));
        Ok(Some(match early {
            EarlyLine::Typed(line) => {
                output::print_now(&[format!("> {}", escape_untrusted(&line))]);
                Entered::Line(line)
            }
            EarlyLine::End => Entered::End,
        }))
    }

    /// Draws a question, and waits until keys count as its answer.
    #[cfg(unix)]
    fn draw_question(&self, question: &str) -> io::Result<()> {
        let is_edited = matches!(self.mode, LineMode::Edited { .. });
        let queued = || {
            if is_edited {
                early::take_queued()
            } else {
                Ok(Vec::new())
            }
        };
        if is_edited {
            // Start raw mode here, so that the terminal does not echo keys before the editor starts.
            enable_raw_mode()?;
        }
        let early = early::draw_question(
            io::stdin().as_fd(),
            &early::SystemClock,
            &self.is_given_up,
            queued,
            || output::text_now(question),
        );
        if is_edited && (early.is_err() || self.is_given_up.load(Ordering::SeqCst)) {
            disable_raw_mode()?;
        }
        let early = early?;
        self.prompt.keep(&early);
        if is_edited {
            // The editor draws the question again, in the same place.
            output::text_now("\r");
        }
        Ok(())
    }

    #[cfg(not(unix))]
    #[expect(
        clippy::unnecessary_wraps,
        clippy::unused_self,
        reason = "the signature is the same as on Unix"
    )]
    fn draw_question(&self, _question: &str) -> io::Result<()> {
        Ok(())
    }

    /// Reads a line with the terminal's own editing.
    #[cfg(unix)]
    fn read_plain(&self, purpose: &LinePurpose) -> io::Result<Entered> {
        let (before, early) = match purpose.question() {
            None => {
                let early = self.prompt.take();
                let before = format!("> {}", escape_untrusted(&early));
                output::text_now(&before);
                (before, early)
            }
            Some(question) => (question.to_owned(), String::new()),
        };
        let goes_on = || {
            if self.is_given_up.load(Ordering::SeqCst) {
                return false;
            }
            let lines = scrollback::take_lines();
            if !lines.is_empty() {
                output::end_line();
                output::print_now(&lines);
                output::text_now(&before);
            }
            true
        };
        let Some(line) = plain::read_line(io::stdin().as_fd(), goes_on)? else {
            return Ok(Entered::End);
        };
        if self.is_given_up.load(Ordering::SeqCst) {
            return Ok(Entered::End);
        }
        // The user's Enter has ended the line.
        scrollback::close(|rest| output::print_now(&rest));
        if let LinePurpose::Text { text, .. } = purpose
            && line.is_empty()
        {
            return Ok(Entered::Line(text.clone()));
        }
        Ok(Entered::Line(early + &line))
    }

    /// Reads a line key by key.
    fn edit(
        &self,
        purpose: &LinePurpose,
        history: Option<PathBuf>,
        is_coloured: bool,
    ) -> io::Result<Entered> {
        let printer = ExternalPrinter::new(scrollback::MAX);
        let completion = Completion::new(Arc::clone(&self.words), printer.sender());
        let unprinted = completion.unprinted();
        let has_text = Arc::new(AtomicBool::new(false));
        let line = purpose.question().map_or_else(Line::prompt, Line::question);
        let is_prompt = matches!(purpose, LinePurpose::Prompt);
        let mut editor = Reedline::create()
            .with_ansi_colors(is_coloured)
            .use_bracketed_paste(true)
            .with_break_signal(Arc::clone(&self.wake))
            .with_external_printer(printer)
            .with_highlighter(Box::new(Highlight::new(
                Arc::clone(&self.words),
                Arc::clone(&has_text),
                is_prompt.then(|| Arc::clone(&self.prompt)),
            )))
            .with_completer(Box::new(completion));
        let text = match purpose {
            LinePurpose::Prompt => {
                editor = self.with_comforts(editor, history);
                self.prompt.begin()
            }
            LinePurpose::Answer(_) => String::new(),
            LinePurpose::Text { text, .. } => text.clone(),
        };
        if !text.is_empty() {
            editor.run_edit_commands(&[EditCommand::InsertString(text)]);
        }
        let signal = self.read_edited(&mut editor, &line, is_prompt);
        scrollback::close(|rest| {
            if !matches!(signal, Ok(Signal::Success(_) | Signal::CtrlC)) {
                output::end_line();
            }
            let unprinted = unprinted.lock();
            output::print_now(unprinted.iter().chain(&rest));
        });
        Ok(match signal? {
            Signal::Success(line) | Signal::HostCommand(line) => Entered::Line(line),
            Signal::CtrlC if has_text.load(Ordering::Relaxed) => Entered::Cleared,
            Signal::CtrlC => Entered::Interrupted,
            Signal::CtrlD | Signal::ExternalBreak(_) | _ => Entered::End,
        })
    }

    /// Reads a line, and applies changes of the prompt's text meanwhile.
    fn read_edited(
        &self,
        editor: &mut Reedline,
        line: &Line,
        is_prompt: bool,
    ) -> io::Result<Signal> {
        loop {
            let signal = editor.read_line(line);
            let is_given_up = self.is_given_up.load(Ordering::SeqCst);
            match &signal {
                Ok(Signal::ExternalBreak(_)) if is_prompt && !is_given_up => {
                    if let Some(text) = self.prompt.take_change() {
                        let commands = [EditCommand::Clear, EditCommand::InsertString(text)];
                        editor.run_edit_commands(&commands);
                    }
                }
                // The user continues to write after the command of the shortcut.
                Ok(Signal::HostCommand(_)) => {
                    self.prompt.end(editor.current_buffer_contents());
                    return signal;
                }
                Ok(Signal::ExternalBreak(text)) if is_prompt => {
                    self.prompt.end(text);
                    return signal;
                }
                _ if is_prompt => {
                    self.prompt.end("");
                    return signal;
                }
                _ => return signal,
            }
        }
    }

    /// Adds the features that only prompts need: history, hints and completion.
    fn with_comforts(&self, editor: Reedline, file: Option<PathBuf>) -> Reedline {
        let history = self.history.get_or_init(|| History::open(file));
        let menu = ColumnarMenu::default().with_name(MENU).with_marker("");
        let mut keys = default_emacs_keybindings();
        keys.add_binding(
            KeyModifiers::NONE,
            KeyCode::Tab,
            ReedlineEvent::UntilFound(vec![
                ReedlineEvent::Menu(MENU.to_owned()),
                ReedlineEvent::MenuNext,
            ]),
        );
        for word in &self.words.lock().commands {
            if let Some((modifiers, key)) = shortcut::key_of(&word.text) {
                let command = ReedlineEvent::ExecuteHostCommand(format!("/{}", word.text));
                keys.add_binding(modifiers, key, command);
            }
        }
        editor
            .with_history(Box::new(history.clone()))
            .with_hinter(Box::new(Hints::new(Arc::clone(&self.words))))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_edit_mode(Box::new(Emacs::new(keys)))
    }
}

/// Ends an unfinished line, and prints the queued output after it.
fn close_without_line() {
    scrollback::close(|rest| {
        output::end_line();
        output::print_now(&rest);
    });
}
