//! `tenterhook run --mode rpc`: a program leads the conversation in JSON-RPC 2.0, a message a line on stdin and stdout.
//!
//! One request that changes the conversation is carried out at a time; what speaks to an agent at work is answered beside
//! it. `docs/rpc.md` is the contract.

mod client;
mod method;
mod offer;
mod wire;

use std::io::{self, Read as _};
use std::sync::Arc;

use bytes::BytesMut;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tenterhook::event::{InputSource, QueueKind};
use tenterhook_agent::{AgentHandle, Submitted};
use tokio::sync::mpsc;
use tokio_util::codec::{Decoder as _, LinesCodec, LinesCodecError};

pub(super) use self::client::Client;
use self::method::{Aside, Kind, Method};
use self::wire::{Failure, Incoming, Request};
use super::{Conversation, Record};
use crate::exit::Exit;

/// The longest message, in bytes.
const LONGEST: usize = 8 << 20;

/// How many messages may be read ahead.
const READ_AHEAD: usize = 16;

/// How many requests may be under way beside the one that changes the conversation.
const MOST_ASIDE: usize = 16;

/// How much is read at once.
const CHUNK: usize = 16 << 10;

/// What was read.
type Read = Result<String, Failure>;

/// A program that calls.
pub(super) struct Caller {
    client: Arc<Client>,
    messages: mpsc::Receiver<Read>,
}

impl Caller {
    /// Starts to read stdin.
    pub(super) fn listen(client: Arc<Client>) -> Self {
        let (sender, messages) = mpsc::channel(READ_AHEAD);
        let failed = sender.clone();
        let thread = std::thread::Builder::new().spawn(move || read(&sender));
        if let Err(error) = thread {
            let failure = Failure::unreadable(&format!("cannot read standard input: {error}"));
            failed.try_send(Err(failure)).ok();
        }
        Self { client, messages }
    }

    /// Returns the next request. What answers a question of the agent's goes there; `None` is the end.
    async fn next(&mut self) -> Option<Result<Request, Failure>> {
        loop {
            let message = self.messages.recv().await?;
            match message.and_then(|line| wire::parse(&line)) {
                Ok(Incoming::Request(request)) => return Some(Ok(request)),
                Ok(Incoming::Answer { id, result }) => self.client.answered(&id, result),
                Ok(Incoming::Nothing) => {}
                Err(failure) => return Some(Err(failure)),
            }
        }
    }
}

/// Reads messages until the end of stdin, or until nobody wants them.
fn read(messages: &mpsc::Sender<Read>) {
    let mut codec = LinesCodec::new_with_max_length(LONGEST);
    let mut buffer = BytesMut::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = match io::stdin().lock().read(&mut chunk) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let failure = Failure::unreadable(&format!("cannot read stdin: {error}"));
                messages.blocking_send(Err(failure)).ok();
                return;
            }
        };
        buffer.extend_from_slice(chunk.get(..count).unwrap_or_default());
        loop {
            let decoded = if count == 0 {
                codec.decode_eof(&mut buffer)
            } else {
                codec.decode(&mut buffer)
            };
            let message = match decoded {
                Ok(Some(line)) => Ok(line),
                Ok(None) => break,
                Err(LinesCodecError::MaxLineLengthExceeded) => Err(Failure::unreadable(&format!(
                    "a message has more than {LONGEST} bytes"
                ))),
                Err(LinesCodecError::Io(error)) => Err(Failure::unreadable(&format!(
                    "a message is no text: {error}"
                ))),
            };
            if messages.blocking_send(message).is_err() {
                return;
            }
        }
        if count == 0 {
            return;
        }
    }
}

/// What is answered beside a request that changes the conversation.
type Side = BoxFuture<'static, (Value, Result<Value, Failure>)>;

/// Who speaks to the agent, at work or not. What is answered beside other things goes on from one request to the next.
struct Desk {
    client: Arc<Client>,
    handle: AgentHandle,
    state: Value,
    sides: FuturesUnordered<Side>,
    /// Whose answers are still to come.
    asking: Vec<Value>,
    /// The caller wants what is being done to stop.
    was_aborted: bool,
    /// The caller wants the session to end when what is being done is over.
    ends: Option<Value>,
}

