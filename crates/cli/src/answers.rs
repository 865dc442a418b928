//! Where answers come from: the person at the terminal, or the lines of standard input in order.

use std::io::{self, IsTerminal as _};

use crate::editor::{Editor, Entered, LineMode, Purpose};
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output;
use crate::stdin::Lines;

/// The source of prompts and answers.
#[derive(Debug)]
pub(crate) enum Answers {
    /// The lines of standard input. Who wrote them knew the questions.
    Lines(Lines),
    /// A person at a terminal. A question is answered by keys that come after it.
    Person(Editor),
}

impl Answers {
    /// Reads plain lines, from a person if standard input is a terminal.
    pub(crate) fn plain() -> Self {
        #[cfg(unix)]
        if io::stdin().is_terminal() {
            return Self::Person(Editor::start(LineMode::Plain));
        }
        Self::Lines(Lines::default())
    }

    /// Lets a person edit lines.
    pub(crate) fn edited(mode: LineMode) -> Self {
        Self::Person(Editor::start(mode))
    }

    /// Returns the next line. Who asks prints the question where answers are lines of standard input.
    pub(crate) async fn read(&self, purpose: Purpose) -> io::Result<Entered> {
        match self {
            Self::Lines(lines) => {
                let line = lines.next().await?;
                Ok(line.map_or(Entered::End, Entered::Line))
            }
            Self::Person(editor) => editor.read(purpose).await,
        }
    }

    /// Asks a question, and returns the answer without the spaces around it; `None` is the end of standard input. `unchanged` is
    /// what an error says was not done.
    pub(crate) async fn ask(
        &self,
        question: &str,
        unchanged: &str,
        interrupts: &Interrupts,
    ) -> Result<Option<String>, CliError> {
        if let Self::Lines(_) = self {
            output::text(question);
        }
        let answer = self.read(Purpose::Answer(question.to_owned()));
        let interrupted = || CliError::new(Exit::Interrupted, format!("interrupted; {unchanged}"));
        let entered = interrupts
            .token()
            .run_until_cancelled(answer)
            .await
            .ok_or_else(interrupted)?
            .map_err(|error| CliError::new(Exit::Failed, "cannot read the answer").cause(&error))?;
        match entered {
            Entered::Line(line) => Ok(Some(line.trim().to_owned())),
            Entered::End => Ok(None),
            Entered::Cleared | Entered::Interrupted => Err(interrupted()),
        }
    }

    /// Asks whether to do something. Everything but `y` and `yes` is a no.
    pub(crate) async fn confirm(
        &self,
        question: &str,
        unchanged: &str,
        interrupts: &Interrupts,
    ) -> Result<Option<bool>, CliError> {
        let answer = self.ask(question, unchanged, interrupts).await?;
        Ok(answer.map(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes")))
    }
}
