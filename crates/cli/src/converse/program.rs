//! A program in the place of a person: it follows, or it calls.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use tenterhook::Engine;
use tenterhook_agent::Frontend;

use super::Report;
use super::rpc::{Caller, Client};
use crate::args::Format;
use crate::feed::{self, Feed, Writer};
use crate::interrupt::Interrupts;
use crate::terminal::Terminal;

/// Whoever reads stdout instead of a person, if somebody does.
pub(crate) struct Program {
    output: Option<(Feed, Writer)>,
    /// The engine that is followed.
    _followed: Option<Arc<Engine>>,
    client: Option<Arc<Client>>,
    caller: Option<Caller>,
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
                    _followed: None,
                    client: None,
                    caller: None,
                };
            }
        };
        let (feed, writer) = feed::start(interrupts);
        let followed = feed.follow(engine, form);
        let client = (format == Format::Rpc)
            .then(|| Arc::new(Client::new(feed.clone(), Arc::clone(terminal))));
        Self {
            caller: client
                .as_ref()
                .map(|client| Caller::listen(Arc::clone(client))),
            client,
            _followed: Some(followed),
            output: Some((feed, writer)),
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
        if let Some((feed, _)) = &self.output {
            let last = LastLine {
                r#type: "report",
                report,
            };
            feed.send(&last).await;
        }
    }

    /// Waits until everything is written.
    pub(super) async fn finish(self) {
        if let Some((feed, writer)) = self.output {
            writer.finish(&feed).await;
        }
    }
}
