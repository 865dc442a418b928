//! The client as an agent's frontend: it is asked by requests of the agent's own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook::event::NotificationLevel;
use tenterhook_agent::frontend::{Approval, ApprovalRequest, AskedBy, HookFailure, Question};
use tenterhook_agent::{CancellationToken, Frontend};
use tokio::sync::oneshot;

use super::wire::Failure;
use crate::feed::Feed;
use crate::terminal::Terminal;

/// What a client answered: a result, or the words of an error.
type Answer = Result<Value, String>;

/// A client.
pub(in crate::converse) struct Client {
    feed: Feed,
    /// Where the user is told what no event says.
    terminal: Arc<Terminal>,
    asked: Mutex<HashMap<String, oneshot::Sender<Answer>>>,
    count: AtomicU64,
    closed: CancellationToken,
}

/// A question that is not answered yet. Dropping it tells the client that nobody waits any more.
struct Pending<'a> {
    client: &'a Client,
    id: String,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.client.asked().remove(&self.id).is_some() {
            let params = json!({"id": self.id});
            self.client
                .feed
                .try_send(&json!({"jsonrpc": "2.0", "method": "cancel", "params": params}));
        }
    }
}

impl Client {
    pub(in crate::converse) fn new(feed: Feed, terminal: Arc<Terminal>) -> Self {
        Self {
            feed,
            terminal,
            asked: Mutex::default(),
            count: AtomicU64::new(0),
            closed: CancellationToken::new(),
        }
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Answer>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message.
    pub(super) async fn send(&self, message: &Value) {
        self.feed.send(message).await;
    }

    /// Answers a request.
    pub(super) async fn reply(&self, id: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
            .await;
    }

    /// Answers a request with what came of it.
    pub(super) async fn settle(&self, id: &Value, result: Result<Value, Failure>) {
        match result {
            Ok(result) => self.reply(id, result).await,
            Err(failure) => self.send(&failure.about(id).message()).await,
        }
    }

    /// Takes the answer to a question. One that nobody asked is passed over.
    pub(super) fn answered(&self, id: &str, answer: Answer) {
        if let Some(asked) = self.asked().remove(id) {
            asked.send(answer).ok();
        }
    }

    /// Says that the client is gone: nobody answers any more.
    pub(super) fn close(&self) {
        self.closed.cancel();
        self.asked().clear();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Asks the client. `None` is a client that is gone.
    async fn ask(&self, method: &str, params: Value) -> Option<Answer> {
        if self.is_closed() {
            return None;
        }
        let id = format!(
            "{method}-{}",
            self.count.fetch_add(1, Ordering::Relaxed) + 1
        );
        let (sender, receiver) = oneshot::channel();
        self.asked().insert(id.clone(), sender);
        let pending = Pending {
            client: self,
            id: id.clone(),
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        let answer = self.closed.run_until_cancelled(receiver).await;
        drop(pending);
        answer.and_then(Result::ok)
    }
}

/// Reads the answer to the question whether a call may run. What is no answer allows nothing.
fn approval(answer: Option<Answer>) -> Approval {
    let denied = |reason: Option<String>| Approval::Deny { reason };
    let answer = match answer {
        None => return denied(None),
        Some(Err(error)) => return denied(Some(error)),
        Some(Ok(answer)) => answer,
    };
    let reason = answer.get("reason").and_then(Value::as_str);
    match answer.get("decision").and_then(Value::as_str) {
        Some("allow") => Approval::AllowOnce,
        Some("allow_session") => Approval::AllowSession,
        Some("deny") => denied(reason.map(str::to_owned)),
        _ => denied(Some(format!(
            "the client answered {answer}, expected `decision` to be `allow`, `allow_session` or `deny`"
        ))),
    }
}

/// Returns a question as the client reads it.
fn question(question: &Question) -> Value {
    match question {
        Question::Confirm { title, message } => {
            json!({"kind": "confirm", "title": title, "message": message})
        }
        Question::Select { title, options } => {
            json!({"kind": "select", "title": title, "options": options})
        }
        Question::Input { title, placeholder } => {
            json!({"kind": "input", "title": title, "placeholder": placeholder})
        }
        _ => json!({"kind": "unknown"}),
    }
}

/// Reads the answer to a question. One that the question does not have is none.
fn answer_to(asked: &Question, answer: &Value) -> Option<String> {
    let answer = answer.get("answer")?;
    match (asked, answer) {
        (Question::Confirm { .. }, Value::Bool(yes)) => {
            Some(if *yes { "yes" } else { "no" }.to_owned())
        }
        (Question::Confirm { .. }, _) => None,
        (Question::Select { options, .. }, answer) => answer
            .as_str()
            .map(str::to_owned)
            .filter(|it| options.contains(it)),
        (_, answer) => answer.as_str().map(str::to_owned),
    }
}

impl Frontend for Client {
    fn hook_notice(&self, event: &'static str, text: &str) {
        self.terminal.hook_notice(event, text);
    }

    fn hook_failure(&self, event: &'static str, failure: &HookFailure<'_>) {
        self.terminal.hook_failure(event, failure);
    }

    fn notification(&self, level: NotificationLevel, text: &str) {
        self.terminal.notification(level, text);
    }

    fn script_output(&self, worker: &str, line: &str) {
        self.terminal.script_output(worker, line);
    }

    fn is_interactive(&self) -> bool {
        !self.is_closed()
    }

    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let by = match request.by {
                AskedBy::Hook { event, hook } => json!({"hook": hook, "event": event}),
                AskedBy::Rule => json!({"rule": request.reason}),
                AskedBy::Protection => json!({"protection": request.reason}),
                AskedBy::Default | _ => Value::Null,
            };
            let params = json!({
                "agent": request.agent,
                "tool_name": request.tool,
                "tool_input": request.input,
                "reason": request.reason,
                "asked_by": by,
                "metadata": request.metadata,
                "suggestion": request.suggestion,
            });
            approval(self.ask("approve", params).await)
        })
    }

