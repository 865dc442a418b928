//! The questions that a person is asked.

use tenterhook_agent::frontend::{Approval, Question};

use super::Terminal;
use crate::output::{style, styled};
use crate::safe::{inset, reveal_inset};

impl Terminal {
    /// Asks until the answer is one of those that there are. `suggestion` is what a yes for the session allows, where there
    /// is one.
    pub(super) async fn ask_approval(&self, suggestion: Option<&str>) -> Approval {
        let always = suggestion.map(|suggestion| {
            format!(
                "[a]lways `{}` in this session, ",
                reveal_inset(suggestion, 4)
            )
        });
        let always = always.unwrap_or_default();
        self.line(&format!("  [y]es, {always}[n]o, `n REASON`"));
        let answers = if suggestion.is_some() {
            "y, a, n"
        } else {
            "y, n"
        };
        loop {
            // At the end of stdin nobody is there any more, so nobody agreed.
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
                _ => self.line(&format!("  answer {answers} or `n REASON`")),
            }
        }
    }

    /// Asks what a script wants to know. `None` is the end of stdin.
    pub(super) async fn ask_for_script(&self, question: &Question) -> Option<String> {
        match question {
            Question::Confirm { title, message } => {
                let parts = [title.as_str(), message].into_iter();
                let text = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>();
                let text = text.join(": ");
                self.line(&format!("{} {}", styled(style::CARE, "?"), inset(&text, 4)));
                loop {
                    let answer = self.ask("  [y]es or [n]o: ").await?;
                    match answer.to_lowercase().as_str() {
                        "y" | "yes" => return Some("yes".to_owned()),
                        "n" | "no" => return Some("no".to_owned()),
                        _ => self.line("  answer y or n"),
                    }
                }
            }
            Question::Select { title, options } => {
                self.line(&format!("{} {}", styled(style::CARE, "?"), inset(title, 4)));
                for (place, option) in options.iter().enumerate() {
                    self.line(&format!("  {}. {}", place + 1, inset(option, 5)));
                }
                loop {
                    let answer = self.ask("  which one? Enter for none: ").await?;
                    let chosen = answer
                        .parse::<usize>()
                        .ok()
                        .and_then(|at| at.checked_sub(1));
                    match chosen.and_then(|at| options.get(at)) {
                        Some(option) => return Some(option.clone()),
                        None if answer.is_empty() => return None,
                        None => {
                            self.line(&format!("  answer with a number up to {}", options.len()));
                        }
                    }
                }
            }
            Question::Input { title, placeholder } => {
                let before = placeholder
                    .as_ref()
                    .map(|text| format!(" [{}]", inset(text, 4)));
                let before = before.unwrap_or_default();
                self.line(&format!(
                    "{} {}{before}",
                    styled(style::CARE, "?"),
                    inset(title, 4)
                ));
                self.ask("  answer: ").await
            }
            _ => None,
        }
    }
}
