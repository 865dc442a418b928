//! The text of the prompt: what a person is writing, and the text with which the next prompt begins.

use parking_lot::Mutex;

/// The text of the prompt that is being edited, or of the next one.
#[derive(Debug, Default)]
pub(super) struct PromptText(Mutex<Text>);

#[derive(Debug, Default)]
struct Text {
    /// The text with which the next prompt begins.
    next: String,
    /// The text of the prompt that is being edited.
    edited: Option<String>,
    /// The text that replaces the edited text.
    change: Option<String>,
}

impl PromptText {
    /// Keeps text that was typed too early for the next prompt.
    pub(super) fn keep(&self, text: &str) {
        let next = &mut self.0.lock().next;
        if !next.is_empty() && !text.is_empty() {
            next.push('\n');
        }
        next.push_str(text);
    }

    /// Takes the text with which a prompt begins.
    pub(super) fn take(&self) -> String {
        std::mem::take(&mut self.0.lock().next)
    }

    /// Begins the edit of a prompt. Returns the text with which it begins.
    pub(super) fn begin(&self) -> String {
        let mut text = self.0.lock();
        let next = std::mem::take(&mut text.next);
        text.edited = Some(next.clone());
        text.change = None;
        next
    }

    /// Records the text of the prompt that is being edited.
    pub(super) fn set_edited(&self, edited: &str) {
        if let Some(text) = &mut self.0.lock().edited {
            edited.clone_into(text);
        }
    }

    /// Ends the edit. `kept` is the text with which the next prompt begins.
    pub(super) fn end(&self, kept: &str) {
        let mut text = self.0.lock();
        text.edited = None;
        text.next = text.change.take().unwrap_or_else(|| kept.to_owned());
    }

    /// Returns the text of the prompt that is being edited, or of the next one.
    pub(super) fn text(&self) -> String {
        let text = self.0.lock();
        let edited = text.change.as_ref().or(text.edited.as_ref());
        edited.unwrap_or(&text.next).clone()
    }

    /// Changes the text of the prompt that is being edited, or of the next one. Returns whether one is being edited.
    pub(super) fn change(&self, added: &str, replaces: bool) -> bool {
        let mut text = self.0.lock();
        let before = text.change.take().or_else(|| text.edited.clone());
        let is_edited = before.is_some();
        let mut changed = before.unwrap_or_else(|| std::mem::take(&mut text.next));
        if replaces {
            changed.clear();
        }
        changed.push_str(added);
        if is_edited {
            text.change = Some(changed);
        } else {
            text.next = changed;
        }
        is_edited
    }

    /// Takes the text that replaces the edited text.
    pub(super) fn take_change(&self) -> Option<String> {
        self.0.lock().change.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_reaches_the_edited_prompt_or_else_the_next_one() {
        let prompt = PromptText::default();
        assert!(!prompt.change("one", true));
        assert!(!prompt.change(" two", false));
        assert_eq!(prompt.begin(), "one two");
        prompt.set_edited("mine");
        assert!(prompt.change("!", false));
        assert_eq!(prompt.text(), "mine!");
        assert_eq!(prompt.take_change().as_deref(), Some("mine!"));
        prompt.set_edited("mine!");
        prompt.end("mine!");
        assert_eq!(prompt.text(), "mine!");
        prompt.keep("typed ahead");
        assert_eq!(prompt.take(), "mine!\ntyped ahead");
        assert_eq!(prompt.text(), "");
    }
}
