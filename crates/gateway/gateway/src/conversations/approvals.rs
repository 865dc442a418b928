//! Questions to people: whether a tool call may run, and questions of scripts.
//!
//! A question is asked in the chat itself if that is an owner's direct chat, otherwise in the chat that the settings
//! name. Only an owner, in the chat where it was asked, can answer it, once and within five minutes. If no one can be
//! asked, the call is denied.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tenterhook_agent::frontend::{Approval, ApprovalRequest, AskedBy, ScriptQuestion};
use tenterhook_journal::Redactor;
use tenterhook_protocol::event::SenderRole;
use tokio::sync::oneshot;

use tenterhook_channel::approval_card::{ApprovalCard, escape_prose};
use tenterhook_channel::chat::{ChatRef, Sender};
use tenterhook_channel::frame::Frame;
use tenterhook_channel::message::ApprovalChoice;
use tenterhook_channel::publisher::Publisher;

/// How long a question can be answered.
const QUESTION_LIFE: Duration = Duration::from_mins(5);

/// What someone reads who answers too late, or twice.
const OVER: &str = "This question is over.";

/// The open questions of a gateway. Clones share them.
#[derive(Clone)]
pub struct OpenQuestions {
    publisher: Arc<dyn Publisher>,
    fallback: Option<ChatRef>,
    open: Arc<Mutex<HashMap<String, OpenQuestion>>>,
}

impl std::fmt::Debug for OpenQuestions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenQuestions").finish_non_exhaustive()
    }
}

/// The chat whose turn has a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AskingChat {
    pub(crate) chat: ChatRef,
    /// Who wrote the messages that the turn answers.
    pub(crate) asked_by: String,
    /// Whether only an owner is in it.
    pub(crate) is_owner_direct: bool,
}

/// Someone who answers a question.
#[derive(Debug, Clone, Copy)]
pub struct Answerer<'a> {
    /// Where the answer was given.
    pub chat: &'a ChatRef,
    /// Who answers.
    pub sender: &'a Sender,
    /// What they may do.
    pub role: SenderRole,
}

struct OpenQuestion {
    chat: ChatRef,
    kind: QuestionKind,
    frame: Frame,
    reply: oneshot::Sender<(Answer, String)>,
}

#[derive(Clone)]
enum QuestionKind {
    Approval { has_session: bool },
    Script(ScriptQuestion),
}

#[derive(Debug)]
enum Answer {
    Choice(ApprovalChoice, Option<String>),
    Text(Option<String>),
}

/// A question while it is open. When it is dropped, the question is over, and its chat sees the outcome.
struct Asked<'a> {
    approvals: &'a OpenQuestions,
    nonce: String,
    chat: ChatRef,
    outcome: &'static str,
    by: Option<String>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.approvals.open.lock().remove(&self.nonce);
        let resolved = Frame::Resolved {
            nonce: self.nonce.clone(),
            outcome: self.outcome.to_owned(),
            by: self.by.take(),
        };
        self.approvals.publisher.live(&self.chat, &resolved);
    }
}

impl OpenQuestions {
    /// Creates an empty set of questions. Those that cannot be asked in their own chat are asked in `fallback`, which
    /// is an owner's direct chat.
    pub fn new(publisher: Arc<dyn Publisher>, fallback: Option<ChatRef>) -> Self {
        Self {
            publisher,
            fallback,
            open: Arc::default(),
        }
    }

    /// Asks whether a tool call may run.
    pub(crate) async fn approve(
        &self,
        asking: &AskingChat,
        request: &ApprovalRequest<'_>,
    ) -> Approval {
        let has_session = asking.is_owner_direct;
        let kind = QuestionKind::Approval { has_session };
        let answer = self.ask(asking, kind, |nonce, expires| {
            let mut choices = vec![ApprovalChoice::Allow, ApprovalChoice::Deny];
            if has_session {
                choices.insert(1, ApprovalChoice::AllowSession);
            }
            let card = ApprovalCard::new(
                (request.tool, request.input),
                (&asking.asked_by, &asking.chat),
                &why_asked(request),
            );
            Frame::Approve {
                nonce,
                call_id: request.call.to_string(),
                tool: request.tool.to_owned(),
                args: Box::new(request.input.clone()),
                card: Box::new(card),
                choices,
                expires,
            }
        });
        match answer.await {
            Some(Answer::Choice(ApprovalChoice::Allow, _)) => Approval::AllowOnce,
            Some(Answer::Choice(ApprovalChoice::AllowSession, _)) => Approval::AllowSession,
            Some(Answer::Choice(ApprovalChoice::Deny, reason)) => Approval::Deny { reason },
            Some(Answer::Text(_)) | None => Approval::Unavailable,
        }
    }

