//! The client as the agent's frontend. The agent sends requests to ask it questions.

use std::fmt;
use std::future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_agent::frontend::{
    Approval, ApprovalRequest, AskedBy, HookFailure, ScriptDisplay, ScriptQuestion,
};
use tenterhook_agent::{CancellationToken, Frontend};
use tenterhook_engine::event::NotificationLevel;
use tenterhook_jsonrpc::{PendingCalls, RpcError, notification, request, result, wait_for_answer};

use crate::frontend::Terminal;
use crate::output::json_lines::JsonLines;

/// A client's answer: a result, or the text of an error.
type Answer = Result<Value, String>;

/// The maximum number of questions that may be open at once.
const MAX_QUESTIONS: usize = 1 << 10;

/// The program at the other end of stdin and stdout.
pub struct RpcClient {
    feed: JsonLines,
    /// Shows messages that no event contains.
    terminal: Arc<Terminal>,
    asked: PendingCalls<String, Answer>,
    count: AtomicU64,
    closed: CancellationToken,
}

impl fmt::Debug for RpcClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcClient")
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// A question that is not answered yet. Dropping it tells the client that the answer is no longer needed.
struct Pending<'a> {
    client: &'a RpcClient,
    id: String,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.client.asked.withdraw(&self.id) {
            let cancel = notification("cancel", &json!({"id": self.id}));
            self.client.feed.try_send(&cancel);
        }
    }
}

impl RpcClient {
    /// Connects a program that reads `feed`.
    pub fn new(feed: JsonLines, terminal: Arc<Terminal>) -> Self {
        Self {
            feed,
            terminal,
            asked: PendingCalls::new(MAX_QUESTIONS),
            count: AtomicU64::new(0),
            closed: CancellationToken::new(),
        }
    }

    /// Sends a message.
    pub async fn send(&self, message: &Value) {
        self.feed.send(message).await;
    }

    /// Answers a request.
    pub async fn reply(&self, id: &Value, value: &Value) {
        self.send(&result(id, value)).await;
    }

    /// Answers a request with its result or error.
    pub async fn reply_with(&self, id: &Value, done: Result<Value, RpcError>) {
        match done {
            Ok(value) => self.reply(id, &value).await,
            Err(error) => self.send(&error.about(id).to_message()).await,
        }
    }

    /// Reports an invalid answer to the client, and returns the description.
    async fn report_invalid(&self, method: &str, problem: &str) -> String {
        let text = format!("invalid answer to `{method}`: {problem}");
        self.send(&RpcError::invalid_params(&text).to_message())
            .await;
        text
    }

    /// Delivers the answer to a question. An answer to a withdrawn question is ignored.
    pub(super) fn resolve_question(&self, id: &str, answer: Answer) {
        self.asked.answer(&id.to_owned(), answer);
    }

    /// Records that the client is gone, so that no question waits for it.
    pub fn close(&self) {
        self.closed.cancel();
        self.asked.close();
    }

    /// Returns whether the client is gone.
    pub fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Asks the client. Returns `None` if the client is gone.
    async fn ask(&self, method: &str, params: Value) -> Option<Answer> {
        if self.is_closed() {
            return None;
        }
        let id = format!(
            "{method}-{}",
            self.count.fetch_add(1, Ordering::Relaxed) + 1
        );
        let answer = self.asked.begin(id.clone()).ok()?;
        let pending = Pending {
            client: self,
            id: id.clone(),
        };
        self.send(&request(&id.into(), method, &params)).await;
        // There is no deadline, because the client may ask a person.
        let answer = wait_for_answer(answer, future::pending(), &self.closed).await;
        drop(pending);
        answer.ok()
    }
}

/// The client's result of `approve`.
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
        // `serde` would also read a list as a struct.
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

impl Frontend for RpcClient {
    fn hook_notice(&self, event: &'static str, text: &str) {
        self.terminal.hook_notice(event, text);
    }

    fn hook_failure(&self, event: &'static str, failure: &HookFailure<'_>) {
        self.terminal.hook_failure(event, failure);
    }

    fn notification(&self, level: NotificationLevel, text: &str) {
        self.terminal.notification(level, text);
    }

    fn display<'a>(&'a self, display: &'a ScriptDisplay) -> BoxFuture<'a, ()> {
        Box::pin(async move { self.send(&notification("ui", &json!(display))).await })
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

    fn question<'a>(&'a self, asked: &'a ScriptQuestion) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let answer = self.ask("question", json!(asked)).await?.ok()?;
            match asked.read_answer(&answer) {
                Ok(answer) => answer,
                Err(problem) => {
                    self.report_invalid("question", &problem.to_string()).await;
                    None
                }
            }
        })
    }

    fn more_iterations(&self, limit: u32) -> BoxFuture<'_, Option<u32>> {
        Box::pin(async move {
            let asked = ScriptQuestion::Input {
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
}
