//! The look of a line while it is being written: prompt, colours and hints.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use reedline::{
    Color, DefaultHinter, Highlighter, Hinter, History, Prompt, PromptEditMode,
    PromptHistorySearch, PromptHistorySearchStatus, StyledText,
};

use super::completion::CompletionWords;
use super::prompt_text::PromptText;

/// The text before a line: the prompt or a question.
pub(super) struct Line {
    before: String,
}

impl Line {
    pub(super) fn prompt() -> Self {
        Self {
            before: "> ".to_owned(),
        }
    }

    pub(super) fn question(question: &str) -> Self {
        Self {
            before: question.to_owned(),
        }
    }
}

impl Prompt for Line {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.before)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("… ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "nothing ",
        };
        Cow::Owned(format!("({found}found for `{}`) ", search.term))
    }

    fn get_prompt_color(&self) -> Color {
        Color::Default
    }

    fn get_prompt_multiline_color(&self) -> Color {
        Color::DarkGray
    }
}

/// Colours commands, and records the line.
pub(super) struct Highlight {
    words: Arc<Mutex<CompletionWords>>,
    has_text: Arc<AtomicBool>,
    /// Where the text of a prompt is recorded.
    prompt: Option<Arc<PromptText>>,
}

impl Highlight {
    pub(super) fn new(
        words: Arc<Mutex<CompletionWords>>,
        has_text: Arc<AtomicBool>,
        prompt: Option<Arc<PromptText>>,
    ) -> Self {
        Self {
            words,
            has_text,
            prompt,
        }
    }
}

impl Highlighter for Highlight {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        self.has_text.store(!line.is_empty(), Ordering::Relaxed);
        if let Some(prompt) = &self.prompt {
            prompt.set_edited(line);
        }
        let command = line
            .strip_prefix('/')
            .and_then(|rest| rest.split_whitespace().next());
        let words = self.words.lock();
        let length = command
            .filter(|name| words.command(name).is_some())
            .map_or(0, |name| name.len() + 1);
        let (command, rest) = line.split_at_checked(length).unwrap_or((line, ""));
        let mut styled = StyledText::new();
        styled.push((Color::Cyan.normal(), command.to_owned()));
        styled.push((Color::Default.normal(), rest.to_owned()));
        styled
    }
}

/// Shows hints: the rest of a matching line from the history, or the form of a command's arguments.
pub(super) struct Hints {
    words: Arc<Mutex<CompletionWords>>,
    history: DefaultHinter,
}

impl Hints {
    pub(super) fn new(words: Arc<Mutex<CompletionWords>>) -> Self {
        Self {
            words,
            history: DefaultHinter::default().with_style(Color::DarkGray.normal()),
        }
    }

    fn form(&self, line: &str) -> Option<String> {
        let name = line.strip_prefix('/')?.strip_suffix(' ')?;
        let words = self.words.lock();
        let form = &words.command(name)?.form;
        (!form.is_empty()).then(|| form.clone())
    }
}

impl Hinter for Hints {
    fn handle(
        &mut self,
        line: &str,
        position: usize,
        history: &dyn History,
        is_coloured: bool,
        cwd: &str,
    ) -> String {
        let hint = self
            .history
            .handle(line, position, history, is_coloured, cwd);
        match self.form(line) {
            Some(form) if hint.is_empty() && is_coloured => Color::DarkGray.paint(form).to_string(),
            _ => hint,
        }
    }

    fn complete_hint(&self) -> String {
        self.history.complete_hint()
    }

    fn next_hint_token(&self) -> String {
        self.history.next_hint_token()
    }
}
