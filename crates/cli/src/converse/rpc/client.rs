//! The client as an agent's frontend: it is asked by requests of the agent's own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde::Deserialize;
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

    /// Reports an invalid answer to the client, and returns the description.
    async fn report_invalid(&self, method: &str, problem: &str) -> String {
        let text = format!("invalid answer to `{method}`: {problem}");
        self.send(&Failure::invalid_params(&text).message()).await;
        text
    }

    /// Takes the answer to a question. An answer to a question that was withdrawn is ignored.
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

/// The result of `approve`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalResult {
    decision: ApprovalDecision,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ApprovalDecision {
    Allow,
    AllowSession,
    Deny,
}

/// Reads the answer to the question whether a call may run.
///
/// # Errors
/// Describes an answer that is not in the form of `approve`.
fn approval(answer: Option<Answer>) -> Result<Approval, String> {
    let result = match answer {
        None => return Ok(Approval::Deny { reason: None }),
        Some(Err(error)) => {
            return Ok(Approval::Deny {
                reason: Some(error),
            });
        }
        // A list would do for a struct.
        Some(Ok(result)) if !result.is_object() => return Err("expected an object".to_owned()),
        Some(Ok(result)) => result,
    };
    let result: ApprovalResult =
        serde_json::from_value(result).map_err(|error| error.to_string())?;
    Ok(match result.decision {
        ApprovalDecision::Allow => Approval::AllowOnce,
        ApprovalDecision::AllowSession => Approval::AllowSession,
        ApprovalDecision::Deny => Approval::Deny {
            reason: result.reason,
        },
    })
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

/// Reads the answer to a question. A missing or `null` `answer` dismisses the question.
///
/// # Errors
/// Describes an answer that the question does not have.
fn answer_to(asked: &Question, answer: &Value) -> Result<Option<String>, String> {
    let answer = match answer.get("answer") {
        None | Some(Value::Null) => return Ok(None),
        Some(answer) => answer,
    };
    match (asked, answer) {
        (Question::Confirm { .. }, Value::Bool(yes)) => {
            Ok(Some(if *yes { "yes" } else { "no" }.to_owned()))
        }
        (Question::Confirm { .. }, _) => Err("`answer` is not true or false".to_owned()),
        (Question::Select { options, .. }, Value::String(choice)) if !options.contains(choice) => {
            Err("`answer` is not one of the options".to_owned())
        }
        (_, Value::String(text)) => Ok(Some(text.clone())),
        _ => Err("`answer` is not a text".to_owned()),
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
            match approval(self.ask("approve", params).await) {
                Ok(approval) => approval,
                Err(problem) => {
                    let problem = self.report_invalid("approve", &problem).await;
                    Approval::Deny {
                        reason: Some(problem),
                    }
                }
            }
        })
    }

    fn question<'a>(&'a self, asked: &'a Question) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let answer = self.ask("question", question(asked)).await?.ok()?;
            match answer_to(asked, &answer) {
                Ok(answer) => answer,
                Err(problem) => {
                    self.report_invalid("question", &problem).await;
                    None
                }
            }
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
        ] {
            assert_eq!(approval(answer), Ok(expected));
        }
        for answer in [
            json!(true),
            json!(null),
            json!(["allow"]),
            json!({}),
            json!({"approve": "yes"}),
            json!({"approve": 1}),
            json!({"decision": true}),
            json!({"decision": ["allow"]}),
            json!({"decision": "Allow"}),
            json!({"decision": "allow", "approve": false}),
            json!({"decision": "allow", "reason": 1}),
        ] {
            assert!(approval(Some(Ok(answer.clone()))).is_err(), "{answer}");
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
            (&confirm, json!({"answer": true}), Some(Some("yes"))),
            (&confirm, json!({"answer": false}), Some(Some("no"))),
            (&confirm, json!({"answer": "yes"}), None),
            (&confirm, json!({"answer": 1}), None),
            (&select, json!({"answer": "a"}), Some(Some("a"))),
            (&select, json!({"answer": "b"}), None),
            (&input, json!({"answer": ""}), Some(Some(""))),
            (&input, json!({"answer": 1}), None),
            (&input, json!({"answer": null}), Some(None)),
            (&input, json!({}), Some(None)),
        ] {
            let read = answer_to(asked, &answer).ok();
            let read = read.as_ref().map(|read| read.as_deref());
            assert_eq!(read, expected, "{answer}");
        }
    }
}