impl Conversation<'_> {
    /// Carries out what a program asks for, until it wants the session to end or goes away.
    pub(super) async fn serve(&mut self, mut caller: Caller, record: &mut Record) {
        let mut desk = Desk {
            client: Arc::clone(&caller.client),
            handle: self.agent.handle(),
            state: Value::Null,
            sides: FuturesUnordered::new(),
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
                Some((id, result)) = desk.sides.next() => {
                    desk.reply(&id, result).await;
                    continue;
                }
                next = caller.next() => next,
            };
            let request = match next {
                None => break,
                Some(Ok(request)) => request,
                Some(Err(failure)) => {
                    caller.client.send(&failure.message()).await;
                    continue;
                }
            };
            self.take_request(request, &mut caller, &mut desk).await;
        }
        desk.close().await;
        caller.client.close();
    }

    /// Carries out one request.
    async fn take_request(&mut self, request: Request, caller: &mut Caller, desk: &mut Desk) {
        let method = match Method::read(&request) {
            Ok(method) => method,
            Err(failure) => return caller.client.send(&failure.message()).await,
        };
        desk.handle = self.agent.handle();
        match method.kind() {
            Kind::Aside(aside) => {
                desk.state = self.state(false);
                desk.begin(request.id, aside).await;
            }
            Kind::Alone(Method::Shutdown) => {
                self.is_over = true;
                desk.ends = Some(request.id);
            }
            Kind::Alone(method) => {
                desk.state = self.state(true);
                self.work(method, request.id, caller, desk).await;
            }
        }
    }

    /// Carries out what nothing else is carried out beside, and hears what else is asked for.
    async fn work(&mut self, method: Method, id: Value, caller: &mut Caller, desk: &mut Desk) {
        let client = Arc::clone(&caller.client);
        let interrupts = self.interrupts;
        desk.was_aborted = false;
        let result = {
            let mut work = Box::pin(self.change(method));
            loop {
                let next = tokio::select! {
                    biased;
                    result = &mut work => break result,
                    Some((id, result)) = desk.sides.next() => {
                        desk.reply(&id, result).await;
                        continue;
                    }
                    next = caller.next(), if !client.is_closed() => next,
                };
                match next {
                    // Nobody is there to answer, and nobody waits for what comes of it.
                    None => {
                        client.close();
                        desk.was_aborted = true;
                    }
                    Some(Ok(request)) => desk.take(request).await,
                    Some(Err(failure)) => client.send(&failure.message()).await,
                }
                if desk.was_aborted && !interrupts.is_interrupted() {
                    interrupts.interrupt();
                }
            }
        };
        client.settle(&id, result).await;
        if desk.was_aborted && !client.is_closed() {
            interrupts.go_on();
        }
        self.is_over |= client.is_closed() || desk.ends.is_some();
    }
}

impl Desk {
    /// Takes a request while another one is carried out.
    async fn take(&mut self, request: Request) {
        let method = match Method::read(&request) {
            Ok(method) => method,
            Err(failure) => return self.client.send(&failure.message()).await,
        };
        match method.kind() {
            Kind::Aside(aside) => self.begin(request.id, aside).await,
            Kind::Alone(Method::Shutdown) => {
                self.was_aborted = true;
                self.ends = Some(request.id);
            }
            Kind::Alone(_) => {
                let text = format!(
                    "the agent is at work; until then there are {}",
                    method::names_aside()
                );
                self.refuse(&request.id, &text).await;
            }
        }
    }

    /// Answers what was begun.
    async fn reply(&mut self, id: &Value, result: Result<Value, Failure>) {
        if let Some(at) = self.asking.iter().position(|asking| asking == id) {
            self.asking.swap_remove(at);
        }
        self.client.settle(id, result).await;
    }

    /// Gives up what is under way, and answers who waits for it and who wanted the session to end.
    async fn close(mut self) {
        self.sides.clear();
        for id in std::mem::take(&mut self.asking) {
            let failure = Failure::canceled("the session ends").about(&id);
            self.client.send(&failure.message()).await;
        }
        if let Some(id) = &self.ends {
            self.client.reply(id, json!({})).await;
        }
    }

    async fn refuse(&self, id: &Value, text: &str) {
        let failure = Failure::busy(text).about(id);
        self.client.send(&failure.message()).await;
    }

    /// Begins what is answered beside other things.
    async fn begin(&mut self, id: Value, aside: Aside) {
        if self.sides.len() >= MOST_ASIDE && aside != Aside::Abort {
            let text = format!("{MOST_ASIDE} requests are under way; wait for one of them");
            return self.refuse(&id, &text).await;
        }
        let handle = self.handle.clone();
        let mut state = self.state.clone();
        self.was_aborted |= aside == Aside::Abort;
        self.asking.push(id.clone());
        self.sides.push(Box::pin(async move {
            let (text, queue) = match aside {
                Aside::Steer(text) => (text, QueueKind::Steering),
                Aside::FollowUp(text) => (text, QueueKind::FollowUp),
                Aside::Abort => return (id, Ok(json!({}))),
                Aside::GetState => {
                    if let Some(state) = state.as_object_mut() {
                        state.insert("waiting".to_owned(), handle.waiting().into());
                    }
                    return (id, Ok(state));
                }
            };
            let submitted = handle.submit(text, InputSource::Rpc, queue).await;
            let waiting = handle.waiting();
            let result = match submitted {
                Ok(Submitted::Refused { reason }) => {
                    Ok(json!({"waiting": waiting, "refused": reason}))
                }
                Ok(Submitted::Handled) => Ok(json!({"waiting": waiting, "handled": true})),
                Ok(_) => Ok(json!({"waiting": waiting})),
                Err(full) => Err(Failure::busy(&format!("{full}; let the agent take some"))),
            };
            (id, result)
        }));
    }
}
