//! The line that a person writes at a terminal: with history, completion, hints, several lines and pasted text, or plain
//! where the terminal edits it.
//!
//! A separate thread reads keys, and only while someone waits for a line. It prints the output of others above the line.
//! When no one waits any more, the edit ends.
//!
//! A question is answered only by keys that are pressed after it can be read. Keys that come too early are text for the
//! next prompt (`early.rs`).

mod completion;
#[cfg(unix)]
mod early;
mod history;
mod look;
#[cfg(unix)]
mod plain;

use std::cell::OnceCell;
use std::io;
#[cfg(unix)]
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(unix)]
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use reedline::{
    ColumnarMenu, EditCommand, Emacs, ExternalPrinter, KeyCode, KeyModifiers, MenuBuilder as _,
    Reedline, ReedlineEvent, ReedlineMenu, Signal, default_emacs_keybindings,
};
use tokio::sync::{mpsc, oneshot};

use self::completion::Completion;
pub(crate) use self::completion::{Word, Words};
use self::history::History;
use self::look::{Highlight, Hints, Line};
use crate::output::{self, above};
#[cfg(unix)]
use crate::safe::safe;

/// The name of the menu of completions.
const MENU: &str = "completion";

/// How many requests may wait for the thread: one is made at a time.
const REQUESTS: usize = 1;

/// What came of a request for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entered {
    Line(String),
    /// Ctrl-C took a text away.
    Cleared,
    /// Ctrl-C where there was no text.
    Interrupted,
    /// Ctrl-D: there will be no more.
    End,
}

/// What a line is for.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// A prompt or a command.
    Prompt,
    /// The answer to that question.
    Answer(String),
}

#[derive(Debug)]
struct Request {
    purpose: Purpose,
    reply: oneshot::Sender<io::Result<Entered>>,
}

/// How lines are read.
#[derive(Debug)]
pub(crate) enum LineMode {
    /// Key by key, at a terminal that can move its cursor.
    Edited {
        /// Where lines are kept.
        history: Option<PathBuf>,
        is_coloured: bool,
    },
    /// As lines that the terminal edits.
    #[cfg(unix)]
    Plain,
}

/// Reads lines from the terminal that is standard input.
#[derive(Debug)]
pub(crate) struct Editor {
    is_edited: bool,
    requests: mpsc::Sender<Request>,
    is_given_up: Arc<AtomicBool>,
    words: Arc<Mutex<Words>>,
    turn: tokio::sync::Mutex<()>,
}

/// Ends an edit that nobody waits for any more.
struct Waiting<'a> {
    reply: Option<oneshot::Receiver<io::Result<Entered>>>,
    is_given_up: &'a AtomicBool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.reply.take().is_some() {
            self.is_given_up.store(true, Ordering::SeqCst);
        }
    }
}

impl Editor {
    /// Starts the thread.
    pub(crate) fn start(mode: LineMode) -> Self {
        let (requests, receiver) = mpsc::channel(REQUESTS);
        let this = Self {
            is_edited: matches!(mode, LineMode::Edited { .. }),
            requests,
            is_given_up: Arc::default(),
            words: Arc::default(),
            turn: tokio::sync::Mutex::default(),
        };
        let desk = Desk {
            is_given_up: Arc::clone(&this.is_given_up),
            words: Arc::clone(&this.words),
            history: OnceCell::new(),
            mode,
        };
        // Without a thread the other end of the requests is gone, which `read` reports.
        std::thread::Builder::new()
            .spawn(move || desk.serve(receiver))
            .ok();
        this
    }

    /// Says whether keys are read one by one, Ctrl-C among them.
    pub(crate) fn is_edited(&self) -> bool {
        self.is_edited
    }

