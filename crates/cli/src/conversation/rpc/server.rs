//! Handles the requests of a program. Only one request that changes the conversation is handled at a time. Meanwhile,
//! concurrent requests, such as `steer` and `abort`, are answered.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tenterhook_agent::extension::CommandEnd;
use tenterhook_agent::{AgentHandle, CancellationToken, SubmitOutcome};
use tenterhook_engine::event::{InputSource, QueueKind};

use super::super::record::ConversationRecord;
use super::super::running_commands::{CommandRun, ExtensionCommands};
use super::super::state::Conversation;
use super::method::{self, ConcurrentRequest, Method, Scheduling};
use tenterhook_jsonrpc::{RpcError, RpcRequest};
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::rpc::{RpcCaller, RpcClient};

/// The maximum number of concurrent requests that may be waiting for their answers.
const MAX_CONCURRENT: usize = 16;

/// The reply to a request that is answered concurrently.
type PendingReply = BoxFuture<'static, (Value, Result<Value, RpcError>)>;

/// The requests that are answered while another one changes the conversation. They may outlast that request.
struct ConcurrentRequests {
    client: Arc<RpcClient>,
    handle: AgentHandle,
    commands: ExtensionCommands,
    /// Cancels the commands of extensions.
    cancel: CancellationToken,
    state: Value,
    replies: FuturesUnordered<PendingReply>,
    /// The number of commands of extensions among the replies.
    running: Arc<AtomicUsize>,
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
        mut caller: RpcCaller,
        record: &mut ConversationRecord,
    ) {
        let mut concurrent = ConcurrentRequests {
            client: Arc::clone(&caller.client),
            handle: self.agent.handle(),
            commands: self.extension_commands(),
            cancel: self.interrupts.token(),
            state: Value::Null,
            replies: FuturesUnordered::new(),
            running: Arc::default(),
            asking: Vec::new(),
            was_aborted: false,
            ends: None,
        };
        let interrupts = self.interrupts;
        while !self.is_over && !self.scripts.is_over() {
            let cancel = self.interrupts.token();
            let scripts = Arc::clone(&self.scripts);
            let runs_command = concurrent.runs_command();
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
                // A command that outlasts the request during which it was started may lead the session.
                pending = scripts.next_request(), if runs_command => {
                    self.refresh(&mut concurrent, true);
                    let mut ignored = ConversationRecord::default();
                    let applying = Box::pin(self.apply_session_request(pending, &mut ignored));
                    attend(applying, interrupts, &mut caller, &mut concurrent).await;
                    self.is_over |= concurrent.ends_session();
                    continue;
                }
                next = caller.next() => next,
                () = self.scripts.has_work() => {
                    self.refresh(&mut concurrent, true);
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
        caller: &mut RpcCaller,
        concurrent: &mut ConcurrentRequests,
    ) {
        let method = match Method::read(&request) {
            Ok(method) => method,
            Err(failure) => return caller.client.send(&failure.to_message()).await,
        };
        match method.scheduling() {
            Scheduling::Concurrent(concurrent_request) => {
                self.refresh(concurrent, false);
                concurrent.was_aborted = false;
                concurrent.start(request.id, concurrent_request).await;
                if concurrent.was_aborted && concurrent.runs_command() {
                    self.interrupts.interrupt();
                    self.interrupts.go_on();
                }
            }
            Scheduling::Exclusive(Method::Shutdown) => {
                self.is_over = true;
                concurrent.ends = Some(request.id);
            }
            Scheduling::Exclusive(method) => {
                self.refresh(concurrent, true);
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
        caller: &mut RpcCaller,
        concurrent: &mut ConcurrentRequests,
    ) {
        let client = Arc::clone(&caller.client);
        let interrupts = self.interrupts;
        let work = Box::pin(self.run_method(method));
        let result = attend(work, interrupts, caller, concurrent).await;
        if let Some(id) = id {
            client.reply_with(&id, result).await;
        }
        self.is_over |= concurrent.ends_session();
    }

    /// Tells concurrent requests about the current session.
    fn refresh(&self, concurrent: &mut ConcurrentRequests, is_busy: bool) {
        concurrent.handle = self.agent.handle();
        concurrent.commands = self.extension_commands();
        concurrent.cancel = self.interrupts.token();
        concurrent.state = self.state(is_busy);
    }
}

/// Does work that changes the conversation, and reads further requests meanwhile.
async fn attend<T>(
    mut work: Pin<Box<impl Future<Output = T>>>,
    interrupts: &Interrupts,
    caller: &mut RpcCaller,
    concurrent: &mut ConcurrentRequests,
) -> T {
    let client = Arc::clone(&caller.client);
    concurrent.was_aborted = false;
    let result = loop {
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
    };
    if concurrent.was_aborted && !client.is_closed() {
        interrupts.go_on();
    }
    result
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
            Scheduling::Exclusive(Method::Prompt(text)) if self.commands.find(&text).is_some() => {
                self.start_command(request.id, &text).await;
            }
            Scheduling::Exclusive(_) => {
                let text = format!(
                    "the agent is busy; until it is done, only {} and commands of extensions are available",
                    method::concurrent_method_names()
                );
                self.refuse(&request.id, &text).await;
            }
        }
    }

    /// Returns whether the client has ended the session, or is gone.
    fn ends_session(&self) -> bool {
        self.client.is_closed() || self.ends.is_some()
    }

    fn runs_command(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    /// Returns whether another request can be answered concurrently. If not, refuses this one.
    async fn has_room(&self, id: &Value) -> bool {
        let has_room = self.replies.len() < MAX_CONCURRENT;
        if !has_room {
            let text = format!("{MAX_CONCURRENT} requests are under way; wait for one of them");
            self.refuse(id, &text).await;
        }
        has_room
    }

    /// Starts a command of an extension. If it returns a prompt, the agent reads that when it has finished.
    async fn start_command(&mut self, id: Value, line: &str) {
        if !self.has_room(&id).await {
            return;
        }
        let Some(command) = self.commands.run(line, &self.cancel) else {
            return;
        };
        let (handle, cancel) = (self.handle.clone(), self.cancel.clone());
        let running = CountedCommand::new(&self.running);
        self.asking.push(id.clone());
        self.replies.push(Box::pin(async move {
            let CommandRun { line, end } = command.await;
            drop(running);
            let prompt = match end {
                Ok(CommandEnd::Prompt(prompt)) => prompt,
                Ok(CommandEnd::Passed) => line,
                Ok(_) => return (id, Ok(json!({"runs": []}))),
                Err(failure) if cancel.is_cancelled() => {
                    return (id, Err(RpcError::cancelled(&failure.to_string())));
                }
                Err(failure) => return (id, Err(RpcError::failed(&failure.to_string()))),
            };
            (id, submit(&handle, prompt, QueueKind::FollowUp).await)
        }));
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
        if request != ConcurrentRequest::Abort && !self.has_room(&id).await {
            return;
        }
        if let ConcurrentRequest::Steer(text) | ConcurrentRequest::FollowUp(text) = &request
            && let Some(command) = self.commands.find(text)
        {
            let text = format!(
                "`{command}` is a command of an extension, so it cannot wait; `prompt` runs it at once"
            );
            let failure = RpcError::invalid_params(&text).about(&id);
            return self.client.send(&failure.to_message()).await;
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
            (id, submit(&handle, text, queue).await)
        }));
    }
}

/// Submits a message to the agent. Returns the answer for the client.
async fn submit(handle: &AgentHandle, text: String, queue: QueueKind) -> Result<Value, RpcError> {
    let submitted = handle.submit(text, InputSource::Rpc, queue).await;
    let waiting = handle.waiting();
    match submitted {
        Ok(SubmitOutcome::Refused { reason }) => Ok(json!({"waiting": waiting, "refused": reason})),
        Ok(SubmitOutcome::Handled) => Ok(json!({"waiting": waiting, "handled": true})),
        Ok(_) => Ok(json!({"waiting": waiting})),
        Err(full) => Err(RpcError::busy(&format!(
            "{full}; try again when the agent has taken some"
        ))),
    }
}

/// Counts a running command until it is dropped.
struct CountedCommand(Arc<AtomicUsize>);

impl CountedCommand {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for CountedCommand {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
