//! The source of prompts and answers: a person at the terminal, or the lines of stdin in order.

use std::io::{self, IsTerminal as _};

use thiserror::Error;

use crate::editor::{Editor, Entered, LineMode, LinePurpose};
use crate::interrupt::Interrupts;
use crate::output;
use crate::stdin_lines::StdinLines;

/// Why a question was not answered.
#[derive(Debug, Error)]
pub enum AskError {
    /// Ctrl-C, or another signal that ends the program.
    #[error("interrupted")]
    Interrupted,
    /// Stdin cannot be read.
    #[error("cannot read the answer")]
    Read(#[from] io::Error),
}

/// The source of prompts and answers.
#[derive(Debug)]
pub enum LineSource {
    /// The lines of stdin. They may be written before the questions are asked.
    Stdin(StdinLines),
    /// A person at a terminal. Only keys that are pressed after a question answer it.
    Terminal(Editor),
}

impl LineSource {
    /// Reads plain lines, from a person if stdin is a terminal.
    pub fn plain() -> Self {
        #[cfg(unix)]
        if io::stdin().is_terminal() {
            return Self::Terminal(Editor::start(LineMode::Plain));
        }
        Self::Stdin(StdinLines::default())
    }

    /// Reads lines that a person edits at a terminal.
    pub fn edited(mode: LineMode) -> Self {
        Self::Terminal(Editor::start(mode))
    }

    /// Returns the next line. If answers are lines of stdin, the caller must print the question.
    pub async fn read(&self, purpose: LinePurpose) -> io::Result<Entered> {
        match self {
            Self::Stdin(lines) => {
                let line = lines.next().await?;
                Ok(line.map_or(Entered::End, Entered::Line))
            }
            Self::Terminal(editor) => editor.read(purpose).await,
        }
    }

    /// Asks a question, and returns the answer without spaces around it. Returns `None` at the end of stdin.
    pub async fn ask(
        &self,
        question: &str,
        interrupts: &Interrupts,
    ) -> Result<Option<String>, AskError> {
        if let Self::Stdin(_) = self {
            output::text(question);
        }
        let answer = self.read(LinePurpose::Answer(question.to_owned()));
        let entered = interrupts
            .token()
            .run_until_cancelled(answer)
            .await
            .ok_or(AskError::Interrupted)??;
        match entered {
            Entered::Line(line) => Ok(Some(line.trim().to_owned())),
            Entered::End => Ok(None),
            Entered::Cleared | Entered::Interrupted => Err(AskError::Interrupted),
        }
    }

    /// Asks a yes-or-no question. Every answer except `y` and `yes` means no. Returns `None` at the end of stdin.
    pub async fn confirm(
        &self,
        question: &str,
        interrupts: &Interrupts,
    ) -> Result<Option<bool>, AskError> {
        let answer = self.ask(question, interrupts).await?;
        Ok(answer.map(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes")))
    }
}
