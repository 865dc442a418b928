//! Questions as messages with buttons.
//!
//! The data of a button is a code, a colon and the question's nonce. For a choice of a script the code is the option's
//! number, and the answer is the text on the button itself: nothing has to be remembered.

use serde_json::Value;

use super::bot_api::{InlineKeyboardButton, InlineKeyboardMarkup};
use tenterhook_channel::chat::{ChatRef, Sender};
use tenterhook_channel::frame::Frame;
use tenterhook_channel::message::{ApprovalChoice, Control};

/// The maximum length of the data of a button in bytes.
const MAX_DATA: usize = 64;
/// The maximum number of buttons for a question of a script.
const MAX_OPTIONS: usize = 20;

/// The answers to the question whether a tool call may run: the code, the choice and the button.
const CHOICES: [(&str, ApprovalChoice, &str); 3] = [
    ("a", ApprovalChoice::Allow, "Allow"),
    ("s", ApprovalChoice::AllowSession, "Allow for the session"),
    ("d", ApprovalChoice::Deny, "Deny"),
];

/// A question as a message.
#[derive(Debug, PartialEq)]
pub(super) struct Question {
    pub(super) nonce: String,
    pub(super) text: String,
    pub(super) keyboard: InlineKeyboardMarkup,
}

/// Returns the message for a question, if buttons can answer it.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "all other frames are not questions"
)]
pub(super) fn question(frame: &Frame) -> Option<Question> {
    let (nonce, text, rows) = match frame {
        Frame::Approve {
            nonce,
            card,
            choices,
            ..
        } => {
            let rows = CHOICES
                .iter()
                .filter(|(_, choice, _)| choices.contains(choice))
                .map(|(code, _, label)| ((*code).to_owned(), (*label).to_owned()))
                .collect();
            (nonce, format!("🔐 {}", card.text), rows)
        }
        Frame::Question {
            nonce, question, ..
        } => {
            let field = |key: &str| question.get(key).and_then(Value::as_str);
            let title = field("title").unwrap_or_default();
            let message = field("message").unwrap_or_default();
            (nonce, format!("❓ {title}\n{message}"), options(question)?)
        }
        _ => return None,
    };
    let keyboard = rows
        .into_iter()
        .map(|(code, label)| {
            let data = format!("{code}:{nonce}");
            (data.len() <= MAX_DATA).then(|| {
                vec![InlineKeyboardButton {
                    text: label,
                    callback_data: Some(data),
                }]
            })
        })
        .collect::<Option<Vec<_>>>()?;
    Some(Question {
        nonce: nonce.clone(),
        text: text.trim().to_owned(),
        keyboard: InlineKeyboardMarkup {
            inline_keyboard: keyboard,
        },
    })
}

fn options(question: &Value) -> Option<Vec<(String, String)>> {
    let options: Vec<String> = match question.get("kind").and_then(Value::as_str)? {
        "confirm" => vec!["yes".to_owned(), "no".to_owned()],
        "select" => serde_json::from_value(question.get("options")?.clone()).ok()?,
        _ => return None,
    };
    let is_short = (1..=MAX_OPTIONS).contains(&options.len());
    let numbered = options.into_iter().enumerate();
    is_short.then(|| {
        numbered
            .map(|(i, option)| (i.to_string(), option))
            .collect()
    })
}

/// Reads the data of a button that was pressed. `keyboard` has all buttons of its message.
pub(super) fn read(
    data: &str,
    keyboard: Option<&InlineKeyboardMarkup>,
    chat: ChatRef,
    sender: Sender,
) -> Option<Control> {
    let (code, nonce) = data.split_once(':')?;
    let nonce = nonce.to_owned();
    if let Some((_, choice, _)) = CHOICES.iter().find(|(known, _, _)| *known == code) {
        return Some(Control::Approval {
            nonce,
            choice: *choice,
            reason: None,
            chat,
            sender,
        });
    }
    let mut buttons = keyboard?.inline_keyboard.iter().flatten();
    let pressed = buttons.find(|button| button.callback_data.as_deref() == Some(data))?;
    Some(Control::Answer {
        nonce,
        text: Some(pressed.text.clone()),
        chat,
        sender,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use tenterhook_channel::chat::ChannelId;

    #[test]
    fn a_choice_of_a_script_is_answered_by_the_text_on_the_button() {
        let frame = |question: Value| Frame::Question {
            nonce: "0f".to_owned(),
            question,
            expires: 0,
        };
        let select = json!({"kind": "select", "title": "Which?", "options": ["one", "two"]});
        let asked = question(&frame(select)).unwrap();
        let chat = ChatRef {
            channel: ChannelId::new("tg").unwrap(),
            chat: "42".to_owned(),
            thread: None,
        };
        let sender = Sender {
            id: "42".to_owned(),
            name: None,
            is_bot: false,
        };
        let read = |data| read(data, Some(&asked.keyboard), chat.clone(), sender.clone());
        let Some(Control::Answer { nonce, text, .. }) = read("1:0f") else {
            panic!("not an answer");
        };
        assert_eq!((nonce.as_str(), text.as_deref()), ("0f", Some("two")));
        assert!(read("2:0f").is_none());
        let input = json!({"kind": "input", "title": "Name?"});
        assert!(question(&frame(input)).is_none());
    }
}