    /// Asks an owner to choose an answer to a question of the gateway, in one of the owner's chats. `None` if no one can be
    /// asked there, or answers.
    pub async fn ask_owner(
        &self,
        chat: ChatRef,
        title: String,
        options: Vec<String>,
    ) -> Option<String> {
        let question = ScriptQuestion::Select { title, options };
        let asking = AskingChat {
            chat,
            asked_by: String::new(),
            is_owner_direct: true,
        };
        self.question(&asking, &question).await
    }

    /// Asks a question of a script.
    pub(crate) async fn question(
        &self,
        asking: &AskingChat,
        question: &ScriptQuestion,
    ) -> Option<String> {
        let kind = QuestionKind::Script(question.clone());
        let answer = self.ask(asking, kind, |nonce, expires| Frame::Question {
            nonce,
            question: shown_question(question),
            expires,
        });
        match answer.await {
            Some(Answer::Text(text)) => text,
            Some(Answer::Choice(..)) | None => None,
        }
    }

    async fn ask(
        &self,
        asking: &AskingChat,
        kind: QuestionKind,
        frame: impl FnOnce(String, i64) -> Frame,
    ) -> Option<Answer> {
        let own = asking.is_owner_direct.then_some(&asking.chat);
        let chat = own.or(self.fallback.as_ref())?.clone();
        let nonce = fresh_nonce()?;
        let (reply, answered) = oneshot::channel();
        let seconds = i64::try_from(QUESTION_LIFE.as_secs()).unwrap_or(i64::MAX);
        let expires = Timestamp::now().as_second().saturating_add(seconds);
        let question = frame(nonce.clone(), expires);
        let open = OpenQuestion {
            chat: chat.clone(),
            kind,
            frame: question.clone(),
            reply,
        };
        self.open.lock().insert(nonce.clone(), open);
        let mut asked = Asked {
            approvals: self,
            nonce,
            chat: chat.clone(),
            outcome: "withdrawn",
            by: None,
        };
        if !self.publisher.ask(&chat, &question).await {
            return None;
        }
        let Ok(Ok((answer, by))) = tokio::time::timeout(QUESTION_LIFE, answered).await else {
            asked.outcome = "expired";
            return None;
        };
        asked.outcome = match &answer {
            Answer::Choice(ApprovalChoice::Deny, _) => "denied",
            Answer::Choice(..) => "allowed",
            Answer::Text(_) => "answered",
        };
        asked.by = Some(by);
        Some(answer)
    }

    /// Answers the question whether a tool call may run. Returns what the sender is shown, if anything.
    pub fn answer(
        &self,
        nonce: &str,
        choice: ApprovalChoice,
        reason: Option<String>,
        by: Answerer<'_>,
    ) -> Option<String> {
        self.accept(nonce, by, |kind| match kind {
            QuestionKind::Approval { has_session } => {
                if choice == ApprovalChoice::AllowSession && !has_session {
                    return Err("This answer is not possible here.".to_owned());
                }
                Ok(Answer::Choice(choice, reason))
            }
            QuestionKind::Script(_) => Err("This question needs a text as its answer.".to_owned()),
        })
    }

    /// Answers a question of a script; `None` dismisses it. Returns what the sender is shown, if anything.
    pub fn answer_question(
        &self,
        nonce: &str,
        text: Option<String>,
        by: Answerer<'_>,
    ) -> Option<String> {
        self.accept(nonce, by, |kind| match kind {
            QuestionKind::Script(question) => {
                check_answer(question, text.as_deref())?;
                Ok(Answer::Text(text))
            }
            QuestionKind::Approval { .. } => {
                Err("This question is answered by one of its choices.".to_owned())
            }
        })
    }

