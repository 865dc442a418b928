//! Asks the user questions.

use tenterhook_agent::frontend::{Approval, ScriptQuestion};

use super::state::Terminal;
use crate::output::{style, styled};
use tenterhook_protocol::escape::{escape_indented, escape_invisible_indented};

impl Terminal {
    /// Asks whether a call may run, until the answer is valid. `suggestion` is the rule that a yes for the session
    /// allows, if that answer is possible.
    pub(super) async fn ask_approval(&self, suggestion: Option<&str>) -> Approval {
        let always = suggestion.map(|suggestion| {
            format!(
                "[a]lways `{}` in this session, ",
                escape_invisible_indented(suggestion, 4)
            )
        });
        let always = always.unwrap_or_default();
        self.print_line(&format!("  [y]es, {always}[n]o, `n REASON`"));
        let answers = if suggestion.is_some() {
            "y, a, n"
        } else {
            "y, n"
        };
        loop {
            // At the end of stdin, no one can answer, so no one has agreed.
            let Some(answer) = self.ask("  run it? ").await else {
                return Approval::Deny { reason: None };
            };
            let (word, rest) = answer
                .split_once(char::is_whitespace)
                .unwrap_or((&answer, ""));
            match (word.to_lowercase().as_str(), rest.trim()) {
                ("y" | "yes", "") => return Approval::AllowOnce,
                ("a" | "always", "") if suggestion.is_some() => return Approval::AllowSession,
                ("n" | "no", reason) => {
                    let reason = Some(reason).filter(|reason| !reason.is_empty());
                    return Approval::Deny {
                        reason: reason.map(str::to_owned),
                    };
                }
                _ => self.print_line(&format!("  answer {answers} or `n REASON`")),
            }
        }
    }

    fn print_question(&self, question: &str, rest: &str) {
        let mark = styled(style::CARE, "?");
        self.print_line(&format!("{mark} {}{rest}", escape_indented(question, 4)));
    }

    async fn ask_yes_or_no(&self) -> Option<String> {
        loop {
            let answer = self.ask("  [y]es or [n]o: ").await?;
            match answer.to_lowercase().as_str() {
                "y" | "yes" => return Some("yes".to_owned()),
                "n" | "no" => return Some("no".to_owned()),
                _ => self.print_line("  answer y or n"),
            }
        }
    }

    async fn ask_for_option(&self, options: &[String]) -> Option<String> {
        for (place, option) in options.iter().enumerate() {
            self.print_line(&format!("  {}. {}", place + 1, escape_indented(option, 5)));
        }
        loop {
            let answer = self.ask("  which one? Enter for none: ").await?;
            let chosen = answer.parse::<usize>().ok();
            let chosen = chosen.and_then(|number| options.get(number.checked_sub(1)?));
            match chosen {
                Some(option) => return Some(option.clone()),
                None if answer.is_empty() => return None,
                None => self.print_line(&format!("  answer with a number up to {}", options.len())),
            }
        }
    }

    /// Asks a script's question. Returns `None` if there is no answer, for example at the end of stdin.
    pub(super) async fn ask_for_script(&self, question: &ScriptQuestion) -> Option<String> {
        match question {
            ScriptQuestion::Confirm { title, message } => {
                let parts = [title.as_str(), message].into_iter();
                let text = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>();
                self.print_question(&text.join(": "), "");
                self.ask_yes_or_no().await
            }
            ScriptQuestion::Select { title, options } => {
                self.print_question(title, "");
                self.ask_for_option(options).await
            }
            ScriptQuestion::Input { title, placeholder } => {
                let before = placeholder
                    .as_ref()
                    .map(|text| format!(" [{}]", escape_indented(text, 4)));
                self.print_question(title, &before.unwrap_or_default());
                self.ask("  answer: ").await
            }
            ScriptQuestion::Editor { title, text } => {
                self.print_question(title, "");
                if self.has_editor() {
                    self.print_line("  Alt-Enter begins a new line, Enter ends the text.");
                } else if !text.is_empty() {
                    self.print_line(&format!("    {}", escape_indented(text, 4)));
                    self.print_line("  Enter keeps the text.");
                }
                self.ask_text("  text: ", text).await
            }
            _ => None,
        }
    }
}
