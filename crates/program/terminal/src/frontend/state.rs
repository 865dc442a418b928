//! The state of the terminal: prints lines, tracks the open line, and reads the user's next line.
//!
//! `frontend.rs` shows an agent's events, and `frontend/ask.rs` asks questions.

use std::fmt;
use std::future;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tenterhook_agent::Agent;
use tenterhook_agent::frontend::{Approval, ScriptDrawing};
use tenterhook_engine::ToolUseId;

use super::display::Displayed;
use crate::editor::{CompletionWords, Editor, Entered, LineMode, LinePurpose};
use crate::interrupt::{Echoes, Interrupts};
use crate::line_source::LineSource;
use crate::output::markdown::Markdown;
use crate::output::progress::ProgressLine;
use crate::output::{self, scrollback};
use crate::stdin_lines::StdinLines;

/// How much to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Everything, for a person who follows the agent.
    Full,
    /// Only messages for the user, on stderr, because stdout is for the answer.
    AnswerOnly,
    /// Nothing on stdout, because it is for a program.
    Silent,
}

/// The terminal as a frontend. If stdin is not a terminal, no one can be asked.
pub struct Terminal {
    pub(super) verbosity: Verbosity,
    pub(super) is_interactive: bool,
    /// The name of the main agent, which is not shown.
    pub(super) root: String,
    line_source: LineSource,
    interrupts: Interrupts,
    state: Mutex<TerminalState>,
}

#[derive(Default)]
pub(super) struct TerminalState {
    /// Whether the last text did not end its line.
    pub(super) is_line_open: bool,
    pub(super) progress: Option<ProgressLine>,
    echoes: Echoes,
    /// Formats the model's text, if the output supports that.
    pub(super) markdown: Option<Markdown>,
    /// The start times of the running calls, moved forward by the time for questions.
    pub(super) began: Vec<(ToolUseId, Instant)>,
    /// The calls whose denial was shown, so that the text for the model is not also shown.
    pub(super) denied: Vec<ToolUseId>,
    /// The tool that the user has just refused.
    pub(super) refused: Option<String>,
    /// What scripts display.
    pub(super) displayed: Displayed,
    /// The call that the last line shows.
    pub(super) last_call: Option<String>,
    /// Whether an error was shown since the last call of [`Terminal::take_error`].
    pub(super) has_error: bool,
    /// Why stdin could not be read.
    broken: Option<io::Error>,
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal")
            .field("verbosity", &self.verbosity)
            .finish_non_exhaustive()
    }
}

impl Terminal {
    /// Opens the terminal. `history` is the file that keeps the user's lines.
    pub fn new(verbosity: Verbosity, history: Option<PathBuf>, interrupts: &Interrupts) -> Self {
        let is_interactive = verbosity == Verbosity::Full && io::stdin().is_terminal();
        let is_colourful = verbosity == Verbosity::Full && output::is_colourful_terminal();
        let line_source = if is_interactive && can_edit() {
            LineSource::edited(LineMode::Edited {
                history,
                is_coloured: is_colourful,
            })
        } else if is_interactive {
            LineSource::plain()
        } else {
            LineSource::Stdin(StdinLines::default())
        };
        Self {
            verbosity,
            is_interactive,
            root: Agent::DEFAULT_NAME.to_owned(),
            line_source,
            interrupts: interrupts.clone(),
            state: Mutex::new(TerminalState {
                markdown: is_colourful.then(Markdown::default),
                echoes: interrupts.echoes(),
                ..TerminalState::default()
            }),
        }
    }

    /// Sets the name of the main agent.
    #[must_use]
    pub fn main_agent(self, name: &str) -> Self {
        Self {
            root: name.to_owned(),
            ..self
        }
    }

    /// Shows a progress line with the text `what`, until something else is shown.
    pub fn wait_for(&self, what: &str) {
        let is_shown = self.verbosity == Verbosity::Full && !scrollback::is_open();
        let mut state = self.state();
        state.displayed.begin_work(what);
        let text = state.displayed.work();
        state.progress = is_shown.then(|| ProgressLine::start(text));
    }

    /// Ends an open line and removes the progress line.
    pub fn end_open_line(&self) {
        self.state().end_open_line();
    }

    /// Changes the words that the editor suggests, if there is an editor.
    pub fn update_completions(&self, change: impl FnOnce(&mut CompletionWords)) {
        if let Some(editor) = self.editor() {
            editor.complete(change);
        }
    }

    /// Returns the user's next line, for a prompt or a command.
    pub async fn read_prompt(&self) -> io::Result<Entered> {
        if self.is_interactive {
            let lines = self.state().displayed.take_changed_lines();
            self.print_lines(lines);
            self.begin_line("> ");
        }
        self.read(LinePurpose::Prompt).await
    }

    /// Waits for a line that the user types while the agent works, and that `is_wanted` selects. Other lines wait until
    /// they are read as prompts. Lines of stdin that no person types are read in order, so this never takes one.
    pub async fn typed_line(&self, is_wanted: impl Fn(&str) -> bool) -> String {
        #[cfg(unix)]
        if let Some(editor) = self.editor() {
            return editor.typed_line(is_wanted).await;
        }
        let _unused = is_wanted;
        future::pending().await
    }

    /// Drops the lines that the user typed while the agent worked, as a terminal does at Ctrl-C.
    pub fn forget_typed_lines(&self) {
        #[cfg(unix)]
        if let Some(editor) = self.editor() {
            editor.forget_typed_lines();
        }
    }