    /// Returns the open questions whether a tool call may run, of the chats that `is_shown` selects: the frames of their
    /// chats, with the chats, without secrets in the arguments.
    pub fn open_approvals(&self, is_shown: impl Fn(&ChatRef) -> bool) -> Vec<Value> {
        let open = self.open.lock();
        let approvals = open.values().filter_map(|question| {
            let QuestionKind::Approval { .. } = question.kind else {
                return None;
            };
            if !is_shown(&question.chat) {
                return None;
            }
            let mut frame = serde_json::to_value(&question.frame).ok()?;
            Redactor::shared().redact_value(&mut frame);
            let fields = frame.as_object_mut()?;
            fields.insert("chat".to_owned(), json!(question.chat));
            Some(frame)
        });
        let mut approvals: Vec<Value> = approvals.collect();
        approvals.sort_by_key(|frame| frame.get("expires").and_then(Value::as_i64));
        approvals
    }

    /// Answers the question whether a tool call may run, for an administrator who is in no chat. `by` is shown to the
    /// people of the chat. Only questions of the chats that `is_shown` selects can be answered.
    ///
    /// # Errors
    ///
    /// Fails if there is no such question, or if the call cannot be answered this way.
    pub fn decide(
        &self,
        nonce: &str,
        choice: ApprovalChoice,
        by: &str,
        is_shown: impl Fn(&ChatRef) -> bool,
    ) -> Result<(), String> {
        let chat = self
            .open
            .lock()
            .get(nonce)
            .map(|question| question.chat.clone());
        let chat = chat.filter(is_shown).ok_or(OVER)?;
        let sender = Sender {
            id: by.to_owned(),
            name: None,
            is_bot: false,
        };
        let by = Answerer {
            chat: &chat,
            sender: &sender,
            role: SenderRole::Owner,
        };
        match self.answer(nonce, choice, None, by) {
            Some(problem) => Err(problem),
            None => Ok(()),
        }
    }

    fn accept(
        &self,
        nonce: &str,
        by: Answerer<'_>,
        answer: impl FnOnce(&QuestionKind) -> Result<Answer, String>,
    ) -> Option<String> {
        let mut open = self.open.lock();
        let Some(question) = open.get(nonce).filter(|question| question.chat == *by.chat) else {
            return Some(OVER.to_owned());
        };
        if by.role != SenderRole::Owner {
            return Some("Only an owner can answer this question.".to_owned());
        }
        let answer = match answer(&question.kind) {
            Ok(answer) => answer,
            Err(problem) => return Some(problem),
        };
        let question = open.remove(nonce)?;
        let sent = question.reply.send((answer, by.sender.id.clone()));
        sent.is_err().then(|| OVER.to_owned())
    }
}

/// Returns a question of a script as people see it: nothing in it hides other text.
fn shown_question(question: &ScriptQuestion) -> Value {
    let mut shown = json!(question);
    for name in ["title", "message"] {
        if let Some(Value::String(text)) = shown.get_mut(name) {
            *text = escape_prose(text);
        }
    }
    shown
}

/// Fails if a text does not answer a question.
fn check_answer(question: &ScriptQuestion, text: Option<&str>) -> Result<(), String> {
    let is_possible = match (question, text) {
        (ScriptQuestion::Confirm { .. }, Some(text)) => ["yes", "no"].contains(&text),
        (ScriptQuestion::Select { options, .. }, Some(text)) => {
            options.iter().any(|option| option == text)
        }
        _ => true,
    };
    if is_possible {
        Ok(())
    } else {
        Err("This is not one of the possible answers.".to_owned())
    }
}

/// Returns 128 random bits as text. `None` if the system provides no random bits.
fn fresh_nonce() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