    fn question<'a>(&'a self, asked: &'a Question) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let answer = self.ask("question", question(asked)).await?.ok()?;
            answer_to(asked, &answer)
        })
    }

    fn more_iterations(&self, limit: u32) -> BoxFuture<'_, Option<u32>> {
        Box::pin(async move {
            let asked = Question::Input {
                title: format!("The agent made {limit} model calls. How many more?"),
                placeholder: Some("0".to_owned()),
            };
            self.question(&asked).await?.trim().parse().ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_lets_a_call_run() {
        let deny = |reason: &str| Approval::Deny {
            reason: Some(reason.to_owned()),
        };
        for (answer, expected) in [
            (Some(Ok(json!({"decision": "allow"}))), Approval::AllowOnce),
            (
                Some(Ok(json!({"decision": "allow_session"}))),
                Approval::AllowSession,
            ),
            (
                Some(Ok(json!({"decision": "deny", "reason": "no"}))),
                deny("no"),
            ),
            (Some(Err("closed".to_owned())), deny("closed")),
            (None, Approval::Deny { reason: None }),
            (
                Some(Ok(json!(true))),
                deny(
                    "the client answered true, expected `decision` to be `allow`, `allow_session` or `deny`",
                ),
            ),
        ] {
            assert_eq!(approval(answer), expected);
        }
    }

    #[test]
    fn a_question_is_answered_by_one_of_its_answers_or_not_at_all() {
        let confirm = Question::Confirm {
            title: String::new(),
            message: String::new(),
        };
        let select = Question::Select {
            title: String::new(),
            options: vec!["a".to_owned()],
        };
        let input = Question::Input {
            title: String::new(),
            placeholder: None,
        };
        for (asked, answer, expected) in [
            (&confirm, json!({"answer": true}), Some("yes")),
            (&confirm, json!({"answer": false}), Some("no")),
            (&confirm, json!({"answer": "yes"}), None),
            (&select, json!({"answer": "a"}), Some("a")),
            (&select, json!({"answer": "b"}), None),
            (&input, json!({"answer": ""}), Some("")),
            (&input, json!({"answer": null}), None),
            (&input, json!({}), None),
        ] {
            assert_eq!(answer_to(asked, &answer).as_deref(), expected, "{answer}");
        }
    }
}
