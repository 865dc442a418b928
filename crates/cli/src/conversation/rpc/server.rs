//! Handles the requests of a program. Only one request that changes the conversation is handled at a time. Meanwhile,
//! concurrent requests, such as `steer` and `abort`, are answered.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tenterhook_agent::{AgentHandle, SubmitOutcome};
use tenterhook_engine::event::{InputSource, QueueKind};

use super::super::record::ConversationRecord;
use super::super::state::Conversation;
use super::caller::Caller;
use super::client::Client;
use super::method::{self, ConcurrentRequest, Method, Scheduling};
use tenterhook_jsonrpc::{RpcError, RpcRequest};
use tenterhook_setup::exit::Exit;

/// The maximum number of concurrent requests that may be waiting for their answers.
const MAX_CONCURRENT: usize = 16;

/// The reply to a request that is answered concurrently.
type PendingReply = BoxFuture<'static, (Value, Result<Value, RpcError>)>;

/// The requests that are answered while another one changes the conversation. They may outlast that request.
struct ConcurrentRequests {
    client: Arc<Client>,
    handle: AgentHandle,
    state: Value,
    replies: FuturesUnordered<PendingReply>,
    /// The ids of the requests that are not answered yet.
    asking: Vec<Value>,
    /// Whether the caller has aborted the current request.
    was_aborted: bool,
    /// The id of the request that ends the session after the current request.
    ends: Option<Value>,
}

impl Conversation<'_> {
    /// Handles requests until the program ends the session or goes away.
    pub(in crate::conversation) async fn serve(
        &mut self,
        mut caller: Caller,
        record: &mut ConversationRecord,
    ) {
        let mut concurrent = ConcurrentRequests {
            client: Arc::clone(&caller.client),
            handle: self.agent.handle(),
            state: Value::Null,
            replies: FuturesUnordered::new(),
            asking: Vec::new(),
            was_aborted: false,
            ends: None,
        };
        while !self.is_over && !self.scripts.is_over() {
            let cancel = self.interrupts.token();
            let next = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    record.note(Exit::Interrupted);
                    break;
                }
                Some((id, result)) = concurrent.replies.next() => {
                    concurrent.reply(&id, result).await;
                    continue;
                }
                next = caller.next() => next,
                () = self.scripts.has_work() => {
                    concurrent.handle = self.agent.handle();
                    concurrent.state = self.state(true);
                    let method = Method::RunScriptPrompts;
                    self.run_exclusive(method, None, &mut caller, &mut concurrent).await;
                    continue;
                }
            };
            let request = match next {
                None => break,
                Some(Ok(request)) => request,
                Some(Err(failure)) => {
                    caller.client.send(&failure.to_message()).await;
                    continue;
                }
            };
            self.handle_request(request, &mut caller, &mut concurrent)
                .await;
        }
        concurrent.close().await;
        caller.client.close();
    }

    /// Handles one request.
    async fn handle_request(
        &mut self,
        request: RpcRequest,
        caller: &mut Caller,
        concurrent: &mut ConcurrentRequests,
    ) {
        let method = match Method::read(&request) {
            Ok(method) => method,
            Err(failure) => return caller.client.send(&failure.to_message()).await,
        };
        concurrent.handle = self.agent.handle();
        match method.scheduling() {
            Scheduling::Concurrent(concurrent_request) => {
                concurrent.state = self.state(false);
                concurrent.start(request.id, concurrent_request).await;
            }
            Scheduling::Exclusive(Method::Shutdown) => {
                self.is_over = true;
                concurrent.ends = Some(request.id);
            }
            Scheduling::Exclusive(method) => {
                concurrent.state = self.state(true);
                self.run_exclusive(method, Some(request.id), caller, concurrent)
                    .await;
            }
        }
    }

    /// Handles a request that changes the conversation, and reads further requests meanwhile. Without `id`, no program
    /// waits for the result.
    async fn run_exclusive(
        &mut self,
        method: Method,
        id: Option<Value>,
        caller: &mut Caller,
        concurrent: &mut ConcurrentRequests,
    ) {
        let client = Arc::clone(&caller.client);
        let interrupts = self.interrupts;
        concurrent.was_aborted = false;
        let result = {
            let mut work = Box::pin(self.run_method(method));
            loop {
                let next = tokio::select! {
                    biased;
                    result = &mut work => break result,
                    Some((id, result)) = concurrent.replies.next() => {
                        concurrent.reply(&id, result).await;
                        continue;
                    }
                    next = caller.next(), if !client.is_closed() => next,
                };
                match next {
                    // The client is gone: no one can answer questions, and no one needs the result.
                    None => {
                        client.close();
                        concurrent.was_aborted = true;
                    }
                    Some(Ok(request)) => concurrent.handle_while_busy(request).await,
                    Some(Err(failure)) => client.send(&failure.to_message()).await,
                }
                if concurrent.was_aborted && !interrupts.is_interrupted() {
                    interrupts.interrupt();
                }
            }
        };
        if let Some(id) = id {
            client.reply_with(&id, result).await;
        }
        if concurrent.was_aborted && !client.is_closed() {
            interrupts.go_on();
        }
        self.is_over |= client.is_closed() || concurrent.ends.is_some();
    }
}