    /// Returns the editor, if lines are edited.
    pub(super) fn editor(&self) -> Option<&Editor> {
        match &self.line_source {
            LineSource::Terminal(editor) => Some(editor),
            LineSource::Stdin(_) => None,
        }
    }

    /// Returns whether the keys of a line, including Ctrl-C, are read one by one.
    pub fn has_editor(&self) -> bool {
        self.editor().is_some_and(Editor::is_edited)
    }

    /// Prints the beginning of a line that the user completes, unless the editor draws it.
    fn begin_line(&self, text: &str) {
        let mut state = self.state();
        state.end_open_line();
        if let LineSource::Stdin(_) = self.line_source {
            output::text(text);
            state.is_line_open = true;
        }
    }

    async fn read(&self, purpose: LinePurpose) -> io::Result<Entered> {
        let entered = self.line_source.read(purpose).await?;
        if self.is_interactive && matches!(entered, Entered::Line(_)) {
            // The user's Enter has ended the line.
            self.state().is_line_open = false;
        }
        Ok(entered)
    }

    /// Returns an answer, or `None` if there is no answer. If stdin cannot be read, the error is kept.
    pub(super) async fn ask(&self, question: &str) -> Option<String> {
        let purpose = || LinePurpose::Answer(question.to_owned());
        let answer = self.ask_line(question, purpose).await?;
        Some(answer.trim().to_owned())
    }

    /// Lets the user change a text. Returns `None` if there is no answer.
    pub(super) async fn ask_text(&self, question: &str, text: &str) -> Option<String> {
        let purpose = || LinePurpose::Text {
            question: question.to_owned(),
            text: text.to_owned(),
        };
        self.ask_line(question, purpose).await
    }

    async fn ask_line(&self, question: &str, purpose: impl Fn() -> LinePurpose) -> Option<String> {
        loop {
            self.begin_line(question);
            match self.read(purpose()).await {
                Ok(Entered::Line(line)) => return Some(line),
                Ok(Entered::Cleared) => {}
                Ok(Entered::End) => return None,
                Ok(Entered::Interrupted) => {
                    self.interrupts.interrupt();
                    return None;
                }
                Err(error) => {
                    self.state().broken = Some(error);
                    return None;
                }
            }
        }
    }

    /// Shows a drawing of a script until it ends. Ctrl-C ends it, and also interrupts the agent.
    pub(super) async fn show_drawing(&self, drawing: &Arc<ScriptDrawing>) {
        self.end_open_line();
        #[cfg(unix)]
        if let Some(editor) = self.editor() {
            match editor.draw(Arc::clone(drawing)).await {
                Ok(Entered::Interrupted) => self.interrupts.interrupt(),
                Ok(_) => {}
                Err(error) => self.print_note(&format!("warning: the drawing ended: {error}")),
            }
        }
        #[cfg(not(unix))]
        let _unused = drawing;
    }

    /// Takes the error of reading an answer.
    pub fn take_read_error(&self) -> Option<io::Error> {
        self.state().broken.take()
    }

    /// Returns whether an error was shown since the last call.
    pub fn take_error(&self) -> bool {
        std::mem::take(&mut self.state().has_error)
    }

    pub(super) fn state(&self) -> parking_lot::MutexGuard<'_, TerminalState> {
        self.state.lock()
    }

    /// Prints a line, if everything is to be shown.
    pub fn print_line(&self, text: &str) {
        self.print_lines([text]);
    }

    /// Prints lines that belong together.
    pub fn print_lines<T: AsRef<str>>(&self, lines: impl IntoIterator<Item = T>) {
        if self.verbosity == Verbosity::Full {
            let mut state = self.state();
            state.end_open_line();
            for line in lines {
                state.last_call = None;
                output::line(line.as_ref());
            }
        }
    }

    /// Prints a line that shows a call.
    pub(super) fn print_call(&self, before: &str, call: String) {
        if self.verbosity == Verbosity::Full {
            let mut state = self.state();
            state.end_open_line();
            output::line(format_args!("{before} {call}"));
            state.last_call = Some(call);
        }
    }

    pub(super) fn print_note(&self, text: &str) {
        let mut state = self.state();
        state.end_open_line();
        state.last_call = None;
        output::note(text);
    }
}

impl TerminalState {
    /// Records the answer to a question that was asked at `asked`.
    pub(super) fn record_approval(&mut self, asked: Instant, approval: &Approval, tool: &str) {
        let waited = asked.elapsed();
        for (_, began) in &mut self.began {
            *began += waited;
        }
        if matches!(approval, Approval::Deny { .. }) {
            self.refused = Some(tool.to_owned());
        }
    }

    pub(super) fn end_open_line(&mut self) {
        self.progress = None;
        if self.echoes.is_new() && !self.is_line_open && !scrollback::is_open() {
            output::clear_line();
        }
        if let Some(markdown) = &mut self.markdown {
            output::set(&markdown.flush());
        }
        if std::mem::take(&mut self.is_line_open) {
            output::line("");
        }
    }
}

/// Returns whether stdout is a terminal on which lines can be edited, because it can move its cursor.
fn can_edit() -> bool {
    let name = std::env::var_os("TERM").unwrap_or_default();
    io::stdout().is_terminal() && (cfg!(windows) || !(name.is_empty() || name == "dumb"))
}
