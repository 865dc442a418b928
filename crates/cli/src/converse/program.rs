//! A program in the place of a person: it follows, or it calls.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use tenterhook::{Engine, Registration};
use tenterhook_agent::Frontend;

use super::Report;
use super::rpc::{Caller, Client};
use crate::args::Format;
use crate::feed::{self, Feed, Writer};
use crate::interrupt::Interrupts;
use crate::terminal::Terminal;

/// Whoever reads stdout instead of a person, if somebody does.
pub(crate) struct Program {
    output: Option<Output>,
    client: Option<Arc<Client>>,
    caller: Option<Caller>,
}

/// What goes to stdout.
struct Output {
    feed: Feed,
    writer: Writer,
    following: Registration,
}

/// The last line of a program that follows.
#[derive(Serialize)]
struct LastLine<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    report: &'a Report<'a>,
}

impl Program {
    /// Connects a program, as the format of the output asks for.
    pub(crate) fn of(
        format: Format,
        engine: &Engine,
        terminal: &Arc<Terminal>,
        interrupts: &Interrupts,
    ) -> Self {
        let form: fn(Value) -> Value = match format {
            Format::Jsonl => |event| event,
            Format::Rpc => |event| json!({"jsonrpc": "2.0", "method": "event", "params": event}),
            Format::Text | Format::Answer | Format::Json => {
                return Self {
                    output: None,
                    client: None,
                    caller: None,
                };
            }
        };
        let (feed, writer) = feed::start(interrupts);
        let following = feed.follow(engine, form);
        let client = (format == Format::Rpc)
            .then(|| Arc::new(Client::new(feed.clone(), Arc::clone(terminal))));
        Self {
            caller: client
                .as_ref()
                .map(|client| Caller::listen(Arc::clone(client))),
            client,
            output: Some(Output {
                feed,
                writer,
                following,
            }),
        }
    }

    /// Returns who is shown things and asked.
    pub(crate) fn frontend(&self, terminal: &Arc<Terminal>) -> Arc<dyn Frontend> {
        match &self.client {
            Some(client) => Arc::clone(client) as _,
            None => Arc::clone(terminal) as _,
        }
    }

    /// Returns the program that calls, once.
    pub(super) fn take_caller(&mut self) -> Option<Caller> {
        self.caller.take()
    }

    /// Writes the last line for a program that follows.
    pub(super) async fn report(&self, report: &Report<'_>) {
        if let Some(output) = &self.output {
            let last = LastLine {
                r#type: "report",
                report,
            };
            output.feed.send(&last).await;
        }
    }

    /// Waits until everything is written.
    pub(super) async fn finish(self) {
        if let Some(output) = self.output {
            output.following.unsubscribe();
            output.writer.finish(&output.feed).await;
        }
    }
}