    /// Changes what lines can be completed to.
    pub(crate) fn complete(&self, change: impl FnOnce(&mut Words)) {
        change(&mut self.words.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets the person write a line. Dropping the future ends the edit.
    pub(crate) async fn read(&self, purpose: Purpose) -> io::Result<Entered> {
        let _turn = self.turn.lock().await;
        let (reply, receiver) = oneshot::channel();
        let mut waiting = Waiting {
            reply: Some(receiver),
            is_given_up: &self.is_given_up,
        };
        let broken = || io::Error::other("the line editor broke");
        let request = Request { purpose, reply };
        self.requests.send(request).await.map_err(|_| broken())?;
        let entered = match &mut waiting.reply {
            Some(reply) => reply.await,
            None => return Err(broken()),
        };
        waiting.reply = None;
        entered.unwrap_or_else(|_| Err(broken()))
    }
}

/// Where lines are written.
struct Desk {
    is_given_up: Arc<AtomicBool>,
    words: Arc<Mutex<Words>>,
    /// Opened when the first prompt is written.
    history: OnceCell<History>,
    mode: LineMode,
}

/// What was typed before a question could be read. The next prompt begins with it.
static EARLY: Mutex<String> = Mutex::new(String::new());

fn keep_early(text: &str) {
    let mut early = EARLY.lock().unwrap_or_else(PoisonError::into_inner);
    if !early.is_empty() && !text.is_empty() {
        early.push('\n');
    }
    early.push_str(text);
}

fn take_early() -> String {
    std::mem::take(&mut *EARLY.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Desk {
    fn serve(self, mut requests: mpsc::Receiver<Request>) {
        while let Some(request) = requests.blocking_recv() {
            // In this order: a request that is given up now either is closed, or sets the flag anew.
            self.is_given_up.store(false, Ordering::SeqCst);
            if request.reply.is_closed() {
                continue;
            }
            above::open();
            let entered = self.read(&request.purpose);
            if above::is_open() {
                close_without_line();
            }
            request.reply.send(entered).ok();
        }
    }

    fn read(&self, purpose: &Purpose) -> io::Result<Entered> {
        if let Purpose::Answer(question) = purpose {
            self.draw_question(question)?;
            if self.is_given_up.load(Ordering::SeqCst) {
                return Ok(Entered::End);
            }
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

    /// Draws a question and waits until keys count as its answer.
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
            // From here on, so that no key between this and the editor's start is shown by the terminal.
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
        keep_early(&early);
        if is_edited {
            // The editor draws the question again, over this one.
            output::text_now("\r");
        }
        Ok(())
    }

    #[cfg(not(unix))]
    #[expect(
        clippy::unnecessary_wraps,
        clippy::unused_self,
        reason = "other systems have something to do here"
    )]
    fn draw_question(&self, _question: &str) -> io::Result<()> {
        Ok(())
    }

    /// Reads a line that the terminal edits.
    #[cfg(unix)]
    fn read_plain(&self, purpose: &Purpose) -> io::Result<Entered> {
        let (before, early) = match purpose {
            Purpose::Prompt => {
                let early = take_early();
                let before = format!("> {}", safe(&early));
                output::text_now(&before);
                (before, early)
            }
            Purpose::Answer(question) => (question.clone(), String::new()),
        };
        let goes_on = || {
            if self.is_given_up.load(Ordering::SeqCst) {
                return false;
            }
            let lines = above::take();
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
        // The person's Enter ended the line.
        above::close(|rest| output::print_now(&rest));
        Ok(Entered::Line(early + &line))
    }

    /// Reads a line key by key.
    fn edit(
        &self,
        purpose: &Purpose,
        history: Option<PathBuf>,
        is_coloured: bool,
    ) -> io::Result<Entered> {
        let printer = ExternalPrinter::new(above::MOST);
        let completion = Completion::new(Arc::clone(&self.words), printer.sender());
        let unprinted = completion.unprinted();
        let has_text = Arc::new(AtomicBool::new(false));
        let line = match purpose {
            Purpose::Prompt => Line::prompt(),
            Purpose::Answer(question) => Line::question(question),
        };
        let mut editor = Reedline::create()
            .with_ansi_colors(is_coloured)
            .use_bracketed_paste(true)
            .with_break_signal(Arc::clone(&self.is_given_up))
            .with_external_printer(printer)
            .with_highlighter(Box::new(Highlight::new(
                Arc::clone(&self.words),
                Arc::clone(&has_text),
            )))
            .with_completer(Box::new(completion));
        if matches!(purpose, Purpose::Prompt) {
            editor = self.with_comforts(editor, history);
            let early = take_early();
            if !early.is_empty() {
                editor.run_edit_commands(&[EditCommand::InsertString(early)]);
            }
        }
        let signal = editor.read_line(&line);
        above::close(|rest| {
            if !matches!(signal, Ok(Signal::Success(_) | Signal::CtrlC)) {
                output::end_line();
            }
            let unprinted = unprinted.lock().unwrap_or_else(PoisonError::into_inner);
            output::print_now(unprinted.iter().chain(&rest));
        });
        Ok(match signal? {
            Signal::Success(line) => Entered::Line(line),
            Signal::CtrlC if has_text.load(Ordering::Relaxed) => Entered::Cleared,
            Signal::CtrlC => Entered::Interrupted,
            Signal::CtrlD | Signal::ExternalBreak(_) | _ => Entered::End,
        })
    }

    /// Gives an editor what only prompts need.
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
        editor
            .with_history(Box::new(history.clone()))
            .with_hinter(Box::new(Hints::new(Arc::clone(&self.words))))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_edit_mode(Box::new(Emacs::new(keys)))
    }
}

/// Prints what others printed meanwhile, behind a line that was not ended.
fn close_without_line() {
    above::close(|rest| {
        output::end_line();
        output::print_now(&rest);
    });
}