/// Says who requires the question about a call, and why.
fn why_asked(request: &ApprovalRequest<'_>) -> String {
    match (request.by, request.reason) {
        (
            AskedBy::Hook {
                hook: Some(hook), ..
            },
            Some(reason),
        ) => format!("The hook `{hook}` asks: {reason}"),
        (AskedBy::Rule, Some(rule)) => format!("The rule `{rule}` asks."),
        (_, Some(reason)) => reason.to_owned(),
        (_, None) => "The agent needs permission for this tool.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::{self, BoxFuture};
    use tenterhook_protocol::JsonObject;

    use super::*;
    use tenterhook_channel::channel::ChannelCapabilities;
    use tenterhook_channel::chat::ChannelId;
    use tenterhook_channel::message::MediaRef;
    use tenterhook_channel::publisher::{InboxUpdate, PublishError, SavedMedia};

    #[derive(Default)]
    struct Screen {
        frames: Mutex<Vec<(ChatRef, Frame)>>,
        is_reached: bool,
    }

    impl Publisher for Screen {
        fn capabilities(&self, _: &ChatRef) -> Option<ChannelCapabilities> {
            None
        }

        fn live(&self, chat: &ChatRef, frame: &Frame) {
            self.frames.lock().push((chat.clone(), frame.clone()));
        }

        fn publish<'a>(
            &'a self,
            _: &'a ChatRef,
            _: Vec<Frame>,
            _: InboxUpdate,
        ) -> BoxFuture<'a, Result<(), PublishError>> {
            Box::pin(future::ready(Ok(())))
        }

        fn fetch<'a>(
            &'a self,
            _: &'a ChatRef,
            _: &'a MediaRef,
        ) -> BoxFuture<'a, Result<SavedMedia, String>> {
            Box::pin(future::ready(Err("no files".to_owned())))
        }

        fn ask<'a>(&'a self, chat: &'a ChatRef, question: &'a Frame) -> BoxFuture<'a, bool> {
            self.live(chat, question);
            Box::pin(future::ready(self.is_reached))
        }
    }

    impl Screen {
        fn nonce(&self) -> String {
            let frames = self.frames.lock();
            let mut nonces = frames.iter().rev().filter_map(|(_, frame)| {
                if let Frame::Approve { nonce, .. } | Frame::Question { nonce, .. } = frame {
                    return Some(nonce.clone());
                }
                None
            });
            nonces.next().unwrap()
        }

        fn outcomes(&self) -> Vec<String> {
            let mut outcomes = Vec::new();
            for (chat, frame) in &*self.frames.lock() {
                if let Frame::Resolved { outcome, .. } = frame {
                    outcomes.push(format!("{chat} {outcome}"));
                }
            }
            outcomes
        }
    }

    fn chat(name: &str) -> ChatRef {
        ChatRef {
            channel: ChannelId::new("tg").unwrap(),
            chat: name.to_owned(),
            thread: None,
        }
    }

    fn asking(is_owner_direct: bool) -> AskingChat {
        AskingChat {
            chat: chat("1"),
            asked_by: "Ada (1)".to_owned(),
            is_owner_direct,
        }
    }

    async fn approve(approvals: &OpenQuestions, is_owner_direct: bool) -> Approval {
        let (input, metadata) = (JsonObject::new(), JsonObject::new());
        let request = ApprovalRequest {
            agent: "root",
            call: &"call_1".into(),
            tool: "shell",
            input: &input,
            reason: None,
            by: AskedBy::Default,
            metadata: &metadata,
            suggestion: "shell",
        };
        approvals.approve(&asking(is_owner_direct), &request).await
    }

    fn with_screen(is_reached: bool, fallback: Option<&str>) -> (Arc<Screen>, OpenQuestions) {
        let screen = Arc::new(Screen {
            is_reached,
            ..Screen::default()
        });
        let publisher = Arc::clone(&screen) as Arc<dyn Publisher>;
        (screen, OpenQuestions::new(publisher, fallback.map(chat)))
    }

    // G77
    #[tokio::test(start_paused = true)]
    async fn a_question_that_no_one_answers_expires_and_nothing_runs() {
        let (screen, approvals) = with_screen(true, Some("9"));
        assert_eq!(approve(&approvals, false).await, Approval::Unavailable);
        assert_eq!(screen.outcomes(), ["tg:9 expired"]);
        assert!(approvals.open.lock().is_empty());
    }

    // G78
    #[tokio::test]
    async fn a_question_that_reaches_no_one_is_unavailable() {
        let (screen, approvals) = with_screen(true, None);
        assert_eq!(approve(&approvals, false).await, Approval::Unavailable);
        assert!(screen.frames.lock().is_empty());
        let (screen, approvals) = with_screen(false, None);
        assert_eq!(approve(&approvals, true).await, Approval::Unavailable);
        assert_eq!(screen.outcomes(), ["tg:1 withdrawn"]);
    }

    #[tokio::test]
    async fn an_administrator_decides_without_being_in_the_chat() {
        for (choice, expected) in [
            (ApprovalChoice::Allow, Approval::AllowOnce),
            (ApprovalChoice::Deny, Approval::Deny { reason: None }),
        ] {
            let (screen, approvals) = with_screen(true, None);
            let answer = async {
                tokio::task::yield_now().await;
                let open = approvals.open_approvals(|_| true);
                assert!(approvals.open_approvals(|_| false).is_empty());
                assert_eq!(open.len(), 1);
                assert_eq!(open[0]["tool"], "shell");
                assert_eq!(open[0]["chat"], json!(chat("1")));
                let nonce = screen.nonce();
                assert_eq!(open[0]["nonce"], nonce.as_str());
                let decide = |nonce: &str, is_shown: bool| {
                    approvals.decide(nonce, choice, "inspector", |_| is_shown)
                };
                assert!(decide("other", true).is_err());
                assert!(decide(&nonce, false).is_err(), "a chat of someone else");
                assert_eq!(decide(&nonce, true), Ok(()));
                assert!(decide(&nonce, true).is_err());
            };
            let (approval, ()) = tokio::join!(approve(&approvals, true), answer);
            assert_eq!(approval, expected);
            assert!(approvals.open_approvals(|_| true).is_empty());
        }
    }

    #[tokio::test]
    async fn the_answer_for_the_session_is_only_for_owners_in_their_own_chat() {
        for (is_direct, place, expected) in [
            (true, "1", Approval::AllowSession),
            (false, "9", Approval::AllowOnce),
        ] {
            let (screen, approvals) = with_screen(true, Some("9"));
            let sender = Sender {
                id: "1".to_owned(),
                name: None,
                is_bot: false,
            };
            let (place, answering) = (chat(place), approvals.clone());
            let answer = async {
                tokio::task::yield_now().await;
                let by = Answerer {
                    chat: &place,
                    sender: &sender,
                    role: SenderRole::Owner,
                };
                let choice = ApprovalChoice::AllowSession;
                let nonce = screen.nonce();
                if answering.answer(&nonce, choice, None, by).is_some() {
                    assert!(answering.answer_question(&nonce, None, by).is_some());
                    let answered = answering.answer(&nonce, ApprovalChoice::Allow, None, by);
                    assert_eq!(answered, None);
                }
            };
            let (approval, ()) = tokio::join!(approve(&approvals, is_direct), answer);
            assert_eq!(approval, expected);
        }
    }

    #[tokio::test]
    async fn a_script_gets_only_an_answer_that_fits_its_question() {
        let (screen, approvals) = with_screen(true, None);
        let sender = Sender {
            id: "1".to_owned(),
            name: None,
            is_bot: false,
        };
        let question = ScriptQuestion::Select {
            title: "Which?".to_owned(),
            options: vec!["a".to_owned(), "b".to_owned()],
        };
        let (place, answering) = (chat("1"), approvals.clone());
        let answer = async {
            tokio::task::yield_now().await;
            let by = Answerer {
                chat: &place,
                sender: &sender,
                role: SenderRole::Owner,
            };
            let nonce = screen.nonce();
            let wrong = answering.answer_question(&nonce, Some("c".to_owned()), by);
            assert_eq!(
                wrong.as_deref(),
                Some("This is not one of the possible answers.")
            );
            let right = answering.answer_question(&nonce, Some("b".to_owned()), by);
            assert_eq!(right, None);
        };
        let place = asking(true);
        let (answer, ()) = tokio::join!(approvals.question(&place, &question), answer);
        assert_eq!(answer.as_deref(), Some("b"));
        assert_eq!(screen.outcomes(), ["tg:1 answered"]);
    }
}