impl ConcurrentRequests {
    /// Handles a request that arrives while another one changes the conversation.
    async fn handle_while_busy(&mut self, request: RpcRequest) {
        let method = match Method::read(&request) {
            Ok(method) => method,
            Err(failure) => return self.client.send(&failure.to_message()).await,
        };
        match method.scheduling() {
            Scheduling::Concurrent(concurrent_request) => {
                self.start(request.id, concurrent_request).await;
            }
            Scheduling::Exclusive(Method::Shutdown) => {
                self.was_aborted = true;
                self.ends = Some(request.id);
            }
            Scheduling::Exclusive(_) => {
                let text = format!(
                    "the agent is busy; until it is done, only {} are available",
                    method::concurrent_method_names()
                );
                self.refuse(&request.id, &text).await;
            }
        }
    }

    /// Sends the answer of a concurrent request.
    async fn reply(&mut self, id: &Value, result: Result<Value, RpcError>) {
        if let Some(at) = self.asking.iter().position(|asking| asking == id) {
            self.asking.swap_remove(at);
        }
        self.client.reply_with(id, result).await;
    }

    /// Cancels the requests that are not answered yet, and answers them and the request that ends the session.
    async fn close(mut self) {
        self.replies.clear();
        for id in std::mem::take(&mut self.asking) {
            let failure = RpcError::cancelled("the session ends").about(&id);
            self.client.send(&failure.to_message()).await;
        }
        if let Some(id) = &self.ends {
            self.client.reply(id, &json!({})).await;
        }
    }

    async fn refuse(&self, id: &Value, text: &str) {
        let failure = RpcError::busy(text).about(id);
        self.client.send(&failure.to_message()).await;
    }

    /// Starts a request that is answered concurrently.
    async fn start(&mut self, id: Value, request: ConcurrentRequest) {
        if self.replies.len() >= MAX_CONCURRENT && request != ConcurrentRequest::Abort {
            let text = format!("{MAX_CONCURRENT} requests are under way; wait for one of them");
            return self.refuse(&id, &text).await;
        }
        let handle = self.handle.clone();
        let mut state = self.state.clone();
        self.was_aborted |= request == ConcurrentRequest::Abort;
        self.asking.push(id.clone());
        self.replies.push(Box::pin(async move {
            let (text, queue) = match request {
                ConcurrentRequest::Steer(text) => (text, QueueKind::Steering),
                ConcurrentRequest::FollowUp(text) => (text, QueueKind::FollowUp),
                ConcurrentRequest::Abort => return (id, Ok(json!({}))),
                ConcurrentRequest::GetState => {
                    if let Some(state) = state.as_object_mut() {
                        state.insert("waiting".to_owned(), handle.waiting().into());
                    }
                    return (id, Ok(state));
                }
            };
            let submitted = handle.submit(text, InputSource::Rpc, queue).await;
            let waiting = handle.waiting();
            let result = match submitted {
                Ok(SubmitOutcome::Refused { reason }) => {
                    Ok(json!({"waiting": waiting, "refused": reason}))
                }
                Ok(SubmitOutcome::Handled) => Ok(json!({"waiting": waiting, "handled": true})),
                Ok(_) => Ok(json!({"waiting": waiting})),
                Err(full) => Err(RpcError::busy(&format!(
                    "{full}; try again when the agent has taken some"
                ))),
            };
            (id, result)
        }));
    }
}
