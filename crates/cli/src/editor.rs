//! The line that a person writes at a terminal: with history, completion, hints, several lines and pasted text.
//!
//! A thread of its own reads keys, and only while somebody waits for a line. What is printed meanwhile it prints above
//! the line. Whoever stops waiting ends the edit.

mod completion;
mod history;
mod look;

use std::cell::OnceCell;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use reedline::{
    ColumnarMenu, Emacs, ExternalPrinter, KeyCode, KeyModifiers, MenuBuilder as _, Reedline,
    ReedlineEvent, ReedlineMenu, Signal, default_emacs_keybindings,
};
use tokio::sync::{mpsc, oneshot};

use self::completion::Completion;
pub(crate) use self::completion::{Word, Words};
use self::history::History;
use self::look::{Highlight, Hints, Line};
use crate::output::{self, above};

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

/// Asks for lines.
#[derive(Debug)]
pub(crate) struct Editor {
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
    /// Starts the thread. `history` is where lines are kept, if they are.
    pub(crate) fn start(history: Option<PathBuf>, is_coloured: bool) -> Self {
        let (requests, receiver) = mpsc::channel(REQUESTS);
        let this = Self {
            requests,
            is_given_up: Arc::default(),
            words: Arc::default(),
            turn: tokio::sync::Mutex::default(),
        };
        let desk = Desk {
            is_given_up: Arc::clone(&this.is_given_up),
            words: Arc::clone(&this.words),
            history: OnceCell::new(),
            file: history,
            is_coloured,
        };
        // Without a thread the other end of the requests is gone, which `read` reports.
        std::thread::Builder::new()
            .spawn(move || desk.serve(receiver))
            .ok();
        this
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
    file: Option<PathBuf>,
    is_coloured: bool,
}

impl Desk {
    fn serve(self, mut requests: mpsc::Receiver<Request>) {
        while let Some(request) = requests.blocking_recv() {
            // In this order: a request that is given up now either is closed, or sets the flag anew.
            self.is_given_up.store(false, Ordering::SeqCst);
            if request.reply.is_closed() {
                continue;
            }
            let entered = self.read(&request.purpose);
            request.reply.send(entered).ok();
        }
    }

    fn read(&self, purpose: &Purpose) -> io::Result<Entered> {
        let printer = ExternalPrinter::new(above::MOST);
        let completion = Completion::new(Arc::clone(&self.words), printer.sender());
        let unprinted = completion.unprinted();
        let has_text = Arc::new(AtomicBool::new(false));
        let line = match purpose {
            Purpose::Prompt => Line::prompt(),
            Purpose::Answer(question) => Line::question(question),
        };
        let mut editor = Reedline::create()
            .with_ansi_colors(self.is_coloured)
            .use_bracketed_paste(true)
            .with_break_signal(Arc::clone(&self.is_given_up))
            .with_external_printer(printer)
            .with_highlighter(Box::new(Highlight::new(
                Arc::clone(&self.words),
                Arc::clone(&has_text),
            )))
            .with_completer(Box::new(completion));
        if matches!(purpose, Purpose::Prompt) {
            editor = self.with_comforts(editor);
        }
        above::open();
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
    fn with_comforts(&self, editor: Reedline) -> Reedline {
        let history = self
            .history
            .get_or_init(|| History::open(self.file.clone()));
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
